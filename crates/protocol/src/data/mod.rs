//! The `data` member of each event type. Field names and their order are the wire's.
//!
//! Unknown values are absent, never zero: token counts, costs and times are `Option`.

mod assistant;
mod canvas;
mod compaction;
mod extension;
mod hook;
mod mcp;
mod model;
mod questions;
mod schedule;
mod session;
mod skill;
mod subagent;
mod tool;
mod user;

pub use assistant::*;
pub use canvas::*;
pub use compaction::*;
pub use extension::*;
pub use hook::*;
pub use mcp::*;
pub use model::*;
pub use questions::*;
pub use schedule::*;
pub use session::*;
pub use skill::*;
pub use subagent::*;
pub use tool::*;
pub use user::*;
