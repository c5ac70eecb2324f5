//! Remarks of clients on the session's timeline.

use hangar_protocol::Body;
use hangar_protocol::data::{SessionError, SessionInfo, SessionWarning};
use serde::Deserialize;
use serde_json::json;

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[Method { name: "session.log", run: |call| Box::pin(log(call)) }];

#[derive(Deserialize)]
struct Params {
    message: String,
    level: Option<String>,
    #[serde(rename = "type")]
    kind: Option<String>,
    #[serde(default)]
    ephemeral: bool,
    url: Option<String>,
    tip: Option<String>,
}

async fn log(call: Call) -> Result<Reply, Failure> {
    let params: Params = call.params()?;
    let live = call.live()?;
    let kind = params.kind.unwrap_or_else(|| "notification".to_owned());
    let (message, transient) = (params.message, params.ephemeral);
    let body: Body = match params.level.as_deref() {
        Some("warning") => SessionWarning { warning_type: kind, message, url: params.url, transient }.into(),
        Some("error") => {
            let url = params.url;
            SessionError { error_type: kind, message, url, transient, ..SessionError::default() }.into()
        }
        None | Some("info") => {
            SessionInfo { info_type: kind, message, url: params.url, tip: params.tip, transient }.into()
        }
        Some(other) => return Err(Failure::new(format!("unsupported session log level: {other}"))),
    };
    let event_id = live
        .ask(move |task| {
            task.record(body);
            task.engine.driver().latest_event().map(|id| id.0.clone())
        })
        .await?;
    Reply::of(json!({ "eventId": event_id.unwrap_or_default() }))
}
