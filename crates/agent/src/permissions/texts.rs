//! Texts for the model when a call is not permitted.

use super::Rule;

/// Nobody could be asked.
pub const NO_USER: &str = "Permission denied and could not request permission from user";

/// A command was blocked, and nobody could be asked.
pub fn kept_from(blocked: &str, output: &str) -> String {
    let told = format!("{NO_USER}: the command was kept from {blocked}");
    match output.trim() {
        "" => told,
        output => format!("{told}\n\n{output}"),
    }
}

/// Question whether a blocked command may run without limits.
pub fn was_kept_from(blocked: &str) -> String {
    format!(
        "The command was run with limits, and by what it printed it was kept from {blocked}. Once allowed, it runs again from the start, without limits."
    )
}

pub fn denied_by_rules(rules: &[Rule]) -> String {
    let rules: Vec<String> = rules.iter().map(|rule| format!("`{rule}`")).collect();
    format!("Permission to run this tool was denied due to the following rules: {}", rules.join(", "))
}

pub fn rejected_by_user(feedback: Option<&str>) -> String {
    match feedback {
        Some(feedback) => format!("The user rejected this tool call. User feedback: {feedback}"),
        None => "The user rejected this tool call.".to_owned(),
    }
}

pub fn denied_by_hook(message: Option<&str>) -> String {
    match message {
        Some(message) => format!("Permission denied by a PermissionRequest hook: {message}"),
        None => "Permission denied by a PermissionRequest hook".to_owned(),
    }
}
