//! Canvases: surfaces that clients provide and hosts show. A request is passed to the client that declared the canvas; open
//! instances are in the log, their addresses last as long as the connection.

use std::sync::Arc;
use std::time::Duration;

use hangar_protocol::data::{
    CanvasClosed, CanvasOpened, CanvasRecorded, CanvasRegistryChanged, CanvasRemoved, CanvasUnavailable,
    OfferedCanvas,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::client::{Client, ClientId};
use crate::hub::ServedSession;
use crate::task::SessionTask;

/// Time that a client gets to answer.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most open instances of a session.
const MAX_OPEN: usize = 64;
/// Longest id of an instance.
const MAX_ID: usize = 256;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.canvas.list", run: |call| Box::pin(list(call)) },
    Method { name: "session.canvas.listOpen", run: |call| Box::pin(list_open(call)) },
    Method { name: "session.canvas.open", run: |call| Box::pin(open(call)) },
    Method { name: "session.canvas.close", run: |call| Box::pin(close(call)) },
    Method { name: "session.canvas.action.invoke", run: |call| Box::pin(invoke(call)) },
];

/// Parts of open instances that are not logged, with the client that provides each.
#[derive(Default)]
pub(crate) struct CanvasLinks(Vec<CanvasLink>);

struct CanvasLink {
    instance_id: String,
    client: ClientId,
    url: Option<String>,
    status: Option<String>,
}

impl CanvasLinks {
    fn set(&mut self, link: CanvasLink) {
        self.0.retain(|known| known.instance_id != link.instance_id);
        self.0.push(link);
    }

    fn find(&self, instance_id: &str) -> Option<&CanvasLink> {
        self.0.iter().find(|known| known.instance_id == instance_id)
    }

    /// Removes the links of clients that are gone, and returns the ids of their instances.
    fn orphans(&mut self, is_here: impl Fn(ClientId) -> bool) -> Vec<String> {
        let (kept, gone) = std::mem::take(&mut self.0).into_iter().partition(|link| is_here(link.client));
        self.0 = kept;
        let gone: Vec<CanvasLink> = gone;
        gone.into_iter().map(|link| link.instance_id).collect()
    }
}

/// Id of the provider that a connection is.
fn provider(client: ClientId) -> String {
    format!("connection:{}", client.0)
}

/// The canvases that the clients of a session declare.
fn offers(live: &ServedSession) -> Vec<(Arc<Client>, OfferedCanvas)> {
    let members = live.audience.members();
    let declared = members.iter().flat_map(|member| {
        member.canvases.iter().map(|declaration| {
            let offered = OfferedCanvas {
                extension_id: member.provider.clone().unwrap_or_else(|| provider(member.client.id)),
                extension_name: member.provider_name.clone(),
                declaration: declaration.clone(),
            };
            (Arc::clone(&member.client), offered)
        })
    });
    declared.collect()
}

/// Open instances of a session.
pub(super) fn opened(task: &SessionTask) -> Vec<CanvasOpened> {
    let recorded = task.session().state().canvases.iter();
    recorded.map(|recorded| instance(recorded, task.canvases.find(&recorded.instance_id))).collect()
}

fn instance(recorded: &CanvasRecorded, link: Option<&CanvasLink>) -> CanvasOpened {
    CanvasOpened {
        instance_id: recorded.instance_id.clone(),
        extension_id: recorded.extension_id.clone(),
        extension_name: recorded.extension_name.clone(),
        canvas_id: recorded.canvas_id.clone(),
        icon: None,
        title: recorded.title.clone(),
        status: link.and_then(|link| link.status.clone()),
        url: link.and_then(|link| link.url.clone()),
        input: recorded.input.clone(),
    }
}

/// Publishes the canvases that can be opened.
pub(crate) async fn announce(live: &ServedSession) {
    let canvases = offers(live).into_iter().map(|(_, offered)| offered).collect();
    // A session that has ended has nothing to publish.
    let _ = live.ask(move |task| task.record(CanvasRegistryChanged { canvases })).await;
}

/// Publishes that the providers of open instances are gone.
pub(crate) fn withdraw(task: &mut SessionTask, is_here: impl Fn(ClientId) -> bool) {
    for instance_id in task.canvases.orphans(is_here) {
        let recorded = task.session().state().canvases.iter().find(|known| known.instance_id == instance_id);
        let Some(recorded) = recorded else { continue };
        let (extension_id, canvas_id) = (recorded.extension_id.clone(), recorded.canvas_id.clone());
        task.record(CanvasUnavailable { instance_id, extension_id, canvas_id });
    }
}

async fn list(call: Call) -> Result<Reply, Failure> {
    let offers: Vec<OfferedCanvas> = offers(&*call.live()?).into_iter().map(|(_, offered)| offered).collect();
    Reply::of(json!({ "canvases": offers }))
}

async fn list_open(call: Call) -> Result<Reply, Failure> {
    let open = call.live()?.ask(|task| opened(task)).await?;
    Reply::of(json!({ "openCanvases": open }))
}

