//! Recorded sessions: followed live and read from the log they give the same screens each time.

use std::path::{Path, PathBuf};

use expect_test::expect_file;
use hangar_protocol::Event;
use hangar_terminal::input::Input;

use crate::session::Session;

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/session/fixtures")
}

/// The logs of the web page's tests, by name.
fn logs() -> Vec<(String, Vec<Event>)> {
    let paths = std::fs::read_dir(directory()).unwrap().map(|entry| entry.unwrap().path());
    let mut paths: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    paths.sort();
    let log = |path: PathBuf| {
        let lines = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, lines.lines().map(|line| Event::parse(line).unwrap()).collect())
    };
    paths.into_iter().map(log).collect()
}

fn live(events: &[Event], pace: usize) -> String {
    let mut session = Session::new(80, 24);
    session.ready();
    for batch in events.chunks(pace) {
        for event in batch {
            let line = serde_json::to_string(event).unwrap();
            session.take(Input::Event(Box::new(Event::parse(&line).unwrap())));
        }
        session.draw();
    }
    session.screen_text()
}

fn logged(events: &[Event]) -> String {
    let mut session = Session::new(80, 24);
    let line = |event: &Event| serde_json::to_string(event).unwrap();
    let logged = events.iter().filter(|event| !event.is_ephemeral());
    let events = logged.map(|event| Event::parse(&line(event)).unwrap()).collect();
    session.give(Input::History { events, older: 0, is_live: false });
    session.ready();
    session.screen_text()
}

#[test]
fn every_recorded_session_has_its_screen() {
    let logs = logs();
    assert!(logs.len() >= 18, "{} logs", logs.len());
    for (name, events) in logs {
        let screens =
            format!("followed live:\n{}\nread from the log:\n{}", live(&events, 1), logged(&events));
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/replay/{name}.txt"));
        expect_file![path].assert_eq(&screens);
    }
}

// Between a few events, that is: an agent in the background that has ended by then is shown as such.
#[test]
fn what_is_printed_does_not_depend_on_when_it_is_drawn() {
    for (name, events) in logs() {
        let each = live(&events, 1);
        for pace in [2, 3, 20] {
            assert_eq!(live(&events, pace), each, "{name}, drawn after every {pace} events");
        }
    }
}
