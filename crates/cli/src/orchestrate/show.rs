//! Output: records while the orchestrator works, and lists of issues.

use anyhow::{Result, bail};
use hangar_orchestrator::contest::{RivalResult, candidate_of};
use hangar_orchestrator::hold::{self, Hold};
use hangar_orchestrator::plan::{TrackerSnapshot, candidates};
use hangar_orchestrator::pulls::{Publication, Reaction};
use hangar_orchestrator::record::{IssueFact, OrchestratorRecord, PersonRequest, Release};
use hangar_orchestrator::state::{IssueClaim, OrchestratorState, Phase};
use hangar_trackers::IssueId;
use hangar_workflow::{Config, Report};
use serde_json::{Value, json};

use super::board::rival_view;
use super::source::Source;
use crate::args::OutputFormat;
use crate::commands::print_line;
use crate::exit::Exit;

/// Where records are shown: printed as lines of JSON or, the important ones, as lines of text; or logged.
pub(super) enum Shown {
    Printed(OutputFormat),
    Logged,
}

impl Shown {
    pub(super) fn record(&self, record: &OrchestratorRecord, state: &OrchestratorState) {
        match self {
            Shown::Printed(OutputFormat::Json) => print(serde_json::to_string(record).ok()),
            Shown::Printed(OutputFormat::Text) => print(told(record, state)),
            Shown::Logged => {
                if let Some(line) = told(record, state) {
                    tracing::info!("{line}");
                }
            }
        }
    }

    pub(super) fn reloaded(&self) {
        const TOLD: &str = "the workflow was loaded again";
        match self {
            Shown::Printed(OutputFormat::Json) => print(Some(json!({ "type": "reloaded" }).to_string())),
            Shown::Printed(OutputFormat::Text) => print(Some(TOLD.to_owned())),
            Shown::Logged => tracing::info!("{TOLD}"),
        }
    }
}

impl Shown {
    /// A changed workflow that has errors.
    pub(super) fn refused(&self, problems: &[String]) {
        if let Shown::Printed(OutputFormat::Json) = self {
            print(Some(json!({ "type": "reloadRefused", "problems": problems }).to_string()));
        }
    }
}

fn print(line: Option<String>) {
    if let Some(line) = line {
        use std::io::Write;
        // A reader that went away does not end the work.
        let _ = writeln!(std::io::stdout().lock(), "{line}");
    }
}

fn told(record: &OrchestratorRecord, state: &OrchestratorState) -> Option<String> {
    let (issue, what) = match &record.fact {
        IssueFact::Claimed { issue, title, agent, .. } => (issue, format!("claimed for {agent}: {title}")),
        IssueFact::StageAdvanced { issue, stage } => {
            (issue, format!("{} follows, with {}", stage.name, stage.agent))
        }
        IssueFact::ContestBegun { issue } => (issue, "its candidates begin".to_owned()),
        IssueFact::RivalDone { issue, result } => (issue, measured(result)),
        IssueFact::Chosen { issue, candidate } => {
            (issue, format!("the criteria choose candidate {candidate}"))
        }
        IssueFact::Promoted { issue, candidate, .. } => (issue, format!("candidate {candidate} is promoted")),
        IssueFact::Opened { issue, session, workspace, .. } => {
            (issue, format!("session {session} in {}", workspace.display()))
        }
        IssueFact::TurnStarted { issue, turn } => (issue, format!("turn {turn}")),
        IssueFact::RetryAt { issue, due, error: Some(error), .. } => {
            (issue, format!("{error}; again at {due:.0}"))
        }
        IssueFact::RetryAt { issue, due, error: None, .. } => (issue, format!("goes on at {due:.0}")),
        IssueFact::Parked { issue, reason } => (issue, format!("parked: {}", reason.sentence())),
        IssueFact::Released { issue, release } => (issue, released(release)),
        IssueFact::WorkspaceRemoved { issue, kept: Some(kept) } => {
            (issue, format!("workspace removed, changes kept as {kept}"))
        }
        IssueFact::WorkspaceRemoved { issue, kept: None } => (issue, "workspace removed".to_owned()),
        IssueFact::Written { issue, error: Some(error), .. } => {
            (issue, format!("the tracker refuses: {error}"))
        }
        IssueFact::Requested { issue, request, .. } => (issue, requested(*request)),
        IssueFact::Published { issue, url, head, changed: true, .. } => {
            (issue, format!("published {} as {url}", head.get(..12).unwrap_or(head)))
        }
        IssueFact::Unpublished { issue, outcome: Publication::Failed(failure) } => {
            (issue, format!("not published: {}", failure.message))
        }
        IssueFact::Reacted { issue, reaction } => (issue, reacted(reaction)),
        IssueFact::Merged { issue, error: None, .. } => (issue, "merged".to_owned()),
        IssueFact::Merged { issue, error: Some(error), .. } => (issue, format!("not merged: {error}")),
        IssueFact::Answered { issue, error: Some(error), .. } => {
            (issue, format!("the forge refuses: {error}"))
        }
        IssueFact::Published { .. }
        | IssueFact::Unpublished { .. }
        | IssueFact::Answered { .. }
        | IssueFact::Waiting { .. }
        | IssueFact::PullSeen { .. }
        | IssueFact::Written { error: None, .. }
        | IssueFact::Restarted { .. }
        | IssueFact::TurnEnded { .. }
        | IssueFact::Checked { .. }
        | IssueFact::SessionEnded { .. }
        | IssueFact::Finished { .. }
        | IssueFact::Resumed
        | IssueFact::Compacted { .. }
        | IssueFact::Unknown => return None,
    };
    Some(format!("{} {} {what}", record.at.strftime("%H:%M:%S"), name_of(issue, state)))
}

