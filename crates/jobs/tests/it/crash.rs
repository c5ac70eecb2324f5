//! Processes that end at any point: what a run's log is worth.

use std::io::Write;

use hangar_jobs::driver::RunStartError;
use hangar_jobs::record::{RunEnd, RunFact, RunId, Subject, TaskSessionId};
use hangar_jobs::state::{RunProgress, WorkStatus};
use hangar_jobs::store::{BrokenAt, RunStatus, RunStore, RunStoreError};

use crate::stage::{Stage, TASKS, order};

/// A bit of everything: parallel and repeated work, conditions, criteria, retries and a crash.
const YAML: &str = "
models: { driving: drv, coding: cod }
tasks:
  plan:
    model: { category: coding }
    prompt: '@plan'
    requireUserInput: false
    availability: { condition: '@may job_boolean_true' }
    criteria:
      toolExecuted: [job_prepare_document]
      condition: '@good $reported-document job_boolean_true'
      runConditionInSameSession: false
      failureAction: { retryTimes: 2 }
  code:
    model: { category: coding }
    prompt: '@code'
    requireUserInput: false
    criteria: { condition: '@done job_boolean_true', commands: [{ run: 'true' }], failureAction: { retryTimes: 1 } }
  review: { model: { category: coding }, prompt: '@review', requireUserInput: false,
            criteria: { toolExecuted: [job_boolean_true], failureAction: { retryTimes: 0 } } }
jobs:
  j:
    work:
      kind: Seq
      works:
        - { kind: Ref, taskId: plan }
        - kind: Loop
          body: { kind: Par, works: [{ kind: Ref, taskId: code }, { kind: Ref, taskId: code, modelOverride: { id: x } }] }
          postCondition: [false, { kind: Ref, taskId: review }]
";
const SCRIPT: &str = "
may: yes
plan: ok doc(a.md) crash doc(a.md)
good: no yes yes
done: yes
review: no yes yes yes
";

/// Which works are finished, in the order in which that was written down.
fn finished(stage: &Stage, run: &RunId) -> Vec<(u32, bool)> {
    let records = stage.store().read(run).unwrap();
    let stopped = records.iter().filter_map(|record| match &record.fact {
        RunFact::WorkStopped { work_id, succeeded, .. } => Some((work_id.0, *succeeded)),
        _ => None,
    });
    stopped.collect()
}

