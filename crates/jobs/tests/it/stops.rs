//! Stopping runs and tasks from outside.

use hangar_jobs::record::{RunEnd, TaskId};
use hangar_jobs::store::RunStatus;

use crate::stage::{Stage, TASKS};

const PARALLEL: &str =
    "jobs: { j: { work: { kind: Par, works: [{ kind: Ref, taskId: a }, { kind: Ref, taskId: b }] } } }";

#[tokio::test]
async fn a_run_that_is_stopped_says_so_once_and_nothing_after_it() {
    let stage = Stage::new("a: hang\nb: hang");
    let running = stage.start(&format!("{TASKS}{PARALLEL}"), "j");
    let (run, controls) = (running.run().clone(), running.controls());
    let end = tokio::spawn(running.to_end());
    stage.heard.until("s2 <- \"@b\"").await;
    controls.stop().await;
    controls.stop().await;
    assert_eq!(end.await.unwrap().unwrap(), RunEnd::Canceled);
    let lines = stage.heard.lines();
    assert_eq!(lines.last().unwrap(), "run was stopped");
    assert_eq!(lines.iter().filter(|line| line.contains("was stopped")).count(), 1);
    // It has ended; nothing listens any more.
    controls.stop().await;
    let listed = stage.executor.store.list(10).unwrap();
    assert_eq!((&listed[0].run, listed[0].status), (&run, RunStatus::Canceled));
}

#[tokio::test]
async fn stopping_a_finished_run_changes_nothing() {
    let stage = Stage::new("");
    let running = stage.start(&format!("{TASKS}{PARALLEL}"), "j");
    let controls = running.controls();
    assert_eq!(running.to_end().await.unwrap(), RunEnd::Succeeded);
    controls.stop().await;
    assert_eq!(stage.executor.store.list(10).unwrap()[0].status, RunStatus::Succeeded);
}

#[tokio::test]
async fn a_task_that_is_stopped_fails_the_run() {
    let stage = Stage::new("a: hang\nb: hang");
    let running = stage.start(&format!("{TASKS}{PARALLEL}"), "j");
    let controls = running.controls();
    let end = tokio::spawn(running.to_end());
    stage.heard.until("s1 <- \"@a\"").await;
    // One that is not there is no reason to do anything.
    controls.stop_task(TaskId(99)).await;
    controls.stop_task(TaskId(0)).await;
    let end = end.await.unwrap().unwrap();
    assert!(matches!(&end, RunEnd::Failed { error: Some(error) } if error.name == "task_stopped"), "{end:?}");
    let trace = stage.trace();
    let tail = trace.split("task-0 stopped from outside\n").nth(1).unwrap();
    expect_test::expect![[r#"
        [TASK FAILED] Task error: {"name":"task_stopped","message":"the task was stopped"}
        s1 stopped: false
        task-0 failed, with an error
        work 0 stopped: false
        run failed: the task was stopped
    "#]]
    .assert_eq(tail);
}