/// Name of an issue or of a candidate, also of one that is over.
fn name_of(key: &IssueId, state: &OrchestratorState) -> String {
    let candidate = candidate_of(key);
    let issue = candidate.as_ref().map_or(key, |(issue, _)| issue);
    let claimed = state.claims.get(issue).map(|claim| claim.identifier.clone());
    let released = || state.history.get(issue).map(|history| history.identifier.clone());
    let name = claimed.or_else(released).unwrap_or_else(|| issue.0.clone());
    match &candidate {
        Some((_, number)) => format!("{name}, candidate {number}"),
        None => name,
    }
}

fn requested(request: PersonRequest) -> String {
    match request {
        PersonRequest::Start => "a person wants it to be worked on next".to_owned(),
        PersonRequest::Stop => "a person stops it".to_owned(),
        PersonRequest::Park => "a person parks it".to_owned(),
        PersonRequest::Retry => "a person wants it to be tried again".to_owned(),
        PersonRequest::Promote { candidate } => format!("a person promotes candidate {candidate}"),
    }
}

fn measured(result: &RivalResult) -> String {
    let RivalResult { files, added, removed, checks, commit, .. } = result;
    let failed = checks.iter().filter(|criterion| !criterion.passed).count();
    match (&result.error, commit) {
        (Some(error), _) => format!("done, and not measured: {error}"),
        (None, None) => "done, and has changed nothing".to_owned(),
        (None, Some(_)) if checks.is_empty() => format!("done: {files} files, +{added} -{removed}"),
        (None, Some(_)) => {
            format!("done: {files} files, +{added} -{removed}, {failed} of {} checks failed", checks.len())
        }
    }
}

fn reacted(reaction: &Reaction) -> String {
    match reaction {
        Reaction::CiFailure { checks, .. } => format!("CI fails in {} checks; another session", checks.len()),
        Reaction::Review { remarks } => format!("{} remarks of reviewers; another session", remarks.len()),
        Reaction::BotReview { remarks } => format!("{} remarks of bots; another session", remarks.len()),
        Reaction::Conflict { base } => format!("conflicts with {base}; another session"),
        Reaction::Diverged => "others pushed to the branch; another session".to_owned(),
        Reaction::Label { label } => format!("the label `{label}` asks for another session"),
    }
}

pub(super) fn released(release: &Release) -> String {
    match release {
        Release::HandedOff { state } => format!("handed over as `{state}`"),
        Release::Inactive { state } => format!("released: its state is `{state}`"),
        Release::Gone => "released: it no longer exists".to_owned(),
        Release::Unparked => "released: a person has acted".to_owned(),
        Release::Merged { number } => format!("done: the pull request #{number} was merged"),
    }
}

