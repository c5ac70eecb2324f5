//! A JSON file of the home folder.

use std::path::PathBuf;

use serde_json::{Value, json};

/// A larger file is not one that any program writes here.
const MAX_BYTES: u64 = 4 << 20;

pub(crate) struct Document {
    path: PathBuf,
    pub(crate) value: Value,
}

impl Document {
    /// A file that is missing, too large or no JSON object is as good as an empty one.
    pub(crate) fn open(path: PathBuf) -> Self {
        let small = std::fs::metadata(&path).is_ok_and(|metadata| metadata.len() <= MAX_BYTES);
        let text = if small { std::fs::read_to_string(&path).unwrap_or_default() } else { String::new() };
        let value = serde_json::from_str(&text).ok().filter(Value::is_object).unwrap_or_else(|| json!({}));
        Self { path, value }
    }

    /// Replaces the file in one step, so that a reader never sees half of it. Only its owner can read it: some hold
    /// secrets.
    pub(crate) fn save(&self) -> std::io::Result<()> {
        if let Some(parent) = self.path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let next = self.path.with_extension(format!("json.{}", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.open(&next)?;
        std::io::Write::write_all(&mut file, format!("{:#}\n", self.value).as_bytes())?;
        std::fs::rename(&next, &self.path)
    }
}
