//! Frames of the SDK protocol, read from a pipe.

use hangar_protocol::rpc::{FrameDecoder, MAX_BODY};
use tokio::io::{AsyncRead, AsyncReadExt};

const READ_BUFFER: usize = 64 << 10;

/// Reading half of a connection.
pub(super) struct Frames<R> {
    reader: R,
    decoder: FrameDecoder,
    buffer: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(super) fn new(reader: R) -> Self {
        let mut decoder = FrameDecoder::default();
        decoder.limit(MAX_BODY);
        Self { reader, decoder, buffer: vec![0; READ_BUFFER] }
    }

    /// The next frame, or nothing after the last. Nothing is lost if it is not waited for to the end.
    pub(super) async fn next(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.decoder.next_frame() {
                Ok(Some(body)) => return Some(body),
                Ok(None) => {}
                Err(error) => {
                    tracing::warn!(%error, "the other side sent bytes that are no frame");
                    return None;
                }
            }
            match self.reader.read(&mut self.buffer).await {
                Ok(0) | Err(_) => return None,
                Ok(count) => self.decoder.feed(&self.buffer[..count]),
            }
        }
    }
}