async fn ask<T: serde::de::DeserializeOwned>(
    client: &Client,
    method: &str,
    params: &Value,
) -> Result<T, Failure> {
    match tokio::time::timeout(PATIENCE, client.peer.request::<T>(method, params)).await {
        Err(_) => {
            Err(Failure::new(format!("the client did not answer {method} in {} s", PATIENCE.as_secs())))
        }
        Ok(Err(error)) => Err(Failure::new(error.to_string())),
        Ok(Ok(answer)) => Ok(answer),
    }
}

async fn open(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        extension_id: Option<String>,
        canvas_id: String,
        instance_id: String,
        input: Option<Value>,
    }
    #[derive(Default, Deserialize)]
    struct Shown {
        url: Option<String>,
        title: Option<String>,
        status: Option<String>,
    }
    let Params { extension_id, canvas_id, instance_id, input } = call.params()?;
    let live = call.live()?;
    if instance_id.is_empty() || instance_id.len() > MAX_ID {
        return Err(Failure::Params(format!("`instanceId` has 1 to {MAX_ID} letters")));
    }
    let wanted = |offered: &OfferedCanvas| {
        offered.declaration.id == canvas_id
            && extension_id.as_ref().is_none_or(|id| *id == offered.extension_id)
    };
    let Some((client, offered)) = offers(&live).into_iter().find(|(_, offered)| wanted(offered)) else {
        return Err(Failure::new(format!(
            "Canvas \"{canvas_id}\" is not declared by any client of the session"
        )));
    };
    let (cwd, open) = live.ask(|task| (task.cwd().to_owned(), task.session().state().canvases.len())).await?;
    if open >= MAX_OPEN {
        return Err(Failure::new(format!("{MAX_OPEN} canvases are open already")));
    }
    let mut params = json!({
        "sessionId": live.id.as_str(),
        "extensionId": offered.extension_id,
        "canvasId": canvas_id,
        "instanceId": instance_id,
        "session": { "workingDirectory": cwd },
    });
    if let Some(input) = &input {
        params["input"] = input.clone();
    }
    let shown: Option<Shown> = ask(&client, "canvas.open", &params).await?;
    let shown = shown.unwrap_or_default();
    let recorded = CanvasRecorded {
        instance_id: instance_id.clone(),
        extension_id: offered.extension_id,
        extension_name: offered.extension_name,
        canvas_id,
        title: shown.title,
        input,
    };
    let link = CanvasLink { instance_id, client: client.id, url: shown.url, status: shown.status };
    let result = instance(&recorded, Some(&link));
    let opened = result.clone();
    live.ask(move |task| {
        task.canvases.set(link);
        task.record(opened);
        task.record(recorded);
    })
    .await?;
    Reply::of(json!(result))
}

/// An open instance with the client that provides it, if it is there.
async fn find(
    live: &ServedSession,
    instance_id: &str,
) -> Result<(CanvasRecorded, Option<Arc<Client>>, String), Failure> {
    let wanted = instance_id.to_owned();
    let found = live
        .ask(move |task| {
            let recorded = task.session().state().canvases.iter().find(|known| known.instance_id == wanted);
            let link = task.canvases.find(&wanted).map(|link| link.client);
            Some((recorded?.clone(), link, task.cwd().to_owned()))
        })
        .await?;
    let (recorded, link, cwd) =
        found.ok_or_else(|| Failure::new(format!("Canvas instance \"{instance_id}\" is not open")))?;
    let client = link.and_then(|client| live.audience.member(client));
    Ok((recorded, client, cwd))
}

fn about(live: &ServedSession, recorded: &CanvasRecorded, cwd: &str) -> Value {
    json!({
        "sessionId": live.id.as_str(),
        "extensionId": recorded.extension_id,
        "canvasId": recorded.canvas_id,
        "instanceId": recorded.instance_id,
        "session": { "workingDirectory": cwd },
    })
}

async fn close(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        instance_id: String,
    }
    let Params { instance_id } = call.params()?;
    let live = call.live()?;
    let (recorded, client, cwd) = find(&live, &instance_id).await?;
    if let Some(client) = client
        // An instance whose provider does not answer is closed all the same.
        && let Err(failure) = ask::<Value>(&client, "canvas.close", &about(&live, &recorded, &cwd)).await
    {
        tracing::debug!(error = failure.message(), "a canvas did not close in order");
    }
    live.ask(move |task| {
        task.canvases.0.retain(|known| known.instance_id != instance_id);
        let CanvasRecorded { instance_id, extension_id, canvas_id, .. } = recorded;
        task.record(CanvasClosed {
            instance_id: instance_id.clone(),
            extension_id: extension_id.clone(),
            canvas_id: canvas_id.clone(),
        });
        task.record(CanvasRemoved { instance_id, extension_id, canvas_id });
    })
    .await?;
    Reply::null()
}

async fn invoke(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        instance_id: String,
        action_name: String,
        input: Option<Value>,
    }
    let Params { instance_id, action_name, input } = call.params()?;
    let live = call.live()?;
    let (recorded, client, cwd) = find(&live, &instance_id).await?;
    let Some(client) = client else {
        return Err(Failure::new(format!(
            "the client that provides canvas \"{instance_id}\" is not connected"
        )));
    };
    let mut params = about(&live, &recorded, &cwd);
    params["actionName"] = json!(action_name);
    if let Some(input) = input {
        params["input"] = input;
    }
    let result: Value = ask(&client, "canvas.action.invoke", &params).await?;
    Reply::of(json!({ "result": result }))
}
