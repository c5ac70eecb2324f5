//! Notes that models keep about repositories, as the portal shows and changes them. The host hands them in.

use schemars::JsonSchema;
use serde::Serialize;

/// Notes about all repositories of the machine.
pub trait MemoryHost: Send + Sync {
    fn memories(&self) -> Result<Vec<RepositoryMemory>, String>;

    /// Replaces the fact of a note. False if there is no such note.
    fn edit(&self, repository: &str, id: u64, fact: &str) -> Result<bool, String>;

    /// Deletes a note. False if there is no such note.
    fn delete(&self, repository: &str, id: u64) -> Result<bool, String>;
}

/// Notes about one repository.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RepositoryMemory {
    /// Root of the repository.
    pub repository: String,
    pub notes: Vec<MemoryNote>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct MemoryNote {
    pub id: u64,
    pub subject: String,
    pub fact: String,
    /// Where the fact can be verified; may be empty.
    pub citations: String,
}
