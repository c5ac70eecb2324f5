//! Deserialisation that tolerates `null` for absent members. Some SDKs write it for an empty list or a switch that
//! nobody set.

use serde::de::DeserializeOwned;
use serde_json::{Error, Value};

/// Deserialises a value; if that fails, once more without its `null` members. The error is that of the first attempt.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Error> {
    // Read from a text again: to read it from a value would be another reader of every type.
    serde_json::from_str(text).or_else(|error| match without_nulls(text) {
        Some(text) => serde_json::from_str(&text).map_err(|_| error),
        None => Err(error),
    })
}

/// Like [`read`], for a value that is parsed already.
pub fn read_value<T: DeserializeOwned>(value: Value) -> Result<T, Error> {
    T::deserialize(&value).or_else(|error| {
        let mut value = value;
        leave_out(&mut value);
        T::deserialize(&value).map_err(|_| error)
    })
}

fn without_nulls(text: &str) -> Option<String> {
    let mut value: Value = serde_json::from_str(text).ok()?;
    leave_out(&mut value);
    Some(value.to_string())
}

fn leave_out(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            members.values_mut().for_each(leave_out);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize)]
    struct Answer {
        name: String,
        #[serde(default)]
        rows: Vec<Option<u8>>,
        inner: Option<Box<Answer>>,
    }

    fn answer(name: &str, rows: &[Option<u8>], inner: Option<Answer>) -> Answer {
        Answer { name: name.to_owned(), rows: rows.to_vec(), inner: inner.map(Box::new) }
    }

    #[test]
    fn null_is_as_good_as_nothing_where_nothing_is_good_enough() {
        let read = |text: &str| read::<Answer>(text).map_err(|error| error.to_string());
        assert_eq!(read(r#"{"name":"a","rows":null}"#), Ok(answer("a", &[], None)));
        assert_eq!(read(r#"{"name":"a","rows":[1,null]}"#), Ok(answer("a", &[Some(1), None], None)));
        let inner = read(r#"{"name":"a","inner":{"name":"b","rows":null}}"#);
        assert_eq!(inner, Ok(answer("a", &[], Some(answer("b", &[], None)))));
        let error = read(r#"{"name":null}"#).unwrap_err();
        assert_eq!(error, "invalid type: null, expected a string at line 1 column 12");
        assert!(read("{").is_err());
    }

    #[test]
    fn what_is_parsed_already_is_read_alike() {
        let read = read_value::<Answer>;
        assert_eq!(read(json!({ "name": "a", "rows": null })).unwrap(), answer("a", &[], None));
        assert!(read(json!({ "name": 7, "rows": null })).is_err());
    }
}
