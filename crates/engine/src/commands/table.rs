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
        description: "Adds a directory whose files the session may use",
        takes: CommandArgument::Directory(ArgumentNeed::Must),
        meanwhile: true,
        read: |input| optional(input).map(SlashCommand::AddDirectory),
    },
    SlashCommandSpec {
        name: "allow-all",
        aliases: &["yolo"],
        description: "Approves all permission requests of the session",
        takes: CommandArgument::Choice(&[
            ("on", "Approve everything"),
            ("off", "Ask again"),
            ("show", "Show the current setting"),
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
        description: "Lets the agent work on its own until the task is done, or stops that",
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
        description: "Summarizes the conversation to free context",
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
        description: "Shows or changes the working directory",
        takes: CommandArgument::Directory(ArgumentNeed::May),
        meanwhile: false,
        read: |input| Some(SlashCommand::Directory(optional(input))),
    },
    SlashCommandSpec {
        name: "env",
        aliases: &[],
        description: "Lists the session's instructions, MCP servers, skills and agents",
        takes: CommandArgument::Nothing,
        meanwhile: true,
        read: |_| Some(SlashCommand::Environment),
    },
    SlashCommandSpec {
        name: "fleet",
        aliases: &[],
        description: "Splits the task among agents that work in parallel",
        takes: CommandArgument::Text("prompt"),
        meanwhile: false,
        read: |input| Some(SlashCommand::Fleet(input.to_owned())),
    },
    SlashCommandSpec {
        name: "init",
        aliases: &[],
        description: "Lets the agent write instructions for this repository",
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
            ("show", "Show the tools of a server"),
            ("enable", "Switch a server on"),
            ("disable", "Switch a server off"),
            ("reload", "Reload the configuration"),
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
        description: "Shows or changes the model",
        takes: CommandArgument::Text("model"),
        meanwhile: true,
        read: |input| Some(SlashCommand::Model(optional(input))),
    },
    SlashCommandSpec {
        name: "permissions",
        aliases: &[],
        description: "Shows or changes whether the session asks for permission",
        takes: CommandArgument::Choice(&[
            ("default", "Ask"),
            ("allow-all", "Approve everything"),
            ("reset", "Ask, and revoke the approvals for this session"),
            ("show", "Show the current setting"),
        ]),
        meanwhile: true,
        read: |input| {
            Some(SlashCommand::Permissions(match input {
                "reset" => return Some(SlashCommand::ResetApprovals),
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
        description: "Lets the agent plan before it changes anything",
        takes: CommandArgument::Text("prompt"),
        meanwhile: true,
        read: |input| Some(SlashCommand::Plan(optional(input))),
    },
    SlashCommandSpec {
        name: "rename",
        aliases: &[],
        description: "Renames the session",
        takes: CommandArgument::Text("name"),
        meanwhile: true,
        read: |input| optional(input).map(SlashCommand::Rename),
    },
    SlashCommandSpec {
        name: "research",
        aliases: &[],
        description: "Lets agents research a question and write a report",
        takes: CommandArgument::Text("question"),
        meanwhile: false,
        read: |input| optional(input).map(SlashCommand::Research),
    },
    SlashCommandSpec {
        name: "reset-allowed-tools",
        aliases: &[],
        description: "Revokes the approvals for this session",
        takes: CommandArgument::Nothing,
        meanwhile: true,
        read: |_| Some(SlashCommand::ResetApprovals),
    },
    SlashCommandSpec {
        name: "review",
        aliases: &[],
        description: "Lets an agent review the changes",
        takes: CommandArgument::Text("what to look at"),
        meanwhile: false,
        read: |input| Some(SlashCommand::Review(input.to_owned())),
    },
    SlashCommandSpec {
        name: "rubber-duck",
        aliases: &[],
        description: "Lets an agent of its own criticize the current work",
        takes: CommandArgument::Text("what to look at"),
        meanwhile: false,
        read: |input| Some(SlashCommand::RubberDuck(input.to_owned())),
    },
    SlashCommandSpec {
        name: "sandbox",
        aliases: &[],
        description: "Shows whether commands run in a sandbox",
        takes: CommandArgument::Choice(&[("status", "Show whether they do")]),
        meanwhile: true,
        read: |input| matches!(input, "" | "status").then_some(SlashCommand::Sandbox),
    },
    SlashCommandSpec {
        name: "security-review",
        aliases: &[],
        description: "Lets an agent look for vulnerabilities in the changes",
        takes: CommandArgument::Text("what to look at"),
        meanwhile: false,
        read: |input| Some(SlashCommand::SecurityReview(input.to_owned())),
    },
    SlashCommandSpec {
        name: "session",
        aliases: &["sessions"],
        description: "Shows the session, its files, plan and summaries",
        takes: CommandArgument::Choice(&[
            ("info", "Show information about it"),
            ("checkpoints", "List its summaries, or show one"),
            ("files", "List the files that it changed"),
            ("plan", "Show its plan"),
            ("rename", "Rename it"),
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
        description: "Lists or reloads the skills",
        takes: CommandArgument::Choice(&[
            ("list", "List the skills"),
            ("info", "Describe a skill"),
            ("reload", "Reload the skills"),
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
        description: "Shows the usage and changes of the session",
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
