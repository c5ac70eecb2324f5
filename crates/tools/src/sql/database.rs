//! The session's database: opened when first needed, kept to itself, within bounds.

use parking_lot::Mutex;
use std::ffi::OsStr;
use std::fmt::{self, Write as _};
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use hangar_disk::{Folder, Identity};
use hangar_files::{ClientFiles, FileError};
use hangar_protocol::data::Todo;
use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, ErrorCode, MAIN_DB, Statement};
use tokio_util::sync::CancellationToken;

use super::client::ClientTables;
use super::execution::{
    CELL_LIMIT, Execution, ResultTable, StatementEffect, StatementFailure, StatementStep, describe,
    is_schema_change,
};
use super::todos::{self, Row, TodoError, TodoList};

/// Time for all statements of one call.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// Steps of SQLite's machine between two looks at the clock.
const STEPS_PER_CHECK: i32 = 10_000;

/// Pages of the file, 64 MB of them, and bytes of one value.
const PAGES_LIMIT: u32 = 16 * 1024;
const VALUE_LIMIT: i32 = 16 * 1024 * 1024;

/// Bytes of the file.
const SIZE_LIMIT: u64 = 64 << 20;

/// The name of the file in a session's directory.
const FILE: &str = "session.db";

pub(super) const SCHEMA: &str = "
    CREATE TABLE IF NOT EXISTS todos (
        id TEXT PRIMARY KEY,
        title TEXT NOT NULL,
        description TEXT,
        status TEXT DEFAULT 'pending' CHECK(status IN ('pending', 'in_progress', 'done', 'blocked')),
        created_at TEXT DEFAULT (datetime('now')),
        updated_at TEXT DEFAULT (datetime('now'))
    );
    CREATE TABLE IF NOT EXISTS todo_deps (
        todo_id TEXT NOT NULL REFERENCES todos(id),
        depends_on TEXT NOT NULL REFERENCES todos(id),
        PRIMARY KEY (todo_id, depends_on)
    );";

/// Pragmas that only tell.
const PRAGMAS: [&str; 14] = [
    "collation_list",
    "compile_options",
    "database_list",
    "foreign_key_check",
    "foreign_key_list",
    "function_list",
    "index_info",
    "index_list",
    "index_xinfo",
    "integrity_check",
    "quick_check",
    "table_info",
    "table_list",
    "table_xinfo",
];

/// The tables of a session.
pub(super) trait SqlTables: fmt::Debug + Send + Sync {
    fn todos(&self) -> Result<TodoList, TodoError>;

    fn open_todos(&self) -> Vec<Todo>;

    fn execute(&self, statements: &[&str], cancel: &CancellationToken) -> Result<Execution, DatabaseError>;
}

#[derive(Debug)]
pub struct Database(Box<dyn SqlTables>);

/// A database in a file. It is worked on in memory and the file replaced as a whole: SQLite would open it, and journals
/// beside it, by path, and apply a journal that another program has put there.
#[derive(Debug)]
struct OnDisk {
    path: PathBuf,
    /// The session's directory, where that is known already.
    folder: Option<Folder>,
    open: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    connection: Connection,
    /// The file as it was read or written last; `None` if there was none.
    file: Option<Stamp>,
}

/// Identity, size and time of a file, to detect writes by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    identity: Identity,
    size: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { identity: Identity::of(metadata), size: metadata.len(), modified: metadata.modified().ok() }
    }
}

#[derive(Debug, thiserror::Error)]
pub(crate) enum DatabaseError {
    #[error("cannot open the session database {}: {source}", path.display())]
    File { path: PathBuf, source: FileFault },
    #[error("cannot save the session database {}: {source}", path.display())]
    Save { path: PathBuf, source: FileFault },
    #[error("cannot open the session database: {0}")]
    Client(#[from] FileError),
}

/// Error of a database's file.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileFault {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error(transparent)]
    Sqlite(#[from] rusqlite::Error),
}

impl Database {
    /// A database at `path`, which is created when first used.
    pub fn new(path: PathBuf) -> Self {
        Self(Box::new(OnDisk { path, folder: None, open: Mutex::new(None) }))
    }

