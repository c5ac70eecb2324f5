//! The summarised part of a conversation.
//!
//! It has two halves, because a summary may leave things out that must not be lost: summaries, each made once from the
//! messages that it covers and never summarised again; and records that are kept word by word: user messages,
//! discovered instructions, invoked skills, the plan and the open todos.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use hangar_protocol::data::{PlanAndTodos, SkillInvoked};

/// Bytes per token of ordinary text, to turn a limit in tokens into one in bytes.
const BYTES_PER_TOKEN: usize = 4;
/// Bytes that are shown of a user message when all of them together would fill their share of the context.
const EXCERPT: usize = 1024;
/// Shares of the context, as divisors: for user messages, for summaries, and for the other records. Most of the context
/// stays free for new messages.
const SAID_SHARE: usize = 4;
const SUMMARIES_SHARE: usize = 4;
const OWED_SHARE: usize = 8;

/// A record that outlives the message it came with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DurableRecord {
    /// A user message.
    Said(String),
    /// Instructions about files that tools touched.
    Instruction(String),
    Skill {
        name: String,
        content: String,
    },
}

impl From<&SkillInvoked> for DurableRecord {
    fn from(skill: &SkillInvoked) -> Self {
        DurableRecord::Skill { name: skill.name.clone(), content: skill.content.clone() }
    }
}

/// One summary, as the log has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub text: String,
    /// Path of its checkpoint file, if it has one: `checkpoints/NAME` in the session folder.
    pub checkpoint: Option<PathBuf>,
    /// Context window of the model in tokens. It decides how much of older summaries is shown.
    pub token_limit: Option<u64>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct SummarizedPart {
    records: Vec<DurableRecord>,
    plan_and_todos: PlanAndTodos,
    summaries: Vec<Summary>,
}

impl SummarizedPart {
    /// Adds a summary and the records of the messages that it covers.
    pub(crate) fn extend(
        &mut self,
        records: impl IntoIterator<Item = DurableRecord>,
        plan_and_todos: &PlanAndTodos,
        summary: Summary,
    ) {
        for record in records {
            if let DurableRecord::Skill { name, .. } = &record {
                // A skill that was invoked several times is shown once, in its last version.
                self.records.retain(
                    |known| !matches!(known, DurableRecord::Skill { name: known, .. } if known == name),
                );
            }
            let told = matches!(record, DurableRecord::Instruction(_)) && self.records.contains(&record);
            if !told {
                self.records.push(record);
            }
        }
        self.plan_and_todos = plan_and_todos.clone();
        self.summaries.push(summary);
    }

    pub(crate) fn records(&self) -> impl Iterator<Item = &DurableRecord> {
        self.records.iter()
    }

    pub(crate) fn render(&self) -> String {
        let limit = self.summaries.last().and_then(|summary| summary.token_limit);
        let limit = limit.map_or(usize::MAX, |tokens| usize::try_from(tokens).unwrap_or(usize::MAX));
        let mut text = String::from(
            "Some of the conversation history has been summarized to free up context.\n\nYou were originally given \
             instructions from a user over one or more turns. Here were the user messages:\n",
        );
        let bytes = limit.saturating_mul(BYTES_PER_TOKEN);
        self.render_said(bytes / SAID_SHARE, &mut text);
        self.render_summaries(bytes / SUMMARIES_SHARE, &mut text);
        self.render_owed(bytes / OWED_SHARE, &mut text);
        // The facts about the session were part of the first message, which is gone.
        if let Some(folder) = self.folder() {
            let folder = folder.display();
            push(
                &mut text,
                format_args!("\n\n<system_reminder>The session folder is {folder}.</system_reminder>"),
            );
        }
        text
    }

    fn folder(&self) -> Option<&Path> {
        self.summaries.last()?.checkpoint.as_deref()?.parent()?.parent()
    }

