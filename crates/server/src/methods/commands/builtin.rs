//! The commands that a session carries out itself: what lists say of them, and what each of them does.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{Answer, change, parts, prompts, tell};
use crate::methods::{Call, Failure};

pub(super) struct Builtin {
    pub(super) name: &'static str,
    aliases: &'static [&'static str],
    description: &'static str,
    takes: Takes,
    /// Whether it may be carried out while the agent is at work.
    meanwhile: bool,
    pub(super) run: fn(Call, String) -> BoxFuture<'static, Result<Answer, Failure>>,
}

/// What is written behind a command.
enum Takes {
    Nothing,
    /// Words of one's own, all of them at once.
    Text(&'static str),
    Directory(Need),
    /// One of these words, and for some of them a name.
    Choice(&'static [(&'static str, &'static str)]),
}

#[derive(PartialEq, Eq)]
enum Need {
    Must,
    May,
}

pub(super) const TABLE: &[Builtin] = &[
    Builtin {
        name: "add-dir",
        aliases: &[],
        description: "Lets the session use the files of another directory",
        takes: Takes::Directory(Need::Must),
        meanwhile: true,
        run: |call, input| Box::pin(change::add_directory(call, input)),
    },
    Builtin {
        name: "allow-all",
        aliases: &["yolo"],
        description: "Approves everything that the session would ask for",
        takes: Takes::Choice(&[
            ("on", "Approve everything"),
            ("off", "Ask again"),
            ("show", "Say which of both it is"),
        ]),
        meanwhile: true,
        run: |call, input| Box::pin(change::allow_all(call, input)),
    },
    Builtin {
        name: "autopilot",
        aliases: &[],
        description: "Has the agent work on alone until it is done, or ask again",
        takes: Takes::Choice(&[("on", "Work alone"), ("off", "Ask again")]),
        meanwhile: true,
        run: |call, input| Box::pin(change::autopilot(call, input)),
    },
    Builtin {
        name: "compact",
        aliases: &[],
        description: "Sums the conversation up to make room",
        takes: Takes::Text("what matters most"),
        meanwhile: false,
        run: |call, input| Box::pin(change::compact(call, input)),
    },
    Builtin {
        name: "context",
        aliases: &[],
        description: "Says what the model's context is filled with",
        takes: Takes::Nothing,
        meanwhile: true,
        run: |call, _| Box::pin(tell::context(call)),
    },
    Builtin {
        name: "cwd",
        aliases: &["cd"],
        description: "Says where the session works, or has it work elsewhere",
        takes: Takes::Directory(Need::May),
        meanwhile: false,
        run: |call, input| Box::pin(change::directory(call, input)),
    },
    Builtin {
        name: "env",
        aliases: &[],
        description: "Says which instructions, MCP servers, skills and agents the session has",
        takes: Takes::Nothing,
        meanwhile: true,
        run: |call, _| Box::pin(tell::environment(call)),
    },
    Builtin {
        name: "fleet",
        aliases: &[],
        description: "Has many agents do the work side by side",
        takes: Takes::Text("prompt"),
        meanwhile: false,
        run: |call, input| Box::pin(change::fleet(call, input)),
    },
    Builtin {
        name: "init",
        aliases: &[],
        description: "Has the agent write instructions for this repository",
        takes: Takes::Nothing,
        meanwhile: false,
        run: |_, _| Box::pin(prompts::init()),
    },
    Builtin {
        name: "list-dirs",
        aliases: &[],
        description: "Lists the directories whose files the session may use",
        takes: Takes::Nothing,
        meanwhile: true,
        run: |call, _| Box::pin(tell::directories(call)),
    },
    Builtin {
        name: "mcp",
        aliases: &[],
        description: "Lists the MCP servers and switches them on and off",
        takes: Takes::Choice(&[
            ("list", "List the servers"),
            ("show", "Say what a server offers"),
            ("enable", "Switch a server on"),
            ("disable", "Switch a server off"),
            ("reload", "Read the configuration again"),
        ]),
        meanwhile: false,
        run: |call, input| Box::pin(parts::mcp(call, input)),
    },
    Builtin {
        name: "model",
        aliases: &["models"],
        description: "Says which model answers, or has another one answer",
        takes: Takes::Text("model"),
        meanwhile: true,
        run: |call, input| Box::pin(change::model(call, input)),
    },
    Builtin {
        name: "permissions",
        aliases: &[],
        description: "Says whether the session asks before it acts, or changes that",
        takes: Takes::Choice(&[
            ("default", "Ask"),
            ("allow-all", "Approve everything"),
            ("show", "Say which of both it is"),
        ]),
        meanwhile: true,
        run: |call, input| Box::pin(change::permissions(call, input)),
    },
    Builtin {
        name: "plan",
        aliases: &[],
        description: "Has the agent plan before it changes anything",
        takes: Takes::Text("prompt"),
        meanwhile: true,
        run: |call, input| Box::pin(prompts::plan(call, input)),
    },
    Builtin {
        name: "rename",
        aliases: &[],
        description: "Gives the session another name",
        takes: Takes::Text("name"),
        meanwhile: true,
        run: |call, input| Box::pin(change::rename(call, input)),
    },
    Builtin {
        name: "reset-allowed-tools",
        aliases: &[],
        description: "Takes back what was approved for this session",
        takes: Takes::Nothing,
        meanwhile: true,
        run: |call, _| Box::pin(change::reset_approvals(call)),
    },
    Builtin {
        name: "review",
        aliases: &[],
        description: "Has an agent review the changes",
        takes: Takes::Text("what to look at"),
        meanwhile: false,
        run: |_, input| Box::pin(prompts::review(input)),
    },
    Builtin {
        name: "sandbox",
        aliases: &[],
        description: "Says whether commands run in a sandbox",
        takes: Takes::Choice(&[("status", "Say whether they do")]),
        meanwhile: true,
        run: |call, input| Box::pin(tell::sandbox(call, input)),
    },
    Builtin {
        name: "security-review",
        aliases: &[],
        description: "Has an agent look for security holes in the changes",
        takes: Takes::Text("what to look at"),
        meanwhile: false,
        run: |_, input| Box::pin(prompts::security_review(input)),
    },
    Builtin {
        name: "session",
        aliases: &["sessions"],
        description: "Says what the session is and what it has made",
        takes: Takes::Choice(&[
            ("info", "Say what it is"),
            ("checkpoints", "List its summaries, or show one"),
            ("files", "List the files that it changed"),
            ("plan", "Show its plan"),
            ("rename", "Give it another name"),
        ]),
        meanwhile: true,
        run: |call, input| Box::pin(tell::session(call, input)),
    },
    Builtin {
        name: "skills",
        aliases: &[],
        description: "Lists the skills and reads them again",
        takes: Takes::Choice(&[
            ("list", "List the skills"),
            ("info", "Say what a skill is for"),
            ("reload", "Read the skills again"),
        ]),
        meanwhile: false,
        run: |call, input| Box::pin(parts::skills(call, input)),
    },
    Builtin {
        name: "usage",
        aliases: &[],
        description: "Says what the session has used and changed",
        takes: Takes::Nothing,
        meanwhile: true,
        run: |call, _| Box::pin(tell::usage(call)),
    },
];

/// The command that a name means, in whichever case it is written.
pub(super) fn find(name: &str) -> Option<&'static Builtin> {
    let is = |known: &&str| known.eq_ignore_ascii_case(name);
    TABLE.iter().find(|command| is(&command.name) || command.aliases.iter().any(is))
}

impl Builtin {
    /// The command as lists have it.
    pub(super) fn entry(&self) -> Value {
        let mut entry = json!({
            "name": self.name,
            "description": self.description,
            "kind": "builtin",
            "allowDuringAgentExecution": self.meanwhile,
        });
        if !self.aliases.is_empty() {
            entry["aliases"] = json!(self.aliases);
        }
        match &self.takes {
            Takes::Nothing => {}
            Takes::Text(hint) => entry["input"] = json!({ "hint": hint, "preserveMultilineInput": true }),
            Takes::Directory(need) => {
                entry["input"] = json!({ "hint": "directory", "completion": "directory" });
                if *need == Need::Must {
                    entry["input"]["required"] = json!(true);
                }
            }
            Takes::Choice(choices) => {
                let words: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                let choices: Vec<Value> = choices
                    .iter()
                    .map(|(name, description)| json!({ "name": name, "description": description }))
                    .collect();
                entry["input"] = json!({ "hint": format!("[{}]", words.join("|")), "choices": choices });
            }
        }
        entry
    }

    /// What to say to somebody who wrote something else behind it than it takes.
    pub(super) fn usage(&self) -> Failure {
        let name = self.name;
        Failure::new(match &self.takes {
            Takes::Nothing => format!("Usage: /{name}"),
            Takes::Text(hint) => format!("Usage: /{name} <{hint}>"),
            Takes::Directory(_) => format!("Usage: /{name} <directory>"),
            Takes::Choice(choices) => {
                let words: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
                format!("Usage: /{name} [{}]", words.join("|"))
            }
        })
    }
}

/// The usage of a command that is known to be there.
pub(super) fn usage(name: &str) -> Failure {
    find(name).map_or_else(|| Failure::new(format!("Usage: /{name}")), Builtin::usage)
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
