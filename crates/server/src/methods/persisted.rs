//! The log of a session, alive or not, read page by page as it was when the first page was asked for.

use hangar_store::StoreError;
use serde::Deserialize;
use serde_json::json;

use super::session::parse_id;
use super::{Call, Failure, Method, Reply};
use crate::log_pages::{Direction, LogPage, LogReader};

/// Maximum number of events per page, and the default.
const MAX: u64 = 1000;
const USUAL: u64 = 200;

pub(super) const METHODS: &[Method] =
    &[Method { name: "sessions.readPersistedEvents", run: |call| Box::pin(read(call)) }];

async fn read(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        session_id: String,
        cursor: Option<String>,
        max: Option<u64>,
        direction: Option<Direction>,
    }
    let params: Params = call.params()?;
    let id = parse_id(&params.session_id)?;
    let max = usize::try_from(params.max.unwrap_or(USUAL).clamp(1, MAX)).unwrap_or(1);
    let live = call.hub.live(&params.session_id).ok();
    let started = match &params.cursor {
        None => None,
        Some(cursor) => match call.hub.log_readers.take(cursor, &id) {
            Some(reader) => Some(reader),
            None => return expired(cursor),
        },
    };
    if started.is_none()
        && let Some(live) = &live
    {
        // The session's current step is logged first.
        live.ask(|_| ()).await?;
    }
    let store = live.map_or_else(|| call.hub.config().store.clone(), |live| live.store.clone());
    let direction = params.direction.unwrap_or(Direction::Forward);
    let reading = tokio::task::spawn_blocking(move || -> Result<LogPage, StoreError> {
        let reader = match started {
            Some(reader) => reader,
            None => LogReader::open(store, id, direction)?,
        };
        reader.read(max)
    });
    let page = match reading.await.map_err(|error| Failure::new(error.to_string()))? {
        Ok(page) => page,
        // A log that was deleted in between cannot be continued.
        Err(_) if params.cursor.is_some() => return expired(params.cursor.as_deref().unwrap_or_default()),
        Err(_) => {
            return Err(Failure::new(format!(
                "Persisted event journal is unavailable for session {}",
                params.session_id
            )));
        }
    };
    let more = page.rest.is_some();
    let cursor = page.rest.map_or_else(|| "journal:end".to_owned(), |rest| call.hub.log_readers.keep(rest));
    Reply::of(json!({ "events": page.events, "cursor": cursor, "hasMore": more, "cursorStatus": "ok" }))
}

fn expired(cursor: &str) -> Result<Reply, Failure> {
    Reply::of(json!({ "events": [], "cursor": cursor, "hasMore": false, "cursorStatus": "expired" }))
}
