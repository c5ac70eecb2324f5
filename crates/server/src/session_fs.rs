//! A client that keeps the files of its sessions: how it said it does, and asking it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_files::{
    ClientHome, Conventions, Entry, FileError, FileKeeper, FileReply, FileRequest, Rows, SqlKind, Stat,
};
use hangar_peer::{Peer, PeerError};
use hangar_protocol::rpc;
use hangar_store::SessionId;
use hangar_store::away::Kept;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// What only the owner of a file may read.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_DIR: u32 = 0o700;

/// Where and how a client keeps files.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct FsProvider {
    initial_cwd: String,
    session_state_path: String,
    conventions: PathStyle,
    #[serde(default)]
    capabilities: FsCapabilities,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PathStyle {
    Posix,
    Windows,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
struct FsCapabilities {
    sqlite: bool,
}

impl FsProvider {
    /// The folder of a session with the client at the other end.
    pub(crate) fn home(&self, peer: &Peer, id: &SessionId) -> ClientHome {
        let keeper = PeerKeeper { peer: peer.clone(), session_id: id.to_string() };
        let conventions = match self.conventions {
            PathStyle::Posix => Conventions::Posix,
            PathStyle::Windows => Conventions::Windows,
        };
        ClientHome::new(
            Arc::new(keeper),
            &self.session_state_path,
            conventions,
            self.capabilities.sqlite,
            &self.initial_cwd,
        )
    }
}

/// A session that a client keeps, as far as opening it goes.
pub struct Away {
    pub home: ClientHome,
    /// What the client has of it; nothing of a new one.
    pub kept: Option<Kept>,
}

/// Asks a client for the files of one session.
struct PeerKeeper {
    peer: Peer,
    session_id: String,
}

/// The error in an answer. Methods that only do something answer with the error itself, or with nothing.
#[derive(Debug, Deserialize)]
struct WireError {
    code: String,
    #[serde(default)]
    message: Option<String>,
}

impl From<WireError> for FileError {
    fn from(error: WireError) -> Self {
        match error.code.as_str() {
            "ENOENT" => Self::Missing,
            _ => Self::Refused(error.message.unwrap_or(error.code)),
        }
    }
}

/// Why asking a client came to nothing.
fn unanswered(error: PeerError) -> FileError {
    match error {
        PeerError::Gone => FileError::Gone,
        PeerError::Refused(error) => FileError::Refused(error.message),
        unexpected @ PeerError::Unexpected(_) => FileError::Refused(unexpected.to_string()),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WireRows {
    #[serde(default)]
    rows: Vec<Map<String, Value>>,
    #[serde(default)]
    columns: Vec<String>,
    #[serde(default)]
    rows_affected: u64,
    #[serde(default)]
    last_insert_rowid: Option<i64>,
}

#[derive(Deserialize)]
struct WireEntry {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

impl FileKeeper for PeerKeeper {
    fn ask(&self, request: FileRequest) -> BoxFuture<'static, Result<FileReply, FileError>> {
        let peer = self.peer.clone();
        let (method, mut params) = wire(&request);
        params["sessionId"] = json!(self.session_id);
        Box::pin(async move {
            let answer: Value = peer.request(method, &params).await.map_err(unanswered)?;
            read(&request, answer)
        })
    }
}

fn wire(request: &FileRequest) -> (&'static str, Value) {
    match request {
        FileRequest::Read { path } => ("sessionFs.readFile", json!({ "path": path })),
        FileRequest::Write { path, content, private } => {
            let mut params = json!({ "path": path, "content": content });
            if *private {
                params["mode"] = json!(PRIVATE_FILE);
            }
            ("sessionFs.writeFile", params)
        }
        FileRequest::Append { path, content } => {
            ("sessionFs.appendFile", json!({ "path": path, "content": content, "mode": PRIVATE_FILE }))
        }
        FileRequest::Stat { path } => ("sessionFs.stat", json!({ "path": path })),
        FileRequest::MakeDir { path } => {
            ("sessionFs.mkdir", json!({ "path": path, "recursive": true, "mode": PRIVATE_DIR }))
        }
        FileRequest::List { path } => ("sessionFs.readdirWithTypes", json!({ "path": path })),
        FileRequest::Remove { path, with_content } => {
            ("sessionFs.rm", json!({ "path": path, "recursive": with_content, "force": true }))
        }
        FileRequest::Rename { from, to } => ("sessionFs.rename", json!({ "src": from, "dest": to })),
        FileRequest::Sql { kind, query } => {
            let kind = match kind {
                SqlKind::Exec => "exec",
                SqlKind::Query => "query",
                SqlKind::Run => "run",
            };
            ("sessionFs.sqliteQuery", json!({ "query": query, "queryType": kind }))
        }
        FileRequest::HasTables => ("sessionFs.sqliteExists", json!({})),
    }
}

fn read(request: &FileRequest, mut answer: Value) -> Result<FileReply, FileError> {
    let error = match request {
        FileRequest::Write { .. }
        | FileRequest::Append { .. }
        | FileRequest::MakeDir { .. }
        | FileRequest::Remove { .. }
        | FileRequest::Rename { .. } => answer.get("code").is_some().then(|| answer.take()),
        _ => answer.get_mut("error").map(Value::take).filter(|error| !error.is_null()),
    };
    if let Some(error) = error {
        return Err(parse::<WireError>(error)?.into());
    }
    let bool_of = |name: &str| answer.get(name).and_then(Value::as_bool).unwrap_or(false);
    match request {
        FileRequest::Write { .. }
        | FileRequest::Append { .. }
        | FileRequest::MakeDir { .. }
        | FileRequest::Remove { .. }
        | FileRequest::Rename { .. } => Ok(FileReply::Done),
        FileRequest::Read { .. } => Ok(FileReply::Text(parse(field(&mut answer, "content"))?)),
        FileRequest::Stat { .. } => Ok(FileReply::Stat(Stat {
            is_dir: bool_of("isDirectory"),
            size: answer.get("size").and_then(Value::as_u64).unwrap_or(0),
        })),
        FileRequest::List { .. } => {
            let entries: Option<Vec<WireEntry>> = parse(field(&mut answer, "entries"))?;
            let entries = entries.into_iter().flatten();
            let entries = entries.map(|entry| Entry { is_dir: entry.kind == "directory", name: entry.name });
            Ok(FileReply::Entries(entries.collect()))
        }
        FileRequest::Sql { .. } if answer.is_null() => Ok(FileReply::Done),
        FileRequest::Sql { .. } => {
            let rows: WireRows = parse(answer)?;
            Ok(FileReply::Rows(Rows {
                columns: rows.columns,
                rows: rows.rows,
                affected: rows.rows_affected,
                last_id: rows.last_insert_rowid,
            }))
        }
        FileRequest::HasTables => Ok(FileReply::Exists(bool_of("exists"))),
    }
}

fn field(answer: &mut Value, name: &str) -> Value {
    answer.get_mut(name).map(Value::take).unwrap_or_default()
}

fn parse<T: DeserializeOwned>(value: Value) -> Result<T, FileError> {
    rpc::read_value(value).map_err(|error| FileError::Refused(format!("its answer cannot be read: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(request: FileRequest, answer: Value, expected: Result<FileReply, FileError>) {
        assert_eq!(read(&request, answer), expected);
    }

    #[test]
    fn an_error_of_a_method_that_only_acts_is_its_whole_answer() {
        let write = || FileRequest::Append { path: "/log".to_owned(), content: "x".to_owned() };
        check(write(), Value::Null, Ok(FileReply::Done));
        check(write(), json!({ "code": "ENOENT" }), Err(FileError::Missing));
        let full = json!({ "code": "UNKNOWN", "message": "disk full" });
        check(write(), full, Err(FileError::Refused("disk full".to_owned())));
    }

    #[test]
    fn an_error_of_a_method_that_tells_is_beside_what_it_tells() {
        let read = || FileRequest::Read { path: "/a".to_owned() };
        check(read(), json!({ "content": "x" }), Ok(FileReply::Text("x".to_owned())));
        check(read(), json!({ "content": "", "error": { "code": "ENOENT" } }), Err(FileError::Missing));
        assert!(super::read(&read(), json!(7)).is_err());
    }

    #[test]
    fn rows_and_names_are_read_with_tolerance() {
        let query = FileRequest::Sql { kind: SqlKind::Exec, query: String::new() };
        check(query.clone(), Value::Null, Ok(FileReply::Done));
        check(query.clone(), json!({}), Ok(FileReply::Rows(Rows::default())));
        check(query, json!({ "rows": null, "columns": null }), Ok(FileReply::Rows(Rows::default())));
        let entries = json!({ "entries": [{ "name": "d", "type": "directory" }] });
        let expected = vec![Entry { name: "d".to_owned(), is_dir: true }];
        let list = || FileRequest::List { path: "/".to_owned() };
        check(list(), entries, Ok(FileReply::Entries(expected)));
        check(list(), json!({ "entries": null }), Ok(FileReply::Entries(Vec::new())));
    }
}
