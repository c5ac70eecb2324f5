//! The session's tables where a client keeps them. What they may hold and cost is up to the client.

use parking_lot::{Mutex, MutexGuard};
use std::fmt::Write as _;

use hangar_files::{ClientFiles, FileError, Rows, SqlKind};
use hangar_protocol::data::Todo;
use serde_json::{Map, Value};
use tokio_util::sync::CancellationToken;

use super::database::{
    CELL_LIMIT, Done, Execution, Failure, ROWS_LIMIT, SCHEMA, TEXT_LIMIT, columns_line, is_schema_change,
};
use super::statements;
use super::todos::{TodoError, TodoList, TodoRow};

const OPEN: &str = "SELECT id, title, coalesce(description, '') AS description, \
                    coalesce(status, 'pending') AS status FROM todos WHERE coalesce(status, '') <> 'done' \
                    ORDER BY created_at, rowid LIMIT 200";
const ALL: &str =
    "SELECT id, title, description, status, created_at FROM todos ORDER BY created_at, rowid LIMIT 10000";
const DEPENDENCIES: &str = "SELECT todo_id, depends_on FROM todo_deps ORDER BY rowid LIMIT 10000";

#[derive(Debug)]
pub(super) struct ClientTables {
    files: ClientFiles,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Whether the tables for todos are there for sure.
    made: bool,
    open: Vec<Todo>,
}

impl ClientTables {
    pub(super) fn new(files: ClientFiles) -> Self {
        Self { files, state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    pub(super) fn open_todos(&self) -> Vec<Todo> {
        self.state().open.clone()
    }

    pub(super) fn todos(&self) -> Result<TodoList, TodoError> {
        if !self.files.block_on(self.files.has_tables()).map_err(TodoError::new)? {
            return Ok(TodoList::default());
        }
        self.make().map_err(TodoError::new)?;
        let rows = self.query(ALL).map_err(TodoError::new)?;
        let dependencies = self.query(DEPENDENCIES).map_err(TodoError::new)?;
        Ok(TodoList {
            rows: rows
                .rows
                .iter()
                .map(|row| TodoRow {
                    id: text(row, "id"),
                    title: text(row, "title"),
                    description: optional(row, "description"),
                    status: optional(row, "status"),
                    created_at: optional(row, "created_at"),
                })
                .collect(),
            dependencies: dependencies
                .rows
                .iter()
                .map(|row| (text(row, "todo_id"), text(row, "depends_on")))
                .collect(),
        })
    }

    pub(super) fn execute(
        &self,
        statements: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Execution, FileError> {
        self.make()?;
        let mut execution = Execution::default();
        let mut room = TEXT_LIMIT;
        for statement in statements {
            let keyword = statements::keyword(statement);
            if cancel.is_cancelled() {
                execution.failure = Some(Failure::Cancelled);
                break;
            }
            let kind = kind(&keyword);
            match self.files.block_on(self.files.sql(kind, *statement)) {
                Ok(rows) => {
                    execution.todos_changed |=
                        kind != SqlKind::Query && statement.to_ascii_lowercase().contains("todo");
                    let text = describe(&keyword, kind, &rows, room);
                    room = room.saturating_sub(text.len());
                    execution.done.push(Done { keyword, text });
                }
                Err(error) => {
                    let message = match error {
                        FileError::Refused(message) => message,
                        other => other.to_string(),
                    };
                    execution.failure = Some(Failure::Statement { keyword, message });
                    break;
                }
            }
        }
        if execution.todos_changed {
            self.look_again();
        }
        Ok(execution)
    }

    fn make(&self) -> Result<(), FileError> {
        if self.state().made {
            return Ok(());
        }
        self.files.block_on(self.files.sql(SqlKind::Exec, SCHEMA))?;
        self.state().made = true;
        self.look_again();
        Ok(())
    }

    /// Those who keep the todos in mind cannot wait for the client, so they are asked for whenever they change.
    fn look_again(&self) {
        // Todos that cannot be read are as they were.
        if let Ok(rows) = self.query(OPEN) {
            self.state().open = rows
                .rows
                .iter()
                .map(|row| Todo {
                    id: text(row, "id"),
                    title: text(row, "title"),
                    description: text(row, "description"),
                    status: text(row, "status"),
                })
                .collect();
        }
    }

    fn query(&self, query: &str) -> Result<Rows, FileError> {
        self.files.block_on(self.files.sql(SqlKind::Query, query))
    }
}

fn kind(keyword: &str) -> SqlKind {
    match keyword {
        "SELECT" | "PRAGMA" | "EXPLAIN" | "VALUES" | "WITH" => SqlKind::Query,
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" => SqlKind::Run,
        _ => SqlKind::Exec,
    }
}

fn describe(keyword: &str, kind: SqlKind, rows: &Rows, room: usize) -> String {
    let changed = rows.affected;
    match (keyword, kind) {
        ("INSERT", _) => {
            format!("{changed} row(s) inserted. Last inserted row ID: {}.", rows.last_id.unwrap_or_default())
        }
        ("UPDATE", _) => format!("{changed} row(s) updated."),
        ("DELETE", _) => format!("{changed} row(s) deleted."),
        (keyword, _) if is_schema_change(keyword) => "Schema operation completed successfully.".to_owned(),
        (_, SqlKind::Query) => table(rows, room),
        _ => format!("Query executed successfully. Rows affected: {changed}."),
    }
}

fn table(rows: &Rows, room: usize) -> String {
    let total = rows.rows.len();
    if total == 0 {
        return "Query returned 0 rows.".to_owned();
    }
    let head = columns_line(rows.columns.iter().map(String::as_str));
    let rule = columns_line(rows.columns.iter().map(|_| "---"));
    let mut lines = String::new();
    let mut shown = 0;
    for row in rows.rows.iter().take(ROWS_LIMIT) {
        if lines.len() > room {
            break;
        }
        shown += 1;
        lines.push_str("\n|");
        for column in &rows.columns {
            let cell = cell(row.get(column));
            let _ = write!(lines, " {} |", &cell[..cell.floor_char_boundary(CELL_LIMIT)]);
        }
    }
    let mut text = format!("{total} row(s) returned:\n\n{head}\n{rule}{lines}");
    if shown < total {
        let _ = write!(text, "\n(only the first {shown} are listed)");
    }
    text
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "NULL".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

fn text(row: &Map<String, Value>, column: &str) -> String {
    optional(row, column).unwrap_or_default()
}

fn optional(row: &Map<String, Value>, column: &str) -> Option<String> {
    match row.get(column)? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