    /// Renders user messages: all of them if they fit, else the first, which the session began with, and the latest, with
    /// those before it shortened.
    fn render_said(&self, room: usize, text: &mut String) {
        let said: Vec<&str> = self
            .records
            .iter()
            .filter_map(|record| match record {
                DurableRecord::Said(said) => Some(said.as_str()),
                DurableRecord::Instruction(_) | DurableRecord::Skill { .. } => None,
            })
            .collect();
        let fits = said.iter().map(|said| said.len()).sum::<usize>() <= room;
        let last = said.len().saturating_sub(1);
        let most = |index: usize| match index {
            _ if fits => usize::MAX,
            0 => room / 4,
            index if index == last => room / 2,
            _ => EXCERPT,
        };
        let shown: Vec<String> = said
            .iter()
            .enumerate()
            .map(|(index, said)| shown(said, most(index).max(EXCERPT.min(room))))
            .collect();
        let mut left =
            if fits { usize::MAX } else { room.saturating_sub(shown.first().map_or(0, String::len)) };
        let latest = shown.iter().skip(1).rev().take_while(|message| {
            let fits = message.len() <= left;
            left = left.saturating_sub(message.len());
            fits
        });
        let between = shown.len().saturating_sub(1 + latest.count());
        for (index, message) in shown.iter().enumerate() {
            if index == 1 && between > 0 {
                push(
                    text,
                    format_args!(
                        "[{between} messages left out; they are in events.jsonl in the session folder]\n"
                    ),
                );
            }
            if index == 0 || index > between {
                text.push_str(message);
            }
        }
    }

    /// Renders the latest summaries in full and older ones by the names of their files.
    fn render_summaries(&self, room: usize, text: &mut String) {
        let mut left = room;
        let shown = self
            .summaries
            .iter()
            .rev()
            .take_while(|summary| {
                let fits = summary.text.len() <= left;
                left = left.saturating_sub(summary.text.len());
                fits
            })
            .count()
            .max(1);
        let (shelved, shown) = self.summaries.split_at(self.summaries.len().saturating_sub(shown));
        let files = shelved.iter().filter_map(|summary| summary.checkpoint.as_deref()?.file_name());
        let files: Vec<_> = files.map(|name| name.to_string_lossy()).collect();
        if !files.is_empty() {
            push(
                text,
                format_args!("\nSummaries of what came first are in the session folder, oldest first:\n"),
            );
            for file in files {
                push(text, format_args!("- checkpoints/{file}\n"));
            }
        }
        text.push_str("\nHere is a summary of the prior context:\n");
        for (index, summary) in shown.iter().enumerate() {
            let end = if index + 1 < shown.len() { "\n" } else { "" };
            push(text, format_args!("<summary>\n{}\n</summary>{end}", summary.text));
        }
    }

    /// Renders the other records, the latest first where not all of them fit.
    fn render_owed(&self, room: usize, text: &mut String) {
        let plan = self.plan_and_todos.plan.as_ref().map(|plan| {
            let plan = cut(plan, room / 2, "plan.md in the session folder has them");
            format!("\n\nThe plan, as plan.md had it:\n<plan>\n{plan}\n</plan>")
        });
        let todos = self.todos(room / 4);
        let mut left = room.saturating_sub(plan.as_ref().map_or(0, String::len) + todos.len());
        let mut owed = Vec::new();
        let mut left_out = 0;
        for record in self.records.iter().rev() {
            let told = match record {
                DurableRecord::Said(_) => continue,
                DurableRecord::Instruction(instruction) => format!("\n\n{instruction}"),
                DurableRecord::Skill { name, content } => {
                    format!("\n\n<invoked_skill name=\"{name}\">\n{content}\n</invoked_skill>")
                }
            };
            match left.checked_sub(told.len()) {
                Some(rest) => {
                    left = rest;
                    owed.push(told);
                }
                None => left_out += 1,
            }
        }
        owed.iter().rev().for_each(|told| text.push_str(told));
        if left_out > 0 {
            push(
                text,
                format_args!(
                    "\n\n[{left_out} instructions or skills are left out; they are in events.jsonl in the session folder]"
                ),
            );
        }
        text.push_str(&plan.unwrap_or_default());
        text.push_str(&todos);
    }

    fn todos(&self, room: usize) -> String {
        if self.plan_and_todos.todos.is_empty() {
            return String::new();
        }
        let mut text = "\n\nTodos that are open in the session's database:\n<todos>\n".to_owned();
        let mut left_out = 0;
        for todo in &self.plan_and_todos.todos {
            let mut line = format!("- {} [{}] {}", todo.id, todo.status, todo.title);
            if !todo.description.is_empty() {
                push(&mut line, format_args!(": {}", todo.description));
            }
            if text.len() + line.len() <= room {
                text.push_str(&line);
                text.push('\n');
            } else {
                left_out += 1;
            }
        }
        if left_out > 0 {
            push(&mut text, format_args!("[{left_out} todos left out; the sql tool has them]\n"));
        }
        text.push_str("</todos>");
        text
    }
}

