//! At whatever moment the writer dies, the session opens again with every complete event.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use crate::home::{Home, append, event, id, ids, meta};
use hangar_agent::log::SessionLog;
use hangar_store::{LogTail, Store, StoreError};

#[test]
fn a_log_cut_at_any_byte_keeps_its_whole_events_and_goes_on() {
    let home = Home::new();
    let mut session = home.create("s");
    for (n, text) in
        ["hello", "two\nlines", "quotes \" and \\", "é😀", "", "}\n{\"type\":\"fake\"}"].iter().enumerate()
    {
        append(&mut session, event(n as u64, text));
    }
    drop(session);
    let path = home.log("s");
    let whole = std::fs::read(&path).unwrap();
    let all = ids(&home.store, "s");

    for cut in 0..=whole.len() {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let newlines = whole[..cut].iter().filter(|byte| **byte == b'\n').count();
        // The last byte of a line is its newline; with only that missing, the event is all there.
        let only_newline_missing = whole.get(cut) == Some(&b'\n');
        let kept = newlines + usize::from(only_newline_missing);

        let mut session = home.store.open(&id("s")).unwrap();
        assert_eq!(session.end().0, kept as u64, "cut at {cut}");
        assert_eq!(session.last_event_id().map(|id| id.0.as_str()), all[..kept].last().map(String::as_str));
        let line_start = whole[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let tail = match cut - line_start {
            0 => LogTail::Whole,
            _ if only_newline_missing => LogTail::Completed,
            bytes => LogTail::Cut { bytes: bytes as u64 },
        };
        assert_eq!(session.tail(), tail, "cut at {cut}");

        append(&mut session, event(kept as u64, "after the crash"));
        drop(session);
        let mut expected = all[..kept].to_vec();
        expected.push(format!("e{kept}"));
        assert_eq!(ids(&home.store, "s"), expected, "cut at {cut}");
        let kept_bytes = whole[..cut].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        assert_eq!(std::fs::read(&path).unwrap()[..kept_bytes], whole[..kept_bytes], "cut at {cut}");
    }
}

#[test]
fn zeros_that_a_power_cut_left_at_the_end_are_removed() {
    let home = Home::new();
    append(&mut home.create("s"), event(0, "one"));
    let mut file = std::fs::OpenOptions::new().append(true).open(home.log("s")).unwrap();
    file.write_all(&[0; 5000]).unwrap();
    let session = home.store.open(&id("s")).unwrap();
    assert_eq!(session.tail(), LogTail::Cut { bytes: 5000 });
    assert_eq!(ids(&home.store, "s"), ["e0"]);
}

#[test]
fn garbage_in_the_middle_is_skipped_counted_and_kept() {
    let home = Home::new();
    append(&mut home.create("s"), event(0, "one"));
    let mut file = std::fs::OpenOptions::new().append(true).open(home.log("s")).unwrap();
    file.write_all(b"not json\n{\"type\":\"user.message\",\"da\n\xff\xfe\n").unwrap();
    drop(file);
    let before = std::fs::read(home.log("s")).unwrap();

    let mut session = home.store.open(&id("s")).unwrap();
    assert_eq!((session.end().0, session.last_event_id().unwrap().0.as_str()), (4, "e0"));
    append(&mut session, event(4, "five"));
    let mut events = home.store.read(&id("s")).unwrap();
    assert_eq!(events.by_ref().map(|event| event.unwrap().id().0.clone()).collect::<Vec<_>>(), ["e0", "e4"]);
    assert_eq!(events.skipped(), 3);
    assert_eq!(std::fs::read(home.log("s")).unwrap()[..before.len()], before);
}

/// The process that the tests below start and kill. Started by the test runner, it starts itself once, as they do.
#[test]
fn writer_process() {
    let Ok(home) = std::env::var("HANGAR_TEST_HOME") else {
        assert!(Writer::start(&Home::new()).acknowledged() > Some(0));
        return;
    };
    let store = Store::new(home.as_ref());
    let mut session = match store.open(&id("s")) {
        Err(StoreError::NotFound { .. }) => store.create(&id("s"), meta("/work")).unwrap(),
        opened => opened.unwrap(),
    };
    let mut out = std::io::stdout();
    writeln!(out, "\nopen").unwrap();
    loop {
        let n = session.end().0;
        // Events of very different sizes, so that the kill falls between and into writes.
        let batch = [event(n, &"x".repeat((n as usize * 7919) % 300_000)), event(n + 1, "small")];
        session.append(session.end(), &batch).unwrap();
        writeln!(out, "acknowledged {}", session.end().0).unwrap();
    }
}

struct Writer {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Writer {
    fn start(home: &Home) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "crash::writer_process", "--nocapture"])
            .env("HANGAR_TEST_HOME", home.dir.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut writer = Self { child, lines };
        while writer.lines.next().expect("the writer ended before it opened the session").unwrap() != "open" {
        }
        writer
    }

    fn acknowledged(&mut self) -> Option<u64> {
        self.lines.next()?.unwrap().strip_prefix("acknowledged ")?.parse().ok()
    }

    /// Kills it and returns the last position that it had been told was safe.
    fn kill(mut self) -> u64 {
        self.child.kill().unwrap();
        let mut last = 0;
        while let Some(position) = self.acknowledged() {
            last = position;
        }
        self.child.wait().unwrap();
        last
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_was_acknowledged_survives_a_killed_writer() {
    let home = Home::new();
    for round in 1..=6 {
        let mut writer = Writer::start(&home);
        for _ in 0..round * 5 {
            writer.acknowledged().unwrap();
        }
        let acknowledged = writer.kill();
        let end = home.store.open(&id("s")).unwrap().end().0;
        assert!(end >= acknowledged, "{end} events are left of {acknowledged}");
        let expected: Vec<String> = (0..end).map(|n| format!("e{n}")).collect();
        assert_eq!(ids(&home.store, "s"), expected);
    }
}

#[test]
fn a_session_that_another_process_writes_cannot_be_opened_until_it_dies() {
    let home = Home::new();
    let mut writer = Writer::start(&home);
    writer.acknowledged().unwrap();
    let pid = writer.child.id();
    let refused = |error: StoreError| {
        assert_eq!(
            error.to_string(),
            format!("session s is in use by process {pid}; wait for it to end, or start a new one")
        );
        assert!(matches!(error, StoreError::InUse { pid: Some(holder), .. } if holder == pid));
    };
    refused(home.store.open(&id("s")).unwrap_err());
    refused(home.store.delete(&id("s")).unwrap_err());
    refused(home.store.rename(&id("s"), hangar_store::SessionName::Given("x".to_owned())).unwrap_err());
    assert!(home.store.read(&id("s")).unwrap().next().is_some());
    writer.kill();
    home.store.open(&id("s")).unwrap();
}
