//! Slash commands: prompts that are meant for the agent itself. What is no command of ours is for the model.

use hangar_protocol::data::LoadedSkill;

use crate::schema::{AvailableCommand, CommandInput, Update};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SlashCommand {
    AllowAll(Switch),
    Autopilot(AutopilotSwitch),
    /// Without a prompt the mode alone is changed.
    Plan(Option<String>),
    Compact(Option<String>),
    Model(Option<String>),
    Rename(String),
    Cwd,
    Usage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Switch {
    On,
    Off,
    Show,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AutopilotSwitch {
    On,
    Off,
    /// Switched on, with something to do.
    Objective(String),
}

/// Name, description and hint of each.
const COMMANDS: [(&str, &str, Option<&str>); 8] = [
    ("allow-all", "Use tools, paths and URLs without asking", Some("[on|off|show]")),
    ("autopilot", "Work alone until the task is complete", Some("[on|off|<objective>]")),
    ("compact", "Sum the conversation up to make room", Some("focus instructions")),
    ("cwd", "Show the working directory", None),
    ("model", "Change the model", Some("model")),
    ("plan", "Plan before changing anything", Some("prompt")),
    ("rename", "Rename the session", Some("name")),
    ("usage", "Show what the session has used", None),
];

/// The commands of every session, and the skills that this one has.
pub(crate) fn available(skills: &[LoadedSkill]) -> Update {
    let own = COMMANDS.iter().map(|(name, description, hint)| AvailableCommand {
        name: (*name).to_owned(),
        description: (*description).to_owned(),
        input: hint.map(|hint| CommandInput { hint: hint.to_owned() }),
    });
    let skills =
        skills.iter().filter(|skill| skill.user_invocable && skill.enabled).map(|skill| AvailableCommand {
            name: skill.name.clone(),
            description: skill.description.clone(),
            input: Some(CommandInput {
                hint: skill.argument_hint.clone().unwrap_or_else(|| "prompt".to_owned()),
            }),
        });
    Update::AvailableCommandsUpdate { available_commands: own.chain(skills).collect() }
}

/// The command that a prompt is, if it is one.
pub(crate) fn parse(text: &str) -> Option<SlashCommand> {
    let words = text.trim().strip_prefix('/')?;
    let (name, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let rest = Some(rest.trim()).filter(|rest| !rest.is_empty());
    let said = rest.map(str::to_owned);
    Some(match (name, rest) {
        ("allow-all" | "yolo", None | Some("on")) => SlashCommand::AllowAll(Switch::On),
        ("allow-all" | "yolo", Some("off")) => SlashCommand::AllowAll(Switch::Off),
        ("allow-all" | "yolo", Some("show")) => SlashCommand::AllowAll(Switch::Show),
        ("autopilot", None | Some("on")) => SlashCommand::Autopilot(AutopilotSwitch::On),
        ("autopilot", Some("off")) => SlashCommand::Autopilot(AutopilotSwitch::Off),
        ("autopilot", Some(objective)) => {
            SlashCommand::Autopilot(AutopilotSwitch::Objective(objective.to_owned()))
        }
        ("compact", _) => SlashCommand::Compact(said),
        ("cwd" | "cd", None) => SlashCommand::Cwd,
        ("model", _) => SlashCommand::Model(said),
        ("plan", _) => SlashCommand::Plan(said),
        ("rename", Some(name)) => SlashCommand::Rename(name.to_owned()),
        ("usage", None) => SlashCommand::Usage,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<SlashCommand>) {
        assert_eq!(parse(text), expected, "{text}");
    }

    #[test]
    fn commands_are_told_from_prompts() {
        check("/allow-all", Some(SlashCommand::AllowAll(Switch::On)));
        check("/allow-all show ", Some(SlashCommand::AllowAll(Switch::Show)));
        check(
            "/autopilot fix it",
            Some(SlashCommand::Autopilot(AutopilotSwitch::Objective("fix it".to_owned()))),
        );
        check("/plan\nfirst line", Some(SlashCommand::Plan(Some("first line".to_owned()))));
        check("/compact", Some(SlashCommand::Compact(None)));
        check("/rename", None);
        check("/etc/passwd is a file", None);
        check("what does /plan do", None);
    }

    #[test]
    fn every_listed_command_is_understood() {
        for (name, ..) in COMMANDS {
            assert!(parse(&format!("/{name}")).or_else(|| parse(&format!("/{name} x"))).is_some(), "{name}");
        }
    }
}