/// A user message, or the head of it.
fn shown(said: &str, most: usize) -> String {
    let said = cut(said, most, "the whole message is in events.jsonl in the session folder");
    format!("<user_message>\n{said}\n</user_message>\n")
}

/// A text, or the head of it with a note of where the rest is.
fn cut<'a>(text: &'a str, most: usize, rest: &str) -> Cow<'a, str> {
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let head = &text[..text.floor_char_boundary(most)];
    let left_out = text.len() - head.len();
    Cow::Owned(format!("{head}\n[{left_out} bytes left out; {rest}]"))
}

fn push(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = text.write_fmt(what);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summarized(said: impl IntoIterator<Item = String>, token_limit: u64) -> String {
        let summary = Summary { text: "sum".to_owned(), checkpoint: None, token_limit: Some(token_limit) };
        let mut summarized = SummarizedPart::default();
        summarized.extend(said.into_iter().map(DurableRecord::Said), &PlanAndTodos::default(), summary);
        summarized.render()
    }

    #[test]
    fn what_people_said_is_there_word_by_word() {
        let text = summarized(["first".to_owned(), "second".to_owned()], 1000);
        assert!(
            text.contains(
                "<user_message>\nfirst\n</user_message>\n<user_message>\nsecond\n</user_message>\n"
            )
        );
        assert!(!text.contains("left out"));
    }

    #[test]
    fn a_thousand_requests_leave_room_for_work() {
        let said = (0..1000).map(|index| format!("request {index} {}", "word ".repeat(20)));
        let text = summarized(said, 10_000);
        assert!(text.len() < 10_000 * BYTES_PER_TOKEN * 6 / 10, "{}", text.len());
        for there in ["request 0 ", "request 999 ", "messages left out"] {
            assert!(text.contains(there), "{there}");
        }
        assert!(!text.contains("request 1 "));
        let shown = text.matches("<user_message>").count();
        assert!(text.contains(&format!("[{} messages left out", 1000 - shown)), "{shown}");
    }

    #[test]
    fn the_first_and_the_latest_request_are_whole_where_others_are_shortened() {
        let long = |mark: &str| format!("{mark} {} end of {mark}", "word ".repeat(600));
        let said = (0..30).map(|index| long(&format!("request-{index}")));
        let text = summarized(said, 20_000);
        for whole in ["end of request-0\n", "end of request-29\n"] {
            assert!(text.contains(whole), "{whole}");
        }
        assert!(text.contains("request-28 ") && !text.contains("end of request-28"));
    }

    #[test]
    fn no_part_of_it_grows_without_bound() {
        let long = "word ".repeat(20_000);
        let summary = Summary {
            text: long.clone(),
            checkpoint: Some("/s/checkpoints/001-a.md".into()),
            token_limit: Some(10_000),
        };
        let todo = |n: usize| hangar_protocol::data::Todo {
            id: format!("t{n}"),
            title: "do it".to_owned(),
            status: "pending".to_owned(),
            description: "word ".repeat(100),
        };
        let plan_and_todos = PlanAndTodos { plan: Some(long.clone()), todos: (0..500).map(todo).collect() };
        let mut summarized = SummarizedPart::default();
        let skill = |n: usize| DurableRecord::Skill { name: format!("s{n}"), content: "word ".repeat(200) };
        let records = (0..200).flat_map(|n| {
            [DurableRecord::Said(long.clone()), DurableRecord::Instruction(format!("{n} {long}")), skill(n)]
        });
        summarized.extend(records, &plan_and_todos, Summary { text: "sum".to_owned(), ..summary });
        let text = summarized.render();
        assert!(text.len() < 10_000 * BYTES_PER_TOKEN * 7 / 10, "{}", text.len());
        for there in [
            "messages left out",
            "instructions or skills are left out",
            "todos left out",
            "<invoked_skill name=\"s199\">",
            "The session folder is /s.",
        ] {
            assert!(text.contains(there), "{there}");
        }
    }
}
