//! Extensions of sessions: programs that join a session as clients, over their standard input and output. They belong to the
//! session: it starts them, and they end with it.

mod admission;
mod host;
mod identity;
mod life;
mod manage;
mod process;
mod registry;

pub(crate) use admission::admit;
pub use host::{
    ExtensionHost, ExtensionSession, LaunchPlan, NewExtensionLocation, ProgramSandbox, SandboxedProgram,
};
pub(crate) use identity::ExtensionIdentity;

pub(crate) use registry::{SessionExtensions, begin};
