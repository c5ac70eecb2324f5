//! Client as the storage of its sessions' files: its configuration, and requests to it.

use std::path::Path;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_files::{
    ClientFiles, ClientReply, ClientRequest, Conventions, DirectoryEntry, FileError, FileKind, FileReply,
    FileRequest, FilesClient, Rows, Site, SqlKind, Stat,
};
use hangar_peer::{Peer, PeerError};
use hangar_protocol::rpc;
use hangar_store::SessionId;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

/// Mode of a file that only its owner can read.
const PRIVATE_FILE: u32 = 0o600;
const PRIVATE_DIR: u32 = 0o700;

/// File storage that a client provides.
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
    /// The directory of a session with the client at the other end.
    pub(crate) fn session_files(&self, peer: &Peer, id: &SessionId) -> ClientFiles {
        let client = PeerClient { peer: peer.clone(), session_id: id.to_string() };
        let conventions = match self.conventions {
            PathStyle::Posix => Conventions::Posix,
            PathStyle::Windows => Conventions::Windows,
        };
        let site = Site {
            root: self.session_state_path.clone(),
            conventions,
            has_tables: self.capabilities.sqlite,
            initial_cwd: self.initial_cwd.clone(),
        };
        ClientFiles::new(Arc::new(client), site)
    }
}

/// Asks a client for the files of one session.
struct PeerClient {
    peer: Peer,
    session_id: String,
}

/// The error in an answer. Methods that only do something answer with the error itself, or with nothing.
#[derive(Debug, Deserialize)]
struct WireError {
    code: String,
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

/// Converts a failed request to a client into a file error.
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
    last_insert_rowid: Option<i64>,
}

#[derive(Deserialize)]
struct WireEntry {
    name: String,
    #[serde(rename = "type")]
    kind: String,
}

impl FilesClient for PeerClient {
    fn ask(&self, request: ClientRequest) -> BoxFuture<'static, Result<ClientReply, FileError>> {
        let peer = self.peer.clone();
        let wired = wire(&request);
        let session_id = self.session_id.clone();
        Box::pin(async move {
            let (method, mut params) = wired?;
            params["sessionId"] = json!(session_id);
            let answer: Value = peer.request(method, &params).await.map_err(unanswered)?;
            read(&request, answer)
        })
    }
}

fn wire(request: &ClientRequest) -> Result<(&'static str, Value), FileError> {
    Ok(match request {
        ClientRequest::File(request) => return wire_file(request),
        ClientRequest::Sql { kind, query } => {
            let kind = match kind {
                SqlKind::Exec => "exec",
                SqlKind::Query => "query",
                SqlKind::Run => "run",
            };
            ("sessionFs.sqliteQuery", json!({ "query": query, "queryType": kind }))
        }
        ClientRequest::HasTables => ("sessionFs.sqliteExists", json!({})),
    })
}

fn wire_file(request: &FileRequest) -> Result<(&'static str, Value), FileError> {
    let shown = |path: &Path| path.to_string_lossy().into_owned();
    Ok(match request {
        FileRequest::Read { path } => ("sessionFs.readFile", json!({ "path": shown(path) })),
        FileRequest::Write { path, content, private: false } => {
            ("sessionFs.writeFile", json!({ "path": shown(path), "content": text(content)? }))
        }
        FileRequest::Write { path, content, .. } | FileRequest::Replace { path, content } => {
            let params = json!({ "path": shown(path), "content": text(content)?, "mode": PRIVATE_FILE });
            ("sessionFs.writeFile", params)
        }
        FileRequest::Append { path, content } => {
            let params = json!({ "path": shown(path), "content": text(content)?, "mode": PRIVATE_FILE });
            ("sessionFs.appendFile", params)
        }
        FileRequest::Stat { path } => ("sessionFs.stat", json!({ "path": shown(path) })),
        FileRequest::MakeDir { path } => {
            ("sessionFs.mkdir", json!({ "path": shown(path), "recursive": true, "mode": PRIVATE_DIR }))
        }
        FileRequest::List { path } => ("sessionFs.readdirWithTypes", json!({ "path": shown(path) })),
        FileRequest::Remove { path, recursive } => {
            ("sessionFs.rm", json!({ "path": shown(path), "recursive": recursive, "force": true }))
        }
        FileRequest::Rename { from, to } => {
            ("sessionFs.rename", json!({ "src": shown(from), "dest": shown(to) }))
        }
    })
}

fn text(content: &[u8]) -> Result<&str, FileError> {
    std::str::from_utf8(content).map_err(|_| FileError::Local {
        kind: std::io::ErrorKind::InvalidData,
        text: "the client that keeps the files takes text only".to_owned(),
    })
}

