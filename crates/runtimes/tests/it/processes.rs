//! Scripts in the place of agents: how turns end, and that nothing stays behind.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hangar_runtimes::agents;
use hangar_runtimes::environment::{RuntimeEnvironment, RuntimeSettings};
use hangar_runtimes::outcome::{ErrorKind, TurnOutcome, TurnResult};
use hangar_runtimes::runtime::{AgentOrder, AgentSession, Runtime, SessionCommand, SessionNews};

const PATIENCE: Duration = Duration::from_secs(20);

struct Stage {
    dir: tempfile::TempDir,
    runtime: Arc<dyn Runtime>,
}

impl Stage {
    /// An agent that speaks as codex does and is this script. It is logged in, and notes where it was asked about that.
    fn new(script: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("home")).unwrap();
        let program = dir.path().join("agent");
        let text = dir.path().join("script");
        let login = "if [ \"$1\" = login ]; then pwd -P > \"${0%/*}/login-asked-in\"; exit 0; fi";
        std::fs::write(&text, format!("#!/bin/sh\n{login}\n{script}\n")).unwrap();
        // By another process: a file that this one wrote may still be open in a child that another test is starting, and
        // such a file cannot be run.
        let installed =
            std::process::Command::new("install").args(["-m", "755"]).args([&text, &program]).status();
        assert!(installed.unwrap().success());
        let settings = RuntimeSettings { program: Some(program.display().to_string()), ..Default::default() };
        let environment = RuntimeEnvironment {
            // No key of the user's: it would answer the question about the login.
            vars: std::env::vars().filter(|(name, _)| name == "PATH").collect(),
            agents: BTreeMap::from([("codex".to_owned(), settings)]),
            ..RuntimeEnvironment::bare(&dir.path().join("home"))
        };
        let runtime = agents::all(&environment).into_iter().find(|r| r.card().name == "codex").unwrap();
        Self { dir, runtime }
    }

    fn order(&self) -> AgentOrder {
        AgentOrder::new("6a1bb7b2-8f4e-4f0c-9d53-0d6b4e6a1c11".to_owned(), self.dir.path().to_owned())
    }

    async fn open(&self, order: AgentOrder) -> AgentSession {
        self.runtime.open(order).await.unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }
}

/// The kinds of events until the turn ends, and how it ended.
async fn turn(live: &mut AgentSession) -> (Vec<String>, TurnOutcome) {
    let mut kinds = Vec::new();
    loop {
        let news =
            tokio::time::timeout(PATIENCE, live.news.recv()).await.expect("the turn ends").expect("news");
        match news {
            SessionNews::Event(event) => kinds.push(event.kind().to_owned()),
            SessionNews::TurnEnded(ended) => return (kinds, ended.outcome),
        }
    }
}

#[track_caller]
fn kind(outcome: &TurnOutcome) -> Option<ErrorKind> {
    match &outcome.end {
        TurnResult::Completed => None,
        TurnResult::Failed(failure) => Some(failure.kind),
    }
}

