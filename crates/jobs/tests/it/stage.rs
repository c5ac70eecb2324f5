//! One run on a stage: an entry, a script, and what came of it.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use expect_test::Expect;
use hangar_jobs::driver::{Executor, RunDriver, RunEnvironment, RunListener, RunNotice, RunStartError};
use hangar_jobs::entry::Entry;
use hangar_jobs::read::{Format, read_entry};
use hangar_jobs::record::{RunFact, RunId, RunOrder, RunRecord, Subject, TaskEnd, TaskSessionId, TurnReport};
use hangar_jobs::store::FileStore;
use hangar_jobs::validate::validate_entry;
use hangar_runtimes::runtime::Runtime;
use jiff::Timestamp;
use tokio::sync::watch;

use crate::fake::{Fake, Script};
use crate::slots::Slots;

/// Models and tasks that most tests use. Every task is `@name` to the script.
pub(crate) const TASKS: &str = "
models: { driving: drv, coding: cod }
tasks:
  a: { model: { category: coding }, prompt: '@a', requireUserInput: false }
  b: { model: { category: coding }, prompt: '@b', requireUserInput: false }
  c: { model: { category: coding }, prompt: '@c', requireUserInput: false }
  fails:
    model: { category: coding }
    prompt: '@fails'
    requireUserInput: false
    criteria: { toolExecuted: [job_boolean_true], failureAction: { retryTimes: 0 } }
  asks:
    model: { category: coding }
    prompt: '@asks'
    requireUserInput: false
    criteria: { toolExecuted: [job_boolean_true], failureAction: { retryTimes: 0 } }
";

pub(crate) struct Stage {
    pub(crate) place: tempfile::TempDir,
    pub(crate) executor: Arc<Executor>,
    pub(crate) slots: Slots,
    pub(crate) heard: Arc<Heard>,
}

/// Received records, and a way to wait for one.
pub(crate) struct Heard {
    lines: Mutex<(Trace, Vec<String>)>,
    changed: watch::Sender<usize>,
}

impl RunListener for Heard {
    fn hear(&self, _: &RunId, notice: RunNotice<'_>) {
        let mut lines = self.lines.lock();
        let (trace, all) = &mut *lines;
        if let RunNotice::Record(record) = notice {
            all.extend(trace.line(record));
        }
        let length = all.len();
        self.changed.send_replace(length);
    }
}

impl Heard {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.lines.lock().1.clone()
    }

    pub(crate) async fn until(&self, line: &str) {
        let mut changed = self.changed.subscribe();
        changed.wait_for(|_| self.lines().iter().any(|heard| heard == line)).await.unwrap();
    }
}

/// A clock that moves on by itself: no test depends on how long anything takes.
fn now() -> Timestamp {
    static MILLIS: AtomicI64 = AtomicI64::new(1_800_000_000_000);
    Timestamp::from_millisecond(MILLIS.fetch_add(1, Ordering::Relaxed)).unwrap()
}

pub(crate) fn entry(yaml: &str) -> Entry {
    read_entry(yaml, Format::Yaml, "test:").unwrap()
}

pub(crate) fn order(yaml: &str, subject: Subject, directory: &Path) -> RunOrder {
    RunOrder {
        subject,
        input: "the input".to_owned(),
        working_directory: directory.to_owned(),
        runtime: None,
        entry: Arc::new(validate_entry(entry(yaml), "test:").unwrap()),
    }
}

pub(crate) fn job(name: &str) -> Subject {
    Subject::Job { name: name.to_owned() }
}

impl Stage {
    pub(crate) fn new(script: &str) -> Self {
        Self::with(Arc::new(Script::parse(script)))
    }

    pub(crate) fn with(script: Arc<Script>) -> Self {
        Self::pausing(script, 0.0)
    }

