//! The kinds of work, with every place where they can fail; values and models that a job hands to its tasks.

use std::time::Duration;

use hangar_jobs::record::{RunEnd, RunFact};

use crate::stage::{Stage, TASKS, works};

async fn check(work: &str, script: &str, expected: &str) {
    let yaml = format!("{TASKS}jobs: {{ j: {{ work: {work} }} }}\n");
    assert_eq!(works(&yaml, script).await, expected, "{work}");
}

/// A reference to a task.
fn task(name: &str) -> String {
    format!("{{ kind: Ref, taskId: {name} }}")
}

fn several(kind: &str, names: &[&str]) -> String {
    let works: Vec<String> = names.iter().map(|name| task(name)).collect();
    format!("{{ kind: {kind}, works: [{}] }}", works.join(", "))
}

#[tokio::test]
async fn a_reference_is_its_task() {
    check(&task("a"), "", "0 started: a, 0 stopped: true, run succeeded").await;
    check(&task("fails"), "", "0 started: fails, 0 stopped: false, run failed").await;
}

#[tokio::test]
async fn a_sequence_goes_as_far_as_it_succeeds() {
    let both = "0 started: a, 0 stopped: true, 1 started: b, 1 stopped: true, run succeeded";
    check(&several("Seq", &["a", "b"]), "", both).await;
    check(&several("Seq", &["fails", "b"]), "", "0 started: fails, 0 stopped: false, run failed").await;
    let second = "0 started: a, 0 stopped: true, 1 started: fails, 1 stopped: false, run failed";
    check(&several("Seq", &["a", "fails"]), "", second).await;
}

#[tokio::test]
async fn parallel_work_starts_at_once_and_waits_for_all() {
    let yaml = format!("{TASKS}jobs: {{ j: {{ work: {} }} }}\n", several("Par", &["a", "fails", "b"]));
    let trace = works(&yaml, "").await;
    assert!(trace.starts_with("0 started: a, 1 started: fails, 2 started: b, "), "{trace}");
    assert!(trace.contains("0 stopped: true") && trace.contains("1 stopped: false"), "{trace}");
    assert!(trace.contains("2 stopped: true") && trace.ends_with(", run failed"), "{trace}");
}

#[tokio::test]
async fn a_condition_that_fails_is_false_and_no_failure() {
    let alt = format!(
        "{{ kind: Alt, condition: {}, trueWork: {}, falseWork: {} }}",
        task("asks"),
        task("a"),
        task("fails")
    );
    check(
        &alt,
        "asks: yes",
        "0 started: asks, 0 stopped: true, 1 started: a, 1 stopped: true, run succeeded",
    )
    .await;
    let other = "0 started: asks, 0 stopped: false, 2 started: fails, 2 stopped: false, run failed";
    check(&alt, "asks: no", other).await;
}

#[tokio::test]
async fn a_branch_that_is_not_there_is_a_success() {
    let only_false = format!("{{ kind: Alt, condition: {}, falseWork: {} }}", task("asks"), task("a"));
    check(&only_false, "asks: yes", "0 started: asks, 0 stopped: true, run succeeded").await;
    let only_true = format!("{{ kind: Alt, condition: {}, trueWork: {} }}", task("asks"), task("a"));
    check(&only_true, "asks: no", "0 started: asks, 0 stopped: false, run succeeded").await;
}

#[tokio::test]
async fn a_loop_repeats_its_body_while_the_last_condition_says_so() {
    let work = format!("{{ kind: Loop, postCondition: [false, {}], body: {} }}", task("asks"), task("a"));
    let expected = "1 started: a, 1 stopped: true, 0 started: asks, 0 stopped: false, \
                    1 started: a, 1 stopped: true, 0 started: asks, 0 stopped: true, run succeeded";
    check(&work, "asks: no yes", expected).await;
}

#[tokio::test]
async fn a_loop_may_not_begin_and_may_fail_within() {
    let work = format!("{{ kind: Loop, preCondition: [true, {}], body: {} }}", task("asks"), task("fails"));
    check(&work, "asks: no", "0 started: asks, 0 stopped: false, run succeeded").await;
    let failing = "0 started: asks, 0 stopped: true, 1 started: fails, 1 stopped: false, run failed";
    check(&work, "asks: yes", failing).await;
}

#[tokio::test]
async fn a_crash_ends_the_job_even_where_a_failure_would_not() {
    let alt = format!("{{ kind: Alt, condition: {}, falseWork: {} }}", task("c"), task("a"));
    check(&alt, "c: crash", "0 started: c, 0 stopped: false, run failed: it broke").await;
    // Parallel work does not wait for its other tasks then.
    let par = several("Par", &["a", "c"]);
    check(&par, "a: hang\nc: crash", "0 started: a, 1 started: c, 1 stopped: false, run failed: it broke")
        .await;
}

