//! Seals of reasoning: opaque text from which a vendor learns what the reasoning is bound to, and whether it was
//! changed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Key of the seals. It protects nothing; it only tells ours from others.
const KEY: &str = "hangar-simulators";

/// Content of a seal. A vendor sets what it compares later, and leaves the rest empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Seal {
    pub vendor: String,
    pub account: String,
    pub model: String,
    /// Hash of system, tools and earlier messages.
    pub prefix: String,
    /// Hash of the reasoning itself.
    pub content: String,
    /// Tokens of the reasoning, which its text does not reveal if it is left out.
    pub tokens: u64,
}

/// A seal as clients carry it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature(pub String);

impl Seal {
    pub fn close(&self) -> Signature {
        let text = serde_json::to_string(self).unwrap_or_default();
        let mac = digest(&[KEY, &text]);
        Signature(STANDARD.encode(format!("{mac}{text}")))
    }

    /// `None` if it was changed or came from another server.
    pub fn open(signature: &str) -> Option<Self> {
        let text = String::from_utf8(STANDARD.decode(signature).ok()?).ok()?;
        let (mac, text) = text.split_at_checked(MAC)?;
        (digest(&[KEY, text]) == mac).then(|| serde_json::from_str(text).ok()).flatten()
    }
}

/// Characters of a digest.
const MAC: usize = 32;

/// A hash of texts, in hexadecimal. Their boundaries are part of it.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(MAC / 2).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_opens_unchanged_and_not_otherwise() {
        let seal = Seal { model: "m".into(), tokens: 7, ..Seal::default() };
        let Signature(signature) = seal.close();
        assert_eq!(Seal::open(&signature), Some(seal));
        let mut changed = signature.into_bytes();
        let last = changed.len() - 5;
        changed[last] = if changed[last] == b'A' { b'B' } else { b'A' };
        assert_eq!(Seal::open(std::str::from_utf8(&changed).unwrap()), None);
        for foreign in ["", "c2ln", "not base64!"] {
            assert_eq!(Seal::open(foreign), None, "{foreign}");
        }
    }

    #[test]
    fn a_digest_tells_where_texts_end() {
        assert_ne!(digest(&["ab", "c"]), digest(&["a", "bc"]));
        assert_eq!(digest(&["ab"]).len(), MAC);
    }
}
