//! Format of a host's answers and errors, as its profile defines it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::template::TemplateJson;
use crate::signature::digest;

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorForm {
    pub(crate) body: TemplateJson,
    /// The default type of errors.
    #[serde(rename = "type")]
    pub(crate) kind: Option<String>,
    /// The chunk of a stream that is an error, if it is not the body.
    pub(crate) chunk: Option<TemplateJson>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct AnswerForm {
    pub(crate) id: IdForm,
    pub(crate) call_id: IdForm,
    #[serde(default)]
    pub(crate) calls: CallForm,
    /// Finish reasons that differ from the usual ones.
    #[serde(default)]
    pub(crate) finish: BTreeMap<String, String>,
    /// Fields of every chunk and of the whole answer.
    #[serde(default = "nothing")]
    pub(crate) fields: TemplateJson,
    /// Fields of the choice that has the finish reason, which is `"$finish"`.
    #[serde(default = "nothing")]
    pub(crate) choice: TemplateJson,
    /// A chunk that comes before all others.
    pub(crate) first: Option<TemplateJson>,
    /// Comments that keep the connection alive before the first chunk.
    #[serde(default)]
    pub(crate) comments: Vec<String>,
    /// Headers of the response.
    #[serde(default)]
    pub(crate) headers: BTreeMap<String, String>,
}

fn nothing() -> TemplateJson {
    TemplateJson(Value::Object(serde_json::Map::new()))
}

/// Format of ids: a prefix, then this many letters and digits.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct IdForm {
    pub(crate) prefix: String,
    pub(crate) length: usize,
}

impl IdForm {
    /// The id for `seed`, always the same.
    pub(crate) fn make(&self, seed: &str) -> String {
        let letters = digest(&[seed]);
        format!("{}{}", self.prefix, &letters[..self.length.min(letters.len())])
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CallForm {
    /// The arguments of a call come in pieces.
    #[default]
    Fragments,
    /// A call comes whole in one chunk.
    Whole,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct UsageForm {
    pub(crate) body: TemplateJson,
    /// Pointers to the usage in a chunk.
    #[serde(default = "in_usage")]
    pub(crate) at: Vec<String>,
    #[serde(default)]
    pub(crate) chunk: UsageChunk,
    /// Whether a stream has it without a request for it.
    #[serde(default)]
    pub(crate) always: bool,
}

fn in_usage() -> Vec<String> {
    vec!["/usage".to_owned()]
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum UsageChunk {
    /// A last chunk of its own, without choices.
    #[default]
    Own,
    /// The chunk with the finish reason.
    Finish,
}

/// A document that the host serves.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServedDocument {
    pub(crate) method: HttpMethod,
    pub(crate) path: String,
    pub(crate) body: TemplateJson,
    /// The form of one model, of which `"$models"` in the body is the list.
    pub(crate) entry: Option<TemplateJson>,
    /// A pointer into the request to the name of the model that the body describes.
    pub(crate) model_at: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum HttpMethod {
    Get,
    Post,
}

/// Where an answer has its reasoning, and a later request sends it back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReasoningForm {
    /// Not shown.
    #[default]
    Hidden,
    /// `reasoning_content`, a text.
    ReasoningContent,
    /// `reasoning`, a text.
    Reasoning,
    /// `reasoning` and `reasoning_details`, signed items of several types.
    ReasoningDetails,
    /// Parts `{"type": "thinking"}` of the content.
    ThinkingParts,
    /// `extra_content.google.thought_signature` of the first call of a turn.
    ThoughtSignature,
    /// `reasoning_text` with `reasoning_opaque`.
    ReasoningText,
}
