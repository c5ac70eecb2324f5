//! Bounded buffer of an agent's stderr, and the maximum length of a line.

use std::collections::VecDeque;

/// The longest line that an agent may write.
pub(crate) const MAX_LINE: usize = 10 << 20;
/// Parts of stderr that are kept: head and tail.
const STDERR_HEAD: usize = 8 << 10;
const STDERR_TAIL: usize = 56 << 10;

/// The beginning and the end of what was written, whatever was between them.
#[derive(Debug, Default)]
pub(crate) struct StderrBuffer {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    dropped: bool,
}

impl StderrBuffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = STDERR_HEAD.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(&bytes[..room]);
        self.tail.extend(&bytes[room..]);
        if self.tail.len() > STDERR_TAIL {
            self.dropped = true;
            self.tail.drain(..self.tail.len() - STDERR_TAIL);
        }
    }

    pub(crate) fn text(&mut self) -> String {
        let head = String::from_utf8_lossy(&self.head).into_owned();
        let tail = String::from_utf8_lossy(self.tail.make_contiguous()).into_owned();
        if self.dropped { format!("{head}\n[…]\n{tail}") } else { head + &tail }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stderr_keeps_its_beginning_and_its_end() {
        let mut excerpt = StderrBuffer::default();
        excerpt.push(b"first ");
        excerpt.push(&vec![b'.'; 1 << 20]);
        excerpt.push(b" last");
        let text = excerpt.text();
        assert!(text.starts_with("first .") && text.ends_with(". last") && text.len() < 80 << 10);
    }
}
