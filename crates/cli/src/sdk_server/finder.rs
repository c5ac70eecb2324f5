//! Where people configure things, for clients that ask without a session.

use std::path::{Path, PathBuf};

use hangar_custom::skills::SkillPlaces;
use hangar_server::{
    Finder, FoundHooks, InstructionKind, InstructionLocation, InstructionSource, InstructionTarget,
    OpenError, TargetKind,
};

use super::instructions;
use crate::args::RunArgs;
use crate::custom::{self, Customs};
use crate::plan;
use crate::settings::Settings;
use crate::workspace::git::Repository;
use crate::workspace::instructions::{PROJECT_TARGETS, Target, USER_TARGETS};

pub(super) struct ConfiguredPlaces {
    settings: Settings,
    customs: Customs,
    /// Whether sessions of this server read instructions at all.
    reads_instructions: bool,
}

impl ConfiguredPlaces {
    pub(super) fn new(settings: Settings, args: &RunArgs) -> Self {
        Self { settings, customs: plan::customs(args), reads_instructions: !args.no_custom_instructions }
    }

    /// The project, else the folder of the user's own things, which is no project.
    fn directory(&self, project: Option<&Path>) -> PathBuf {
        let directory = project.unwrap_or(&self.settings.home);
        // A directory that cannot be made absolute is one in which nothing will be found.
        std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
    }
}

impl Finder for ConfiguredPlaces {
    fn places(&self, project: Option<&Path>) -> SkillPlaces {
        let cwd = self.directory(project);
        let repository = project.and_then(|_| Repository::find(&cwd));
        custom::skill_places(&self.settings, &self.customs, &cwd, repository.as_ref())
    }

    fn hooks(&self, project: Option<&Path>) -> FoundHooks {
        let cwd = self.directory(project);
        let repository = project.and_then(|_| Repository::find(&cwd));
        let (files, disabled) = custom::hook_files(&self.settings, &self.customs, &cwd, repository.as_ref());
        FoundHooks { files, disabled }
    }

    fn instructions(&self, project: Option<&Path>) -> Result<Vec<InstructionSource>, OpenError> {
        let directory = self.directory(project);
        if !self.reads_instructions || !directory.is_dir() {
            return Ok(Vec::new());
        }
        let mut sources = instructions::sources(&self.settings, Some(&directory), &[])
            .map_err(|error| OpenError(format!("{error:#}")))?;
        sources.retain(|source| (source.kind == InstructionKind::Home) == project.is_none());
        Ok(sources)
    }

    fn instruction_targets(&self, project: Option<&Path>) -> Vec<InstructionTarget> {
        let directory = self.directory(project);
        let (base, location, targets) = match project {
            None => (directory, InstructionLocation::User, USER_TARGETS),
            Some(_) => {
                let root = Repository::find(&directory).map(|repository| repository.root);
                (root.unwrap_or(directory), InstructionLocation::Repository, PROJECT_TARGETS)
            }
        };
        let tell = |(index, target): (usize, &Target)| {
            let (name, kind) = match target {
                Target::File(name) => (name, TargetKind::File),
                Target::Directory(name) => (name, TargetKind::Directory),
            };
            InstructionTarget { path: base.join(name), location, kind, preferred_for_creation: index == 0 }
        };
        targets.iter().enumerate().map(tell).collect()
    }
}
