//! Sources of plugins and marketplaces: a repository of GitHub, a git URL, or a directory of this machine.

use std::path::{Component, Path, PathBuf};

use hangar_git::Revision;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_with::skip_serializing_none;
use sha2::{Digest, Sha256};

use crate::PluginError;

/// Longest source that is read.
const MAX_SOURCE: usize = 4096;

/// Where a plugin or a marketplace comes from, as it is stored.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "source", rename_all = "lowercase")]
pub enum Source {
    GitHub {
        /// `owner/repo`.
        repo: String,
        #[serde(rename = "ref")]
        reference: Option<String>,
        sha: Option<String>,
        /// Folder of the plugin in the repository.
        path: Option<String>,
    },
    Url {
        url: String,
        #[serde(rename = "ref")]
        reference: Option<String>,
        sha: Option<String>,
        path: Option<String>,
    },
    Local {
        path: PathBuf,
    },
}

/// A source to clone.
pub(crate) struct Remote {
    pub(crate) url: String,
    pub(crate) revision: Revision,
    pub(crate) path: Option<String>,
}

impl Source {
    /// Reads a source as people type it: a path, a URL, or a repository of GitHub.
    pub fn parse(text: &str, cwd: &Path) -> Result<Self, PluginError> {
        let text = text.trim();
        if text.is_empty() || text.len() > MAX_SOURCE || text.contains(char::is_control) {
            return Err(PluginError(format!("a source has 1 to {MAX_SOURCE} letters")));
        }
        let is_path = ["/", "./", "../", "~/"].iter().any(|start| text.starts_with(start))
            || matches!(text, "." | "..");
        if is_path {
            return Self::local(text, cwd);
        }
        let (plain, reference) = match text.split_once('#') {
            Some((plain, reference)) => (plain, Some(name_of_reference(reference)?)),
            None => (text, None),
        };
        let is_url = ["https://", "http://", "ssh://", "git://", "file://"]
            .iter()
            .any(|start| plain.starts_with(start));
        // `user@host:path`
        let is_scp =
            plain.split_once('@').is_some_and(|(_, rest)| rest.contains(':')) && !plain.contains("://");
        if is_url || is_scp {
            return Ok(Source::Url { url: plain.to_owned(), reference, sha: None, path: None });
        }
        let (repo, path) = match plain.split_once(':') {
            Some((repo, path)) => (repo, Some(inner_path(path)?)),
            None => (plain, None),
        };
        if is_repository(repo) {
            return Ok(Source::GitHub { repo: repo.to_owned(), reference, sha: None, path });
        }
        if cwd.join(text).is_dir() {
            return Self::local(text, cwd);
        }
        Err(PluginError(format!(
            "`{text}` is no source; use plugin@marketplace, owner/repo, a git URL or the path of a directory"
        )))
    }

    fn local(text: &str, cwd: &Path) -> Result<Self, PluginError> {
        let path = cwd.join(text);
        let path = path.canonicalize().map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                PluginError(format!("Local path does not exist: {}", path.display()))
            }
            _ => PluginError(format!("{} cannot be read: {error}", path.display())),
        })?;
        match path.is_dir() {
            true => Ok(Source::Local { path }),
            false => Err(PluginError(format!("{} is not a directory", path.display()))),
        }
    }

    /// Reads the source of a plugin in a marketplace: a folder of the marketplace, or an object.
    pub(crate) fn of_entry(entry: &Value, marketplace: &Path, base: &str) -> Result<Self, PluginError> {
        match entry {
            Value::String(path) => {
                let escapes = || PluginError(format!("Plugin path escapes marketplace directory: {path}"));
                let relative = inner_path(path).map_err(|_| escapes())?;
                let base = inner_path(base).map_err(|_| escapes())?;
                let plain = marketplace.join(&relative);
                let below = marketplace.join(&base).join(&relative);
                let folder = if below.is_dir() { below } else { plain };
                let missing =
                    || PluginError(format!("Plugin source directory not found: {}", folder.display()));
                let real = folder.canonicalize().map_err(|_| missing())?;
                let root = marketplace.canonicalize().map_err(|_| missing())?;
                match real.starts_with(root) {
                    true if real.is_dir() => Ok(Source::Local { path: real }),
                    true => Err(missing()),
                    false => Err(escapes()),
                }
            }
            Value::Object(_) => {
                let named = |name: &str| entry[name].as_str().map(str::to_owned);
                let path = named("path").map(|path| inner_path(&path)).transpose()?;
                let reference = named("ref").map(|name| name_of_reference(&name)).transpose()?;
                let sha = named("sha").or_else(|| named("commit"));
                if let Some(sha) = &sha
                    && !(sha.len() == 40 && sha.chars().all(|digit| digit.is_ascii_hexdigit()))
                {
                    return Err(PluginError(format!("`{sha}` is not the id of a commit")));
                }
                match (named("repo"), named("url")) {
                    (Some(repo), _) if is_repository(&repo) => {
                        Ok(Source::GitHub { repo, reference, sha, path })
                    }
                    (_, Some(url)) => match Source::parse(&url, marketplace)? {
                        Source::Url { url, .. } => Ok(Source::Url { url, reference, sha, path }),
                        other => Ok(other),
                    },
                    _ => Err(PluginError(format!("{entry} is not a source of a plugin"))),
                }
            }
            other => Err(PluginError(format!("{other} is not a source of a plugin"))),
        }
    }

    /// The repository to clone, or the directory of this machine.
    pub(crate) fn remote(&self) -> Result<Remote, &Path> {
        let of =
            |url: String, reference: &Option<String>, sha: &Option<String>, path: &Option<String>| Remote {
                url,
                revision: Revision { reference: reference.clone(), commit: sha.clone() },
                path: path.clone(),
            };
        match self {
            Source::GitHub { repo, reference, sha, path } => {
                Ok(of(format!("https://github.com/{repo}.git"), reference, sha, path))
            }
            Source::Url { url, reference, sha, path } => Ok(of(url.clone(), reference, sha, path)),
            Source::Local { path } => Err(path),
        }
    }

    /// Describes the source for people.
    pub fn describe(&self) -> String {
        match self {
            Source::GitHub { repo, .. } => format!("GitHub: {repo}"),
            Source::Url { url, .. } => format!("URL: {}", without_password(url)),
            Source::Local { path } => format!("Local: {}", path.display()),
        }
    }

    /// Hash that identifies the source: the same source has the same id.
    pub fn id(&self) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        let digest = Sha256::digest(text.as_bytes());
        digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
    }
}

