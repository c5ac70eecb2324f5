//! Outputs too large for the model's context: saved to a file, replaced by their head and tail.
//!
//! The fixed phrases and the form of the file names are those that recorded conversations replay against.

use std::fmt::{self, Write as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hangar_disk::Folder;
use hangar_files::FileRequest;

use crate::tool_files::ToolFiles;

/// Bytes of a text that are still shown whole, unless configured: 10,000 tokens of ordinary text.
pub const DEFAULT_THRESHOLD: usize = 40_000;

/// Characters shown of a saved text that is one line.
const PREVIEW_CHARS: usize = 500;

/// Characters shown of the beginning of a saved text of several lines.
const HEAD_CHARS: usize = 2_000;

/// Characters shown of its end. More than of the beginning, because that is where commands say how they went.
const TAIL_CHARS: usize = 4_000;

/// Bytes shown of either end of a text that could not be saved.
const UNSAVED_END_BYTES: usize = 4 * 1024;

/// Names tried before giving up. Names clash only with files of an earlier process in the same directory, and the
/// counter is shared by the whole process, so this many clashes mean something else is wrong.
const NAME_ATTEMPTS: usize = 10_000;

/// Characters of a stem that go into a file name.
const STEM_CHARS: usize = 40;

/// Directory for large outputs, and the size from which on an output is large.
#[derive(Debug, Clone)]
pub struct Spill {
    /// Absolute, with the links on the way resolved: one that is there later is not followed.
    pub dir: PathBuf,
    pub threshold: usize,
    /// File system of the directory.
    pub files: ToolFiles,
    /// Redaction of a text before it is saved.
    pub clean: Option<Cleaner>,
}

/// Redacts secrets in a text.
#[derive(Clone)]
pub struct Cleaner(Arc<dyn Fn(String) -> String + Send + Sync>);

impl Cleaner {
    pub fn new(clean: impl Fn(String) -> String + Send + Sync + 'static) -> Self {
        Self(Arc::new(clean))
    }
}

impl fmt::Debug for Cleaner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cleaner")
    }
}

impl Spill {
    /// The text itself if it is small; otherwise a preview of it and the path of the file that holds it all.
    ///
    /// `stem` becomes part of the file's name, so that a person can tell the files apart.
    pub fn fit(&self, text: String, stem: &str) -> String {
        if text.len() <= self.threshold {
            return text;
        }
        let text = match &self.clean {
            Some(Cleaner(clean)) => clean(text),
            None => text,
        };
        match self.save(&text, stem) {
            Ok(path) => saved_notice(&text, &path),
            Err(error) => unsaved_notice(&text, &error),
        }
    }

