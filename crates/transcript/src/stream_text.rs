//! Text that grows piece by piece.

/// Bytes that a block keeps of a text while it is written. More is cut at the front; the final event brings the whole.
pub const OPEN_TEXT_LIMIT: usize = 400_000;
/// Bytes of cut text that stay in the buffer until it is compacted, so that a cut costs no move of the whole text.
const SLACK: usize = OPEN_TEXT_LIMIT / 2;

/// Text of a block. Pieces are appended in place; beyond [`OPEN_TEXT_LIMIT`] the oldest bytes are cut.
#[derive(Debug, Clone, Default)]
pub struct StreamText {
    buffer: String,
    /// Where the text begins in the buffer.
    start: usize,
    cut: usize,
}

impl StreamText {
    pub fn as_str(&self) -> &str {
        &self.buffer[self.start..]
    }

    /// Number of bytes that were cut at the front since the text was last replaced: an offset into the text that was taken
    /// earlier is that much too large.
    pub fn cut(&self) -> usize {
        self.cut
    }

    pub(crate) fn push(&mut self, piece: &str) {
        self.buffer.push_str(piece);
        let over = (self.buffer.len() - self.start).saturating_sub(OPEN_TEXT_LIMIT);
        if over == 0 {
            return;
        }
        let start = self.buffer.ceil_char_boundary(self.start + over);
        self.cut += start - self.start;
        self.start = start;
        if self.start > SLACK {
            self.buffer.drain(..self.start);
            self.start = 0;
        }
    }

    /// Replaces the text by a final one, whatever its length.
    pub(crate) fn replace(&mut self, text: &str) {
        *self = Self::from(text);
    }

    /// Replaces the text by one that may grow further: its end is kept.
    pub(crate) fn replace_end(&mut self, text: &str) {
        self.buffer.clear();
        self.start = 0;
        self.cut = text.ceil_char_boundary(text.len().saturating_sub(OPEN_TEXT_LIMIT));
        self.buffer.push_str(&text[self.cut..]);
    }
}

impl From<&str> for StreamText {
    fn from(text: &str) -> Self {
        Self { buffer: text.to_owned(), start: 0, cut: 0 }
    }
}

impl std::ops::Deref for StreamText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for StreamText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for StreamText {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_over_the_limit_keeps_its_end_at_a_character() {
        let mut text = StreamText::default();
        let piece = "né€😀".repeat(1_000);
        let mut whole = String::new();
        for _ in 0..200 {
            text.push(&piece);
            whole.push_str(&piece);
            assert!(text.len() <= OPEN_TEXT_LIMIT);
            assert!(whole.ends_with(text.as_str()));
            assert_eq!(text.cut() + text.len(), whole.len());
            assert!(text.buffer.len() <= OPEN_TEXT_LIMIT + SLACK + piece.len());
        }
        assert!(text.len() > OPEN_TEXT_LIMIT - 4);
    }

    #[test]
    fn a_final_text_is_whole_and_one_so_far_is_not() {
        let long = "x".repeat(OPEN_TEXT_LIMIT + 1);
        let mut text = StreamText::from("before");
        text.replace(&long);
        assert_eq!((text.len(), text.cut()), (OPEN_TEXT_LIMIT + 1, 0));
        text.replace_end(&long);
        assert_eq!((text.len(), text.cut()), (OPEN_TEXT_LIMIT, 1));
    }
}
