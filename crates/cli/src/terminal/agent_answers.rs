//! Answers of a person in the words of the SDK protocol, as an agent is given them.

use hangar_protocol::data::ElicitationAction;
use hangar_runtimes::runtime::{AgentAnswer, PermissionReply};
use serde_json::Value;

/// The answer that a request brings, with the question that it is for. Nothing if the request brings none.
pub(super) fn read(method: &str, params: &Value) -> Option<Result<(String, AgentAnswer), String>> {
    let answer = match method {
        "session.permissions.handlePendingPermissionRequest" => permission(&params["result"]),
        "session.ui.handlePendingUserInput" => question(&params["response"]),
        "session.ui.handlePendingElicitation" => elicitation(&params["result"]),
        "session.ui.handlePendingExitPlanMode" => Ok(plan(&params["response"])),
        _ => return None,
    };
    let Some(request_id) = params["requestId"].as_str() else {
        return Some(Err("the answer does not say which question it is for".to_owned()));
    };
    Some(answer.map(|answer| (request_id.to_owned(), answer)))
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

fn permission(result: &Value) -> Result<AgentAnswer, String> {
    let reply = match result["kind"].as_str() {
        Some("approve-once") => PermissionReply::Once,
        Some("approve-for-session" | "approve-for-location" | "approve-permanently") => {
            PermissionReply::ForSession
        }
        Some("reject" | "user-not-available") => {
            PermissionReply::Denied { feedback: text(&result["feedback"]) }
        }
        other => {
            return Err(format!("`{}` is no answer to a permission", other.unwrap_or_default()));
        }
    };
    Ok(AgentAnswer::Permission(reply))
}

fn question(response: &Value) -> Result<AgentAnswer, String> {
    match response["answer"].as_str() {
        Some(answer) => Ok(AgentAnswer::Question(answer.to_owned())),
        None => Err("the question has no answer".to_owned()),
    }
}

fn elicitation(result: &Value) -> Result<AgentAnswer, String> {
    let action = match result["action"].as_str() {
        Some("accept") => ElicitationAction::Accept,
        Some("decline") => ElicitationAction::Decline,
        Some("cancel") => ElicitationAction::Cancel,
        other => return Err(format!("`{}` is no answer to a form", other.unwrap_or_default())),
    };
    let content = Some(result["content"].clone()).filter(|content| !content.is_null());
    Ok(AgentAnswer::Elicitation { action, content })
}

fn plan(response: &Value) -> AgentAnswer {
    let approved = response["approved"].as_bool().unwrap_or(false);
    AgentAnswer::Plan { approved, feedback: text(&response["feedback"]) }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(method: &str, params: &Value, expected: &Expect) {
        expected.assert_eq(&format!("{:?}", read(method, params)));
    }

    #[test]
    fn permissions() {
        let method = "session.permissions.handlePendingPermissionRequest";
        let params = |result: Value| json!({ "requestId": "r", "result": result });
        check(
            method,
            &params(json!({ "kind": "approve-once" })),
            &expect![[r#"Some(Ok(("r", Permission(Once))))"#]],
        );
        check(
            method,
            &params(json!({ "kind": "approve-for-session" })),
            &expect![[r#"Some(Ok(("r", Permission(ForSession))))"#]],
        );
        check(
            method,
            &params(json!({ "kind": "reject", "feedback": "not now" })),
            &expect![[r#"Some(Ok(("r", Permission(Denied { feedback: Some("not now") }))))"#]],
        );
        // An invalid answer allows nothing.
        check(
            method,
            &params(json!({ "kind": "perhaps" })),
            &expect![[r#"Some(Err("`perhaps` is no answer to a permission"))"#]],
        );
        check(
            method,
            &json!({ "result": { "kind": "approve-once" } }),
            &expect![[r#"Some(Err("the answer does not say which question it is for"))"#]],
        );
    }

    #[test]
    fn questions_forms_and_plans() {
        check(
            "session.ui.handlePendingUserInput",
            &json!({ "requestId": "r", "response": { "answer": "blue", "wasFreeform": true } }),
            &expect![[r#"Some(Ok(("r", Question("blue"))))"#]],
        );
        check(
            "session.ui.handlePendingElicitation",
            &json!({ "requestId": "r", "result": { "action": "decline" } }),
            &expect![[r#"Some(Ok(("r", Elicitation { action: Decline, content: None })))"#]],
        );
        check(
            "session.ui.handlePendingExitPlanMode",
            &json!({ "requestId": "r", "response": { "approved": false, "feedback": "smaller" } }),
            &expect![[r#"Some(Ok(("r", Plan { approved: false, feedback: Some("smaller") })))"#]],
        );
        check("session.send", &json!({}), &expect!["None"]);
    }
}
