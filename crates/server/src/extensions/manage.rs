//! Tools by which the model sees, creates and reloads extensions.

use std::fmt::Write as _;
use std::sync::{Arc, Weak};

use futures_util::future::BoxFuture;
use hangar_agent::interned;
use hangar_agent::tool::{
    Access, AccessRequest, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec, ToolStatus,
};
use hangar_custom::extensions::{ENTRY, is_name};
use hangar_protocol::permission::PermissionRequest;
use serde::Deserialize;
use serde_json::json;

use super::host::{ExtensionSession, NewExtensionLocation};
use super::registry::{ExtensionReport, SessionExtensions};
use crate::hub::{ServedSession, ServerHub};
use crate::methods::Failure;

/// How an extension is written.
const GUIDE: &str = include_str!("guide.md");
/// A new extension; the name of its tool is put in.
const BASIC: &str = include_str!("scaffold_basic.mjs");
/// A new extension with a canvas.
const CANVAS: &str = include_str!("scaffold_canvas.mjs");

/// The tools of a session.
pub(crate) fn tools(hub: &Arc<ServerHub>, live: &Arc<ServedSession>) -> Vec<Arc<dyn Tool>> {
    let of = |operation| -> Arc<dyn Tool> {
        Arc::new(ManageTool {
            spec: interned::spec(spec(operation)),
            operation,
            hub: Arc::downgrade(hub),
            live: Arc::downgrade(live),
        })
    };
    vec![of(ToolKind::Reload), of(ToolKind::Manage)]
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ToolKind {
    Reload,
    Manage,
}

struct ManageTool {
    spec: Arc<ToolSpec>,
    operation: ToolKind,
    hub: Weak<ServerHub>,
    live: Weak<ServedSession>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(tag = "operation", rename_all = "lowercase")]
enum Operation {
    List,
    Inspect {
        name: String,
    },
    Scaffold {
        name: String,
        description: Option<String>,
        #[serde(default)]
        location: NewExtensionLocation,
        #[serde(default)]
        kind: ScaffoldKind,
    },
    Guide,
    #[serde(skip)]
    Reload,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ScaffoldKind {
    #[default]
    Basic,
    Canvas,
}

fn spec(kind: ToolKind) -> ToolSpec {
    match kind {
        ToolKind::Reload => ToolSpec {
            name: "extensions_reload".to_owned(),
            title: Some("Reloading extensions".to_owned()),
            description: "Ends all extensions and starts those that are on disk now. Call it after an extension was \
                          created or changed; its tools are there right after."
                .to_owned(),
            input: ToolSchema::function(json!({ "type": "object", "properties": {} })),
        },
        ToolKind::Manage => ToolSpec {
            name: "extensions_manage".to_owned(),
            title: Some("Managing extensions".to_owned()),
            description: "Extensions are Node programs that add tools, hooks, commands and canvases to this session. \
                          \"list\" shows them with their state, \"inspect\" shows one with the end of its log, which says \
                          why it failed, \"scaffold\" creates one, \"guide\" says how they are written; read that first."
                .to_owned(),
            input: ToolSchema::function(json!({
                "type": "object",
                "properties": {
                    "operation": { "type": "string", "enum": ["list", "inspect", "scaffold", "guide"] },
                    "name": { "type": "string", "description": "Name of the extension, for inspect and scaffold." },
                    "description": { "type": "string", "description": "What the new extension is for." },
                    "location": {
                        "type": "string",
                        "enum": ["project", "user", "session"],
                        "description": "Place of the new extension: .github/extensions of the repository (default), the \
                                        user's own folder, or this session alone.",
                    },
                    "kind": {
                        "type": "string",
                        "enum": ["basic", "canvas"],
                        "description": "A new extension with a tool (default) or with a canvas.",
                    },
                },
                "required": ["operation"],
            })),
        },
    }
}

impl ManageTool {
    fn parse(&self, call: &ToolInput) -> Result<Operation, ToolOutcome> {
        match self.operation {
            ToolKind::Reload => Ok(Operation::Reload),
            ToolKind::Manage => Operation::deserialize(&call.arguments).map_err(|error| {
                ToolOutcome::of(ToolStatus::Failure, format!("The arguments cannot be used: {error}"))
            }),
        }
    }
}

impl Tool for ManageTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        let (operation, extension_name) = match self.parse(call)? {
            Operation::List | Operation::Inspect { .. } | Operation::Guide => return Ok(Access::None),
            Operation::Scaffold { name, .. } if !is_name(&name) => {
                let text =
                    format!("`{name}` is no name for an extension: use letters, digits, `.`, `-` and `_`.");
                return Err(ToolOutcome::of(ToolStatus::Failure, text));
            }
            Operation::Scaffold { name, .. } => ("scaffold", Some(name)),
            Operation::Reload => ("reload", None),
        };
        Ok(Access::Needs(Box::new(AccessRequest {
            request: PermissionRequest::ExtensionManagement {
                tool_call_id: Some(call.call_id.clone()),
                operation: operation.to_owned(),
                extension_name,
            },
            reads: Vec::new(),
            writes: Vec::new(),
        })))
    }

    fn run(&self, call: ToolInput, _context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let operation = self.parse(&call);
        let session = self.hub.upgrade().zip(self.live.upgrade());
        Box::pin(async move {
            let operation = match operation {
                Ok(operation) => operation,
                Err(outcome) => return outcome,
            };
            let Some((hub, live)) = session else {
                return ToolOutcome::of(ToolStatus::Failure, "The session has ended.");
            };
            match carry_out(&hub, &live, operation).await {
                Ok(text) => ToolOutcome::success(text),
                Err(problem) => ToolOutcome::of(ToolStatus::Failure, problem),
            }
        })
    }
}