    fn save(&self, text: &str, stem: &str) -> io::Result<PathBuf> {
        static NEXT: AtomicU64 = AtomicU64::new(1);

        let stem: String = stem
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .map(|c| c.to_ascii_lowercase())
            .take(STEM_CHARS)
            .collect();
        let stem = if stem.is_empty() { "text" } else { &stem };
        if let ToolFiles::Client(files) = &self.files {
            // Whether a name is free cannot be known without waiting; this one is no other process's and used once.
            let (number, process) = (NEXT.fetch_add(1, Ordering::Relaxed), std::process::id());
            let path = self.dir.join(format!("{process}{number:06}-copilot-tool-output-{stem}.txt"));
            let content = text.as_bytes().to_vec();
            files.put(FileRequest::Write { path: path.clone(), content, private: true })?;
            return Ok(path);
        }
        let folder = Folder::ensure_resolved(&self.dir)?;
        for _ in 0..NAME_ATTEMPTS {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let name = format!("{number}-copilot-tool-output-{stem}.txt");
            // Outputs may hold secrets, and the directory may be shared: only the owner can read the file.
            match folder.create_new(&name) {
                Ok(mut file) => {
                    if let Err(error) = file.write_all(text.as_bytes()) {
                        // A cut file would be read as if it were whole. That it cannot be removed either changes
                        // nothing for the caller, who hears of the write.
                        let _ = folder.remove(&name);
                        return Err(error);
                    }
                    return Ok(self.dir.join(name));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free file name"))
    }
}

fn saved_notice(text: &str, path: &Path) -> String {
    let size = kilobytes(text.len());
    let path = path.display();
    let mut notice = format!(
        "Output too large to read at once ({size}). Saved to: {path}\n\
         Consider using tools like grep (for searching), head/tail (for viewing start/end), view with view_range (for \
         specific sections), or jq (for JSON) to examine portions of the output.\n\n"
    );
    // One line is data, which its first characters tell as well as any. Recorded conversations fix this form.
    if !text.contains('\n') {
        let head = head_chars(text, PREVIEW_CHARS);
        let _ = write!(notice, "Preview (first {PREVIEW_CHARS} chars):\n{head}");
        return notice;
    }
    let (head, middle, tail) = ends(text);
    let (head_chars, tail_chars) = (head.chars().count(), tail.chars().count());
    let left_out = kilobytes(middle.len());
    let lines = memchr::memchr_iter(b'\n', middle.as_bytes()).count();
    let _ = write!(
        notice,
        "Preview (first {head_chars} chars):\n{head}\n\
         [... {lines} lines ({left_out}) left out; they are in the file ...]\n\n\
         Preview (last {tail_chars} chars):\n{tail}"
    );
    notice
}

/// Head, middle and tail of a text, cut between lines where one ends in the outer half of the room.
///
/// The two ends share out what there is when the text is hardly longer than both.
fn ends(text: &str) -> (&str, &str, &str) {
    let count = text.chars().count();
    // The threshold may be smaller than the head and the tail.
    let (head, tail) = match count <= HEAD_CHARS + TAIL_CHARS {
        true => (count / 6, count / 3),
        false => (HEAD_CHARS, TAIL_CHARS),
    };
    let head = head_chars(text, head);
    let head = match head.rfind('\n') {
        Some(newline) if newline >= head.len() / 2 => &head[..=newline],
        _ => head,
    };
    let rest = &text[head.len()..];
    let tail = tail_chars(rest, tail);
    let tail = match tail.find('\n') {
        Some(newline) if newline < tail.len() / 2 => &tail[newline + 1..],
        _ => tail,
    };
    (head, &rest[..rest.len() - tail.len()], tail)
}

fn unsaved_notice(text: &str, error: &io::Error) -> String {
    let size = kilobytes(text.len());
    let head = &text[..text.floor_char_boundary(UNSAVED_END_BYTES)];
    let tail_start = text.ceil_char_boundary(text.len().saturating_sub(UNSAVED_END_BYTES)).max(head.len());
    let tail = &text[tail_start..];
    let left_out = text.len() - head.len() - tail.len();
    format!(
        "Output too large to read at once ({size}), and it could not be saved to a file: {error}.\n\n\
         {head}\n[... {left_out} bytes left out ...]\n{tail}"
    )
}

/// A size as the notices write it: `106.3 KB`.
pub(crate) fn kilobytes(bytes: usize) -> String {
    format!("{:.1} KB", bytes as f64 / 1024.0)
}

fn head_chars(text: &str, count: usize) -> &str {
    text.char_indices().nth(count).map_or(text, |(end, _)| &text[..end])
}

fn tail_chars(text: &str, count: usize) -> &str {
    match count.checked_sub(1).and_then(|last| text.char_indices().nth_back(last)) {
        Some((start, _)) => &text[start..],
        None if count == 0 => "",
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn spill(dir: &Path) -> Spill {
        Spill { dir: dir.to_path_buf(), threshold: 1000, clean: None, files: ToolFiles::Here }
    }

    fn saved_path(notice: &str) -> PathBuf {
        let line = notice.lines().next().unwrap();
        PathBuf::from(line.split_once("Saved to: ").unwrap().1)
    }

    #[test]
    fn a_text_at_the_threshold_stays_as_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let text = "x".repeat(1000);
        assert_eq!(spill(dir.path()).fit(text.clone(), "bash"), text);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_larger_text_is_saved_whole_and_shown_by_its_ends() {
        let check = |text: String, expected: &[&str]| {
            let dir = tempfile::tempdir().unwrap();
            let notice = spill(&dir.path().join("not/there/yet")).fit(text.clone(), "bash");
            for part in expected {
                assert!(notice.contains(part), "{part:?} is not in {notice}");
            }
            assert!(notice.ends_with(expected.last().unwrap()));
            assert_eq!(fs::read_to_string(saved_path(&notice)).unwrap(), text);
        };
        let lines = |from: usize, to: usize| (from..=to).map(|n| format!("{n}\n")).collect::<String>();
        check(
            lines(1, 20_000),
            &[
                "Output too large to read at once (106.3 KB). Saved to: ",
                &format!(
                    "Preview (first 2000 chars):\n{}\n[... 18807 lines (100.5 KB) left out; they are in the file ...]\n",
                    lines(1, 527)
                ),
                &format!("\nPreview (last 3996 chars):\n{}", lines(19_335, 20_000)),
            ],
        );
        // Lines that are longer than the room are cut by characters.
        let long = format!("{0}\n{0}\n{0}", "ä".repeat(5_000));
        check(
            long,
            &[
                &format!("Preview (first 2000 chars):\n{}\n[", "ä".repeat(2_000)),
                &format!("Preview (last 4000 chars):\n{}", "ä".repeat(4_000)),
            ],
        );
        // A text shorter than both ends together is shown neither whole nor twice.
        let short = format!("{}\n{}", "x".repeat(600), "y".repeat(599));
        check(short, &["first 200 chars", &format!("last 400 chars):\n{}", "y".repeat(400))]);
    }

    #[test]
    fn a_text_of_one_line_is_shown_by_its_first_characters() {
        let dir = tempfile::tempdir().unwrap();
        let notice = spill(dir.path()).fit("ä".repeat(1024), "bash");
        let preview = notice.split_once("Preview (first 500 chars):\n").unwrap().1;
        assert_eq!(preview, "ä".repeat(500));
    }

    proptest::proptest! {
        #[test]
        fn the_ends_and_the_middle_are_the_text(text in "[a\n\u{e9}]{0,9000}") {
            let (head, middle, tail) = ends(&text);
            proptest::prop_assert_eq!([head, middle, tail].concat(), text);
        }
    }

    #[test]
    fn two_texts_of_one_stem_go_to_two_files() {
        let dir = tempfile::tempdir().unwrap();
        let spill = spill(dir.path());
        let first = saved_path(&spill.fit("a".repeat(2000), "bash"));
        let second = saved_path(&spill.fit("b".repeat(2000), "bash"));
        assert_ne!(first, second);
        assert_eq!(fs::read_to_string(first).unwrap(), "a".repeat(2000));
    }

    #[test]
    fn a_stem_cannot_lead_out_of_the_directory() {
        let dir = tempfile::tempdir().unwrap();
        let path = saved_path(&spill(dir.path()).fit("a".repeat(2000), "../../etc/Pass wd"));
        assert_eq!(path.parent(), Some(dir.path()));
        assert!(path.to_string_lossy().ends_with("-copilot-tool-output-etcpasswd.txt"), "{path:?}");
    }

    #[test]
    fn a_text_that_cannot_be_saved_keeps_its_ends() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("occupied");
        fs::write(&file, "").unwrap();
        let text = format!("start{}end", "é".repeat(20_000));
        let notice = spill(&file).fit(text, "bash");
        assert!(notice.contains("could not be saved"), "{notice}");
        assert!(notice.contains("\n\nstart") && notice.ends_with("end"));
        assert!(notice.len() < 10_000);
    }

    #[test]
    fn a_text_is_not_saved_through_a_link() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("outside")).unwrap();
        for (link, spilled) in [("files", "files"), ("above", "above/files")] {
            std::os::unix::fs::symlink(dir.path().join("outside"), dir.path().join(link)).unwrap();
            let notice = spill(&dir.path().join(spilled)).fit("x".repeat(2000), "bash");
            assert!(notice.contains("is a link or leads through one"), "{notice}");
        }
        assert_eq!(fs::read_dir(dir.path().join("outside")).unwrap().count(), 0);
    }

    #[test]
    fn a_saved_text_is_private() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = saved_path(&spill(dir.path()).fit("a".repeat(2000), "bash"));
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
