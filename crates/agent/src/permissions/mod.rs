//! Permissions: rules, and the decision over a request. Pure; the facts were gathered by the tool.

mod grant;
mod policy;
mod rule;
pub mod texts;
mod url_pattern;

pub use grant::{GitWrites, Grant, Limits, Writes, ask_without_limits};
pub use policy::{Approval, AskReason, Confinement, Policy, Verdict};
pub use rule::{Rule, RuleError};