pub(super) fn report(source: &Source, report: &Report, format: OutputFormat) -> Result<Exit> {
    match format {
        OutputFormat::Json => print_line(&serde_json::to_string_pretty(report)?)?,
        OutputFormat::Text => {
            for problem in report.all() {
                print_line(&problem.line(&source.name()))?;
            }
            if report.valid {
                print_line(&format!("{} is valid", source.name()))?;
            }
        }
    }
    Ok(if report.valid { Exit::Done } else { Exit::Failed })
}

/// All candidates with their reasons, then the totals.
pub(super) fn dry_run(
    config: &Config,
    snapshot: &TrackerSnapshot,
    state: &OrchestratorState,
    format: OutputFormat,
) -> Result<Exit> {
    let judged = candidates(config, snapshot, state);
    for candidate in &judged {
        let (issue, hold) = (candidate.issue, &candidate.hold);
        print_line(&match format {
            OutputFormat::Json => json!({
                "type": "candidate", "id": issue.id, "identifier": issue.identifier, "state": issue.state,
                "priority": issue.priority, "would_dispatch": hold.is_none(),
                "code": hold.as_ref().map(Hold::code), "reason": hold.as_ref().map(Hold::sentence),
            })
            .to_string(),
            OutputFormat::Text => {
                let fate = hold.as_ref().map_or_else(|| "would be started".to_owned(), Hold::sentence);
                format!("{}  {}  {}: {fate}", issue.identifier, issue.state, issue.title)
            }
        })?;
    }
    let started = judged.iter().filter(|candidate| candidate.hold.is_none()).count();
    print_line(&match format {
        OutputFormat::Json => json!({
            "type": "summary", "candidates": judged.len(), "would_dispatch": started,
            "slots": config.agent.max_concurrent, "running": state.running().count(),
        })
        .to_string(),
        OutputFormat::Text => format!("{started} of {} would be started", judged.len()),
    })?;
    Ok(Exit::Done)
}

/// Issues as `hangar issues` lists them: claims first, then candidates.
pub(super) fn issues(config: &Config, snapshot: &TrackerSnapshot, state: &OrchestratorState) -> Vec<Value> {
    let claimed = state.claims.values().map(|found| claim(found, state));
    let judged = candidates(config, snapshot, state);
    let others = judged.iter().filter(|candidate| !state.claims.contains_key(&candidate.issue.id));
    let others = others.map(|candidate| {
        let (issue, hold) = (candidate.issue, &candidate.hold);
        json!({
            "id": issue.id, "identifier": issue.identifier, "title": issue.title, "state": issue.state,
            "status": if hold.is_none() { "eligible" } else { "held" },
            "code": hold.as_ref().map(Hold::code), "reason": hold.as_ref().map(Hold::sentence),
        })
    });
    claimed.chain(others).collect()
}

fn claim(claim: &IssueClaim, state: &OrchestratorState) -> Value {
    let hold = hold::of_claim(claim);
    let rivals = state.rivals_of(&claim.issue).into_iter().map(|rival| rival_view(rival, None));
    let can_promote = matches!(claim.phase, Phase::Parked { .. });
    json!({
        "candidates": rivals.collect::<Vec<_>>(), "can_promote": can_promote,
        "id": claim.issue, "identifier": claim.identifier, "title": claim.title, "state": claim.state,
        "status": hold.code(), "code": hold.code(), "reason": hold.sentence(), "agent": claim.agent,
        "turn": claim.turn, "turns": claim.turns, "sessions": claim.sessions, "attempt": claim.failures,
        "tokens": claim.tokens, "session": claim.session, "workspace": claim.workspace, "branch": claim.branch,
        "error": claim.error, "pull": claim.pull, "since": format!("{:.3}", claim.since),
    })
}

