use expect_test::{Expect, expect};
use hangar_protocol::Event;
use serde_json::{Value, json};

use super::*;
use crate::polling::item::PollItem;
use crate::polling::live::{PollAnswer, PollLog, Reader};
use crate::polling::table::Entity;

const HEAD: (&str, u64) = ("2026-01-01T00:00:00.000Z", 0);

struct Stage {
    tables: Arc<PolledTables>,
    job: Arc<PolledJob>,
    run_callbacks: RunCallbacks,
}

impl Stage {
    fn of_job() -> Self {
        let tables = Arc::new(PolledTables::new(true));
        let job = tables.jobs.put(PolledJob::new("demo".to_owned(), HEAD.0.parse().unwrap(), &tables)).entity;
        let run_callbacks = RunCallbacks::of_job(Arc::clone(&tables), Arc::clone(&job));
        Self { tables, job, run_callbacks }
    }

    /// Facts as the log has them, and events of sessions by the session's name.
    fn hear(&mut self, facts: &[Value]) {
        for fact in facts {
            if let Some(event) = fact.get("event") {
                let session = TaskSessionId(fact["of"].as_str().unwrap().to_owned());
                let event = Event::parse(&event.to_string()).unwrap();
                self.run_callbacks.hear(RunNotice::Event {
                    task: TaskId(0),
                    session: &session,
                    event: &event,
                });
                continue;
            }
            let mut line = fact.clone();
            (line["at"], line["seq"]) = (HEAD.0.into(), HEAD.1.into());
            self.run_callbacks.hear(RunNotice::Record(&serde_json::from_value(line).unwrap()));
        }
    }

    /// Everything that can be read, to the end.
    fn told(&self) -> String {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let mut out = String::new();
            for named in self.tables.jobs.all() {
                tell(&mut out, &named, &named.entity.log).await;
            }
            for named in self.tables.tasks.all() {
                tell(&mut out, &named, &named.entity.log).await;
            }
            for named in self.tables.sessions.all() {
                tell(&mut out, &named, &named.entity.log).await;
            }
            out
        })
    }
}

async fn tell<E: Entity, T: PollItem + serde::Serialize>(
    out: &mut String,
    named: &Named<E>,
    log: &PollLog<T>,
) {
    loop {
        let line = match log.read(Reader::Plain).await {
            PollAnswer::One(item) => serde_json::to_string(&item).unwrap(),
            PollAnswer::Closed => "closed".to_owned(),
            PollAnswer::TimedOut => "open".to_owned(),
            PollAnswer::Many(_) | PollAnswer::Parallel | PollAnswer::NotFound => {
                panic!("there is one plain reader")
            }
        };
        out.push_str(&format!("{}: {line}\n", named.id));
        if line == "closed" || line == "open" {
            break;
        }
    }
}

#[track_caller]
fn check(facts: &[Value], expected: Expect) {
    let mut stage = Stage::of_job();
    stage.hear(facts);
    expected.assert_eq(&stage.told());
}

fn work_started(task: u64) -> Value {
    json!({ "type": "workStarted", "workId": task, "task": task, "name": "t", "directory": "/" })
}

fn work_stopped(task: u64, succeeded: bool) -> Value {
    json!({ "type": "workStopped", "workId": task, "task": task, "succeeded": succeeded })
}

fn session_started(task: u64, session: &str, driving: bool) -> Value {
    json!({ "type": "sessionStarted", "task": task, "session": session, "driving": driving, "model": "m" })
}

fn session_stopped(task: u64, session: &str, succeeded: bool) -> Value {
    json!({ "type": "sessionStopped", "task": task, "session": session, "succeeded": succeeded })
}

fn prompted(task: u64, session: &str, prompt: &str) -> Value {
    json!({ "type": "prompted", "task": task, "session": session, "prompt": prompt })
}

fn decided(task: u64, reason: &str) -> Value {
    json!({ "type": "decided", "task": task, "decision": { "is": "succeeded" }, "reason": reason })
}

fn crash() -> Value {
    json!({ "name": "crashed", "message": "it broke" })
}

fn task_ended(task: u64, end: &str) -> Value {
    let mut end = json!({ "end": end });
    if end["end"] == "crashed" {
        end["error"] = crash();
    }
    json!({ "type": "taskEnded", "task": task, "end": end })
}

fn run_ended(end: Value) -> Value {
    json!({ "type": "runEnded", "end": end })
}

fn turn_completed(task: u64, session: &str) -> Value {
    json!({ "type": "turnEnded", "task": task, "session": session, "end": { "end": "completed", "round": {} } })
}

