//! Search over all transcripts: what people and agents said, newest sessions first.

use hangar_protocol::{Body, EventKind};
use hangar_store::{Filter, SessionSummary, Store};
use schemars::JsonSchema;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::error::RegistryError;

/// Sessions that are read for one search, hits of one session and of all.
const MOST_SESSIONS: usize = 500;
const MOST_OF_ONE: usize = 5;
const MOST_HITS: usize = 100;
/// Characters around a hit.
const AROUND: usize = 80;

#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "TranscriptHits")]
pub struct Hits {
    pub hits: Vec<Hit>,
    /// Whether older sessions were not read.
    pub partial: bool,
}

#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[schemars(rename = "TranscriptHit")]
pub struct Hit {
    pub session: String,
    pub name: Option<String>,
    pub at: String,
    /// `user` or `assistant`.
    pub role: &'static str,
    pub excerpt: String,
}

/// Finds a text, case-insensitively.
pub fn search(store: &Store, text: &str) -> Result<Hits, RegistryError> {
    let wanted = text.trim().to_lowercase();
    if wanted.is_empty() {
        return Err(RegistryError::Invalid("give a `query` to search for".to_owned()));
    }
    let sessions = store.list(&Filter::default())?;
    let mut found = Hits { hits: Vec::new(), partial: sessions.len() > MOST_SESSIONS };
    for session in sessions.iter().take(MOST_SESSIONS) {
        found.hits.extend(of_session(store, session, &wanted));
        if found.hits.len() >= MOST_HITS {
            found.hits.truncate(MOST_HITS);
            found.partial = true;
            break;
        }
    }
    Ok(found)
}

fn of_session(store: &Store, session: &SessionSummary, wanted: &str) -> Vec<Hit> {
    let kinds = [EventKind::UserMessage, EventKind::AssistantMessage];
    // A log that was deleted meanwhile has no hits.
    let Ok(events) = store.read_kinds(&session.id, |kind| kinds.contains(&kind)) else { return Vec::new() };
    let hits = events.flatten().filter_map(|event| {
        let (role, text) = match event.body() {
            Body::UserMessage(message) => ("user", &message.content),
            Body::AssistantMessage(message) => ("assistant", &message.content),
            _ => return None,
        };
        Some(Hit {
            session: session.id.to_string(),
            name: session.meta.name.as_ref().map(|name| name.as_str().to_owned()),
            at: event.timestamp().to_owned(),
            role,
            excerpt: excerpt(text, wanted)?,
        })
    });
    hits.take(MOST_OF_ONE).collect()
}

/// The text around the first hit, on one line.
fn excerpt(text: &str, wanted: &str) -> Option<String> {
    // Lower case may have another length, so the place is counted in characters.
    let lower = text.to_lowercase();
    let place = lower[..lower.find(wanted)?].chars().count();
    let from = place.saturating_sub(AROUND);
    let part: String = text.chars().skip(from).take(2 * AROUND + wanted.chars().count()).collect();
    let cut = if from > 0 { "…" } else { "" };
    Some(format!("{cut}{}", part.split_whitespace().collect::<Vec<_>>().join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_has_the_hit_in_any_letters() {
        assert_eq!(excerpt("Say\nHello there", "hello").as_deref(), Some("Say Hello there"));
        let long = format!("{}NEEDLE{}", "x ".repeat(200), " y".repeat(200));
        let found = excerpt(&long, "needle").unwrap();
        assert!(found.starts_with('…') && found.contains("NEEDLE") && found.len() < 300, "{found}");
        assert_eq!(excerpt("nothing", "hello"), None);
    }
}