/// An issue with its candidates, a line for each.
pub(super) fn paragraph(issue: &Value) -> String {
    let mut lines = vec![line(issue)];
    for candidate in issue["candidates"].as_array().into_iter().flatten() {
        let checks = candidate["checks"].as_array().map(Vec::as_slice).unwrap_or_default();
        let passed = checks.iter().filter(|check| check["passed"] == true).count();
        let number = |name: &str| candidate[name].as_u64().unwrap_or_default();
        let tokens = &candidate["tokens"];
        let used =
            tokens["input"].as_u64().unwrap_or_default() + tokens["output"].as_u64().unwrap_or_default();
        let score = candidate["score"].as_f64().map(|score| format!(", score {score}")).unwrap_or_default();
        lines.push(format!(
            "  candidate {}  {}  {} files, +{} -{}, {passed} of {} checks passed{score}, {used} tokens: {}",
            number("number"),
            candidate["agent"].as_str().unwrap_or_default(),
            number("files"),
            number("added"),
            number("removed"),
            checks.len(),
            candidate["why"].as_str().unwrap_or_default(),
        ));
    }
    lines.join("\n")
}

/// Refuses a promotion that would have no effect.
pub(super) fn check_promotion(issue: &Value, candidate: u32) -> Result<()> {
    let name = issue["identifier"].as_str().unwrap_or_default();
    let all = issue["candidates"].as_array().map(Vec::as_slice).unwrap_or_default();
    if all.is_empty() {
        bail!("{name} has no candidates");
    }
    if issue["can_promote"] != true {
        bail!("the candidates of {name} are not done; `hangar issue stop {name}` ends them");
    }
    let names =
        all.iter().filter(|known| known["promotable"] == true).map(|known| known["number"].to_string());
    let names: Vec<String> = names.collect();
    if names.is_empty() {
        bail!("no candidate of {name} has work to promote; `hangar issue retry {name}` lets them go on");
    }
    if !names.contains(&candidate.to_string()) {
        bail!(
            "candidate {candidate} of {name} has no work to promote; those that have some: {}",
            names.join(", ")
        );
    }
    Ok(())
}

/// One line about an issue.
pub(super) fn line(issue: &Value) -> String {
    let text = |name: &str| issue[name].as_str().unwrap_or_default().to_owned();
    let reason = issue["reason"].as_str().map(|reason| format!(": {reason}")).unwrap_or_default();
    format!("{}  {}  {}  {}{reason}", text("identifier"), text("state"), text("title"), text("status"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_promotion_without_work_is_refused_with_what_can_be_done() {
        let issue = |promotable: [bool; 2]| {
            let candidates = [
                json!({ "number": 1, "promotable": promotable[0] }),
                json!({ "number": 2, "promotable": promotable[1] }),
            ];
            json!({ "identifier": "A", "can_promote": true, "candidates": candidates })
        };
        let refused = |promotable| check_promotion(&issue(promotable), 1).unwrap_err().to_string();
        assert!(refused([false, true]).ends_with("those that have some: 2"));
        assert!(
            refused([false, false])
                .starts_with("no candidate of A has work to promote; `hangar issue retry A`")
        );
        check_promotion(&issue([true, false]), 1).unwrap();
    }

    #[test]
    fn a_candidate_is_named_after_its_issue_also_when_it_is_over() {
        let mut state = OrchestratorState::default();
        let mut told_of = |line: &str| {
            let record: OrchestratorRecord = serde_json::from_str(line).unwrap();
            state.apply(&record);
            told(&record, &state).unwrap()
        };
        let at = r#""at":"2026-01-01T10:00:00.000Z""#;
        let removed =
            format!(r#"{{"seq":1,{at},"type":"workspaceRemoved","issue":"7\u001f0-2","kept":null}}"#);
        assert_eq!(told_of(&removed), "10:00:00 7, candidate 2 workspace removed", "nobody knows it");
        told_of(&format!(
            r#"{{"seq":2,{at},"type":"claimed","issue":"7","identifier":"A-7","title":"t","state":"s","agent":"x"}}"#
        ));
        assert_eq!(told_of(&removed), "10:00:00 A-7, candidate 2 workspace removed");
        let promoted = format!(
            r#"{{"seq":3,{at},"type":"requested","issue":"7","identifier":"A-7","request":{{"promote":{{"candidate":2}}}},"id":"r"}}"#
        );
        assert_eq!(told_of(&promoted), "10:00:00 A-7 a person promotes candidate 2");
    }
}
