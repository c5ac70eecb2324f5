//! The orchestrator: which issues are worked on, turn by turn, until they are handed over.
//!
//! Pure: [`plan`](plan::plan) computes the next steps from the configuration, a snapshot of the tracker, the
//! [`OrchestratorState`](state::OrchestratorState), which is a fold over durable [`record`]s, and the time. The host writes facts down and performs
//! effects. [`hold`] says why an issue is not worked on, [`settle`] what follows the end of a session, [`pulls`] what follows
//! from the state of a pull request, [`contest`] several agents on one issue, [`quota`] which workspaces have to go, [`timing`] when something is tried again or has taken too long.

pub mod contest;
pub mod hold;
pub mod plan;
pub mod prompt;
pub mod pulls;
pub mod quota;
pub mod record;
pub mod settle;
pub mod state;
pub mod timing;
