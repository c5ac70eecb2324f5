//! JSON-RPC messages: requests, notifications and responses, told apart by their members.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

/// Error codes of JSON-RPC and of this protocol.
pub mod codes {
    pub const PARSE_ERROR: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL_ERROR: i64 = -32603;
    /// The request was cancelled by the side that made it.
    pub const REQUEST_CANCELLED: i64 = -32800;
    /// A connection token is needed and none was given.
    pub const AUTHENTICATION_REQUIRED: i64 = -32001;
    pub const AUTHENTICATION_FAILED: i64 = -32002;
    /// A connection token was given to a server that has none.
    pub const AUTHENTICATION_NOT_CONFIGURED: i64 = -32003;
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Id {
    Number(i64),
    Text(String),
}

impl Id {
    pub fn read(value: &serde_json::Value) -> Option<Self> {
        match value {
            serde_json::Value::String(text) => Some(Id::Text(text.clone())),
            number => number.as_i64().map(Id::Number),
        }
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorObject {
    pub code: i64,
    pub message: String,
    pub data: Option<serde_json::Value>,
}

#[derive(Debug, Clone)]
pub enum RpcMessage {
    Request {
        id: Id,
        method: String,
        params: Option<Box<RawValue>>,
    },
    Notification {
        method: String,
        params: Option<Box<RawValue>>,
    },
    /// `id` is absent when the other side could not tell which request it answers.
    Response {
        id: Option<Id>,
        result: Result<Box<RawValue>, ErrorObject>,
    },
}

/// Text that is no JSON-RPC message, with the id to answer to where one could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Malformed {
    pub code: i64,
    pub reason: String,
    pub id: Option<Id>,
}

#[derive(Deserialize)]
struct Members {
    id: Option<serde_json::Value>,
    method: Option<serde_json::Value>,
    params: Option<Box<RawValue>>,
    // A `null` result is a result, so presence is what counts.
    #[serde(default, deserialize_with = "present")]
    result: Option<Box<RawValue>>,
    error: Option<serde_json::Value>,
}

fn present<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

impl ErrorObject {
    /// Reads an error object, whatever of it is there. Some peers leave out a message that they do not have, and the
    /// caller has to hear of the failure all the same.
    fn read(value: &serde_json::Value) -> Self {
        let message = match (&value["message"], value) {
            (serde_json::Value::String(message), _) | (_, serde_json::Value::String(message)) => {
                message.clone()
            }
            _ => "the request failed, and the other side does not say why".to_owned(),
        };
        let data = value.get("data").filter(|data| !data.is_null()).cloned();
        Self { code: value["code"].as_i64().unwrap_or(codes::INTERNAL_ERROR), message, data }
    }

    fn neither() -> Self {
        let message = "the response has neither a result nor an error".to_owned();
        Self { code: codes::INVALID_REQUEST, message, data: None }
    }
}

impl RpcMessage {
    pub fn parse(text: &[u8]) -> Result<Self, Malformed> {
        let malformed = |code, reason: String, id| Malformed { code, reason, id };
        match text.trim_ascii_start().first() {
            Some(b'{') => {}
            Some(b'[') => {
                let reason = "a list of messages is not taken: each has a frame of its own".to_owned();
                return Err(malformed(codes::INVALID_REQUEST, reason, None));
            }
            // The error of the member's reader would quote all of it.
            _ => {
                return Err(match serde_json::from_slice::<serde::de::IgnoredAny>(text) {
                    Ok(_) => malformed(codes::INVALID_REQUEST, "a message is an object".to_owned(), None),
                    Err(error) => malformed(codes::PARSE_ERROR, error.to_string(), None),
                });
            }
        }
        let members: Members = serde_json::from_slice(text).map_err(|error| {
            let code = if error.is_data() { codes::INVALID_REQUEST } else { codes::PARSE_ERROR };
            malformed(code, error.to_string(), None)
        })?;
        let id = match members.id {
            None | Some(serde_json::Value::Null) => None,
            Some(value) => {
                let id = Id::read(&value);
                Some(id.ok_or_else(|| {
                    let reason = format!("{value} is not an id: it is neither a text nor a whole number");
                    malformed(codes::INVALID_REQUEST, reason, None)
                })?)
            }
        };
        let method = match members.method {
            None => None,
            Some(serde_json::Value::String(name)) => Some(name),
            Some(other) => {
                let reason = format!("{other} is not the name of a method");
                return Err(malformed(codes::INVALID_REQUEST, reason, id));
            }
        };
        match (method, members.result, members.error, id) {
            (Some(method), None, None, Some(id)) => {
                Ok(RpcMessage::Request { id, method, params: members.params })
            }
            (Some(method), None, None, None) => {
                Ok(RpcMessage::Notification { method, params: members.params })
            }
            (None, Some(result), None, id) => Ok(RpcMessage::Response { id, result: Ok(result) }),
            (None, _, Some(error), id) => {
                Ok(RpcMessage::Response { id, result: Err(ErrorObject::read(&error)) })
            }
            // Otherwise the caller would wait for ever.
            (None, None, None, Some(id)) if members.params.is_none() => {
                Ok(RpcMessage::Response { id: Some(id), result: Err(ErrorObject::neither()) })
            }
            (_, _, _, id) => {
                let reason = "neither a request, a notification nor a response".to_owned();
                Err(malformed(codes::INVALID_REQUEST, reason, id))
            }
        }
    }

