//! The calls of one session, read from its log.

use std::collections::BTreeMap;

use hangar_protocol::data::{ModelMetric, SessionShutdown, UsageRecord};
use hangar_protocol::event::type_at_start;
use hangar_protocol::{Body, Event, EventKind, LogPosition};
use hangar_store::{SessionId, Store};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use super::Figures;

/// Calls of one read. A longer log is read in several, so that no line of the book is longer than this many calls.
pub(super) const MOST_CALLS: usize = 1000;

/// A call, or the sum of those that an agent reports together.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Call {
    /// Number of its event in the log of the session.
    pub(super) seq: u64,
    pub(super) at: String,
    pub(super) agent: String,
    pub(super) model: String,
    pub(super) project: String,
    pub(super) run: Option<String>,
    pub(super) figures: Figures,
}

/// State of the fold over a session at a position of its log, to continue from there.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Known {
    pub(super) seq: u64,
    pub(super) offset: u64,
    agent: Option<String>,
    /// The named agent, which calls are counted for in place of its runtime.
    named: Option<String>,
    project: Option<String>,
    pub(super) run: Option<String>,
    /// Event of its first call. A fork begins with the events of another session.
    pub(super) first_call: Option<String>,
    /// Events before this time are those of the session that it is a fork of.
    fork_since: Option<String>,
    counts_calls: bool,
    /// Sums that closing events have told, by model.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    closed: BTreeMap<String, Figures>,
}

impl Known {
    pub(super) fn position(&self) -> LogPosition {
        LogPosition { seq: self.seq, offset: self.offset }
    }
}

/// Start of a read.
pub(super) struct ReadStart<'a> {
    pub(super) known: Known,
    /// Whether another session began with this call.
    pub(super) is_known: &'a dyn Fn(&str) -> bool,
}

/// Calls after a position, and what is known at their end.
pub(super) struct Read {
    pub(super) calls: Vec<Call>,
    pub(super) known: Known,
    /// Whether the read ended before the log did.
    pub(super) more: bool,
}

fn wants(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::SessionStart
            | EventKind::SessionResume
            | EventKind::ContextChanged
            | EventKind::Handoff
            | EventKind::RunAssigned
            | EventKind::AgentAssigned
            | EventKind::UsageRecord
            | EventKind::SessionShutdown
    )
}

/// Reads the log of a session on.
pub(super) fn read(
    store: &Store,
    id: &SessionId,
    start: ReadStart<'_>,
    agent: &dyn Fn(Option<&str>) -> String,
    project_of: &dyn Fn(&str) -> Option<String>,
) -> Result<Read, String> {
    let ReadStart { mut known, is_known } = start;
    let length = store.log_bytes(id).unwrap_or_default();
    if length < known.offset {
        // A log that has become shorter is another one.
        known = Known::default();
    }
    let unread = |error: &dyn std::fmt::Display| format!("reading session {id}: {error}");
    let mut follow = store.follow(id, known.position()).map_err(|error| unread(&error))?;
    let mut calls = Vec::new();
    let mut more = false;
    loop {
        if calls.len() >= MOST_CALLS {
            more = true;
            break;
        }
        let (seq, event) = match follow.next_line().map_err(|error| unread(&error))? {
            None => break,
            Some((seq, line)) => {
                let wanted = |name| EventKind::of_type(name).is_some_and(wants);
                let text = type_at_start(line).is_none_or(wanted).then(|| std::str::from_utf8(line));
                (seq, text.and_then(Result::ok).and_then(|text| Event::parse(text).ok()))
            }
        };
        if let Some(event) = event {
            known.apply(&event, seq, &mut calls, &Surroundings { store, id, agent, project_of, is_known });
        }
        let at = follow.position();
        (known.seq, known.offset) = (at.seq, at.offset);
    }
    Ok(Read { calls, known, more })
}

/// Facts that a log does not have.
struct Surroundings<'a> {
    store: &'a Store,
    id: &'a SessionId,
    agent: &'a dyn Fn(Option<&str>) -> String,
    project_of: &'a dyn Fn(&str) -> Option<String>,
    is_known: &'a dyn Fn(&str) -> bool,
}

