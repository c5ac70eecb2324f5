//! The session's tables where a client keeps them. What they may hold and cost is up to the client.

use std::convert::Infallible;

use hangar_files::{ClientFiles, FileError, Rows, SqlKind, block_on};
use hangar_protocol::data::Todo;
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::database::{DatabaseError, SCHEMA, SqlTables};
use super::execution::{CELL_LIMIT, Execution, ResultTable, StatementEffect, StatementStep, describe};
use super::todos::{self, Row, TodoError, TodoList};

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

impl SqlTables for ClientTables {
    fn todos(&self) -> Result<TodoList, TodoError> {
        if !block_on(self.files.has_tables()).map_err(TodoError::new)? {
            return Ok(TodoList::default());
        }
        self.make().and_then(|()| todos::read(|query| self.query(query))).map_err(TodoError::new)
    }

    fn open_todos(&self) -> Vec<Todo> {
        self.state.lock().open.clone()
    }

    fn execute(&self, statements: &[&str], cancel: &CancellationToken) -> Result<Execution, DatabaseError> {
        self.make()?;
        let execution = Execution::of(statements, cancel, |step| self.run(&step));
        if execution.todos_changed {
            self.look_again();
        }
        Ok(execution)
    }
}

impl ClientTables {
    pub(super) fn new(files: ClientFiles) -> Self {
        Self { files, state: Mutex::default() }
    }

    fn run(&self, step: &StatementStep<'_>) -> Result<StatementEffect, String> {
        let kind = kind(step.keyword);
        let is_query = kind == SqlKind::Query;
        let rows = block_on(self.files.sql(kind, step.sql)).map_err(|error| match error {
            FileError::Refused(message) => message,
            other => other.to_string(),
        })?;
        let changed = if is_query { 0 } else { rows.affected };
        let table = is_query.then(|| table(&rows, step.room));
        Ok(StatementEffect {
            text: describe(step.keyword, changed, rows.last_id.unwrap_or_default(), table),
            todos_changed: !is_query && step.sql.to_ascii_lowercase().contains("todo"),
        })
    }

    fn make(&self) -> Result<(), FileError> {
        if self.state.lock().made {
            return Ok(());
        }
        block_on(self.files.sql(SqlKind::Exec, SCHEMA))?;
        self.state.lock().made = true;
        self.look_again();
        Ok(())
    }

    /// Reads the open todos anew. Their readers cannot wait for the client, so this is done whenever they change.
    fn look_again(&self) {
        // Todos that cannot be read are as they were.
        if let Ok(open) = todos::read_open(|query| self.query(query)) {
            self.state.lock().open = open;
        }
    }

    fn query(&self, query: &str) -> Result<Vec<Row>, FileError> {
        let rows = block_on(self.files.sql(SqlKind::Query, query))?.rows.into_iter();
        Ok(rows.map(|row| row.iter().map(cell).collect::<Vec<_>>().into_iter()).collect())
    }
}

fn kind(keyword: &str) -> SqlKind {
    match keyword {
        "SELECT" | "PRAGMA" | "EXPLAIN" | "VALUES" | "WITH" => SqlKind::Query,
        "INSERT" | "UPDATE" | "DELETE" | "REPLACE" => SqlKind::Run,
        _ => SqlKind::Exec,
    }
}

fn table(rows: &Rows, room: usize) -> String {
    let mut table = ResultTable::new(rows.columns.iter().map(String::as_str), room);
    for row in &rows.rows {
        let values = row.iter().map(Ok::<_, Infallible>);
        let Ok(()) = table.row(values, |line, value| {
            let cell = cell(value).unwrap_or_else(|| "NULL".to_owned());
            line.push_str(&cell[..cell.floor_char_boundary(CELL_LIMIT)]);
        });
    }
    table.finish()
}

fn cell(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}