/// Cuts the log of a finished run behind `kept` records.
fn cut(stage: &Stage, run: &RunId, kept: usize) {
    let path = stage.place.path().join("runs").join(&run.0).join("run.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let lines: String = text.split_inclusive('\n').take(kept).collect();
    std::fs::write(&path, lines).unwrap();
}

#[tokio::test]
async fn a_log_that_is_cut_anywhere_is_gone_on_with_to_the_same_end() {
    let stage = Stage::new(SCRIPT);
    let running = stage.start(YAML, "j");
    let run = running.run().clone();
    assert_eq!(running.to_end().await.unwrap(), RunEnd::Succeeded);
    let records = stage.store().read(&run).unwrap();
    for kept in 1..records.len() {
        // From here on everybody says yes, so whatever was left open ends well.
        let stage = Stage::new("may: yes\nplan: doc(a.md)\ngood: yes\ndone: yes\nreview: yes");
        let running = stage.start(YAML, "j");
        let again = running.run().clone();
        drop(running);
        let path = stage.place.path().join("runs").join(&again.0).join("run.jsonl");
        let mut file = std::fs::File::create(&path).unwrap();
        for record in &records[..kept] {
            serde_json::to_writer(&mut file, record).unwrap();
            file.write_all(b"\n").unwrap();
        }
        assert_eq!(stage.executor.store.list(1).unwrap()[0].status, RunStatus::Interrupted);
        let before = finished(&stage, &again);
        let resumed = stage.resume(&again).unwrap_or_else(|error| panic!("{kept}: {error}"));
        let end = resumed.to_end().await.unwrap();
        assert_eq!(end, RunEnd::Succeeded, "cut behind {kept}: {}", stage.trace());
        let after = finished(&stage, &again);
        assert!(after.starts_with(&before), "what was finished is not done again, cut behind {kept}");
        let told = stage.store().read(&again).unwrap();
        let numbers: Vec<u64> = told.iter().map(|record| record.seq).collect();
        assert_eq!(numbers, (0..told.len() as u64).collect::<Vec<_>>());
        assert_eq!(told.iter().filter(|record| matches!(record.fact, RunFact::RunEnded { .. })).count(), 1);
        let sessions = |wanted: fn(&RunFact) -> Option<&TaskSessionId>| -> Vec<TaskSessionId> {
            let mut all: Vec<_> = told.iter().filter_map(|record| wanted(&record.fact)).cloned().collect();
            all.sort();
            all
        };
        let started = sessions(|fact| match fact {
            RunFact::SessionStarted { session, .. } => Some(session),
            _ => None,
        });
        let stopped = sessions(|fact| match fact {
            RunFact::SessionStopped { session, .. } => Some(session),
            _ => None,
        });
        assert_eq!(started, stopped, "every session is closed once, cut behind {kept}");
    }
}

#[tokio::test]
async fn a_prompt_that_was_under_way_is_sent_again_with_a_word_about_it() {
    let yaml = format!("{TASKS}jobs: {{ j: {{ work: {{ kind: Ref, taskId: a }} }} }}");
    let stage = Stage::new("a: hang ok");
    let running = stage.start(&yaml, "j");
    let run = running.run().clone();
    let task = tokio::spawn(running.to_end());
    stage.heard.until("s1 <- \"@a\"").await;
    assert_eq!(stage.executor.store.list(1).unwrap()[0].status, RunStatus::Running);
    assert!(matches!(stage.resume(&run), Err(RunStartError::Store(RunStoreError::Busy(_)))));
    task.abort();
    let _ = task.await;
    assert_eq!(stage.resume(&run).unwrap().to_end().await.unwrap(), RunEnd::Succeeded);
    let trace = stage.trace();
    expect_test::expect![[r#"
        run resumed
        [SESSION CRASHED] {"name":"interrupted","message":"hangar was ended while the agent was at work"}
        s1 stopped: false
        s2 started: driving on cod
        s2 <- "The session crashed, please redo and here is the last request:\n@a"
        [TASK SUCCEEDED] Decision: task succeeded
        s2 stopped: true
        task-0 succeeded
        work 0 stopped: true
        run succeeded
    "#]]
    .assert_eq(&trace[trace.find("run resumed").unwrap()..]);
    assert!(matches!(stage.resume(&run), Err(RunStartError::Ended(_))));
}

#[tokio::test]
async fn the_end_of_our_own_process_uses_up_no_attempts() {
    let yaml = format!("{TASKS}jobs: {{ j: {{ work: {{ kind: Ref, taskId: a }} }} }}");
    // More than the attempts that a crashing agent has.
    let kills = 10;
    let stage = Stage::new(&format!("a: {}ok", "hang ".repeat(kills)));
    let mut running = stage.start(&yaml, "j");
    let run = running.run().clone();
    for kill in 1..=kills {
        let task = tokio::spawn(running.to_end());
        let prefix =
            if kill == 1 { "" } else { "The session crashed, please redo and here is the last request:\n" };
        stage.heard.until(&format!("s{kill} <- {:?}", format!("{prefix}@a"))).await;
        task.abort();
        let _ = task.await;
        running = stage.resume(&run).unwrap();
    }
    assert_eq!(running.to_end().await.unwrap(), RunEnd::Succeeded);
}

#[tokio::test]
async fn half_a_line_at_the_end_is_cut_off() {
    let yaml = format!("{TASKS}jobs: {{ j: {{ work: {{ kind: Ref, taskId: a }} }} }}");
    let stage = Stage::new("");
    let running = stage.start(&yaml, "j");
    let run = running.run().clone();
    running.to_end().await.unwrap();
    let whole = stage.store().read(&run).unwrap().len();
    cut(&stage, &run, whole - 1);
    let path = stage.place.path().join("runs").join(&run.0).join("run.jsonl");
    let mut file = std::fs::OpenOptions::new().append(true).open(&path).unwrap();
    file.write_all(br#"{"seq":9,"at":"2026-"#).unwrap();
    assert_eq!(stage.resume(&run).unwrap().to_end().await.unwrap(), RunEnd::Succeeded);
    let records = stage.store().read(&run).unwrap();
    assert!(matches!(records[whole - 1].fact, RunFact::RunResumed));
}

#[tokio::test]
async fn a_line_in_the_middle_that_is_no_record_is_named() {
    let yaml = format!("{TASKS}jobs: {{ j: {{ work: {{ kind: Ref, taskId: a }} }} }}");
    let stage = Stage::new("");
    let running = stage.start(&yaml, "j");
    let run = running.run().clone();
    running.to_end().await.unwrap();
    let path = stage.place.path().join("runs").join(&run.0).join("run.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, text.replacen("\n{", "\nnoise\n{", 1)).unwrap();
    assert!(matches!(stage.store().read(&run), Err(RunStoreError::Corrupt { place: BrokenAt::Line(2), .. })));
}

#[tokio::test]
async fn a_log_is_read_on_from_where_it_was_left() {
    let yaml = format!("{TASKS}jobs: {{ j: {{ work: {{ kind: Ref, taskId: a }} }} }}");
    let stage = Stage::new("");
    let running = stage.start(&yaml, "j");
    let run = running.run().clone();
    let store = stage.store();
    let (mut seen, mut place) = store.read_on(&run, 0).unwrap();
    assert_eq!(seen.len(), 1, "it has begun");
    assert!(store.read_on(&run, place).unwrap().0.is_empty());
    running.to_end().await.unwrap();
    // A prompt that is longer than what is read at once.
    let path = stage.place.path().join("runs").join(&run.0).join("run.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    let long = text.replacen("\"prompt\":\"", &format!("\"prompt\":\"{}", "x".repeat(1 << 20)), 1);
    assert!(long.len() > text.len());
    std::fs::write(&path, &long).unwrap();
    let mut batches = 0;
    loop {
        let (more, behind) = store.read_on(&run, place).unwrap();
        if more.is_empty() {
            break;
        }
        batches += 1;
        (seen, place) = ([seen, more].concat(), behind);
    }
    assert_eq!(seen, store.read(&run).unwrap());
    assert_eq!((batches, place), (2, long.len() as u64));
}

#[tokio::test]
async fn a_task_in_a_borrowed_session_is_reported_as_interrupted() {
    let yaml = format!("{TASKS}jobs: {{}}");
    let script = std::sync::Arc::new(crate::fake::Script::parse("a: hang"));
    let stage = Stage::with(std::sync::Arc::clone(&script));
    let subject =
        Subject::Task { name: "a".to_owned(), model: None, borrowed_session: None, skip_availability: false };
    let order = order(&yaml, subject, &stage.repo());
    let live = crate::fake::live(script);
    let running = stage
        .executor
        .start_borrowing(order, (TaskSessionId("theirs".to_owned()), live), stage.heard.clone())
        .unwrap();
    let run = running.run().clone();
    drop(running);
    assert!(matches!(stage.resume(&run), Err(RunStartError::Orphaned(_))));
    assert_eq!(stage.executor.store.list(1).unwrap()[0].status, RunStatus::Interrupted);
    assert!(matches!(stage.resume(&run), Err(RunStartError::Ended(_))));
}

#[tokio::test]
async fn the_log_tells_all_that_is_known_about_a_run() {
    let stage = Stage::new(SCRIPT);
    let running = stage.start(YAML, "j");
    let run = running.run().clone();
    running.to_end().await.unwrap();
    let records = stage.store().read(&run).unwrap();
    let text: Vec<String> = records.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
    let again: Vec<_> = text.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(records, again);
    let state = RunProgress::fold(&records).unwrap();
    assert_eq!(state.end(), Some(&RunEnd::Succeeded));
    assert!(state.works().values().all(|status| *status == WorkStatus::Succeeded));
    let prompts = records.iter().filter(|record| matches!(record.fact, RunFact::Prompted { .. })).count();
    assert_eq!(state.turns(), prompts as u64);
}

#[tokio::test]
async fn runs_are_listed_newest_first_and_names_lead_nowhere_else() {
    let yaml = format!("{TASKS}jobs: {{ j: {{ work: {{ kind: Ref, taskId: fails }} }} }}");
    let stage = Stage::new("");
    for _ in 0..3 {
        stage.start(&yaml, "j").to_end().await.unwrap();
    }
    let listed = stage.executor.store.list(2).unwrap();
    assert_eq!(listed.len(), 2);
    let rest = stage.store().page(Some(&listed[1].run.0), 2).unwrap();
    assert_eq!(rest.len(), 1);
    assert!(rest[0].run < listed[1].run);
    assert!(listed[0].run > listed[1].run && listed.iter().all(|run| run.status == RunStatus::Failed));
    for name in ["../runs", "", "a/b", "nope"] {
        let error = stage.store().read(&RunId(name.to_owned())).unwrap_err();
        assert!(matches!(error, RunStoreError::NotFound(_)), "{error}");
    }
}
