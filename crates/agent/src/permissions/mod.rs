//! Permissions: rules, and the decision on a request. Pure; the tool has gathered the facts.

mod grant;
mod policy;
mod rule;
pub mod texts;
mod url_pattern;

pub use grant::{GitWrites, Grant, Limits, Writes, ask_without_limits};
pub use policy::{Approval, AskReason, Confinement, Policy, Verdict};
pub use rule::{Rule, RuleError};
