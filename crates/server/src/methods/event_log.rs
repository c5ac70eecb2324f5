//! Reading a session's events by position, instead of listening for them.

use std::time::Duration;

use hangar_mcp::Interest;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};

/// The most events of one answer.
const MAX_EVENTS: usize = 1000;
/// The longest wait for news.
const MAX_WAIT: Duration = Duration::from_secs(60);

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.eventLog.read", run: |call| Box::pin(read(call)) },
    Method { name: "session.eventLog.tail", run: |call| Box::pin(tail(call)) },
    Method { name: "session.eventLog.registerInterest", run: |call| Box::pin(register(call)) },
    Method { name: "session.eventLog.releaseInterest", run: |call| Box::pin(release(call)) },
];

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReadParams {
    #[serde(default)]
    cursor: Option<String>,
    #[serde(default)]
    max: Option<usize>,
    #[serde(default)]
    wait_ms: Option<u64>,
    #[serde(default)]
    types: Types,
}

/// Which events are wanted: `"*"`, or the types of a list.
#[derive(Default, Deserialize)]
#[serde(try_from = "Value")]
enum Types {
    #[default]
    All,
    Listed(Vec<String>),
}

impl TryFrom<Value> for Types {
    type Error = String;

    fn try_from(types: Value) -> Result<Self, String> {
        match types {
            Value::Null => Ok(Self::All),
            Value::String(all) if all == "*" => Ok(Self::All),
            listed => serde_json::from_value(listed)
                .map(Self::Listed)
                .map_err(|_| "expected `*` or a list of types".to_owned()),
        }
    }
}

impl Types {
    fn contain(&self, kind: &str) -> bool {
        match self {
            Self::All => true,
            Self::Listed(types) => types.iter().any(|wanted| wanted == kind),
        }
    }
}

async fn read(call: Call) -> Result<Reply, Failure> {
    let params: ReadParams = call.params()?;
    let live = call.live()?;
    let start = live.history.start();
    let (from, status) = match params.cursor.as_deref().map(str::parse::<u64>) {
        None => (start, "ok"),
        Some(Ok(from)) if from >= start && from <= live.history.end() => (from, "ok"),
        // The events there are no longer kept, or never were.
        Some(_) => (start, "expired"),
    };
    let max = params.max.unwrap_or(MAX_EVENTS).clamp(1, MAX_EVENTS);
    let wanted = |kind: &str| params.types.contain(kind);
    let wait = Duration::from_millis(params.wait_ms.unwrap_or(0)).min(MAX_WAIT);
    let mut news = live.news.subscribe();
    let found = async {
        loop {
            let (events, more) = live.history.read(from, max, wanted);
            if !events.is_empty() {
                return (events, more);
            }
            tokio::select! {
                _ = news.changed() => {}
                // Nothing comes after the end, and the last events were before it.
                () = live.ended() => return live.history.read(from, max, wanted),
            }
        }
    };
    let (events, more) = match live.history.read(from, max, wanted) {
        (events, _) if events.is_empty() && !wait.is_zero() => {
            tokio::time::timeout(wait, found).await.unwrap_or_default()
        }
        found => found,
    };
    let next = match events.last() {
        Some(last) => last.number + 1,
        None => live.history.end().max(from),
    };
    let events: Vec<_> = events.into_iter().map(|recent| recent.event).collect();
    Reply::of(json!({
        "events": events,
        "cursor": next.to_string(),
        "hasMore": more,
        "cursorStatus": status,
    }))
}

async fn tail(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    Reply::of(json!({ "cursor": live.history.end().to_string() }))
}

/// Every client is sent every event, so only an interest in questions matters: they are not asked where nobody answers.
async fn register(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        #[serde(default)]
        event_type: String,
    }
    let Params { event_type } = call.params()?;
    let live = call.live()?;
    if let Some(interest) = interest(&event_type) {
        live.ask(move |task| task.set_interest(interest, true)).await?;
    }
    Reply::of(json!({ "handle": format!("{event_type}:{}", uuid::Uuid::new_v4()) }))
}

async fn release(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        handle: String,
    }
    let Params { handle } = call.params()?;
    let live = call.live()?;
    if let Some(interest) = handle.split_once(':').and_then(|(event_type, _)| interest(event_type)) {
        live.ask(move |task| task.set_interest(interest, false)).await?;
    }
    Reply::success()
}

/// The question that an event asks, if it asks one.
fn interest(event_type: &str) -> Option<Interest> {
    match event_type {
        "mcp.oauth_required" => Some(Interest::OAuth),
        "sampling.requested" => Some(Interest::Sampling),
        _ => None,
    }
}
