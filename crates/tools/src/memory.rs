//! Memory of a repository: notes that the model keeps for later sessions, one file per repository in the home folder. People see,
//! change and delete them; every new note needs a permission.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::tool::{
    Access, AccessRequest, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec,
};
use hangar_protocol::permission::PermissionRequest;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// Name of the tool.
pub const STORE_MEMORY: &str = "store_memory";
/// Most notes of a repository. The oldest makes room for a new one.
const MAX_NOTES: usize = 200;
/// Longest fact, in bytes.
const MAX_FACT: usize = 1000;
/// Most bytes of notes that the model is shown.
const MAX_SHOWN: usize = 8 << 10;
/// Largest file that is read.
const MAX_FILE: u64 = 1 << 20;

/// A note.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub id: u64,
    pub subject: String,
    pub fact: String,
    /// Where the fact can be verified.
    #[serde(default)]
    pub citations: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Notes {
    /// Root of the repository.
    repository: String,
    next_id: u64,
    notes: Vec<Note>,
}

/// The notes of one repository.
#[derive(Debug, Clone)]
pub struct Memory {
    path: PathBuf,
    repository: String,
}

impl Memory {
    /// Memory of the repository with this root.
    pub fn of(home: &Path, root: &Path) -> Self {
        let repository = root.display().to_string();
        let name = file_name(&repository);
        Self { path: home.join("memory").join(format!("{name}.json")), repository }
    }

    /// Memories of all repositories that have one.
    pub fn all(home: &Path) -> Vec<Self> {
        let entries = std::fs::read_dir(home.join("memory")).into_iter().flatten().flatten();
        let files = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|end| end == "json"));
        let mut all: Vec<Self> = files
            .filter_map(|path| {
                let repository = read(&path).ok()?.repository;
                Some(Self { path, repository })
            })
            .collect();
        all.sort_by(|one, other| one.repository.cmp(&other.repository));
        all
    }

    /// Root of the repository.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    pub fn notes(&self) -> io::Result<Vec<Note>> {
        Ok(read(&self.path)?.notes)
    }

    /// Adds a note and returns its id. A fact that is known already keeps its id.
    pub fn add(&self, subject: &str, fact: &str, citations: &str) -> io::Result<u64> {
        self.change(|notes| {
            if let Some(known) = notes.notes.iter().find(|known| known.fact == fact) {
                return known.id;
            }
            notes.next_id += 1;
            let note = Note {
                id: notes.next_id,
                subject: subject.to_owned(),
                fact: fact.to_owned(),
                citations: citations.to_owned(),
            };
            notes.notes.push(note);
            let excess = notes.notes.len().saturating_sub(MAX_NOTES);
            notes.notes.drain(..excess);
            notes.next_id
        })
    }

    /// Replaces the fact of a note. False if there is no such note.
    pub fn edit(&self, id: u64, fact: &str) -> io::Result<bool> {
        self.change(|notes| {
            let note = notes.notes.iter_mut().find(|note| note.id == id);
            note.map(|note| note.fact = fact.to_owned()).is_some()
        })
    }

    /// Deletes a note. False if there is no such note.
    pub fn delete(&self, id: u64) -> io::Result<bool> {
        self.change(|notes| {
            let before = notes.notes.len();
            notes.notes.retain(|note| note.id != id);
            notes.notes.len() < before
        })
    }

    fn change<T>(&self, change: impl FnOnce(&mut Notes) -> T) -> io::Result<T> {
        let lock = self.path.with_extension("lock");
        if let Some(dir) = self.path.parent() {
            hangar_disk::ensure_dir(dir)?;
        }
        let _lock: File = {
            let file = hangar_disk::private().create(true).truncate(false).write(true).open(lock)?;
            file.lock()?;
            file
        };
        let mut notes = read(&self.path)?;
        let changed = change(&mut notes);
        notes.repository.clone_from(&self.repository);
        hangar_disk::keep(&self.path, serde_json::to_string_pretty(&notes)?)?;
        Ok(changed)
    }

    /// The notes as the model is shown them, the newest first; `None` if there are none.
    pub fn prompt(&self) -> Option<String> {
        let notes = self.notes().unwrap_or_default();
        let mut shown = String::new();
        for note in notes.iter().rev() {
            let citations =
                if note.citations.is_empty() { String::new() } else { format!(" ({})", note.citations) };
            let line = format!("- {}: {}{citations}\n", note.subject, note.fact);
            if shown.len() + line.len() > MAX_SHOWN {
                break;
            }
            shown.push_str(&line);
        }
        (!shown.is_empty()).then(|| {
            format!(
                "<repository_memory>\nNotes of earlier sessions about this repository. They may be out of date: verify one \
                 before you rely on it.\n{shown}</repository_memory>"
            )
        })
    }
}

