//! Grants: the limits of a permitted call.
//!
//! The analysis of a shell line decides whether the user is asked. It does not guarantee what the line does, so the
//! kernel confines a command that ran without approval.

use std::path::PathBuf;

use hangar_protocol::permission::{PermissionRequest, ShellCommand, ShellRequest};

use super::{Policy, Rule, texts};
use crate::tool::AccessRequest;

/// Turns the request of a command that was blocked into the question whether it may run without limits. The reason is
/// the command's own output and may be forged, so the question explains what approval means.
pub fn ask_without_limits(request: &mut PermissionRequest, denied: &str) {
    if let PermissionRequest::Shell(shell) = request {
        shell.warning = Some(texts::was_kept_from(denied));
        shell.commands.iter_mut().for_each(|command| command.read_only = false);
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grant {
    /// No limits: the user approved this call, or all calls.
    Full,
    /// The limits within which no approval is needed.
    Limited(Box<CommandLimits>),
}

/// Limits of a command.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CommandLimits {
    /// Directories that may be read; everything if absent.
    pub directories: Option<Vec<PathBuf>>,
    pub writes: Writes,
    pub git: GitWrites,
    /// Whether the network is reachable.
    pub network: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Writes {
    Nothing,
    /// Only in these directories, or these files.
    Within(Vec<PathBuf>),
    Anywhere,
}

/// Access to the `.git` directory of a repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GitWrites {
    Nothing,
    /// Commits, branches, the index; neither settings nor hooks, which are programs that run later.
    Content,
    /// Settings too, but not hooks.
    Settings,
}

/// Subcommands of Git that write the upstream of a branch into the repository's settings, and cannot name programs
/// there.
const GIT_SETTINGS: &[&str] = &["branch", "checkout", "pull", "push", "switch"];

/// Commands whose purpose is to reach servers that no URL on their line names. A rule that allows one by name allows
/// the network too.
const NETWORKED: &[&str] = &[
    "bun",
    "bundle",
    "cargo",
    "composer",
    "deno",
    "dotnet",
    "gem",
    "gh",
    "git clone",
    "git fetch",
    "git ls-remote",
    "git pull",
    "git push",
    "git remote",
    "git submodule",
    "go",
    "gradle",
    "gradlew",
    "helm",
    "mvn",
    "mvnw",
    "npm",
    "npx",
    "pip",
    "pip3",
    "pnpm",
    "poetry",
    "terraform",
    "uv",
    "yarn",
];

impl Policy {
    /// Grant of a call that this policy allows.
    pub fn grant(&self, access: &AccessRequest) -> Grant {
        match &access.request {
            PermissionRequest::Shell(shell) if !self.allow_all_tools => {
                Grant::Limited(Box::new(self.limits(shell, access)))
            }
            // Other tools touch only what their inspection reported.
            _ => Grant::Full,
        }
    }

    fn limits(&self, shell: &ShellRequest, access: &AccessRequest) -> CommandLimits {
        let directories = (!self.allow_all_paths).then(|| self.roots.clone());
        let ruled: Vec<&ShellCommand> =
            shell.commands.iter().filter(|command| !command.read_only || shell.opaque).collect();
        if ruled.is_empty() && !shell.has_write_file_redirection {
            return CommandLimits {
                directories,
                writes: Writes::Nothing,
                git: GitWrites::Nothing,
                network: false,
            };
        }
        let writes = match &directories {
            None => Writes::Anywhere,
            // Rules about single files allow a redirection to them and nothing else.
            Some(_) if ruled.is_empty() && !self.writes_anything() => Writes::Within(access.writes.clone()),
            Some(directories) => Writes::Within(directories.clone()),
        };
        let git = ruled.iter().map(|command| git_writes(&command.identifier));
        // Any other command on the line would get Git's rights.
        let only_git = ruled.iter().all(|command| command.identifier.starts_with("git "));
        let git = if only_git { git.min() } else { git.max().map(|git| git.min(GitWrites::Content)) };
        let named = |identifier: &str| {
            self.allow.iter().any(|rule| *rule != Rule::Shell(None) && rule.matches_command(identifier))
                || self.approves_command(identifier)
        };
        let networked = |command: &&ShellCommand| {
            NETWORKED.iter().any(|name| is_or_extends(&command.identifier, name))
                && named(&command.identifier)
        };
        // With these, Git runs a program of the line's choice instead of its own.
        let names_program = shell.full_command_text.split_whitespace().any(|word| {
            ["--rece", "--upl", "--exe", "--ex="]
                .iter()
                .any(|flag| word.trim_matches(['"', '\'']).starts_with(flag))
        });
        // Settings may be changed only by lines without quotes, variables or other constructs that hide what runs.
        let is_plain =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '/' | '.' | '_' | '-' | ':' | '@');
        let keeps_settings = names_program || !shell.full_command_text.chars().all(is_plain);
        let git = git.map(|git| if keeps_settings { git.min(GitWrites::Content) } else { git });
        // URLs on the line were allowed; otherwise the user would have been asked.
        let network = self.allow_all_urls
            || !shell.possible_urls.is_empty()
            || (!names_program && ruled.iter().any(networked));
        CommandLimits { directories, writes, git: git.unwrap_or(GitWrites::Nothing), network }
    }
}

fn git_writes(identifier: &str) -> GitWrites {
    match identifier.strip_prefix("git ") {
        None => GitWrites::Nothing,
        Some(command) if GIT_SETTINGS.contains(&command) => GitWrites::Settings,
        Some(_) => GitWrites::Content,
    }
}

/// `npm` and `npm install`, but not `npmx`.
fn is_or_extends(identifier: &str, name: &str) -> bool {
    identifier.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
}

#[cfg(test)]
mod tests;
