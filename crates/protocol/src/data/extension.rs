//! Extensions of a session: programs that join it as clients.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Place that an extension was found in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExtensionSource {
    /// `.github/extensions` of the repository.
    Project,
    /// `extensions` of the home folder.
    User,
    /// An installed plugin.
    Plugin,
    /// The folder of the session itself.
    Session,
}

impl ExtensionSource {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Plugin => "plugin",
            Self::Session => "session",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExtensionStatus {
    Starting,
    Running,
    Disabled,
    Failed,
}

impl ExtensionStatus {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Disabled => "disabled",
            Self::Failed => "failed",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedExtension {
    /// Name with its source: `project:lint`, `plugin:tools:lint`.
    pub id: String,
    pub name: String,
    pub source: ExtensionSource,
    pub status: ExtensionStatus,
}

/// The extensions of a session were loaded, or the state of one changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtensionsLoaded {
    pub extensions: Vec<LoadedExtension>,
}

/// An extension brings attachments for the next message, which the host shows before they are sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttachmentsPushed {
    pub attachments: Vec<Value>,
}
