//! Permission: whether a call may run, with everything that it would do.

use serde_json::{Value, json};

use super::choice::answer;
use super::{BodyPart, ChoiceDialog, Dialog, DialogChoice, TextNeed};

const METHOD: &str = "session.permissions.handlePendingPermissionRequest";

/// Dialog of a `permission.requested` event, from its data.
pub fn permission(data: &Value, asker: Option<&str>, now: u64) -> Dialog {
    let request = &data["permissionRequest"];
    let id = data["requestId"].as_str().unwrap_or_default().to_owned();
    let text = |key: &str| request[key].as_str().unwrap_or_default().to_owned();
    let mut parts = Vec::new();
    let (title, again) = match text("kind").as_str() {
        "shell" => {
            parts.push(BodyPart::Code(text("fullCommandText")));
            let names = identifiers(request);
            ("Run this command?", format!("do not ask again for {names} in this session"))
        }
        "write" => {
            parts.push(BodyPart::Code(text("fileName")));
            parts.push(BodyPart::Diff(text("diff")));
            ("Change this file?", "do not ask again for changes of files in this session".to_owned())
        }
        "read" => {
            parts.push(BodyPart::Code(text("path")));
            ("Read this file?", "do not ask again for reading in this session".to_owned())
        }
        "url" => {
            parts.push(BodyPart::Code(text("url")));
            ("Fetch this address?", "do not ask again for this site in this session".to_owned())
        }
        "mcp" => {
            // The server chooses the title; the name is what is called.
            let title =
                Some(text("toolTitle")).filter(|title| !title.is_empty() && *title != text("toolName"));
            let title = title.map(|title| format!(" ({title})")).unwrap_or_default();
            parts.push(BodyPart::Quoted(format!(
                "{}{title} of the MCP server {}",
                text("toolName"),
                text("serverName")
            )));
            parts.push(BodyPart::Code(pretty(&request["args"])));
            ("Call this tool?", format!("do not ask again for {} in this session", text("toolName")))
        }
        "memory" => {
            parts.push(BodyPart::Quoted(text("fact")));
            ("Remember this?", "do not ask again for this in this session".to_owned())
        }
        "extension-management" => {
            parts.push(BodyPart::Code(format!("{} {}", text("operation"), text("extensionName"))));
            ("Manage extensions?", format!("do not ask again for {} in this session", text("operation")))
        }
        "extension-permission-access" => {
            let name = text("extensionName");
            parts.push(BodyPart::Quoted(format!("{name} wants to: {}", listed(&request["capabilities"]))));
            ("Let this extension do so?", format!("do not ask again for {name} in this session"))
        }
        "extension-env-access" => {
            let name = text("extensionName");
            let wanted = listed(&request["environmentVariables"]);
            parts.push(BodyPart::Quoted(format!("{name} wants to read: {wanted}")));
            ("Give this extension secrets?", format!("do not ask again for {name} and these variables"))
        }
        "hook" => {
            parts.push(BodyPart::Quoted(text("hookMessage")));
            parts.push(BodyPart::Code(format!("{} {}", text("toolName"), pretty(&request["toolArgs"]))));
            ("A hook asks whether this may run", String::new())
        }
        kind => {
            parts.push(BodyPart::Quoted(format!("{kind} {}: {}", text("toolName"), text("toolDescription"))));
            parts.push(BodyPart::Code(pretty(&request["args"])));
            ("Call this tool?", format!("do not ask again for {} in this session", text("toolName")))
        }
    };
    if let Some(warning) = request["warning"].as_str() {
        parts.insert(0, BodyPart::Warning(warning.to_owned()));
    }
    if let Some(why) = intention(request) {
        parts.insert(0, BodyPart::Quoted(why.to_owned()));
    }
    let title = match asker {
        Some(agent) => format!("{title} (asked by {agent})"),
        None => title.to_owned(),
    };
    let mut choices =
        vec![DialogChoice::new("Yes", answer(METHOD, &id, "result", json!({ "kind": "approve-once" })))];
    if !again.is_empty() && request["canOfferSessionApproval"].as_bool().unwrap_or(true) {
        let reply = answer(METHOD, &id, "result", json!({ "kind": "approve-for-session" }));
        choices.push(DialogChoice::new(format!("Yes, and {again}"), reply));
    }
    let refused = id.clone();
    choices.push(DialogChoice::with_text(
        "No, and say what to do instead",
        TextNeed::Optional,
        move |feedback| {
            let mut result = json!({ "kind": "reject" });
            if let Some(feedback) = feedback {
                result["feedback"] = json!(feedback);
            }
            answer(METHOD, &refused, "result", result)
        },
    ));
    let cancel = answer(METHOD, &id, "result", json!({ "kind": "reject" }));
    Dialog::Choice(Box::new(ChoiceDialog::new(Some(id), title, parts, choices, cancel, now)))
}

/// The model's own words for what it wants. Those of a change say no more than the title, those of a command without a description
/// are the command.
fn intention(request: &Value) -> Option<&str> {
    let why = request["intention"].as_str().filter(|why| !why.is_empty())?;
    (request["kind"] != "write" && request["fullCommandText"].as_str() != Some(why)).then_some(why)
}

/// The programs of a command, in the form of an approval.
fn identifiers(request: &Value) -> String {
    let commands = request["commands"].as_array().into_iter().flatten();
    let mut names: Vec<&str> = commands.filter_map(|command| command["identifier"].as_str()).collect();
    names.dedup();
    match names.as_slice() {
        [] => "such commands".to_owned(),
        names => names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    }
}

/// Words of a list.
fn listed(value: &Value) -> String {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
}

fn pretty(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value).unwrap_or_default(),
    }
}
