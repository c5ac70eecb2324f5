//! Composes a session in two steps, for every front end.
//!
//! [`check`] looks at everything that a [`SessionRequest`] asks for and touches nothing: what cannot be is refused with a
//! sentence, and no session is left behind. [`Checked::open`] creates or opens the log and puts the parts together.
//! [`LiveSession::recompose`] makes parts of a session that is alive anew, with the functions that [`check`] uses.
//!
//! A request has two halves: the [`SessionSpec`](hangar_spec::SessionSpec) is what somebody wants of the session, the
//! [`Host`] is what the process that runs it allows and adds.

mod agents;
mod attachments;
mod checked;
mod confinement;
mod host;
mod instructions;
mod live;
mod model;
mod opened;
mod paths;
mod spill;
mod tools;
mod tuning;

pub(crate) use checked::{Checked, SessionRequest, check};
pub(crate) use host::{Conduct, Extensions, Host, ModelSource, Permissions};
pub(crate) use instructions::load as load_instructions;
pub(crate) use live::{LiveSession, Parts};
pub(crate) use model::provider;
pub(crate) use opened::Opened;
pub(crate) use paths::{SessionPaths, real, working_dir};
pub(crate) use tools::tool_specs;
