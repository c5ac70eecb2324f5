//! Output of a command: decoded, stripped of terminal codes, and bounded in memory and on disk.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use hangar_disk::Folder;

/// Bytes kept in memory; more goes to a file.
const MEMORY_LIMIT: usize = 256 * 1024;

/// Bytes kept at all. Of what follows only the end is kept.
pub(super) const OUTPUT_LIMIT: u64 = 10 * 1024 * 1024;

/// Bytes of the end that are at hand without reading the file.
const TAIL_LIMIT: usize = 8 * 1024;

pub(super) struct CommandOutput {
    /// Directory of the overflow file. The file has no name there, so it vanishes with its owner.
    dir: PathBuf,
    kept: OutputBuffer,
    kept_bytes: u64,
    /// At most twice `TAIL_LIMIT`, so that not every push moves it.
    tail: String,
    left_out: u64,
}

enum OutputBuffer {
    Memory(String),
    File(File),
}

impl CommandOutput {
    pub(super) fn new(dir: &Path) -> Self {
        Self {
            dir: dir.to_path_buf(),
            kept: OutputBuffer::Memory(String::new()),
            kept_bytes: 0,
            tail: String::new(),
            left_out: 0,
        }
    }

    pub(super) fn push(&mut self, text: &str) {
        self.push_tail(text);
        let room = usize::try_from(OUTPUT_LIMIT - self.kept_bytes).unwrap_or(usize::MAX);
        // Once something is left out, everything behind it is, or the text would have a hole without a mark.
        let fitting = if self.left_out > 0 { "" } else { &text[..text.floor_char_boundary(room)] };
        match self.keep(fitting) {
            Ok(()) => {
                self.kept_bytes += fitting.len() as u64;
                self.left_out += (text.len() - fitting.len()) as u64;
            }
            // A full disk costs the middle of the output, not the command.
            Err(_) => self.left_out += text.len() as u64,
        }
    }

    fn keep(&mut self, text: &str) -> io::Result<()> {
        match &mut self.kept {
            OutputBuffer::Memory(memory) if memory.len() + text.len() <= MEMORY_LIMIT => {
                memory.push_str(text);
                Ok(())
            }
            OutputBuffer::Memory(memory) => {
                let folder = Folder::ensure_resolved(&self.dir)?;
                let mut file = tempfile::tempfile_in(folder.fd_path())?;
                file.write_all(memory.as_bytes())?;
                file.write_all(text.as_bytes())?;
                self.kept = OutputBuffer::File(file);
                Ok(())
            }
            OutputBuffer::File(file) => file.write_all(text.as_bytes()),
        }
    }