    /// The database in a session's directory, which is created when first used.
    pub fn of_session(folder: Folder) -> Self {
        let path = folder.path().join(FILE);
        Self(Box::new(OnDisk { path, folder: Some(folder), open: Mutex::new(None) }))
    }

    /// A database that a client keeps.
    pub fn of_client(files: ClientFiles) -> Self {
        Self(Box::new(ClientTables::new(files)))
    }

    /// The todos as they are now. A database that was never used has none, and stays unmade. May block.
    pub fn todos(&self) -> Result<TodoList, TodoError> {
        self.0.todos()
    }

    /// The todos that are not done, oldest first; those that a client keeps as they were last seen.
    pub fn open_todos(&self) -> Vec<Todo> {
        self.0.open_todos()
    }

    /// Runs statements one after the other, up to the first that fails. What ran before it stays. May block.
    pub(crate) fn execute(
        &self,
        statements: &[&str],
        cancel: &CancellationToken,
    ) -> Result<Execution, DatabaseError> {
        self.0.execute(statements, cancel)
    }
}

impl SqlTables for OnDisk {
    fn todos(&self) -> Result<TodoList, TodoError> {
        let mut slot = self.open.lock();
        let mut read = || -> Result<TodoList, FileFault> {
            let Some(file) = self.file()? else { return Ok(TodoList::default()) };
            let connection = &self.current(&mut slot, Some(file))?.connection;
            Ok(todos::read(|sql| query(connection, sql))?)
        };
        read().map_err(TodoError::new)
    }

    /// Without waiting for statements that are under way.
    fn open_todos(&self) -> Vec<Todo> {
        let read = || -> Result<Vec<Todo>, FileFault> {
            let Some(file) = self.file()? else { return Ok(Vec::new()) };
            let connection = load(Some(&file))?;
            Ok(todos::read_open(|sql| query(&connection, sql))?)
        };
        // A session without a database, or with one that cannot be read, has none.
        read().unwrap_or_default()
    }

    fn execute(&self, statements: &[&str], cancel: &CancellationToken) -> Result<Execution, DatabaseError> {
        let unusable = |source| DatabaseError::File { path: self.path.clone(), source };
        let mut slot = self.open.lock();
        let file = self.file().map_err(|error| unusable(error.into()))?;
        let is_new = file.is_none();
        self.current(&mut slot, file).map_err(unusable)?;
        if is_new {
            self.save(&mut slot).map_err(unusable)?;
        }
        let Some(Open { connection, .. }) = &mut *slot else { return Ok(Execution::default()) };
        let touches_todos = Arc::new(AtomicBool::new(false));
        guard(connection, &touches_todos, cancel).map_err(|error| unusable(error.into()))?;
        let mut writes = false;
        let mut execution = Execution::of(statements, cancel, |step| {
            touches_todos.store(false, Ordering::Relaxed);
            let changes = connection.total_changes();
            let text = run(connection, &step, &mut writes).map_err(|error| message(&error))?;
            let has_changed = connection.total_changes() > changes || is_schema_change(step.keyword);
            Ok(StatementEffect { text, todos_changed: has_changed && touches_todos.load(Ordering::Relaxed) })
        });
        end_transaction(connection, &mut execution);
        if writes && let Err(source) = self.save(&mut slot) {
            // Content in memory will not be there next time.
            *slot = None;
            return Err(DatabaseError::Save { path: self.path.clone(), source });
        }
        Ok(execution)
    }
}

impl OnDisk {
    fn folder(&self) -> io::Result<Folder> {
        match (&self.folder, self.path.parent()) {
            (Some(folder), _) => Ok(folder.clone()),
            (None, Some(parent)) => Folder::ensure(parent),
            (None, None) => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a path of a file")),
        }
    }

