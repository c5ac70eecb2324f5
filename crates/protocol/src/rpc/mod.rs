//! JSON-RPC 2.0 as the Copilot SDKs speak it: messages, and the frames that carry them.

mod error_path;
mod frame;
mod message;
mod tolerant;

pub use error_path::error_path;
pub use frame::{FrameDecoder, FrameError, MAX_BODY, encode};
pub use message::{ErrorObject, Id, Malformed, RpcMessage, codes};
pub use tolerant::{read, read_value};
