//! The guard in a real pty. The program in it is this test binary: it runs the test below with a scenario in its environment.

use std::process::Command;

use hangar_test_support::pty::{Pty, modes_left_on, signal};
use rustix::process::Signal;
use rustix::pty::{OpenptFlags, openpt, unlockpt};

use hangar_terminal::input::{Input, SessionFacts};
use hangar_terminal::key::Key;
use hangar_terminal::state::State;

use super::super::signals::{Caught, Signals};
use super::super::surface::{Drawn, Surface};
use super::{Input as Typed, *};

const SCENARIO: &str = "HANGAR_TEST_SCENARIO";
const NAME: &str = "terminal::tty::tests::a_session_has_the_terminal";

/// The program of the other tests. Without a scenario it has no terminal of its own to take.
#[test]
fn a_session_has_the_terminal() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match std::env::var(SCENARIO) {
        Ok(scenario) => runtime.block_on(session(&scenario)),
        Err(_) => {
            let null = std::fs::File::open("/dev/null").unwrap();
            let mut tty = Tty {
                input: null.try_clone().unwrap().into(),
                output: null.into(),
                abilities: guess(|_| None),
                reader: None,
                asked: false,
                watches_focus: false,
                shows_progress: false,
            };
            assert_eq!(tty.size(), DEFAULT_SIZE);
            assert!(tty.acquire().is_err());
        }
    }
}

/// Takes the terminal, tells what comes, and ends as the scenario says.
async fn session(scenario: &str) {
    if let Some(view) = scenario.strip_prefix("view ") {
        return panicking(view).await;
    }
    let mut tty = match Tty::open().unwrap() {
        Ok(tty) => tty,
        Err(unfit) => return say(&format!("unfit: {unfit}")),
    };
    let mut signals = Signals::new().unwrap();
    tty.acquire().unwrap();
    tty.watch_focus(true).unwrap();
    assert!(tty.abilities().caps.sync);
    if scenario == "overlay" {
        tty.write(b"\x1b[?1049h\x1b[?25l", true).unwrap();
    }
    say(&format!("ready {} {:?}.", std::process::id(), tty.size()));
    loop {
        tokio::select! {
            input = tty.next() => match (input, scenario) {
                (Some(Typed::Key(key)), "overlay" | "panic") if key.to_string() == "ctrl+c" => panic!("on purpose"),
                (Some(Typed::Key(key)), "thread") if key.to_string() == "ctrl+c" => {
                    std::thread::spawn(|| panic!("of a thread")).join().unwrap_err();
                    say("going on.");
                }
                (Some(Typed::Key(key)), _) if key.to_string() == "ctrl+z" => {
                    tty.suspend().await.unwrap();
                    say("back.");
                }
                (Some(Typed::Key(key)), _) if key.to_string() == "ctrl+d" => break,
                (Some(input), _) => say(&format!("{input:?}.")),
                (None, _) => break,
            },
            caught = signals.next() => match caught {
                Caught::Resize => say(&format!("size {:?}.", tty.size())),
                caught => {
                    assert!(caught.exit_code().is_some_and(|code| code > 128));
                    break;
                }
            },
        }
    }
    tty.release();
}

/// Draws a session as the program does, and panics.
async fn panicking(view: &str) {
    let mut surface = Surface::open(false).unwrap();
    let (columns, rows) = surface.size();
    let mut state = State::new(columns, rows, 0);
    let facts =
        SessionFacts { id: "s".to_owned(), mode: "interactive".to_owned(), ..SessionFacts::default() };
    let started =
        r#"{"type":"assistant.turn_start","data":{"turnId":"0"},"id":"i","timestamp":"t","parentId":null}"#;
    let inputs = [
        Input::Ready(facts),
        Input::Event(Box::new(hangar_protocol::Event::parse(started).unwrap())),
        Input::Paste("a draft".to_owned()),
    ];
    for input in inputs {
        state.update(input, 0);
    }
    if view == "pager" {
        state.update(Input::Key(Key::parse("f1").unwrap()), 0);
    }
    assert_eq!(surface.draw(&mut state), Drawn::Done);
    say(&format!("ready {} {:?}.", std::process::id(), surface.size()));
    while surface.next().await.is_some_and(|input| !format!("{input:?}").contains("'c'")) {}
    panic!("on purpose");
}

/// Prints without the test harness, which would keep it. A closed terminal takes nothing.
fn say(text: &str) {
    let _ = write_all(&io::stdout().as_fd().try_clone_to_owned().unwrap(), format!("{text}\r\n").as_bytes());
}

fn start(scenario: &str, term: &str) -> Pty {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", NAME, "--nocapture"]).env(SCENARIO, scenario).env("TERM", term);
    for variable in ["TMUX", "STY", "TERM_PROGRAM", "VTE_VERSION", "COLORTERM", "NO_COLOR", "RUST_BACKTRACE"]
    {
        command.env_remove(variable);
    }
    Pty::start(&command, 90, 30)
}

/// Runs a scenario until it has the terminal, lets it end, and compares the terminal with what it was. Returns all output.
fn check(scenario: &str, end: impl FnOnce(&mut Pty, u32) -> String) -> String {
    let mut pty = start(scenario, "xterm-kitty");
    let before = pty.before.clone();
    let mut output = pty.wait_for("ready ");
    let process = pty.wait_for(" ");
    let ready = pty.wait_for(".");
    assert_eq!(ready, "(90, 30).");
    let during = pty.line_settings();
    assert!(before.cooked && !during.cooked, "before {before:?}, during {during:?}");
    assert!(modes_left_on(&output).contains("?2004") && modes_left_on(&output).contains("keyboard"));
    output += &end(&mut pty, process.trim().parse().unwrap());
    output += &pty.wait_for("status ");
    assert_eq!(pty.line_settings(), before, "{scenario}");
    assert_eq!(modes_left_on(&output), [].into(), "{scenario}: {output:?}");
    pty.finish();
    output
}

