//! A request as a vendor sees it.

use hyper::HeaderMap;
use serde_json::Value;

use crate::signature::digest;

/// Handling of unknown fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strictness {
    /// They are refused, as the vendor does.
    #[default]
    Strict,
    /// They are recorded and ignored: other agents may send fields that our tables do not list yet.
    Lenient,
}

/// A request, read whole.
#[derive(Debug, Clone)]
pub struct Request {
    pub method: String,
    /// Without the prefix that the simulator is mounted at, and without a slash at its end.
    pub path: String,
    pub query: String,
    pub headers: HeaderMap,
    /// Bytes of the body as it came.
    pub size: usize,
    /// `Null` if the body is not JSON.
    pub body: Value,
    pub strictness: Strictness,
}

impl Request {
    /// A header that is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The token of `Authorization: Bearer`.
    pub fn bearer(&self) -> Option<&str> {
        let (scheme, token) = self.header("authorization")?.split_once(' ')?;
        (scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty()).then(|| token.trim())
    }

    /// A name for the holder of `credential` that does not reveal it.
    pub fn account(credential: &str) -> String {
        digest(&["account", credential])[..12].to_owned()
    }

    pub fn is_get(&self) -> bool {
        self.method == "GET" || self.method == "HEAD"
    }
}
