//! Output of a run while it works: every record and event as a JSON line, or lines of text about the important ones.

use std::io::{self, Write};

use hangar_jobs::driver::{RunListener, RunNotice};
use hangar_jobs::record::{RunFact, RunId, RunRecord};
use hangar_protocol::Body;
use hangar_runtimes::watch::NO_PROGRESS;
use serde::Serialize;

use crate::args::OutputFormat;

pub(super) struct Shown {
    format: OutputFormat,
    /// Whether several runs share the output, so that each line names its run.
    several: bool,
}

impl Shown {
    pub(super) fn new(format: OutputFormat) -> Self {
        Self { format, several: false }
    }

    pub(super) fn of_several(format: OutputFormat) -> Self {
        Self { format, several: true }
    }

    fn json(&self, run: &RunId, line: &impl Serialize) -> Option<String> {
        let line = match self.several {
            true => serde_json::to_string(&OfRun { of_run: run, line }),
            false => serde_json::to_string(line),
        };
        line.ok()
    }
}

/// A line of one of several runs.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OfRun<'a, T> {
    of_run: &'a RunId,
    #[serde(flatten)]
    line: &'a T,
}

/// An event of a session, in the stream of the run that the session works for.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionEvent<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    task: hangar_jobs::record::TaskId,
    session: &'a hangar_jobs::record::TaskSessionId,
    event: &'a hangar_protocol::Event,
}

impl RunListener for Shown {
    fn hear(&self, run: &RunId, notice: RunNotice<'_>) {
        let line = match (self.format, notice) {
            (OutputFormat::Json, RunNotice::Record(record)) => self.json(run, record),
            (OutputFormat::Json, RunNotice::Event { task, session, event }) => {
                self.json(run, &SessionEvent { kind: "sessionEvent", task, session, event })
            }
            (OutputFormat::Text, RunNotice::Record(record)) => told(record),
            (OutputFormat::Text, RunNotice::Event { task, event, .. }) => match event.body() {
                Body::SessionWarning(warning) if warning.warning_type == NO_PROGRESS => {
                    Some(format!("{task} {}", warning.message))
                }
                _ => None,
            },
        };
        let line = match (line, self.format) {
            (Some(line), OutputFormat::Text) if self.several => Some(format!("{run}  {line}")),
            (line, _) => line,
        };
        if let Some(line) = line {
            // A reader that went away does not end the work.
            let _ = writeln!(io::stdout().lock(), "{line}");
        }
    }
}

/// Line of text about a record, if it is an important one.
pub(super) fn told(record: &RunRecord) -> Option<String> {
    let time = record.at.strftime("%H:%M:%S");
    let what = match &record.fact {
        RunFact::RunStarted { run, order } => format!("run {run}: {}", order.subject.name()),
        RunFact::RunResumed => "resumed".to_owned(),
        RunFact::WorktreeMade { worktree, .. } => format!("worktree {}", worktree.root.display()),
        RunFact::WorktreeLeft { place, kept: true } => format!("worktree of {place} has changes and stays"),
        RunFact::WorktreeFailed { error, .. } => format!("no worktree: {error}"),
        RunFact::WorkStarted { task, name, .. } => format!("{task} {name} started"),
        // Without a model of its own, the task uses that of its agent.
        RunFact::SessionStarted { task, session, model, .. } if model.is_empty() => {
            format!("{task} session {session}")
        }
        RunFact::SessionStarted { task, session, model, .. } => {
            format!("{task} session {session} on {model}")
        }
        RunFact::SessionRefused { task, error } => format!("{task} no session: {error}"),
        RunFact::Decided { task, reason, .. } => format!("{task} {reason}"),
        RunFact::TaskStopped { task } => format!("{task} stopped"),
        RunFact::WorkStopped { task, succeeded: true, .. } => format!("{task} \u{2714}"),
        RunFact::WorkStopped { task, succeeded: false, .. } => format!("{task} \u{2718}"),
        RunFact::RunEnded { end } => format!("run {end}"),
        RunFact::WorktreeLeft { kept: false, .. }
        | RunFact::Prompted { .. }
        | RunFact::TurnEnded { .. }
        | RunFact::Checked { .. }
        | RunFact::SessionStopped { .. }
        | RunFact::TaskEnded { .. } => return None,
    };
    Some(format!("{time}  {what}"))
}
