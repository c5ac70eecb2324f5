//! `edit`: one piece of a file replaced by another.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::interned;
use hangar_agent::tool::{
    Access, HeldFiles, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec,
};
use serde_json::json;

use super::claim::{self, Claim, Names};
use super::diff::{Change, Report, report};
use super::forgiving::Form;
use super::replacement::{Lines, Mismatch, Replacement, replace_once};
use super::{WriteRequest, locate, nearest, unusable};
use crate::answer;
use crate::arguments;
use crate::inspected::InspectedCalls;
use crate::tool_files::ToolFiles;
use crate::workspace::{Location, Workspace};

/// Characters of `old_str` quoted when it is ambiguous.
const QUOTE_CHARS: usize = 80;

pub struct EditTool {
    spec: Arc<ToolSpec>,
    workspace: Arc<Workspace>,
    inspected: Arc<InspectedCalls>,
}

struct Arguments {
    path: String,
    old: Option<String>,
    new: Option<String>,
}

impl Names for Arguments {
    fn path(&self) -> &str {
        &self.path
    }
}

/// A change that can be made.
struct Plan {
    old: Vec<u8>,
    new: Vec<u8>,
    /// Note to the model if the text found is not exactly the requested one.
    forgiven: Option<String>,
}

impl EditTool {
    pub fn new(workspace: Arc<Workspace>) -> Self {
        Self {
            spec: interned::spec(ToolSpec {
                name: "edit".to_owned(),
                title: Some("Editing file".to_owned()),
                description: "Replaces one piece of a file. `old_str` is the text in the file, without the line \
                              numbers that `view` prints, and must occur once: include enough lines around the \
                              change. Several edits in one answer are made in their order."
                    .to_owned(),
                input: ToolSchema::function(json!({
                    "type": "object",
                    "properties": {
                        "path": {"type": "string", "description": "Absolute path of a file that exists."},
                        "old_str": {
                            "type": "string",
                            "description": "The text to replace, with its indentation and other whitespace."
                        },
                        "new_str": {"type": "string", "description": "The text to put in its place."}
                    },
                    "required": ["path"]
                })),
            }),
            workspace,
            inspected: Arc::default(),
        }
    }
}

impl Tool for EditTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        let arguments = parse(call)?;
        let location = locate(&self.workspace, &arguments.path)?;
        if arguments.old.is_some() && arguments.old == arguments.new {
            return Ok(Access::None);
        }
        self.inspected.remember(&call.call_id, self.workspace.now(&location).hold());
        let mut request = WriteRequest {
            call_id: &call.call_id,
            intention: "Edit file".to_owned(),
            shown: &location.shown,
            diff: String::new(),
            new_content: None,
            reads: Vec::new(),
            writes: vec![location.real.clone()],
        };
        let plan = match plan(&self.workspace.files, &location, &arguments) {
            Ok(plan) => plan,
            Err(answer) if self.workspace.contains(&location.real) => return Err(answer),
            // Whether a file outside the workspace contains the text is not revealed before a permission is given.
            Err(_) => return Ok(Access::Needs(Box::new(request.into_access()))),
        };
        request.diff = report_edit(&location, &plan).diff;
        request.new_content = Some(&plan.new);
        Ok(Access::Needs(Box::new(request.into_access())))
    }

    fn held(&self, call: &ToolInput) -> Option<Arc<dyn HeldFiles>> {
        claim::held(&self.workspace, &self.inspected, call, &parse(call).ok()?)
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let workspace = Arc::clone(&self.workspace);
        let inspected = Arc::clone(&self.inspected);
        Box::pin(async move {
            match Claim::take(&workspace, &inspected, &call, parse(&call), &context).await {
                Ok(claim) => claim.write(&context, edit).await,
                Err(answer) => answer,
            }
        })
    }
}

fn parse(call: &ToolInput) -> Result<Arguments, ToolOutcome> {
    arguments::read(call, |a| Arguments {
        path: a.required_text("path"),
        old: a.optional_text("old_str"),
        new: a.optional_text("new_str"),
    })
}

fn edit(files: &ToolFiles, location: &Location, arguments: &Arguments) -> Result<ToolOutcome, ToolOutcome> {
    if arguments.old.is_some() && arguments.old == arguments.new {
        return Ok(ToolOutcome::success("No changes made: old_str and new_str are the same"));
    }
    let plan = plan(files, location, arguments)?;
    files.replace(&location.real, &plan.new).map_err(|error| unusable(&location.shown, &error))?;
    let Report { diff, changes } = report_edit(location, &plan);
    let mut text = format!("File {} updated with changes.", location.shown.display());
    if let Some(forgiven) = &plan.forgiven {
        text.push(' ');
        text.push_str(forgiven);
    }
    Ok(ToolOutcome { detailed: Some(diff), changes, ..ToolOutcome::success(text) })
}

fn plan(files: &ToolFiles, location: &Location, arguments: &Arguments) -> Result<Plan, ToolOutcome> {
    let lacking = |name: &str| ToolOutcome::failure(format!("Invalid inputs: {name} is required"));
    let content = files.read(&location.real).map_err(|error| unusable(&location.shown, &error))?;
    let old = arguments.old.as_deref().unwrap_or_default();
    // An empty `old_str` can only match an empty file.
    if old.is_empty() && !content.is_empty() {
        return Err(lacking("old_str"));
    }
    let new = arguments.new.as_deref().ok_or_else(|| lacking("new_str"))?;
    if old.is_empty() {
        return Ok(Plan { old: content, new: new.as_bytes().to_vec(), forgiven: None });
    }
    match replace_once(&content, old, new) {
        Ok(Replacement { content: new, form, lines }) => {
            Ok(Plan { old: content, new, forgiven: forgiven(form, lines) })
        }
        Err(mismatch) => Err(explain(location, &content, old, &mismatch)),
    }
}

/// Says which text was replaced, if it is not the one that was asked for.
fn forgiven(form: Form, lines: Lines) -> Option<String> {
    (form != Form::Exact).then(|| {
        format!(
            "old_str was not there exactly; the text at {} was replaced, which differs {}.",
            lines.told(),
            form.difference()
        )
    })
}

fn explain(location: &Location, content: &[u8], old: &str, mismatch: &Mismatch) -> ToolOutcome {
    let shown = location.shown.display();
    match mismatch {
        Mismatch::NotFound => {
            let nearest = nearest::excerpt(&String::from_utf8_lossy(content), old);
            let nearest = nearest.map(|lines| format!(". The nearest text is:{lines}")).unwrap_or_default();
            answer::failed(
                "No match found",
                format!(
                    "No match found: old_str not found in {shown}; no changes made; you might want to try again with \
                     correct old_str{nearest}"
                ),
            )
        }
        Mismatch::Ambiguous(places) => {
            let count = places.len();
            let places: Vec<String> = places.iter().map(Lines::range).collect();
            answer::failed(
                "Multiple matches found",
                format!(
                    "Ambiguous match for old_str in {shown}: pattern starting with \"{}\" matched {count} times, at \
                     lines {}. No changes made; try again with a more specific old_str.",
                    quote(old),
                    places.join(", ")
                ),
            )
        }
    }
}

fn quote(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= QUOTE_CHARS {
        return line.to_owned();
    }
    let head: String = line.chars().take(QUOTE_CHARS - 3).collect();
    format!("{head}...")
}

fn report_edit(location: &Location, plan: &Plan) -> Report {
    report(Change::Edited { path: &location.shown, old: &plan.old, new: &plan.new })
}
