//! The shell family: `bash`, and the tools that read, feed, stop and list what it started.
//!
//! Every command is a process group of its own with one task that owns it. Commands end with their call when that is
//! cancelled, with the session at the latest, and even if this process is killed; only detached ones outlive it.

mod access;
pub mod analysis;
mod arguments;
mod background;
mod calls;
mod confinement;
mod denial;
mod environment;
mod output;
mod pipes;
mod progress;
mod registry;
mod reporter;
mod supervisor;
mod texts;
mod tool_set;
mod tracked;

#[cfg(test)]
mod tests;

pub use background::BackgroundCommand;
pub use confinement::Confinement;
pub use registry::{ShellCompletion, ShellOptions, Shells};
