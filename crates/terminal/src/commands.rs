//! Slash commands of the terminal itself. They take precedence over those of the session, which the engine lists.

use std::cmp::Reverse;

use crate::extensions;
use crate::program::{self, ProgramCommand};
use crate::status::StatusItem;
use crate::theme::Theme;
use crate::worktrees::Uncommitted;

/// A slash command as lists and completion have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandEntry {
    pub name: String,
    pub aliases: Vec<String>,
    pub description: String,
    /// Subcommands, each with a description.
    pub choices: Vec<(String, String)>,
    /// Hint for the argument, if it takes one.
    pub hint: Option<String>,
    /// Whether it may run while the agent is working.
    pub meanwhile: bool,
}

/// Action of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LocalCommand {
    Agent,
    Ask,
    Changelog,
    Clear,
    CollectLogs,
    Context,
    Copy,
    Detach,
    Diff,
    Exit,
    Export,
    Extensions,
    Fork,
    Help,
    Hooks,
    Instructions,
    Limits,
    Login,
    Logout,
    Model,
    New,
    Notify,
    Plugin,
    /// A subcommand of the program, in a process of its own.
    Program(ProgramCommand),
    Raw,
    Reasoning,
    Refine,
    Restart,
    Resume,
    Rewind,
    /// Prompts that the session sends itself.
    Schedule {
        recurring: bool,
    },
    Search,
    Settings,
    StatusLine,
    Subagents,
    Tasks,
    Theme,
    Usage,
    Version,
    Vim,
    /// A working tree of its own for the session.
    Worktree(Uncommitted),
    /// Not available in Hangar: this sentence names the alternative.
    Absent(&'static str),
}

struct Spec {
    name: &'static str,
    aliases: &'static [&'static str],
    description: &'static str,
    does: LocalCommand,
}

const fn spec(
    name: &'static str,
    aliases: &'static [&'static str],
    description: &'static str,
    does: LocalCommand,
) -> Spec {
    Spec { name, aliases, description, does }
}

const NEEDS_GITHUB: &str = "This needs GitHub's own service, which Hangar does not use.";

