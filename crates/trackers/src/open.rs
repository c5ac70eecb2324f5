//! Opens the tracker that a workflow names.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hangar_workflow::config::TrackerConfig;
use hangar_workflow::reactions::{FORGES, PullConfig, PullMode};
use serde_json::Value;

use crate::error::{TrackerError, TrackerErrorKind};
use crate::file::FileTracker;
use crate::gitea::{GiteaForge, GiteaTracker};
use crate::github::{AppTokens, GitHubForge, GitHubTracker};
use crate::gitlab::{GitLabForge, GitLabTracker};
use crate::jira::JiraTracker;
use crate::linear::LinearTracker;
use crate::markdown::MarkdownTracker;
use crate::{Credentials, Forge, Tracker};

/// Kinds of trackers that can be opened.
pub const KINDS: &[&str] = &["file", "markdown", "github", "gitlab", "gitea", "forgejo", "jira", "linear"];

/// Opens a tracker. `directories` are those that a relative path may begin at, the first in which it exists counts.
pub fn open(config: &TrackerConfig, directories: &[&Path]) -> Result<Arc<dyn Tracker>, TrackerError> {
    match config.kind.as_str() {
        "file" => {
            let path = path(config, directories)?;
            match path.is_dir() {
                true => Ok(Arc::new(MarkdownTracker::new(path))),
                false => Ok(Arc::new(FileTracker::new(path))),
            }
        }
        "markdown" => Ok(Arc::new(MarkdownTracker::new(path(config, directories)?))),
        "github" => Ok(Arc::new(GitHubTracker::new(config)?)),
        "gitlab" => Ok(Arc::new(GitLabTracker::new(config)?)),
        "gitea" | "forgejo" => Ok(Arc::new(GiteaTracker::new(config)?)),
        "jira" => Ok(Arc::new(JiraTracker::new(config)?)),
        "linear" => Ok(Arc::new(LinearTracker::new(config)?)),
        kind => Err(TrackerError::new(
            TrackerErrorKind::UnsupportedKind,
            format!("the tracker `{kind}` is not supported; these are: {}", KINDS.join(", ")),
        )),
    }
}

/// Opens the forge of pull requests. `None` if the workflow has none.
pub fn open_forge(config: &PullConfig) -> Result<Option<Arc<dyn Forge>>, TrackerError> {
    match (config.mode, config.provider.as_str()) {
        (PullMode::Off, _) => Ok(None),
        (_, "github") => Ok(Some(Arc::new(GitHubForge::new(config)?))),
        (_, "gitlab") => Ok(Some(Arc::new(GitLabForge::new(config)?))),
        (_, "gitea" | "forgejo") => Ok(Some(Arc::new(GiteaForge::new(config)?))),
        (_, kind) => Err(TrackerError::new(
            TrackerErrorKind::UnsupportedKind,
            format!("the forge `{kind}` is not supported; these are: {}", FORGES.join(", ")),
        )),
    }
}

/// Tokens of the forge that change. `None` if it has one key.
pub fn open_tokens(config: &PullConfig) -> Result<Option<Arc<dyn Credentials>>, TrackerError> {
    match &config.app {
        Some(app) if config.mode != PullMode::Off => {
            Ok(Some(Arc::new(AppTokens::new(app, &config.endpoint, &config.project)?)))
        }
        _ => Ok(None),
    }
}

fn path(config: &TrackerConfig, directories: &[&Path]) -> Result<PathBuf, TrackerError> {
    let path = config.settings.get("path").and_then(Value::as_str).filter(|path| !path.is_empty());
    let path = path.map(Path::new).ok_or_else(|| {
        let kind = &config.kind;
        TrackerError::new(
            TrackerErrorKind::InvalidConfig,
            format!("`{kind}.path` is missing; it names the issues"),
        )
    })?;
    let mut places = directories.iter().map(|directory| directory.join(path));
    let found = places.find(|place| place.exists());
    Ok(found.unwrap_or_else(|| directories.first().map_or_else(|| path.to_owned(), |first| first.join(path))))
}
