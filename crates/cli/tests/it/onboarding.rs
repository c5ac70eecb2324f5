//! The first start without a model: what is asked, what is written, and what is left when the person leaves.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hangar_test_support::pty::Pty;
use hangar_test_support::{Invocation, ModelServer, Scratch};

use crate::HANGAR;

const SECRET: &str = "sk-very-secret-1234567890";
/// Words of a list and of a short one, once they take keys.
const LIST: &str = "type to search";
const NUMBERS: &str = "a number or enter picks";
/// Far above what any step needs on a loaded machine.
const LIMIT: Duration = Duration::from_secs(60);

/// A program in a terminal with an emulator behind it.
struct Screen {
    pty: Pty,
    emulator: avt::Terminal,
    /// Bytes of a character that has not come whole.
    rest: Vec<u8>,
    raw: String,
}

impl Screen {
    fn open(run: Invocation, columns: u16, rows: u16) -> Self {
        let pty = run.in_terminal(columns, rows);
        let emulator = avt::Terminal::with_scrollback(columns.into(), rows.into(), None).expect("a terminal");
        Self { pty, emulator, rest: Vec::new(), raw: String::new() }
    }

    /// Scrollback and screen, long lines whole.
    fn text(&self) -> String {
        self.emulator.primary_screen().text().join("\n")
    }

    /// Waits until a text is there.
    #[track_caller]
    fn wait_for(&mut self, text: &str) {
        let until = Instant::now() + LIMIT;
        while !self.text().contains(text) {
            let came = self.pty.read(until.saturating_duration_since(Instant::now()));
            self.rest.extend(self.pty.take_output());
            let whole = match std::str::from_utf8(&self.rest) {
                Ok(whole) => whole.len(),
                Err(error) => error.valid_up_to(),
            };
            let bytes: Vec<u8> = self.rest.drain(..whole).collect();
            let shown = String::from_utf8(bytes).expect("whole characters");
            self.emulator.feed(&shown);
            self.raw.push_str(&shown);
            assert!(came || self.text().contains(text), "{text:?} did not come:\n{}", self.text());
        }
    }

    fn keys(&self, keys: &str) {
        self.pty.type_bytes(keys.as_bytes());
    }

    /// Picks an item of the first list by a part of its name.
    #[track_caller]
    fn provider(&mut self, name: &str) {
        self.wait_for("Which model provider do you want to use?");
        self.wait_for(LIST);
        self.keys(name);
        self.keys("\r");
    }

    fn leave(mut self) {
        self.keys("\x04");
        self.wait_for("status 0");
        self.pty.finish();
    }
}

/// `hangar` without any provider, in a directory that is trusted.
fn bare(scratch: &Scratch) -> Invocation {
    let run = scratch.run(HANGAR).env("TERM", "xterm-256color").env("NO_COLOR", "1");
    run.env("COPILOT_OFFLINE", "true").without_env("TMUX").arg("--trust-folder")
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

/// Files below a directory.
fn files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// Files of the state that hold the secret.
fn holders(scratch: &Scratch) -> Vec<PathBuf> {
    let holds = |path: &PathBuf| {
        std::fs::read(path).is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(SECRET))
    };
    files(&scratch.state()).into_iter().filter(holds).collect()
}

fn config(scratch: &Scratch) -> String {
    std::fs::read_to_string(scratch.state().join("config.toml")).expect("a configuration")
}

/// Name of the table of a server at an address.
fn table_name(url: &str) -> String {
    url.trim_start_matches("http://").replace(['.', ':'], "-")
}

/// Goes up to the question for the key of a server.
#[track_caller]
fn to_the_key(screen: &mut Screen, url: &str) {
    screen.provider("another");
    screen.wait_for("What is the address of the API?");
    screen.keys(&format!("{url}/v1\r"));
    screen.wait_for("How does the server get its key?");
    screen.wait_for(NUMBERS);
    screen.keys("1");
    screen.wait_for("which only you can read");
}

