//! Commands that go on after their call.

use std::time::Duration;

use super::super::registry::StartRequest;
use super::super::tracked::{CommandMode, CommandPhase};
use super::*;

#[tokio::test(start_paused = true)]
async fn a_command_that_takes_too_long_goes_on_in_the_background() {
    let mut stage = Stage::new();
    let fifo = stage.fifo();
    let slow =
        json!({"command": "cat fifo; echo two", "description": "slow", "shellId": "s", "initial_wait": 60});
    let outcome = stage.call("bash", slow).await;
    assert_eq!((outcome.status, outcome.exit_code), (ToolStatus::Success, None));
    assert!(
        outcome.text.starts_with(
            "<command with shellId: s is still running after 60 seconds and has printed nothing"
        ),
        "{}",
        outcome.text
    );
    tokio::time::resume();
    fifo.write("one\n").await;
    let completion = stage.completions.recv().await.unwrap();
    let said = (
        completion.shell_id.as_str(),
        completion.description.as_str(),
        completion.exit_code,
        completion.detached,
    );
    assert_eq!(said, ("s", "slow", 0, false));
    assert_eq!(completion.read.text, "one\ntwo\n<exited with exit code 0>");
    assert_eq!(
        BackgroundNotice::from(completion).text,
        "Shell command \"slow\" (shellId: s) has completed successfully."
    );
    let read = |delay: f64| stage.call("read_bash", json!({"shellId": "s", "delay": delay}));
    assert_eq!(read(0.5).await.text, "\n<exited with exit code 0>", "it was read with the news");
}

#[tokio::test]
async fn a_command_in_the_background_is_read_while_it_runs_and_told_of_when_it_ends() {
    let mut stage = Stage::new();
    let fifo = stage.fifo();
    let command = json!({"command": "echo one; cat fifo; exit 5", "description": "bg", "mode": "async", "shellId": "s"});
    let started = stage.call("bash", command).await;
    assert_eq!(started.text, "<command started in background with shellId: s>");
    while !stage.heard().iter().any(|event| event.contains("one")) {
        tokio::task::yield_now().await;
    }
    let read = stage.call("read_bash", json!({"shellId": "s", "delay": 0})).await;
    assert!(
        read.text.starts_with("one\n<command with shellId: s is still running after 0 seconds."),
        "{}",
        read.text
    );
    let list = stage.call("list_bash", json!({})).await.text;
    assert!(list.contains("shellId: s, pid: ") && list.contains("mode: async, status: running"), "{list}");
    assert!(
        list.ends_with("commands: 1, unread output: yes\n    current command: echo one; cat fifo; exit 5"),
        "{list}"
    );
    fifo.write("two\n").await;
    let completion = stage.completions.recv().await.unwrap();
    assert_eq!((completion.shell_id.as_str(), completion.exit_code), ("s", 5));
    assert_eq!(completion.read.text, "one\ntwo\n<exited with exit code 5>");
    let read = stage.call("read_bash", json!({"shellId": "s", "delay": 60})).await;
    assert_eq!(
        (read.text.as_str(), read.exit_code),
        ("\n<exited with exit code 5>", Some(5)),
        "read with the news"
    );
    let list = stage.call("list_bash", json!({})).await.text;
    assert!(
        list.contains("status: completed (exit code: 5)") && list.contains("unread output: no"),
        "{list}"
    );
}

#[tokio::test]
async fn a_reader_that_sees_the_end_is_news_enough() {
    let mut stage = Stage::new();
    let fifo = stage.fifo();
    stage.call("bash", json!({"command": "cat fifo", "mode": "async", "shellId": "s"})).await;
    let reading = stage.begin(&CancellationToken::new(), "read_bash", json!({"shellId": "s", "delay": 60}));
    // The reader is polled, and waits, before the command is let go on.
    tokio::task::yield_now().await;
    fifo.write("x\n").await;
    assert_eq!(reading.await.unwrap().text, "x\n<exited with exit code 0>");
    stage.shells.shutdown().await;
    assert!(stage.completions.try_recv().is_err());
}

