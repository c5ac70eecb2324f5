//! What a session came to, counted while its events pass by.

use std::io::{self, Write};

use hangar_protocol::data::{AssistantUsage, CodeChanges};
use hangar_protocol::{Body, Event};

#[derive(Debug, Default)]
pub(super) struct Totals {
    first: Option<String>,
    last: Option<String>,
    prompts: u64,
    model_calls: u64,
    tool_calls: u64,
    errors: u64,
    input_tokens: Tokens,
    output_tokens: Tokens,
    /// As of the last shutdown: the number covers the session, not the run.
    changes: Option<CodeChanges>,
}

/// A sum of numbers of which some may be missing.
#[derive(Debug, Default)]
struct Tokens {
    sum: u64,
    unknown: u64,
}

impl Tokens {
    fn add(&mut self, tokens: Option<u64>) {
        match tokens {
            Some(tokens) => self.sum += tokens,
            None => self.unknown += 1,
        }
    }
}

impl std::fmt::Display for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.sum, self.unknown) {
            (sum, 0) => write!(f, "{sum}"),
            (0, _) => f.write_str("unknown"),
            (sum, unknown) => write!(f, "{sum} (unknown for {unknown} calls)"),
        }
    }
}

impl Totals {
    pub(super) fn count(&mut self, event: &Event) {
        if self.first.is_none() {
            self.first = Some(event.timestamp().to_owned());
        }
        self.last = Some(event.timestamp().to_owned());
        match event.body() {
            Body::UserMessage(_) if event.agent_id().is_none() => self.prompts += 1,
            Body::UsageRecord(record) => self.usage(&record.usage),
            Body::ToolStart(_) => self.tool_calls += 1,
            Body::SessionError(_) => self.errors += 1,
            Body::SessionShutdown(shutdown) => self.changes = Some(shutdown.code_changes.clone()),
            _ => {}
        }
    }

    fn usage(&mut self, usage: &AssistantUsage) {
        self.model_calls += 1;
        self.input_tokens.add(usage.input_tokens);
        self.output_tokens.add(usage.output_tokens);
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "## Totals\n\n| what | how much |\n|---|---|")?;
        writeln!(out, "| prompts | {} |", self.prompts)?;
        writeln!(out, "| model calls | {} |", self.model_calls)?;
        writeln!(out, "| input tokens | {} |", self.input_tokens)?;
        writeln!(out, "| output tokens | {} |", self.output_tokens)?;
        writeln!(out, "| tool calls | {} |", self.tool_calls)?;
        writeln!(out, "| errors | {} |", self.errors)?;
        if let Some(changes) = &self.changes {
            let files = changes.files_modified.len();
            let (added, removed) = (changes.lines_added, changes.lines_removed);
            writeln!(out, "| changes | +{added} -{removed} lines in {files} files |")?;
        }
        if let (Some(first), Some(last)) = (&self.first, &self.last) {
            writeln!(out, "| from | {first} |\n| to | {last} |")?;
        }
        Ok(())
    }
}
