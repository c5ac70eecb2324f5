//! The `data` member of each event type. Field names and their order are the wire's.
//!
//! Unknown values are absent, never zero: token counts, costs and times are `Option`.

mod asking;
mod assistant;
mod compaction;
mod hook;
mod mcp;
mod model;
mod session;
mod skill;
mod subagent;
mod tool;
mod user;

pub use asking::*;
pub use assistant::*;
pub use compaction::*;
pub use hook::*;
pub use mcp::*;
pub use model::*;
pub use session::*;
pub use skill::*;
pub use subagent::*;
pub use tool::*;
pub use user::*;
