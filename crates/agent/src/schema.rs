//! JSON Schema as text. Schemas of tools are only passed on; a tree of values would be several times as large and
//! serialised again for every request.

mod portable;

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// A JSON Schema. Clones share the text.
#[derive(Debug, Clone)]
pub struct Schema(Arc<Box<RawValue>>);

impl Schema {
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The schema of a tool in the form that every vendor accepts: the same text wherever possible.
    #[must_use]
    pub fn portable(self) -> Self {
        if !portable::may_change(self.as_str()) {
            return self;
        }
        let value = self.to_value();
        let changed = portable::portable(&value);
        if changed == value { self } else { changed.into() }
    }

    /// The schema as a value.
    pub fn to_value(&self) -> Value {
        // Text that was read or written as JSON parses again.
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

impl From<Value> for Schema {
    fn from(value: Value) -> Self {
        // A value always serialises.
        Self(Arc::new(to_raw_value(&value).unwrap_or_else(|_| RawValue::NULL.to_owned())))
    }
}

impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || self.as_str() == other.as_str()
    }
}

impl Eq for Schema {}

impl Serialize for Schema {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Schema {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Box::deserialize(deserializer).map(|text| Self(Arc::new(text)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn it_is_written_and_read_as_the_value_that_it_is() {
        let value = json!({ "type": "object", "properties": { "z": {}, "a": {} } });
        let schema = Schema::from(value.clone());
        assert_eq!(serde_json::to_string(&[&schema]).unwrap(), format!("[{value}]"));
        let read: Schema = serde_json::from_str(&value.to_string()).unwrap();
        assert_eq!(read, schema);
        assert_eq!(read.to_value(), value);
    }
}
