//! Permission requests of an agent: converted into our events, and our answers into its options.

use hangar_protocol::permission::{PermissionRequest, ShellRequest};
use serde_json::{Value, json};

/// The question, as our events put it.
pub(super) fn request(params: &Value) -> PermissionRequest {
    let call = &params["toolCall"];
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let tool_call_id = text(&call["toolCallId"]);
    let title = text(&call["title"]).unwrap_or_else(|| "a tool".to_owned());
    let input = call.get("rawInput").cloned();
    let command = input.as_ref().and_then(|input| text(&input["command"]));
    match (call["kind"].as_str(), command) {
        (Some("execute"), Some(command)) => PermissionRequest::Shell(ShellRequest {
            tool_call_id,
            full_command_text: command,
            intention: title,
            ..ShellRequest::default()
        }),
        (kind, _) => PermissionRequest::CustomTool {
            tool_call_id,
            tool_name: title,
            tool_description: kind.unwrap_or("other").to_owned(),
            args: input,
        },
    }
}

/// The answer: one of the offered options. If none is of this kind, the question is answered as cancelled.
pub(super) fn answer(params: &Value, allow: bool) -> Value {
    let kinds = if allow { ["allow_once", "allow_always"] } else { ["reject_once", "reject_always"] };
    let options = params["options"].as_array().map_or(&[][..], Vec::as_slice);
    let option = kinds.iter().find_map(|kind| options.iter().find(|option| option["kind"] == **kind));
    match option.and_then(|option| option["optionId"].as_str()) {
        Some(id) => json!({ "outcome": { "outcome": "selected", "optionId": id } }),
        None => json!({ "outcome": { "outcome": "cancelled" } }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(kinds: &[&str], allow: bool, expected: Option<&str>) {
        let options: Vec<Value> =
            kinds.iter().map(|kind| json!({ "optionId": format!("id-{kind}"), "kind": kind })).collect();
        let answer = answer(&json!({ "options": options }), allow);
        assert_eq!(answer["outcome"]["optionId"].as_str(), expected);
    }

    #[test]
    fn once_is_enough() {
        check(&["allow_always", "allow_once", "reject_once"], true, Some("id-allow_once"));
        check(&["allow_always", "reject_always"], false, Some("id-reject_always"));
    }

    #[test]
    fn what_is_not_offered_is_not_chosen() {
        check(&["allow_once"], false, None);
    }
}
