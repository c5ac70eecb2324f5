//! Alone in its file, because it measures the memory of its process.
#![cfg(target_os = "linux")]

use std::fmt::Write;

use hangar_store::{SessionId, SessionMeta, Store};

const MIB: usize = 1024 * 1024;

/// Peak resident memory of this process, in bytes.
fn peak() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).expect("a peak");
    line.split_whitespace().nth(1).and_then(|number| number.parse::<usize>().ok()).expect("a number") * 1024
}

#[test]
fn reading_a_big_log_needs_little_memory() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(dir.path());
    let id: SessionId = "s".parse().unwrap();
    let context = serde_json::from_str(r#"{"cwd":"/"}"#).unwrap();
    let session = store.create(&id, SessionMeta::new(context, jiff::Timestamp::UNIX_EPOCH)).unwrap();
    let path = session.log_path();
    drop(session);
    {
        let text = "x".repeat(MIB / 2);
        let mut log = String::new();
        for n in 0..100 {
            let _ = writeln!(
                log,
                r#"{{"type":"user.message","data":{{"content":"{text}"}},"id":"{n}","timestamp":"t","parentId":null}}"#
            );
            if n % 4 == 3 {
                let mut file = std::fs::File::options().append(true).open(&path).unwrap();
                std::io::Write::write_all(&mut file, log.as_bytes()).unwrap();
                log.clear();
            }
        }
    }
    assert!(std::fs::metadata(&path).unwrap().len() > 50 * MIB as u64);
    let before = peak();

    assert_eq!(store.open(&id).unwrap().end().0, 100);
    assert_eq!(store.read_kinds(&id, |_| false).unwrap().count(), 0);
    assert_eq!(store.read_back(&id, 2).unwrap().len(), 2);
    // One event at a time is held, as the text it was read from and as what that means.
    assert_eq!(store.read(&id).unwrap().filter(Result::is_ok).count(), 100);

    let grown = peak() - before;
    assert!(grown < 12 * MIB, "{} KiB more were needed", grown / 1024);
}
