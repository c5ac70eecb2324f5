//! Reads a log by position, also while another process writes it: complete lines only, each with its number.
//!
//! Nothing stays open between reads, so a thousand followed logs cost a thousand positions and no more.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use hangar_protocol::LogPosition;

use crate::{MAX_LINE, SessionId, Store, StoreError};

/// Initial size of the read buffer. It grows for a line that is longer.
const CHUNK: usize = 64 * 1024;

/// Complete lines after a position.
#[derive(Debug)]
pub struct Follow {
    file: File,
    at: LogPosition,
    buffer: Vec<u8>,
    /// Offsets in the buffer: of the next line, and up to where it was searched for a line feed.
    given: usize,
    searched: usize,
}

impl Store {
    /// Reads a session's log from a position on.
    pub fn follow(&self, id: &SessionId, from: LogPosition) -> Result<Follow, StoreError> {
        let mut file = self.open_log(id)?;
        let path = || self.session_dir(id).join(crate::session::LOG_FILE);
        file.seek(SeekFrom::Start(from.offset)).map_err(|error| StoreError::io("opening", &path())(error))?;
        Ok(Follow { file, at: from, buffer: Vec::new(), given: 0, searched: 0 })
    }

    /// Current length of a session's log.
    pub fn log_bytes(&self, id: &SessionId) -> Option<u64> {
        let metadata = std::fs::metadata(self.session_dir(id).join(crate::session::LOG_FILE)).ok()?;
        Some(metadata.len())
    }
}

impl Follow {
    /// Position after the last returned line.
    pub fn position(&self) -> LogPosition {
        self.at
    }

    /// The next line, without its newline. `None` when there is no whole one, which may change. A line too long to be an
    /// event comes out empty, so that the numbers stay right.
    pub fn next_line(&mut self) -> io::Result<Option<(u64, &[u8])>> {
        loop {
            let start = self.given + self.searched;
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[start..]) {
                let (begin, end) = (self.given, start + found);
                self.at.seq += 1;
                self.at.offset += (end + 1 - begin) as u64;
                self.given = end + 1;
                self.searched = 0;
                let line = &self.buffer[begin..end];
                return Ok(Some((self.at.seq, if line.len() > MAX_LINE { &[] } else { line })));
            }
            self.searched = self.buffer.len() - self.given;
            if self.searched > MAX_LINE {
                return self.skip_line().map(|skipped| skipped.then_some((self.at.seq, &[][..])));
            }
            if !self.fill()? {
                return Ok(None);
            }
        }
    }

    /// Reads more into the buffer; false if there is nothing more.
    fn fill(&mut self) -> io::Result<bool> {
        self.buffer.drain(..self.given);
        self.given = 0;
        let kept = self.buffer.len();
        self.buffer.resize(kept + CHUNK.max(kept), 0);
        let read = self.file.read(&mut self.buffer[kept..])?;
        self.buffer.truncate(kept + read);
        Ok(read > 0)
    }

    /// Skips a line without buffering it; true if it has an end.
    fn skip_line(&mut self) -> io::Result<bool> {
        let mut passed = self.searched as u64;
        loop {
            self.buffer.clear();
            (self.given, self.searched) = (0, 0);
            if !self.fill()? {
                // It is looked through again next time, from its start.
                self.file.seek(SeekFrom::Start(self.at.offset))?;
                return Ok(false);
            }
            if let Some(found) = memchr::memchr(b'\n', &self.buffer) {
                self.at.seq += 1;
                self.at.offset += passed + found as u64 + 1;
                self.given = found + 1;
                return Ok(true);
            }
            passed += self.buffer.len() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn follow(text: &str, from: LogPosition) -> (tempfile::TempDir, Store, Follow) {
        let home = tempfile::tempdir().unwrap();
        let store = Store::new(home.path());
        let id: SessionId = "s".parse().unwrap();
        std::fs::create_dir_all(store.session_dir(&id)).unwrap();
        std::fs::write(store.session_dir(&id).join("events.jsonl"), text).unwrap();
        let follow = store.follow(&id, from).unwrap();
        (home, store, follow)
    }

    fn rest(follow: &mut Follow) -> Vec<(u64, String)> {
        let mut lines = Vec::new();
        while let Some((seq, line)) = follow.next_line().unwrap() {
            lines.push((seq, String::from_utf8(line.to_vec()).unwrap()));
        }
        lines
    }

    #[track_caller]
    fn check(text: &str, from: LogPosition, expected: &[(u64, &str)]) {
        let (_home, _store, mut follow) = follow(text, from);
        let lines = rest(&mut follow);
        let lines: Vec<(u64, &str)> = lines.iter().map(|(seq, line)| (*seq, line.as_str())).collect();
        assert_eq!(lines, expected);
    }

    #[test]
    fn lines_are_counted_from_one_and_unfinished_ones_wait() {
        check("a\nb\nc", LogPosition::default(), &[(1, "a"), (2, "b")]);
        check("a\n\nc\n", LogPosition { seq: 1, offset: 2 }, &[(2, ""), (3, "c")]);
        check("", LogPosition::default(), &[]);
    }

    #[test]
    fn a_long_line_is_whole() {
        let long = "x".repeat(3 * CHUNK);
        check(&format!("{long}\nb\n"), LogPosition::default(), &[(1, &long), (2, "b")]);
    }

    #[test]
    fn what_is_written_later_is_read_later() {
        let (_home, store, mut follow) = follow("a\nb", LogPosition::default());
        assert_eq!(rest(&mut follow), [(1, "a".to_owned())]);
        let path = store.session_dir(&"s".parse().unwrap()).join("events.jsonl");
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        file.write_all(b"b\nc\n").unwrap();
        assert_eq!(rest(&mut follow), [(2, "bb".to_owned()), (3, "c".to_owned())]);
        assert_eq!(follow.position(), LogPosition { seq: 3, offset: 7 });
    }
}
