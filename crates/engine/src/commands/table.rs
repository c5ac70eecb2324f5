//! The slash commands that every session has: what lists say of them, and how they are read.

use hangar_protocol::data::PermissionMode;

use super::{
    Autopilot, CommandRefusal, McpCommand, SessionQuery, SkillsCommand, SlashCommand, first_word, optional,
};

/// A slash command as lists have it.
pub struct SlashCommandSpec {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub description: &'static str,
    pub takes: CommandArgument,
    /// Whether the command may run while the agent works.
    pub meanwhile: bool,
    /// Parses the argument. `None` for an invalid one.
    read: fn(&str) -> Option<SlashCommand>,
}

/// Argument of a command.
pub enum CommandArgument {
    Nothing,
    /// Free text.
    Text(&'static str),
    Directory(ArgumentNeed),
    /// One of these words, and for some of them a name.
    Choice(&'static [(&'static str, &'static str)]),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentNeed {
    Must,
    May,
}

/// All slash commands. The argument of a command that takes none is ignored.
pub const TABLE: &[SlashCommandSpec] = &[
    SlashCommandSpec {
        name: "add-dir",
        aliases: &[],
        description: "Lets the session use the files of another directory",
        takes: CommandArgument::Directory(ArgumentNeed::Must),
        meanwhile: true,
        read: |input| optional(input).map(SlashCommand::AddDirectory),
    },
    SlashCommandSpec {
        name: "allow-all",
        aliases: &["yolo"],
        description: "Approves everything that the session would ask for",
        takes: CommandArgument::Choice(&[
            ("on", "Approve everything"),
            ("off", "Ask again"),
            ("show", "Say which of both it is"),
        ]),
        meanwhile: true,
        read: |input| {
            Some(SlashCommand::Permissions(match input {
                "" | "on" => Some(PermissionMode::AllowAll),
                "off" => Some(PermissionMode::Manual),
                "show" => None,
                _ => return None,
            }))
        },
    },
    SlashCommandSpec {
        name: "autopilot",
        aliases: &["goal"],
        description: "Has the agent work on alone until it is done, or ask again",
        takes: CommandArgument::Text("on|off|objective"),
        meanwhile: true,
        read: |input| {
            Some(SlashCommand::Autopilot(match input {
                "" => Autopilot::Toggle,
                "on" => Autopilot::On,
                "off" => Autopilot::Off,
                objective => Autopilot::Objective(objective.to_owned()),
            }))
        },
    },
    SlashCommandSpec {
        name: "compact",
        aliases: &[],
        description: "Sums the conversation up to make room",
        takes: CommandArgument::Text("what matters most"),
        meanwhile: false,
        read: |input| Some(SlashCommand::Compact(optional(input))),
    },
    SlashCommandSpec {
        name: "context",
        aliases: &[],
        description: "Says what the model's context is filled with",
        takes: CommandArgument::Nothing,
        meanwhile: true,
        read: |_| Some(SlashCommand::Context),
    },
    SlashCommandSpec {
        name: "cwd",
        aliases: &["cd"],
        description: "Says where the session works, or has it work elsewhere",
        takes: CommandArgument::Directory(ArgumentNeed::May),
        meanwhile: false,
        read: |input| Some(SlashCommand::Directory(optional(input))),
    },
    SlashCommandSpec {
        name: "env",
        aliases: &[],
        description: "Says which instructions, MCP servers, skills and agents the session has",
        takes: CommandArgument::Nothing,
        meanwhile: true,
        read: |_| Some(SlashCommand::Environment),
    },
    SlashCommandSpec {
        name: "fleet",
        aliases: &[],
        description: "Has many agents do the work side by side",
        takes: CommandArgument::Text("prompt"),
        meanwhile: false,
        read: |input| Some(SlashCommand::Fleet(input.to_owned())),
    },
    SlashCommandSpec {
        name: "init",
        aliases: &[],
        description: "Has the agent write instructions for this repository",
        takes: CommandArgument::Nothing,
        meanwhile: false,
        read: |_| Some(SlashCommand::Init),
    },
    SlashCommandSpec {
        name: "list-dirs",
        aliases: &[],
        description: "Lists the directories whose files the session may use",
        takes: CommandArgument::Nothing,
        meanwhile: true,
        read: |_| Some(SlashCommand::Directories),
    },
    SlashCommandSpec {
        name: "mcp",
        aliases: &[],
        description: "Lists the MCP servers and switches them on and off",
        takes: CommandArgument::Choice(&[
            ("list", "List the servers"),
            ("show", "Say what a server offers"),
            ("enable", "Switch a server on"),
            ("disable", "Switch a server off"),
            ("reload", "Read the configuration again"),
        ]),
        meanwhile: false,
        read: |input| {
            Some(SlashCommand::Mcp(match first_word(input) {
                ("" | "list" | "show", "") => McpCommand::List,
                ("show", name) => McpCommand::Show(name.to_owned()),
                ("enable", name) if !name.is_empty() => McpCommand::Enable(name.to_owned()),
                ("disable", name) if !name.is_empty() => McpCommand::Disable(name.to_owned()),
                ("reload", "") => McpCommand::Reload,
                _ => return None,
            }))
        },
    },
    SlashCommandSpec {
        name: "model",
        aliases: &["models"],
        description: "Says which model answers, or has another one answer",
        takes: CommandArgument::Text("model"),
        meanwhile: true,
        read: |input| Some(SlashCommand::Model(optional(input))),
    },
    SlashCommandSpec {
        name: "permissions",
        aliases: &[],
        description: "Says whether the session asks before it acts, or changes that",
        takes: CommandArgument::Choice(&[
            ("default", "Ask"),
            ("allow-all", "Approve everything"),
            ("show", "Say which of both it is"),
        ]),
        meanwhile: true,
        read: |input| {
            Some(SlashCommand::Permissions(match input {
                "allow-all" => Some(PermissionMode::AllowAll),
                "default" => Some(PermissionMode::Manual),
                "" | "show" => None,
                _ => return None,
            }))
        },
    },
    SlashCommandSpec {
        name: "plan",
        aliases: &[],
        description: "Has the agent plan before it changes anything",
        takes: CommandArgument::Text("prompt"),
        meanwhile: true,
        read: |input| Some(SlashCommand::Plan(optional(input))),
    },
    SlashCommandSpec {
        name: "rename",
        aliases: &[],
        description: "Gives the session another name",
        takes: CommandArgument::Text("name"),
        meanwhile: true,
        read: |input| optional(input).map(SlashCommand::Rename),
    },
    SlashCommandSpec {
        name: "reset-allowed-tools",
        aliases: &[],
        description: "Takes back what was approved for this session",
        takes: CommandArgument::Nothing,
        meanwhile: true,
        read: |_| Some(SlashCommand::ResetApprovals),
    },
    SlashCommandSpec {
        name: "review",
        aliases: &[],
        description: "Has an agent review the changes",
        takes: CommandArgument::Text("what to look at"),
        meanwhile: false,
        read: |input| Some(SlashCommand::Review(input.to_owned())),
    },
    SlashCommandSpec {
        name: "sandbox",
        aliases: &[],
        description: "Says whether commands run in a sandbox",
        takes: CommandArgument::Choice(&[("status", "Say whether they do")]),
        meanwhile: true,
        read: |input| matches!(input, "" | "status").then_some(SlashCommand::Sandbox),
    },
    SlashCommandSpec {
        name: "security-review",
        aliases: &[],
        description: "Has an agent look for security holes in the changes",
        takes: CommandArgument::Text("what to look at"),
        meanwhile: false,
        read: |input| Some(SlashCommand::SecurityReview(input.to_owned())),
    },
    SlashCommandSpec {
        name: "session",
        aliases: &["sessions"],
        description: "Says what the session is and what it has made",
        takes: CommandArgument::Choice(&[
            ("info", "Say what it is"),
            ("checkpoints", "List its summaries, or show one"),
            ("files", "List the files that it changed"),
            ("plan", "Show its plan"),
            ("rename", "Give it another name"),
        ]),
        meanwhile: true,
        read: |input| {
            Some(match first_word(input) {
                ("" | "info", _) => SlashCommand::Session(SessionQuery::Info),
                ("checkpoints", "") => SlashCommand::Session(SessionQuery::Checkpoints),
                ("checkpoints", number) => SlashCommand::Session(SessionQuery::Checkpoint(number.to_owned())),
                ("files", _) => SlashCommand::SessionFiles,
                ("plan", _) => SlashCommand::Session(SessionQuery::Plan),
                ("rename", name) if !name.is_empty() => SlashCommand::Rename(name.to_owned()),
                _ => return None,
            })
        },
    },
    SlashCommandSpec {
        name: "skills",
        aliases: &[],
        description: "Lists the skills and reads them again",
        takes: CommandArgument::Choice(&[
            ("list", "List the skills"),
            ("info", "Say what a skill is for"),
            ("reload", "Read the skills again"),
        ]),
        meanwhile: false,
        read: |input| {
            Some(SlashCommand::Skills(match first_word(input) {
                ("" | "list", "") => SkillsCommand::List,
                ("info", name) if !name.is_empty() => SkillsCommand::Info(name.to_owned()),
                ("reload", "") => SkillsCommand::Reload,
                _ => return None,
            }))
        },
    },
    SlashCommandSpec {
        name: "usage",
        aliases: &[],
        description: "Says what the session has used and changed",
        takes: CommandArgument::Nothing,
        meanwhile: true,
        read: |_| Some(SlashCommand::Usage),
    },
];

/// The command that a name means, in whichever case it is written.
pub fn find(name: &str) -> Option<&'static SlashCommandSpec> {
    let is = |known: &&str| known.eq_ignore_ascii_case(name);
    TABLE.iter().find(|command| is(&command.name) || command.aliases.iter().any(is))
}

impl SlashCommandSpec {
    /// Parses the command's argument. An invalid one is answered with the valid ones.
    pub fn parse(&self, input: &str) -> Result<SlashCommand, CommandRefusal> {
        (self.read)(input.trim()).ok_or_else(|| {
            let name = self.name;
            CommandRefusal(match &self.takes {
                CommandArgument::Nothing => format!("Usage: /{name}"),
                CommandArgument::Text(_) | CommandArgument::Directory(_) => {
                    format!("Usage: /{name} <{}>", self.takes.hint().unwrap_or_default())
                }
                CommandArgument::Choice(_) => {
                    format!("Usage: /{name} {}", self.takes.hint().unwrap_or_default())
                }
            })
        })
    }
}

impl CommandArgument {
    /// Hint for the argument, if the command takes one.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Nothing => None,
            Self::Text(hint) => Some((*hint).to_owned()),
            Self::Directory(_) => Some("directory".to_owned()),
            Self::Choice(choices) => {
                let words: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                Some(format!("[{}]", words.join("|")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn no_name_means_two_commands() {
        let names: Vec<&str> =
            TABLE.iter().flat_map(|one| [one.name].into_iter().chain(one.aliases.iter().copied())).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "{names:?}");
        for name in names {
            assert!(find(&name.to_uppercase()).is_some(), "{name}");
        }
    }

    #[test]
    fn the_table_is_in_order() {
        assert!(TABLE.is_sorted_by_key(|command| command.name));
    }
}
