//! Questions of the model, plans to approve, and the terminal's own questions.

use serde_json::{Value, json};

use super::choice::answer;
use super::{BodyPart, ChoiceDialog, Dialog, DialogChoice, DialogReply, TextNeed};

const ANSWER: &str = "session.ui.handlePendingUserInput";
const REVIEW: &str = "session.ui.handlePendingExitPlanMode";
/// Result for the model when the person declines to answer.
const SKIPPED: &str = "The user skipped this question. Go on without an answer, or ask differently.";

/// Dialog of a `user_input.requested` event, from its data.
pub fn question(data: &Value, now: u64) -> Dialog {
    let id = data["requestId"].as_str().unwrap_or_default().to_owned();
    let reply = |id: &str, text: &str, freeform: bool| {
        answer(ANSWER, id, "response", json!({ "answer": text, "wasFreeform": freeform }))
    };
    let offered = data["choices"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut choices: Vec<DialogChoice> =
        offered.map(|label| DialogChoice::new(label, reply(&id, label, false))).collect();
    let only_text = choices.is_empty();
    if only_text || data["allowFreeform"].as_bool().unwrap_or(true) {
        let asked = id.clone();
        let label = if only_text { "Answer" } else { "Something else" };
        choices.push(DialogChoice::with_text(label, TextNeed::Required, move |text| {
            reply(&asked, text.unwrap_or_default(), true)
        }));
    }
    let cancel = reply(&id, SKIPPED, true);
    let parts = vec![BodyPart::Markdown(data["question"].as_str().unwrap_or_default().to_owned())];
    let dialog = ChoiceDialog::new(Some(id), "A question", parts, choices, cancel, now);
    Dialog::Choice(Box::new(if only_text { dialog.in_text() } else { dialog }))
}

/// Dialog of an `exit_plan_mode.requested` event, from its data.
pub fn plan(data: &Value, now: u64) -> Dialog {
    let id = data["requestId"].as_str().unwrap_or_default().to_owned();
    let actions: Vec<&str> =
        data["actions"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut choices: Vec<DialogChoice> = actions
        .iter()
        .map(|action| {
            let decision = json!({ "approved": true, "selectedAction": action });
            DialogChoice::new(action_label(action), answer(REVIEW, &id, "response", decision))
        })
        .collect();
    let asked = id.clone();
    choices.push(DialogChoice::with_text(
        "No, change the plan: say how",
        TextNeed::Optional,
        move |feedback| {
            let mut decision = json!({ "approved": false });
            if let Some(feedback) = feedback {
                decision["feedback"] = json!(feedback);
            }
            answer(REVIEW, &asked, "response", decision)
        },
    ));
    let recommended = data["recommendedAction"].as_str().unwrap_or_default();
    let recommended = actions.iter().position(|action| *action == recommended).unwrap_or(0);
    let plan = data["planContent"].as_str().filter(|plan| !plan.is_empty());
    let plan = plan.or_else(|| data["summary"].as_str()).unwrap_or_default();
    let cancel = answer(REVIEW, &id, "response", json!({ "approved": false }));
    let parts = vec![BodyPart::Markdown(plan.to_owned())];
    let dialog = ChoiceDialog::new(Some(id), "Approve this plan?", parts, choices, cancel, now);
    Dialog::Choice(Box::new(dialog.recommending(recommended)))
}

fn action_label(action: &str) -> String {
    match action {
        "interactive" => "Yes, and ask before each step".to_owned(),
        "autopilot" => "Yes, and work on alone until it is done".to_owned(),
        "autopilot_fleet" => "Yes, with many agents side by side".to_owned(),
        "exit_only" => "Leave plan mode and wait for my prompt".to_owned(),
        other => format!("Yes: {other}"),
    }
}

/// Dialog at the first start in a directory.
pub fn trust(directory: &str, now: u64) -> Dialog {
    let parts = vec![
        BodyPart::Code(directory.to_owned()),
        BodyPart::Text(
            "Files here can hold instructions for the model, and programs that are started with a session (MCP servers, \
             hooks). Work in directories that you trust."
                .to_owned(),
        ),
    ];
    let choices = vec![
        DialogChoice::new("Yes, for this session", DialogReply::Trust { remember: false }),
        DialogChoice::new("Yes, and remember this directory", DialogReply::Trust { remember: true }),
        DialogChoice::new("No, leave", DialogReply::Exit),
    ];
    let dialog =
        ChoiceDialog::new(None, "Do you trust this directory?", parts, choices, DialogReply::Exit, now);
    Dialog::Choice(Box::new(dialog))
}

/// Dialog of an exit while work is in progress.
pub fn confirm_exit(working: &str, now: u64) -> Dialog {
    let parts = vec![BodyPart::Text(working.to_owned())];
    let choices = vec![
        DialogChoice::new("Stop it and leave", DialogReply::Exit),
        DialogChoice::new("Stay", DialogReply::Dismissed),
    ];
    let dialog = ChoiceDialog::new(None, "Leave now?", parts, choices, DialogReply::Dismissed, now);
    Dialog::Choice(Box::new(dialog))
}
