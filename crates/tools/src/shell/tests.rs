mod background;

use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use hangar_agent::permissions::Grant;
use hangar_agent::session::BackgroundNotice;
use hangar_agent::tool::{Access, Tool, ToolContext, ToolInput, ToolOutcome, ToolStatus};
use hangar_protocol::Body;
use hangar_protocol::data::ToolType;
use hangar_protocol::permission::{PermissionRequest, ShellRequest};
use rustix::process::{Pid, PidfdFlags, Signal};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::spill::Spill;
use crate::tool_files::ToolFiles;

/// The longest wait for something that is bound to happen.
const PATIENCE: i32 = 20_000;

/// A session's shells in a directory of their own, and everything they say.
struct Stage {
    dir: tempfile::TempDir,
    shells: Shells,
    completions: mpsc::Receiver<ShellCompletion>,
    /// Cancelled when someone has something to say.
    hurry: CancellationToken,
    progress: (mpsc::Sender<Box<Body>>, mpsc::Receiver<Box<Body>>),
}

impl Stage {
    fn new() -> Self {
        Self::with(|_| {})
    }

    fn with(change: impl FnOnce(&mut ShellOptions)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (sender, completions) = mpsc::channel(16);
        let path = std::env::var_os("PATH").unwrap();
        let mut options = ShellOptions {
            sandbox: None,
            confinement: Some(Confinement::default()),
            program: "/bin/bash".into(),
            cwd: dir.path().canonicalize().unwrap(),
            env: vec![
                ("PATH".into(), path),
                ("SECRET".into(), "s3cret".into()),
                ("SHOWN".into(), "yes".into()),
            ],
            secrets: vec!["SECRET".to_owned()],
            spill: Spill {
                dir: dir.path().join("spill"),
                threshold: 20 * 1024,
                clean: None,
                files: ToolFiles::Here,
            },
            completions: sender,
        };
        change(&mut options);
        let shells = Shells::new(options);
        Self { dir, shells, completions, hurry: CancellationToken::new(), progress: mpsc::channel(1024) }
    }

    fn tool(&self, name: &str) -> Arc<dyn Tool> {
        self.shells.tools().into_iter().find(|tool| tool.spec().name == name).unwrap()
    }

    async fn call(&self, tool: &str, arguments: Value) -> ToolOutcome {
        self.call_until(&CancellationToken::new(), tool, arguments).await
    }

    async fn call_until(&self, cancel: &CancellationToken, tool: &str, arguments: Value) -> ToolOutcome {
        let context = ToolContext {
            grant: Grant::Full,
            cancel: cancel.clone(),
            hurry: self.hurry.clone(),
            progress: self.progress.0.clone(),
        };
        self.tool(tool).run(input(arguments), context).await
    }

    /// A call that goes on beside the test.
    fn begin(&self, cancel: &CancellationToken, tool: &str, arguments: Value) -> JoinHandle<ToolOutcome> {
        let context = ToolContext {
            grant: Grant::Full,
            cancel: cancel.clone(),
            hurry: self.hurry.clone(),
            progress: self.progress.0.clone(),
        };
        tokio::spawn(self.tool(tool).run(input(arguments), context))
    }

    async fn bash(&self, command: &str) -> ToolOutcome {
        self.call("bash", json!({"command": command, "description": "d"})).await
    }

    async fn check(&self, command: &str, expected: &str) {
        assert_eq!(self.bash(command).await.text, expected, "{command}");
    }

    fn inspect(&self, tool: &str, arguments: Value) -> ShellRequest {
        match self.tool(tool).inspect(&input(arguments)).unwrap() {
            Access::Needs(access) => match access.request {
                PermissionRequest::Shell(shell) => shell,
                other => panic!("{other:?}"),
            },
            Access::None => panic!("no permission needed"),
        }
    }

    /// The events so far.
    fn heard(&mut self) -> Vec<String> {
        std::iter::from_fn(|| self.progress.1.try_recv().ok()).map(|body| show(&body)).collect()
    }

    /// The process whose number the running command prints as a line of its own.
    async fn announced_process(&mut self) -> Process {
        let mut printed = String::new();
        while !printed.contains('\n') {
            if let Some(Body::ToolShellOutput(output)) = self.progress.1.recv().await.map(|body| *body) {
                printed.push_str(&output.text);
            }
        }
        Process::open(printed.lines().next().unwrap())
    }

    fn fifo(&self) -> Fifo {
        let path = self.dir.path().join("fifo");
        let (kind, mode) = (rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).unwrap();
        Fifo(path)
    }
}

/// Lets a command wait for the test (`cat fifo`), or the test for a command (`echo x > fifo`).
struct Fifo(PathBuf);

