//! Runs cases, each chain on a machine of its own, several at a time.

use parking_lot::Mutex;
use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::Duration;

use hangar_test_support::{Finished, ModelServer, Scratch, Signal};

use super::case::{Captures, Case, SignalName};
use super::differences::{Expectation, expected_of_hangar, without_loader};

/// The reference writes its log some time after it has printed, so the recordings gave it that time. Hangar gets none.
const RECORDED_DELAY: Duration = Duration::from_millis(600);

/// The program that the cases are run against.
pub(crate) enum Subject {
    Hangar,
    /// The program that the cases were recorded from, without its npm loader. Running it again checks the cases
    /// themselves.
    Reference(PathBuf),
}

impl Subject {
    pub(crate) fn chosen() -> Self {
        match std::env::var_os("HANGAR_TEST_REFERENCE") {
            Some(path) => Self::Reference(path.into()),
            None => Self::Hangar,
        }
    }

    pub(crate) fn is_hangar(&self) -> bool {
        matches!(self, Self::Hangar)
    }

    fn program(&self) -> PathBuf {
        match self {
            Self::Hangar => crate::HANGAR.into(),
            Self::Reference(path) => path.clone(),
        }
    }

    /// The reference prints its last line after a signal or does not, as it happens.
    pub(crate) fn may_omit_result(&self, case: &Case) -> bool {
        !self.is_hangar() && case.signal.is_some()
    }

    pub(crate) fn expectation(&self, captures: &Captures, case: &Case) -> Expectation {
        match self {
            Self::Hangar => expected_of_hangar(captures, case),
            Self::Reference(_) => {
                let case = without_loader(captures, case);
                let mut events = captures.events(case);
                if self.may_omit_result(case) {
                    events.iter_mut().for_each(|events| events.retain(|line| line.kind != "result"));
                }
                Expectation { exit: case.exit, events }
            }
        }
    }
}

/// Result of a case.
pub(crate) struct Outcome {
    pub(crate) finished: Finished,
    /// The status of each request, in order.
    pub(crate) requests: Vec<u16>,
}

/// A machine after all cases of a chain ran on it. A case that could not be run to its end (it hung, say) has the
/// reason instead of an outcome, and ends its chain.
pub(crate) struct Chain<'a> {
    pub(crate) scratch: Scratch,
    pub(crate) sessions: BTreeMap<&'a str, String>,
    pub(crate) outcomes: Vec<(&'a Case, Result<Outcome, String>)>,
}

/// Runs every chain; `extra` arguments are added to each case that prints JSON.
pub(crate) fn run_all<'a>(captures: &'a Captures, subject: &Subject, extra: &[&str]) -> Vec<Chain<'a>> {
    let queue: Mutex<VecDeque<Vec<&Case>>> = Mutex::new(captures.chains().into());
    let done = Mutex::new(Vec::new());
    let workers = std::thread::available_parallelism().map_or(2, std::num::NonZero::get) * 2;
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(chain) = { queue.lock().pop_front() } {
                    let chain = run_chain(captures, subject, extra, chain);
                    done.lock().push(chain);
                }
            });
        }
    });
    done.into_inner()
}

fn run_chain<'a>(
    captures: &'a Captures,
    subject: &Subject,
    extra: &[&str],
    cases: Vec<&'a Case>,
) -> Chain<'a> {
    let mut chain = Chain { scratch: Scratch::new(), sessions: BTreeMap::new(), outcomes: Vec::new() };
    for case in cases {
        // Assertions inside a run panic; one hanging case must not hide what the others do.
        let run = catch_unwind(AssertUnwindSafe(|| run_case(captures, subject, extra, case, &chain)));
        let outcome = run.map_err(|panic| match panic.downcast::<String>() {
            Ok(text) => *text,
            Err(_) => "the run panicked".to_owned(),
        });
        let failed = outcome.is_err();
        let last = outcome
            .as_ref()
            .ok()
            .filter(|_| case.prints_json())
            .and_then(|outcome| outcome.finished.events().pop());
        let named = last
            .filter(|last| last["type"] == "result")
            .and_then(|last| last["sessionId"].as_str().map(str::to_owned));
        // A process that was killed named no session; it was alone on its machine.
        let session = named.or_else(|| chain.scratch.sessions().pop());
        chain.sessions.extend(session.map(|id| (case.name.as_str(), id)));
        chain.outcomes.push((case, outcome));
        if failed {
            break;
        }
    }
    chain
}

fn run_case(captures: &Captures, subject: &Subject, extra: &[&str], case: &Case, chain: &Chain) -> Outcome {
    let scratch = &chain.scratch;
    let model = ModelServer::start();
    for (path, text) in &case.files {
        scratch.file(path, text);
    }
    let expand = |text: &str| {
        let mut text = text
            .replace("$WORK", &scratch.work().to_string_lossy())
            .replace("$MODEL", model.url())
            .replace("$FILLER", &filler());
        for (name, id) in &chain.sessions {
            text = text.replace(&format!("$SESSION({name})"), id);
        }
        text
    };
    let mut invocation = scratch
        .run(subject.program())
        .env("HANGAR_RETRY_SCALE", "0.01")
        .args(case.args.iter().map(|arg| expand(arg)));
    if case.prints_json() {
        invocation = invocation.args(extra);
    }
    for (key, value) in captures.environment.iter().chain(&case.env) {
        invocation = invocation.env(key, expand(value));
    }
    if let Some(text) = &case.stdin {
        invocation = invocation.stdin(expand(text));
    }
    if let Some(directory) = &case.cwd {
        let directory = scratch.root().join(directory);
        std::fs::create_dir_all(&directory).expect("a directory in the scratch");
        invocation = invocation.cwd(directory);
    }
    let mut running = invocation.start();
    if let Some(interruption) = &case.signal {
        running.wait_for_event(&interruption.on);
        if !subject.is_hangar() {
            std::thread::sleep(RECORDED_DELAY);
        }
        running.signal(match interruption.send {
            SignalName::Int => Signal::INT,
            SignalName::Term => Signal::TERM,
            SignalName::Kill => Signal::KILL,
        });
    }
    let mut finished = running.finish();
    if !subject.is_hangar() {
        // It unpacks itself on a new machine, and says so when that was slow.
        let mut lines: Vec<&str> = finished.stderr.lines().collect();
        lines.retain(|line| !line.starts_with("Package extraction took"));
        finished.stderr = lines.join("\n");
    }
    let requests = model.requests().iter().map(|request| request.status.unwrap_or(0)).collect();
    Outcome { finished, requests }
}

/// Sixty kilobytes of prompt that say nothing.
fn filler() -> String {
    (0..1800).map(|n| format!("a line that fills the prompt {n:04}\n")).collect()
}
