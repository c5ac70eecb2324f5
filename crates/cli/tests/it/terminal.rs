//! `hangar` in a terminal of its own: the screen, the session behind it, and the terminal afterwards.

mod extended;
mod work;

use std::time::{Duration, Instant};

use hangar_test_support::process::{Signal, Witness};
use hangar_test_support::pty::{Pty, modes_left_on, signal};
use hangar_test_support::{Invocation, Scratch};

use crate::HANGAR;

/// Far above what any step needs on a loaded machine; reaching it is a failure, never a measurement.
const LIMIT: Duration = Duration::from_secs(60);
const SIZE: (u16, u16) = (80, 24);

/// A program in a terminal with an emulator behind it.
struct Terminal {
    pty: Pty,
    emulator: avt::Terminal,
    /// Everything that was printed.
    raw: Vec<u8>,
}

/// `hangar` with the scripted model, in a directory that is trusted.
fn hangar(scratch: &Scratch) -> Invocation {
    let run = scratch.run(HANGAR).env("TERM", "xterm-256color").without_env("NO_COLOR").without_env("TMUX");
    run.args(["--model", "scripted", "--trust-folder"])
}

impl Terminal {
    fn start(run: Invocation) -> Self {
        let (columns, rows) = SIZE;
        let pty = Pty::start(&run.into_command(), columns, rows);
        let emulator = avt::Terminal::with_scrollback(columns.into(), rows.into(), None).expect("a terminal");
        Self { pty, emulator, raw: Vec::new() }
    }

    /// A session at its first prompt.
    fn open(run: Invocation) -> Self {
        let mut terminal = Self::start(run);
        terminal.wait_for("scripted");
        terminal
    }

    /// Scrollback and screen, long lines whole.
    fn text(&self) -> String {
        self.emulator.primary_screen().text().join("\n")
    }

    /// Everything that is on the screen now.
    fn seen(&self) -> String {
        let lines: Vec<String> = self.emulator.screen().visible_lines().map(avt::Line::text).collect();
        lines.join("\n")
    }

    fn wait_until(&mut self, what: &str, is_there: impl Fn(&Self) -> bool) {
        let until = Instant::now() + LIMIT;
        while !is_there(self) {
            let left = until.saturating_duration_since(Instant::now());
            let came = self.pty.read(left);
            let bytes = self.pty.take_output();
            self.raw.extend_from_slice(&bytes);
            // A character may come in two pieces: only whole ones are shown.
            let whole = String::from_utf8_lossy(&self.raw);
            let shown = self.raw.len() - bytes.len();
            if whole.len() == self.raw.len() && whole.is_char_boundary(shown) {
                self.emulator.feed(&whole[shown..]);
            } else {
                let mut again =
                    avt::Terminal::with_scrollback(SIZE.0.into(), SIZE.1.into(), None).expect("a terminal");
                again.feed(whole.as_ref());
                self.emulator = again;
            }
            assert!(came || is_there(self), "{what} did not come:\n{}\n---\n{}", self.text(), self.seen());
        }
    }

    /// Waits until a text is on the screen or above it.
    fn wait_for(&mut self, text: &str) {
        self.wait_until(text, |terminal| terminal.text().contains(text) || terminal.seen().contains(text));
    }

    fn keys(&mut self, keys: &str) {
        self.pty.type_bytes(keys.as_bytes());
    }

    fn paste(&mut self, text: &str) {
        self.keys(&format!("\x1b[200~{text}\x1b[201~"));
    }

    /// Sends a prompt of several lines.
    fn prompt(&mut self, text: &str) {
        self.paste(text);
        self.keys("\r");
    }

    /// Modes that are on.
    fn modes(&self) -> std::collections::BTreeSet<String> {
        modes_left_on(&String::from_utf8_lossy(&self.raw))
    }

    /// Whether the terminal is as it was before the program.
    fn check_restored(&self) {
        assert_eq!(self.pty.line_settings(), self.pty.before);
        let left = modes_left_on(&String::from_utf8_lossy(&self.raw));
        assert!(left.is_empty(), "left on: {left:?}");
    }

    fn leave(mut self) -> String {
        self.keys("\x04");
        self.wait_for("status 0");
        self.check_restored();
        let text = self.text();
        self.pty.finish();
        text
    }
}