#[tokio::test]
async fn a_model_may_be_chosen_where_a_task_is_used() {
    let yaml = format!(
        "{TASKS}jobs:\n  j:\n    work:\n      kind: Seq\n      works:\n        \
         - {{ kind: Ref, taskId: a, modelOverride: {{ category: driving }} }}\n        \
         - {{ kind: Ref, taskId: a, modelOverride: {{ id: special }} }}\n"
    );
    let stage = Stage::new("");
    stage.start(&yaml, "j").to_end().await.unwrap();
    let trace = stage.trace();
    assert!(
        trace.contains("s1 started: driving on drv\n") && trace.contains("s2 started: driving on special\n")
    );
}

#[tokio::test]
async fn the_input_and_the_model_are_in_the_prompt() {
    let yaml = "
models: { driving: drv }
promptVariables: { who: 'by $task-model' }
tasks:
  t: { model: { category: driving }, prompt: ['do $user-input', '$who', '$reported-document'], requireUserInput: true }
jobs: { j: { work: { kind: Ref, taskId: t } } }
";
    let stage = Stage::new("");
    stage.start(yaml, "j").to_end().await.unwrap();
    assert!(stage.trace().contains(r#"s1 <- "do the input\nby drv\n<MISSING>""#), "{}", stage.trace());
}

#[tokio::test]
async fn limits_stop_a_job_before_the_prompt_that_would_exceed_them() {
    let endless = format!("{{ kind: Loop, postCondition: [true, {}], body: {} }}", task("a"), task("b"));
    // Each turn is 100 tokens.
    for (limits, prompts, end) in [("turns: 3", 3, "turns"), ("tokens: 450", 5, "tokens")] {
        let yaml = format!("{TASKS}jobs: {{ j: {{ limits: {{ {limits} }}, work: {endless} }} }}\n");
        let stage = Stage::new("");
        stage.start(&yaml, "j").to_end().await.unwrap();
        let lines = stage.heard.lines();
        assert_eq!(lines.iter().filter(|line| line.contains(" <- ")).count(), prompts);
        assert_eq!(lines.last().unwrap(), &format!("run reached its limit of {end}"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_takes_too_long_is_stopped() {
    let yaml = format!("{TASKS}jobs: {{ j: {{ limits: {{ seconds: 30 }}, work: {} }} }}\n", task("a"));
    let stage = Stage::new("a: hang");
    let end = stage.start(&yaml, "j").to_end().await.unwrap();
    assert!(matches!(end, RunEnd::LimitReached { .. }));
}

#[tokio::test(start_paused = true)]
async fn time_in_the_queue_does_not_count() {
    let yaml = format!("{TASKS}jobs: {{ j: {{ limits: {{ seconds: 30 }}, work: {} }} }}\n", task("a"));
    let stage = Stage::new("");
    stage.slots.hold(Duration::from_secs(3600));
    let end = stage.start(&yaml, "j").to_end().await.unwrap();
    assert_eq!(end, RunEnd::Succeeded);
}

/// Messages about a job of the task `fails`, which needs a job tool, with this agent.
fn refusal(runtime: &str) -> String {
    let yaml = TASKS.replace("prompt: '@fails'", &format!("prompt: '@fails'\n    runtime: {runtime}"));
    let yaml = format!("{yaml}jobs: {{ j: {{ work: {} }} }}\n", task("fails"));
    let stage = Stage::new("");
    let order = crate::stage::order(&yaml, crate::stage::job("j"), &stage.repo());
    let error = stage.executor.start(order, stage.heard.clone()).err().unwrap();
    assert!(stage.executor.store.list(10).unwrap().is_empty());
    error.to_string()
}

#[test]
fn an_agent_that_nobody_knows_is_an_error_at_the_start() {
    assert_eq!(refusal("martian"), "there is no agent \"martian\"");
}

#[test]
fn an_agent_that_cannot_report_is_an_error_at_the_start() {
    let expected = "agent \"toolless\" takes no MCP servers, so it cannot be given the job tools that task \"fails\" needs";
    assert_eq!(refusal("toolless"), expected);
}

#[tokio::test]
async fn a_task_may_be_for_another_agent() {
    let yaml = TASKS.replace("prompt: '@a'", "prompt: '@a', runtime: other");
    let yaml = format!("{yaml}jobs: {{ j: {{ work: {} }} }}\n", several("Seq", &["a", "b"]));
    let stage = Stage::new("");
    let running = stage.start(&yaml, "j");
    let run = running.run().clone();
    running.to_end().await.unwrap();
    let records = stage.executor.store.read(&run).unwrap();
    let agents = records.iter().filter_map(|record| match &record.fact {
        RunFact::SessionStarted { runtime, .. } => Some(runtime.as_deref()),
        _ => None,
    });
    assert_eq!(agents.collect::<Vec<_>>(), [Some("other"), None]);
}