    /// A stage on which pauses before retries are so many times as long as usual.
    pub(crate) fn pausing(script: Arc<Script>, retry_scale: f64) -> Self {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("repo")).unwrap();
        let (changed, _) = watch::channel(0);
        let slots = Slots::new(retry_scale);
        let heard = Arc::new(Heard { lines: Mutex::default(), changed });
        let executor = Arc::new(Executor {
            runtimes: Arc::new(move || {
                ["fake", "other", "toolless"]
                    .map(|name| Arc::new(Fake::new(name, Arc::clone(&script))) as Arc<dyn Runtime>)
                    .into()
            }),
            store: Arc::new(FileStore::new(place.path().join("runs"))),
            slots: Arc::new(slots.clone()),
            job_tools: Some("{}".to_owned()),
            environment: RunEnvironment {
                variables: std::env::vars_os().collect(),
                git: hangar_git::Git::new(hangar_git::Environment::of(std::env::vars_os())),
                clean: Arc::new(|record| record),
            },
            now,
        });
        Self { place, executor, slots, heard }
    }

    pub(crate) fn repo(&self) -> std::path::PathBuf {
        self.place.path().join("repo")
    }

    pub(crate) fn store(&self) -> FileStore {
        FileStore::new(self.place.path().join("runs"))
    }

    pub(crate) fn start(&self, yaml: &str, name: &str) -> RunDriver {
        self.executor.start(order(yaml, job(name), &self.repo()), self.heard.clone()).unwrap()
    }

    pub(crate) fn resume(&self, run: &RunId) -> Result<RunDriver, RunStartError> {
        self.executor.resume(run, self.heard.clone())
    }

    /// Received records, with the paths of the stage removed.
    pub(crate) fn trace(&self) -> String {
        let text = self.heard.lines().join("\n") + "\n";
        text.replace(&self.place.path().display().to_string(), "PLACE")
    }
}

/// Runs the job `j` to its end.
pub(crate) async fn check(yaml: &str, script: &str, expected: Expect) {
    let stage = Stage::new(script);
    stage.start(yaml, "j").to_end().await.unwrap();
    expected.assert_eq(&stage.trace());
    assert_eq!(stage.slots.left(), 0, "no slot is left to a run that has ended");
}

/// The trace of a run of the job `j` without prompts and sessions.
pub(crate) async fn works(yaml: &str, script: &str) -> String {
    let stage = Stage::new(script);
    stage.start(yaml, "j").to_end().await.unwrap();
    let lines = stage.heard.lines();
    let kept = lines.iter().filter_map(|line| {
        line.strip_prefix("work ").or_else(|| line.starts_with("run ").then_some(line.as_str()))
    });
    kept.collect::<Vec<_>>().join(", ")
}

/// Records as people read them, with sessions counted.
#[derive(Default)]
pub(crate) struct Trace {
    sessions: HashMap<TaskSessionId, usize>,
}

impl Trace {
    fn name(&mut self, session: &TaskSessionId) -> String {
        let next = self.sessions.len() + 1;
        format!("s{}", self.sessions.entry(session.clone()).or_insert(next))
    }

    pub(crate) fn line(&mut self, record: &RunRecord) -> Option<String> {
        Some(match &record.fact {
            RunFact::RunStarted { .. } | RunFact::Checked { .. } => return None,
            RunFact::RunResumed => "run resumed".to_owned(),
            RunFact::WorktreeMade { place, .. } => format!("worktree {place} made"),
            RunFact::WorktreeLeft { place, kept } => format!("worktree {place} left, kept: {kept}"),
            RunFact::WorktreeFailed { place, .. } => format!("worktree {place} failed"),
            RunFact::WorkStarted { work_id, name, .. } => format!("work {} started: {name}", work_id.0),
            RunFact::SessionStarted { session, driving, model, .. } => {
                let what = if *driving { "driving" } else { "task" };
                format!("{} started: {what} on {model}", self.name(session))
            }
            RunFact::SessionRefused { error, .. } => format!("no session: {error}"),
            RunFact::Prompted { session, prompt, .. } => format!("{} <- {prompt:?}", self.name(session)),
            RunFact::TurnEnded { end: TurnReport::Completed { .. }, .. } => return None,
            RunFact::TurnEnded { end: TurnReport::Crashed { error }, session, .. } => {
                format!("{} crashed: {error}", self.name(session))
            }
            RunFact::Decided { reason, .. } => reason.clone(),
            RunFact::SessionStopped { session, succeeded, .. } => {
                format!("{} stopped: {succeeded}", self.name(session))
            }
            RunFact::TaskStopped { task } => format!("{task} stopped from outside"),
            RunFact::TaskEnded { task, end } => match end {
                TaskEnd::Succeeded => format!("{task} succeeded"),
                TaskEnd::Failed => format!("{task} failed"),
                TaskEnd::Crashed { .. } => format!("{task} failed, with an error"),
            },
            RunFact::WorkStopped { work_id, succeeded, .. } => {
                format!("work {} stopped: {succeeded}", work_id.0)
            }
            RunFact::RunEnded { end } => format!("run {end}"),
        })
    }
}