/// Process of the program that runs in a scratch directory.
fn process_in(scratch: &Scratch) -> u32 {
    let work = scratch.work().canonicalize().expect("the work directory");
    let processes = std::fs::read_dir("/proc").expect("the processes").flatten();
    let is_ours = |pid: &u32| {
        let exe = std::fs::read_link(format!("/proc/{pid}/exe"));
        let cwd = std::fs::read_link(format!("/proc/{pid}/cwd"));
        exe.is_ok_and(|exe| exe.ends_with("hangar")) && cwd.is_ok_and(|cwd| cwd == work)
    };
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(is_ours).min().expect("the program runs")
}

#[test]
fn a_prompt_is_answered_and_the_terminal_given_back() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("SAY:Hello **there**, friend.\r");
    terminal.wait_for("Hello there, friend.");
    let text = terminal.leave();
    assert_eq!(text.matches("Hello there, friend.").count(), 1, "{text}");
    assert_eq!(text.matches("❯ SAY:Hello **there**, friend.").count(), 1, "{text}");
}

#[test]
fn a_prompt_of_the_command_line_is_sent() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch).args(["-i", "SAY:As you wish."]));
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nAs you wish."));
    terminal.leave();
}

#[test]
fn a_command_runs_when_a_key_allows_it() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    let made = scratch.work().join("made.txt");
    terminal
        .prompt("TOOL:bash:{\"command\":\"touch made.txt\",\"description\":\"make it\"}\nSAY:It is made.");
    terminal.wait_for("Run this command?");
    assert!(!made.exists());
    terminal.wait_for("a number or enter answers");
    terminal.keys("1");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nIt is made."));
    assert!(made.exists());
    terminal.prompt("TOOL:bash:{\"command\":\"touch other.txt\",\"description\":\"make it\"}\nSAY:never");
    terminal.wait_for("touch other.txt");
    terminal.wait_for("a number or enter answers");
    terminal.keys("\x1b");
    terminal.wait_for("not allowed");
    assert!(!scratch.work().join("other.txt").exists());
    terminal.leave();
}

#[test]
fn a_shell_line_shows_its_output() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("!sleep 1; echo out-of-$((40+2))\r");
    terminal.wait_for("out-of-42");
    let text = terminal.leave();
    assert_eq!(text.matches("out-of-42").count(), 1, "{text}");
}

#[test]
fn ctrl_c_clears_stops_and_leaves() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("a draft");
    terminal.wait_for("a draft");
    terminal.keys("\x03");
    terminal.wait_until("an empty prompt", |terminal| !terminal.seen().contains("a draft"));
    terminal.keys("STREAM:2000:20\r");
    terminal.wait_for("tok3 ");
    terminal.keys("\x03");
    terminal.wait_for("Aborted");
    terminal.wait_until("the status line", |terminal| terminal.seen().contains("scripted"));
    terminal.keys("\x03");
    terminal.wait_for("press it again to leave");
    terminal.keys("\x03");
    terminal.wait_for("status 0");
    terminal.check_restored();
    terminal.pty.finish();
}

#[test]
fn ctrl_z_and_fg_keep_the_draft() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("kept draft");
    terminal.wait_for("kept draft");
    // The shell says that it stopped, and continues it.
    terminal.keys("\x1a");
    terminal.wait_for("status 148");
    terminal.wait_until("the draft", |terminal| {
        let text = terminal.text();
        text.split_once("status 148").is_some_and(|(_, after)| after.contains("kept draft"))
    });
    terminal.keys("\x03");
    terminal.wait_until("an empty prompt", |terminal| !terminal.seen().contains("kept draft"));
    terminal.leave();
}

#[test]
fn a_signal_ends_it_and_the_terminal_is_as_before() {
    for (number, status) in
        [(Signal::TERM, "status 143"), (Signal::HUP, "status 129"), (Signal::INT, "status 130")]
    {
        let scratch = Scratch::new();
        let mut terminal = Terminal::open(hangar(&scratch));
        terminal.keys("STREAM:2000:20\r");
        terminal.wait_for("tok3 ");
        signal(process_in(&scratch), number);
        terminal.wait_for(status);
        terminal.check_restored();
        terminal.pty.finish();
    }
}

#[test]
fn a_closed_terminal_ends_it() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("SAY:said before\r");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nsaid before"));
    let process = Witness::of(process_in(&scratch).try_into().expect("a process id"));
    terminal.pty.hang_up();
    assert!(process.is_gone_within(LIMIT));
    let mut again = Terminal::open(hangar(&scratch).arg("--continue"));
    again.wait_until("the conversation", |terminal| terminal.text().contains("\nsaid before"));
    again.leave();
}