    fn push_tail(&mut self, text: &str) {
        let text = &text[text.ceil_char_boundary(text.len().saturating_sub(TAIL_LIMIT))..];
        self.tail.push_str(text);
        if self.tail.len() > 2 * TAIL_LIMIT {
            let start = self.tail.ceil_char_boundary(self.tail.len() - TAIL_LIMIT);
            self.tail.drain(..start);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tail.is_empty()
    }

    /// Whether more of it would only be counted.
    pub(super) fn is_full(&self) -> bool {
        self.left_out > 0
    }

    /// The last few kilobytes.
    pub(super) fn tail(&self) -> &str {
        &self.tail[self.tail.ceil_char_boundary(self.tail.len().saturating_sub(TAIL_LIMIT))..]
    }

    /// All that was kept, with a mark where something is missing.
    pub(super) fn text(&self) -> String {
        let mut text = match &self.kept {
            OutputBuffer::Memory(memory) => memory.clone(),
            OutputBuffer::File(file) => read_whole(file)
                .unwrap_or_else(|error| format!("[the output could not be read back: {error}]\n")),
        };
        if self.left_out > 0 {
            let tail = self.tail();
            let missing = self.left_out.saturating_sub(tail.len() as u64);
            text.push_str(&format!("\n[... {missing} bytes left out ...]\n{tail}"));
        }
        text
    }
}

fn read_whole(mut file: &File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(0))?;
    let read = file.read_to_end(&mut bytes);
    // Writing goes on at the end.
    file.seek(SeekFrom::End(0))?;
    read?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Log of a detached command so far.
pub(super) fn read_log(path: &Path) -> String {
    let read = || -> io::Result<String> {
        let mut bytes = Vec::new();
        // It is where commands can write: what is there by now may be anything.
        let (dir, name) = (path.parent().unwrap_or(path), path.file_name().unwrap_or_default());
        Folder::resolved(dir)?.read(name)?.take(OUTPUT_LIMIT).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let mut plain = String::new();
    match read() {
        Ok(text) => Plain::default().push(&text, &mut plain),
        Err(error) => plain = format!("[{} could not be read: {error}]", path.display()),
    }
    plain
}

/// Turns the bytes of one stream into text. A character cut in two by a read is put together again; what is no UTF-8
/// becomes U+FFFD.
#[derive(Default)]
pub(super) struct OutputDecoder {
    /// The start of a character whose end has not come yet: at most three bytes.
    pending: Vec<u8>,
}

impl OutputDecoder {
    pub(super) fn decode(&mut self, bytes: &[u8]) -> String {
        let joined;
        let bytes = if self.pending.is_empty() {
            bytes
        } else {
            self.pending.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.pending);
            &joined
        };
        let mut text = String::with_capacity(bytes.len());
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            text.push_str(chunk.valid());
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            let is_cut = chunks.peek().is_none()
                && std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
            if is_cut {
                self.pending.extend_from_slice(invalid);
            } else {
                text.push(char::REPLACEMENT_CHARACTER);
            }
        }
        text
    }

    /// The rest, when nothing more will come.
    pub(super) fn finish(&mut self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut self.pending)).into_owned()
    }
}

/// Takes colours, cursor movements and titles out of a text that comes in pieces.
#[derive(Default)]
pub(super) struct Plain {
    state: Escape,
}

#[derive(Default, Clone, Copy)]
enum Escape {
    #[default]
    None,
    /// Behind an escape character.
    Begun,
    /// In `ESC [ … letter`.
    Control,
    /// In `ESC ] … BEL` or `ESC ] … ESC \`.
    Text,
    TextEnding,
    /// In `ESC ( B` and the like: one more character belongs to it.
    Designation,
}

