//! Extensions: those of a session, and which of them later sessions have.

use std::sync::Arc;

use hangar_protocol::data::{AttachmentsPushed, ExtensionSource};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::attachments;
use crate::extensions::SessionExtensions;
use crate::hub::ServedSession;
use crate::user_settings::UserSettings;

/// Most attachments of one push.
const MAX_ATTACHMENTS: usize = 64;

pub(super) const METHODS: &[Method] = &[
    Method { name: "extensions.discover", run: |call| Box::pin(discover(call)) },
    Method { name: "extensions.enable", run: |call| Box::pin(switch_for_all(call, true)) },
    Method { name: "extensions.disable", run: |call| Box::pin(switch_for_all(call, false)) },
    Method { name: "registerExtensionLaunchProvider", run: |call| Box::pin(provide_launches(call)) },
    Method { name: "session.extensions.list", run: |call| Box::pin(list(call)) },
    Method { name: "session.extensions.enable", run: |call| Box::pin(switch(call, true)) },
    Method { name: "session.extensions.disable", run: |call| Box::pin(switch(call, false)) },
    Method { name: "session.extensions.reload", run: |call| Box::pin(reload(call)) },
    Method {
        name: "session.extensions.sendAttachmentsToMessage",
        run: |call| Box::pin(push_attachments(call)),
    },
];

async fn discover(call: Call) -> Result<Reply, Failure> {
    let settings = UserSettings::of(&call.hub.home());
    let disabled = settings.disabled_extensions();
    let found = call.hub.config().extensions.as_deref().map(|host| host.find(None).0).unwrap_or_default();
    let kept = found
        .into_iter()
        .filter(|found| matches!(found.source, ExtensionSource::User | ExtensionSource::Plugin));
    let shown = kept.map(|extension| {
        let mut shown = json!({
            "id": extension.id,
            "name": extension.name,
            "path": extension.path,
            "source": extension.source,
            "enabled": !disabled.contains(&extension.id),
        });
        if let Some(plugin) = &extension.plugin {
            shown["plugin"] = json!({ "name": plugin });
        }
        shown
    });
    let shown: Vec<Value> = shown.collect();
    Reply::of(json!({ "extensions": shown, "mode": settings.extension_mode().as_str() }))
}

async fn switch_for_all(call: Call, on: bool) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        ids: Vec<String>,
    }
    let Params { ids } = call.params()?;
    UserSettings::of(&call.hub.home()).switch_extensions(&ids, !on).map_err(Failure::new)?;
    Reply::of(Value::Null)
}

async fn provide_launches(call: Call) -> Result<Reply, Failure> {
    call.hub.set_launch_provider(&call.client)?;
    Reply::of(Value::Null)
}

async fn list(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "extensions": call.live()?.extensions.list() }))
}

/// The session of a request, if it has extensions.
fn extended(call: &Call) -> Result<Arc<ServedSession>, Failure> {
    let live = call.live()?;
    match live.extensions.is_on() {
        true => Ok(live),
        false => Err(Failure::new("Extensions not available")),
    }
}

async fn switch(call: Call, on: bool) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        id: String,
    }
    let live = extended(&call)?;
    let Params { id } = call.params()?;
    refuse_itself(&call)?;
    SessionExtensions::switch(&call.hub, &live, &id, on).await?;
    Reply::of(Value::Null)
}

async fn reload(call: Call) -> Result<Reply, Failure> {
    let live = extended(&call)?;
    refuse_itself(&call)?;
    SessionExtensions::load(&call.hub, &live).await?;
    Reply::of(Value::Null)
}

/// An extension would end before it is answered.
fn refuse_itself(call: &Call) -> Result<(), Failure> {
    match call.client.extension {
        Some(_) => Err(Failure::new("extensions are reloaded and switched by people, not by extensions")),
        None => Ok(()),
    }
}

async fn push_attachments(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        instance_id: Option<String>,
        attachments: Vec<Value>,
    }
    let live = call.live()?;
    let Some(extension) = &call.client.extension else {
        return Err(Failure::new("only the connection of an extension may attach to its messages"));
    };
    let Params { instance_id, attachments } = call.params()?;
    if attachments.len() > MAX_ATTACHMENTS {
        return Err(Failure::new(format!("{MAX_ATTACHMENTS} attachments can be pushed at once, at most")));
    }
    let canvas = match instance_id {
        None => None,
        Some(instance_id) => Some(own_canvas(&live, &extension.id, instance_id).await?),
    };
    let now = hangar_agent::session::iso((call.hub.config().now)());
    let mut pushed = Vec::new();
    for mut attachment in attachments {
        if attachment["type"] == "extension_context" {
            attachment["extensionId"] = json!(extension.id);
            attachment["capturedAt"] = json!(now);
            if let Some((canvas_id, instance_id)) = &canvas {
                attachment["canvasId"] = json!(canvas_id);
                attachment["instanceId"] = json!(instance_id);
            }
        }
        let read = attachments::read(attachment.clone());
        let read = read.ok_or_else(|| {
            Failure::Params(format!("`attachments`: {attachment} is no attachment that can be sent"))
        })?;
        pushed.push(json!(read));
    }
    live.ask(move |task| task.record(AttachmentsPushed { attachments: pushed })).await?;
    Reply::of(Value::Null)
}

/// The canvas of an open instance that the extension provides.
async fn own_canvas(
    live: &ServedSession,
    extension_id: &str,
    instance_id: String,
) -> Result<(String, String), Failure> {
    let open = live.ask(|task| super::canvas::opened(task)).await?;
    let found = open.into_iter().find(|open| open.instance_id == instance_id);
    match found {
        Some(open) if open.extension_id == extension_id => Ok((open.canvas_id, instance_id)),
        Some(_) => Err(Failure::new(format!("the canvas {instance_id} belongs to another extension"))),
        None => Err(Failure::new(format!("no canvas {instance_id} is open"))),
    }
}