#[test]
fn a_killed_session_is_continued_where_it_was() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("SAY:first answer\r");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nfirst answer"));
    terminal.prompt("TOOL:bash:{\"command\":\"ls /etc/hostname\",\"description\":\"look\"}\nSAY:never");
    terminal.wait_for("Run this command?");
    let before = terminal.text();
    signal(process_in(&scratch), Signal::KILL);
    terminal.wait_for("status 137");
    terminal.pty.finish();
    let mut again = Terminal::open(hangar(&scratch).arg("--continue"));
    again.wait_until("the conversation", |terminal| terminal.text().contains("\nfirst answer"));
    let prompt = |text: &str| {
        text.lines().filter(|line| line.starts_with("❯ SAY")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(prompt(&again.text()), prompt(&before));
    again.keys("SAY:second answer\r");
    again.wait_until("the answer", |terminal| terminal.text().contains("\nsecond answer"));
    again.leave();
}

#[test]
fn an_answer_that_was_cut_off_by_a_kill_is_told_of() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    assert!(!terminal.modes().contains("?1004"), "the focus is reported at rest");
    terminal.keys("STREAM:2000:20\r");
    terminal.wait_for("tok3 ");
    assert!(terminal.modes().contains("?1004"), "the focus is not reported while the agent works");
    signal(process_in(&scratch), Signal::KILL);
    terminal.wait_for("status 137");
    terminal.pty.finish();
    let mut again = Terminal::open(hangar(&scratch).arg("--continue"));
    again.wait_for("The answer to the last prompt was cut off");
    again.keys("SAY:second answer\r");
    again.wait_until("the answer", |terminal| terminal.text().contains("\nsecond answer"));
    again.wait_until("the end of the reports", |terminal| !terminal.modes().contains("?1004"));
    again.leave();
    // Once it is answered nothing is said of it.
    let mut again = Terminal::open(hangar(&scratch).arg("--continue"));
    again.wait_until("the conversation", |terminal| terminal.text().contains("\nsecond answer"));
    assert!(!again.text().contains("cut off"));
    again.leave();
}

#[test]
fn a_prompt_comes_back_when_it_is_stopped_before_its_answer() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("DELAY:600000\r");
    terminal.wait_for("working");
    terminal.keys("\x1b");
    terminal.wait_for("esc again stops");
    terminal.keys("\x1b");
    terminal.wait_for("Aborted");
    terminal.wait_until("the prompt", |terminal| terminal.seen().matches("❯ DELAY:600000").count() == 2);
    terminal.keys("\x03");
    terminal.leave();
}

#[test]
fn ten_thousand_lines_are_shown_by_their_ends() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch).arg("--allow-all-tools"));
    terminal.prompt("TOOL:bash:{\"command\":\"seq 10000\",\"description\":\"count\"}\nSAY:Counted.");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nCounted."));
    let text = terminal.leave();
    // The model was shown the ends; where the rest is, is told.
    let told =
        text.lines().find(|line| line.contains(" lines, all 47.7 KB in ")).expect("the place of the rest");
    let path = told.split(" in ").last().expect("a path").trim();
    let saved = std::fs::read_to_string(path).expect("the whole output");
    assert_eq!(saved.lines().filter(|line| line.trim().parse::<u32>().is_ok()).count(), 10_000);
    assert!(text.lines().count() < 60, "{text}");
}

#[test]
fn a_large_paste_is_a_placeholder_and_loses_no_key() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    let lines = "a line of the paste that is fifty bytes long, yes\n".repeat(4_000);
    terminal.paste(&lines);
    terminal.keys("xyz");
    terminal.wait_until("the keys", |terminal| {
        terminal.seen().contains("[Paste #1: ") && terminal.seen().contains("] xyz")
            || terminal.seen().contains("]xyz")
    });
    terminal.keys("\x03");
    terminal.wait_until("an empty prompt", |terminal| !terminal.seen().contains("[Paste"));
    terminal.leave();
}

#[test]
fn a_session_is_picked_to_be_resumed() {
    let scratch = Scratch::new();
    // One in which nothing was said is not listed.
    Terminal::open(hangar(&scratch)).leave();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("SAY:from the past\r");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nfrom the past"));
    terminal.leave();
    let mut again = Terminal::start(hangar(&scratch).arg("--resume"));
    again.wait_for("Sessions (1)");
    again.keys("\r");
    again.wait_until("the conversation", |terminal| terminal.text().contains("\nfrom the past"));
    again.wait_until("the status line", |terminal| terminal.seen().contains("scripted"));
    again.leave();
}

