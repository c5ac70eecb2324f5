//! The name of a session, which is also the name of its directory.

use std::fmt;
use std::str::FromStr;

/// Leaves room for what is added to it while a session is being deleted, within the 255 bytes of a file name.
const MAX_BYTES: usize = 200;

/// Longest piece of a refused id that an error repeats.
const SHOWN_CHARS: usize = 80;

/// An id that is safe as the name of a directory. Mostly a UUID, but programs may choose any other text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionId(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{shown:?} cannot be a session id: {why}")]
pub struct InvalidId {
    shown: String,
    why: &'static str,
}

impl SessionId {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for SessionId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let why = if text.is_empty() {
            "it is empty"
        } else if text.len() > MAX_BYTES {
            "it is longer than 200 bytes"
        } else if text.contains(['/', '\\']) {
            "it contains a path separator"
        } else if text.chars().any(char::is_control) {
            "it contains a control character"
        } else if text.starts_with('.') {
            // Covers `.` and `..`, and the hidden names that share the directory with the sessions.
            "it starts with a dot"
        } else if text.trim() != text {
            "it starts or ends with a space"
        } else {
            return Ok(Self(text.to_owned()));
        };
        Err(InvalidId { shown: text.chars().take(SHOWN_CHARS).collect(), why })
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_refused(text: &str, why: &str) {
        let error = text.parse::<SessionId>().unwrap_err();
        assert_eq!(error.why, why, "{text:?}");
    }

    #[test]
    fn ids_of_programs_are_taken_as_they_are() {
        for text in [
            "80582ff7-1209-4588-99a0-4e78301243b6",
            "my session",
            "a:b@c",
            "été",
            "x..y",
            "~",
            &"x".repeat(200),
        ] {
            assert_eq!(text.parse::<SessionId>().unwrap().as_str(), text);
        }
    }

    #[test]
    fn ids_that_would_leave_the_directory_are_refused() {
        check_refused("..", "it starts with a dot");
        check_refused(".", "it starts with a dot");
        check_refused("../x", "it contains a path separator");
        check_refused("/etc", "it contains a path separator");
        check_refused("a\\b", "it contains a path separator");
        check_refused(".session-operation-locks", "it starts with a dot");
    }

    #[test]
    fn ids_that_no_directory_can_have_or_nobody_can_type_are_refused() {
        check_refused("", "it is empty");
        check_refused(" x", "it starts or ends with a space");
        check_refused("a\0b", "it contains a control character");
        check_refused("a\nb", "it contains a control character");
        check_refused(&"é".repeat(101), "it is longer than 200 bytes");
    }

    #[test]
    fn a_refusal_shows_no_control_characters() {
        let error = "a\u{1b}[2Jb".parse::<SessionId>().unwrap_err();
        assert_eq!(
            error.to_string(),
            r#""a\u{1b}[2Jb" cannot be a session id: it contains a control character"#
        );
    }
}
