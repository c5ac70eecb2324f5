//! Costs of all agents, and budgets that hold work: the ledger from outside.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::{Invocation, ModelServer, Running, Scratch, Signal};
use serde_json::Value;

use crate::hangar;

struct Machine {
    scratch: Scratch,
    model: ModelServer,
}

const ENTRY: &str = "
models: { driving: gpt-4.1 }
tasks:
  say: { model: { category: driving }, prompt: 'SAY:hello', requireUserInput: false }
jobs:
  say: { work: { kind: Ref, taskId: say } }
  twice: { work: { kind: Seq, works: [{ kind: Ref, taskId: say }, { kind: Ref, taskId: say }] } }
";

impl Machine {
    fn new(config: &str) -> Self {
        let machine = Self { scratch: Scratch::new(), model: ModelServer::start() };
        std::fs::create_dir_all(machine.scratch.state()).unwrap();
        std::fs::write(machine.scratch.state().join("config.toml"), config).unwrap();
        machine.scratch.file("jobs.yaml", ENTRY);
        machine
    }

    /// A model with a price: two dollars for a million tokens in, eight for a million out.
    fn hangar(&self, args: &[&str]) -> Invocation {
        hangar(&self.scratch, &self.model).env("COPILOT_MODEL", "gpt-4.1").args(args)
    }

    fn json(&self, args: &[&str]) -> Value {
        let shown = self.hangar(args).arg("--json").finish().expect_exit(0);
        serde_json::from_str(&shown.stdout).unwrap()
    }

    fn costs(&self, by: &str) -> Value {
        self.json(&["costs", "--by", by])
    }

    /// Starts a job and waits until the budget that holds it is shown.
    fn held(&self, job: &str) -> (Running, String) {
        let running = self.hangar(&["job", "run", "jobs.yaml", job]).start();
        loop {
            let queue = self.json(&["queue"]);
            let reason = queue["waiting"][0]["reason"].as_str().unwrap_or_default().to_owned();
            if reason.contains("budget") {
                return (running, reason);
            }
        }
    }
}

#[test]
fn calls_of_sessions_and_jobs_are_summed_and_survive_the_session() {
    let machine = Machine::new("");
    machine.hangar(&["-p", "SAY:hello"]).finish().expect_exit(0);
    machine.hangar(&["job", "run", "jobs.yaml", "say"]).finish().expect_exit(0);
    let costs = machine.costs("model");
    assert_eq!(costs["rows"][0]["key"], "gpt-4.1");
    assert_eq!(costs["rows"][0]["calls"], 2, "{costs}");
    let cost = costs["total"]["costUsd"].as_f64().unwrap();
    assert!(cost > 0.0, "{costs}");
    assert_eq!(costs["total"]["computedUsd"].as_f64().unwrap(), cost, "prices are ours");
    for (by, rows) in [("agent", 1), ("project", 1), ("day", 1), ("run", 1), ("session", 2)] {
        assert_eq!(machine.costs(by)["rows"].as_array().unwrap().len(), rows, "{by}");
    }
    let csv = machine.hangar(&["costs", "--by", "agent", "--csv"]).finish().expect_exit(0).stdout;
    assert!(csv.starts_with("key,calls,inputTokens,") && csv.contains("\nnative,2,"), "{csv}");
    let text = machine.hangar(&["costs"]).finish().expect_exit(0).stdout;
    assert!(text.lines().last().unwrap().starts_with("total"), "{text}");
    for id in machine.scratch.sessions() {
        machine.hangar(&["sessions", "delete", &id]).finish().expect_exit(0);
    }
    assert_eq!(machine.costs("model"), costs);
}

#[test]
fn a_model_without_a_price_has_an_unknown_cost() {
    let machine = Machine::new("");
    machine.hangar(&["-p", "SAY:hello"]).env("COPILOT_MODEL", "mock-model").finish().expect_exit(0);
    let text = machine.hangar(&["costs", "--by", "model"]).finish().expect_exit(0).stdout;
    let line = text.lines().find(|line| line.starts_with("mock-model")).unwrap();
    assert!(line.contains("unknown") && line.ends_with('1'), "{text}");
}

