//! The terminal over every agent, with the real programs on a scripted model: the same claims of all of them.

use std::process::Command;
use std::time::{Duration, Instant};

use hangar_test_support::process::Witness;
use hangar_test_support::pty::{self, LineSettings, Pty};
use hangar_test_support::{Finished, Scratch, Signal};
use rustix::process::Pid;
use serde_json::{Value, json};

use super::commands::with_codex;
use super::conformance::{Bench, ENDLESS, PATIENCE, running_command};
use super::{CODEX_PONG, configure};
use crate::HANGAR;

/// Time in which a process that was told to end has ended.
const END: Duration = Duration::from_secs(20);
const ESCAPE: &[u8] = b"\x1b";
/// A word of every dialog that takes keys.
const ARMED: &str = "number";
const CTRL_D: &[u8] = b"\x04";

/// An open view, and everything that it has printed.
struct View {
    pty: Pty,
    seen: String,
    before: LineSettings,
}

impl View {
    /// Opens the view and trusts the directory.
    fn open(scratch: &Scratch, args: &[&str]) -> Self {
        let mut view = Self::start(scratch, args);
        view.answer("trust");
        view
    }

    fn start(scratch: &Scratch, args: &[&str]) -> Self {
        // The number of the process is in a file before it is Hangar.
        let mut command: Command = scratch.command("sh");
        command
            .env("TERM", "xterm-256color")
            .args(["-c", "echo $$ > hangar.pid; exec \"$@\"", "sh", HANGAR])
            .args(args);
        let pty = Pty::start(&command, 100, 30);
        let before = pty.line_settings();
        Self { pty, seen: String::new(), before }
    }

    /// Opens a session with the bench's agent.
    fn of(bench: &Bench, more: &[&str]) -> Self {
        let rehearse = format!("--rehearse={}", bench.model.url());
        let mut args = vec!["run", "--runtime", bench.subject.name, &rehearse];
        args.extend(more);
        Self::open(&bench.scratch, &args)
    }

    fn new(bench: &Bench) -> Self {
        Self::of(bench, &[])
    }

    fn wait_for(&mut self, text: &str) {
        let seen = self.pty.wait_for(text);
        self.seen.push_str(&seen);
    }

    /// Answers a dialog that says a word with its first answer, once it takes keys.
    fn answer(&mut self, word: &str) {
        self.wait_for(word);
        self.wait_for(ARMED);
        self.pty.type_bytes(b"1");
    }

    fn prompt(&mut self, text: &str) {
        self.pty.type_bytes(text.as_bytes());
        self.pty.type_bytes(b"\r");
    }

    /// Has the agent run a command, and allows it if the agent asks.
    fn command(&mut self, bench: &Bench, command: &str) {
        self.prompt(&bench.command(command));
        if bench.can("permissionCallbacks") {
            self.answer("instead");
        }
    }

    /// Leaves, also if the agent has not quite ended its turn, and looks at what is left of it.
    fn leave(mut self, scratch: &Scratch) {
        let children = Witness::all_below(pid(scratch));
        self.pty.type_bytes(CTRL_D);
        let (which, seen) = self.pty.wait_for_any(&["status 0", ARMED]);
        self.seen.push_str(&seen);
        if which == 1 {
            self.pty.type_bytes(b"1");
            self.wait_for("status 0");
        }
        assert!(children.iter().all(|child| child.is_gone_within(END)), "a process outlived the view");
        assert_eq!(self.pty.line_settings(), self.before);
        assert_eq!(pty::modes_left_on(&self.seen), std::collections::BTreeSet::new());
        self.pty.finish();
    }
}

/// Process of the view.
fn pid(scratch: &Scratch) -> Pid {
    let text = std::fs::read_to_string(scratch.work().join("hangar.pid")).expect("a file");
    Pid::from_raw(text.trim().parse().expect("a number")).expect("a process id")
}