#[tokio::test]
async fn reading_can_be_cancelled_without_harm_to_the_command() {
    let stage = Stage::new();
    let fifo = stage.fifo();
    stage.call("bash", json!({"command": "cat fifo", "mode": "async", "shellId": "s"})).await;
    let cancel = CancellationToken::new();
    cancel.cancel();
    let outcome = stage.call_until(&cancel, "read_bash", json!({"shellId": "s", "delay": 60})).await;
    assert_eq!(outcome.status, ToolStatus::Interrupted);
    fifo.write("x\n").await;
    let read = stage.call("read_bash", json!({"shellId": "s", "delay": 60})).await;
    assert_eq!(read.text, "x\n<exited with exit code 0>");
}

#[tokio::test]
async fn commands_can_be_written_to() {
    let stage = Stage::new();
    let start = |id: &str, command: &str| {
        stage.call("bash", json!({"command": command, "mode": "async", "shellId": id}))
    };
    let write =
        |id: &str, input: &str| stage.call("write_bash", json!({"shellId": id, "input": input, "delay": 60}));
    start("line", "read x; echo got=$x").await;
    assert_eq!(write("line", "hello{enter}").await.text, "got=hello\n<exited with exit code 0>");
    start("all", "cat; echo end").await;
    assert_eq!(write("all", "one\ntwo\n{ctrl+d}").await.text, "one\ntwo\nend\n<exited with exit code 0>");
    let failed = write("all", "more").await;
    assert_eq!(
        (failed.status, failed.text.as_str()),
        (ToolStatus::Failure, "The command with shellId: all has ended.")
    );
}

#[tokio::test]
async fn ids_are_kept_apart() {
    let stage = Stage::new();
    let sleep = json!({"command": "sleep 1000", "mode": "async", "shellId": "s"});
    stage.call("bash", sleep.clone()).await;
    let clash = stage.call("bash", sleep).await;
    assert_eq!(clash.status, ToolStatus::Failure);
    assert_eq!(
        clash.text,
        "<command with shellId: s is already running, wait for output with read_bash, stop it with stop_bash tool>"
    );
    assert_eq!(stage.call("stop_bash", json!({"shellId": "s"})).await.text, "<command with id: s stopped>");
    let read = stage.call("read_bash", json!({"shellId": "s", "delay": 0})).await;
    assert_eq!(read.text, "shellId: s was already stopped via stop_bash.\n\n<no active shell sessions>");
    let unknown = stage.call("read_bash", json!({"shellId": "nope", "delay": 0})).await;
    assert_eq!(unknown.status, ToolStatus::Failure);
    assert!(
        unknown
            .text
            .starts_with("shellId: nope not found or was never created. Please supply a valid shell ID.")
    );
    assert_eq!(
        stage.call("stop_bash", json!({"shellId": "nope"})).await.text,
        "<command with id: nope stopped>"
    );
    stage.call("bash", json!({"command": "true", "shellId": "r"})).await;
    stage.call("bash", json!({"command": "true", "shellId": "r"})).await;
    let list = stage.call("list_bash", json!({})).await.text;
    assert!(list.contains("shellId: r, ") && list.contains("commands: 2"), "{list}");
    assert_eq!(stage.call("bash", json!({"command": "true"})).await.exit_code, Some(0));
}

