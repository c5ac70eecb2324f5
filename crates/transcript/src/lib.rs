//! Transcript of a session: its events folded into blocks that a person reads. The fold of the web page and this one give the
//! same blocks for the same log.
//!
//! [`Transcript::apply`] takes one event, of history or of a session that is being written, and says which blocks changed.
//! `fact.rs` is the vocabulary of the fold, `typed.rs` and `loose.rs` read events into it, `lane.rs` keeps the blocks of one
//! agent, `fold.rs` the agents. No I/O and no clock.

mod block;
mod changes;
mod fact;
mod fold;
mod lane;
mod loose;
mod memory;
mod status;
mod stream_text;
mod tool_words;
mod typed;

pub use block::{
    AgentInfo, AgentState, AskBlock, AskKind, Block, BlockBody, NoticeBlock, NoticeLevel, PermissionVerdict,
    Picture, TextBlock, ToolBlock, ToolState, UserBlock, VerdictOutcome,
};
pub use changes::{Change, Changes, LaneId};
pub use fold::Transcript;
pub use lane::Lane;
pub use status::ContextUse;
pub use stream_text::{OPEN_TEXT_LIMIT, StreamText};
pub use tool_words::{ToolWords, tool_words};