async fn gone(pid_file: &Path) {
    let pid = std::fs::read_to_string(pid_file).unwrap();
    let process = PathBuf::from(format!("/proc/{}", pid.trim()));
    let stat = process.join("stat");
    tokio::time::timeout(PATIENCE, async {
        // A process that nobody has waited for yet is dead as well.
        while std::fs::read_to_string(&stat).is_ok_and(|stat| !stat.contains(") Z ")) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await
    .expect("the process is gone");
}

const DONE: &str = r#"echo '{"type":"turn.completed","usage":{"input_tokens":3,"output_tokens":2}}'"#;

#[tokio::test]
async fn a_turn_is_told_and_ends() {
    let stage = Stage::new(&format!(
        "cat > prompt; echo '{{\"type\":\"thread.started\",\"thread_id\":\"t1\"}}'; echo '{{\"type\":\"turn.started\"}}'; \
         echo '{{\"type\":\"item.completed\",\"item\":{{\"id\":\"a\",\"type\":\"agent_message\",\"text\":\"pong\"}}}}'; {DONE}"
    ));
    let mut live = stage.open(stage.order()).await;
    live.commands.send(SessionCommand::Send("it's $(a) \"prompt\"\n".to_owned())).await.unwrap();
    let (kinds, outcome) = turn(&mut live).await;
    assert_eq!(
        kinds,
        [
            "session.start",
            "user.message",
            "session.handoff",
            "assistant.turn_start",
            "assistant.message",
            "assistant.turn_end",
            "assistant.usage",
            "session.usage_record",
            "assistant.idle"
        ]
    );
    assert_eq!(kind(&outcome), None);
    assert_eq!(outcome.usage.input_tokens.count(), Some(3));
    assert_eq!(std::fs::read_to_string(stage.file("prompt")).unwrap(), "it's $(a) \"prompt\"\n");
}

#[tokio::test]
async fn an_agent_is_asked_about_its_login_in_the_home() {
    let stage = Stage::new(DONE);
    drop(stage.open(stage.order()).await);
    let asked_in = std::fs::read_to_string(stage.file("login-asked-in")).unwrap();
    assert_eq!(Path::new(asked_in.trim()), stage.file("home").canonicalize().unwrap());
}

#[tokio::test]
async fn the_second_turn_resumes_the_first() {
    let stage = Stage::new(&format!(
        "cat >/dev/null; echo \"$@\" >> args; echo '{{\"type\":\"thread.started\",\"thread_id\":\"t1\"}}'; {DONE}"
    ));
    let mut live = stage.open(stage.order()).await;
    for _ in 0..2 {
        live.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
    }
    turn(&mut live).await;
    let (_, outcome) = turn(&mut live).await;
    let args = std::fs::read_to_string(stage.file("args")).unwrap();
    let lines: Vec<&str> = args.lines().collect();
    assert!(!lines[0].contains("resume") && lines[1].contains("resume t1"), "{args}");
    // The script reports the same total twice: the second turn used nothing.
    assert_eq!(outcome.usage.input_tokens.count(), Some(0));
}

#[tokio::test]
async fn an_aborted_turn_leaves_no_process_and_the_session_goes_on() {
    let stage = Stage::new(&format!(
        "cat >/dev/null; if [ -e pid ]; then {DONE}; exit; fi; sleep 1000 & echo $! > child; echo $$ > pid; \
         echo '{{\"type\":\"turn.started\"}}'; wait"
    ));
    let mut live = stage.open(stage.order()).await;
    live.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
    loop {
        match live.news.recv().await.unwrap() {
            SessionNews::Event(event) if event.kind() == "assistant.turn_start" => break,
            _ => {}
        }
    }
    live.commands.send(SessionCommand::Abort).await.unwrap();
    let (kinds, outcome) = turn(&mut live).await;
    assert_eq!(kind(&outcome), Some(ErrorKind::TurnCancelled));
    assert!(kinds.contains(&"abort".to_owned()), "{kinds:?}");
    gone(&stage.file("pid")).await;
    gone(&stage.file("child")).await;
    live.commands.send(SessionCommand::Send("again".to_owned())).await.unwrap();
    assert_eq!(kind(&turn(&mut live).await.1), None);
}

#[tokio::test]
async fn what_an_aborted_agent_says_at_its_end_is_heard() {
    let stage = Stage::new(&format!(
        "cat >/dev/null; trap 'sleep 0.2; {}; exit' TERM; echo '{{\"type\":\"turn.started\"}}'; while :; do sleep 0.05; done",
        DONE.replace('\'', "'\\''")
    ));
    let mut live = stage.open(stage.order()).await;
    live.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
    while !matches!(live.news.recv().await.unwrap(), SessionNews::Event(event) if event.kind() == "assistant.turn_start")
    {
    }
    live.commands.send(SessionCommand::Abort).await.unwrap();
    let (kinds, outcome) = turn(&mut live).await;
    assert_eq!(kind(&outcome), Some(ErrorKind::TurnCancelled));
    assert_eq!(outcome.usage.output_tokens.count(), Some(2));
    assert_eq!(
        kinds,
        ["assistant.turn_end", "assistant.usage", "abort", "session.usage_record", "assistant.idle"]
    );
}

#[tokio::test]
async fn an_agent_that_somebody_else_kills_has_failed() {
    let outcome = ends_as("cat >/dev/null; kill -KILL $$", |_| {}, Some(ErrorKind::PortExit)).await;
    let TurnResult::Failed(failure) = outcome.end else { unreachable!() };
    assert_eq!(failure.message, "the agent was killed by SIGKILL");
}

#[tokio::test]
async fn a_session_that_is_dropped_takes_its_agent_with_it() {
    let stage =
        Stage::new("cat >/dev/null; sleep 1000 & echo $! > child; echo '{\"type\":\"turn.started\"}'; wait");
    let mut live = stage.open(stage.order()).await;
    live.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
    while !matches!(live.news.recv().await.unwrap(), SessionNews::Event(event) if event.kind() == "assistant.turn_start")
    {
    }
    drop(live);
    gone(&stage.file("child")).await;
}

async fn ends_as(
    script: &str,
    limits: impl FnOnce(&mut AgentOrder),
    expected: Option<ErrorKind>,
) -> TurnOutcome {
    let stage = Stage::new(script);
    let mut order = stage.order();
    limits(&mut order);
    let mut live = stage.open(order).await;
    live.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
    let (_, outcome) = turn(&mut live).await;
    assert_eq!(kind(&outcome), expected, "{outcome:?}");
    outcome
}

#[tokio::test]
async fn silence_is_a_stall() {
    let short = |order: &mut AgentOrder| order.limits.stall = Some(Duration::from_millis(200));
    ends_as("cat >/dev/null; sleep 1000", short, Some(ErrorKind::Stalled)).await;
}

/// A command that an agent runs for a second without output.
const COMMAND: &str = r#"cat >/dev/null
echo '{"type":"item.started","item":{"id":"c","type":"command_execution","command":"make","status":"in_progress"}}'
sleep 1
echo '{"type":"item.completed","item":{"id":"c","type":"command_execution","command":"make","exit_code":0,"status":"completed"}}'
echo '{"type":"item.completed","item":{"id":"a","type":"agent_message","text":"made"}}'
"#;

#[tokio::test]
async fn a_silent_command_is_no_stall_and_silence_after_it_is() {
    let short = |order: &mut AgentOrder| order.limits.stall = Some(Duration::from_millis(200));
    ends_as(&format!("{COMMAND}{DONE}"), short, None).await;
    ends_as(&format!("{COMMAND}sleep 1000"), short, Some(ErrorKind::Stalled)).await;
}

#[tokio::test]
async fn a_command_that_runs_too_long_ends_the_turn() {
    let short = |order: &mut AgentOrder| order.limits.tool = Some(Duration::from_millis(200));
    let outcome = ends_as(&format!("{COMMAND}{DONE}"), short, Some(ErrorKind::ToolTimeout)).await;
    let TurnResult::Failed(failure) = outcome.end else { unreachable!() };
    assert_eq!(failure.message, "a command of the agent took longer than 0 s");
}

/// An agent that makes the same call again and again.
const IN_CIRCLES: &str = r#"cat >/dev/null
while [ ! -e stop ]; do
echo '{"type":"item.started","item":{"id":"c","type":"command_execution","command":"ls","status":"in_progress"}}'
echo '{"type":"item.completed","item":{"id":"c","type":"command_execution","command":"ls","exit_code":0,"status":"completed"}}'
sleep 0.02
done
"#;

#[tokio::test]
async fn an_agent_that_goes_in_circles_is_told_or_stopped() {
    let short = |order: &mut AgentOrder| order.limits.progress = Some(Duration::from_millis(200));
    let stopped = |order: &mut AgentOrder| {
        short(order);
        order.limits.stop_without_progress = true;
    };
    ends_as(IN_CIRCLES, stopped, Some(ErrorKind::NoProgress)).await;
    let stage = Stage::new(&format!("{IN_CIRCLES}{DONE}"));
    let mut order = stage.order();
    short(&mut order);
    let mut live = stage.open(order).await;
    live.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
    let mut told = Vec::new();
    loop {
        match live.news.recv().await.unwrap() {
            SessionNews::Event(event) => {
                if let hangar_protocol::Body::SessionWarning(warning) = event.body() {
                    told.push(warning.message.clone());
                    std::fs::write(stage.file("stop"), "").unwrap();
                }
            }
            SessionNews::TurnEnded(ended) => break assert_eq!(kind(&ended.outcome), None),
        }
    }
    assert_eq!(told, ["no new commit, change or call for 0 s"]);
}

#[tokio::test]
async fn an_agent_that_never_says_a_word_does_not_answer() {
    let short = |order: &mut AgentOrder| order.limits.startup = Some(Duration::from_millis(200));
    let outcome = ends_as("cat >/dev/null; sleep 1000", short, Some(ErrorKind::ResponseTimeout)).await;
    let TurnResult::Failed(failure) = outcome.end else { unreachable!() };
    assert_eq!(failure.message, "the agent said nothing within 0 s of its start");
    // One that has spoken is given the time that silence is given.
    ends_as(&format!("echo '{{\"type\":\"turn.started\"}}'; cat >/dev/null; sleep 1; {DONE}"), short, None)
        .await;
}

#[tokio::test]
async fn chatter_without_end_is_a_timeout() {
    let short = |order: &mut AgentOrder| order.limits.turn = Some(Duration::from_millis(300));
    let script = "cat >/dev/null; while :; do echo '{\"type\":\"turn.started\"}'; sleep 0.02; done";
    ends_as(script, short, Some(ErrorKind::TurnTimeout)).await;
}

#[tokio::test]
async fn a_crash_keeps_what_it_wrote_on_stderr() {
    let script = "cat >/dev/null; echo 'boom: the disk is full' >&2; exit 3";
    let outcome = ends_as(script, |_| {}, Some(ErrorKind::PortExit)).await;
    let TurnResult::Failed(failure) = outcome.end else { unreachable!() };
    assert_eq!(failure.message, "the agent ended with exit code 3: boom: the disk is full");
}

#[tokio::test]
async fn an_agent_that_does_not_leave_after_its_verdict_has_still_succeeded() {
    let script = format!("cat >/dev/null; {DONE}; exec >/dev/null; sleep 1000");
    ends_as(&script, |_| {}, None).await;
}

#[tokio::test]
async fn a_line_of_nine_megabytes_is_told_whole() {
    let begin = r#"{"type":"item.completed","item":{"id":"a","type":"agent_message","text":""#;
    let stage = Stage::new(&format!(
        "cat >/dev/null; printf %s '{begin}'; head -c 9000000 /dev/zero | tr '\\0' x; echo '\"}}}}'; {DONE}"
    ));
    let mut live = stage.open(stage.order()).await;
    live.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
    let mut told = 0;
    loop {
        match live.news.recv().await.unwrap() {
            SessionNews::Event(event) => {
                if let hangar_protocol::Body::AssistantMessage(message) = event.body() {
                    told += message.content.len();
                }
            }
            SessionNews::TurnEnded(ended) => break assert_eq!(kind(&ended.outcome), None),
        }
    }
    assert_eq!(told, 9_000_000);
}

#[tokio::test]
async fn an_agent_that_closed_its_output_may_write_down_what_it_has() {
    let stage = Stage::new(&format!("cat >/dev/null; {DONE}; exec >/dev/null; sleep 0.5; touch written"));
    let mut live = stage.open(stage.order()).await;
    live.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
    assert_eq!(kind(&turn(&mut live).await.1), None);
    assert!(stage.file("written").exists());
}

#[tokio::test]
async fn a_line_without_end_is_no_end_of_memory() {
    let script = "cat >/dev/null; head -c 12000000 /dev/zero | tr '\\0' x; sleep 1000";
    ends_as(script, |_| {}, Some(ErrorKind::PortExit)).await;
}

#[tokio::test]
async fn a_workspace_that_is_not_there_is_refused_before_anything_runs() {
    let stage = Stage::new("touch ran");
    let mut order = stage.order();
    order.workspace = stage.file("missing");
    let Err(failure) = stage.runtime.open(order).await else { panic!("opened") };
    assert_eq!(failure.kind, ErrorKind::InvalidWorkspace);
    assert!(!stage.file("ran").exists());
}

#[tokio::test]
async fn a_program_that_is_not_there_is_named() {
    let stage = Stage::new("");
    std::fs::remove_file(stage.file("agent")).unwrap();
    let Err(failure) = stage.runtime.open(stage.order()).await else { panic!("opened") };
    assert_eq!(failure.kind, ErrorKind::AgentNotFound);
    assert_eq!(failure.message, "OpenAI Codex is not installed: npm install -g @openai/codex");
}

#[tokio::test]
async fn fifty_agents_at_once_lose_no_event() {
    let stage = Stage::new(&format!(
        "cat >/dev/null; i=0; while [ $i -lt 40 ]; do i=$((i+1)); \
         echo '{{\"type\":\"item.completed\",\"item\":{{\"id\":\"a\",\"type\":\"agent_message\",\"text\":\"x\"}}}}'; done; {DONE}"
    ));
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let mut live = stage.open(stage.order()).await;
        running.spawn(async move {
            live.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
            turn(&mut live).await
        });
    }
    while let Some(ended) = running.join_next().await {
        let (kinds, outcome) = ended.unwrap();
        assert_eq!(kind(&outcome), None);
        assert_eq!(kinds.iter().filter(|kind| *kind == "assistant.message").count(), 40);
    }
}
