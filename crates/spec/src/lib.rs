//! Settings of a session, for every front end: flags, an editor, a runtime, or an SDK client in JSON.
//!
//! [`SessionSpec`] has a group per subject. Every setting of a group is optional: an absent one leaves the default, or
//! what an earlier specification said. `group!` declares a group, reads it from JSON and merges it, so that a setting is
//! written down once.

#[macro_use]
mod group;

mod agents;
mod client;
mod conversation;
mod customization;
mod instructions;
mod model;
mod session;
mod tools;
mod workspace;

pub use agents::{AgentOptions, CustomAgent, DefaultAgent};
pub use client::{
    CanvasProvider, ClientOptions, EntryOptions, ExtensionInfo, IdentityOptions, ToolDeclaration,
    TraceContext,
};
pub use conversation::{ConversationOptions, InfiniteSessions};
pub use customization::{CustomizationOptions, ServerOptions};
pub use group::SettingsGroup;
pub use instructions::{InstructionOptions, SectionAction, SectionSpec, SystemMessageSpec};
pub use model::{
    AzureSpec, CapabilityOverrides, ModelLimits, ModelOptions, ModelSpec, ModelSupports, ProviderSpec,
};
pub use session::SessionSpec;
pub use tools::{LargeOutput, ToolFilterPrecedence, ToolOptions};
pub use workspace::WorkspaceOptions;
