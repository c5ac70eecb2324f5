//! Both streams through one pipe, where the system cannot tell which of two was written to first.

use std::io;
use std::os::fd::AsFd;

use rustix::io::Errno;
use tokio::net::unix::pipe::Receiver;

use super::{Stream, WritingEnds};

/// The reading end; everything counts as stdout.
pub(in super::super) struct Pipes(Option<Receiver>);

impl Pipes {
    pub(in super::super) fn open() -> io::Result<(Self, WritingEnds)> {
        let (end, stdout) = io::pipe()?;
        let stderr = stdout.try_clone()?;
        Ok((Self(Some(Receiver::from_owned_fd(end.into())?)), WritingEnds { stdout, stderr }))
    }

    /// Whether the pipe still has a writer.
    pub(in super::super) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// The next piece; `None` when the pipe is closed. Nothing is lost when the future is dropped.
    pub(in super::super) async fn next(&mut self, buffer: &mut [u8]) -> Option<(Stream, usize)> {
        while let Some(end) = &self.0 {
            // An error is found again by the read that follows.
            let _ = end.readable().await;
            match end.try_read(buffer) {
                Ok(length) if length > 0 => return Some((Stream::Stdout, length)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(_) | Err(_) => self.0 = None,
            }
        }
        None
    }

    /// A piece that is there already.
    pub(in super::super) fn try_next(&mut self, buffer: &mut [u8]) -> Option<(Stream, usize)> {
        let end = self.0.as_ref()?;
        // Not through the async runtime, which knows only the readiness of the past.
        match rustix::io::read(end.as_fd(), &mut *buffer) {
            Ok(length) if length > 0 => Some((Stream::Stdout, length)),
            Err(Errno::AGAIN | Errno::INTR) => None,
            Ok(_) | Err(_) => {
                self.0 = None;
                None
            }
        }
    }
}