impl Known {
    fn apply(&mut self, event: &Event, seq: u64, calls: &mut Vec<Call>, around: &Surroundings<'_>) {
        match event.body() {
            Body::SessionStart(start) => {
                self.agent = Some((around.agent)(Some(&start.producer)));
                self.project = start.context.as_ref().map(|context| context.cwd.clone());
            }
            Body::SessionResume(resume) => {
                if let Some(context) = &resume.context {
                    self.project = Some(context.cwd.clone());
                }
            }
            Body::ContextChanged(context) => self.project = Some(context.directory.cwd.clone()),
            Body::Handoff(handoff) => {
                if let Some(agent) = &handoff.context {
                    self.agent = Some((around.agent)(Some(agent)));
                }
            }
            Body::AgentAssigned(assigned) => self.named = Some(assigned.agent.clone()),
            Body::RunAssigned(assigned) => self.run = Some(assigned.run.clone()),
            Body::UsageRecord(record) => {
                if self.first_call.is_none() {
                    let first = event.id().0.clone();
                    if (around.is_known)(&first) {
                        let created = around.store.look(around.id).map(|summary| summary.meta.created_at);
                        self.fork_since = created.map(|created| format!("{created:.3}"));
                    }
                    self.first_call = Some(first);
                }
                self.counts_calls = true;
                let call = self.call(event, seq, &record.usage.model, of_record(record), around);
                calls.extend(call);
            }
            Body::SessionShutdown(shutdown) if !self.counts_calls => {
                for (model, figures) in of_closing(shutdown) {
                    let before = self.closed.insert(model.clone(), figures).unwrap_or_default();
                    let more = figures.since(&before);
                    calls.extend(
                        (!more.is_empty()).then(|| self.call(event, seq, &model, more, around)).flatten(),
                    );
                }
            }
            _ => {}
        }
    }

    /// `None` for one that was copied from another session.
    fn call(
        &self,
        event: &Event,
        seq: u64,
        model: &str,
        figures: Figures,
        around: &Surroundings<'_>,
    ) -> Option<Call> {
        let time = |text: &str| text.parse::<Timestamp>().ok();
        if let Some(since) = self.fork_since.as_deref().and_then(time)
            && time(event.timestamp()).is_some_and(|at| at < since)
        {
            return None;
        }
        let of_run = self.run.as_deref().and_then(around.project_of);
        Some(Call {
            seq,
            at: event.timestamp().to_owned(),
            agent: self.named.clone().or_else(|| self.agent.clone()).unwrap_or_else(|| (around.agent)(None)),
            model: model.to_owned(),
            project: of_run.or_else(|| self.project.clone()).unwrap_or_default(),
            run: self.run.clone(),
            figures,
        })
    }
}

fn of_record(record: &UsageRecord) -> Figures {
    let usage = &record.usage;
    let calls = record.calls.unwrap_or(1);
    let cost = usage.cost.filter(|cost| cost.is_finite());
    Figures {
        calls,
        input_tokens: usage.input_tokens.unwrap_or(0),
        output_tokens: usage.output_tokens.unwrap_or(0),
        cache_read_tokens: usage.cache_read_tokens.unwrap_or(0),
        cache_write_tokens: usage.cache_write_tokens.unwrap_or(0),
        reasoning_tokens: usage.reasoning_tokens.unwrap_or(0),
        cost: cost.unwrap_or(0.0),
        computed: cost.filter(|_| record.computed == Some(true)).unwrap_or(0.0),
        unpriced: if cost.is_none() { calls.max(1) } else { 0 },
    }
}

/// Sums of a closing event, by model.
fn of_closing(shutdown: &SessionShutdown) -> Vec<(String, Figures)> {
    let figures = |metric: &ModelMetric| {
        let calls = metric.requests.count.unwrap_or(0);
        Figures {
            calls,
            input_tokens: metric.usage.input_tokens,
            output_tokens: metric.usage.output_tokens,
            cache_read_tokens: metric.usage.cache_read_tokens,
            cache_write_tokens: metric.usage.cache_write_tokens,
            reasoning_tokens: metric.usage.reasoning_tokens.unwrap_or(0),
            cost: metric.requests.cost.unwrap_or(0.0),
            computed: 0.0,
            unpriced: if metric.requests.cost.is_none() { calls.max(1) } else { 0 },
        }
    };
    shutdown.model_metrics.iter().map(|(model, metric)| (model.clone(), figures(metric))).collect()
}