const TABLE: &[Spec] = &[
    spec("agent", &[], "Chooses the agent that answers", LocalCommand::Agent),
    spec("ask", &["btw"], "Asks something aside, outside the conversation", LocalCommand::Ask),
    spec("clear", &["reset"], "Starts over in a new session", LocalCommand::Clear),
    spec("context", &[], "Says what the model's context is filled with", LocalCommand::Context),
    spec("copy", &[], "Copies the last answer to the clipboard", LocalCommand::Copy),
    spec("detach", &[], "Leaves the session running elsewhere", LocalCommand::Detach),
    spec("diff", &[], "Shows what changed in the working tree", LocalCommand::Diff),
    spec("exit", &["quit"], "Closes the session and leaves", LocalCommand::Exit),
    spec(
        "export",
        &["share"],
        "Writes the transcript to a file: md or html, and a path",
        LocalCommand::Export,
    ),
    spec("fork", &["branch"], "Goes on in a copy of the session", LocalCommand::Fork),
    spec("help", &[], "Lists commands and keys", LocalCommand::Help),
    spec("hooks", &[], "Lists the hooks of the session", LocalCommand::Hooks),
    spec("instructions", &[], "Lists the instruction files that are read", LocalCommand::Instructions),
    spec(
        "keep-alive",
        &["caffeinate"],
        "",
        LocalCommand::Absent(
            "Start Hangar under `systemd-inhibit` (Linux) or `caffeinate -i` (macOS) to keep the machine awake.",
        ),
    ),
    spec("model", &["models"], "Chooses the model and its effort", LocalCommand::Model),
    spec("new", &[], "Opens a new session and leaves this one as it is", LocalCommand::New),
    spec("notify", &[], "Switches notifications on or off", LocalCommand::Notify),
    spec("reasoning", &[], "Shows or hides the model's reasoning", LocalCommand::Reasoning),
    spec("resume", &["continue"], "Opens an earlier session, of any agent", LocalCommand::Resume),
    spec("rewind", &["undo"], "Goes back to an earlier prompt, with or without files", LocalCommand::Rewind),
    spec("search", &["find"], "Searches the transcript", LocalCommand::Search),
    spec("settings", &["config"], "Shows the settings of the terminal", LocalCommand::Settings),
    spec("statusline", &["footer"], "Chooses what the status line shows", LocalCommand::StatusLine),
    spec("subagents", &["agents"], "Lists agents and their models", LocalCommand::Subagents),
    spec("tasks", &[], "Lists sub-agents and background commands", LocalCommand::Tasks),
    spec("theme", &[], "Chooses the colours", LocalCommand::Theme),
    spec("usage", &["cost"], "Says what the session used and cost", LocalCommand::Usage),
    spec("version", &[], "Says which version this is", LocalCommand::Version),
    spec("vim", &[], "Switches vim keys on or off", LocalCommand::Vim),
    spec("changelog", &["release-notes"], "Shows what is new in this version", LocalCommand::Changelog),
    spec("app", &[], "", LocalCommand::Absent(NEEDS_GITHUB)),
    spec("computer", &[], "", LocalCommand::Absent(NEEDS_GITHUB)),
    spec("delegate", &[], "", LocalCommand::Absent(NEEDS_GITHUB)),
    spec(
        "pr",
        &[],
        "",
        LocalCommand::Absent(
            "Ask the agent to use `gh`, or set up GitHub's MCP server with `hangar mcp add`.",
        ),
    ),
    spec(
        "remote",
        &[],
        "",
        LocalCommand::Absent("`hangar up` shows and steers the sessions of this machine in a browser."),
    ),
    spec("login", &[], "Sets up a provider and its model", LocalCommand::Login),
    spec("logout", &[], "Removes a provider, with the key that was kept for it", LocalCommand::Logout),
    spec(
        "user",
        &[],
        "",
        LocalCommand::Absent("Hangar has no accounts; `hangar doctor` shows which keys are found."),
    ),
    spec(
        "feedback",
        &["bug"],
        "",
        LocalCommand::Absent("`hangar doctor --json` says everything that a report needs."),
    ),
    spec(
        "diagnose",
        &[],
        "Checks models, logins and this machine, as `hangar doctor` does",
        LocalCommand::Program(ProgramCommand::Diagnose),
    ),
    spec(
        "collect-debug-logs",
        &[],
        "Copies the session's log and the program's logs to a directory",
        LocalCommand::CollectLogs,
    ),
    spec(
        "update",
        &["upgrade"],
        "",
        LocalCommand::Absent(
            "Hangar does not update itself: install the new version as you installed this one.",
        ),
    ),
    spec("restart", &[], "Starts the program again, with this session", LocalCommand::Restart),
    spec("voice", &[], "", LocalCommand::Absent("Hangar has no voice input.")),
    spec(
        "ide",
        &[],
        "",
        LocalCommand::Absent(
            "Editors start Hangar themselves: `hangar --acp` speaks the Agent Client Protocol.",
        ),
    ),
    spec(
        "lsp",
        &[],
        "",
        LocalCommand::Absent("Hangar starts no language servers; an MCP server can bring one."),
    ),
    spec("extensions", &[], "Lists the extensions and switches them on and off", LocalCommand::Extensions),
    spec("plugin", &["plugins"], "Lists, installs, updates and removes plugins", LocalCommand::Plugin),
    spec(
        "memory",
        &[],
        "Lists, shows, edits and deletes the notes about this repository",
        LocalCommand::Program(ProgramCommand::Memory),
    ),
    spec(
        "experimental",
        &[],
        "Lists the features that can be switched on and off",
        LocalCommand::Program(ProgramCommand::Features),
    ),
    spec("limits", &[], "Limits the cost of the session, or removes the limit", LocalCommand::Limits),
    spec(
        "worktree",
        &[],
        "Continues in a new git worktree: a branch, a task, or nothing",
        LocalCommand::Worktree(Uncommitted::Stay),
    ),
    spec(
        "move",
        &[],
        "Moves uncommitted changes and the session into a new git worktree",
        LocalCommand::Worktree(Uncommitted::Move),
    ),
    spec("chronicle", &[], "", LocalCommand::Absent("/resume lists the earlier sessions of all agents.")),
    spec("raw", &[], "Prints the last answer as it was written, without layout", LocalCommand::Raw),
    spec("refine", &[], "Rewrites a rough prompt into a clear one, for review", LocalCommand::Refine),
    spec(
        "terminal-setup",
        &[],
        "",
        LocalCommand::Absent(
            "alt+enter and ctrl+j make a new line everywhere; shift+enter does where the terminal tells it apart.",
        ),
    ),
    spec(
        "every",
        &[],
        "Sends a prompt again and again: an interval and the prompt",
        LocalCommand::Schedule { recurring: true },
    ),
    spec(
        "after",
        &[],
        "Sends a prompt later: a time and the prompt",
        LocalCommand::Schedule { recurring: false },
    ),
];

/// The command of the terminal that has a name or an alias.
pub fn find(name: &str) -> Option<LocalCommand> {
    let found = TABLE.iter().find(|spec| {
        spec.name.eq_ignore_ascii_case(name)
            || spec.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    })?;
    Some(found.does)
}

