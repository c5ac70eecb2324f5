//! Files of a session's workspace, beyond reading and writing one: list, create, move and remove.

use hangar_files::FileKind;
use hangar_protocol::data::FileOperation;
use serde::Deserialize;
use serde_json::json;

use super::{Call, Failure, Method, Reply};
use crate::session_files::{Removal, millis};

/// File that holds the objective of autopilot mode.
const OBJECTIVE: &str = "autopilot-objective.json";

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.workspaces.statFile", run: |call| Box::pin(stat(call)) },
    Method { name: "session.workspaces.createDirectory", run: |call| Box::pin(create_directory(call)) },
    Method { name: "session.workspaces.removePath", run: |call| Box::pin(remove(call)) },
    Method { name: "session.workspaces.renamePath", run: |call| Box::pin(rename(call)) },
    Method { name: "session.workspaces.readAutopilotObjective", run: |call| Box::pin(read_objective(call)) },
    Method {
        name: "session.workspaces.writeAutopilotObjective",
        run: |call| Box::pin(write_objective(call)),
    },
    Method {
        name: "session.workspaces.deleteAutopilotObjective",
        run: |call| Box::pin(delete_objective(call)),
    },
    Method {
        name: "session.workspaces.autopilotObjectiveExists",
        run: |call| Box::pin(objective_exists(call)),
    },
    // An autopilot here works on what the conversation asks of it; nothing else is written down as its objective.
    Method { name: "session.autopilotObjective.getState", run: |call| Box::pin(objective_state(call)) },
];

#[derive(Deserialize)]
struct PathParams {
    path: String,
    #[serde(default)]
    recursive: bool,
    /// A path that is not there is no failure.
    #[serde(default)]
    force: bool,
}

async fn stat(call: Call) -> Result<Reply, Failure> {
    let params: PathParams = call.params()?;
    let dir = &call.live()?.dir;
    let stat = dir.stat(&dir.artifact(&params.path)?).await?;
    Reply::of(json!({
        "isFile": stat.kind != FileKind::Folder,
        "isDirectory": stat.kind == FileKind::Folder,
        "size": stat.size,
        "mtimeMs": millis(stat.modified),
        "birthtimeMs": millis(stat.created),
    }))
}

async fn create_directory(call: Call) -> Result<Reply, Failure> {
    let params: PathParams = call.params()?;
    let dir = &call.live()?.dir;
    dir.make_dir(&dir.artifact(&params.path)?, params.recursive).await?;
    Reply::null()
}

async fn remove(call: Call) -> Result<Reply, Failure> {
    let params: PathParams = call.params()?;
    let dir = &call.live()?.dir;
    let how = Removal { with_content: params.recursive, may_be_absent: params.force };
    dir.remove_path(&dir.artifact(&params.path)?, how).await?;
    Reply::null()
}

async fn rename(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        source: String,
        destination: String,
    }
    let params: Params = call.params()?;
    let dir = &call.live()?.dir;
    dir.rename(&dir.artifact(&params.source)?, &dir.artifact(&params.destination)?).await?;
    Reply::null()
}

async fn read_objective(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "content": call.live()?.dir.read(OBJECTIVE).await? }))
}

async fn write_objective(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        content: String,
    }
    let params: Params = call.params()?;
    let dir = &call.live()?.dir;
    let operation = if dir.exists(OBJECTIVE).await? { FileOperation::Update } else { FileOperation::Create };
    dir.write(OBJECTIVE, params.content).await?;
    Reply::of(json!({ "operation": operation }))
}

async fn delete_objective(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "deleted": call.live()?.dir.remove(OBJECTIVE).await? }))
}

async fn objective_exists(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "exists": call.live()?.dir.exists(OBJECTIVE).await? }))
}

async fn objective_state(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::of(json!({ "state": null }))
}
