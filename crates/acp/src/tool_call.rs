//! Tool calls as clients see them: title, kind, files and diffs.

use hangar_protocol::data::{ToolComplete, ToolStart};
use serde_json::{Value, json};

use crate::schema::{
    ContentBlock, FileLocation, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolKind,
};

/// Longest title; a command may be a whole script.
const MAX_TITLE: usize = 200;

pub(crate) fn kind(tool: &str) -> ToolKind {
    match tool {
        "bash" | "write_bash" | "read_bash" | "stop_bash" | "list_bash" => ToolKind::Execute,
        "create" | "edit" | "apply_patch" => ToolKind::Edit,
        "view" | "grep" | "glob" | "rg" => ToolKind::Read,
        "web_fetch" => ToolKind::Fetch,
        _ => ToolKind::Other,
    }
}

pub(crate) fn started(start: &ToolStart) -> ToolCall {
    let input = &start.arguments;
    // The result of a finished task has a text of its own.
    let told = start.tool_name != "task_complete";
    ToolCall {
        tool_call_id: start.tool_call_id.clone(),
        title: title(&start.tool_name, input),
        kind: kind(&start.tool_name),
        status: ToolCallStatus::Pending,
        raw_input: Some(input.clone()).filter(|input| told && !input.is_null()),
        locations: path(&start.tool_name, input).into_iter().map(|path| FileLocation { path }).collect(),
        content: changes(&start.tool_name, input),
    }
}

pub(crate) fn output_so_far(call_id: &str, output: &str) -> ToolCallUpdate {
    ToolCallUpdate {
        tool_call_id: call_id.to_owned(),
        status: ToolCallStatus::InProgress,
        content: vec![text(output)],
        raw_output: None,
    }
}

/// The end of a call, with what it was called with where that is known.
pub(crate) fn completed(complete: &ToolComplete, start: Option<&ToolStart>) -> ToolCallUpdate {
    let name = start.map_or("", |start| start.tool_name.as_str());
    let status = if complete.success { ToolCallStatus::Completed } else { ToolCallStatus::Failed };
    let mut content = Vec::new();
    let mut raw_output = None;
    match (&complete.result, &complete.error) {
        (_, Some(error)) if !complete.success => {
            raw_output = Some(json!({ "message": error.message, "code": error.code }));
        }
        (Some(_), _) if name == "task_complete" => {}
        (Some(result), _) => {
            let mut output = json!({ "content": result.content });
            if let Some(detailed) = &result.detailed_content {
                output["detailedContent"] = json!(detailed);
            }
            raw_output = Some(output);
            content = match (kind(name), start) {
                (ToolKind::Edit, Some(start)) => changes(name, &start.arguments),
                // The file is the client's to show.
                _ if name == "view" => Vec::new(),
                _ => vec![text(&result.content)],
            };
            content.extend(result.binary_results_for_llm.iter().filter(|binary| binary.kind == "image").map(
                |binary| ToolCallContent::Content {
                    content: ContentBlock::Image {
                        data: binary.data.clone(),
                        mime_type: binary.mime_type.clone(),
                    },
                },
            ));
        }
        (None, _) => {}
    }
    ToolCallUpdate { tool_call_id: complete.tool_call_id.clone(), status, content, raw_output }
}

fn title(tool: &str, input: &Value) -> String {
    let field = |key: &str| input[key].as_str().filter(|text| !text.is_empty());
    let title = match (tool, field("path"), field("pattern")) {
        ("bash", ..) => field("description").or(field("command")).unwrap_or(tool).to_owned(),
        ("create", Some(path), _) => format!("Creating {path}"),
        ("edit", Some(path), _) => format!("Editing {path}"),
        ("view", Some(path), _) => format!("Viewing {path}"),
        ("grep" | "rg", _, Some(pattern)) => format!("Searching for '{pattern}'"),
        ("glob", _, Some(pattern)) => format!("Finding files matching {pattern}"),
        ("web_fetch", ..) => field("url").map_or_else(|| tool.to_owned(), |url| format!("Fetching {url}")),
        ("task_complete", ..) => "Task completion".to_owned(),
        _ => tool.to_owned(),
    };
    let mut short: String = title.chars().take(MAX_TITLE).collect();
    if short.len() < title.len() {
        short.push('…');
    }
    short
}

fn path(tool: &str, input: &Value) -> Option<String> {
    matches!(tool, "create" | "edit" | "view").then(|| input["path"].as_str().map(str::to_owned)).flatten()
}

fn changes(tool: &str, input: &Value) -> Vec<ToolCallContent> {
    let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
    let (old_text, new_text) = match tool {
        "create" => (String::new(), text("file_text")),
        "edit" => (text("old_str"), text("new_str")),
        _ => return Vec::new(),
    };
    path(tool, input).map(|path| ToolCallContent::Diff { path, old_text, new_text }).into_iter().collect()
}

fn text(text: &str) -> ToolCallContent {
    ToolCallContent::Content { content: ContentBlock::text(text) }
}
