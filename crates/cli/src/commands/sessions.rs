//! `hangar sessions`: the saved sessions.

use std::path::Path;

use anyhow::{Context, Result};
use hangar_protocol::Totals;
use hangar_store::{Filter, SessionName, SessionSummary, Store};
use serde_json::json;

use super::{print_line, rewind};
use crate::args::SessionsCommand;
use crate::exit::Exit;
use crate::selection;
use crate::settings::Settings;
use crate::usage;

/// Number of the newest sessions whose cost is listed, which requires reading their logs.
const COSTED: usize = 200;

pub(crate) fn run(settings: &Settings, command: Option<SessionsCommand>) -> Result<Exit> {
    let store = Store::new(&settings.home);
    match command.unwrap_or(SessionsCommand::List { json: false }) {
        SessionsCommand::List { json } => list(&store, json)?,
        SessionsCommand::Show { session } => export(&store, &session, None)?,
        SessionsCommand::Export { session, output } => export(&store, &session, output.as_deref())?,
        SessionsCommand::Fork { session, before, name } => rewind::fork(&store, &session, before, name)?,
        SessionsCommand::Rewind { session, to: None, .. } => rewind::list(&store, &session)?,
        SessionsCommand::Rewind { session, to: Some(to), files } => {
            rewind::rewind(&store, &session, &to, files)?;
        }
        SessionsCommand::Delete { session } => {
            let id = selection::resolve(&store, &session)?;
            // Its costs stay in the ledger.
            if store.contains(&id) {
                crate::costs::ledger(settings)?.take_in([id.clone()])?;
            }
            store.delete(&id)?;
            print_line(&format!("Deleted session {id}."))?;
        }
    }
    Ok(Exit::Done)
}

fn list(store: &Store, as_json: bool) -> Result<()> {
    let sessions = store.list(&Filter::default())?;
    let figures = |(place, session): (usize, &SessionSummary)| {
        if place < COSTED { usage::logged(store, &session.id) } else { None }
    };
    if as_json {
        let figures = sessions.iter().enumerate().map(figures);
        let rows: Vec<serde_json::Value> =
            sessions.iter().zip(figures).map(|(session, totals)| row(session, totals.as_ref())).collect();
        return print_line(&serde_json::to_string_pretty(&rows)?);
    }
    if sessions.is_empty() {
        return print_line("No sessions yet. Start one with: hangar -p \"...\"");
    }
    for (place, session) in sessions.iter().enumerate() {
        let cost = figures((place, session)).and_then(|totals| usage::logged_cost(&totals));
        let cost = cost.map(|cost| format!("  {cost}")).unwrap_or_default();
        let updated = session.meta.updated_at.strftime("%Y-%m-%d %H:%M");
        let cwd = session.meta.context.as_ref().map_or("", |context| context.cwd.as_str());
        let name = name(session).lines().next().unwrap_or_default().to_owned();
        // Names come from prompts and directories from anywhere: a terminal obeys neither.
        let line = format!("{}  {updated}  {name}  {cwd}{cost}", session.id);
        print_line(&hangar_terminal::gate::visible(&line))?;
    }
    Ok(())
}

fn name(session: &SessionSummary) -> &str {
    match &session.meta.name {
        Some(SessionName::Given(name) | SessionName::Derived(name)) => name,
        None => "(no prompt)",
    }
}

fn row(session: &SessionSummary, totals: Option<&Totals>) -> serde_json::Value {
    let context = session.meta.context.as_ref();
    json!({
        "sessionId": session.id.as_str(),
        "clientName": session.meta.client_name,
        "name": session.meta.name.as_ref().map(|_| name(session)),
        "cwd": context.map(|context| &context.cwd),
        "gitRoot": context.and_then(|context| context.git_root.as_ref()),
        "repository": context.and_then(|context| context.repository.as_ref()),
        "branch": context.and_then(|context| context.branch.as_ref()),
        "createdAt": session.meta.created_at.to_string(),
        "updatedAt": session.meta.updated_at.to_string(),
        "logBytes": session.log_bytes,
        "inputTokens": totals.and_then(|totals| totals.input_tokens),
        "outputTokens": totals.and_then(|totals| totals.output_tokens),
        "costUsd": totals.and_then(|totals| totals.cost),
        "unpricedCalls": totals.map(|totals| totals.unpriced + totals.reserved.len() as u64),
    })
}

fn export(store: &Store, session: &str, output: Option<&Path>) -> Result<()> {
    let id = selection::resolve(store, session)?;
    let events = store.read(&id)?;
    match output {
        None => {
            let mut text = Vec::new();
            hangar_store::export_markdown(events, &mut text)?;
            print_line(String::from_utf8_lossy(&text).trim_end())
        }
        Some(path) => {
            let file = std::fs::File::create(path)
                .with_context(|| format!("cannot write the transcript to {}", path.display()))?;
            let mut file = std::io::BufWriter::new(file);
            hangar_store::export_markdown(events, &mut file)?;
            std::io::Write::flush(&mut file)?;
            print_line(&format!("Wrote {}.", path.display()))
        }
    }
}