impl Fifo {
    async fn write(&self, text: &'static str) {
        let path = self.0.clone();
        tokio::task::spawn_blocking(move || std::fs::write(path, text)).await.unwrap().unwrap();
    }

    async fn read(&self) -> String {
        let path = self.0.clone();
        tokio::task::spawn_blocking(move || std::fs::read_to_string(path)).await.unwrap().unwrap()
    }
}

struct Process(OwnedFd);

impl Process {
    fn open(number: &str) -> Self {
        let pid = Pid::from_raw(number.trim().parse().unwrap()).unwrap();
        Self(rustix::process::pidfd_open(pid, PidfdFlags::empty()).unwrap())
    }

    fn wait(&self, milliseconds: i32) -> bool {
        let limit = rustix::event::Timespec {
            tv_sec: i64::from(milliseconds / 1000),
            tv_nsec: i64::from(milliseconds % 1000) * 1_000_000,
        };
        let mut polled = [rustix::event::PollFd::new(&self.0, rustix::event::PollFlags::IN)];
        rustix::event::poll(&mut polled, Some(&limit)).unwrap() > 0
    }

    /// Whether it ends, given time.
    async fn ends(self) -> bool {
        tokio::task::spawn_blocking(move || self.wait(PATIENCE)).await.unwrap()
    }

    fn is_there(&self) -> bool {
        !self.wait(0)
    }
}

fn input(arguments: Value) -> ToolInput {
    ToolInput { call_id: "c".to_owned(), kind: ToolType::Function, arguments }
}

fn show(body: &Body) -> String {
    match body {
        Body::ToolShellOutput(output) => {
            format!("{} {} {}", output.sequence, output.stream, output.text.trim_end())
        }
        Body::ToolPartialResult(partial) => format!("so far {}", partial.partial_output.trim_end()),
        other => other.kind().to_owned(),
    }
}

#[tokio::test]
async fn output_comes_in_order_and_with_the_exit_code() {
    let mut stage = Stage::new();
    let outcome = stage.bash("echo err >&2; echo out; exit 3").await;
    assert_eq!(outcome.text, "err\nout\n<exited with exit code 3>");
    assert_eq!((outcome.status, outcome.exit_code), (ToolStatus::Success, Some(3)));
    let heard = stage.heard();
    assert!(heard.starts_with(&["0 stderr err".to_owned(), "so far err".to_owned()]), "{heard:?}");
    assert_eq!(heard.last().unwrap(), "so far err\nout");
}

#[tokio::test]
async fn the_end_of_the_output_belongs_to_it_and_blank_ends_do_not() {
    let stage = Stage::new();
    stage.check("true", "\n<exited with exit code 0>").await;
    stage.check("printf 'no newline'", "no newline\n<exited with exit code 0>").await;
    stage.check("printf '  indented\\n\\n\\n'", "  indented\n<exited with exit code 0>").await;
    stage.check("exec seq 1 2", "1\n2\n<exited with exit code 0>").await;
    stage.check("kill -9 $$", "\n<exited with exit code 137>").await;
    stage
        .check(
            "-no-such-flag",
            "/bin/bash: line 1: -no-such-flag: command not found\n<exited with exit code 127>",
        )
        .await;
}

#[tokio::test]
async fn terminal_codes_are_for_listeners_and_not_for_models() {
    let mut stage = Stage::new();
    stage
        .check("printf '\\033[31mred\\033[0m \\377 x\\n'", "red \u{fffd} x\n<exited with exit code 0>")
        .await;
    let heard = stage.heard();
    assert_eq!(heard.first().unwrap(), "0 stdout \u{1b}[31mred\u{1b}[0m \u{fffd} x");
    assert_eq!(heard.last().unwrap(), "so far red \u{fffd} x");
}

#[tokio::test]
async fn a_command_that_prints_nothing_still_says_so() {
    let mut stage = Stage::new();
    stage.bash("true").await;
    assert_eq!(stage.heard(), ["so far "]);
}

#[tokio::test]
async fn every_command_starts_afresh_without_a_terminal_or_input() {
    let stage = Stage::new();
    let cwd = stage.dir.path().canonicalize().unwrap();
    stage.bash("cd /; export FOO=bar").await;
    stage.check("pwd; echo $FOO", &format!("{}\n<exited with exit code 0>", cwd.display())).await;
    stage.check("cat; echo got", "got\n<exited with exit code 0>").await;
    stage
        .check(
            "echo x > /dev/tty",
            "/bin/bash: line 1: /dev/tty: No such device or address\n<exited with exit code 1>",
        )
        .await;
}

