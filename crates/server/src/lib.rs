//! The server that every Copilot SDK drives: JSON-RPC over stdio or TCP, many clients, many sessions.
//!
//! A [`peer`] carries requests both ways over one connection. The [`hub`] keeps the sessions that are alive, each driven
//! by one task ([`task`]) and watched by an [`audience`] of clients. [`methods`] is the table of what a client may ask.
//! The host composes sessions: it hands in a [`SessionOpener`].

mod accounts;
mod attachments;
mod audience;
mod client;
mod client_shells;
mod client_tasks;
mod client_tools;
mod commands;
mod document;
mod elicitations;
mod extensions;
mod finder;
mod foreground;
mod github_telemetry;
mod handshake;
mod hosted;
mod hub;
mod idle_debounce;
mod inference;
mod interests;
mod locations;
mod log_pages;
pub mod methods;
mod model_choices;
mod open_locks;
mod opener;
mod other_agents;
mod peer;
mod pending_permissions;
mod presence;
mod recent_events;
mod recompose;
mod remote;
mod schedules;
mod session_files;
mod session_fs;
mod system;
mod task;
mod transport;
mod user_settings;

pub use accounts::{Account, Accounts};
pub use extensions::{
    ExtensionHost, ExtensionSession, LaunchPlan, NewExtensionLocation, ProgramSandbox, SandboxedProgram,
};
pub use finder::{Finder, FoundHooks, InstructionTarget, TargetKind};
pub use foreground::ShowRequest;
pub use handshake::{ConnectionToken, ServerAccess};
pub use hosted::{HostAbilities, HostedSession, Seat};
pub use hub::{ServerHub, ServerHubConfig};
pub use locations::trust as trust_folder;
pub use opener::{
    AccountHost, AuthStatus, InstructionKind, InstructionLocation, InstructionSource, ModelTransport,
    OpenError, OpenRequest, OpenedSession, RecomposeRequest, RecomposeScope, Recomposed, Recomposer,
    SessionOpener, SessionSurroundings, TodoBoard, TodoDependency, TodoItem, Todos,
};
pub use other_agents::{ForwardedRequest, OtherAgents};
pub use presence::Presence;
pub use remote::RemoteAccess;
pub use transport::{serve_guests, serve_owner, serve_stdio, serve_tcp};
pub use user_settings::UserSettings;