#[test]
fn a_session_that_is_killed_and_resumed_counts_every_call_once() {
    let machine = Machine::new("");
    let id = "11111111-2222-4333-8444-555555555555";
    let wait =
        r#"TOOL:bash:{"command":"touch begun; until [ -e go ]; do sleep 0.02; done","description":"d"}"#;
    let flags = ["--allow-all-tools", "--session-id", id, "--output-format", "json"];
    let mut running = machine.hangar(&["-p", wait]).args(flags).start();
    running.wait_for_event("tool.execution_start");
    let before = machine.costs("session");
    assert_eq!(before["total"]["calls"], 1, "{before}");
    running.try_signal(Signal::KILL);
    running.finish();
    assert_eq!(machine.costs("session"), before);
    machine.hangar(&["--resume", id, "-p", "SAY:again"]).finish().expect_exit(0);
    let calls = machine.model.requests().len();
    assert_eq!(machine.costs("session")["total"]["calls"], calls);
    std::fs::remove_file(machine.scratch.state().join("ledger/sums.json")).ok();
    assert_eq!(machine.costs("session")["total"]["calls"], calls);
}

#[test]
fn work_is_held_at_the_budget_of_the_day_until_a_person_raises_it() {
    let machine = Machine::new("[budgets]\nper_day = 0.001\n");
    machine.hangar(&["-p", "SAY:hello"]).finish().expect_exit(0);
    let (running, reason) = machine.held("say");
    assert!(reason.starts_with("today's budget has no room for $0.00: $0.0"), "{reason}");
    assert!(reason.ends_with("`hangar budget raise day USD` raises it"), "{reason}");
    let shown = machine.hangar(&["budget"]).finish().expect_exit(0).stdout;
    assert!(shown.starts_with("day: $0.0") && shown.contains("; work is held"), "{shown}");
    machine.hangar(&["budget", "raise", "day", "10"]).finish().expect_exit(0);
    running.finish().expect_exit(0);
}

#[test]
fn a_run_at_its_budget_waits_between_its_tasks() {
    let machine = Machine::new("[budgets]\nper_run = 0.0001\nreserve = 0.0001\n");
    let (running, reason) = machine.held("twice");
    let run = reason.split(' ').skip_while(|word| *word != "run").nth(1).unwrap().to_owned();
    assert!(reason.starts_with(&format!("the budget of run {run} has no room")), "{reason}");
    assert_eq!(machine.scratch.sessions().len(), 1, "the first task had room");
    machine.hangar(&["budget", "raise", "run", &run, "5"]).finish().expect_exit(0);
    running.finish().expect_exit(0);
    assert_eq!(machine.scratch.sessions().len(), 2);
}

#[test]
fn the_cost_of_a_task_counts_before_the_next_one_begins() {
    // The first task costs more than the whole budget, which has room for the reservations of both.
    let machine = Machine::new("[budgets]\nper_run = 0.005\nreserve = 0.001\n");
    let (running, _) = machine.held("twice");
    assert_eq!(machine.scratch.sessions().len(), 1);
    running.try_signal(Signal::KILL);
    running.finish();
}

#[test]
fn budgets_that_cannot_be_are_sentences() {
    let machine = Machine::new("[budgets]\nper_day = -1\n");
    let refused = machine.hangar(&["budget"]).finish().expect_exit(1);
    assert!(refused.stderr.contains("`per_day` in [budgets] is -1"), "{}", refused.stderr);
    let machine = Machine::new("");
    let refused = machine.hangar(&["budget", "raise", "agent", "codex", "5"]).finish().expect_exit(1);
    assert!(refused.stderr.contains("there is no budget for agent codex"), "{}", refused.stderr);
    let refused = machine.hangar(&["budget", "raise", "week", "5"]).finish().expect_exit(1);
    assert!(refused.stderr.contains("run, agent, project and day"), "{}", refused.stderr);
}