#[tokio::test]
async fn the_environment_is_the_given_one_without_secrets_or_questions() {
    let stage = Stage::with(|options| options.env.push(("BASH_ENV".into(), "/no/such/file".into())));
    stage
        .check(
            "echo $SHOWN$SECRET$BASH_ENV $TERM $PAGER $GIT_PAGER",
            "yes dumb cat cat\n<exited with exit code 0>",
        )
        .await;
    let user = stage.bash("env | grep -c ^USER=").await;
    assert_eq!(user.exit_code, Some(1), "the environment of the test was inherited");
}

#[tokio::test]
async fn a_large_output_goes_to_a_file() {
    let stage = Stage::new();
    let text = stage.bash("seq 1 20000").await.text;
    assert!(text.starts_with("Output too large to read at once (106.3 KB). Saved to: "), "{text}");
    assert!(text.ends_with("\n<exited with exit code 0>"));
    let path = text.lines().next().unwrap().split_once("Saved to: ").unwrap().1;
    let saved = std::fs::read_to_string(path).unwrap();
    assert!(saved.starts_with("1\n2\n") && saved.ends_with("19999\n20000\n"));
}

#[tokio::test]
async fn much_output_costs_listeners_no_more_than_its_size() {
    let mut stage = Stage::new();
    let reader = tokio::spawn({
        let (sender, mut receiver) = mpsc::channel(8);
        stage.progress.0 = sender;
        async move {
            let mut total = (0, 0);
            while let Some(body) = receiver.recv().await {
                match *body {
                    Body::ToolShellOutput(output) => total.0 += output.text.len(),
                    Body::ToolPartialResult(partial) => total.1 = total.1.max(partial.partial_output.len()),
                    _ => {}
                }
            }
            total
        }
    });
    stage.bash("head -c 2000000 /dev/zero | tr '\\0' x").await;
    let Stage { shells, progress, .. } = stage;
    drop((shells, progress));
    let (printed, largest_summary) = reader.await.unwrap();
    assert_eq!(printed, 2_000_000);
    assert!(largest_summary <= 8 * 1024);
}

#[tokio::test]
async fn a_session_that_ends_takes_only_its_own_commands_with_it() {
    let (ended, other) = (Stage::new(), Stage::new());
    let fifo = other.fifo();
    let waiting =
        other.begin(&CancellationToken::new(), "bash", json!({"command": "cat fifo", "description": "d"}));
    ended.bash("true").await;
    ended.shells.shutdown().await;
    fifo.write("still there").await;
    assert!(waiting.await.unwrap().text.starts_with("still there"));
}

#[tokio::test]
async fn what_a_shell_leaves_behind_does_not_hold_its_call_and_ends_with_the_session() {
    let stage = Stage::new();
    let text = stage.bash("sleep 1000 & echo $!").await.text;
    let left = Process::open(text.lines().next().unwrap());
    let text = stage.bash("sleep 1000 > /dev/null 2>&1 & echo $!").await.text;
    let silent = Process::open(text.lines().next().unwrap());
    let text = stage.bash("setsid sleep 1000 & echo $!").await.text;
    let escaped = Process::open(text.lines().next().unwrap());
    assert!(left.is_there() && silent.is_there() && escaped.is_there());
    stage.shells.shutdown().await;
    assert!(left.ends().await && silent.ends().await && escaped.ends().await);
}

#[tokio::test]
async fn what_is_left_behind_can_go_on_printing() {
    let stage = Stage::new();
    let fifo = stage.fifo();
    stage.bash("(cat fifo; seq 1 50000; echo end > fifo) & echo started").await;
    fifo.write("go").await;
    assert_eq!(fifo.read().await, "end\n");
}

#[tokio::test]
async fn a_cancelled_call_ends_its_command_and_all_that_it_started() {
    let mut stage = Stage::new();
    let cancel = CancellationToken::new();
    let command = "trap '' TERM; (trap '' TERM; while :; do sleep 1000; done) & echo $!; wait; sleep 1000";
    let call = stage.begin(&cancel, "bash", json!({"command": command, "description": "d"}));
    let child = stage.announced_process().await;
    cancel.cancel();
    let outcome = call.await.unwrap();
    assert_eq!(outcome.status, ToolStatus::Interrupted);
    assert_eq!(outcome.text, "The execution of this tool, or a previous tool was interrupted.");
    assert!(child.ends().await);
}

#[tokio::test]
async fn a_dropped_call_ends_its_command() {
    let mut stage = Stage::new();
    let command = json!({"command": "echo $$; sleep 1000; true", "description": "d"});
    let call = stage.begin(&CancellationToken::new(), "bash", command);
    let shell = stage.announced_process().await;
    call.abort();
    assert!(shell.ends().await);
}

