//! An error response, in the vendor's format.

use serde_json::Value;

/// An HTTP status with the vendor's body for it.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Value,
    /// The sentence in the body, for people who read reports.
    pub message: String,
}

impl Refusal {
    pub fn new(status: u16, message: impl Into<String>, body: Value) -> Self {
        Self { status, headers: Vec::new(), body, message: message.into() }
    }

    #[must_use]
    pub fn with_header(mut self, name: &str, value: impl Into<String>) -> Self {
        self.headers.push((name.to_owned(), value.into()));
        self
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.status, self.message)
    }
}
