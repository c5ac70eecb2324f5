//! Texts for the model: the system prompt, assembled from named sections, and notices in the course of a session.

pub(crate) mod attachments;
pub mod context;
pub(crate) mod mcp;
pub mod notices;
mod sections;

pub use sections::{PromptEnvironment, SystemPrompt, UnknownSection};
