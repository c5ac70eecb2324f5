//! `hangar memory`: the notes that the model keeps about repositories.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::{Args, Subcommand};
use hangar_tools::memory::{Memory, Note};
use serde_json::json;

use super::print_line;
use crate::exit::Exit;
use crate::settings::Settings;
use crate::workspace::git::Repository;

#[derive(Debug, Subcommand)]
pub(crate) enum MemorySubcommand {
    /// List the notes about this repository, or about all with --all
    List {
        /// List the notes about all repositories
        #[arg(long)]
        all: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        place: Place,
    },
    /// Show a note
    Show {
        id: u64,
        #[command(flatten)]
        place: Place,
    },
    /// Replace the text of a note
    Edit {
        id: u64,
        fact: String,
        #[command(flatten)]
        place: Place,
    },
    /// Delete a note
    Delete {
        id: u64,
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Place {
    /// Directory of the repository, instead of the current one
    #[arg(short = 'C', long, value_name = "DIRECTORY")]
    directory: Option<PathBuf>,
}

impl Place {
    fn memory(&self, settings: &Settings) -> Result<Memory> {
        let cwd = std::env::current_dir().context("the working directory cannot be read")?;
        let directory = cwd.join(self.directory.as_deref().unwrap_or(Path::new(".")));
        let directory =
            directory.canonicalize().with_context(|| format!("{} cannot be read", directory.display()))?;
        Ok(of_directory(settings, &directory))
    }
}

/// Memory of the repository that a directory is in, or of the directory itself.
pub(crate) fn of_directory(settings: &Settings, directory: &Path) -> Memory {
    let repository = Repository::find(directory);
    let root = repository.as_ref().map_or(directory, |repository| &repository.root);
    Memory::of(&settings.home, root)
}

pub(crate) fn run(settings: &Settings, command: MemorySubcommand) -> Result<Exit> {
    let missing =
        |id: u64| format!("there is no note {id} about this repository; `hangar memory list` lists them");
    match command {
        MemorySubcommand::List { all, json, place } => {
            let memories = if all { Memory::all(&settings.home) } else { vec![place.memory(settings)?] };
            list(&memories, json)?;
        }
        MemorySubcommand::Show { id, place } => {
            let notes = place.memory(settings)?.notes()?;
            let Some(note) = notes.iter().find(|note| note.id == id) else { bail!(missing(id)) };
            print_line(&format!("{}: {}", note.subject, note.fact))?;
            if !note.citations.is_empty() {
                print_line(&format!("see {}", note.citations))?;
            }
        }
        MemorySubcommand::Edit { id, fact, place } => {
            if !place.memory(settings)?.edit(id, &fact)? {
                bail!(missing(id));
            }
            print_line(&format!("Note {id} changed."))?;
        }
        MemorySubcommand::Delete { id, place } => {
            if !place.memory(settings)?.delete(id)? {
                bail!(missing(id));
            }
            print_line(&format!("Note {id} deleted."))?;
        }
    }
    Ok(Exit::Done)
}

fn list(memories: &[Memory], json: bool) -> Result<()> {
    let mut told = Vec::new();
    for memory in memories {
        let notes = memory.notes().with_context(|| format!("the notes about {}", memory.repository()))?;
        told.push((memory.repository(), notes));
    }
    if json {
        let told: Vec<_> = told
            .iter()
            .map(|(repository, notes)| json!({ "repository": repository, "notes": notes }))
            .collect();
        return print_line(&serde_json::to_string_pretty(&told)?);
    }
    if told.iter().all(|(_, notes)| notes.is_empty()) {
        return print_line("There are no notes. The model keeps them if the feature `memory` is on.");
    }
    for (repository, notes) in told.iter().filter(|(_, notes)| !notes.is_empty()) {
        print_line(repository)?;
        for Note { id, subject, fact, .. } in notes {
            print_line(&format!("  {id:>4}  {subject}: {fact}"))?;
        }
    }
    Ok(())
}
