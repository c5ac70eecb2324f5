//! The system prompt and custom instructions.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;

group! {
    pub struct InstructionOptions {
        /// Whether the instructions of files are left out.
        skip: bool = "skipCustomInstructions",
        /// Further directories in which instructions are looked for.
        dirs: Vec<PathBuf> = "instructionDirectories",
        /// Instructions of the organisation that the client works for.
        organization: String = "organizationCustomInstructions",
        /// Whether instructions about a part of the project are looked for when a file of it is touched.
        on_demand: bool = "enableOnDemandInstructionDiscovery",
        /// Changes to the system prompt.
        system: SystemMessageSpec = "systemMessage",
    }
}

/// The mode may be left out, which means that the text is appended.
#[derive(Debug, Clone, Deserialize)]
#[serde(from = "SystemMessageMembers")]
pub enum SystemMessageSpec {
    Append { content: Option<String> },
    Replace { content: String },
    Customize { content: Option<String>, sections: BTreeMap<String, SectionSpec> },
}

#[derive(Deserialize)]
struct SystemMessageMembers {
    #[serde(default)]
    mode: SystemMessageMode,
    content: Option<String>,
    sections: Option<BTreeMap<String, SectionSpec>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SystemMessageMode {
    #[default]
    Append,
    Replace,
    Customize,
}

impl From<SystemMessageMembers> for SystemMessageSpec {
    fn from(members: SystemMessageMembers) -> Self {
        let SystemMessageMembers { mode, content, sections } = members;
        match mode {
            SystemMessageMode::Append => Self::Append { content },
            SystemMessageMode::Replace => Self::Replace { content: content.unwrap_or_default() },
            SystemMessageMode::Customize => {
                Self::Customize { content, sections: sections.unwrap_or_default() }
            }
        }
    }
}

#[derive(Debug, Clone, Deserialize)]
pub struct SectionSpec {
    pub action: SectionAction,
    pub content: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SectionAction {
    Replace,
    Remove,
    Append,
    Prepend,
    Preserve,
    /// The client is shown the section and says what it shall be.
    Transform,
}
