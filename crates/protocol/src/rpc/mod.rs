//! JSON-RPC 2.0 as the Copilot SDKs speak it: messages, and the frames that carry them.

mod frame;
mod message;

pub use frame::{FrameDecoder, FrameError, encode};
pub use message::{ErrorObject, Id, Malformed, Message, codes};
