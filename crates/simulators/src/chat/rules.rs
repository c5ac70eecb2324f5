//! Rules for requests, as a host's profile defines them.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::condition::{Condition, Pattern};
use super::forms::ReasoningForm;
use super::wording::Wording;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CredentialRule {
    /// Headers, one of which is required; a bearer token is in `authorization`.
    pub(crate) headers: Vec<String>,
    pub(crate) missing: Wording,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HeaderRule {
    pub(crate) name: String,
    /// Conditions for requests that require it; all of them must hold.
    #[serde(default)]
    pub(crate) when: Vec<Condition>,
    pub(crate) missing: Wording,
}

/// The fields of a request. Others are refused if the host has a refusal for them, and ignored otherwise.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fields {
    pub(crate) accepted: Vec<String>,
    pub(crate) unknown: Option<Wording>,
    /// Refusal of a request that lacks a field.
    pub(crate) missing: Wording,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct MessageRules {
    /// The fields that a message of each role may have.
    pub(crate) fields: BTreeMap<String, Vec<String>>,
    /// The fields that a call may have.
    pub(crate) call: Vec<String>,
    /// The types of content parts.
    pub(crate) parts: Vec<String>,
    pub(crate) unknown_role: Option<Wording>,
    pub(crate) unknown_field: Option<Wording>,
    pub(crate) unknown_call_field: Option<Wording>,
    pub(crate) unknown_part: Option<Wording>,
    /// Refusal of images for models without `vision`.
    pub(crate) no_vision: Option<Wording>,
    /// Refusal of images that are URLs.
    pub(crate) no_remote_image: Option<Wording>,
}

/// A refusal with its conditions, which must all hold.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefusalRule {
    pub(crate) models: Option<Pattern>,
    pub(crate) except: Option<Pattern>,
    pub(crate) when: Vec<Condition>,
    pub(crate) refusal: Wording,
}

impl RefusalRule {
    pub(crate) fn is_about(&self, model: &str) -> bool {
        self.models.as_ref().is_none_or(|pattern| pattern.matches(model))
            && !self.except.as_ref().is_some_and(|pattern| pattern.matches(model))
    }
}

/// A host's rules for the order of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum OrderRule {
    /// Every call has its result before the next message of another kind.
    UnansweredCall,
    /// No two calls of a message have the same id.
    RepeatedCall,
    /// Every result has its call in the assistant message before it.
    OrphanResult,
    /// A message of the user does not follow a result.
    UserAfterResult,
    /// The last message is not the assistant's.
    LastAssistant,
    /// Only the first message is the system's.
    LateSystem,
    /// A message of the assistant has text or calls.
    EmptyAssistant,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolRules {
    pub(crate) name: Option<PatternRule>,
    pub(crate) id: Option<PatternRule>,
    /// Refusal of tools for models that have none.
    pub(crate) unsupported: Option<Wording>,
    pub(crate) duplicate: Option<Wording>,
    #[serde(default)]
    pub(crate) schema: BTreeMap<SchemaRule, Wording>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PatternRule {
    pub(crate) pattern: Pattern,
    pub(crate) refusal: Wording,
}

/// A host's rules for the schema of a tool's parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SchemaRule {
    ObjectRoot,
    NoRootAlternatives,
    RootProperties,
    KnownType,
    ListItems,
    NoBoolean,
    StringEnum,
    NoTypeList,
    NoEmptyObject,
    LoneRef,
    NoTupleItems,
    NoTypeBesideAnyOf,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct EffortRules {
    /// Pointers to the effort in a request.
    #[serde(default)]
    pub(crate) at: Vec<String>,
    /// Values that the host maps itself, for models that accept efforts.
    #[serde(default)]
    pub(crate) mapped: Vec<String>,
    /// Refusal of any effort, for models that accept none.
    pub(crate) unsupported: Option<Wording>,
    /// Refusal of an effort that is not one of the model's.
    pub(crate) value: Option<Wording>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReasoningRules {
    #[serde(default)]
    pub(crate) form: ReasoningForm,
    /// Reasoning is off when one of these holds.
    #[serde(default)]
    pub(crate) off: Vec<Condition>,
    /// Refusal of a turn with calls that is sent back without its reasoning.
    pub(crate) missing: Option<Wording>,
    /// Refusal of reasoning that was changed.
    pub(crate) changed: Option<Wording>,
    /// Values that are accepted as the signature of another model's call.
    #[serde(default)]
    pub(crate) placeholders: Vec<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ContextRules {
    #[serde(default)]
    pub(crate) overflow: Overflow,
    /// Whether the requested output counts too.
    #[serde(default)]
    pub(crate) with_output: bool,
    pub(crate) refusal: Option<Wording>,
}

/// A host's behaviour when a request exceeds the window of a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Overflow {
    #[default]
    Refuse,
    /// Drops the oldest messages.
    Truncate,
    /// Answers, and reports more tokens than the window has.
    Accept,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct OutputRules {
    /// Pointers to the output limit in a request.
    #[serde(default)]
    pub(crate) at: Vec<String>,
    pub(crate) refusal: Option<Wording>,
}
