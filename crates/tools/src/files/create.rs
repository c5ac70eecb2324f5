//! `create`: a new file, and only a new one.

use std::io;
use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::interned;
use hangar_agent::tool::{
    Access, HeldFiles, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec,
};
use hangar_protocol::Body;
use hangar_protocol::data::SessionInfo;
use serde_json::json;

use super::claim::{self, Claim, Names};
use super::diff::{Change, Report, report};
use super::{WriteRequest, locate, unusable};
use crate::answer;
use crate::arguments;
use crate::inspected::InspectedCalls;
use crate::tool_files::ToolFiles;
use crate::workspace::{Location, Workspace};

pub struct Create {
    spec: Arc<ToolSpec>,
    workspace: Arc<Workspace>,
    inspected: Arc<InspectedCalls>,
}

struct Arguments {
    path: String,
    text: String,
}

impl Names for Arguments {
    fn path(&self) -> &str {
        &self.path
    }
}

impl Create {
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self {
            spec: interned::spec(ToolSpec {
                name: "create".to_owned(),
                title: Some("Creating file".to_owned()),
                description:
                    "Writes a new file, and the directories that it needs. Fails if something exists at the \
                              path already: change that with `edit`."
                        .to_owned(),
                input: ToolSchema::function(json!({
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "description": "Absolute path of the file to create."},
                        "file_text": {"type": "string", "description": "The whole content of the file."}
                    },
                    "required": ["path", "file_text"]
                })),
            }),
            workspace,
            inspected: Arc::default(),
        }
    }
}

impl Tool for Create {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        let arguments = parse(call)?;
        let location = locate(&self.workspace, &arguments.path)?;
        // Whether a file outside the workspace exists is not revealed before permission is given.
        if self.workspace.contains(&location.real) {
            check_vacant(&self.workspace.files, &location)?;
        }
        self.inspected.remember(&call.call_id, self.workspace.now(&location).hold());
        let request = WriteRequest {
            call_id: &call.call_id,
            intention: "Create file".to_owned(),
            shown: &location.shown,
            diff: report_creation(&location, &arguments).diff,
            new_content: Some(arguments.text.as_bytes()),
            reads: Vec::new(),
            writes: vec![location.real.clone()],
        };
        Ok(Access::Needs(Box::new(request.into_access())))
    }

    fn held(&self, call: &ToolInput) -> Option<Arc<dyn HeldFiles>> {
        claim::held(&self.workspace, &self.inspected, call, &parse(call).ok()?)
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let workspace = Arc::clone(&self.workspace);
        let inspected = Arc::clone(&self.inspected);
        Box::pin(async move {
            let claim = match Claim::take(&workspace, &inspected, &call, parse(&call), &context).await {
                Ok(claim) => claim,
                Err(answer) => return answer,
            };
            let shown = claim.location().shown.display().to_string();
            let outcome = claim.write(&context, create).await;
            if !outcome.changes.files_modified.is_empty() {
                let info = SessionInfo::new("file_created", shown);
                answer::tell(&context, Body::SessionInfo(info)).await;
            }
            outcome
        })
    }
}

fn parse(call: &ToolInput) -> Result<Arguments, ToolOutcome> {
    arguments::read(call, |a| Arguments { path: a.required_text("path"), text: a.required_text("file_text") })
}

fn create(files: &ToolFiles, location: &Location, arguments: &Arguments) -> Result<ToolOutcome, ToolOutcome> {
    check_vacant(files, location)?;
    write_new(files, &location.real, arguments.text.as_bytes()).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => occupied(location, "file"),
        _ => unusable(&location.shown, &error),
    })?;
    let Report { diff, changes } = report_creation(location, arguments);
    // Characters as JavaScript counts them, which is how this text has always counted.
    let count = arguments.text.encode_utf16().count();
    let text = format!("Created file {} with {count} characters", location.shown.display());
    Ok(ToolOutcome { detailed: Some(diff), changes, ..ToolOutcome::success(text) })
}

/// Writes a new file and the directories on its way; after a failure, nothing.
fn write_new(files: &ToolFiles, path: &Path, content: &[u8]) -> io::Result<()> {
    let mut made = Vec::new();
    let written = files
        .missing_parents(path)
        .into_iter()
        .try_for_each(|directory| match files.make_dir(&directory) {
            Ok(()) => {
                made.push(directory);
                Ok(())
            }
            // Another call of the same answer was faster.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        })
        .and_then(|()| files.create(path, content));
    if written.is_err() {
        for directory in made.iter().rev() {
            if files.names(directory, 1).is_ok_and(|names| names.is_empty()) {
                // An empty directory that stays behind is not worth another failure.
                let _ = files.remove_dir(directory);
            }
        }
    }
    written
}

fn report_creation(location: &Location, arguments: &Arguments) -> Report {
    report(Change::Created { path: &location.shown, new: arguments.text.as_bytes() })
}

fn check_vacant(files: &ToolFiles, location: &Location) -> Result<(), ToolOutcome> {
    if let Ok(found) = files.find(&location.real) {
        return Err(occupied(location, if found.is_dir { "directory" } else { "file" }));
    }
    // A missing file can be created, but not below another file.
    let above = location.real.ancestors().skip(1).find_map(|above| files.find(above).ok());
    if above.is_some_and(|above| !above.is_dir) {
        let parent = location.shown.parent().unwrap_or(&location.shown).display();
        return Err(answer::failed(
            "Parent is not a directory",
            format!("The directory {parent} cannot be made: there is a file in its way."),
        ));
    }
    Ok(())
}

fn occupied(location: &Location, kind: &str) -> ToolOutcome {
    answer::failed(
        "Path already exists",
        format!(
            "Path {} already exists as a {kind}. Use `view` to check contents then edit it.",
            location.shown.display()
        ),
    )
}
