//! One pipe for each stream, read in the order in which they were written to.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll;
use rustix::io::Errno;
use tokio::net::unix::pipe::Receiver;

use super::{Stream, WritingEnds};

/// The reading ends. `epoll` reports descriptors in the order in which they became readable, and both are watched by an
/// instance of their own, so that a line on stderr before one on stdout is also read before it.
pub(in super::super) struct Pipes {
    order: OwnedFd,
    stdout: Option<Receiver>,
    stderr: Option<Receiver>,
}

impl Pipes {
    pub(in super::super) fn open() -> io::Result<(Self, WritingEnds)> {
        let order = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let (stdout, stdout_end) = io::pipe()?;
        let (stderr, stderr_end) = io::pipe()?;
        let stdout = Receiver::from_owned_fd(stdout.into())?;
        let stderr = Receiver::from_owned_fd(stderr.into())?;
        for (end, stream) in [(&stdout, Stream::Stdout), (&stderr, Stream::Stderr)] {
            // Closing the descriptor, which nothing else refers to, also ends the watch.
            epoll::add(&order, end, epoll::EventData::new_u64(stream as u64), epoll::EventFlags::IN)?;
        }
        let pipes = Self { order, stdout: Some(stdout), stderr: Some(stderr) };
        Ok((pipes, WritingEnds { stdout: stdout_end, stderr: stderr_end }))
    }

    /// Whether the pipe still has a writer.
    pub(in super::super) fn is_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some()
    }

    /// The next piece of either stream; `None` when both are closed. Nothing is lost when the future is dropped.
    pub(in super::super) async fn next(&mut self, buffer: &mut [u8]) -> Option<(Stream, usize)> {
        while self.is_open() {
            if let Some(piece) = self.try_next(buffer) {
                return Some(piece);
            }
            if !self.is_open() {
                break;
            }
            let stream = tokio::select! {
                stream = readable(self.stdout.as_ref(), Stream::Stdout) => stream,
                stream = readable(self.stderr.as_ref(), Stream::Stderr) => stream,
            };
            if let Some(piece) = self.try_next(buffer) {
                return Some(piece);
            }
            // The news was old: this read finds nothing, and makes the runtime wait for the next.
            match self.end(stream).as_ref().map(|end| end.try_read(buffer)) {
                Some(Ok(length)) if length > 0 => return Some((stream, length)),
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {}
                Some(Ok(_) | Err(_)) => *self.end(stream) = None,
                None => {}
            }
        }
        None
    }

    /// A piece that is there already.
    pub(in super::super) fn try_next(&mut self, buffer: &mut [u8]) -> Option<(Stream, usize)> {
        while self.is_open() {
            let stream = self.first_readable()?;
            // Not through the async runtime, which knows only the readiness of the past.
            match self.end(stream).as_ref().map(|end| rustix::io::read(end.as_fd(), &mut *buffer)) {
                Some(Ok(length)) if length > 0 => return Some((stream, length)),
                Some(Err(Errno::AGAIN)) => return None,
                Some(Err(Errno::INTR)) => {}
                // The end, or a pipe that has nothing more to say for another reason.
                Some(Ok(_) | Err(_)) | None => *self.end(stream) = None,
            }
        }
        None
    }

    /// The stream that has been readable for longest.
    fn first_readable(&self) -> Option<Stream> {
        let mut events = Vec::with_capacity(1);
        let now = rustix::event::Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(&self.order, rustix::buffer::spare_capacity(&mut events), Some(&now)).ok()?;
        let event: &epoll::Event = events.first()?;
        Some(if event.data.u64() == Stream::Stdout as u64 { Stream::Stdout } else { Stream::Stderr })
    }

    fn end(&mut self, stream: Stream) -> &mut Option<Receiver> {
        match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        }
    }
}

async fn readable(end: Option<&Receiver>, stream: Stream) -> Stream {
    match end {
        // An error is found again by the read that follows.
        Some(end) => drop(end.readable().await),
        None => std::future::pending().await,
    }
    stream
}
