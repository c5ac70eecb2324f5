//! `view`: a file with numbered lines, an image, or the names in a directory.

use std::fmt::Write as _;
use std::io::{BufReader, Read};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use futures_util::future::BoxFuture;
use hangar_agent::interned;
use hangar_agent::model::Part;
use hangar_agent::tool::{
    Access, AccessRequest, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec,
};
use hangar_images::Fitted;
use hangar_protocol::permission::PermissionRequest;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::lines::{self, LineLimits, Range};
use super::{diff, image, locate, unusable};
use crate::answer;
use crate::arguments;
use crate::inspected::InspectedCalls;
use crate::spill::kilobytes;
use crate::workspace::{Location, Workspace};

/// Bytes of a file that is read without naming lines.
const WHOLE_FILE_LIMIT: u64 = 10 * 1024 * 1024;

/// Bytes of text that one call can put into the context, even when asked to.
const FORCED_LIMIT: usize = 256 * 1024;

/// Bytes of one line that are shown, as a search does. Longer ones are not written by people.
const LINE_LIMIT: usize = 2_000;

/// Names of a directory that are read. The text of this many is spilled anyway.
const NAMES_LIMIT: usize = 50_000;

pub struct View {
    spec: Arc<ToolSpec>,
    workspace: Arc<Workspace>,
    inspected: Arc<InspectedCalls>,
}

struct Arguments {
    path: String,
    range: Option<Vec<i64>>,
    force: bool,
}

impl View {
    pub fn new(workspace: Arc<Workspace>) -> Self {
        let threshold = kilobytes(workspace.spill.threshold);
        Self {
            spec: interned::spec(ToolSpec {
                name: "view".to_owned(),
                title: Some("Viewing file".to_owned()),
                description: format!(
                    "Shows a file, an image or a directory.\n\
                     - A text file is shown with each line behind its number, as in `12. text`; the number is not \
                     part of the file.\n\
                     - A file over {threshold} is not shown whole: read the part you need with `view_range`.\n\
                     - For a directory, the names in it."
                ),
                input: ToolSchema::function(json!({
                    "type": "object",
                    "properties": {
                        "path": {
                            "type": "string",
                            "description": "Absolute path of a file or directory that exists."
                        },
                        "view_range": {
                            "type": "array",
                            "items": {"type": "integer"},
                            "description": "First and last line to show, counted from 1: [20, 40]. A last line of \
                                            -1 is the end of the file."
                        },
                        "forceReadLargeFiles": {
                            "type": "boolean",
                            "description": "Show a large file whole. It fills the context; a range is nearly always \
                                            better."
                        }
                    },
                    "required": ["path"]
                })),
            }),
            workspace,
            inspected: Arc::default(),
        }
    }
}

impl Tool for View {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        let location = locate(&self.workspace, &parse(call)?.path)?;
        self.inspected.remember(&call.call_id, self.workspace.now(&location).hold());
        let shown = location.shown.display();
        let is_directory = self.workspace.files.find(&location.real).is_ok_and(|found| found.is_dir);
        let verb = if is_directory { "List directory" } else { "Read file" };
        Ok(Access::Needs(Box::new(AccessRequest {
            request: PermissionRequest::Read {
                tool_call_id: Some(call.call_id.clone()),
                intention: format!("{verb}: {shown}"),
                path: shown.to_string(),
            },
            reads: vec![location.real],
            writes: Vec::new(),
        })))
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let workspace = Arc::clone(&self.workspace);
        let inspected = Arc::clone(&self.inspected);
        let cancel = context.cancel.clone();
        Box::pin(answer::looking(context.cancel, move || {
            parse(&call)
                .and_then(|arguments| {
                    let location = locate(&workspace, &arguments.path)?;
                    let places = inspected.confirm(&call.call_id, &workspace.now(&location))?;
                    view(&workspace.held(&places), &arguments, &location, &cancel)
                })
                .unwrap_or_else(|answer| answer)
        }))
    }
}

fn parse(call: &ToolInput) -> Result<Arguments, ToolOutcome> {
    arguments::read(call, |a| Arguments {
        path: a.required_text("path"),
        range: a.integers("view_range"),
        force: a.flag("forceReadLargeFiles"),
    })
}

fn view(
    workspace: &Workspace,
    arguments: &Arguments,
    location: &Location,
    cancel: &CancellationToken,
) -> Result<ToolOutcome, ToolOutcome> {
    let found = workspace.files.find(&location.real).map_err(|error| unusable(&location.shown, &error))?;
    if found.is_dir {
        return view_directory(workspace, location);
    }
    if image::is_named_as_image(&location.real) {
        return Ok(view_image(workspace, location));
    }
    let range = arguments.range.as_deref().map(parse_range).transpose()?.flatten();
    if range.is_none() {
        if found.size > WHOLE_FILE_LIMIT {
            return Err(answer::failed(
                "File too large",
                format!(
                    "File is too large to view ({}). Maximum file size is {}. Use shell tool with head/tail commands \
                     or specify a line range with view_range parameter to view specific sections.",
                    megabytes(found.size, 1),
                    megabytes(WHOLE_FILE_LIMIT, 0)
                ),
            ));
        }
        let size = usize::try_from(found.size).unwrap_or(usize::MAX);
        if size > workspace.spill.threshold && !arguments.force {
            return Ok(ToolOutcome::success(format!(
                "File too large to read at once ({}). Consider using the grep tool to search within the file, or \
                 view with view_range to read specific sections.",
                kilobytes(size)
            )));
        }
    }
    let limit = if arguments.force { FORCED_LIMIT } else { workspace.spill.threshold };
    view_lines(workspace, location, range, limit, cancel)
}

