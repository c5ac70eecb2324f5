//! Reading and changing files: `view`, `create`, `edit`.

pub(crate) mod anchor;
mod claim;
pub(crate) mod content;
mod create;
pub(crate) mod diff;
mod edit;
mod forgiving;
mod image;
mod indentation;
mod lines;
pub(crate) mod locks;
mod nearest;
mod replacement;
mod view;

use std::io;
use std::path::{Path, PathBuf};

use hangar_agent::tool::{AccessRequest, ToolOutcome};
use hangar_protocol::permission::PermissionRequest;

use crate::answer;
use crate::workspace::{Location, Workspace};

pub use create::Create;
pub use edit::EditTool;
pub use view::View;

/// Bytes of a file's new content that a permission request carries; the diff says enough about larger ones.
const CONTENT_SHOWN: usize = 256 * 1024;

/// The place an argument names. An empty one would name the working directory by accident.
fn locate(workspace: &Workspace, given: &str) -> Result<Location, ToolOutcome> {
    if given.is_empty() {
        return Err(answer::failed(
            "Path not provided",
            "A path parameter is required, and must be a non-empty string.",
        ));
    }
    Ok(workspace.locate(given))
}

fn missing(shown: &Path) -> ToolOutcome {
    answer::failed(
        "Path does not exist",
        format!("Path {} does not exist. Please provide a valid path.", shown.display()),
    )
}

/// The answer to a file that could not be read or written.
fn unusable(shown: &Path, error: &io::Error) -> ToolOutcome {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => missing(shown),
        io::ErrorKind::IsADirectory => answer::failed(
            "Path is a directory",
            format!("Path {} is a directory, not a file.", shown.display()),
        ),
        _ => answer::failed(
            format!("Cannot use the file: {error}"),
            format!("Cannot use {}: {error}.", shown.display()),
        ),
    }
}

/// A request to write files, whatever their number.
pub(crate) struct WriteRequest<'a> {
    pub(crate) call_id: &'a str,
    pub(crate) intention: String,
    pub(crate) shown: &'a Path,
    pub(crate) diff: String,
    pub(crate) new_content: Option<&'a [u8]>,
    pub(crate) reads: Vec<PathBuf>,
    pub(crate) writes: Vec<PathBuf>,
}

impl WriteRequest<'_> {
    pub(crate) fn into_access(self) -> AccessRequest {
        AccessRequest {
            request: PermissionRequest::Write {
                tool_call_id: Some(self.call_id.to_owned()),
                intention: self.intention,
                file_name: self.shown.display().to_string(),
                diff: self.diff,
                new_file_contents: self
                    .new_content
                    .filter(|content| content.len() <= CONTENT_SHOWN)
                    .map(|content| String::from_utf8_lossy(content).into_owned()),
                can_offer_session_approval: true,
            },
            reads: self.reads,
            writes: self.writes,
        }
    }
}
