//! The scripted model: answers from marker lines, from a script file or from a recording, with no key and no network.
//!
//! In process it is a [`ScriptedModel`]; for other programs [`serve`] offers it on loopback in the dialects of OpenAI
//! and Anthropic. A [`Recorder`] writes the exchanges of any provider to a file that a [`Replay`] answers from.

#[cfg(test)]
mod conversation;
mod dialect;
mod provider;
mod record;
mod request_log;
mod script;
mod serve;
mod turn;

pub use provider::ScriptedModel;
pub use record::{RecordedNames, Recorder, Replay, ReplayError};
pub use script::{Script, ScriptError};
pub use serve::{ServeOptions, serve};

/// The marker language, for other modules that answer by it.
pub mod markers {
    pub use super::script::{ScriptStep, ScriptedFailure, ToolOffer};
    pub use super::turn::{Asked, Playbook, ScriptedTurn};
}
