//! The session's folder: its plan and its files.

use hangar_protocol::data::{FileOperation, PlanChanged, WorkspaceFileChanged};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};

pub(super) const PLAN: &str = "plan.md";
const FILES: &str = "files";

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.plan.read", run: |call| Box::pin(read_plan(call)) },
    Method { name: "session.plan.update", run: |call| Box::pin(update_plan(call)) },
    Method { name: "session.plan.delete", run: |call| Box::pin(delete_plan(call)) },
    Method { name: "session.workspaces.listFiles", run: |call| Box::pin(list_files(call)) },
    Method { name: "session.workspaces.readFile", run: |call| Box::pin(read_file(call)) },
    Method { name: "session.workspaces.createFile", run: |call| Box::pin(create_file(call)) },
];

async fn read_plan(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let content = live.dir.read(PLAN).await?;
    Reply::of(json!({
        "exists": content.is_some(),
        "content": content,
        "path": live.dir.path(PLAN),
    }))
}

async fn update_plan(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        content: String,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let operation = if live.dir.exists(PLAN).await? { FileOperation::Update } else { FileOperation::Create };
    live.dir.write(PLAN, params.content).await?;
    live.ask(move |task| task.record(PlanChanged { operation })).await?;
    Reply::null()
}

async fn delete_plan(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    if live.dir.remove(PLAN).await? {
        live.ask(|task| task.record(PlanChanged { operation: FileOperation::Delete })).await?;
    }
    Reply::null()
}

#[derive(Deserialize)]
struct FileParams {
    path: String,
    #[serde(default)]
    content: String,
}

async fn list_files(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    Reply::of(json!({ "files": live.dir.list(FILES).await? }))
}

async fn read_file(call: Call) -> Result<Reply, Failure> {
    let params: FileParams = call.params()?;
    let live = call.live()?;
    match live.dir.read(&live.dir.inside_files(&params.path)?).await? {
        Some(content) => Reply::of(json!({ "content": content })),
        None => Err(Failure::new(format!("File not found: {}", params.path))),
    }
}

async fn create_file(call: Call) -> Result<Reply, Failure> {
    let params: FileParams = call.params()?;
    let live = call.live()?;
    let name = live.dir.inside_files(&params.path)?;
    let operation = if live.dir.exists(&name).await? { FileOperation::Update } else { FileOperation::Create };
    live.dir.write(&name, params.content).await?;
    live.ask(move |task| task.record(WorkspaceFileChanged { path: params.path, operation })).await?;
    Reply::of(Value::Null)
}
