//! Reading a log forwards, one line at a time, without holding it.
//!
//! A reader says by type which events it wants. The type stands at the very start of a line, so the rest of an unwanted
//! line is passed over without being copied or parsed, and the memory needed is that of the longest wanted line.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use hangar_agent::log::Seq;
use hangar_protocol::event::type_at_start;
use hangar_protocol::{Event, EventKind, ParseError};
use serde::Deserialize;

use crate::StoreError;

/// Longest line that is an event; longer ones are refused when written and skipped when read.
pub const MAX_LINE: usize = 64 * 1024 * 1024;

/// Size of the read buffer.
const CHUNK: usize = 256 * 1024;

/// Bytes of a line that are searched for its type.
const HEAD: usize = 256;

/// A buffer that one huge line has grown beyond this is given back before the next line.
const KEPT: usize = 1024 * 1024;

/// One line of a log that claims to be an event of type `kind`.
#[derive(Debug)]
pub struct RawLine<'a> {
    pub kind: &'a str,
    /// The event's position among the lines of the log.
    pub seq: Seq,
    /// Offset of the line in the file.
    pub offset: u64,
    /// The line without its newline.
    pub bytes: &'a [u8],
}

impl RawLine<'_> {
    /// Kind of the event, if its type is in the table.
    pub fn event_kind(&self) -> Option<EventKind> {
        EventKind::of_type(self.kind)
    }

    /// The whole event; an error if the line only looked like one.
    pub fn parse(&self) -> Result<Event, NotAnEvent> {
        parse_line(self.bytes)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum NotAnEvent {
    #[error("not UTF-8")]
    Encoding(#[from] std::str::Utf8Error),
    #[error(transparent)]
    Shape(#[from] ParseError),
}

pub(crate) fn parse_line(bytes: &[u8]) -> Result<Event, NotAnEvent> {
    Ok(Event::parse(std::str::from_utf8(bytes)?)?)
}

/// The lines of a log from some position on.
#[derive(Debug)]
pub struct LogLines {
    file: BufReader<File>,
    path: PathBuf,
    seq: u64,
    offset: u64,
    line: Vec<u8>,
    kind: String,
    skipped: u64,
}

enum Stop {
    Newline,
    EndOfFile,
    /// The line continues.
    Limit,
}

impl LogLines {
    /// The lines of a file; its path is for errors.
    pub(crate) fn new(file: File, path: PathBuf) -> Self {
        Self {
            file: BufReader::with_capacity(CHUNK, file),
            path,
            seq: 0,
            offset: 0,
            line: Vec::new(),
            kind: String::new(),
            skipped: 0,
        }
    }

    /// The next line of a type that is wanted; `None` at the end of the log.
    ///
    /// An unfinished line at the end is given out too, if it starts like an event: its writer may just not have got
    /// to the newline.
    pub fn next(&mut self, wants: impl FnMut(&str) -> bool) -> Result<Option<RawLine<'_>>, StoreError> {
        match self.advance(wants) {
            Ok(None) => Ok(None),
            Ok(Some((seq, offset))) => {
                Ok(Some(RawLine { kind: &self.kind, seq: Seq(seq), offset, bytes: &self.line }))
            }
            Err(error) => Err(StoreError::io("reading", &self.path)(error)),
        }
    }

    /// Number of lines so far that are no events. Lines of unwanted types are not parsed, and not counted.
    pub fn skipped(&self) -> u64 {
        self.skipped
    }

    fn advance(&mut self, mut wants: impl FnMut(&str) -> bool) -> io::Result<Option<(u64, u64)>> {
        loop {
            self.line.clear();
            self.line.shrink_to(KEPT);
            let (seq, offset) = (self.seq, self.offset);
            let mut stop = self.take(HEAD)?;
            if matches!(stop, Stop::EndOfFile) && self.line.is_empty() {
                return Ok(None);
            }
            self.seq += 1;

            let known_early = match type_at_start(&self.line) {
                Some(kind) => {
                    self.kind.clear();
                    self.kind.push_str(kind);
                    true
                }
                None => false,
            };
            if known_early && !wants(&self.kind) {
                self.pass(&stop)?;
                continue;
            }
            if matches!(stop, Stop::Limit) {
                stop = self.take(MAX_LINE)?;
            }
            if matches!(stop, Stop::Limit) {
                self.skipped += 1;
                self.pass(&stop)?;
            } else if known_early {
                return Ok(Some((seq, offset)));
            } else if self.line.trim_ascii().is_empty() {
                // Nothing is lost with a blank line, so it is not worth counting.
            } else if let Some(kind) = kind_anywhere(&self.line) {
                self.kind = kind;
                if wants(&self.kind) {
                    return Ok(Some((seq, offset)));
                }
            } else {
                self.skipped += 1;
            }
        }
    }

    /// Copies from the file into `line` until the newline, which is consumed but not kept, or until `line` has `limit`
    /// bytes.
    fn take(&mut self, limit: usize) -> io::Result<Stop> {
        loop {
            let room = limit.saturating_sub(self.line.len());
            let chunk = self.file.fill_buf()?;
            if chunk.is_empty() {
                return Ok(Stop::EndOfFile);
            }
            // One byte more than there is room for, since the newline itself needs none.
            let seen = &chunk[..chunk.len().min(room.saturating_add(1))];
            let (kept, used, stop) = match memchr::memchr(b'\n', seen) {
                Some(at) => (at, at + 1, Some(Stop::Newline)),
                None if seen.len() > room => (room, room, Some(Stop::Limit)),
                None => (seen.len(), seen.len(), None),
            };
            self.line.extend_from_slice(&seen[..kept]);
            self.file.consume(used);
            self.offset += used as u64;
            if let Some(stop) = stop {
                return Ok(stop);
            }
        }
    }

    /// Skips the rest of the current line without keeping it.
    fn pass(&mut self, reached: &Stop) -> io::Result<()> {
        if !matches!(reached, Stop::Limit) {
            return Ok(());
        }
        loop {
            let chunk = self.file.fill_buf()?;
            let newline = memchr::memchr(b'\n', chunk);
            let used = newline.map_or(chunk.len(), |at| at + 1);
            self.file.consume(used);
            self.offset += used as u64;
            if newline.is_some() || used == 0 {
                return Ok(());
            }
        }
    }
}

fn kind_anywhere(line: &[u8]) -> Option<String> {
    #[derive(Deserialize)]
    struct Typed {
        #[serde(rename = "type")]
        kind: String,
    }
    serde_json::from_slice::<Typed>(line).ok().map(|typed| typed.kind)
}

/// The events of a log, of the types that `wants` asks for. Lines that are no events are left out and counted.
#[derive(Debug)]
pub struct Events<F = fn(&str) -> bool> {
    lines: LogLines,
    wants: F,
    unparsable: u64,
    failed: bool,
}

impl<F: FnMut(&str) -> bool> Events<F> {
    pub(crate) fn new(lines: LogLines, wants: F) -> Self {
        Self { lines, wants, unparsable: 0, failed: false }
    }

    /// Number of lines so far that are no events.
    pub fn skipped(&self) -> u64 {
        self.lines.skipped() + self.unparsable
    }
}

impl<F: FnMut(&str) -> bool> Iterator for Events<F> {
    type Item = Result<Event, StoreError>;

    fn next(&mut self) -> Option<Self::Item> {
        // After an error the position in the file is unknown.
        while !self.failed {
            match self.lines.next(&mut self.wants) {
                Ok(None) => return None,
                Ok(Some(line)) => match line.parse() {
                    Ok(event) => return Some(Ok(event)),
                    Err(_) => self.unparsable += 1,
                },
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAIL: &str = r#""id":"i","timestamp":"t","parentId":null}"#;

    /// Each wanted line as `seq@offset kind`, then the number of skipped ones. Types that start with `no` are unwanted.
    fn check(log: &str, expected: &[&str], skipped: u64) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, log).unwrap();
        let mut lines = LogLines::new(File::open(&path).unwrap(), path.clone());
        let mut seen = Vec::new();
        while let Some(line) = lines.next(|kind| !kind.starts_with("no")).unwrap() {
            let start = line.offset as usize;
            assert_eq!(&log.as_bytes()[start..start + line.bytes.len()], line.bytes);
            seen.push(format!("{}@{} {}", line.seq.0, line.offset, line.kind));
        }
        assert_eq!(seen, expected);
        assert_eq!(lines.skipped(), skipped);
    }

    #[test]
    fn the_type_is_found_at_the_start() {
        check("{\"type\":\"a\",\"x\":1}\n{ \"type\" : \"b\" }\n", &["0@0 a", "1@19 b"], 0);
    }

    #[test]
    fn the_type_is_found_elsewhere_and_behind_escapes() {
        check("{\"x\":{\"type\":\"z\"},\"type\":\"a\"}\n{\"type\":\"\\u0062\"}\n", &["0@0 a", "1@30 b"], 0);
    }

    #[test]
    fn unwanted_lines_of_any_length_are_passed_over() {
        let long = "y".repeat(3 * CHUNK);
        let log = format!("{{\"type\":\"no\",\"x\":\"{long}\"}}\n{{\"type\":\"a\"}}\n");
        let offset = log.find("{\"type\":\"a\"").unwrap();
        check(&log, &[&format!("1@{offset} a")], 0);
    }

    #[test]
    fn wanted_lines_longer_than_a_chunk_come_whole() {
        let long = "y".repeat(3 * CHUNK);
        check(&format!("{{\"type\":\"a\",\"x\":\"{long}\"}}\n{{\"type\":\"no\"}}"), &["0@0 a"], 0);
    }

    #[test]
    fn lines_around_the_length_of_the_head_come_whole() {
        for length in HEAD - 3..HEAD + 3 {
            let pad = "y".repeat(length - "{\"type\":\"a\",\"x\":\"\"}".len());
            let log = format!("{{\"type\":\"a\",\"x\":\"{pad}\"}}\n{{\"type\":\"b\"}}\n");
            check(&log, &["0@0 a", &format!("1@{} b", length + 1)], 0);
        }
    }

    #[test]
    fn lines_that_are_no_events_are_counted_and_take_a_position() {
        check("garbage\n{\"type\":\"a\"}\n\0\0\0\n[1]\n\n{\"type\":\"b\"}\n", &["1@8 a", "5@30 b"], 3);
    }

    #[test]
    fn an_empty_log_has_no_lines() {
        check("", &[], 0);
    }

    #[test]
    fn events_that_do_not_parse_are_left_out_and_counted() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let good = format!("{{\"type\":\"a\",\"data\":{{}},{TAIL}");
        let mut log = format!("{good}\n{{\"type\":\"a\",\"da\n{good}\n{{\"type\":\"a\",").into_bytes();
        log.extend_from_slice(b"\n{\"type\":\"a\",\"\xff\":1}\n");
        std::fs::write(&path, log).unwrap();
        let mut events = Events::new(LogLines::new(File::open(&path).unwrap(), path.clone()), |_: &str| true);
        assert_eq!(events.by_ref().map(Result::unwrap).filter(|event| event.kind() == "a").count(), 2);
        assert_eq!(events.skipped(), 3);
    }
}
