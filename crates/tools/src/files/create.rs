//! `create`: a new file, and only a new one.

use std::io;
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
                    "Writes a new file. Fails if something exists at the path already (change that with \
                              `edit`) or if the directory does not exist."
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
        // What exists outside the workspace is not told before a permission is given.
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
    files.create(&location.real, arguments.text.as_bytes()).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => occupied(location, "file"),
        _ => unusable(&location.shown, &error),
    })?;
    let Report { diff, changes } = report_creation(location, arguments);
    // Characters as JavaScript counts them, which is how this text has always counted.
    let count = arguments.text.encode_utf16().count();
    let text = format!("Created file {} with {count} characters", location.shown.display());
    Ok(ToolOutcome { detailed: Some(diff), changes, ..ToolOutcome::success(text) })
}

fn report_creation(location: &Location, arguments: &Arguments) -> Report {
    report(Change::Created { path: &location.shown, new: arguments.text.as_bytes() })
}

fn check_vacant(files: &ToolFiles, location: &Location) -> Result<(), ToolOutcome> {
    if let Ok(found) = files.find(&location.real) {
        return Err(occupied(location, if found.is_dir { "directory" } else { "file" }));
    }
    match location.real.parent() {
        Some(parent) if files.find(parent).is_ok_and(|found| found.is_dir) => Ok(()),
        _ => {
            let parent = location.shown.parent().unwrap_or(&location.shown).display();
            Err(answer::failed(
                "Parent directory does not exist",
                format!(
                    "Parent directory {parent} does not exist. You need to create it before creating the file."
                ),
            ))
        }
    }
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