#[test]
fn a_terminal_that_only_prints_has_plain_lines() {
    let scratch = Scratch::new();
    for run in [hangar(&scratch).env("TERM", "dumb"), hangar(&scratch).arg("--screen-reader")] {
        let mut terminal = Terminal::start(run);
        terminal.wait_for("> ");
        terminal.keys("SAY:plain **words**\n");
        terminal.wait_for("\nplain words");
        // A picker is a numbered list that a number answers.
        terminal.keys("/theme\n");
        terminal.wait_for("2. ansi, the 16 colours");
        terminal.wait_for("A number picks");
        terminal.keys("4\n/settings\n");
        terminal.wait_for("theme: light");
        terminal.keys("TOOL:bash:{\"command\":\"touch made\",\"description\":\"make\"}\n");
        terminal.wait_for("a number, then enter; an empty line asks again");
        // An empty line approves nothing; the question is printed again.
        terminal.keys("\n");
        let asked = "a number, then enter; an empty line asks again";
        terminal.wait_until("the question again", |screen| screen.text().matches(asked).count() == 2);
        terminal.keys("3\n");
        terminal.wait_for("the next line is the reason");
        terminal.keys("not now\n");
        terminal.wait_for("not allowed: not now");
        assert!(!scratch.work().join("made").exists(), "the command ran");
        terminal.keys("/exit\n");
        terminal.wait_for("status 0");
        assert!(!terminal.raw.contains(&0x1b), "an escape sequence was printed");
        terminal.check_restored();
        terminal.pty.finish();
    }
}

#[test]
fn trust_is_asked_for_first() {
    let scratch = Scratch::new();
    let run = scratch.run(HANGAR).env("TERM", "xterm-256color").args(["--model", "scripted"]);
    let mut terminal = Terminal::start(run);
    terminal.wait_for("Do you trust this directory?");
    terminal.wait_for("a number or enter answers");
    terminal.keys("3");
    terminal.wait_for("status 0");
    terminal.check_restored();
    terminal.pty.finish();
}

#[test]
fn a_person_who_picks_no_session_gets_a_new_one() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::start(hangar(&scratch).arg("--resume"));
    terminal.wait_for("nothing here");
    terminal.keys("\x1b");
    terminal.wait_until("the status line", |terminal| terminal.seen().contains("scripted"));
    terminal.keys("SAY:a fresh start\r");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\na fresh start"));
    terminal.leave();
}

#[test]
fn hooks_are_listed_with_their_command_and_file() {
    let scratch = Scratch::new();
    scratch.file(
        ".github/hooks/check.json",
        r#"{"version":1,"hooks":{"preToolUse":[{"type":"command","bash":"./check.sh --strict","matcher":"bash"}]}}"#,
    );
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("/hooks\r");
    terminal.wait_for("./check.sh --strict");
    let seen = terminal.seen();
    for text in ["preToolUse  bash", ".github/hooks/check.json (of the project)"] {
        assert!(seen.contains(text), "{seen}");
    }
    assert!(!seen.contains("not run"), "{seen}");
    terminal.keys("q");
    terminal.leave();
}

#[test]
fn a_model_that_nothing_answers_to_is_refused() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("/model nosuch\r");
    terminal.wait_for("✗ no model provider is configured");
    terminal.keys("SAY:still here\r");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nstill here"));
    assert!(terminal.seen().contains("scripted · "), "{}", terminal.seen());
    terminal.leave();
}

#[test]
fn a_session_is_exported_as_a_page() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("SAY:Use **bold** and <b>tags</b>.\r");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nUse bold and"));
    terminal.keys("/export html page.html\r");
    terminal.wait_for("The transcript is in");
    let page = std::fs::read_to_string(scratch.work().join("page.html")).expect("the page");
    assert!(page.contains("<p>Use <strong>bold</strong> and &lt;b&gt;tags&lt;/b&gt;.</p>"), "{page}");
    terminal.leave();
}