#[test]
fn a_job_that_succeeds_is_told_by_itself_its_task_and_its_session() {
    let message = json!({
        "type": "assistant.message", "id": "e", "timestamp": "t", "parentId": null,
        "data": { "messageId": "m", "content": "done" },
    });
    check(
        &[
            work_started(0),
            session_started(0, "uuid", true),
            prompted(0, "uuid", "do it"),
            json!({ "of": "uuid", "event": message }),
            turn_completed(0, "uuid"),
            decided(0, "[TASK SUCCEEDED] Decision: task succeeded"),
            session_stopped(0, "uuid", true),
            task_ended(0, "succeeded"),
            work_stopped(0, true),
            run_ended(json!({ "outcome": "succeeded" })),
        ],
        expect![[r#"
            job-1: {"callback":"workStarted","workId":0,"taskId":"task-1"}
            job-1: {"callback":"workStopped","workId":0,"succeeded":true}
            job-1: {"callback":"jobSucceeded"}
            job-1: closed
            task-1: {"callback":"taskSessionStarted","sessionId":"session-1","isDriving":true}
            task-1: {"callback":"taskDecision","reason":"[TASK SUCCEEDED] Decision: task succeeded"}
            task-1: {"callback":"taskSessionStopped","sessionId":"session-1","succeeded":true}
            task-1: {"callback":"taskSucceeded"}
            task-1: closed
            session-1: {"callback":"onGeneratedUserPrompt","prompt":"do it"}
            session-1: {"callback":"onEndMessage","messageId":"m","completeContent":"done"}
            session-1: {"callback":"onIdle"}
            session-1: closed
        "#]],
    );
}

#[test]
fn a_crash_has_failed_first_and_says_why_then() {
    check(
        &[
            work_started(0),
            work_started(1),
            task_ended(0, "crashed"),
            work_stopped(0, false),
            run_ended(json!({ "outcome": "failed", "error": crash() })),
        ],
        expect![[r#"
            job-1: {"callback":"workStarted","workId":0,"taskId":"task-1"}
            job-1: {"callback":"workStarted","workId":1,"taskId":"task-2"}
            job-1: {"callback":"workStopped","workId":0,"succeeded":false}
            job-1: {"callback":"jobFailed"}
            job-1: {"jobError":"{\"name\":\"crashed\",\"message\":\"it broke\"}"}
            job-1: closed
            task-1: {"callback":"taskFailed"}
            task-1: {"taskError":"{\"name\":\"crashed\",\"message\":\"it broke\"}"}
            task-1: closed
            task-2: closed
        "#]],
    );
}

#[test]
fn a_job_that_was_stopped_says_so_once_and_ends_what_it_had_open() {
    check(
        &[
            work_started(0),
            session_started(0, "uuid", true),
            run_ended(json!({ "outcome": "canceled" })),
            run_ended(json!({ "outcome": "canceled" })),
            work_stopped(0, false),
        ],
        expect![[r#"
            job-1: {"callback":"workStarted","workId":0,"taskId":"task-1"}
            job-1: {"callback":"jobCanceled"}
            job-1: closed
            task-1: {"callback":"taskSessionStarted","sessionId":"session-1","isDriving":true}
            task-1: closed
            session-1: closed
        "#]],
    );
}

#[test]
fn a_task_that_was_stopped_says_no_more_and_its_job_fails() {
    check(
        &[
            work_started(0),
            session_started(0, "uuid", true),
            json!({ "type": "taskStopped", "task": 0 }),
            decided(0, "[TASK FAILED] Task error"),
            session_stopped(0, "uuid", false),
            task_ended(0, "crashed"),
            work_stopped(0, false),
            run_ended(json!({ "outcome": "failed", "error": crash() })),
        ],
        expect![[r#"
            job-1: {"callback":"workStarted","workId":0,"taskId":"task-1"}
            job-1: {"callback":"workStopped","workId":0,"succeeded":false}
            job-1: {"callback":"jobFailed"}
            job-1: {"jobError":"{\"name\":\"crashed\",\"message\":\"it broke\"}"}
            job-1: closed
            task-1: {"callback":"taskSessionStarted","sessionId":"session-1","isDriving":true}
            task-1: closed
            session-1: closed
        "#]],
    );
}

#[test]
fn a_limit_is_a_failure_with_a_reason() {
    check(
        &[run_ended(json!({ "outcome": "limitReached", "limit": "turns" }))],
        expect![[r#"
            job-1: {"callback":"jobFailed"}
            job-1: {"jobError":"{\"name\":\"stopped\",\"message\":\"the job reached its limit of turns\"}"}
            job-1: closed
        "#]],
    );
}

#[test]
fn a_borrower_tells_its_prompts_in_the_session_that_stays_open() {
    let mut stage = Stage::of_job();
    let tables = Arc::clone(&stage.tables);
    let lent = tables.sessions.put(PolledSession::of_client("hub".parse().unwrap(), "/".into(), &tables));
    let task = tables.tasks.put(PolledTask { log: tables.log(), owner: TaskOwner::Borrower });
    stage.run_callbacks =
        RunCallbacks::of_borrower(Arc::clone(&tables), task, (TaskSessionId("hub".to_owned()), lent));
    stage.hear(&[
        work_started(0),
        prompted(0, "hub", "do it"),
        turn_completed(0, "hub"),
        decided(0, "[TASK FAILED] ..."),
        task_ended(0, "failed"),
        work_stopped(0, false),
        run_ended(json!({ "outcome": "failed" })),
    ]);
    expect![[r#"
        job-1: open
        task-1: {"callback":"taskDecision","reason":"[TASK FAILED] ..."}
        task-1: {"callback":"taskFailed"}
        task-1: closed
        session-1: {"callback":"onGeneratedUserPrompt","prompt":"do it"}
        session-1: open
    "#]]
    .assert_eq(&stage.told());
}

#[test]
fn the_state_of_works_follows_and_an_end_is_final() {
    let mut stage = Stage::of_job();
    stage.hear(&[work_started(0), work_started(1), work_stopped(0, true)]);
    let works = |stage: &Stage| {
        let progress = stage.job.progress();
        format!("{:?} {:?}", progress.status, progress.works)
    };
    expect![[r#"Running {WorkId(0): Succeeded, WorkId(1): Running { task: "task-2" }}"#]]
        .assert_eq(&works(&stage));
    stage.hear(&[run_ended(json!({ "outcome": "failed" })), run_ended(json!({ "outcome": "canceled" }))]);
    expect!["Failed {WorkId(0): Succeeded, WorkId(1): Failed}"].assert_eq(&works(&stage));
}