#[tokio::test]
async fn a_detached_command_outlives_the_session() {
    let stage = Stage::new();
    let fifo = stage.fifo();
    let command = json!({
        "command": "echo $$ > fifo; exec sleep 1000", "mode": "async", "detach": true, "shellId": "d"
    });
    let started = stage.call("bash", command).await;
    assert_eq!(started.text, "<command started in detached background with shellId: d>");
    let number = fifo.read().await;
    let detached = Process::open(&number);
    stage.shells.shutdown().await;
    drop(stage);
    assert!(detached.is_there());
    let pid = Pid::from_raw(number.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    assert!(detached.ends().await);
}

#[tokio::test]
async fn a_detached_command_can_be_read_and_stopped() {
    let mut stage = Stage::new();
    let detach = |id: &str, command: &str| {
        stage.call(
            "bash",
            json!({"command": command, "description": id, "mode": "async", "detach": true, "shellId": id}),
        )
    };
    detach("ends", "echo fast; exit 7").await;
    detach("runs", "sleep 1000").await;
    let completion = stage.completions.recv().await.unwrap();
    assert!(completion.detached && completion.exit_code == 7);
    assert_eq!(completion.read.text, "fast\n<exited with exit code 7>");
    let read = stage.call("read_bash", json!({"shellId": "ends", "delay": 60})).await;
    assert_eq!(
        (read.text.as_str(), read.exit_code),
        ("\n<exited with exit code 7>", Some(7)),
        "read with the news"
    );
    let list = stage.call("list_bash", json!({})).await.text;
    let pid = list.split("shellId: runs, pid: ").nth(1).unwrap().split(',').next().unwrap();
    let runs = Process::open(pid);
    stage.call("stop_bash", json!({"shellId": "runs"})).await;
    assert!(runs.ends().await);
}

#[tokio::test]
async fn what_a_command_in_the_background_printed_comes_with_the_news() {
    let mut stage = Stage::new();
    for detach in [false, true] {
        let id = if detach { "d" } else { "a" };
        let command = json!({"command": "echo out; exit 3", "description": "bg", "mode": "async", "detach": detach, "shellId": id});
        stage.call("bash", command).await;
        let notice = BackgroundNotice::from(stage.completions.recv().await.unwrap());
        assert_eq!(notice.text, format!("Shell command \"bg\" (shellId: {id}) has exited with exit code 3."));
        let read = notice.read.unwrap();
        assert_eq!((read.tool, read.arguments), ("read_bash", json!({"shellId": id, "delay": 0})));
        assert_eq!(
            (read.outcome.text.as_str(), read.outcome.exit_code),
            ("out\n<exited with exit code 3>", Some(3))
        );
    }
}

#[tokio::test]
async fn a_command_does_not_keep_those_waiting_who_have_something_to_say() {
    let mut stage = Stage::new();
    let fifo = stage.fifo();
    stage.hurry.cancel();
    let command = json!({"command": "cat fifo", "description": "d", "shellId": "s", "initial_wait": 600});
    let outcome = stage.call("bash", command).await;
    assert!(
        outcome.text.starts_with("<command with shellId: s moved to background by the user"),
        "{}",
        outcome.text
    );
    fifo.write("went on\n").await;
    assert_eq!(stage.completions.recv().await.unwrap().read.text, "went on\n<exited with exit code 0>");
}

#[tokio::test]
async fn a_command_that_ends_before_its_call_waits_for_it_is_reported_by_the_call_alone() {
    let mut stage = Stage::new();
    let order = StartRequest {
        call_id: "c".to_owned(),
        command: "true".to_owned(),
        description: "quick".to_owned(),
        shell_id: None,
        mode: CommandMode::Sync,
        grant: Grant::Full,
    };
    let Ok(shell) = stage.shells.0.start(order, stage.progress.0.clone()) else { panic!("it starts") };
    shell.ended().await;
    let phase = shell.ended_within(Duration::ZERO, shell.first_wait()).await;
    assert!(matches!(phase, CommandPhase::Ended { code: 0, .. }), "{phase:?}");
    stage.shells.shutdown().await;
    assert!(stage.completions.try_recv().is_err(), "its call has the result");
}

#[tokio::test]
async fn commands_in_the_background_are_listed_shown_and_stopped() {
    let stage = Stage::new();
    stage.call("bash", json!({"command": "echo ended"})).await;
    let command = "echo begun; sleep 1000; true";
    let started = json!({"command": command, "description": "Wait", "mode": "async", "shellId": "s"});
    stage.call("bash", started).await;
    let listed = stage.shells.background();
    let [found] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!((&*found.id, &*found.command, &*found.description), ("s", command, "Wait"));
    assert!(!found.is_detached && found.pid > 0);
    // Looking at the output leaves it to be read.
    while !stage.shells.output("s").expect("it runs").contains("begun") {
        tokio::task::yield_now().await;
    }
    let read = stage.call("read_bash", json!({"shellId": "s", "delay": 0})).await;
    assert!(read.text.contains("begun"), "{read:?}");
    assert_eq!(stage.shells.output("nobody"), None);
    assert!(!stage.shells.stop("nobody"));
    assert!(stage.shells.stop("s"));
    assert!(!stage.shells.stop("s"));
    assert_eq!(stage.shells.background(), []);
}
