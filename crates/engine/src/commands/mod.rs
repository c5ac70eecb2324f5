//! Slash commands: one table for every front end. A front end that takes typed text gives it to
//! [`Engine::submit`](crate::Engine::submit); one that has its own way to call commands looks them up with [`find`] and
//! gives them to [`Engine::carry_out`](crate::Engine::carry_out).

mod change;
mod prompts;
mod table;
mod tell;

use std::path::PathBuf;

use futures_util::future::BoxFuture;
use hangar_agent::log::LogError;
use hangar_agent::session::{NOTHING_TO_COMPACT, Prompt};
use hangar_protocol::data::{CompactionComplete, Mode, PermissionMode};

pub use table::{ArgumentNeed, CommandArgument, SlashCommandSpec, TABLE, find};
pub use tell::{NO_PLAN, about, checkpoint, checkpoint_list, checkpoint_number, mcp_list, reloaded};

/// A slash command, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlashCommand {
    AddDirectory(String),
    Autopilot(Autopilot),
    Compact(Option<String>),
    Context,
    /// Shows or changes the working directory.
    Directory(Option<String>),
    Directories,
    Environment,
    Fleet(String),
    Init,
    Mcp(McpCommand),
    Model(Option<String>),
    /// Shows or changes the permission mode.
    Permissions(Option<PermissionMode>),
    Plan(Option<String>),
    Rename(String),
    Research(String),
    ResetApprovals,
    Review(String),
    RubberDuck(String),
    Sandbox,
    SecurityReview(String),
    Session(SessionQuery),
    SessionFiles,
    Skills(SkillsCommand),
    Usage,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Autopilot {
    Toggle,
    On,
    Off,
    /// Switched on, with something to do.
    Objective(String),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum McpCommand {
    List,
    Show(String),
    Enable(String),
    Disable(String),
    Reload,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SkillsCommand {
    List,
    Info(String),
    Reload,
}

/// A question about the files in the folder of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionQuery {
    Info,
    Checkpoints,
    Checkpoint(String),
    Plan,
}

/// Reply of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandReply {
    Text(String),
    Markdown(String),
    /// It is done, and that may be worth a word.
    Done(Option<String>),
}

impl CommandReply {
    pub fn into_text(self) -> Option<String> {
        match self {
            Self::Text(text) | Self::Markdown(text) => Some(text),
            Self::Done(message) => message,
        }
    }
}

/// Why a command was not carried out, as a sentence.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CommandRefusal(pub String);

impl CommandRefusal {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Refused(#[from] CommandRefusal),
    /// The session cannot continue.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// Outcome of a command.
pub enum CommandOutcome {
    Replied(CommandReply),
    Later(BoxFuture<'static, Result<CommandReply, CommandRefusal>>),
    /// A prompt for the session.
    Send(Box<Prompt>),
    /// A prompt to send or a mode to change to, which some front ends leave to their client.
    Propose(Proposal),
    /// Compacts the conversation.
    Compact(Option<String>),
    /// It takes more than the session.
    Compose(ComposerRequest),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    pub prompt: Option<String>,
    /// Text that is shown in place of the prompt.
    pub shown: String,
    pub mode: Option<Mode>,
}

/// Request to the composer of the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ComposerRequest {
    Move(PathBuf),
    SwitchModel(String),
    ReloadServers,
    Environment,
    Query(SessionQuery),
}

/// The command that a text is, if it is one: a known name with what it takes, or why it is not carried out. What is no
/// command is for the model.
pub fn parse(text: &str) -> Option<Result<SlashCommand, CommandRefusal>> {
    let words = text.trim().strip_prefix('/')?;
    let (name, input) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    Some(find(name)?.parse(input))
}

/// Reply to a requested summary.
pub(crate) fn summary(complete: Option<CompactionComplete>) -> Result<CommandReply, CommandRefusal> {
    let Some(complete) = complete else { return Err(CommandRefusal::new("the summary was stopped")) };
    match complete.error.as_deref() {
        None if complete.success => Ok(summarized(&complete)),
        Some(NOTHING_TO_COMPACT) => Err(CommandRefusal::new(NOTHING_TO_COMPACT)),
        why => Err(CommandRefusal(format!(
            "the conversation could not be summed up: {}",
            why.unwrap_or_default()
        ))),
    }
}

pub fn summarized(complete: &CompactionComplete) -> CommandReply {
    CommandReply::Text(format!(
        "Compacted the conversation: removed {} messages and {} tokens.",
        complete.messages_removed.unwrap_or(0),
        complete.tokens_removed.unwrap_or(0)
    ))
}

/// First word of a command's argument, and the rest.
fn first_word(input: &str) -> (&str, &str) {
    let (word, rest) = input.split_once(char::is_whitespace).unwrap_or((input, ""));
    (word, rest.trim_start())
}

/// Argument of a command, if there is one.
fn optional(input: &str) -> Option<String> {
    Some(input).filter(|input| !input.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: Option<SlashCommand>) {
        assert_eq!(parse(text), expected.map(Ok), "{text}");
    }

    #[test]
    fn commands_are_told_from_prompts() {
        check("/allow-all", Some(SlashCommand::Permissions(Some(PermissionMode::AllowAll))));
        check(" /YOLO show ", Some(SlashCommand::Permissions(None)));
        check("/autopilot fix it", Some(SlashCommand::Autopilot(Autopilot::Objective("fix it".to_owned()))));
        check("/plan\nfirst line", Some(SlashCommand::Plan(Some("first line".to_owned()))));
        check("/compact", Some(SlashCommand::Compact(None)));
        check("/compactor x", None);
        check("/etc/passwd is a file", None);
        check("what does /plan do", None);
    }

    #[test]
    fn what_a_command_does_not_take_is_answered_with_what_it_takes() {
        for (text, usage) in [
            ("/rename", "Usage: /rename <name>"),
            ("/allow-all maybe", "Usage: /allow-all [on|off|show]"),
            ("/mcp enable", "Usage: /mcp [list|show|enable|disable|reload]"),
            ("/session x", "Usage: /session [info|checkpoints|files|plan|rename]"),
        ] {
            assert_eq!(parse(text), Some(Err(CommandRefusal::new(usage))), "{text}");
        }
    }
}
