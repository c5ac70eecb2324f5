//! Outputs too large for the model's context: saved to a file, replaced by a preview.
//!
//! The fixed phrases and the form of the file names are those that recorded conversations replay against.

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hangar_disk::Folder;
use hangar_files::FileRequest;

use crate::tool_files::ToolFiles;

/// Bytes of a text that are still shown whole, unless configured.
pub const DEFAULT_THRESHOLD: usize = 20 * 1024;

/// Characters of a saved text that are shown.
const PREVIEW_CHARS: usize = 500;

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
    let preview = head_chars(text, PREVIEW_CHARS);
    format!(
        "Output too large to read at once ({size}). Saved to: {path}\n\
         Consider using tools like grep (for searching), head/tail (for viewing start/end), view with view_range (for \
         specific sections), or jq (for JSON) to examine portions of the output.\n\n\
         Preview (first {PREVIEW_CHARS} chars):\n{preview}"
    )
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
    fn a_larger_text_is_saved_whole_and_previewed_by_characters() {
        let dir = tempfile::tempdir().unwrap();
        let text = "ä".repeat(1024);
        let notice = spill(&dir.path().join("not/there/yet")).fit(text.clone(), "bash");
        assert!(notice.starts_with("Output too large to read at once (2.0 KB). Saved to: "), "{notice}");
        let preview = notice.split_once("Preview (first 500 chars):\n").unwrap().1;
        assert_eq!(preview, "ä".repeat(500));
        assert_eq!(fs::read_to_string(saved_path(&notice)).unwrap(), text);
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
