//! The todos of a session, read for those who show or keep them.

use hangar_protocol::data::Todo;
use rusqlite::Connection;

/// Todos that are looked at.
const LIMIT: u32 = 200;

/// The todos that are not done, oldest first.
pub(super) fn read_open(connection: &Connection) -> rusqlite::Result<Vec<Todo>> {
    let mut query = connection.prepare(
        "SELECT id, title, coalesce(description, ''), coalesce(status, 'pending') FROM todos \
         WHERE coalesce(status, '') <> 'done' ORDER BY created_at, rowid LIMIT ?1",
    )?;
    let rows = query.query_map([LIMIT], |row| {
        Ok(Todo { id: row.get(0)?, title: row.get(1)?, description: row.get(2)?, status: row.get(3)? })
    })?;
    rows.collect()
}

/// Rows of either table that are read. A person looks at fewer.
const ROWS_LIMIT: u32 = 10_000;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TodoList {
    pub rows: Vec<TodoRow>,
    /// Each todo with one that has to be done before it.
    pub dependencies: Vec<(String, String)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TodoRow {
    pub id: String,
    pub title: String,
    pub description: Option<String>,
    pub status: Option<String>,
    pub created_at: Option<String>,
}

#[derive(Debug, thiserror::Error)]
#[error("the todos cannot be read: {0}")]
pub struct TodoError(pub(super) String);

impl TodoError {
    pub(super) fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

pub(super) fn read(connection: &Connection) -> rusqlite::Result<TodoList> {
    let mut statement = connection.prepare(
        "SELECT id, title, description, status, created_at FROM todos ORDER BY created_at, rowid LIMIT ?1",
    )?;
    let rows = statement.query_map([ROWS_LIMIT], |row| {
        Ok(TodoRow {
            id: row.get(0)?,
            title: row.get(1)?,
            description: row.get(2)?,
            status: row.get(3)?,
            created_at: row.get(4)?,
        })
    })?;
    let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
    let mut statement =
        connection.prepare("SELECT todo_id, depends_on FROM todo_deps ORDER BY rowid LIMIT ?1")?;
    let dependencies = statement.query_map([ROWS_LIMIT], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(TodoList { rows, dependencies: dependencies.collect::<rusqlite::Result<Vec<_>>>()? })
}