#[test]
fn the_terminal_is_as_before_after_an_end() {
    check("end", |pty, _| {
        pty.type_bytes(b"\x04");
        String::new()
    });
}

#[test]
fn the_terminal_is_as_before_after_a_panic() {
    for scenario in ["panic", "overlay"] {
        let output = check(scenario, |pty, _| {
            pty.type_bytes(b"\x03");
            String::new()
        });
        let (before, message) = output.split_once("on purpose").expect("the message of the panic");
        assert_eq!(modes_left_on(before), [].into(), "modes are off before the message: {before:?}");
        assert_eq!(before.contains("\x1b[?1049l"), scenario == "overlay");
        assert!(message.contains("FAILED"));
    }
}

#[test]
fn the_terminal_is_as_before_after_a_panic_in_a_drawn_session() {
    for scenario in ["view prompt", "view pager"] {
        let output = check(scenario, |pty, _| {
            pty.type_bytes(b"\x03");
            String::new()
        });
        let (before, message) = output.split_once("on purpose").expect("the message of the panic");
        assert!(before.contains("\x1b[22;2t"), "the title was not kept: {before:?}");
        assert_eq!(before.contains("\x1b[?1049l"), scenario == "view pager");
        assert_eq!(modes_left_on(before), [].into(), "{scenario}: {before:?}");
        assert!(message.contains("FAILED"));
    }
}

#[test]
fn the_terminal_is_as_before_after_signals() {
    for number in [Signal::TERM, Signal::HUP, Signal::INT] {
        check("signal", |_, process| {
            signal(process, number);
            String::new()
        });
    }
}

#[test]
fn ctrl_z_gives_the_terminal_back_and_takes_it_again() {
    check("suspend", |pty, _| {
        let cooked = |pty: &Pty| pty.line_settings().cooked;
        pty.type_bytes(b"\x1a");
        let mut output = pty.wait_for("status ");
        assert!(modes_left_on(&output).is_empty(), "stopped with modes on: {output:?}");
        output += &pty.wait_for("back.");
        assert!(!cooked(pty));
        pty.type_bytes(b"x");
        output += &pty.wait_for("Char('x')");
        pty.type_bytes(b"\x04");
        output
    });
}

#[test]
fn a_panic_of_another_thread_disturbs_nothing() {
    let output = check("thread", |pty, _| {
        pty.type_bytes(b"\x03");
        let output = pty.wait_for("going on.");
        assert!(!pty.line_settings().cooked);
        pty.type_bytes(b"\x04");
        output
    });
    assert!(!output.contains("of a thread"));
}

#[test]
fn input_sizes_and_answers_arrive() {
    check("input", |pty, _| {
        let mut output = String::new();
        pty.type_bytes("é\x1b[13;2u".as_bytes());
        output += &pty.wait_for("Char('é')");
        output += &pty.wait_for("Enter, ctrl: false, alt: false, shift: true");
        pty.type_bytes(b"\x1b]11;rgb:ffff/ffff/0000\x1b\\");
        output += &pty.wait_for("Background { red: 255, green: 255, blue: 0 }");
        let text = "line of a large paste\r".repeat(10_000);
        pty.type_bytes(format!("\x1b[200~{text}\x1b[201~").as_bytes());
        output += &pty.wait_for("cut: false");
        pty.resize(50, 12);
        output += &pty.wait_for("size (50, 12)");
        pty.type_bytes(b"\x1b");
        output += &pty.wait_for("Esc");
        pty.type_bytes(b"\x04");
        output
    });
}

#[test]
fn a_closed_terminal_ends_the_session() {
    let mut pty = start("closed", "xterm-kitty");
    pty.wait_for("ready ");
    let process: u32 = pty.wait_for(" ").trim().parse().unwrap();
    let pidfd = rustix::process::pidfd_open(
        rustix::process::Pid::from_raw(process.cast_signed()).unwrap(),
        rustix::process::PidfdFlags::empty(),
    )
    .unwrap();
    pty.hang_up();
    assert!(ready(&pidfd, PollFlags::IN, Duration::from_secs(60)), "the session goes on without a terminal");
}

#[test]
fn a_dumb_terminal_is_left_alone() {
    let mut pty = start("dumb", "dumb");
    let output = pty.wait_for("status ");
    assert!(output.contains("unfit: TERM names a terminal that can only print lines"), "{output}");
    assert!(!output.contains('\x1b'));
    pty.finish();
}

#[test]
fn an_answer_that_comes_late_does_not_reach_the_shell() {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    unlockpt(&terminal).unwrap();
    let inside = rustix::pty::ioctl_tiocgptpeer(&terminal, OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    let mut raw = tcgetattr(&inside).unwrap();
    raw.make_raw();
    tcsetattr(&inside, OptionalActions::Now, &raw).unwrap();
    write_all(&terminal, b"\x1b]11;rgb:0/0/0\x07").unwrap();
    drain_answer(&inside, Instant::now() + Duration::from_secs(60));
    assert!(!ready(&inside, PollFlags::IN, Duration::ZERO));
}
