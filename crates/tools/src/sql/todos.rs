//! The todos of a session, read for those who show or keep them.

use hangar_protocol::data::Todo;

/// The todos that are looked at, oldest first; no person looks at more.
const OPEN: &str = "SELECT id, title, coalesce(description, ''), coalesce(status, 'pending') FROM todos \
                    WHERE coalesce(status, '') <> 'done' ORDER BY created_at, rowid LIMIT 200";
const ALL: &str =
    "SELECT id, title, description, status, created_at FROM todos ORDER BY created_at, rowid LIMIT 10000";
const DEPENDENCIES: &str = "SELECT todo_id, depends_on FROM todo_deps ORDER BY rowid LIMIT 10000";

/// A row of a query, by its columns.
pub(super) type Row = std::vec::IntoIter<Option<String>>;

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

/// The todos that are not done, oldest first.
pub(super) fn read_open<E>(query: impl Fn(&str) -> Result<Vec<Row>, E>) -> Result<Vec<Todo>, E> {
    let todo = |mut row: Row| Todo {
        id: text(&mut row),
        title: text(&mut row),
        description: text(&mut row),
        status: text(&mut row),
    };
    Ok(query(OPEN)?.into_iter().map(todo).collect())
}

pub(super) fn read<E>(query: impl Fn(&str) -> Result<Vec<Row>, E>) -> Result<TodoList, E> {
    let todo = |mut row: Row| TodoRow {
        id: text(&mut row),
        title: text(&mut row),
        description: row.next().flatten(),
        status: row.next().flatten(),
        created_at: row.next().flatten(),
    };
    let dependency = |mut row: Row| (text(&mut row), text(&mut row));
    Ok(TodoList {
        rows: query(ALL)?.into_iter().map(todo).collect(),
        dependencies: query(DEPENDENCIES)?.into_iter().map(dependency).collect(),
    })
}

fn text(row: &mut Row) -> String {
    row.next().flatten().unwrap_or_default()
}
