//! JSON-RPC 2.0 as the Copilot SDKs speak it: messages, and the frames that carry them.

mod frame;
mod message;
mod place;
mod tolerant;

pub use frame::{FrameDecoder, FrameError, MAX_BODY, encode};
pub use message::{ErrorObject, Id, Malformed, Message, codes};
pub use place::place;
pub use tolerant::{read, read_value};
