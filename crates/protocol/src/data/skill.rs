//! Skills: what there is, and what became part of the conversation.

use serde::{Deserialize, Serialize};

/// A skill of a session, as clients are told of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadedSkill {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_name: Option<String>,
    pub description: String,
    /// `project`, `inherited`, `personal-copilot`, `personal-agents`, `plugin`, `custom`, `builtin` or `sdk`.
    pub source: String,
    pub user_invocable: bool,
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub argument_hint: Option<String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillInvoked {
    pub name: String,
    pub path: String,
    /// The body of the skill, without its front matter.
    pub content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disable_model_invocation: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugin_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<SkillTrigger>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkillTrigger {
    UserInvoked,
    AgentInvoked,
    ContextLoad,
}

/// What the model was told because a skill was invoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillContextDelivered {
    pub content: String,
    /// `skill-` and the skill's name.
    pub source: String,
}
