//! Reading a log from its end, for the newest events and for mending an unfinished last line.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::MAX_LINE;

const CHUNK: usize = 64 * 1024;

/// Finds line boundaries in a file, from `end` towards the start.
#[derive(Debug)]
pub(crate) struct ReverseLines<'a> {
    file: &'a File,
    /// The last chunk read and where it starts.
    chunk: Vec<u8>,
    chunk_start: u64,
    end: u64,
}

impl<'a> ReverseLines<'a> {
    pub(crate) fn new(file: &'a File, end: u64) -> Self {
        Self { file, chunk: Vec::new(), chunk_start: end, end }
    }

    /// The line before the ones already returned, without its newline. A line too long to be an event comes out empty.
    /// `None` at the start of the file.
    pub(crate) fn previous_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        if self.end == 0 {
            return Ok(None);
        }
        let stop = match self.last_newline(self.end)? {
            Some(at) if at + 1 == self.end => at,
            _ => self.end,
        };
        let start = self.last_newline(stop)?.map_or(0, |at| at + 1);
        self.end = start;
        if stop - start > MAX_LINE as u64 {
            return Ok(Some(Vec::new()));
        }
        let mut line = vec![0; (stop - start) as usize];
        self.read_at(start, &mut line)?;
        Ok(Some(line))
    }

    /// Position of the last newline before `position`.
    pub(crate) fn last_newline(&mut self, position: u64) -> io::Result<Option<u64>> {
        let mut position = position;
        while position > 0 {
            let chunk_end = self.chunk_start + self.chunk.len() as u64;
            if position <= self.chunk_start || position > chunk_end {
                self.load_before(position)?;
            }
            let within = &self.chunk[..(position - self.chunk_start) as usize];
            if let Some(at) = memchr::memrchr(b'\n', within) {
                return Ok(Some(self.chunk_start + at as u64));
            }
            position = self.chunk_start;
        }
        Ok(None)
    }

    fn load_before(&mut self, position: u64) -> io::Result<()> {
        let start = position.saturating_sub(CHUNK as u64);
        let mut chunk = std::mem::take(&mut self.chunk);
        chunk.resize((position - start) as usize, 0);
        self.read_at(start, &mut chunk)?;
        self.chunk = chunk;
        self.chunk_start = start;
        Ok(())
    }

    fn read_at(&self, start: u64, buffer: &mut [u8]) -> io::Result<()> {
        let mut file = self.file;
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(content: &str) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        std::fs::write(&path, content).unwrap();
        let file = File::open(&path).unwrap();
        let mut reverse = ReverseLines::new(&file, content.len() as u64);
        let mut seen = Vec::new();
        while let Some(line) = reverse.previous_line().unwrap() {
            seen.push(String::from_utf8(line).unwrap());
        }
        seen.reverse();
        assert_eq!(seen, content.lines().collect::<Vec<_>>());
    }

    #[test]
    fn lines_come_from_the_last_to_the_first() {
        check("");
        check("one\n");
        check("one");
        check("one\ntwo\n\nfour\n");
        check("one\ntwo\nunfinished");
    }

    #[test]
    fn lines_longer_than_a_chunk_come_whole() {
        let long = "x".repeat(CHUNK * 2 + 17);
        check(&format!("{long}\nshort\n{long}\n"));
    }

    #[test]
    fn chunk_boundaries_lose_nothing() {
        for length in CHUNK - 2..CHUNK + 3 {
            check(&format!("a\n{}\nb\n", "x".repeat(length)));
        }
    }
}
