//! `hangar runtimes probe`: tests the capabilities of the installed agents on the scripted model. It costs nothing and
//! leaves the user's own state alone.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;
use hangar_agent::session::iso;
use hangar_protocol::{Body, Event, EventKind};
use hangar_runtimes::outcome::TurnResult;
use hangar_runtimes::runtime::{
    AgentCard, AgentSession, Preflight, Runtime, SessionCommand, SessionNews, TurnEnded,
};
use serde_json::{Value, json};

use super::AgentRuntimes;
use super::drift::{ProbeRecord, Proof};
use super::proofs::Orders;
use super::rehearsal::Rehearsal;
use crate::commands::print_line;
use crate::exit::Exit;
use crate::settings::Settings;

/// Answer that the agent is told to give, and output of its tool.
const ANSWER: &str = "probe-answer";
const TOOL_OUTPUT: &str = "probe-output";

pub(super) async fn run(
    settings: &Settings,
    runtimes: &AgentRuntimes,
    only: Option<&str>,
    as_json: bool,
) -> Result<Exit> {
    if let Some(name) = only {
        runtimes.find(name)?;
    }
    let wanted = runtimes.iter().filter(|runtime| only.is_none_or(|name| runtime.card().name == name));
    let mut rows = Vec::new();
    let mut exit = Exit::Done;
    for runtime in wanted {
        let card = runtime.card();
        let preflight = runtime.preflight().await;
        if preflight.program.is_none() {
            if only.is_some() {
                exit = Exit::NeedsAttention;
            }
            say(as_json, &format!("{}: not installed ({})", card.name, card.install))?;
            rows.push(json!({ "name": card.name, "installed": false }));
            continue;
        }
        let stage_home = settings.home.join("runtimes").join(format!("probe-{}", uuid::Uuid::new_v4()));
        let rehearsal = Rehearsal::watched(&stage_home).await?.in_passing();
        let found = probe(runtime.as_ref(), &rehearsal, &preflight).await;
        drop(rehearsal);
        let known = ProbeRecord {
            version: preflight.version.clone(),
            help_hash: preflight.help_hash.clone(),
            probed_at: Some(iso(jiff::Timestamp::now())),
            proofs: found.proofs,
            unknown: found.unknown,
        };
        known.save(&settings.home, &card.name)?;
        if let Some(problem) = &found.problem {
            exit = Exit::NeedsAttention;
            say(as_json, &format!("{}: {problem}", card.name))?;
        }
        if known.proofs.values().any(|proof| !proof.is_as_claimed()) {
            exit = Exit::NeedsAttention;
        }
        report(card, &known, as_json)?;
        let drift = known.drift(&preflight);
        rows.push(json!({ "name": card.name, "installed": true, "problem": found.problem, "probe": known, "drift": drift }));
    }
    if as_json {
        print_line(&serde_json::to_string_pretty(&Value::from(rows))?)?;
    }
    Ok(exit)
}

fn say(as_json: bool, line: &str) -> Result<()> {
    if as_json { Ok(()) } else { print_line(line) }
}

fn report(card: &AgentCard, known: &ProbeRecord, as_json: bool) -> Result<()> {
    if as_json {
        return Ok(());
    }
    print_line(&format!("{} {}", card.name, known.version.as_deref().unwrap_or("?")))?;
    for (name, proof) in &known.proofs {
        let word = match proof {
            Proof::Proved => "yes",
            Proof::Absent => "no",
            Proof::Missing => "MISSING: it is claimed and was not seen",
            Proof::Unclaimed => "UNCLAIMED: it was seen and is not claimed",
        };
        print_line(&format!("  {name:<16} {word}"))?;
    }
    if !known.unknown.is_empty() {
        let types: Vec<&str> = known.unknown.iter().map(String::as_str).collect();
        print_line(&format!("  unknown output   {}", types.join(", ")))?;
    }
    Ok(())
}

#[derive(Default)]
struct ProbeFindings {
    proofs: BTreeMap<String, Proof>,
    unknown: BTreeSet<String>,
    /// Reason why the probe stopped early.
    problem: Option<String>,
}

async fn probe(runtime: &dyn Runtime, rehearsal: &Rehearsal, preflight: &Preflight) -> ProbeFindings {
    let mut found = ProbeFindings::default();
    if let Err(problem) = turns(runtime, rehearsal, &mut found).await {
        found.problem = Some(problem);
        return found;
    }
    let (claimed, named) = (&runtime.card().capabilities.effort_levels, &preflight.effort_levels);
    if let Some(named) = named.as_ref().filter(|_| !claimed.is_empty()) {
        let proof = if named == claimed { Proof::Proved } else { Proof::Missing };
        found.proofs.insert("effort_levels".to_owned(), proof);
    }
    let orders = Orders { runtime, rehearsal };
    for (name, seen) in orders.obeyed().await {
        found.proofs.insert(name.to_owned(), Proof::of(true, seen));
    }
    found
}