/// A relative path that stays in its folder.
fn inner_path(path: &str) -> Result<String, PluginError> {
    let stays =
        Path::new(path).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    match stays {
        true => Ok(path.to_owned()),
        false => Err(PluginError(format!("the path {path} leads out of its folder"))),
    }
}

/// A name that git cannot take for an option.
fn name_of_reference(name: &str) -> Result<String, PluginError> {
    match name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
        false => Ok(name.to_owned()),
        true => Err(PluginError(format!("`{name}` is not the name of a branch or a tag"))),
    }
}

fn is_repository(text: &str) -> bool {
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.starts_with(['-', '.'])
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_.".contains(letter))
    };
    text.split_once('/').is_some_and(|(owner, name)| is_name(owner) && is_name(name))
}

/// A URL without the password that it may hold.
fn without_password(url: &str) -> String {
    match url.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.split_once('@')?.1))) {
        Some((scheme, rest)) => format!("{scheme}://{rest}"),
        None => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let said = match Source::parse(text, Path::new("/")) {
            Ok(source) => serde_json::to_string(&source).unwrap(),
            Err(error) => error.0,
        };
        assert_eq!(said, expected, "{text}");
    }

    #[test]
    fn sources_are_read_as_people_type_them() {
        check("github/plugins", r#"{"source":"github","repo":"github/plugins"}"#);
        check("a/b:c/d", r#"{"source":"github","repo":"a/b","path":"c/d"}"#);
        check("a/b#main", r#"{"source":"github","repo":"a/b","ref":"main"}"#);
        check("https://x.org/y.git#v1", r#"{"source":"url","url":"https://x.org/y.git","ref":"v1"}"#);
        check("git@x.org:y/z.git", r#"{"source":"url","url":"git@x.org:y/z.git"}"#);
        check("/", r#"{"source":"local","path":"/"}"#);
    }

    #[test]
    fn a_source_that_is_none_is_a_sentence() {
        check("a/b:../c", "the path ../c leads out of its folder");
        check("a/b#--upload-pack=x", "`--upload-pack=x` is not the name of a branch or a tag");
        check("/no/such/place", "Local path does not exist: /no/such/place");
        check(
            "ext::sh -c x",
            "`ext::sh -c x` is no source; use plugin@marketplace, owner/repo, a git URL or the path of a directory",
        );
    }

    #[test]
    fn a_password_is_not_shown() {
        let source = Source::parse("https://me:secret@x.org/y.git", Path::new("/")).unwrap();
        assert_eq!(source.describe(), "URL: https://x.org/y.git");
    }

    #[test]
    fn distinct_sources_have_distinct_ids() {
        let id = |text: &str| Source::parse(text, Path::new("/")).unwrap().id();
        assert_eq!(id("a/b"), id("a/b"));
        assert_ne!(id("a/b"), id("a/b#main"));
    }
}
