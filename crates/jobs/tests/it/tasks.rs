//! Steps of one task: availability, prompt, criteria, retries, crashes, in each mode.

use std::sync::Arc;

use expect_test::expect;
use hangar_jobs::driver::{Controls, RunListener, RunNotice};
use hangar_jobs::record::{RunFact, RunId, RunRecord, Subject, TaskId, TaskSessionId};
use hangar_runtimes::runtime::SessionNews;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::fake::{Script, live, watched};
use crate::stage::{Stage, check, job, order};

/// An entry whose job `j` is the one task `t`.
fn one(task: &str) -> String {
    format!(
        "
models: {{ driving: drv, coding: cod }}
tasks:
  t: {{ model: {{ category: coding }}, prompt: 'do @work', requireUserInput: false, {task} }}
  before: {{ model: {{ category: coding }}, prompt: '@before', requireUserInput: false }}
jobs:
  j: {{ work: {{ kind: Ref, taskId: t }} }}
  after: {{ work: {{ kind: Seq, works: [{{ kind: Ref, taskId: before }}, {{ kind: Ref, taskId: t }}] }} }}
"
    )
}

#[tokio::test]
async fn a_task_without_criteria_succeeds_in_one_session() {
    check(
        &one(""),
        "",
        expect![[r#"
            work 0 started: t
            s1 started: driving on cod
            s1 <- "do @work"
            [TASK SUCCEEDED] Decision: task succeeded
            s1 stopped: true
            task-0 succeeded
            work 0 stopped: true
            run succeeded
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_condition_that_fails_is_tried_again_in_the_same_session() {
    check(
        &one("criteria: { condition: '@cond job_boolean_true', failureAction: { retryTimes: 1, \
             additionalPrompt: 'because $reported-false-reason' } }"),
        "cond: no(untidy)",
        expect![[r###"
            work 0 started: t
            s1 started: driving on cod
            s1 <- "do @work"
            s1 <- "@cond job_boolean_true"
            [CRITERIA] Criteria condition failed. Condition: ["@cond job_boolean_true"]
            [OPERATION] Starting retry #1
            s1 <- "do @work\n## You accidentally Stopped\nbecause untidy"
            s1 <- "@cond job_boolean_true"
            [CRITERIA] Criteria condition failed. Condition: ["@cond job_boolean_true"]
            [CRITERIA] Criteria failed on retry #1
            [DECISION] Retry budget drained after 1 retries
            [TASK FAILED] Decision: task failed (criteria not satisfied)
            s1 stopped: false
            task-0 failed
            work 0 stopped: false
            run failed
        "###]],
    )
    .await;
}

#[tokio::test]
async fn a_condition_may_pass_on_the_second_of_two_retries() {
    let task = "criteria: { condition: '@cond job_boolean_true', failureAction: { retryTimes: 2 } }";
    check(
        &one(task),
        "cond: no ok yes",
        expect![[r#"
            work 0 started: t
            s1 started: driving on cod
            s1 <- "do @work"
            s1 <- "@cond job_boolean_true"
            [CRITERIA] Criteria condition failed. Condition: ["@cond job_boolean_true"]
            [OPERATION] Starting retry #1
            s1 <- "do @work"
            s1 <- "@cond job_boolean_true"
            [CRITERIA] Criteria condition failed. Condition: ["@cond job_boolean_true"]
            [CRITERIA] Criteria failed on retry #1
            [OPERATION] Starting retry #2
            s1 <- "do @work"
            s1 <- "@cond job_boolean_true"
            [CRITERIA] Criteria condition passed
            [CRITERIA] Criteria passed on retry #2
            [TASK SUCCEEDED] Decision: task succeeded
            s1 stopped: true
            task-0 succeeded
            work 0 stopped: true
            run succeeded
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_tool_that_was_not_called_is_asked_for() {
    check(
        &one("criteria: { toolExecuted: [job_prepare_document, job_boolean_true], failureAction: { retryTimes: 1 } }"),
        "work: yes doc(a)+yes",
        expect![[r###"
            work 0 started: t
            s1 started: driving on cod
            s1 <- "do @work"
            [CRITERIA] toolExecuted check failed: missing tools: job_prepare_document
            [OPERATION] Starting retry #1
            s1 <- "do @work\n## Required Tool Not Called: job_prepare_document"
            [CRITERIA] Criteria passed on retry #1
            [TASK SUCCEEDED] Decision: task succeeded
            s1 stopped: true
            task-0 succeeded
            work 0 stopped: true
            run succeeded
        "###]],
    )
    .await;
}

#[tokio::test]
async fn a_condition_is_asked_although_a_tool_is_missing_and_does_not_make_up_for_it() {
    check(
        &one("criteria: { toolExecuted: [job_prepare_document], condition: '@cond job_boolean_true', \
             failureAction: { retryTimes: 0 } }"),
        "cond: yes",
        expect![[r#"
            work 0 started: t
            s1 started: driving on cod
            s1 <- "do @work"
            [CRITERIA] toolExecuted check failed: missing tools: job_prepare_document
            s1 <- "@cond job_boolean_true"
            [CRITERIA] Criteria condition passed
            [DECISION] Retry budget drained after 0 retries
            [TASK FAILED] Decision: task failed (criteria not satisfied)
            s1 stopped: false
            task-0 failed
            work 0 stopped: false
            run failed
        "#]],
    )
    .await;
}

#[tokio::test]
async fn with_several_models_each_mission_has_a_session_of_its_own() {
    check(
        &one(
            "availability: { condition: '@may job_boolean_true' }, criteria: { toolExecuted: [job_prepare_document], \
             condition: '@cond $reported-document by $task-model job_boolean_true', runConditionInSameSession: false, \
             failureAction: { retryTimes: 1 } }",
        ),
        "may: yes\nwork: doc(plan.md)\ncond: no yes",
        expect![[r#"
            work 0 started: t
            s1 started: driving on drv
            s1 <- "@may job_boolean_true"
            s1 stopped: true
            [AVAILABILITY] Availability check passed
            s2 started: task on cod
            s2 <- "do @work"
            s2 stopped: true
            s3 started: driving on drv
            s3 <- "@cond plan.md by cod job_boolean_true"
            s3 stopped: false
            [CRITERIA] Criteria condition failed. Condition: ["@cond $reported-document by $task-model job_boolean_true"]
            [OPERATION] Starting retry #1
            s4 started: task on cod
            s4 <- "do @work"
            s4 stopped: true
            s5 started: driving on drv
            s5 <- "@cond plan.md by cod job_boolean_true"
            s5 stopped: true
            [CRITERIA] Criteria condition passed
            [CRITERIA] Criteria passed on retry #1
            [TASK SUCCEEDED] Decision: task succeeded
            task-0 succeeded
            work 0 stopped: true
            run succeeded
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_task_that_is_not_available_fails_without_its_prompt() {
    let task = one("availability: { condition: '@may job_boolean_true' }");
    check(
        &task,
        "may: no",
        expect![[r#"
            work 0 started: t
            s1 started: driving on cod
            s1 <- "@may job_boolean_true"
            [AVAILABILITY] Availability check failed: condition not satisfied. Condition: ["@may job_boolean_true"]
            s1 stopped: false
            task-0 failed
            work 0 stopped: false
            run failed
        "#]],
    )
    .await;
    // No answer is no, and so is a yes after which the agent says that it cannot begin.
    for answer in ["ok", "yes+unable"] {
        let stage = Stage::new(&format!("may: {answer}"));
        stage.start(&task, "j").to_end().await.unwrap();
        assert!(stage.trace().contains("Availability check failed"), "{answer}");
    }
}

#[tokio::test]
async fn a_task_that_is_not_available_in_a_session_of_its_own() {
    check(
        &one(
            "availability: { condition: '@may job_boolean_true' }, \
             criteria: { runConditionInSameSession: false, failureAction: { retryTimes: 0 } }",
        ),
        "may: no",
        expect![[r#"
            work 0 started: t
            s1 started: driving on drv
            s1 <- "@may job_boolean_true"
            s1 stopped: false
            [AVAILABILITY] Availability check failed: condition not satisfied. Condition: ["@may job_boolean_true"]
            task-0 failed
            work 0 stopped: false
            run failed
        "#]],
    )
    .await;
}

#[tokio::test]
async fn the_task_before_must_be_one_that_may_come_before() {
    let task = one("availability: { previousTasks: [before] }");
    check(
        &task,
        "",
        expect![[r#"
            work 0 started: t
            [AVAILABILITY] Availability check failed: the previous task should be one of before but is none
            task-0 failed
            work 0 stopped: false
            run failed
        "#]],
    )
    .await;
    let stage = Stage::new("");
    stage.start(&task, "after").to_end().await.unwrap();
    assert!(stage.trace().contains("[AVAILABILITY] Availability check passed"));
    assert!(stage.trace().ends_with("run succeeded\n"));
}

#[tokio::test]
async fn a_session_that_crashes_is_replaced_and_told_so() {
    check(
        &one(""),
        "work: crash crash ok",
        expect![[r#"
            work 0 started: t
            s1 started: driving on cod
            s1 <- "do @work"
            s1 crashed: it broke
            [SESSION CRASHED] {"name":"turn_failed","message":"it broke"}
            s1 stopped: false
            s2 started: driving on cod
            s2 <- "The session crashed, please redo and here is the last request:\ndo @work"
            s2 crashed: it broke
            [SESSION CRASHED] {"name":"turn_failed","message":"it broke"}
            s2 stopped: false
            s3 started: driving on cod
            s3 <- "The session crashed, please redo and here is the last request:\ndo @work"
            [TASK SUCCEEDED] Decision: task succeeded
            s3 stopped: true
            task-0 succeeded
            work 0 stopped: true
            run succeeded
        "#]],
    )
    .await;
}

/// How often the prompt was sent, and how the run ended.
async fn crashes(task: &str, script: &str) -> (usize, String) {
    let stage = Stage::new(script);
    stage.start(&one(task), "j").to_end().await.unwrap();
    let lines = stage.heard.lines();
    let open =
        lines.iter().filter(|line| line.contains(" started: driving") || line.contains(" started: task"));
    let closed = lines.iter().filter(|line| line.starts_with('s') && line.contains(" stopped: "));
    assert_eq!(open.count(), closed.count(), "every session is closed: {lines:#?}");
    let sent = lines.iter().filter(|line| line.contains("do @work")).count();
    (sent, lines.last().unwrap().clone())
}

#[tokio::test]
async fn five_crashes_over_the_first_prompt_crash_the_task() {
    let separate = "criteria: { runConditionInSameSession: false, failureAction: { retryTimes: 3 } }";
    for task in ["", separate] {
        assert_eq!(crashes(task, "work: crash").await, (5, "run failed: it broke".to_owned()));
    }
}

#[tokio::test]
async fn crashes_over_a_retry_are_a_failed_retry_in_both_modes() {
    for separate in ["", "runConditionInSameSession: false, "] {
        let task = format!(
            "criteria: {{ {separate}condition: '@cond job_boolean_true', failureAction: {{ retryTimes: 2 }} }}"
        );
        // The first try, five times the first retry, and the second retry.
        let script = "work: ok crash crash crash crash crash ok\ncond: no yes";
        assert_eq!(crashes(&task, script).await, (7, "run succeeded".to_owned()));
    }
}

#[tokio::test]
async fn crashes_over_a_condition_crash_the_task() {
    for separate in ["", "runConditionInSameSession: false, "] {
        let task = format!(
            "criteria: {{ {separate}condition: '@cond job_boolean_true', failureAction: {{ retryTimes: 2 }} }}"
        );
        assert_eq!(crashes(&task, "cond: crash").await, (1, "run failed: it broke".to_owned()));
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_replaced_is_given_up() {
    check(
        &one(""),
        "work: crash\nopen: ok refused",
        expect![[r#"
            work 0 started: t
            s1 started: driving on cod
            s1 <- "do @work"
            s1 crashed: it broke
            [SESSION CRASHED] {"name":"turn_failed","message":"it broke"}
            s1 stopped: false
            no session: no login
            [SESSION CRASHED] Failed to create replacement session: {"name":"auth_failed","message":"no login"}
            [TASK FAILED] Task error: {"name":"auth_failed","message":"no login"}
            task-0 failed, with an error
            work 0 stopped: false
            run failed: no login
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_task_whose_first_session_does_not_open_crashes() {
    check(
        &one(""),
        "open: refused",
        expect![[r#"
            work 0 started: t
            no session: no login
            [TASK FAILED] Task error: {"name":"auth_failed","message":"no login"}
            task-0 failed, with an error
            work 0 stopped: false
            run failed: no login
        "#]],
    )
    .await;
}

#[tokio::test]
async fn driving_sessions_are_tried_on_the_models_that_the_entry_lists() {
    let yaml = one("criteria: { condition: '@cond job_boolean_true', runConditionInSameSession: false, \
         failureAction: { retryTimes: 0 } }")
        + "drivingSessionRetries: [{ modelId: drv, retries: 2 }, { modelId: spare, retries: 1 }]\n";
    let stage = Stage::new("cond: crash crash crash yes");
    stage.start(&yaml, "j").to_end().await.unwrap();
    let opened: Vec<String> =
        stage.heard.lines().into_iter().filter(|line| line.contains(" started: driving")).collect();
    let models = ["drv", "drv", "spare", "drv"];
    assert_eq!(opened.len(), models.len());
    assert!(
        opened.iter().zip(models).all(|(line, model)| line.ends_with(&format!("on {model}"))),
        "{opened:?}"
    );
    assert!(stage.trace().ends_with("run succeeded\n"));
}

#[tokio::test]
async fn commands_and_files_are_criteria_and_their_failure_is_shown_to_the_agent() {
    let yaml = one(
        "criteria: { commands: [{ run: 'echo why; exit 3' }], files: [gone.txt], failureAction: { retryTimes: 1 } }",
    );
    check(
        &yaml,
        "",
        expect![[r###"
            work 0 started: t
            s1 started: driving on cod
            s1 <- "do @work"
            [CRITERIA] Check failed: gone.txt does not exist; `echo why; exit 3` exited with 3
            [OPERATION] Starting retry #1
            s1 <- "do @work\n## Check Failed: gone.txt does not exist\n## Check Failed: `echo why; exit 3` exited with 3\nwhy"
            [CRITERIA] Check failed: gone.txt does not exist; `echo why; exit 3` exited with 3
            [CRITERIA] Criteria failed on retry #1
            [DECISION] Retry budget drained after 1 retries
            [TASK FAILED] Decision: task failed (criteria not satisfied)
            s1 stopped: false
            task-0 failed
            work 0 stopped: false
            run failed
        "###]],
    )
    .await;
}

#[tokio::test]
async fn commands_that_come_to_succeed_let_the_task_succeed() {
    // The second time the file is there.
    let yaml = one(
        "criteria: { commands: [{ run: 'test -e made || { touch made; false; }' }], failureAction: { retryTimes: 3 } }",
    );
    let stage = Stage::new("");
    stage.start(&yaml, "j").to_end().await.unwrap();
    assert!(stage.trace().contains("[CRITERIA] Criteria passed on retry #1"));
    assert!(stage.repo().join("made").exists());
}

#[tokio::test]
async fn an_agent_that_asks_for_permission_gets_it() {
    let stage = Stage::new("work: asks+yes");
    stage.start(&one(""), "j").to_end().await.unwrap();
    assert!(stage.trace().ends_with("run succeeded\n"));
}

/// Runs the task `t` in a session that is not its own.
async fn borrowing(task: &str, script: &str) -> String {
    let script = Arc::new(Script::parse(script));
    let stage = Stage::with(Arc::clone(&script));
    let subject =
        Subject::Task { name: "t".to_owned(), model: None, borrowed_session: None, skip_availability: false };
    let order = order(&one(task), subject, &stage.repo());
    let session = TaskSessionId("theirs".to_owned());
    let running =
        stage.executor.start_borrowing(order, (session, live(script)), stage.heard.clone()).unwrap();
    running.to_end().await.unwrap();
    stage.trace()
}

#[tokio::test]
async fn a_borrowed_session_is_neither_opened_nor_closed() {
    let trace = borrowing(
        "availability: { condition: '@may job_boolean_true' }, criteria: { condition: '@cond $task-model \
         job_boolean_true', runConditionInSameSession: false, failureAction: { retryTimes: 1 } }",
        "cond: no yes",
    )
    .await;
    expect![[r#"
        work 0 started: t
        s1 <- "do @work"
        s1 <- "@cond cod job_boolean_true"
        [CRITERIA] Criteria condition failed. Condition: ["@cond $task-model job_boolean_true"]
        [OPERATION] Starting retry #1
        s1 <- "do @work"
        s1 <- "@cond cod job_boolean_true"
        [CRITERIA] Criteria condition passed
        [CRITERIA] Criteria passed on retry #1
        [TASK SUCCEEDED] Decision: task succeeded
        task-0 succeeded
        work 0 stopped: true
        run succeeded
    "#]]
    .assert_eq(&trace);
}

#[tokio::test]
async fn a_borrowed_session_that_crashes_fails_the_task_at_once() {
    let trace = borrowing("", "work: crash").await;
    expect![[r#"
        work 0 started: t
        s1 <- "do @work"
        s1 crashed: it broke
        [SESSION CRASHED] Task crashed in borrowing session mode: {"name":"turn_failed","message":"it broke"}
        [TASK FAILED] Task error: {"name":"turn_failed","message":"it broke"}
        task-0 failed, with an error
        work 0 stopped: false
        run failed: it broke
    "#]]
    .assert_eq(&trace);
    let task = "criteria: { toolExecuted: [job_boolean_true], failureAction: { retryTimes: 4 } }";
    let trace = borrowing(task, "work: ok crash").await;
    assert!(trace.contains("[SESSION CRASHED] Crash during retry in borrowing mode: "), "{trace}");
}

/// Notes at each end whether the borrowed session had been given back by then.
struct Ends {
    lent: mpsc::Sender<SessionNews>,
    heard: Mutex<Vec<(&'static str, bool)>>,
}

impl RunListener for Ends {
    fn hear(&self, _: &RunId, notice: RunNotice<'_>) {
        let RunNotice::Record(record) = notice else { return };
        let end = match record.fact {
            RunFact::TaskEnded { .. } => "task",
            RunFact::RunEnded { .. } => "run",
            _ => return,
        };
        self.heard.lock().push((end, self.lent.is_closed()));
    }
}

/// Records of the end of a task in a borrowed session, which is stopped if it hangs.
async fn ends(script: &str, stop: impl AsyncFnOnce(Controls)) -> Vec<(&'static str, bool)> {
    let script = Arc::new(Script::parse(script));
    let stage = Stage::with(Arc::clone(&script));
    let subject =
        Subject::Task { name: "t".to_owned(), model: None, borrowed_session: None, skip_availability: false };
    let order = order(&one(""), subject, &stage.repo());
    let (live, lent) = watched(script);
    let ends = Arc::new(Ends { lent, heard: Mutex::default() });
    let session = TaskSessionId("theirs".to_owned());
    let running = stage.executor.start_borrowing(order, (session, live), ends.clone()).unwrap();
    let controls = running.controls();
    let (ended, ()) = tokio::join!(running.to_end(), stop(controls));
    ended.unwrap();
    ends.heard.lock().clone()
}

#[tokio::test]
async fn a_borrowed_session_is_given_back_before_the_end_is_told() {
    let both = [("task", true), ("run", true)];
    assert_eq!(ends("work: yes", async |_| ()).await, both);
    assert_eq!(ends("work: crash", async |_| ()).await, both);
    assert_eq!(ends("work: hang", async |controls| controls.stop().await).await, [("run", true)]);
    let stop_task = async |controls: Controls| controls.stop_task(TaskId(0)).await;
    assert_eq!(ends("work: hang", stop_task).await, both);
}

#[tokio::test]
async fn what_cannot_go_well_is_not_tried_again() {
    for kind in ["auth_failed", "budget_exceeded", "bad_request", "unknown_model"] {
        let script = format!("work: crash({kind})");
        assert_eq!(crashes("", &script).await, (1, "run failed: it broke".to_owned()), "{kind}");
    }
    // Nor is a retry of the criteria that is bound to fail like the one before.
    let task = "criteria: { toolExecuted: [job_boolean_true], failureAction: { retryTimes: 3 } }";
    let failed = (2, "run failed: it broke".to_owned());
    assert_eq!(crashes(task, "work: ok crash(auth_failed)").await, failed);
}

/// When sessions were started, in seconds since the first.
struct Starts(Mutex<Vec<Instant>>);

impl RunListener for Starts {
    fn hear(&self, _: &RunId, notice: RunNotice<'_>) {
        if let RunNotice::Record(RunRecord { fact: RunFact::SessionStarted { .. }, .. }) = notice {
            self.0.lock().push(Instant::now());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn attempts_are_further_and_further_apart() {
    let stage = Stage::pausing(Arc::new(Script::parse("work: crash")), 1.0);
    let starts = Arc::new(Starts(Mutex::default()));
    let order = order(&one(""), job("j"), &stage.repo());
    let running = stage.executor.start(order, starts.clone()).unwrap();
    running.to_end().await.unwrap();
    let starts = starts.0.lock();
    let seconds: Vec<u64> = starts.iter().map(|at| (*at - starts[0]).as_secs()).collect();
    assert_eq!(seconds, [0, 5, 15, 35, 75]);
}
