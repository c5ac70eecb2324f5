//! Configured skills, agents and hooks, for clients that ask without a session.

use std::path::{Path, PathBuf};

use hangar_custom::skills::SkillPlaces;
use hangar_server::{
    Finder, FoundHooks, InstructionKind, InstructionLocation, InstructionSource, InstructionTarget,
    OpenError, TargetKind,
};
use hangar_spec::{CustomizationOptions, InstructionOptions};

use super::instructions;
use crate::args::RunArgs;
use crate::compose::{Extensions, working_dir};
use crate::custom::ConfigSources;
use crate::flags;
use crate::settings::Settings;
use crate::workspace::git::Repository;
use crate::workspace::instructions::{PROJECT_TARGETS, Target, USER_TARGETS};

pub(super) struct ConfiguredPlaces {
    settings: Settings,
    extensions: Extensions,
    options: CustomizationOptions,
    /// Whether sessions of this server read instructions at all.
    reads_instructions: bool,
}

impl ConfiguredPlaces {
    pub(super) fn new(settings: Settings, args: &RunArgs) -> Self {
        Self {
            settings,
            extensions: flags::extensions(args),
            options: CustomizationOptions { discovery: Some(true), ..CustomizationOptions::default() },
            reads_instructions: !args.input.no_custom_instructions,
        }
    }

    fn sources<'a>(&'a self, cwd: &'a Path, repository: Option<&'a Repository>) -> ConfigSources<'a> {
        let Self { settings, extensions, options, .. } = self;
        ConfigSources { settings, extensions, options, cwd, repository }
    }

    /// The project, else the user's own folder, which is not a project.
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
        self.sources(&cwd, repository.as_ref()).skill_places()
    }

    fn hooks(&self, project: Option<&Path>) -> FoundHooks {
        let cwd = self.directory(project);
        let repository = project.and_then(|_| Repository::find(&cwd));
        let (files, disabled, untrusted) = self.sources(&cwd, repository.as_ref()).hook_files();
        FoundHooks { files, disabled, untrusted }
    }

    fn instructions(&self, project: Option<&Path>) -> Result<Vec<InstructionSource>, OpenError> {
        let directory = self.directory(project);
        if !self.reads_instructions || !directory.is_dir() {
            return Ok(Vec::new());
        }
        let directory = working_dir(Some(&directory)).map_err(|error| OpenError(format!("{error:#}")))?;
        let options = InstructionOptions::default();
        let mut sources = instructions::sources(&self.settings, &options, &directory);
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