/// A missing file has no notes.
fn read(path: &Path) -> io::Result<Notes> {
    match hangar_disk::read_text(path, MAX_FILE) {
        Ok(text) => Ok(serde_json::from_str(&text)?),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Notes::default()),
        Err(error) => Err(error),
    }
}

/// Name of the file of a repository: the last folder for people, and a number that tells folders of the same name apart.
fn file_name(repository: &str) -> String {
    // FNV-1a: short, stable, and nobody gains anything by a collision of their own folders.
    let hash = repository.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || letter == '-' { letter } else { '-' };
    let last: String =
        repository.rsplit('/').next().unwrap_or_default().chars().take(40).map(plain).collect();
    format!("{last}-{hash:016x}")
}

/// Tool by which the model keeps a note.
pub struct StoreMemory {
    memory: Memory,
    spec: Arc<ToolSpec>,
}

impl StoreMemory {
    pub fn new(memory: Memory) -> Self {
        let text = |about: &str| json!({ "type": "string", "description": about });
        let input = json!({
            "type": "object",
            "properties": {
                "subject": text("Topic in one to three words."),
                "fact": text("The fact in one sentence of at most 1000 characters."),
                "citations": text("Files and lines that show it, such as src/main.rs:12."),
                "reason": text("Why a later session will need it."),
            },
            "required": ["subject", "fact"],
        });
        let description = "Keeps a fact about this repository for later sessions. Store only what is stable, not obvious from \
                           the code, and useful for other tasks: conventions, commands that build and test, decisions. \
                           Store no secrets and nothing about the current task.";
        let spec = ToolSpec {
            name: STORE_MEMORY.to_owned(),
            title: Some("Storing memory".to_owned()),
            description: description.to_owned(),
            input: ToolSchema::function(input),
        };
        Self { memory, spec: Arc::new(spec) }
    }
}

/// Subject, fact and citations of a call.
fn arguments(call: &ToolInput) -> Result<(String, String, String), ToolOutcome> {
    let text = |name: &str| call.arguments[name].as_str().unwrap_or_default().trim().to_owned();
    let (subject, fact) = (text("subject"), text("fact"));
    if subject.is_empty() || fact.is_empty() {
        return Err(ToolOutcome::failure("\"subject\" and \"fact\": Required"));
    }
    if fact.len() > MAX_FACT {
        return Err(ToolOutcome::failure(format!("\"fact\" is longer than {MAX_FACT} characters")));
    }
    Ok((subject, fact.replace('\n', " "), text("citations")))
}

impl Tool for StoreMemory {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        let (_, fact, _) = arguments(call)?;
        let request = PermissionRequest::Memory { tool_call_id: Some(call.call_id.clone()), fact };
        Ok(Access::Needs(Box::new(AccessRequest { request, reads: Vec::new(), writes: Vec::new() })))
    }

    fn run(&self, call: ToolInput, _: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let memory = self.memory.clone();
        Box::pin(async move {
            let (subject, fact, citations) = match arguments(&call) {
                Ok(arguments) => arguments,
                Err(invalid) => return invalid,
            };
            match memory.add(&subject, &fact, &citations) {
                Ok(id) => ToolOutcome::success(format!("Memory stored as note {id} of this repository.")),
                Err(error) => ToolOutcome::failure(format!("the note cannot be stored: {error}")),
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_kept_per_repository_and_changed_by_their_ids() {
        let home = tempfile::tempdir().unwrap();
        let one = Memory::of(home.path(), Path::new("/src/one"));
        let other = Memory::of(home.path(), Path::new("/elsewhere/one"));
        assert_eq!(one.add("build", "make all builds it", "Makefile:1").unwrap(), 1);
        assert_eq!(one.add("build", "make all builds it", "").unwrap(), 1, "known already");
        assert_eq!(one.add("tests", "make check tests it", "").unwrap(), 2);
        assert_eq!(other.notes().unwrap(), []);
        assert!(one.edit(2, "make test tests it").unwrap());
        assert!(one.delete(1).unwrap() && !one.delete(1).unwrap());
        let facts: Vec<String> = one.notes().unwrap().into_iter().map(|note| note.fact).collect();
        assert_eq!(facts, ["make test tests it"]);
        assert_eq!(Memory::all(home.path()).iter().map(Memory::repository).collect::<Vec<_>>(), ["/src/one"]);
    }

    #[test]
    fn the_model_is_shown_the_newest_notes_within_a_bound() {
        let home = tempfile::tempdir().unwrap();
        let memory = Memory::of(home.path(), Path::new("/r"));
        assert_eq!(memory.prompt(), None);
        for number in 0..MAX_NOTES + 5 {
            memory.add("s", &format!("{number} {}", "x".repeat(200)), "").unwrap();
        }
        assert_eq!(memory.notes().unwrap().len(), MAX_NOTES);
        let shown = memory.prompt().unwrap();
        assert!(shown.len() < MAX_SHOWN + 300 && shown.contains("- s: 204 ") && !shown.contains("- s: 10 "));
    }
}
