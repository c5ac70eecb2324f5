//! The body of a request.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

pub(crate) struct Body {
    fields: Map<String, Value>,
    /// Text already. A session may have hundreds of tools, all of which go with every request.
    tools: Option<Box<RawValue>>,
}

impl Body {
    pub(super) fn new(fields: Map<String, Value>, tools: &[impl Serialize]) -> Self {
        // What describes a tool always has a text.
        let tools = if tools.is_empty() { None } else { to_raw_value(tools).ok() };
        Self { fields, tools }
    }

    /// What is said instead to a socket, which has no other way to answer than in pieces.
    pub(crate) fn for_socket(mut self) -> Self {
        self.fields.remove("stream");
        self.fields.insert("type".to_owned(), "response.create".into());
        self
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        serde_json::to_vec(&self).unwrap_or_default()
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, value) in &self.fields {
            map.serialize_entry(name, value)?;
        }
        if let Some(tools) = &self.tools {
            map.serialize_entry("tools", tools)?;
        }
        map.end()
    }
}
