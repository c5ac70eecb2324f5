//! Reading a session's events by position, instead of listening for them.

use std::time::Duration;

use hangar_mcp::Interest;
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use crate::audience::is_for_clients;
use crate::log_pages::Direction;
use crate::recent_events::EventFacts;

/// Maximum number of events per answer, and the default.
const MAX_EVENTS: usize = 1000;
const USUAL_EVENTS: usize = 200;
/// Prefix of a cursor that reads towards older events.
const BACK: &str = "back:";
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
    cursor: Option<String>,
    max: Option<usize>,
    wait_ms: Option<u64>,
    direction: Option<Direction>,
    #[serde(flatten)]
    filter: EventFilter,
}

/// Filter on events.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct EventFilter {
    types: TypeFilter,
    agent_scope: Option<AgentScope>,
    agent_ids: Option<Vec<String>>,
    include_ephemeral: Option<bool>,
}

/// Filter on event types: `"*"`, or a list.
#[derive(Default, Deserialize)]
#[serde(try_from = "Value")]
enum TypeFilter {
    #[default]
    All,
    Listed(Vec<String>),
}

impl TryFrom<Value> for TypeFilter {
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

impl TypeFilter {
    fn contain(&self, kind: &str) -> bool {
        match self {
            Self::All => true,
            Self::Listed(types) => types.iter().any(|wanted| wanted == kind),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AgentScope {
    /// Events of the main agent, and the start and end of the others.
    Primary,
    All,
}

impl EventFilter {
    fn wants(&self, about: &EventFacts) -> bool {
        let of_agents = |ids: &Vec<String>| about.agent.as_ref().is_some_and(|agent| ids.contains(agent));
        let primary = about.agent.is_none() || about.kind.starts_with("subagent.");
        self.types.contain(&about.kind)
            && self.agent_ids.as_ref().is_none_or(of_agents)
            && (self.agent_scope != Some(AgentScope::Primary) || primary)
            && (self.include_ephemeral.unwrap_or(true) || !about.is_ephemeral)
    }
}

/// The page before a position in the log, newest first by pages. It covers what is on record only, and never waits.
async fn read_back(call: &Call, params: &ReadParams, max: usize) -> Result<Reply, Failure> {
    let live = call.live()?;
    // The session's current step is logged first.
    live.ask(|_| ()).await?;
    let mut events = super::sessions::events(call, &live.id).await?;
    events.retain(|event| is_for_clients(event.event_kind()));
    let position = params.cursor.as_deref().map(|cursor| cursor.strip_prefix(BACK)?.parse::<usize>().ok());
    let (end, status) = match position {
        None => (events.len(), "ok"),
        Some(Some(position)) if position <= events.len() => (position, "ok"),
        Some(_) => (events.len(), "expired"),
    };
    let mut wanted = (0..end)
        .rev()
        .filter(|at| params.filter.wants(&EventFacts::of(&events[*at])))
        .take(max + 1)
        .collect::<Vec<_>>();
    let more = wanted.len() > max;
    wanted.truncate(max);
    let cursor = format!("{BACK}{}", wanted.last().copied().unwrap_or(0));
    let page: Vec<_> = wanted.into_iter().rev().map(|at| &events[at]).collect();
    Reply::of(json!({ "events": page, "cursor": cursor, "hasMore": more, "cursorStatus": status }))
}

async fn read(call: Call) -> Result<Reply, Failure> {
    let params: ReadParams = call.params()?;
    let live = call.live()?;
    let max = params.max.unwrap_or(USUAL_EVENTS).clamp(1, MAX_EVENTS);
    let goes_back = params.cursor.as_ref().is_some_and(|cursor| cursor.starts_with(BACK));
    if goes_back || params.direction == Some(Direction::Backward) {
        return read_back(&call, &params, max).await;
    }
    // A cursor that none of ours is leads nowhere.
    let from = params.cursor.as_deref().map(|cursor| cursor.parse::<u64>().unwrap_or(u64::MAX));
    let look = |from| live.history.read(from, max, |about| params.filter.wants(about));
    let wait = Duration::from_millis(params.wait_ms.unwrap_or(0)).min(MAX_WAIT);
    // Made before the first look: what comes in between is news.
    let mut news = live.news.subscribe();
    let mut found = look(from);
    let status = if found.expired { "expired" } else { "ok" };
    if found.events.is_empty() && !wait.is_zero() {
        let waiting = async {
            let mut ended = false;
            while found.events.is_empty() && !ended {
                // Nothing comes after the end, and the last events were before it.
                ended = !live.changed(&mut news).await;
                found = look(Some(found.next));
            }
        };
        // Nothing came in time.
        let _ = tokio::time::timeout(wait, waiting).await;
    }
    let events: Vec<_> = found.events.into_iter().map(|recent| recent.event).collect();
    Reply::of(json!({
        "events": events,
        "cursor": found.next.to_string(),
        "hasMore": found.more,
        "cursorStatus": status,
    }))
}

async fn tail(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    Reply::of(json!({ "cursor": live.history.end().to_string() }))
}

/// Registers an interest. Every client is sent every event, so only an interest in questions matters: they are not
/// asked without a subscriber.
async fn register(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        #[serde(default)]
        event_type: String,
    }
    let Params { event_type } = call.params()?;
    let live = call.live()?;
    let handle = format!("{event_type}:{}", uuid::Uuid::new_v4());
    if let Some(interest) = interest(&event_type) {
        let (client, handle) = (call.client.id, handle.clone());
        if !live.ask(move |task| task.add_interest(handle, client, interest)).await? {
            return Err(Failure::new("too many interests are registered with this session; release some"));
        }
    }
    Reply::of(json!({ "handle": handle }))
}

async fn release(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        #[serde(default)]
        handle: String,
    }
    let Params { handle } = call.params()?;
    call.live()?.ask(move |task| task.release_interest(&handle)).await?;
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
