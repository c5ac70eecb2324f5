//! A session in tmux that is resized while text streams: nothing is lost, nothing doubled, the shell's lines stay.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use hangar_test_support::Scratch;

use crate::HANGAR;

/// Far above what any run needs on a loaded machine; reaching it is a failure, never a measurement.
const LIMIT: Duration = Duration::from_secs(120);
const SHELL_LINES: usize = 80;
const TOKENS: usize = 600;

/// A tmux server of its own.
struct Tmux {
    socket: String,
}

impl Tmux {
    fn start(scratch: &Scratch) -> Self {
        let socket = scratch.tmp().join("tmux").display().to_string();
        let tmux = Self { socket };
        let shell = "PS1='$ ' exec sh";
        tmux.run(&[
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "30",
            "-c",
            path(&scratch.work()),
            shell,
        ]);
        tmux.run(&["set-option", "-g", "history-limit", "50000"]);
        tmux
    }

    fn run(&self, args: &[&str]) -> String {
        let done = Command::new("tmux").arg("-S").arg(&self.socket).args(args).env_remove("TMUX").output();
        let done = done.expect("tmux is installed");
        assert!(done.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    fn keys(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
        self.run(&["send-keys", "Enter"]);
    }

    /// Scrollback and screen, with wrapped lines joined.
    fn text(&self) -> String {
        self.run(&["capture-pane", "-p", "-J", "-S", "-"])
    }

    fn wait_for(&self, what: &str, is_there: impl Fn(&str) -> bool) -> String {
        let until = Instant::now() + LIMIT;
        loop {
            let text = self.text();
            if is_there(&text) {
                return text;
            }
            assert!(Instant::now() < until, "{what} did not come:\n{text}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        drop(Command::new("tmux").arg("-S").arg(&self.socket).arg("kill-server").output());
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("a path of text")
}

/// Streams tokens, below which a draft is typed, while the window takes one size after the other.
fn check(draft: &str, sizes: &[(u16, u16)], pause: Duration) {
    let scratch = Scratch::new();
    let tmux = Tmux::start(&scratch);
    tmux.keys(&format!("clear; for i in $(seq {SHELL_LINES}); do echo shell-line-$i.; done"));
    tmux.wait_for("the shell's lines", |text| text.contains(&format!("\nshell-line-{SHELL_LINES}.")));
    let home = scratch.home();
    let state = scratch.state();
    tmux.keys(&format!(
        "HOME={} HANGAR_HOME={} {HANGAR} --model scripted --trust-folder -i STREAM:{TOKENS}:5",
        path(&home),
        path(&state),
    ));
    tmux.wait_for("the first token", |text| text.contains("tok0 "));
    tmux.run(&["send-keys", "-l", draft]);
    let typed = draft.split_whitespace().next_back().unwrap_or_default();
    tmux.wait_for("the draft", |text| text.contains(typed));
    for (columns, rows) in sizes {
        tmux.run(&["resize-window", "-x", &columns.to_string(), "-y", &rows.to_string()]);
        std::thread::sleep(pause);
    }
    let last = format!("tok{}", TOKENS - 1);
    let text =
        tmux.wait_for("the last token", |text| text.contains(&last) && !text.contains("esc esc stops"));
    let count = |wanted: &str| text.split_whitespace().filter(|word| *word == wanted).count();
    let (mut lost, mut doubled) = (Vec::new(), Vec::new());
    for token in (0..TOKENS).map(|token| format!("tok{token}")) {
        match count(&token) {
            0 => lost.push(token),
            1 => {}
            _ => doubled.push(token),
        }
    }
    let kept = (1..=SHELL_LINES).filter(|line| count(&format!("shell-line-{line}.")) == 1).count();
    assert!(
        lost.is_empty() && doubled.is_empty() && kept == SHELL_LINES,
        "lost {lost:?}, doubled {doubled:?}, {kept} lines kept\n{text}"
    );
}

#[test]
fn five_resizes_lose_and_double_nothing() {
    let sizes = [(60, 30), (120, 20), (45, 35), (90, 24), (100, 30)];
    check("short", &sizes, Duration::from_millis(400));
}

/// Sizes of a window that is dragged.
fn many_sizes() -> Vec<(u16, u16)> {
    (0..37).map(|step| (44 + step * 37 % 80, 16 + step * 11 % 24)).collect()
}

#[test]
fn many_fast_resizes_lose_and_double_nothing() {
    check("short", &many_sizes(), Duration::from_millis(50));
}

#[test]
fn a_long_draft_is_kept_apart_from_what_streams() {
    let draft = "a draft that goes on and on until it is wider than the narrowest of all the windows are";
    check(draft, &many_sizes(), Duration::from_millis(50));
}

#[test]
fn nothing_of_the_first_tail_stays_at_the_top_of_the_screen() {
    let scratch = Scratch::new();
    let tmux = Tmux::start(&scratch);
    let home = scratch.home();
    let state = scratch.state();
    // What `clear` runs before begins in the top left corner.
    tmux.keys(&format!(
        "clear; HOME={} HANGAR_HOME={} {HANGAR} --model scripted --trust-folder",
        path(&home),
        path(&state),
    ));
    tmux.wait_for("the prompt", |text| text.contains("/ commands"));
    tmux.keys("SAY:hello there");
    let text =
        tmux.wait_for("the answer", |text| text.contains("\nhello there") && text.contains("\nscripted"));
    let prompts = text.lines().filter(|line| line.trim_end() == "❯").count();
    assert!(prompts == 1 && !text.contains("/ commands"), "{text}");
}
