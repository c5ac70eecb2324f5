//! Discovery of skills, agents, hooks and instructions at the documented paths, for clients that ask before there is a
//! session.

use std::path::{Path, PathBuf};

use hangar_custom::hooks::{HookFiles, ListedHook};
use hangar_custom::skills::SkillPlaces;
use serde::Serialize;

use crate::opener::{InstructionLocation, InstructionSource, OpenError};

/// Knows the places. Without a project it is about what holds wherever the user works, with one about what that brings.
pub trait Finder: Send + Sync {
    /// Directories of skills and agents.
    fn places(&self, project: Option<&Path>) -> SkillPlaces;

    /// The hooks of files.
    fn hooks(&self, project: Option<&Path>) -> FoundHooks;

    fn instructions(&self, project: Option<&Path>) -> Result<Vec<InstructionSource>, OpenError>;

    /// Paths of instruction files, by descending precedence.
    fn instruction_targets(&self, project: Option<&Path>) -> Vec<InstructionTarget>;
}

pub struct FoundHooks {
    pub files: HookFiles,
    /// Whether all hooks except those of the machine are disabled.
    pub disabled: bool,
    /// Hooks of the project that are not read: its directory is not trusted.
    pub untrusted: Vec<ListedHook>,
}

/// A place for instructions, which need not be there yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstructionTarget {
    pub path: PathBuf,
    pub location: InstructionLocation,
    pub kind: TargetKind,
    /// Whether new instructions should be created there.
    pub preferred_for_creation: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetKind {
    File,
    /// Of files that are about a part of the project each.
    Directory,
}
