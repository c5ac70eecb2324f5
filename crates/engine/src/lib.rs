//! The session engine: everything around a [`Driver`](hangar_agent::driver::Driver) that every front end needs.
//!
//! An [`Engine`] owns one session: its driver, MCP servers, background commands, skills, slash commands and name. A front
//! end (one prompt, an editor, a client of an SDK) embeds the engine in its own task, gives it prompts, and calls
//! [`Engine::next`] in a loop until that says that the work has ended. [`supervise`] runs such a task to its end, turns a
//! panic into an event of that one session, and closes it. Where front ends differ, the difference is a field of
//! [`Options`] or a function of its own.

pub mod commands;
mod engine;
mod parts;
mod servers;
mod supervise;
mod title;
mod wait;

pub use hangar_tools::shell::BackgroundCommand;

pub use engine::{Engine, EngineProgress, SubmissionEnd};
pub use parts::{
    Background, BackgroundWork, EngineParts, Mcp, Naming, NoComposer, Options, ServerStart, SessionComposer,
    SessionRecord, SwitchedModel,
};
pub use supervise::{FrontEndTask, supervise};
pub use wait::DEFAULT_TASK_WAIT;