fn read(request: &ClientRequest, mut answer: Value) -> Result<ClientReply, FileError> {
    let only_acts = matches!(
        request,
        ClientRequest::File(
            FileRequest::Write { .. }
                | FileRequest::Replace { .. }
                | FileRequest::Append { .. }
                | FileRequest::MakeDir { .. }
                | FileRequest::Remove { .. }
                | FileRequest::Rename { .. }
        )
    );
    let error = match only_acts {
        true => answer.get("code").is_some().then(|| answer.take()),
        false => answer.get_mut("error").map(Value::take).filter(|error| !error.is_null()),
    };
    if let Some(error) = error {
        return Err(parse::<WireError>(error)?.into());
    }
    let bool_of = |name: &str| answer.get(name).and_then(Value::as_bool).unwrap_or(false);
    Ok(match request {
        ClientRequest::File(FileRequest::Read { .. }) => {
            let content: String = parse(field(&mut answer, "content"))?;
            ClientReply::File(FileReply::Content(content.into_bytes()))
        }
        ClientRequest::File(FileRequest::Stat { .. }) => ClientReply::File(FileReply::Stat(Stat {
            kind: if bool_of("isDirectory") { FileKind::Folder } else { FileKind::File },
            size: answer.get("size").and_then(Value::as_u64).unwrap_or(0),
            modified: None,
            created: None,
        })),
        ClientRequest::File(FileRequest::List { .. }) => {
            let entries: Option<Vec<WireEntry>> = parse(field(&mut answer, "entries"))?;
            let kind = |kind: &str| if kind == "directory" { FileKind::Folder } else { FileKind::File };
            let entries = entries.into_iter().flatten();
            let entries = entries.map(|entry| DirectoryEntry { kind: kind(&entry.kind), name: entry.name });
            ClientReply::File(FileReply::Entries(entries.collect()))
        }
        ClientRequest::File(_) => ClientReply::File(FileReply::Done),
        ClientRequest::Sql { .. } if answer.is_null() => ClientReply::Rows(Rows::default()),
        ClientRequest::Sql { .. } => ClientReply::Rows(parse::<WireRows>(answer)?.into()),
        ClientRequest::HasTables => ClientReply::Exists(bool_of("exists")),
    })
}

impl From<WireRows> for Rows {
    /// Rows by their columns. A client that does not name them has those of its first row.
    fn from(wire: WireRows) -> Self {
        let WireRows { rows, mut columns, rows_affected, last_insert_rowid } = wire;
        if columns.is_empty() {
            columns = rows.first().into_iter().flat_map(Map::keys).cloned().collect();
        }
        let row = |mut row: Map<String, Value>| {
            columns.iter().map(|column| row.get_mut(column).map(Value::take).unwrap_or_default()).collect()
        };
        let rows = rows.into_iter().map(row).collect();
        Self { rows, columns, affected: rows_affected, last_id: last_insert_rowid }
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

    fn check(request: ClientRequest, answer: Value, expected: Result<ClientReply, FileError>) {
        assert_eq!(read(&request, answer), expected);
    }

    fn file(request: FileRequest, answer: Value, expected: Result<FileReply, FileError>) {
        check(ClientRequest::File(request), answer, expected.map(ClientReply::File));
    }

    #[test]
    fn an_error_of_a_method_that_only_acts_is_its_whole_answer() {
        let write = || FileRequest::Append { path: "/log".into(), content: b"x".to_vec() };
        file(write(), Value::Null, Ok(FileReply::Done));
        file(write(), json!({ "code": "ENOENT" }), Err(FileError::Missing));
        let full = json!({ "code": "UNKNOWN", "message": "disk full" });
        file(write(), full, Err(FileError::Refused("disk full".to_owned())));
    }

    #[test]
    fn an_error_of_a_method_that_tells_is_beside_what_it_tells() {
        let read = || FileRequest::Read { path: "/a".into() };
        file(read(), json!({ "content": "x" }), Ok(FileReply::Content(b"x".to_vec())));
        file(read(), json!({ "content": "", "error": { "code": "ENOENT" } }), Err(FileError::Missing));
        assert!(super::read(&ClientRequest::File(read()), json!(7)).is_err());
    }

    #[test]
    fn rows_and_names_are_read_with_tolerance() {
        let query = |answer, expected| {
            let request = ClientRequest::Sql { kind: SqlKind::Exec, query: String::new() };
            check(request, answer, Ok(ClientReply::Rows(expected)));
        };
        query(Value::Null, Rows::default());
        query(json!({}), Rows::default());
        query(json!({ "rows": null, "columns": null }), Rows::default());
        let columns = vec!["b".to_owned(), "a".to_owned()];
        let rows = vec![vec![json!(2), Value::Null], vec![Value::Null, json!(1)]];
        let some = Rows { columns, rows, ..Rows::default() };
        query(json!({ "columns": ["b", "a"], "rows": [{ "b": 2 }, { "a": 1, "c": 0 }] }), some);
        let entries = json!({ "entries": [{ "name": "d", "type": "directory" }] });
        let expected = vec![DirectoryEntry { name: "d".to_owned(), kind: FileKind::Folder }];
        let list = || FileRequest::List { path: "/".into() };
        file(list(), entries, Ok(FileReply::Entries(expected)));
        file(list(), json!({ "entries": null }), Ok(FileReply::Entries(Vec::new())));
    }

    #[test]
    fn what_is_no_text_is_not_sent() {
        let write = FileRequest::Write { path: "/a".into(), content: vec![0xff], private: false };
        assert!(matches!(wire(&ClientRequest::File(write)), Err(FileError::Local { .. })));
    }
}
