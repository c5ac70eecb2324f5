//! Custom instruction files of a session, in the form that clients receive.

use std::path::Path;

use hangar_server::{InstructionKind, InstructionLocation, InstructionSource};
use hangar_spec::InstructionOptions;

use crate::compose;
use crate::settings::Settings;
use crate::workspace::git::Repository;

/// All files, including those that reach the model only when a matching file is touched.
pub(crate) fn sources(
    settings: &Settings,
    options: &InstructionOptions,
    cwd: &Path,
) -> Vec<InstructionSource> {
    let repository = Repository::find(cwd);
    let loaded = compose::load_instructions(settings, options, cwd, repository.as_ref());
    let root = repository.as_ref().map(|repository| repository.root.as_path());
    let project = Project { home: &settings.home, root, cwd };
    let mut sources = Vec::new();
    for block in &loaded.blocks {
        sources.extend(block.sources.iter().map(|path| project.source(path, block.text.clone())));
    }
    for nested in &loaded.nested {
        let source = project.source(&nested.path, content(&nested.path));
        sources.push(InstructionSource { kind: InstructionKind::NestedAgents, ..source });
    }
    for scoped in &loaded.scoped {
        let source = project.source(&scoped.path, content(&scoped.path));
        sources.push(InstructionSource {
            apply_to: Some(scoped.globs.clone()),
            description: scoped.description.clone(),
            ..source
        });
    }
    sources
}

/// Content of a file; empty if it was removed meanwhile.
fn content(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_default()
}

/// The kind of a project's file, which is in its name.
fn kind_of(path: &Path) -> InstructionKind {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("AGENTS.md" | "CLAUDE.md" | "GEMINI.md") => InstructionKind::Model,
        Some(name) if name.ends_with(".instructions.md") => InstructionKind::Vscode,
        _ => InstructionKind::Repo,
    }
}

/// Paths of a project's instruction files.
struct Project<'a> {
    home: &'a Path,
    root: Option<&'a Path>,
    cwd: &'a Path,
}

impl Project<'_> {
    fn source(&self, path: &Path, content: String) -> InstructionSource {
        let (kind, location, shown) = if path.starts_with(self.home) {
            (InstructionKind::Home, InstructionLocation::User, path)
        } else if let Some(shown) = self.root.and_then(|root| path.strip_prefix(root).ok()) {
            (kind_of(path), InstructionLocation::Repository, shown)
        } else {
            let shown = path.strip_prefix(self.cwd).unwrap_or(path);
            (kind_of(path), InstructionLocation::WorkingDirectory, shown)
        };
        let shown = shown.display().to_string();
        InstructionSource {
            id: shown.clone(),
            label: shown.clone(),
            source_path: shown,
            content,
            kind,
            location,
            apply_to: None,
            description: None,
        }
    }
}
