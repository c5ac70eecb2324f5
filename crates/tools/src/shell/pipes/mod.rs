//! The output streams of a command.

#[cfg(any(test, not(target_os = "linux")))]
mod merged;
#[cfg(target_os = "linux")]
mod ordered;

use std::io::PipeWriter;

#[cfg(not(target_os = "linux"))]
pub(super) use merged::Pipes;
#[cfg(target_os = "linux")]
pub(super) use ordered::Pipes;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    /// The name on the wire.
    pub(super) fn name(self) -> &'static str {
        match self {
            Stream::Stdout => "stdout",
            Stream::Stderr => "stderr",
        }
    }
}

/// Ends of the pipes for the command.
pub(super) struct WritingEnds {
    pub(super) stdout: PipeWriter,
    pub(super) stderr: PipeWriter,
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::{Stream, WritingEnds, merged, ordered};

    /// Writes (stream, text) pairs, reads everything, and writes and reads again.
    macro_rules! check {
        ($pipes:ty, $writes:expr, $expected:expr) => {{
            let (mut pipes, WritingEnds { mut stdout, mut stderr }) = <$pipes>::open().unwrap();
            let mut buffer = [0; 64];
            let mut read = Vec::new();
            for (stream, text) in $writes {
                match stream {
                    Stream::Stdout => stdout.write_all(text.as_bytes()).unwrap(),
                    Stream::Stderr => stderr.write_all(text.as_bytes()).unwrap(),
                }
            }
            while let Some((stream, length)) = pipes.try_next(&mut buffer) {
                read.push((stream, String::from_utf8(buffer[..length].to_vec()).unwrap()));
            }
            assert!(pipes.is_open());
            let late = tokio::task::spawn_blocking(move || {
                stdout.write_all(b"late").unwrap();
                stdout
            });
            let (stream, length) = pipes.next(&mut buffer).await.unwrap();
            read.push((stream, String::from_utf8(buffer[..length].to_vec()).unwrap()));
            drop((late.await.unwrap(), stderr));
            assert_eq!(pipes.next(&mut buffer).await, None);
            assert!(!pipes.is_open());
            let read: Vec<(Stream, &str)> =
                read.iter().map(|(stream, text)| (*stream, text.as_str())).collect();
            assert_eq!(read, $expected);
        }};
    }

    use Stream::{Stderr, Stdout};

    #[tokio::test]
    async fn streams_are_read_in_the_order_of_their_first_writing() {
        check!(
            ordered::Pipes,
            [(Stderr, "e"), (Stdout, "o")],
            [(Stderr, "e"), (Stdout, "o"), (Stdout, "late")]
        );
        check!(
            ordered::Pipes,
            [(Stdout, "o"), (Stderr, "e")],
            [(Stdout, "o"), (Stderr, "e"), (Stdout, "late")]
        );
    }

    #[tokio::test]
    async fn one_pipe_keeps_the_order_and_not_the_names() {
        check!(
            merged::Pipes,
            [(Stderr, "e"), (Stdout, "o"), (Stderr, "f")],
            [(Stdout, "eof"), (Stdout, "late")]
        );
    }
}
