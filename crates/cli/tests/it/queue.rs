//! The queue of a home, with real processes: limits hold across them, waits are explained, kills lose and repeat nothing.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use hangar_scheduler::limits::Limits;
use hangar_scheduler::queue::Queue;
use hangar_scheduler::record::QueueRecord;
use hangar_test_support::{Invocation, ModelServer, Running, Scratch, Signal};
use serde_json::Value;

use crate::hangar;

/// Slots of all processes together, tasks of each run, runs, and kills. `HANGAR_QUEUE_LIMIT=8 HANGAR_QUEUE_TASKS=63
/// HANGAR_QUEUE_RUNS=16 HANGAR_QUEUE_KILLS=100` is a thousand tasks.
const LIMIT: usize = 3;
const TASKS: usize = 16;
const RUNS: usize = 3;
const KILLS: usize = 24;
/// Most that one process may take.
const TIME: Duration = Duration::from_secs(1800);

fn number(variable: &str, usual: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// A machine with jobs: `many` has tasks that run at once, `waits` waits for the file `go`, `login` fails.
struct Machine {
    scratch: Scratch,
    model: ModelServer,
}

impl Machine {
    fn new(limit: u32, tasks: usize) -> Self {
        let (scratch, model) = (Scratch::new(), ModelServer::start());
        std::fs::create_dir_all(scratch.state()).unwrap();
        let config = format!("[limits]\nglobal = {limit}\n[runtimes]\ndefault = \"native\"\n");
        std::fs::write(scratch.state().join("config.toml"), config).unwrap();
        let mut works = String::new();
        (0..tasks).for_each(|_| works.push_str("{ kind: Ref, taskId: say }, "));
        let mut entry = String::from("models: { driving: mock-model }\ntasks:\n");
        let wait = r#"TOOL:bash:{"command":"while [ ! -e go ]; do sleep 0.02; done"}"#;
        for (name, prompt) in
            [("say", "SAY:hello"), ("waits", wait), ("login", "FAIL:401"), ("busy", "FAIL:429:99:200")]
        {
            let _ = writeln!(
                entry,
                "  {name}: {{ model: {{ category: driving }}, prompt: '{prompt}', requireUserInput: false }}"
            );
        }
        let _ = writeln!(entry, "jobs:\n  many: {{ work: {{ kind: Par, works: [{works}] }} }}");
        for name in ["say", "waits", "busy"] {
            let _ = writeln!(entry, "  {name}: {{ work: {{ kind: Ref, taskId: {name} }} }}");
        }
        let logins = "{ kind: Ref, taskId: login }, ".repeat(5);
        let _ = writeln!(entry, "  logins: {{ work: {{ kind: Par, works: [{logins}] }} }}");
        scratch.file("jobs.yaml", &entry);
        Self { scratch, model }
    }

    fn hangar(&self, args: &[&str]) -> Invocation {
        hangar(&self.scratch, &self.model).within(TIME).args(args)
    }

    /// A job, and the id of its run.
    fn start(&self, job: &str) -> (Running, String) {
        let mut running = self.hangar(&["job", "run", "jobs.yaml", job, "--output-format", "json"]).start();
        let run = running.wait_for_event("runStarted")["run"].as_str().unwrap().to_owned();
        (running, run)
    }

    fn queue(&self) -> Value {
        let shown = self.hangar(&["queue", "--json"]).finish().expect_exit(0);
        serde_json::from_str(&shown.stdout).unwrap()
    }

    /// The queue, once it is as expected.
    fn queue_when(&self, expected: impl Fn(&Value) -> bool) -> Value {
        loop {
            let queue = self.queue();
            if expected(&queue) {
                return queue;
            }
        }
    }

    /// Checks at every record of the log that no more work ran than there are slots.
    fn check_log(&self, limit: u32) {
        let log = std::fs::read_to_string(self.scratch.state().join("queue/queue.jsonl")).unwrap();
        let mut queue = Queue::new(Limits::global(limit));
        for line in log.lines() {
            queue.apply(&serde_json::from_str::<QueueRecord>(line).unwrap());
            assert!(queue.running() <= limit, "{line}");
        }
        assert!(queue.state().items.is_empty(), "{:?}", queue.state().items);
    }

    /// How often each work of a run ended, and how.
    fn ends(&self, run: &str) -> BTreeMap<u64, Vec<bool>> {
        let shown = self.hangar(&["job", "show", run, "--json"]).finish().expect_exit(0);
        let records = shown.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut ends: BTreeMap<u64, Vec<bool>> = BTreeMap::new();
        for record in records.filter(|record| record["type"] == "workStopped") {
            let succeeded = record["succeeded"].as_bool().unwrap();
            ends.entry(record["workId"].as_u64().unwrap()).or_default().push(succeeded);
        }
        ends
    }
}

#[test]
fn many_tasks_of_many_processes_stay_within_the_limit_and_outlive_kills() {
    let tasks = number("HANGAR_QUEUE_TASKS", TASKS);
    let limit = u32::try_from(number("HANGAR_QUEUE_LIMIT", LIMIT)).unwrap();
    let machine = Machine::new(limit, tasks);
    let mut runs: Vec<(Running, String)> =
        (0..number("HANGAR_QUEUE_RUNS", RUNS)).map(|_| machine.start("many")).collect();
    for _ in 0..number("HANGAR_QUEUE_KILLS", KILLS) {
        let queue = machine.queue();
        for item in queue["waiting"].as_array().unwrap() {
            assert!(!item["reason"].as_str().unwrap().is_empty(), "{item}");
        }
        // The oldest one is killed wherever it is, and continued behind the others.
        let (running, run) = runs.remove(0);
        running.try_signal(Signal::KILL);
        running.finish();
        let mut resumed = machine.hangar(&["job", "resume", &run, "--output-format", "json"]).start();
        // One that had ended before says so.
        let _ = resumed.next_line();
        runs.push((resumed, run));
    }
    let names: Vec<String> = runs.iter().map(|(_, run)| run.clone()).collect();
    for (running, _) in runs {
        running.finish();
    }
    for run in &names {
        let ends = machine.ends(run);
        assert_eq!(ends.len(), tasks, "{run}: every task ended");
        assert!(ends.values().all(|ends| *ends == [true]), "{run}: {ends:?}");
    }
    machine.check_log(limit);
}

#[test]
fn all_runs_whose_process_ended_are_continued_by_one_command() {
    let machine = Machine::new(2, 1);
    let start = || {
        let (running, run) = machine.start("waits");
        machine.queue_when(|queue| queue["slots"]["used"].as_u64() > Some(0));
        (running, run)
    };
    let mut killed: Vec<String> = Vec::new();
    for _ in 0..3 {
        let (running, run) = start();
        running.try_signal(Signal::KILL);
        running.finish();
        killed.push(run);
    }
    let (alive, other) = start();
    machine.scratch.file("go", "");
    let resumed = machine.hangar(&["job", "resume", "--all", "--output-format", "json"]);
    let resumed = resumed.finish().expect_exit(0);
    let lines: Vec<Value> = resumed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for run in &killed {
        let ended = lines.iter().filter(|line| line["ofRun"] == run.as_str() && line["type"] == "runEnded");
        assert_eq!(ended.count(), 1, "{run}: {}", resumed.stdout);
        assert_eq!(machine.ends(run).into_values().collect::<Vec<_>>(), [[true]], "{run}");
    }
    // One that another process carries out is left to it.
    assert!(lines.iter().all(|line| line["ofRun"] != other.as_str()), "{}", resumed.stdout);
    alive.finish().expect_exit(0);
    let again = machine.hangar(&["job", "resume", "--all"]).finish().expect_exit(0);
    assert!(again.stderr.contains("no run is interrupted"), "{}", again.stderr);
    let neither = machine.hangar(&["job", "resume"]).finish();
    assert!(neither.stderr.contains("<RUN>"), "{}", neither.stderr);
    machine.check_log(2);
}

#[test]
fn waiting_work_says_why_and_the_queue_is_paused_drained_and_resumed() {
    let machine = Machine::new(1, 1);
    let (first, run) = machine.start("waits");
    machine.queue_when(|queue| queue["running"][0]["run"] == run.as_str());
    let (second, waiting) = machine.start("say");
    let queue = machine.queue_when(|queue| queue["waiting"][0]["run"] == waiting.as_str());
    assert_eq!(queue["waiting"][0]["reason"], "1 of 1 slots are taken; first in line");
    let shown = machine.hangar(&["queue"]).finish().expect_exit(0);
    assert!(shown.stdout.starts_with("1 of 1 slots are taken, 1 waiting\n"), "{}", shown.stdout);
    machine.hangar(&["pause"]).finish().expect_exit(0);
    let queue = machine.queue();
    assert_eq!(queue["mode"], "paused");
    assert_eq!(queue["waiting"][0]["reason"], "the queue is paused; `hangar resume` continues it");
    let drain = machine.hangar(&["drain"]).start();
    machine.queue_when(|queue| queue["mode"] == "draining");
    machine.scratch.file("go", "");
    first.finish().expect_exit(0);
    drain.finish().expect_exit(0);
    // The one that waited is left to be resumed.
    let second = second.finish().expect_exit(0);
    assert!(second.stderr.contains(&format!("job resume {waiting}")), "{}", second.stderr);
    let queue = machine.queue();
    assert_eq!(queue["waiting"][0]["reason"], format!("waits for run {waiting} to be resumed"));
    machine.hangar(&["resume"]).finish().expect_exit(0);
    machine.hangar(&["job", "resume", &waiting]).finish().expect_exit(0);
    machine.check_log(1);
}

#[test]
fn a_prompt_in_the_background_passes_the_queue() {
    let machine = Machine::new(1, 1);
    machine.hangar(&["pause"]).finish().expect_exit(0);
    let args = ["run", "--background", "-p", "SAY:hello", "--output-format", "json"];
    let started = machine.hangar(&args).finish().expect_exit(0);
    let run = serde_json::from_str::<Value>(&started.stdout).unwrap()["run"].as_str().unwrap().to_owned();
    let queue = machine.queue_when(|queue| queue["waiting"][0]["run"] == run.as_str());
    // It is parked until its process has taken it up.
    let reason = "the queue is paused; `hangar resume` continues it";
    assert!(queue["waiting"][0]["reason"].as_str().is_some_and(|told| !told.is_empty()), "{queue}");
    machine.queue_when(|queue| queue["waiting"][0]["reason"] == reason);
    machine.hangar(&["resume"]).finish().expect_exit(0);
    machine.queue_when(|queue| {
        queue["waiting"] == Value::Array(vec![]) && queue["running"] == Value::Array(vec![])
    });
    loop {
        let ends = machine.ends(&run);
        if !ends.is_empty() {
            assert_eq!(ends.values().next().unwrap(), &[true]);
            break;
        }
    }
    let refused = machine.hangar(&["run", "--background", "--system", "x", "-p", "SAY:x"]).finish();
    assert!(refused.expect_exit(1).stderr.contains("--background"));
}

#[test]
fn work_that_makes_no_progress_says_so_in_the_queue_of_every_process() {
    let machine = Machine::new(1, 1);
    let config = "[limits]\nglobal = 1\n[runtimes]\ndefault = \"native\"\nprogress_timeout = 1\n";
    std::fs::write(machine.scratch.state().join("config.toml"), config).unwrap();
    let (running, run) = machine.start("waits");
    let queue = machine.queue_when(|queue| !queue["running"][0]["note"].is_null());
    let sentence = "no new commit, change or call for 1 s";
    assert_eq!(queue["running"][0]["note"], sentence);
    assert_eq!(queue["running"][0]["run"], run.as_str());
    let shown = machine.hangar(&["queue"]).finish().expect_exit(0).stdout;
    assert!(shown.trim_end().ends_with(&format!("running: {sentence}")), "{shown}");
    machine.scratch.file("go", "");
    running.finish().expect_exit(0);
    machine.check_log(1);
}

#[test]
fn work_that_makes_no_progress_is_stopped_where_that_is_configured() {
    let machine = Machine::new(1, 1);
    let config = "[runtimes]\ndefault = \"native\"\nprogress_timeout = 1\nstop_without_progress = true\n[retry]\nfirst = 0\n";
    std::fs::write(machine.scratch.state().join("config.toml"), config).unwrap();
    let (running, run) = machine.start("waits");
    running.finish().expect_exit(1);
    let shown = machine.hangar(&["job", "show", &run, "--json"]).finish().expect_exit(0).stdout;
    assert!(shown.contains("the agent made no new commit, change or call for 1 s"), "{shown}");
}

#[test]
fn everything_is_stopped_at_once() {
    let machine = Machine::new(1, 1);
    let (first, run) = machine.start("waits");
    machine.queue_when(|queue| queue["running"][0]["run"] == run.as_str());
    let (second, waiting) = machine.start("say");
    machine.queue_when(|queue| queue["waiting"][0]["run"] == waiting.as_str());
    machine.hangar(&["stop-all"]).finish().expect_exit(0);
    for running in [first, second] {
        let finished = running.finish().expect_exit(1);
        assert!(finished.stderr.contains("the run was stopped"), "{}", finished.stderr);
    }
    machine.check_log(1);
}

#[test]
fn a_login_that_fails_is_tried_once_and_held_until_somebody_resumes() {
    let machine = Machine::new(1, 1);
    let usual = |args: &[&str]| machine.hangar(args).env("HANGAR_RETRY_SCALE", "1");
    usual(&["job", "run", "jobs.yaml", "logins"]).finish().expect_exit(1);
    assert_eq!(machine.scratch.sessions().len(), 1, "five tasks need the same login");
    assert_eq!(machine.model.requests().len(), 1, "the provider is asked once");
    let held = machine.queue();
    assert_eq!(held["held"][0]["reason"], "its login failed; log in, then `hangar resume`");
    let say = usual(&["job", "run", "jobs.yaml", "say"]).start();
    let queue = machine.queue_when(|queue| !queue["waiting"].as_array().unwrap().is_empty());
    let reason = queue["waiting"][0]["reason"].as_str().unwrap();
    assert!(reason.contains("its login failed; log in, then `hangar resume`"), "{reason}");
    machine.hangar(&["resume"]).finish().expect_exit(0);
    say.finish().expect_exit(0);
    assert!(machine.queue()["held"].as_array().unwrap().is_empty());
}

#[test]
fn a_provider_that_asks_for_a_long_wait_is_not_asked_before() {
    let machine = Machine::new(1, 1);
    let busy = machine.hangar(&["job", "run", "jobs.yaml", "busy"]).env("HANGAR_RETRY_SCALE", "1").start();
    let queue = machine.queue_when(|queue| !queue["held"].as_array().unwrap().is_empty());
    let time = |value: &Value| value.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    let log = std::fs::read_to_string(machine.scratch.state().join("queue/queue.jsonl")).unwrap();
    let records: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (kind, due) in [("retryAt", "due"), ("breakerOpened", "until")] {
        let record = records.iter().find(|record| record["type"] == kind).unwrap();
        let wait = time(&record[due]).duration_since(time(&record["at"]));
        assert!(wait.as_secs() >= 200, "{record}");
    }
    assert_eq!(queue["held"][0]["reason"], "rate limited");
    assert_eq!(machine.model.requests().len(), 1);
    machine.hangar(&["stop-all"]).finish().expect_exit(0);
    busy.finish().expect_exit(1);
}

#[test]
fn a_session_that_has_used_its_own_cap_up_holds_nobody_else() {
    let machine = Machine::new(1, 1);
    let config = "[runtimes]\ndefault = \"native\"\n[budget]\nmax_turns = 1\n";
    std::fs::write(machine.scratch.state().join("config.toml"), config).unwrap();
    machine.scratch.file("go", "");
    let (ended, run) = machine.start("waits");
    ended.finish().expect_exit(1);
    let shown = machine.hangar(&["job", "show", &run]).finish().expect_exit(0).stdout;
    assert!(shown.contains("1 of 1 turns are spent"), "{shown}");
    assert_eq!(machine.queue()["held"], Value::Array(vec![]));
    machine.hangar(&["job", "run", "jobs.yaml", "say"]).finish().expect_exit(0);
}

#[test]
fn limits_that_cannot_be_are_sentences() {
    let machine = Machine::new(1, 1);
    let path = machine.scratch.state().join("config.toml");
    std::fs::write(&path, "[limits]\nglobal = 0\n").unwrap();
    let refused = machine.hangar(&["queue"]).finish().expect_exit(1);
    let expected = "config.toml:2: `global` in [limits] is 0; it must be from 1 to 100000";
    assert!(refused.stderr.contains(expected), "{}", refused.stderr);
}