#[test]
fn a_rewind_is_told_of_once() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("SAY:the answer\r");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nthe answer"));
    terminal.wait_until("the end", |terminal| !terminal.seen().contains("working"));
    terminal.keys("/rewind\r");
    terminal.wait_for("Go back to (1)");
    terminal.keys("\r");
    terminal.wait_for("the conversation only");
    terminal.keys("\r");
    terminal.wait_for("Rewound to an earlier point");
    terminal.wait_until("the prompt", |terminal| terminal.seen().matches("❯ SAY:the answer").count() == 2);
    terminal.keys("\x03");
    let text = terminal.leave();
    assert_eq!(text.matches("Rewound").count(), 1, "{text}");
}

/// Last word of the answer that is on the screen.
fn last_token(text: &str) -> String {
    let token = text.split_whitespace().rfind(|word| word.starts_with("tok"));
    token.expect("a token").to_owned()
}

/// Prompts, answers and reasons of the log of the one session.
fn reasons(scratch: &Scratch) -> Vec<String> {
    let session = scratch.sessions().pop().expect("a session");
    let log = scratch.log(&session);
    let events = log.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    let aborts = events.filter(|event| event["type"] == "abort");
    aborts.map(|event| event["data"]["reason"].as_str().unwrap_or_default().to_owned()).collect()
}

/// The part of an answer that was on the screen when it was cut off is there after a resume, and the session goes on.
fn check_kept(scratch: &Scratch, shown: &str) {
    let mut again = Terminal::open(hangar(scratch).arg("--continue"));
    again.wait_until("the cut answer", |terminal| {
        terminal.text().split_whitespace().any(|word| word == shown)
    });
    let text = again.text();
    assert_eq!(text.matches("tok0 tok1 ").count(), 1, "{text}");
    again.keys("SAY:second answer\r");
    again.wait_until("the answer", |terminal| terminal.text().contains("\nsecond answer"));
    again.leave();
}

#[test]
fn an_answer_that_a_key_cut_off_is_in_the_log() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("STREAM:2000:20\r");
    terminal.wait_for("tok9 ");
    terminal.keys("\x1b\x1b");
    terminal.wait_for("Aborted");
    let shown = last_token(&terminal.text());
    terminal.leave();
    assert_eq!(reasons(&scratch), ["user_initiated"]);
    check_kept(&scratch, &shown);
}

#[test]
fn an_answer_that_a_signal_cut_off_is_in_the_log() {
    for (number, status) in [(Signal::TERM, "status 143"), (Signal::HUP, "status 129")] {
        let scratch = Scratch::new();
        let mut terminal = Terminal::open(hangar(&scratch));
        terminal.keys("STREAM:2000:20\r");
        terminal.wait_for("tok9 ");
        signal(process_in(&scratch), number);
        terminal.wait_for(status);
        let shown = last_token(&terminal.text());
        terminal.pty.finish();
        assert_eq!(reasons(&scratch), ["remote_command"]);
        check_kept(&scratch, &shown);
    }
}

#[test]
fn an_answer_that_a_closed_terminal_cut_off_is_in_the_log() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("STREAM:2000:20\r");
    terminal.wait_for("tok9 ");
    let process = Witness::of(process_in(&scratch).try_into().expect("a process id"));
    terminal.pty.hang_up();
    assert!(process.is_gone_within(LIMIT));
    assert_eq!(reasons(&scratch), ["remote_command"]);
    check_kept(&scratch, "tok9");
}

#[test]
fn of_an_answer_that_a_kill_cut_off_only_the_end_is_lost() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("STREAM:2000:20\r");
    // A second after this one it has been stored.
    terminal.wait_for("tok9 ");
    terminal.wait_until("more", |terminal| terminal.text().split_whitespace().any(|word| word == "tok99"));
    signal(process_in(&scratch), Signal::KILL);
    terminal.wait_for("status 137");
    terminal.pty.finish();
    check_kept(&scratch, "tok9");
    let session = scratch.sessions().pop().expect("a session");
    let log = scratch.log(&session);
    let cut: Vec<&str> = log.lines().filter(|line| line.contains("hangar.answer_cut")).collect();
    assert_eq!(cut.len(), 1, "{log}");
    assert!(!scratch.state().join("session-state").join(&session).join("unfinished.jsonl").exists());
}

#[test]
fn a_shell_line_is_shown_while_it_runs_and_a_key_stops_it() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    for stop in ["\x1b", "\x03"] {
        terminal.keys("!echo live-$((40+2)); sleep 600\r");
        terminal.wait_until("the output", |terminal| {
            let seen = terminal.seen();
            seen.contains("live-42") && seen.contains("running a command")
        });
        terminal.wait_for("running a command 1s");
        terminal.keys(stop);
        terminal.wait_until("its end", |terminal| !terminal.seen().contains("running a command"));
    }
    let text = terminal.leave();
    assert_eq!(text.matches("live-42").count(), 2, "{text}");
}

