//! Appending to a file so that it ends at a whole line whatever happens.

use std::fs::File;
use std::io::{self, Write};

/// Storage of a log. A trait so that tests can make it fail at will.
pub(crate) trait Medium {
    fn size(&self) -> io::Result<u64>;
    /// One attempt to write at the end; may write less than asked.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    fn truncate(&mut self, size: u64) -> io::Result<()>;
    fn sync(&mut self) -> io::Result<()>;
}

/// A file that was opened for appending.
impl Medium for File {
    fn size(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Write::write(self, bytes)
    }

    fn truncate(&mut self, size: u64) -> io::Result<()> {
        self.set_len(size)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

#[derive(Debug)]
pub(crate) struct AppendOnly<M> {
    medium: M,
    /// End of the last whole append.
    end: u64,
    state: State,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Synced,
    Unsynced,
    /// A failed append left bytes after `end` that could not be removed yet.
    Torn,
}

#[derive(Debug)]
pub(crate) enum AppendError {
    /// The file has another length than we left it with: another process wrote. Its current length.
    Moved(u64),
    Io(io::Error),
}

impl From<io::Error> for AppendError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl<M: Medium> AppendOnly<M> {
    pub(crate) fn new(medium: M, end: u64) -> Self {
        Self { medium, end, state: State::Unsynced }
    }

    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Appends all of `bytes` or none.
    pub(crate) fn append(&mut self, bytes: &[u8]) -> Result<(), AppendError> {
        if self.state == State::Torn {
            self.medium.truncate(self.end)?;
            self.state = State::Unsynced;
        }
        let size = self.medium.size()?;
        if size != self.end {
            return Err(AppendError::Moved(size));
        }
        let failure = match self.write(bytes) {
            Ok(written) if written == bytes.len() => {
                self.end += bytes.len() as u64;
                self.state = State::Unsynced;
                return Ok(());
            }
            // The rest would very likely fail, and a second write is not atomic with the first.
            Ok(written) => io::Error::new(
                io::ErrorKind::WriteZero,
                format!("only {written} of {} bytes were taken", bytes.len()),
            ),
            Err(error) => error,
        };
        self.state = if self.medium.truncate(self.end).is_ok() { State::Unsynced } else { State::Torn };
        Err(failure.into())
    }

    /// Makes everything appended survive a power cut. Says whether there was anything to do.
    pub(crate) fn sync(&mut self) -> io::Result<bool> {
        if self.state == State::Synced {
            return Ok(false);
        }
        self.medium.sync()?;
        if self.state == State::Unsynced {
            self.state = State::Synced;
        }
        Ok(true)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.medium.write(bytes) {
                // A signal came before the first byte was taken.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => return done,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    #[derive(Debug, Clone, Copy)]
    enum Fault {
        /// Takes this many bytes and says so.
        Short(usize),
        /// Takes this many bytes and fails.
        Fails(usize),
        Interrupted,
    }

    #[derive(Default)]
    struct Faulty {
        content: Vec<u8>,
        faults: VecDeque<Fault>,
        truncate_fails: bool,
    }

    impl Medium for Faulty {
        fn size(&self) -> io::Result<u64> {
            Ok(self.content.len() as u64)
        }

        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            match self.faults.pop_front() {
                None => {
                    self.content.extend_from_slice(bytes);
                    Ok(bytes.len())
                }
                Some(Fault::Short(n)) => {
                    self.content.extend_from_slice(&bytes[..n]);
                    Ok(n)
                }
                Some(Fault::Fails(n)) => {
                    self.content.extend_from_slice(&bytes[..n]);
                    Err(io::ErrorKind::StorageFull.into())
                }
                Some(Fault::Interrupted) => Err(io::ErrorKind::Interrupted.into()),
            }
        }

        fn truncate(&mut self, size: u64) -> io::Result<()> {
            if self.truncate_fails {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
            self.content.truncate(size as usize);
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Appends `one\n`, then `two\n` with faults, then `three\n`.
    fn check(faults: &[Fault], second_works: bool, content: &str) {
        let mut log = AppendOnly::new(Faulty::default(), 0);
        log.append(b"one\n").unwrap();
        log.medium.faults = faults.iter().copied().collect();
        assert_eq!(log.append(b"two\n").is_ok(), second_works);
        log.append(b"three\n").unwrap();
        assert_eq!(String::from_utf8_lossy(&log.medium.content), content);
        assert_eq!(log.end(), content.len() as u64);
    }

    #[test]
    fn a_short_write_is_taken_back() {
        check(&[Fault::Short(2)], false, "one\nthree\n");
    }

    #[test]
    fn a_write_that_fails_halfway_is_taken_back() {
        check(&[Fault::Fails(3)], false, "one\nthree\n");
    }

    #[test]
    fn an_interrupted_write_is_repeated() {
        check(&[Fault::Interrupted, Fault::Interrupted], true, "one\ntwo\nthree\n");
    }

    #[test]
    fn what_could_not_be_taken_back_at_once_is_taken_back_before_the_next_append() {
        let mut log = AppendOnly::new(Faulty::default(), 0);
        log.medium.truncate_fails = true;
        log.medium.faults = [Fault::Short(2)].into();
        assert!(log.append(b"one\n").is_err());
        assert!(matches!(log.append(b"two\n"), Err(AppendError::Io(_))));
        log.medium.truncate_fails = false;
        log.append(b"three\n").unwrap();
        assert_eq!(log.medium.content, b"three\n");
    }

    #[test]
    fn bytes_of_another_writer_are_noticed_and_left_alone() {
        let mut log = AppendOnly::new(Faulty::default(), 0);
        log.medium.content.extend_from_slice(b"theirs\n");
        assert!(matches!(log.append(b"ours\n"), Err(AppendError::Moved(_))));
        assert_eq!(log.medium.content, b"theirs\n");
    }

    #[test]
    fn a_second_sync_has_nothing_to_do() {
        let mut log = AppendOnly::new(Faulty::default(), 0);
        log.append(b"one\n").unwrap();
        assert!(log.sync().unwrap());
        assert!(!log.sync().unwrap());
    }
}