    fn name(&self) -> &OsStr {
        self.path.file_name().unwrap_or(OsStr::new(FILE))
    }

    /// The file, if there is one. A link, or anything but a regular file, is refused.
    fn file(&self) -> io::Result<Option<File>> {
        match self.folder()?.read(self.name()) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The database as the file has it.
    fn current<'a>(&self, slot: &'a mut Option<Open>, file: Option<File>) -> Result<&'a mut Open, FileFault> {
        let stamp = file.as_ref().map(File::metadata).transpose()?.as_ref().map(Stamp::of);
        match slot {
            Some(open) if open.file == stamp => {}
            _ => *slot = Some(Open { connection: load(file.as_ref())?, file: stamp }),
        }
        slot.as_mut().ok_or_else(|| io::Error::other("the database was not opened").into())
    }

    fn save(&self, slot: &mut Option<Open>) -> Result<(), FileFault> {
        let Some(open) = slot else { return Ok(()) };
        let folder = self.folder()?;
        folder.replace(self.name(), &*open.connection.serialize(MAIN_DB)?)?;
        open.file = Some(Stamp::of(&folder.status(self.name())?));
        Ok(())
    }
}

/// A database in memory with the content of a file.
fn load(file: Option<&File>) -> Result<Connection, FileFault> {
    let mut connection = Connection::open_in_memory()?;
    let mut bytes = Vec::new();
    if let Some(file) = file {
        file.take(SIZE_LIMIT + 1).read_to_end(&mut bytes)?;
    }
    if bytes.len() as u64 > SIZE_LIMIT {
        let text = format!("it is larger than {} MB", SIZE_LIMIT >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text).into());
    }
    // A database that another program has left in write-ahead mode is one like any other without its second file.
    if let Some(modes @ [2, 2]) = bytes.get_mut(18..20) {
        modes.fill(1);
    }
    if !bytes.is_empty() {
        connection.deserialize_read_exact(MAIN_DB, bytes.as_slice(), bytes.len(), false)?;
    }
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, true)?;
    // A misspelled column in double quotes is an error, and not a text.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
    connection.set_limit(Limit::SQLITE_LIMIT_LENGTH, VALUE_LIMIT)?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.pragma_update_and_check(None, "max_page_count", PAGES_LIMIT, |_| Ok(()))?;
    connection.execute_batch(SCHEMA)?;
    Ok(connection)
}

/// Keeps a call's statements inside the database and its time, and notes whether they touch the todos.
fn guard(
    connection: &mut Connection,
    touches_todos: &Arc<AtomicBool>,
    cancel: &CancellationToken,
) -> rusqlite::Result<()> {
    let touches_todos = Arc::clone(touches_todos);
    connection.authorizer(Some(move |context: AuthContext<'_>| {
        if let Some(table) = written_table(context.action)
            && (table.eq_ignore_ascii_case("todos") || table.eq_ignore_ascii_case("todo_deps"))
        {
            touches_todos.store(true, Ordering::Relaxed);
        }
        if is_allowed(context.action) { Authorization::Allow } else { Authorization::Deny }
    }))?;
    let cancel = cancel.clone();
    let deadline = Instant::now() + TIME_LIMIT;
    let is_over = move || cancel.is_cancelled() || Instant::now() >= deadline;
    connection.progress_handler(STEPS_PER_CHECK, Some(is_over))
}

fn is_allowed(action: AuthAction<'_>) -> bool {
    match action {
        AuthAction::Attach { .. } | AuthAction::Detach { .. } | AuthAction::Unknown { .. } => false,
        AuthAction::Function { function_name } => !function_name.eq_ignore_ascii_case("load_extension"),
        AuthAction::CreateVtable { module_name, .. } => {
            ["fts4", "fts5", "rtree"].iter().any(|known| module_name.eq_ignore_ascii_case(known))
        }
        AuthAction::Pragma { pragma_name, pragma_value } => {
            let settable = ["foreign_keys", "user_version", "page_count"];
            PRAGMAS.iter().any(|known| pragma_name.eq_ignore_ascii_case(known))
                || (pragma_value.is_none()
                    && settable.iter().any(|known| pragma_name.eq_ignore_ascii_case(known)))
        }
        _ => true,
    }
}