async fn carry_out(
    hub: &Arc<ServerHub>,
    live: &Arc<ServedSession>,
    operation: Operation,
) -> Result<String, String> {
    match operation {
        Operation::Guide => Ok(GUIDE.to_owned()),
        Operation::List => Ok(listed(&live.extensions.reports())),
        Operation::Inspect { name } => {
            let reports = live.extensions.reports();
            let found =
                reports.iter().find(|report| report.extension.id == name || report.extension.name == name);
            let report =
                found.ok_or_else(|| format!("There is no extension `{name}`. {}", listed(&reports)))?;
            Ok(inspected(report))
        }
        Operation::Reload => {
            let loaded = SessionExtensions::load(hub, live).await;
            loaded.map_err(Failure::into_message)?;
            Ok(format!("Extensions were reloaded. {}", listed(&live.extensions.reports())))
        }
        Operation::Scaffold { name, description, location, kind } => {
            scaffold(hub, live, &name, description.as_deref(), location, kind).await
        }
    }
}

fn listed(reports: &[ExtensionReport]) -> String {
    if reports.is_empty() {
        return "There are no extensions.".to_owned();
    }
    let mut text = format!("Extensions ({}):\n", reports.len());
    for report in reports {
        let ExtensionReport { extension, status, pid, problem, .. } = report;
        let _ = write!(text, "\n{} — {} ({})", extension.id, status.as_str(), extension.path.display());
        if let Some(pid) = pid {
            let _ = write!(text, ", pid {pid}");
        }
        if let Some(problem) = problem {
            let _ = write!(text, "\n  {problem}");
        }
    }
    text
}

fn inspected(report: &ExtensionReport) -> String {
    let mut text = listed(std::slice::from_ref(report));
    match report.stderr.as_str() {
        "" => text.push_str("\n\nIt has written nothing to standard error."),
        stderr => {
            let _ = write!(text, "\n\nEnd of its standard error:\n{stderr}");
        }
    }
    text
}

async fn scaffold(
    hub: &Arc<ServerHub>,
    live: &Arc<ServedSession>,
    name: &str,
    description: Option<&str>,
    location: NewExtensionLocation,
    kind: ScaffoldKind,
) -> Result<String, String> {
    let session = ExtensionSession::of(live).await.map_err(Failure::into_message)?;
    let host = hub.config().extensions.as_deref().ok_or("This server runs no extensions.")?;
    let folder = host.folder(&session, location)?.join(name);
    let path = folder.join(ENTRY);
    if path.exists() {
        return Err(format!("{} exists already; edit it, or choose another name.", path.display()));
    }
    let template = match kind {
        ScaffoldKind::Basic => BASIC,
        ScaffoldKind::Canvas => CANVAS,
    };
    let about = description.unwrap_or("Says hello.").replace(['\n', '\r'], " ");
    let text = template
        .replace("NAME_OF_TOOL", &name.replace(['-', '.'], "_"))
        .replace("NAME", name)
        .replace("ABOUT", &about.replace('"', "'"));
    let write = || {
        std::fs::create_dir_all(&folder)?;
        std::fs::write(&path, text)
    };
    write().map_err(|error| format!("{} cannot be written: {error}", path.display()))?;
    Ok(format!(
        "The extension was created at {}. Edit it, then call extensions_reload to start it.",
        path.display()
    ))
}
