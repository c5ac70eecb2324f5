//! Credentials in memory, and redacting them from texts for people.

use std::fmt;

use hangar_agent::model::ModelError;
use serde::de::{Deserialize, Deserializer, Error as _};

/// A credential. No output contains it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The usual error would contain the value.
        String::deserialize(deserializer)
            .map(Self)
            .map_err(|_| D::Error::custom("a credential must be a string"))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Shorter values than this are not redacted: that would only garble ordinary text.
const SHORTEST: usize = 6;
/// Number of printed keys that are remembered. Keys change, and old ones soon stop appearing in errors.
const REMEMBERED: usize = 16;
const REDACTED: &str = "***";

/// Removes known credentials from errors: some servers repeat the key that they refuse.
#[derive(Clone, Default)]
pub(crate) struct CredentialRedactor(Vec<Secret>);

impl CredentialRedactor {
    pub(crate) fn add(&mut self, secret: Secret) {
        if secret.reveal().len() >= SHORTEST && !self.0.contains(&secret) {
            self.0.push(secret);
            if self.0.len() > REMEMBERED {
                self.0.remove(0);
            }
        }
    }

    pub(crate) fn clean(&self, error: ModelError) -> ModelError {
        ModelError {
            message: self.text(error.message),
            body: error.body.map(|body| self.text(body)),
            code: error.code.map(|code| self.text(code)),
            ..error
        }
    }

    fn text(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            if text.contains(secret.reveal()) { text.replace(secret.reveal(), REDACTED) } else { text }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        assert_eq!(format!("{:?}", Some(Secret::new("sk-123456"))), "Some(Secret)");
    }

    #[test]
    fn an_echoed_key_is_taken_out_and_a_short_one_does_not_garble_text() {
        let mut redactor = CredentialRedactor::default();
        redactor.add(Secret::new("sk-123456"));
        redactor.add(Secret::new("e"));
        assert_eq!(redactor.text("the key sk-123456 is wrong".into()), "the key *** is wrong");
    }
}