/// The log of the only session, once something is true of it.
fn log_once(scratch: &Scratch, what: &str, is_so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    let begun = Instant::now();
    // The log is the only sign that all agents give.
    loop {
        let log = match scratch.sessions().first() {
            Some(id) => whole_lines(&scratch.log(id)),
            None => Vec::new(),
        };
        if is_so(&log) {
            return log;
        }
        assert!(begun.elapsed() < PATIENCE, "{what} is not in the log: {log:#?}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn whole_lines(text: &str) -> Vec<Value> {
    let lines = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    lines.map(|line| serde_json::from_str(line).expect("a log holds JSON")).collect()
}

fn answers_after(log: &[Value], kind: &str) -> usize {
    let from = log.iter().rposition(|event| event["type"] == kind).unwrap_or(log.len());
    Finished::of_type(&log[from..], "assistant.message").len()
}

fn assert_whole(log: &[Value]) {
    assert_eq!(log[0]["type"], "session.start");
    assert_eq!(log.last().expect("an event")["type"], "session.shutdown");
    for pair in log.windows(2) {
        assert_eq!(pair[1]["parentId"], pair[0]["id"], "each event follows the one before it: {}", pair[1]);
    }
}

fn a_person_talks_to_it(bench: &Bench) {
    let mut view = View::new(bench);
    view.prompt("hello");
    view.wait_for("pong");
    view.command(bench, "echo made > made.txt");
    log_once(&bench.scratch, "the answer after the tool", |log| {
        bench.scratch.work().join("made.txt").exists() && answers_after(log, "user.message") > 0
    });

    view.command(bench, ENDLESS);
    let command = running_command(bench);
    view.pty.type_bytes(ESCAPE);
    view.wait_for("again");
    view.pty.type_bytes(ESCAPE);
    assert!(command.is_gone_within(END), "the command outlived its turn");
    log_once(&bench.scratch, "the abort", |log| !Finished::of_type(log, "abort").is_empty());
    view.prompt("hello again");
    log_once(&bench.scratch, "the answer after the abort", |log| answers_after(log, "abort") > 0);
    view.leave(&bench.scratch);

    let sessions = bench.scratch.sessions();
    assert_eq!(sessions.len(), 1);
    let log = bench.log(&sessions[0]);
    assert_whole(&log);
    let prompts = Finished::of_type(&log, "user.message");
    assert_eq!(prompts.len(), 4, "{prompts:#?}");
    if bench.can("permissionCallbacks") {
        assert_eq!(Finished::of_type(&log, "permission.completed").len(), 2);
    }
}

fn a_session_goes_on(bench: &Bench) {
    if !bench.can("resume") {
        return;
    }
    let mut view = View::new(bench);
    view.prompt("hello");
    view.wait_for("pong");
    log_once(&bench.scratch, "the answer", |log| answers_after(log, "user.message") > 0);
    view.leave(&bench.scratch);
    let id = bench.scratch.sessions()[0].clone();

    let mut view = View::of(bench, &[&format!("--resume={id}")]);
    // The history is shown again, with the agent's name in the status line.
    view.wait_for("pong");
    if !bench.can("ownLog") {
        let label = bench.record["label"].as_str().expect("a label");
        view.wait_for(label.split(' ').next().expect("a word"));
    }
    view.prompt("hello again");
    let log = log_once(&bench.scratch, "the second answer", |log| answers_after(log, "session.resume") > 0);
    assert_eq!(Finished::of_type(&log, "user.message").len(), 2);
    view.leave(&bench.scratch);
    assert_eq!(bench.scratch.sessions(), std::slice::from_ref(&id));
    assert_whole(&bench.log(&id));
}

fn another_terminal_joins_it(bench: &Bench) {
    let mut view = View::new(bench);
    view.prompt("hello");
    view.wait_for("pong");
    log_once(&bench.scratch, "the answer", |log| answers_after(log, "user.message") > 0);
    let id = bench.scratch.sessions()[0].clone();
    let mut command: Command = bench.scratch.command(HANGAR);
    command.env("TERM", "xterm-256color").env("NO_COLOR", "1").args(["attach", &id]);
    let mut second = Pty::start(&command, 100, 30);
    // What was said is shown, and what is said there is heard here.
    second.wait_for("pong");
    second.wait_for("attached to a session in");
    second.type_bytes(b"hello from the second\r");
    log_once(&bench.scratch, "the second answer", |log| {
        Finished::of_type(log, "user.message").len() == 2 && answers_after(log, "user.message") > 0
    });
    view.wait_for("hello from the second");
    if bench.can("permissionCallbacks") {
        // A question is asked in both, and answered in one.
        view.prompt(&bench.command("echo made > made.txt"));
        view.wait_for("instead");
        second.wait_for("instead");
        second.wait_for(ARMED);
        second.type_bytes(b"1");
        log_once(&bench.scratch, "the answer after the tool", |log| {
            bench.scratch.work().join("made.txt").exists() && answers_after(log, "user.message") > 0
        });
    }
    second.type_bytes(CTRL_D);
    second.wait_for("goes on; see it with hangar attach");
    second.wait_for("status 0");
    second.finish();
    view.prompt("still here");
    log_once(&bench.scratch, "the last answer", |log| {
        let prompts = Finished::of_type(log, "user.message");
        prompts.last().is_some_and(|prompt| prompt["data"]["content"] == "still here")
            && answers_after(log, "user.message") > 0
    });
    view.leave(&bench.scratch);
    assert_whole(&bench.log(&id));
}

/// Opens a view whose agent runs a command, and everything that runs below it.
fn busy(bench: &Bench) -> (View, Vec<Witness>) {
    let mut view = View::new(bench);
    view.command(bench, ENDLESS);
    let mut running = vec![running_command(bench)];
    running.extend(Witness::all_below(pid(&bench.scratch)));
    (view, running)
}

fn a_closed_terminal_ends_it(bench: &Bench) {
    let (view, running) = busy(bench);
    view.pty.hang_up();
    assert!(running.iter().all(|process| process.is_gone_within(END)), "a process outlived its terminal");
    let log =
        log_once(&bench.scratch, "the end", |log| !Finished::of_type(log, "session.shutdown").is_empty());
    assert_whole(&log);
}

fn a_killed_view_leaves_nothing(bench: &Bench) {
    let (mut view, running) = busy(bench);
    rustix::process::kill_process(pid(&bench.scratch), Signal::KILL).expect("a signal");
    view.wait_for("status 137");
    assert!(running.iter().all(|process| process.is_gone_within(END)), "a process outlived Hangar");
    view.pty.finish();
}

/// A session of another agent is listed with its name, and opened with it by a plain `hangar`.
#[test]
fn sessions_of_other_agents_are_picked() {
    let bench = Bench::of("hangar-acp");
    let mut view = View::new(&bench);
    view.prompt("hello");
    view.wait_for("pong");
    log_once(&bench.scratch, "the answer", |log| answers_after(log, "user.message") > 0);
    view.leave(&bench.scratch);

    // Nothing is rehearsed now, so the agent needs a model of its own.
    let other_home = bench.scratch.root().join("other-home");
    let acp = json!([HANGAR, "--acp", "--model", "scripted"]);
    let agent =
        format!("[runtimes.hangar-acp]\nacp = {acp}\nenv = {{ HANGAR_HOME = {} }}\n", json!(other_home));
    configure(&bench.scratch, &agent);
    let mut view = View::start(&bench.scratch, &["--resume"]);
    view.wait_for("hangar-acp");
    view.pty.type_bytes(b"\r");
    view.answer("trust");
    view.wait_for("pong");
    view.wait_for("hangar-acp");
    view.leave(&bench.scratch);
    let log = bench.log(&bench.scratch.sessions()[0]);
    assert_eq!(Finished::of_type(&log, "session.resume").len(), 1);
    assert_whole(&log);
}

#[test]
fn a_prompt_waits_for_its_turn_and_can_be_taken_back() {
    let waits = "touch began; while [ ! -e go ]; do sleep 0.05; done";
    let scratch = with_codex(&format!("{waits}\n{CODEX_PONG}"), "");
    let mut view = View::open(&scratch, &["run", "--runtime", "codex", "--rehearse"]);
    view.prompt("the first");
    log_once(&scratch, "the agent", |_| scratch.work().join("began").exists());
    view.prompt("the second");
    view.wait_for("next: the second");
    view.prompt("the third");
    view.wait_for("next: the third");
    // It comes back into the draft, and goes with it.
    view.pty.type_bytes(b"\x1b[A");
    view.pty.type_bytes(b"\x03");
    view.prompt("/usage");
    view.wait_for("1 prompt,");
    scratch.file("go", "");
    let log =
        log_once(&scratch, "the second answer", |log| Finished::of_type(log, "assistant.message").len() == 2);
    let prompts = Finished::of_type(&log, "user.message");
    let prompts: Vec<&str> = prompts.iter().filter_map(|event| event["data"]["content"].as_str()).collect();
    assert_eq!(prompts, ["the first", "the second"]);
    view.leave(&scratch);
    assert_whole(&log_once(&scratch, "the end", |log| {
        !Finished::of_type(log, "session.shutdown").is_empty()
    }));
}

#[test]
fn a_stopped_turn_gives_the_queue_back_to_the_draft() {
    let waits = "touch began; while [ ! -e go ]; do sleep 0.05; done";
    let scratch = with_codex(&format!("{waits}\n{CODEX_PONG}"), "");
    let mut view = View::open(&scratch, &["run", "--runtime", "codex", "--rehearse"]);
    view.prompt("the first");
    log_once(&scratch, "the agent", |_| scratch.work().join("began").exists());
    view.prompt("the second");
    view.wait_for("next: the second");
    view.pty.type_bytes(ESCAPE);
    view.wait_for("again");
    view.pty.type_bytes(ESCAPE);
    log_once(&scratch, "the abort", |log| !Finished::of_type(log, "abort").is_empty());
    scratch.file("go", "");
    view.prompt(", and more");
    let log = log_once(&scratch, "the answer", |log| answers_after(log, "abort") > 0);
    let prompts = Finished::of_type(&log, "user.message");
    let prompts: Vec<&str> = prompts.iter().filter_map(|event| event["data"]["content"].as_str()).collect();
    // The first had no answer yet, so it comes back too.
    assert_eq!(prompts, ["the first", "the first\nthe second, and more"]);
    view.leave(&scratch);
}

#[test]
fn a_view_in_which_nothing_is_said_leaves_no_session() {
    let scratch = with_codex(CODEX_PONG, "");
    let mut view = View::open(&scratch, &["run", "--runtime", "codex", "--rehearse"]);
    view.prompt("/model");
    view.wait_for("offer");
    view.pty.type_bytes(ESCAPE);
    // The picker is on a screen of its own.
    view.wait_for("?1049l");
    view.leave(&scratch);
    assert!(scratch.sessions().is_empty());
}

macro_rules! interactive {
    ($( $module:ident = $name:literal; )*) => { $(
        mod $module {
            use super::Bench;
            interactive!(@claims $name:
                a_person_talks_to_it, a_session_goes_on, another_terminal_joins_it, a_closed_terminal_ends_it,
                a_killed_view_leaves_nothing);
        }
    )* };
    (@claims $name:literal: $($claim:ident),*) => { $(
        #[test]
        fn $claim() {
            super::$claim(&Bench::of($name));
        }
    )* };
}

interactive! {
    native = "native";
    copilot = "copilot";
    claude = "claude";
    codex = "codex";
    opencode = "opencode";
    hangar_acp = "hangar-acp";
    copilot_acp = "copilot-acp";
}
