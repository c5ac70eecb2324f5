//! Parts of a job in git worktrees of their own.

use crate::stage::{Stage, TASKS};

fn repository(stage: &Stage) {
    let script = "git init -q . && echo a > a.txt && git add . && \
                  git -c user.name=t -c user.email=t@example.com commit -q -m one";
    let status = std::process::Command::new("sh").arg("-c").arg(script).current_dir(stage.repo()).status();
    assert!(status.unwrap().success());
}

fn yaml(command: &str) -> String {
    let tasks = TASKS.replace(
        "prompt: '@a', requireUserInput: false",
        &format!(
            "prompt: '@a', requireUserInput: false, \
             criteria: {{ commands: [{{ run: '{command}' }}], failureAction: {{ retryTimes: 0 }} }}"
        ),
    );
    format!(
        "{tasks}jobs:\n  j:\n    work:\n      kind: Seq\n      works:\n        \
         - {{ kind: Seq, worktree: true, works: [{{ kind: Ref, taskId: a }}] }}\n        \
         - {{ kind: Ref, taskId: b }}\n"
    )
}

#[tokio::test]
async fn a_work_that_changes_nothing_leaves_nothing() {
    let stage = Stage::new("");
    repository(&stage);
    let running = stage.start(&yaml("test -e a.txt && pwd | grep -q worktrees"), "j");
    let run = running.run().clone();
    running.to_end().await.unwrap();
    let trace = stage.trace();
    assert!(trace.starts_with("worktree .works[0] made\nwork 0 started: a\n"), "{trace}");
    assert!(
        trace.contains("work 0 stopped: true\nworktree .works[0] left, kept: false\nwork 1 started: b\n"),
        "{trace}"
    );
    assert!(!stage.place.path().join("runs").join(&run.0).join("worktrees/works-0-0").exists());
}

#[tokio::test]
async fn a_work_that_changes_something_keeps_its_worktree() {
    let stage = Stage::new("");
    repository(&stage);
    let running = stage.start(&yaml("touch new.txt"), "j");
    let run = running.run().clone();
    running.to_end().await.unwrap();
    assert!(stage.trace().contains("worktree .works[0] left, kept: true\n"), "{}", stage.trace());
    let kept = stage.place.path().join("runs").join(&run.0).join("worktrees/works-0-0");
    assert!(kept.join("new.txt").exists() && !stage.repo().join("new.txt").exists());
}

#[tokio::test]
async fn without_a_repository_the_job_fails_and_says_why() {
    let stage = Stage::new("");
    stage.start(&yaml("true"), "j").to_end().await.unwrap();
    assert!(stage.trace().contains("not a git repository"), "{}", stage.trace());
}