/// Commands for completion and help: those of the terminal, then those of the session that it does not replace.
pub fn entries(session: &[CommandEntry]) -> Vec<CommandEntry> {
    let own =
        TABLE.iter().filter(|spec| !matches!(spec.does, LocalCommand::Absent(_))).map(|spec| CommandEntry {
            name: spec.name.to_owned(),
            aliases: spec.aliases.iter().map(|alias| (*alias).to_owned()).collect(),
            description: spec.description.to_owned(),
            choices: choices_of(spec.does).map(|(name, about)| (name.to_owned(), about.to_owned())).collect(),
            hint: None,
            meanwhile: true,
        });
    let others = session.iter().filter(|entry| find(&entry.name).is_none()).cloned().map(|mut entry| {
        let more = program::MORE_CHOICES.iter().filter(|(name, _)| *name == entry.name);
        let more = more.flat_map(|(_, choices)| *choices);
        entry.choices.extend(more.map(|(name, about)| ((*name).to_owned(), (*about).to_owned())));
        entry
    });
    let mut all: Vec<CommandEntry> = own.chain(others).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Words that a command of the terminal takes, each with a description.
fn choices_of(command: LocalCommand) -> Box<dyn Iterator<Item = (&'static str, &'static str)>> {
    let listed = |choices: &'static [(&'static str, &'static str)]| Box::new(choices.iter().copied());
    match command {
        LocalCommand::Diff => listed(&[("branch", "All changes since the branch began")]),
        LocalCommand::Export => listed(&[("md", "Markdown"), ("html", "A page that is readable by itself")]),
        LocalCommand::Extensions => listed(extensions::CHOICES),
        LocalCommand::Limits => listed(&[("off", "Remove the limit")]),
        LocalCommand::Plugin => listed(program::PLUGIN_CHOICES),
        LocalCommand::Schedule { .. } => {
            listed(&[("list", "Lists the scheduled prompts"), ("stop", "Ends one, by its number")])
        }
        LocalCommand::StatusLine => Box::new(StatusItem::names().map(|name| (name, ""))),
        LocalCommand::Theme => {
            let names = Theme::names().iter().copied();
            Box::new(std::iter::once("auto").chain(names).map(|name| (name, "")))
        }
        _ => Box::new(std::iter::empty()),
    }
}

/// A line as a command: its name and its argument. A path is no command.
pub fn parse(line: &str) -> Option<(&str, &str)> {
    let words = line.trim().strip_prefix('/')?;
    let (name, argument) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || "-_:.".contains(c));
    is_name.then_some((name, argument.trim()))
}

/// Name of the command that a mistyped one was most likely meant to be.
pub fn nearest<'a>(name: &str, all: &'a [CommandEntry]) -> Option<&'a str> {
    let distance = |known: &str| similarity(&name.to_lowercase(), known);
    let names = all.iter().flat_map(|entry| std::iter::once(&entry.name).chain(&entry.aliases));
    let (near, shared) = names
        .map(|known| (known.as_str(), distance(known)))
        .max_by_key(|(known, shared)| (*shared, Reverse(known.len())))?;
    (shared * 3 >= near.chars().count().max(name.chars().count()) * 2).then_some(near)
}

/// Number of characters that two names share in order.
fn similarity(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row = vec![0; b.len() + 1];
    for x in a.chars() {
        let mut diagonal = 0;
        for (at, y) in b.iter().enumerate() {
            let above = row[at + 1];
            row[at + 1] = if x == *y { diagonal + 1 } else { above.max(row[at]) };
            diagonal = above;
        }
    }
    row[b.len()]
}

/// The commands that a server lists, from its answer to `session.commands.list`.
pub fn listed(answer: &serde_json::Value) -> Vec<CommandEntry> {
    let commands = answer["commands"].as_array().into_iter().flatten();
    let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
    let entry = |command: &serde_json::Value| CommandEntry {
        name: text(&command["name"]),
        aliases: command["aliases"].as_array().into_iter().flatten().map(text).collect(),
        description: text(&command["description"]),
        choices: command["input"]["choices"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|choice| (text(&choice["name"]), text(&choice["description"])))
            .collect(),
        hint: command["input"]["hint"].as_str().map(str::to_owned),
        meanwhile: command["allowDuringAgentExecution"].as_bool().unwrap_or(false),
    };
    commands.map(entry).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn a_line_is_a_command_only_if_its_first_word_could_be_a_name() {
        assert_eq!(parse("/model gpt-5 "), Some(("model", "gpt-5")));
        assert_eq!(parse(" /help"), Some(("help", "")));
        assert_eq!(parse("/etc/passwd is a file"), None);
        assert_eq!(parse("/"), None);
        assert_eq!(parse("what does /plan do"), None);
    }

    #[test]
    fn a_mistyped_name_finds_the_nearest() {
        let all = entries(&[]);
        assert_eq!(nearest("modle", &all), Some("model"));
        assert_eq!(nearest("quiet", &all), Some("quit"));
        assert_eq!(nearest("frobnicate", &all), None);
    }

    #[test]
    fn every_name_means_one_command() {
        let mut seen = HashSet::new();
        for spec in TABLE {
            for name in std::iter::once(&spec.name).chain(spec.aliases) {
                assert!(seen.insert(name), "{name} is there twice");
            }
            let is_absent = matches!(spec.does, LocalCommand::Absent(_));
            assert!(is_absent || !spec.description.is_empty(), "{} says nothing", spec.name);
        }
    }
}
