//! Turns of the model in its vendor's items: to which origin they are sent back, and how they are rewritten for others.

use hangar_agent::model::{AssistantTurn, NativeTurn, ToolCall};
use hangar_protocol::data::{ModelOrigin, ToolType};
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};

use super::arguments;
use crate::facts::IdRule;

/// An entry of a list in a request: new, or sent back unchanged.
pub(super) enum ListEntry<'a> {
    Made(Value),
    Raw(&'a RawValue),
}

impl Serialize for ListEntry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Made(value) => value.serialize(serializer),
            Self::Raw(raw) => raw.serialize(serializer),
        }
    }
}

/// The items of a turn that came from `origin`. Items of other origins are meaningless there, or refused.
pub(super) fn native_to<'a>(turn: &'a AssistantTurn, origin: &ModelOrigin) -> Option<&'a NativeTurn> {
    turn.native.as_ref().filter(|native| native.origin == *origin)
}

/// The items of a turn of another model at the same host and account. Signed or encrypted parts are meaningless to this
/// one; the rest is valid.
pub(super) fn kin_to<'a>(turn: &'a AssistantTurn, origin: &ModelOrigin) -> Option<&'a NativeTurn> {
    let is_kin =
        |other: &ModelOrigin| ModelOrigin { model: origin.model.clone(), ..other.clone() } == *origin;
    turn.native.as_ref().filter(|native| native.origin != *origin && is_kin(&native.origin))
}

/// The items of a turn as entries of a list. `rewrite` puts the arguments of a call into its item, for calls whose
/// arguments were changed afterwards: the model sees the arguments that ran.
pub(super) fn entries<'a>(
    native: &'a NativeTurn,
    turn: &AssistantTurn,
    rewrite: impl Fn(&mut Value, &ToolCall),
) -> Option<Vec<ListEntry<'a>>> {
    if !native.rewritten {
        let items: Vec<&RawValue> = serde_json::from_str(&native.items).ok()?;
        return Some(items.into_iter().map(ListEntry::Raw).collect());
    }
    let mut items: Vec<Value> = serde_json::from_str(&native.items).ok()?;
    for item in &mut items {
        turn.tool_calls.iter().for_each(|call| rewrite(item, call));
    }
    Some(items.into_iter().map(ListEntry::Made).collect())
}

/// The arguments of a call as JSON text: unchanged if they parse, because those bytes are in the provider's cache.
pub(super) fn argument_text(call: &ToolCall) -> String {
    let is_object = || serde_json::from_str::<serde_json::Map<String, Value>>(&call.input).is_ok();
    if call.kind == ToolType::Function && is_object() {
        return call.input.clone();
    }
    arguments(call.kind, &call.input).to_string()
}

/// The id of a call in a form that a host accepts: unchanged if possible, else derived from it. The same id always maps
/// to the same one, so that a result matches its call.
pub(super) fn call_id(id: &str, rule: &IdRule) -> String {
    if rule.accepts(id) {
        return id.to_owned();
    }
    const ALPHABET: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    /// Characters of a hash that are unique within a conversation.
    const LENGTH: usize = 24;
    let digest = Sha256::digest(id.as_bytes());
    let letters = digest.iter().map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]));
    letters.take(rule.max.min(LENGTH)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Characters;

    fn check(id: &str, max: usize, characters: Characters, exact: bool) {
        let rule = IdRule { max, characters, exact };
        let made = call_id(id, &rule);
        assert!(rule.accepts(&made), "{made} for {id}");
        assert_eq!(made, call_id(id, &rule));
        assert_eq!(made, call_id(&made, &rule), "an accepted id stays");
    }

    #[test]
    fn ids_become_what_the_host_accepts_and_always_the_same() {
        for id in ["call_1", "", "toolu_01AbC", "call:1", "a|b", &"x".repeat(200)] {
            check(id, 40, Characters::Any, false);
            check(id, 64, Characters::Word, false);
            check(id, 9, Characters::Alphanumeric, true);
        }
    }

    #[test]
    fn different_ids_stay_different() {
        let rule = IdRule { max: 9, characters: Characters::Alphanumeric, exact: true };
        let made: std::collections::BTreeSet<String> =
            (0..1000).map(|n| call_id(&format!("call_{n}"), &rule)).collect();
        assert_eq!(made.len(), 1000);
    }
}
