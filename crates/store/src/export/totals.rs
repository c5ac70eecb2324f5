//! Table at the end of an export: totals of the session, and its start and end.

use std::io::{self, Write};

use hangar_protocol::data::CodeChanges;
use hangar_protocol::{Event, Totals};

#[derive(Debug, Default)]
pub(super) struct TotalsTable {
    totals: Totals,
    first: Option<String>,
    last: Option<String>,
}

impl TotalsTable {
    pub(super) fn count(&mut self, event: &Event) {
        if self.first.is_none() {
            self.first = Some(event.timestamp().to_owned());
        }
        self.last = Some(event.timestamp().to_owned());
        self.totals.apply(event);
    }

    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let totals = &self.totals;
        writeln!(out, "## Totals\n\n| what | how much |\n|---|---|")?;
        writeln!(out, "| prompts | {} |", totals.prompts)?;
        writeln!(out, "| model calls | {} |", totals.requests)?;
        writeln!(out, "| input tokens | {} |", tokens(totals.input_tokens, totals.untold.0))?;
        writeln!(out, "| output tokens | {} |", tokens(totals.output_tokens, totals.untold.1))?;
        writeln!(out, "| tool calls | {} |", totals.tool_calls)?;
        writeln!(out, "| errors | {} |", totals.errors)?;
        if totals.changes != CodeChanges::default() {
            let files = totals.changes.files_modified.len();
            let (added, removed) = (totals.changes.lines_added, totals.changes.lines_removed);
            writeln!(out, "| changes | +{added} -{removed} lines in {files} files |")?;
        }
        if let (Some(first), Some(last)) = (&self.first, &self.last) {
            writeln!(out, "| from | {first} |\n| to | {last} |")?;
        }
        Ok(())
    }
}

/// A sum of tokens, with the number of calls that do not tell theirs.
fn tokens(sum: Option<u64>, untold: u64) -> String {
    match (sum, untold) {
        (sum, 0) => sum.unwrap_or(0).to_string(),
        (None | Some(0), _) => "unknown".to_owned(),
        (Some(sum), untold) => format!("{sum} (unknown for {untold} calls)"),
    }
}