async fn turns(
    runtime: &dyn Runtime,
    rehearsal: &Rehearsal,
    found: &mut ProbeFindings,
) -> Result<(), String> {
    let capabilities = &runtime.card().capabilities;
    let mut claim = |name: &str, claimed: bool, seen: bool| {
        found.proofs.insert(name.to_owned(), Proof::of(claimed, seen));
    };
    let order = Orders { runtime, rehearsal }.plain()?;
    let session_id = order.session_id.clone();
    let mut live = runtime.open(order).await.map_err(|failure| failure.message)?;

    let first = completed(&mut live, format!("SAY:{ANSWER}")).await?;
    claim("answer", true, first.says(ANSWER));
    claim("streaming", capabilities.streaming, first.has(EventKind::MessageDelta));
    claim(
        "session_id_early",
        capabilities.session_id_early || capabilities.session_id_given,
        first.named_early(),
    );
    if capabilities.session_id_given {
        claim("session_id_given", true, first.name().is_none_or(|name| name == session_id));
    }
    let usage = &first.ended.outcome.usage;
    claim("input_tokens", capabilities.input_tokens, usage.input_tokens.value().is_some());
    claim("cost", capabilities.cost, usage.cost_usd.value().is_some());
    let mut unknown = first.ended.unknown.clone();

    let ask = match &runtime.card().shell_tool {
        Some(tool) => tool.script(&format!("echo {TOOL_OUTPUT}")),
        None => format!("SAY:{ANSWER}"),
    };
    let second = completed(&mut live, ask).await?;
    if runtime.card().shell_tool.is_some() {
        claim("tool_events", capabilities.tool_events, second.used_tool());
    }
    claim("resume", capabilities.resume, second.name().is_none_or(|name| Some(name) == first.name()));
    unknown.extend(second.ended.unknown);
    found.unknown = unknown;
    Ok(())
}

/// Turn of a probe, with its events.
pub(super) struct ProbedTurn {
    events: Vec<Event>,
    pub(super) ended: TurnEnded,
}

/// Runs a turn that must succeed.
async fn completed(live: &mut AgentSession, prompt: String) -> Result<ProbedTurn, String> {
    let heard = turn(live, prompt).await?;
    match &heard.ended.outcome.end {
        TurnResult::Completed => Ok(heard),
        TurnResult::Failed(failure) => Err(format!("a turn failed: {}", failure.message)),
    }
}

pub(super) async fn turn(live: &mut AgentSession, prompt: String) -> Result<ProbedTurn, String> {
    let gone = || "its session ended by itself".to_owned();
    live.commands.send(SessionCommand::Send(prompt)).await.map_err(|_| gone())?;
    let mut events = Vec::new();
    loop {
        match live.news.recv().await.ok_or_else(gone)? {
            SessionNews::Event(event) => events.push(*event),
            SessionNews::TurnEnded(ended) => return Ok(ProbedTurn { events, ended: *ended }),
        }
    }
}

impl ProbedTurn {
    fn has(&self, kind: EventKind) -> bool {
        self.events.iter().any(|event| event.event_kind() == Some(kind))
    }

    fn says(&self, text: &str) -> bool {
        self.events.iter().any(
            |event| matches!(event.body(), Body::AssistantMessage(message) if message.content.contains(text)),
        )
    }

    fn used_tool(&self) -> bool {
        self.events.iter().any(|event| {
            matches!(event.body(), Body::ToolComplete(complete)
                if complete.success && complete.result.as_ref().is_some_and(|result| result.content.contains(TOOL_OUTPUT)))
        })
    }

    fn name(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match event.body() {
            Body::Handoff(handoff) => handoff.remote_session_id.as_deref(),
            _ => None,
        })
    }

    /// Whether the session had a name before the first answer. An agent that keeps Hangar's log has Hangar's name.
    fn named_early(&self) -> bool {
        let place = |kind| self.events.iter().position(|event| event.event_kind() == Some(kind));
        match (place(EventKind::Handoff), place(EventKind::AssistantMessage)) {
            (Some(named), Some(said)) => named < said,
            (None, _) => self.has(EventKind::SessionStart),
            (Some(_), None) => false,
        }
    }
}
