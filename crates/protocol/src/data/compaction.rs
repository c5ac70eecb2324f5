//! Compaction: a summary takes the place of the conversation so far.

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
    /// Number of messages, from the first on, that the summary replaces.
    pub messages_removed: Option<u64>,
    pub tokens_removed: Option<u64>,
    pub summary_content: Option<String>,
    pub compaction_tokens_used: Option<CompactionTokens>,
    pub system_tokens: Option<u64>,
    pub conversation_tokens: Option<u64>,
    pub tool_definitions_tokens: Option<u64>,
    pub token_limit: Option<u64>,
    /// Instructions for the summary.
    pub custom_instructions: Option<String>,
    /// Checkpoint file of the summary: its number and its path.
    pub checkpoint_number: Option<u64>,
    pub checkpoint_path: Option<String>,
    /// HTTP status of the provider, if the summary failed.
    pub status_code: Option<u16>,
    pub trigger: Option<CompactionTrigger>,
}

/// Plan and todos of the session at the last compaction. The conversation is replaced; these are not.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PlanAndTodos {
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

/// Images so far are withheld from the model, because the provider found the request too large.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ImagesWithheld {}

/// The reasoning of all answers so far is withheld from the model, because the provider refused it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct ReasoningWithheld {}

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
