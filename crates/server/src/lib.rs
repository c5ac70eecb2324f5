//! The server that every Copilot SDK drives: JSON-RPC over stdio or TCP, many clients, many sessions.
//!
//! A [`peer`] carries requests both ways over one connection. The [`hub`] keeps the sessions that are alive, each driven
//! by one task ([`task`]) and watched by an [`audience`] of clients. [`methods`] is the table of what a client may ask.
//! How a session is put together is not known here: whoever runs the server brings a [`SessionOpener`].

mod accounts;
mod asked;
mod attachments;
mod audience;
mod choices;
mod client;
mod client_tasks;
mod commands;
mod document;
mod elicitations;
mod external;
mod finder;
mod gates;
mod handshake;
mod history;
mod hub;
mod inference;
mod interests;
mod journals;
mod locations;
pub mod methods;
mod opener;
mod peer;
mod quiet;
mod recompose;
mod session_files;
mod session_fs;
mod shells;
mod system;
mod task;
mod transport;
mod user_settings;

pub use accounts::{Account, Accounts};
pub use finder::{Finder, FoundHooks, InstructionTarget, TargetKind};
pub use handshake::{Access, Token};
pub use hub::{Hub, HubConfig};
pub use opener::{
    AuthStatus, InstructionKind, InstructionLocation, InstructionSource, OpenError, OpenRequest, Opened,
    RecomposeRequest, Recomposed, Recomposer, Scope, SessionOpener, Todo, TodoBoard, TodoDependency, Todos,
    ToolGuard, Ways,
};
pub use transport::{serve_stdio, serve_tcp};
pub use user_settings::UserSettings;
