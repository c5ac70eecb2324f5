//! The session's folder: its plan and its files.

use std::path::{Component, Path, PathBuf};

use hangar_protocol::data::{FileOperation, PlanChanged, WorkspaceFileChanged};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};

/// Largest file that is read or written this way.
const MAX_FILE: u64 = 16 << 20;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.plan.read", run: |call| Box::pin(read_plan(call)) },
    Method { name: "session.plan.update", run: |call| Box::pin(update_plan(call)) },
    Method { name: "session.plan.delete", run: |call| Box::pin(delete_plan(call)) },
    Method { name: "session.workspaces.listFiles", run: |call| Box::pin(list_files(call)) },
    Method { name: "session.workspaces.readFile", run: |call| Box::pin(read_file(call)) },
    Method { name: "session.workspaces.createFile", run: |call| Box::pin(create_file(call)) },
];

fn failed(doing: &str, path: &Path) -> impl FnOnce(std::io::Error) -> Failure {
    let message = format!("{doing} {}", path.display());
    move |error| Failure::new(format!("{message}: {error}"))
}

/// A file's text; `None` where there is no file.
fn read(path: &Path) -> Result<Option<String>, Failure> {
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.len() > MAX_FILE => {
            return Err(Failure::new(format!("{} is larger than {} MB", path.display(), MAX_FILE >> 20)));
        }
        Ok(_) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed("reading", path)(error)),
    }
    std::fs::read_to_string(path).map(Some).map_err(failed("reading", path))
}

async fn read_plan(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let path = live.dir.join("plan.md");
    let content = read(&path)?;
    Reply::of(json!({
        "exists": content.is_some(),
        "content": content,
        "path": path.display().to_string(),
    }))
}

async fn update_plan(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        content: String,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let path = live.dir.join("plan.md");
    let operation = if path.is_file() { FileOperation::Update } else { FileOperation::Create };
    std::fs::write(&path, params.content).map_err(failed("writing", &path))?;
    live.ask(move |task| task.record(PlanChanged { operation })).await?;
    Reply::null()
}

async fn delete_plan(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let path = live.dir.join("plan.md");
    match std::fs::remove_file(&path) {
        Ok(()) => live.ask(|task| task.record(PlanChanged { operation: FileOperation::Delete })).await?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed("deleting", &path)(error)),
    }
    Reply::null()
}

#[derive(Deserialize)]
struct FileParams {
    path: String,
    #[serde(default)]
    content: String,
}

/// A path inside the session's files. Anything that leads out of them is refused.
fn inside(files: &Path, path: &str) -> Result<PathBuf, Failure> {
    let path = Path::new(path);
    let plain = path.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !plain || path.as_os_str().is_empty() {
        return Err(Failure::new(format!("{} is outside the workspace files directory", path.display())));
    }
    let joined = files.join(path);
    // A link may lead out where the path itself does not.
    let real = joined.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    let root = files.canonicalize().map_err(failed("opening", files))?;
    match real {
        Some(real) if real.starts_with(&root) || root.starts_with(&real) => Ok(joined),
        _ => Err(Failure::new(format!("{} is outside the workspace files directory", path.display()))),
    }
}

async fn list_files(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let files = live.dir.join("files");
    let mut found = Vec::new();
    let mut open = vec![files.clone()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            let path = entry.path();
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => open.push(path),
                Ok(kind) if kind.is_file() => {
                    found.extend(path.strip_prefix(&files).ok().map(|path| path.display().to_string()));
                }
                _ => {}
            }
        }
    }
    found.sort();
    Reply::of(json!({ "files": found }))
}

async fn read_file(call: Call) -> Result<Reply, Failure> {
    let params: FileParams = call.params()?;
    let live = call.live()?;
    let path = inside(&live.dir.join("files"), &params.path)?;
    match read(&path)? {
        Some(content) => Reply::of(json!({ "content": content })),
        None => Err(Failure::new(format!("File not found: {}", params.path))),
    }
}

async fn create_file(call: Call) -> Result<Reply, Failure> {
    let params: FileParams = call.params()?;
    let live = call.live()?;
    let files = live.dir.join("files");
    let path = inside(&files, &params.path)?;
    let operation = if path.is_file() { FileOperation::Update } else { FileOperation::Create };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failed("creating", parent))?;
    }
    std::fs::write(&path, params.content).map_err(failed("writing", &path))?;
    live.ask(move |task| task.record(WorkspaceFileChanged { path: params.path, operation })).await?;
    Reply::of(Value::Null)
}