    pub fn to_bytes(&self) -> Vec<u8> {
        // Serializing text and numbers into memory cannot fail.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

impl Serialize for Id {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Id::Number(number) => serializer.serialize_i64(*number),
            Id::Text(text) => serializer.serialize_str(text),
        }
    }
}

impl Serialize for RpcMessage {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("jsonrpc", "2.0")?;
        match self {
            RpcMessage::Request { id, method, params } => {
                map.serialize_entry("id", id)?;
                map.serialize_entry("method", method)?;
                if let Some(params) = params {
                    map.serialize_entry("params", params)?;
                }
            }
            RpcMessage::Notification { method, params } => {
                map.serialize_entry("method", method)?;
                if let Some(params) = params {
                    map.serialize_entry("params", params)?;
                }
            }
            RpcMessage::Response { id, result } => {
                map.serialize_entry("id", id)?;
                match result {
                    Ok(result) => map.serialize_entry("result", result)?,
                    Err(error) => map.serialize_entry("error", error)?,
                }
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expect: Expect) {
        let told = match RpcMessage::parse(text.as_bytes()) {
            Ok(message) => String::from_utf8(message.to_bytes()).unwrap(),
            Err(malformed) => format!("{} {:?} {}", malformed.code, malformed.id, malformed.reason),
        };
        expect.assert_eq(&told);
    }

    #[test]
    fn messages_are_told_apart_by_their_members() {
        check(
            r#"{"id":1,"method":"ping","params":{"a": 1}}"#,
            expect![[r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a": 1}}"#]],
        );
        check(r#"{"method":"note"}"#, expect![[r#"{"jsonrpc":"2.0","method":"note"}"#]]);
        check(r#"{"id":"x","result":null}"#, expect![[r#"{"jsonrpc":"2.0","id":"x","result":null}"#]]);
        check(
            r#"{"id":2,"error":{"code":-1,"message":"no"}}"#,
            expect![[r#"{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}"#]],
        );
    }

    #[test]
    fn an_answer_is_one_however_little_it_says() {
        check(
            r#"{"id":7}"#,
            expect![[
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"the response has neither a result nor an error"}}"#
            ]],
        );
        check(
            r#"{"id":7,"error":{"code":-32001,"data":{"a":1}}}"#,
            expect![[
                r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32001,"message":"the request failed, and the other side does not say why","data":{"a":1}}}"#
            ]],
        );
        check(
            r#"{"id":"x","error":[]}"#,
            expect![[
                r#"{"jsonrpc":"2.0","id":"x","error":{"code":-32603,"message":"the request failed, and the other side does not say why"}}"#
            ]],
        );
        check(
            r#"{"id":7,"error":"no such session"}"#,
            expect![[r#"{"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"no such session"}}"#]],
        );
    }

    #[test]
    fn what_is_no_message_says_why_and_to_whom() {
        check("{", expect!["-32700 None EOF while parsing an object at line 1 column 1"]);
        check("nope", expect!["-32700 None expected ident at line 1 column 2"]);
        check("", expect!["-32700 None EOF while parsing a value at line 1 column 0"]);
        check("null", expect!["-32600 None a message is an object"]);
        check(r#" "text""#, expect!["-32600 None a message is an object"]);
        check("[]", expect!["-32600 None a list of messages is not taken: each has a frame of its own"]);
        check(
            r#"{"id":7,"params":{}}"#,
            expect!["-32600 Some(Number(7)) neither a request, a notification nor a response"],
        );
        check(
            r#"{"id":1.5,"method":"x"}"#,
            expect!["-32600 None 1.5 is not an id: it is neither a text nor a whole number"],
        );
        check(r#"{"id":7,"method":[]}"#, expect!["-32600 Some(Number(7)) [] is not the name of a method"]);
        check(
            r#" [{"id":1,"method":"ping"}]"#,
            expect!["-32600 None a list of messages is not taken: each has a frame of its own"],
        );
    }
}
