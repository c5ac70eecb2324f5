//! Skills that are available and skills that were invoked.

use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Skill of a session, in the form that clients receive.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LoadedSkill {
    pub name: String,
    pub command_name: Option<String>,
    pub description: String,
    /// `project`, `inherited`, `personal-copilot`, `personal-agents`, `plugin`, `custom`, `builtin` or `sdk`.
    pub source: String,
    pub user_invocable: bool,
    pub enabled: bool,
    pub path: Option<String>,
    pub argument_hint: Option<String>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillInvoked {
    pub name: String,
    pub path: String,
    /// The body of the skill, without its front matter.
    pub content: String,
    pub allowed_tools: Option<Vec<String>>,
    pub disable_model_invocation: Option<bool>,
    pub source: Option<String>,
    pub plugin_name: Option<String>,
    pub description: Option<String>,
    pub trigger: Option<SkillTrigger>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SkillTrigger {
    UserInvoked,
    AgentInvoked,
    ContextLoad,
}

/// Text that the model was given because a skill was invoked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillContextDelivered {
    pub content: String,
    /// `skill-` and the skill's name.
    pub source: String,
}
