//! Composition of sessions in two steps, for every front end.
//!
//! [`check`] validates a [`SessionRequest`] and creates nothing: a wrong setting is refused with one sentence, and no
//! session is left behind. [`Checked::open`] creates or opens the log and assembles the session.
//! [`LiveSession::recompose`] makes parts of a live session again, with the functions that [`check`] uses.
//!
//! A request has two halves: a [`SessionSpec`](hangar_spec::SessionSpec) has the settings of the session, a [`HostSettings`] those
//! of the process that runs it.

mod agents;
mod attachments;
mod checked;
mod confinement;
mod facts;
mod host;
mod instructions;
mod live;
mod model;
mod opened;
mod paths;
mod spill;
mod tools;
mod tuning;

pub(crate) use checked::{Checked, OutputFile, SessionRequest, check};
pub(crate) use host::{Conduct, Extensions, HostSettings, ModelSource, Permissions};
pub(crate) use instructions::load as load_instructions;
pub(crate) use live::{LiveSession, RecomposedParts};
pub(crate) use model::{check_switch, provider};
pub(crate) use opened::Opened;
pub(crate) use paths::{SessionPaths, real, working_dir};
pub(crate) use tools::tool_specs;
