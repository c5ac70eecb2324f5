//! A JSON file of the home folder.

use std::path::PathBuf;

use hangar_custom::jsonc;
use serde_json::{Value, json};

/// A larger file is not one that any program writes here.
const MAX_BYTES: u64 = 4 << 20;

pub(crate) struct JsonDocument {
    path: PathBuf,
    /// Whether the file holds something that could not be parsed, and so must not be overwritten.
    strange: bool,
    pub(crate) value: Value,
}

impl JsonDocument {
    /// A file that is missing, too large or no JSON object is as good as an empty one. People may have put remarks in it.
    pub(crate) fn open(path: PathBuf) -> Self {
        let size = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
        let small = size <= MAX_BYTES;
        let text = if small { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        let value = jsonc::parse(&text).ok().filter(Value::is_object);
        Self { path, strange: size > 0 && value.is_none(), value: value.unwrap_or_else(|| json!({})) }
    }

    /// Replaces the file, which only its owner can read: some hold secrets.
    pub(crate) fn save(&self) -> std::io::Result<()> {
        if self.strange {
            let problem = "what is in it is not a JSON object, and is left as it is";
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, problem));
        }
        hangar_disk::keep(&self.path, format!("{:#}\n", self.value))
    }
}
