//! Notes of models about repositories, for the portal.

use std::path::{Path, PathBuf};

use hangar_portal::memory::{MemoryHost, MemoryNote, RepositoryMemory};
use hangar_tools::memory::{Memory, Note};

/// The notes in a home.
pub(super) struct HomeMemory {
    pub(super) home: PathBuf,
}

impl MemoryHost for HomeMemory {
    fn memories(&self) -> Result<Vec<RepositoryMemory>, String> {
        let shown = |memory: Memory| {
            let repository = memory.repository().to_owned();
            let notes = memory.notes().map_err(|error| format!("the notes about {repository}: {error}"))?;
            let note =
                |Note { id, subject, fact, citations }: Note| MemoryNote { id, subject, fact, citations };
            Ok(RepositoryMemory { repository, notes: notes.into_iter().map(note).collect() })
        };
        let mut all: Vec<RepositoryMemory> =
            Memory::all(&self.home).into_iter().map(shown).collect::<Result<_, String>>()?;
        all.retain(|memory| !memory.notes.is_empty());
        Ok(all)
    }

    fn edit(&self, repository: &str, id: u64, fact: &str) -> Result<bool, String> {
        self.changing(repository, |memory| memory.edit(id, fact))
    }

    fn delete(&self, repository: &str, id: u64) -> Result<bool, String> {
        self.changing(repository, |memory| memory.delete(id))
    }
}

impl HomeMemory {
    /// Changes the notes about a repository, if there are any: a name that is none leaves no file behind.
    fn changing(
        &self,
        repository: &str,
        change: impl FnOnce(&Memory) -> std::io::Result<bool>,
    ) -> Result<bool, String> {
        let memory = Memory::of(&self.home, Path::new(repository));
        match Memory::all(&self.home).iter().any(|known| known.repository() == repository) {
            true => change(&memory).map_err(|error| error.to_string()),
            false => Ok(false),
        }
    }
}