fn written_table(action: AuthAction<'_>) -> Option<&str> {
    match action {
        AuthAction::Insert { table_name }
        | AuthAction::Delete { table_name }
        | AuthAction::Update { table_name, .. }
        | AuthAction::DropTable { table_name }
        | AuthAction::AlterTable { table_name, .. } => Some(table_name),
        _ => None,
    }
}

fn run(connection: &Connection, step: &StatementStep<'_>, writes: &mut bool) -> rusqlite::Result<String> {
    let mut statement = connection.prepare(step.sql)?;
    *writes |= !statement.readonly();
    let before = connection.total_changes();
    let rows = read_rows(&mut statement, step.room)?;
    let changed = connection.total_changes() - before;
    Ok(describe(step.keyword, changed, connection.last_insert_rowid(), rows))
}

/// The rows as a table; `None` for a statement that has no columns. Runs the statement to its end either way.
fn read_rows(statement: &mut Statement<'_>, room: usize) -> rusqlite::Result<Option<String>> {
    let columns = statement.column_count();
    let mut table = ResultTable::new(statement.column_names(), room);
    let mut rows = statement.raw_query();
    while let Some(row) = rows.next()? {
        table.row((0..columns).map(|column| row.get_ref(column)), push_value)?;
    }
    Ok((columns > 0).then(|| table.finish()))
}

/// The rows of a query of our own.
fn query(connection: &Connection, sql: &str) -> rusqlite::Result<Vec<Row>> {
    let mut statement = connection.prepare(sql)?;
    let columns = statement.column_count();
    let cell = |value: ValueRef<'_>| {
        let mut text = String::new();
        push_value(&mut text, value);
        (value != ValueRef::Null).then_some(text)
    };
    let rows = statement.query_map([], |row| {
        let cells = (0..columns).map(|column| row.get_ref(column).map(cell));
        Ok(cells.collect::<rusqlite::Result<Vec<_>>>()?.into_iter())
    })?;
    rows.collect()
}

fn push_value(line: &mut String, value: ValueRef<'_>) {
    let _ = match value {
        ValueRef::Null => write!(line, "NULL"),
        ValueRef::Integer(number) => write!(line, "{number}"),
        ValueRef::Real(number) => write!(line, "{number}"),
        ValueRef::Text(text) => {
            write!(line, "{}", String::from_utf8_lossy(&text[..text.len().min(CELL_LIMIT)]))
        }
        ValueRef::Blob(bytes) => {
            line.push_str("x'");
            for byte in bytes.iter().take(CELL_LIMIT) {
                let _ = write!(line, "{byte:02x}");
            }
            write!(line, "'")
        }
    };
}

/// A transaction left open would hide this call's work from everyone, and lose it when the session ends.
fn end_transaction(connection: &Connection, execution: &mut Execution) {
    if connection.is_autocommit() {
        return;
    }
    let note = match connection.execute_batch("ROLLBACK") {
        Ok(()) => "The open transaction was rolled back: BEGIN and COMMIT belong in one call.".to_owned(),
        Err(error) => format!("The open transaction could not be rolled back: {}.", message(&error)),
    };
    match (&mut execution.failure, execution.done.last_mut()) {
        (Some(StatementFailure::Failed { message, .. }), _) => message.push_str(&format!("\n{note}")),
        (Some(StatementFailure::Cancelled), _) | (None, None) => {}
        (None, Some(last)) => last.text.push_str(&format!("\n{note}")),
    }
}

fn message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(failure, _) if failure.code == ErrorCode::OperationInterrupted => {
            format!("the query took longer than {} seconds", TIME_LIMIT.as_secs())
        }
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    }
}