#[test]
fn a_provider_is_set_up_and_the_session_goes_on_with_it() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let name = table_name(model.url());
    // A server of the person, whose name and key stay.
    let other = "[providers.server]\nbase_url = \"http://other.example/v1\"\napi_key_file = \"keys/server\"\nheaders = { x-team = \"red\" }\n";
    let before = format!("# mine\n[budget] # caps\nmax_turns = 50\n\n{other}");
    let keys = scratch.state().join("keys");
    std::fs::create_dir_all(&keys).expect("a home");
    std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o700)).expect("permissions");
    std::fs::write(scratch.state().join("keys/server"), "sk-other\n").expect("a key");
    std::fs::write(scratch.state().join("config.toml"), &before).expect("a configuration");
    let mut screen = Screen::open(bare(&scratch), 100, 30);
    to_the_key(&mut screen, model.url());
    // It is pasted, as keys are.
    screen.keys(&format!("\x1b[200~{SECRET}\x1b[201~\r"));
    screen.wait_for("Which model of The server?");
    screen.keys("mock-model\r");
    // This model calls no tool.
    screen.wait_for("mock-model does not work as it should");
    assert_eq!(config(&scratch), before, "nothing is written before the end");
    assert_eq!(files(&scratch.state().join("cache")), [] as [PathBuf; 0]);
    assert_eq!(holders(&scratch), [] as [PathBuf; 0]);
    screen.wait_for("Use it all the same");
    screen.keys("3");
    screen.wait_for("config.toml has it");
    screen.keys("SAY:a real answer\r");
    screen.wait_for("\na real answer");
    let key = scratch.state().join("keys").join(&name);
    assert_eq!(holders(&scratch), std::slice::from_ref(&key));
    assert_eq!((mode(&key), mode(key.parent().expect("a directory"))), (0o600, 0o700));
    let written = config(&scratch);
    let (chosen, file) =
        (format!("model = \"{name}/mock-model\""), format!("api_key_file = \"keys/{name}\""));
    for part in ["# mine\n", "[budget] # caps\n", other, &chosen, &file] {
        assert!(written.contains(part), "{part} in {written}");
    }
    let sent = model.requests().last().expect("a request").headers["authorization"].clone();
    // The record of the server hides what it was sent, but not that it was.
    assert_eq!(sent, "***");
    // What was set up is removed.
    screen.keys("/logout\r");
    screen.wait_for("Which provider is to be removed?");
    screen.keys("2");
    screen.wait_for("Its key is deleted.");
    assert!(!screen.raw.contains(SECRET));
    screen.leave();
    assert_eq!(holders(&scratch), [] as [PathBuf; 0]);
    let left = config(&scratch);
    assert!(!left.contains(&name) && left.contains("max_turns = 50") && left.contains(other), "{left}");
    let kept = std::fs::read_to_string(scratch.state().join("keys/server")).expect("the other key");
    assert_eq!(kept, "sk-other\n");
}

#[test]
fn the_person_leaves_and_comes_back_for_a_demo() {
    let scratch = Scratch::new();
    let mut screen = Screen::open(bare(&scratch), 40, 10);
    screen.provider("anthropic");
    screen.wait_for("How does Anthropic get its key?");
    screen.keys("\x1b");
    screen.wait_for("Which model provider");
    screen.keys("\x1b");
    screen.wait_for("no model is set up yet");
    screen.keys("/login\r");
    screen.provider("scripted");
    screen.wait_for("/login sets one up.");
    screen.keys("SAY:a demo answers\r");
    screen.wait_for("\na demo answers");
    screen.leave();
    assert!(!scratch.state().join("config.toml").exists());
}

#[test]
fn a_terminal_that_only_prints_asks_in_lines() {
    let script = "SAY:ready\nTOOL:report_word:{\"word\":\"blue\"}\n";
    for dumb in [true, false] {
        let scratch = Scratch::new();
        let script = scratch.file("script.txt", script).display().to_string();
        let mut server =
            scratch.run(HANGAR).args(["model", "serve", "--port", "0", "--script", &script]).start();
        let line = server.next_line().expect("the address").to_owned();
        let url = line.strip_prefix("listening on ").expect("the address on the first line");
        let run = match dumb {
            true => bare(&scratch).env("TERM", "dumb"),
            false => bare(&scratch).arg("--screen-reader"),
        };
        let mut pty = run.in_terminal(100, 30);
        let keys = |pty: &Pty, keys: &str| pty.type_bytes(keys.as_bytes());
        let before = pty.line_settings();
        pty.wait_for("a number or a name picks; an empty line goes back");
        keys(&pty, "another server\n");
        pty.wait_for("What is the address of the API?");
        keys(&pty, &format!("{url}/v1\n"));
        pty.wait_for("1. I type or paste it");
        pty.wait_for("> ");
        keys(&pty, "1\n");
        pty.wait_for("what you type is not shown");
        pty.wait_for("> ");
        keys(&pty, &format!("{SECRET}\n"));
        let seen = pty.wait_for("Which model of The server?");
        assert!(!seen.contains(SECRET), "{seen}");
        pty.wait_for("> ");
        keys(&pty, "gpt-5\n");
        pty.wait_for("text yes, tool call yes");
        pty.wait_for("config.toml has it");
        pty.wait_for("> ");
        assert_eq!(pty.line_settings(), before);
        keys(&pty, "/exit\n");
        let seen = pty.wait_for("status 0");
        assert!(!seen.contains('\x1b'), "an escape sequence was printed");
        pty.finish();
        assert!(config(&scratch).contains(&format!("model = \"{}/gpt-5\"", table_name(url))));
        server.signal(hangar_test_support::Signal::TERM);
        server.finish().expect_exit(0);
    }
}

#[test]
fn nothing_is_left_of_a_setup_that_is_killed() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let mut screen = Screen::open(bare(&scratch), 100, 30);
    to_the_key(&mut screen, model.url());
    screen.keys(SECRET);
    screen.wait_for("••••");
    screen.pty.hang_up();
    assert_eq!(holders(&scratch), [] as [PathBuf; 0]);
    assert!(!scratch.state().join("config.toml").exists() && !scratch.state().join("keys").exists());
}

#[test]
fn a_prompt_without_a_provider_says_how_to_set_one_up() {
    let scratch = Scratch::new();
    let run =
        scratch.run(HANGAR).env("COPILOT_OFFLINE", "true").args(["-p", "hello"]).finish().expect_exit(1);
    let told = "no model provider is configured: `hangar` in a terminal sets one up";
    assert!(run.stderr.contains(told) && run.stderr.contains("--model scripted"), "{}", run.stderr);
}
