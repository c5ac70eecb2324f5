//! A conversation that is summed up to make room.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompactionTrigger {
    /// The context was filling up.
    Threshold,
    /// Someone asked for it.
    Manual,
    ContextLimitRetry,
    MemoryPressure,
    ModelSwitch,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionStart {
    pub model: Option<String>,
    pub system_tokens: Option<u64>,
    pub conversation_tokens: Option<u64>,
    pub tool_definitions_tokens: Option<u64>,
    pub current_tokens: Option<u64>,
    pub token_limit: Option<u64>,
    pub trigger: Option<CompactionTrigger>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionComplete {
    pub success: bool,
    pub error: Option<String>,
    pub pre_compaction_tokens: Option<u64>,
    pub post_compaction_tokens: Option<u64>,
    pub pre_compaction_messages_length: Option<u64>,
    /// How many messages, from the first on, the summary stands for.
    pub messages_removed: Option<u64>,
    pub tokens_removed: Option<u64>,
    pub summary_content: Option<String>,
    pub compaction_tokens_used: Option<CompactionTokens>,
    pub system_tokens: Option<u64>,
    pub conversation_tokens: Option<u64>,
    pub tool_definitions_tokens: Option<u64>,
    pub token_limit: Option<u64>,
    /// What whoever asked for the summary wanted it to mind.
    pub custom_instructions: Option<String>,
    /// Where the summary is kept as a file: its number, and its path.
    pub checkpoint_number: Option<u64>,
    pub checkpoint_path: Option<String>,
    /// What the provider answered when it gave no summary.
    pub status_code: Option<u16>,
    pub trigger: Option<CompactionTrigger>,
}

/// What the session is bound to beside its conversation, as it was when the conversation was last summed up.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Commitments {
    /// The text of `plan.md`.
    pub plan: Option<String>,
    /// Todos that are not done.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub todos: Vec<Todo>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Todo {
    pub id: String,
    pub title: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    pub status: String,
}

/// The images of the conversation so far are no longer shown to the model: the provider found the request too large.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ImagesWithheld {}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionTokens {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub cache_read_tokens: Option<u64>,
    pub cache_write_tokens: Option<u64>,
    pub duration: Option<u64>,
    pub model: Option<String>,
}
