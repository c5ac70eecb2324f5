//! The todos of a session, read from beside it.

use std::path::Path;

use hangar_protocol::data::Todo;
use rusqlite::{Connection, OpenFlags};

/// Todos that are looked at.
const LIMIT: u32 = 200;

/// The todos that are not done, oldest first. A session without a database, or with one that cannot be read, has none.
pub fn open_todos(database: &Path) -> Vec<Todo> {
    if !database.is_file() {
        return Vec::new();
    }
    read(database).unwrap_or_default()
}

fn read(database: &Path) -> rusqlite::Result<Vec<Todo>> {
    let connection = Connection::open_with_flags(
        database,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    let mut query = connection.prepare(
        "SELECT id, title, coalesce(description, ''), coalesce(status, 'pending') FROM todos \
         WHERE coalesce(status, '') <> 'done' ORDER BY created_at, rowid LIMIT ?1",
    )?;
    let rows = query.query_map([LIMIT], |row| {
        Ok(Todo { id: row.get(0)?, title: row.get(1)?, description: row.get(2)?, status: row.get(3)? })
    })?;
    rows.collect()
}
