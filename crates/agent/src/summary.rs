//! The summarised part of a conversation.
//!
//! It has two halves, because a summary may leave things out that must not be lost: summaries, each made once from the
//! messages that it covers and never summarised again; and records that are kept word by word: user messages,
//! discovered instructions, invoked skills, the plan and the open todos.

use std::fmt::Write;

use hangar_protocol::data::{PlanAndTodos, SkillInvoked};

/// Bytes per token of ordinary text, to turn a limit in tokens into one in bytes.
const BYTES_PER_TOKEN: usize = 4;
/// Bytes that are shown of a user message when all of them together would fill half of the context.
const EXCERPT: usize = 1024;

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
    /// Name of its checkpoint file, if it has one.
    pub checkpoint: Option<String>,
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
                // A skill that is invoked again is shown once, as it was last.
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

    pub(crate) fn render(&self) -> String {
        let limit = self.summaries.last().and_then(|summary| summary.token_limit);
        let limit = limit.map_or(usize::MAX, |tokens| usize::try_from(tokens).unwrap_or(usize::MAX));
        let mut text = String::from(
            "Some of the conversation history has been summarized to free up context.\n\nYou were originally given \
             instructions from a user over one or more turns. Here were the user messages:\n",
        );
        self.render_said(limit.saturating_mul(BYTES_PER_TOKEN) / 2, &mut text);
        // A quarter of the context for what happened; the rest is for what happens.
        self.render_summaries(limit.saturating_mul(BYTES_PER_TOKEN) / 4, &mut text);
        self.render_owed(&mut text);
        text
    }

    fn render_said(&self, room: usize, text: &mut String) {
        let said = self.records.iter().filter_map(|record| match record {
            DurableRecord::Said(said) => Some(said),
            DurableRecord::Instruction(_) | DurableRecord::Skill { .. } => None,
        });
        let fits = said.clone().map(String::len).sum::<usize>() <= room;
        let shown: Vec<String> = said.map(|said| shown(said, fits)).collect();
        // Where even excerpts are too many, there is the first, which the session began with, and the latest.
        let mut left = room.saturating_sub(shown.first().map_or(0, String::len));
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
        let files: Vec<&str> = shelved.iter().filter_map(|summary| summary.checkpoint.as_deref()).collect();
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

    fn render_owed(&self, text: &mut String) {
        for record in &self.records {
            match record {
                DurableRecord::Said(_) => {}
                DurableRecord::Instruction(instruction) => push(text, format_args!("\n\n{instruction}")),
                DurableRecord::Skill { name, content } => {
                    push(
                        text,
                        format_args!("\n\n<invoked_skill name=\"{name}\">\n{content}\n</invoked_skill>"),
                    );
                }
            }
        }
        if let Some(plan) = &self.plan_and_todos.plan {
            push(text, format_args!("\n\nThe plan, as plan.md had it:\n<plan>\n{plan}\n</plan>"));
        }
        if !self.plan_and_todos.todos.is_empty() {
            text.push_str("\n\nTodos that are open in the session's database:\n<todos>\n");
            for todo in &self.plan_and_todos.todos {
                push(text, format_args!("- {} [{}] {}", todo.id, todo.status, todo.title));
                if !todo.description.is_empty() {
                    push(text, format_args!(": {}", todo.description));
                }
                text.push('\n');
            }
            text.push_str("</todos>");
        }
    }
}

/// A user message, or the head of it.
fn shown(said: &str, whole: bool) -> String {
    if whole || said.len() <= EXCERPT {
        return format!("<user_message>\n{said}\n</user_message>\n");
    }
    let head = &said[..said.floor_char_boundary(EXCERPT)];
    let left_out = said.len() - head.len();
    format!(
        "<user_message>\n{head}\n[{left_out} bytes left out; the whole message is in events.jsonl in the session \
         folder]\n</user_message>\n"
    )
}

fn push(text: &mut String, what: std::fmt::Arguments<'_>) {
    // Writing to a string does not fail.
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
}