/// `None` for an empty list, which names no lines.
fn parse_range(given: &[i64]) -> Result<Option<Range>, ToolOutcome> {
    let refuse =
        |text: String| Err(answer::failed("Invalid view_range", format!("Invalid view_range: {text}")));
    let Some(&first) = given.first() else { return Ok(None) };
    let last = given.get(1).copied().unwrap_or(-1);
    match (usize::try_from(first), last) {
        (Err(_) | Ok(0), _) => refuse(format!("start line ({first}) must be greater than or equal to 1.")),
        (Ok(first), -1) => Ok(Some(Range { first, last: None })),
        (Ok(_), ..1) => refuse(format!(
            "end line ({last}) must be greater than or equal to 1, or -1 to read to the end of the file."
        )),
        (Ok(first), _) => match usize::try_from(last) {
            Ok(last) if last >= first => Ok(Some(Range { first, last: Some(last) })),
            _ => refuse(format!("end line ({last}) must be greater than or equal to start line ({first}).")),
        },
    }
}

fn view_lines(
    workspace: &Workspace,
    location: &Location,
    range: Option<Range>,
    limit: usize,
    cancel: &CancellationToken,
) -> Result<ToolOutcome, ToolOutcome> {
    let file = workspace.files.open(&location.real).map_err(|error| unusable(&location.shown, &error))?;
    let wanted = range.unwrap_or(Range { first: 1, last: None });
    let limits = LineLimits { text: limit, line: LINE_LIMIT };
    let excerpt = lines::read(BufReader::new(file), wanted, limits, cancel)
        .map_err(|error| unusable(&location.shown, &error))?
        .ok_or_else(answer::interrupted)?;
    if range.is_some() && wanted.first > excerpt.lines_seen {
        return Err(answer::failed(
            "view_range out of bounds",
            format!(
                "Invalid view_range: start line ({}) is beyond the end of the file. The file has {} lines.",
                wanted.first, excerpt.lines_seen
            ),
        ));
    }
    if excerpt.lines_seen == 0 {
        return Ok(ToolOutcome::success(""));
    }
    let mut numbered = String::with_capacity(excerpt.text.len() * 2);
    for (offset, line) in excerpt.text.split('\n').enumerate() {
        if offset > 0 {
            numbered.push('\n');
        }
        let _ = write!(numbered, "{}. {line}", wanted.first + offset);
    }
    if let Some(next) = excerpt.continues_at {
        let _ = write!(numbered, "\n\n[Output truncated. Use view_range=[{next}, ...] to continue reading.]");
    }
    let detailed = diff::unchanged(&location.shown, wanted.first, &excerpt.text);
    Ok(ToolOutcome { detailed: Some(detailed), ..ToolOutcome::success(numbered) })
}

fn view_directory(workspace: &Workspace, location: &Location) -> Result<ToolOutcome, ToolOutcome> {
    let names = workspace.files.names(&location.real, NAMES_LIMIT);
    let mut names = names.map_err(|error| unusable(&location.shown, &error))?;
    names.sort_unstable();
    let mut text = names.join("\n");
    if names.len() == NAMES_LIMIT {
        let _ = write!(text, "\n[Only {NAMES_LIMIT} names are listed.]");
    }
    Ok(ToolOutcome::success(workspace.spill.fit(text, "view")))
}

fn view_image(workspace: &Workspace, location: &Location) -> ToolOutcome {
    const FAILED: &str = "Failed to view image file.";
    let mut content = Vec::new();
    let read = workspace
        .files
        .open(&location.real)
        .and_then(|file| file.take(image::SIZE_LIMIT + 1).read_to_end(&mut content));
    if let Err(error) = read {
        return answer::failed(FAILED, format!("{FAILED} {error}."));
    }
    if image::mime_type(&content).is_none() {
        return answer::failed(FAILED, FAILED);
    }
    // Scaled here, so that the log does not grow by what no model takes.
    let (mime_type, content, scaled) = match hangar_images::fit(&content, &workspace.images, 1) {
        Fitted::Unchanged { mime_type } => (mime_type, content, String::new()),
        Fitted::Scaled { mime_type, data, from, to } => {
            (mime_type, data, format!(", scaled from {from} to {to} pixels"))
        }
        Fitted::Unusable { why } => return answer::failed(FAILED, format!("{FAILED} It {why}.")),
    };
    let shown = location.shown.display();
    ToolOutcome {
        detailed: Some(format!("Viewed image file at path {shown}")),
        images: vec![
            Part::Text(format!("Image file at path {shown}{scaled}")),
            Part::Image { mime_type: mime_type.to_owned(), data: BASE64.encode(&content) },
        ],
        ..ToolOutcome::success("Viewed image file successfully.")
    }
}

fn megabytes(bytes: u64, decimals: usize) -> String {
    format!("{:.decimals$}MB", bytes as f64 / (1024.0 * 1024.0))
}
