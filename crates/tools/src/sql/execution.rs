//! The statements of one call, one after the other, and the text about each.

use std::fmt::Write as _;

use tokio_util::sync::CancellationToken;

use super::statements;

/// Rows of one statement that are listed, bytes of one value, and bytes of all results of a call.
const ROWS_LIMIT: usize = 10_000;
pub(super) const CELL_LIMIT: usize = 64 * 1024;
const TEXT_LIMIT: usize = 1024 * 1024;

/// Result of a call's statements.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Execution {
    pub(crate) done: Vec<StatementResult>,
    pub(crate) failure: Option<StatementFailure>,
    pub(crate) todos_changed: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StatementResult {
    pub(crate) keyword: String,
    pub(crate) text: String,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StatementFailure {
    Failed { keyword: String, message: String },
    Cancelled,
}

/// One statement to carry out.
pub(super) struct StatementStep<'a> {
    pub(super) sql: &'a str,
    pub(super) keyword: &'a str,
    /// Bytes of rows that are worth listing.
    pub(super) room: usize,
}

/// Effect of one statement.
pub(super) struct StatementEffect {
    pub(super) text: String,
    pub(super) todos_changed: bool,
}

impl Execution {
    /// Runs statements up to the first that fails. The error of a statement is its message.
    pub(super) fn of(
        statements: &[&str],
        cancel: &CancellationToken,
        mut run: impl FnMut(StatementStep<'_>) -> Result<StatementEffect, String>,
    ) -> Self {
        let mut execution = Self::default();
        let mut room = TEXT_LIMIT;
        for sql in statements {
            let keyword = statements::keyword(sql);
            let ran = match cancel.is_cancelled() {
                true => Err(String::new()),
                false => run(StatementStep { sql, keyword: &keyword, room }),
            };
            match ran {
                Ok(StatementEffect { text, todos_changed }) => {
                    execution.todos_changed |= todos_changed;
                    room = room.saturating_sub(text.len());
                    execution.done.push(StatementResult { keyword, text });
                }
                Err(message) => {
                    execution.failure = Some(match cancel.is_cancelled() {
                        true => StatementFailure::Cancelled,
                        false => StatementFailure::Failed { keyword, message },
                    });
                    break;
                }
            }
        }
        execution
    }
}

pub(super) fn is_schema_change(keyword: &str) -> bool {
    matches!(keyword, "CREATE" | "DROP" | "ALTER")
}

/// Text about a statement that changed some rows and returned others.
pub(super) fn describe(keyword: &str, changed: u64, last_id: i64, rows: Option<String>) -> String {
    let counted = match keyword {
        "INSERT" => format!("{changed} row(s) inserted. Last inserted row ID: {last_id}."),
        "UPDATE" => format!("{changed} row(s) updated."),
        "DELETE" => format!("{changed} row(s) deleted."),
        _ if is_schema_change(keyword) => "Schema operation completed successfully.".to_owned(),
        _ if rows.is_some() && changed == 0 => String::new(),
        _ => format!("Query executed successfully. Rows affected: {changed}."),
    };
    match (counted.is_empty(), rows) {
        (true, rows) => rows.unwrap_or_default(),
        (false, None) => counted,
        (false, Some(rows)) => format!("{counted}\n\n{rows}"),
    }
}

/// Rows as they are shown.
pub(super) struct ResultTable {
    head: String,
    rule: String,
    lines: String,
    shown: usize,
    total: usize,
    room: usize,
}

impl ResultTable {
    pub(super) fn new<'a>(columns: impl IntoIterator<Item = &'a str>, room: usize) -> Self {
        let (mut head, mut rule) = ("|".to_owned(), "|".to_owned());
        for column in columns {
            let _ = write!(head, " {column} |");
            rule.push_str(" --- |");
        }
        Self { head, rule, lines: String::new(), shown: 0, total: 0, room }
    }

    /// Counts a row, and lists it if there is room. Each value writes itself.
    pub(super) fn row<V, E>(
        &mut self,
        values: impl Iterator<Item = Result<V, E>>,
        write: impl Fn(&mut String, V),
    ) -> Result<(), E> {
        self.total += 1;
        if self.shown == ROWS_LIMIT || self.lines.len() > self.room {
            return Ok(());
        }
        self.shown += 1;
        self.lines.push_str("\n|");
        for value in values {
            self.lines.push(' ');
            write(&mut self.lines, value?);
            self.lines.push_str(" |");
        }
        Ok(())
    }

    pub(super) fn finish(self) -> String {
        let Self { head, rule, lines, shown, total, .. } = self;
        if total == 0 {
            return "Query returned 0 rows.".to_owned();
        }
        let mut text = format!("{total} row(s) returned:\n\n{head}\n{rule}{lines}");
        if shown < total {
            let _ = write!(text, "\n(only the first {shown} are listed)");
        }
        text
    }
}
