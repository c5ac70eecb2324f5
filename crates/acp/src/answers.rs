//! Results of requests.

use hangar_peer::{RpcResult, raw};
use hangar_protocol::rpc::{ErrorObject, codes};
use serde::Serialize;

/// A value as an answer.
pub(crate) fn answer(value: &impl Serialize) -> RpcResult {
    raw(value).ok_or_else(|| internal("the answer has no form in JSON"))
}

pub(crate) fn internal(message: impl Into<String>) -> ErrorObject {
    error(codes::INTERNAL_ERROR, message)
}

pub(crate) fn error(code: i64, message: impl Into<String>) -> ErrorObject {
    ErrorObject { code, message: message.into(), data: None }
}