#[test]
fn the_output_of_a_shell_line_is_printed_behind_a_prompt_that_came_meanwhile() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("!while [ ! -e go ]; do sleep 0.05; done; echo out-of-$((40+2))\r");
    terminal.wait_for("running a command");
    terminal.keys("SAY:Meanwhile.\r");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nMeanwhile."));
    scratch.file("go", "");
    terminal.wait_for("out-of-42");
    terminal.wait_until("its end", |terminal| !terminal.seen().contains("running a command"));
    let text = terminal.leave();
    assert_eq!(text.matches("out-of-42").count(), 1, "{text}");
}

#[test]
fn a_finished_sub_agent_is_read_in_its_view() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch).arg("--allow-all-tools"));
    terminal.prompt(
        "TOOL:task:{\"description\":\"look\",\"agent_type\":\"general-purpose\",\"name\":\"looker\",\"prompt\":\"SAY:words-of-the-agent\",\"mode\":\"sync\"}\nSAY:It was asked.",
    );
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nIt was asked."));
    terminal.keys("/tasks\r");
    terminal.wait_until("the list", |terminal| {
        let seen = terminal.seen();
        seen.contains("enter picks") && seen.contains("looker")
    });
    terminal.keys("\r");
    terminal.wait_until("its transcript", |terminal| {
        let seen = terminal.seen();
        seen.contains("Sub-agent") && seen.contains("words-of-the-agent")
    });
    terminal.keys("q");
    terminal.leave();
}

#[test]
fn comments_on_a_diff_become_the_next_message() {
    let scratch = Scratch::new();
    scratch.file("a.txt", "one\n");
    for line in ["init -q", "add .", "-c user.name=a -c user.email=a@b commit -qm one"] {
        let done = scratch.run("git").args(line.split(' ')).finish();
        assert_eq!(done.exit, 0);
    }
    scratch.file("a.txt", "one\ntwo\n");
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("/diff\r");
    terminal.wait_for("c comments");
    terminal.keys("jcwhy-two\r");
    terminal.wait_for("comment: why-two");
    terminal.keys("q");
    terminal.wait_until("the draft", |terminal| terminal.seen().contains("a.txt:2 `+two`: why-two"));
    terminal.keys("\x03");
    terminal.leave();
}

#[test]
fn a_session_sends_itself_a_prompt_later() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("/after 5s SAY:it is later\r");
    terminal.wait_for("once, after 5s: SAY:it is later");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nit is later"));
    // It was sent once.
    terminal.keys("/every\r");
    terminal.wait_for("No prompts are scheduled.");
    terminal.leave();
}

#[test]
fn a_scheduled_prompt_outlives_a_kill() {
    let scratch = Scratch::new();
    let mut terminal = Terminal::open(hangar(&scratch));
    terminal.keys("SAY:said before\r");
    terminal.wait_until("the answer", |terminal| terminal.text().contains("\nsaid before"));
    terminal.keys("/after 5s SAY:it is later\r");
    terminal.wait_for("once, after 5s: SAY:it is later");
    terminal.keys("/every 10m SAY:never\r");
    terminal.wait_for("every 10m: SAY:never");
    terminal.keys("/every 20m SAY:stopped\r");
    terminal.wait_for("/every stop 3 ends it");
    terminal.keys("/every stop 3\r");
    terminal.wait_for("Stopped: every 20m");
    signal(process_in(&scratch), Signal::KILL);
    terminal.wait_for("status 137");
    terminal.pty.finish();
    let mut again = Terminal::open(hangar(&scratch).arg("--continue"));
    again.wait_for("This session has scheduled prompts:");
    // It was killed before the time or after it: both are sent, once.
    again.wait_until("the answer", |terminal| terminal.text().contains("\nit is later"));
    again.keys("/every\r");
    again.wait_until("the list", |terminal| terminal.text().matches("every 10m: SAY:never").count() > 1);
    assert!(!again.text().contains("20m"), "{}", again.text());
    again.leave();
    let log = scratch.log(&scratch.sessions().pop().expect("a session"));
    assert_eq!(log.matches(r#""source":"schedule-1""#).count(), 1, "{log}");
}