impl Plain {
    pub(super) fn push(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            self.state = match (self.state, c) {
                (Escape::None, '\u{1b}') => Escape::Begun,
                (Escape::None, c) => {
                    out.push(c);
                    Escape::None
                }
                (Escape::Begun, '[') => Escape::Control,
                (Escape::Begun, ']' | 'P' | 'X' | '^' | '_') => Escape::Text,
                (Escape::Begun, ' '..='/') => Escape::Designation,
                (Escape::Begun, '\u{1b}') => Escape::Begun,
                (Escape::Begun | Escape::Designation, _) => Escape::None,
                (Escape::Control, '\u{20}'..='\u{3f}') => Escape::Control,
                // A line break in the middle means that this was no control sequence after all.
                (Escape::Control | Escape::Text, '\n') => {
                    out.push('\n');
                    Escape::None
                }
                (Escape::Control, _) => Escape::None,
                (Escape::Text, '\u{7}') => Escape::None,
                (Escape::Text, '\u{1b}') => Escape::TextEnding,
                (Escape::Text, _) => Escape::Text,
                (Escape::TextEnding, '\\') => Escape::None,
                (Escape::TextEnding, _) => Escape::Text,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use std::fs;

    use super::*;

    #[test]
    fn a_small_output_is_kept_whole() {
        let dir = tempfile::tempdir().unwrap();
        let mut output = CommandOutput::new(dir.path());
        assert!(output.is_empty());
        output.push("one\n");
        output.push("two\n");
        assert_eq!((output.text().as_str(), output.tail()), ("one\ntwo\n", "one\ntwo\n"));
    }

    #[test]
    fn a_larger_output_is_kept_in_a_file_without_a_name() {
        let dir = tempfile::tempdir().unwrap();
        let mut output = CommandOutput::new(&dir.path().join("not/there"));
        let line = "ä".repeat(1000);
        for _ in 0..300 {
            output.push(&line);
        }
        assert_eq!(output.text(), "ä".repeat(300_000));
        output.push("end");
        assert!(output.text().ends_with("äend"));
        assert!(output.tail().len() <= TAIL_LIMIT && output.tail().ends_with("äend"));
        assert_eq!(fs::read_dir(dir.path().join("not/there")).unwrap().count(), 0);
    }

    #[test]
    fn an_output_without_end_keeps_its_start_and_its_end() {
        let dir = tempfile::tempdir().unwrap();
        let mut output = CommandOutput::new(dir.path());
        let block = "x".repeat(1024 * 1024);
        for _ in 0..12 {
            output.push(&block);
        }
        output.push("the end");
        assert!(output.is_full());
        let text = output.text();
        assert!(text.len() < 11 * 1024 * 1024);
        assert!(text.ends_with("the end"));
        let missing = 2 * 1024 * 1024 + 7 - output.tail().len();
        assert!(
            text.contains(&format!("[... {missing} bytes left out ...]")),
            "{}",
            &text[text.len() - 9000..]
        );
    }

    #[test]
    fn an_output_that_cannot_be_saved_keeps_its_ends() {
        let dir = tempfile::tempdir().unwrap();
        let occupied = dir.path().join("file");
        fs::write(&occupied, "").unwrap();
        let mut output = CommandOutput::new(&occupied);
        output.push(&"a".repeat(MEMORY_LIMIT));
        output.push("b");
        output.push("c");
        let text = output.text();
        assert!(text.starts_with('a') && text.ends_with("abc"), "{}", &text[text.len() - 100..]);
    }

    #[test]
    fn terminal_codes_are_taken_out() {
        let check = |pieces: &[&str], expected: &str| {
            let (mut plain, mut out) = (Plain::default(), String::new());
            pieces.iter().for_each(|piece| plain.push(piece, &mut out));
            assert_eq!(out, expected, "{pieces:?}");
        };
        check(&["\u{1b}[31mred\u{1b}[0m \u{1b}[1;4mx\n"], "red x\n");
        check(&["a\u{1b}", "[3", "1mb"], "ab");
        check(&["\u{1b}]0;title\u{7}a\u{1b}]8;;http://x\u{1b}\\b"], "ab");
        check(&["\u{1b}(Ba\u{1b}=b\u{1b}\u{1b}[Kc"], "abc");
        check(&["\u{1b}[31\nnext", " \u{1b}]half\nline"], "\nnext \nline");
        check(&["50%\r100%\ttab"], "50%\r100%\ttab");
    }

    #[test]
    fn what_is_no_text_is_marked() {
        let mut decoder = OutputDecoder::default();
        assert_eq!(decoder.decode(b"a\xff\xfeb\xc3"), "a\u{fffd}\u{fffd}b");
        assert_eq!(decoder.decode(b"x"), "\u{fffd}x");
        assert_eq!(decoder.decode(b"\xf0\x9f"), "");
        assert_eq!(decoder.finish(), "\u{fffd}");
        assert_eq!(decoder.finish(), "");
    }

    proptest! {
        #[test]
        fn a_text_survives_being_cut_anywhere(text in ".{0,40}", cuts in proptest::collection::vec(0usize..6, 0..60)) {
            let mut decoder = OutputDecoder::default();
            let mut decoded = String::new();
            let mut rest = text.as_bytes();
            for cut in cuts {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                decoded.push_str(&decoder.decode(piece));
                rest = behind;
            }
            decoded.push_str(&decoder.decode(rest));
            decoded.push_str(&decoder.finish());
            prop_assert_eq!(decoded, text);
        }

        #[test]
        fn bytes_decode_alike_however_they_are_cut(bytes in proptest::collection::vec(any::<u8>(), 0..40), cut in 0usize..40) {
            let mut decoder = OutputDecoder::default();
            let (one, two) = bytes.split_at(cut.min(bytes.len()));
            let decoded = decoder.decode(one) + &decoder.decode(two) + &decoder.finish();
            prop_assert_eq!(decoded, String::from_utf8_lossy(&bytes));
        }
    }
}
