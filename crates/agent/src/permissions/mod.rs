//! Permissions: rules, and the decision on a request. Pure; the tool has gathered the facts.

mod grant;
mod policy;
mod rule;
pub mod texts;
mod url_pattern;

pub use grant::{CommandLimits, GitWrites, Grant, Writes, ask_without_limits};
pub use policy::{AskReason, Policy, SandboxBounds, SessionApproval, Verdict};
pub use rule::{Rule, RuleError};