#[tokio::test]
async fn a_command_can_tidy_up_when_it_is_stopped() {
    let mut stage = Stage::new();
    let command = "trap 'echo tidy > done; exit' TERM; echo $$; while :; do sleep 0.01; done";
    stage.call("bash", json!({"command": command, "mode": "async", "shellId": "s"})).await;
    let shell = stage.announced_process().await;
    assert_eq!(stage.call("stop_bash", json!({"shellId": "s"})).await.text, "<command with id: s stopped>");
    assert!(shell.ends().await);
    assert_eq!(std::fs::read_to_string(stage.dir.path().join("done")).unwrap(), "tidy\n");
}

#[tokio::test]
async fn dropping_the_registry_ends_everything() {
    let mut stage = Stage::new();
    stage.call("bash", json!({"command": "echo $$; sleep 1000; true", "mode": "async"})).await;
    let shell = stage.announced_process().await;
    drop(stage);
    assert!(shell.ends().await);
}

#[test]
fn a_runtime_that_ends_takes_its_commands_with_it() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let mut stage = Stage::new();
    let shell = runtime.block_on(async {
        stage.call("bash", json!({"command": "echo $$; sleep 1000; true", "mode": "async"})).await;
        stage.announced_process().await
    });
    drop(runtime);
    assert!(shell.wait(PATIENCE));
}

#[tokio::test]
async fn arguments_are_checked() {
    let stage = Stage::new();
    let check = async |tool: &str, arguments: Value, expected: &str| {
        let refused = stage.tool(tool).inspect(&input(arguments.clone())).unwrap_err();
        assert_eq!(refused.error.as_deref().unwrap_or(&refused.text), expected);
        assert_eq!(stage.call(tool, arguments).await, refused);
    };
    check("bash", json!({"description": "d"}), "\"command\": Required").await;
    check("bash", json!({"command": ""}), "No command provided. Please supply a valid command to execute.")
        .await;
    check("bash", json!({"command": "a\u{0}b"}), "The command contains a NUL character.").await;
    check("bash", json!({"command": "x", "mode": "bogus"}), "\"mode\": Invalid enum value").await;
    check(
        "bash",
        json!({"command": "x", "initial_wait": "x"}),
        "\"initial_wait\": Expected number, received string",
    )
    .await;
    check(
        "bash",
        json!({"command": "x", "initial_wait": -1}),
        "Invalid initial_wait value -1. Please supply a valid initial_wait value in seconds between 0 and 600.",
    )
    .await;
    check("read_bash", json!({"delay": 1}), "\"shellId\": Required").await;
    check("stop_bash", json!({}), "\"shellId\": Required").await;
}

#[tokio::test]
async fn a_shell_that_cannot_start_is_an_answer() {
    let check = async |change: fn(&mut ShellOptions), expected: &str| {
        let outcome = Stage::with(change).bash("true").await;
        assert_eq!(outcome.status, ToolStatus::Failure);
        assert!(outcome.text.contains(expected), "{}", outcome.text);
    };
    check(|options| options.cwd = "/no/such/place".into(), "in /no/such/place: No such file").await;
    check(|options| options.program = "/no/such/shell".into(), "by /no/such/shell in").await;
    let stage = Stage::new();
    stage.shells.shutdown().await;
    assert!(stage.bash("true").await.text.ends_with("the session is closing"));
}

#[tokio::test]
async fn permission_is_asked_for_what_a_command_would_do() {
    let stage = Stage::new();
    let request = stage.inspect("bash", json!({"command": "ls && git push > log", "description": "Push it"}));
    assert_eq!(
        (request.full_command_text.as_str(), request.intention.as_str()),
        ("ls && git push > log", "Push it")
    );
    let commands: Vec<_> = request.commands.iter().map(|c| (c.identifier.as_str(), c.read_only)).collect();
    assert_eq!(commands, [("ls", true), ("git push", false)]);
    assert!(request.has_write_file_redirection && request.can_offer_session_approval && !request.opaque);
    assert_eq!(request.tool_call_id.as_deref(), Some("c"));
}

#[tokio::test]
async fn permission_is_asked_for_what_is_typed_into_a_shell() {
    let stage = Stage::new();
    stage.call("bash", json!({"command": "bash", "mode": "async", "shellId": "sh"})).await;
    stage.call("bash", json!({"command": "cat", "mode": "async", "shellId": "cat"})).await;
    let identifiers = |id: &str| {
        let request = stage.inspect("write_bash", json!({"shellId": id, "input": "rm x{enter}", "delay": 0}));
        request.commands.iter().map(|command| command.identifier.clone()).collect::<Vec<_>>()
    };
    assert_eq!(identifiers("sh"), ["bash", "rm"]);
    assert_eq!(identifiers("cat"), ["cat"]);
}

#[test]
fn the_family_is_complete() {
    let tools = Stage::new().shells.tools();
    let names: Vec<&str> = tools.iter().map(|tool| tool.spec().name.as_str()).collect();
    assert_eq!(names, ["bash", "read_bash", "write_bash", "stop_bash", "list_bash"]);
}
