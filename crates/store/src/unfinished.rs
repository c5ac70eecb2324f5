//! Answers that were arriving when the process of a session was killed. They are beside the log while they arrive; the next
//! process that opens the session logs them.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, Write};

use hangar_disk::Folder;
use hangar_protocol::{Body, Event};

use crate::lines::parse_line;
use crate::session::last_event;

const FILE: &str = "unfinished.jsonl";
/// Bytes of the file that are read.
const LIMIT: u64 = 32 * 1024 * 1024;

/// Stores lines in place of those of the last time; none removes the file. A failure is not reported: the log itself is
/// written all the same.
pub(crate) fn keep(folder: &Folder, lines: &[u8]) {
    let _ = if lines.is_empty() { folder.remove(FILE) } else { folder.replace(FILE, lines) };
}

/// Whether answers are left that are not logged yet.
pub(crate) fn is_left(folder: &Folder) -> bool {
    folder.kind(FILE).is_ok()
}

/// Appends the answers of a killed process to the log that ends at `end`, and returns its new end.
pub(crate) fn recover(folder: &Folder, log: &mut File, end: u64) -> io::Result<u64> {
    // An answer that cannot be read is lost; the session is not.
    let Ok(lines) = folder.read_bytes(FILE, LIMIT) else { return Ok(end) };
    let mut answers: Vec<Event> =
        lines.split(|byte| *byte == b'\n').filter_map(|line| parse_line(line).ok()).collect();
    // A process that was killed between the two writes has logged the answer and left the file.
    let logged = logged_among(&answers, log, end)?;
    let mut parent = last_event(log, end)?.map(|event| event.id().clone());
    let mut is_answer_new = None;
    answers.retain(|event| match event.body() {
        Body::AnswerCut(cut) => *is_answer_new.insert(!logged.contains(&cut.message_id)),
        // The usage of a call follows its answer. Without one, it is new if nothing was logged since it was stored.
        Body::UsageRecord(_) => is_answer_new.take().unwrap_or_else(|| event.parent_id() == parent.as_ref()),
        _ => false,
    });
    let mut appended = Vec::new();
    // A log without events has no session whose answer it could be.
    for answer in answers.iter().filter(|_| end > 0) {
        let (id, agent) = (answer.id().clone(), answer.agent_id().cloned());
        let time = answer.timestamp().to_owned();
        serde_json::to_writer(
            &mut appended,
            &Event::new(id.clone(), time, parent.take(), agent, answer.body().clone()),
        )?;
        appended.push(b'\n');
        parent = Some(id);
    }
    log.seek(io::SeekFrom::End(0))?;
    log.write_all(&appended)?;
    let _ = folder.remove(FILE);
    Ok(end + appended.len() as u64)
}

fn message_of(event: &Event) -> Option<&str> {
    match event.body() {
        Body::AnswerCut(cut) => Some(&cut.message_id),
        _ => None,
    }
}

/// Messages of these answers that the log has in full or in part.
fn logged_among(answers: &[Event], mut log: &File, end: u64) -> io::Result<HashSet<String>> {
    let ids: Vec<&str> = answers.iter().filter_map(message_of).collect();
    let mut found = HashSet::new();
    if ids.is_empty() {
        return Ok(found);
    }
    log.rewind()?;
    let mut lines = BufReader::new(log.take(end));
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        for id in ids.iter().filter(|id| memchr::memmem::find(&line, id.as_bytes()).is_some()) {
            let message = parse_line(line.trim_ascii_end()).ok();
            let is_it = message.is_some_and(|event| match event.body() {
                Body::AssistantMessage(message) => message.message_id == **id,
                Body::AnswerCut(cut) => cut.message_id == **id,
                _ => false,
            });
            if is_it {
                found.insert((*id).to_owned());
            }
        }
        line.clear();
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use hangar_protocol::EventKind;

    use super::*;
    use crate::{SessionId, Store};

    const START: &str = r#"{"type":"session.start","data":{"sessionId":"s","version":1,"producer":"p","copilotVersion":"1","startTime":"2026-01-01T00:00:00Z"},"id":"e1","timestamp":"2026-01-01T00:00:00Z","parentId":null}"#;

    /// Kinds and parents of the log after a session was opened beside these lines.
    fn check(log: &str, unfinished: &str, expected: &[&str]) {
        let root = tempfile::tempdir().unwrap();
        let store = Store::new(root.path());
        let id: SessionId = "s".parse().unwrap();
        let dir = store.session_dir(&id);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("events.jsonl"), log).unwrap();
        std::fs::write(dir.join(FILE), unfinished).unwrap();
        store.recover(&id);
        assert!(!dir.join(FILE).exists());
        let events = store.read(&id).unwrap().map(Result::unwrap);
        let told = events.map(|event| {
            let kind = event.event_kind().map_or("?", EventKind::as_str);
            format!("{kind} after {}", event.parent_id().map_or("-", |id| id.0.as_str()))
        });
        assert_eq!(told.collect::<Vec<_>>(), expected);
        let opened = store.open(&id).unwrap();
        assert_eq!(opened.end().0, expected.len() as u64);
    }

    fn cut(message: &str, event: &str) -> String {
        format!(
            r#"{{"type":"hangar.answer_cut","data":{{"messageId":"{message}","content":"so","recovered":true}},"id":"{event}","timestamp":"2026-01-01T00:00:01Z","parentId":"x"}}"#
        )
    }

    #[test]
    fn answers_of_a_killed_process_are_logged_once() {
        let (one, two) = (cut("m1", "u1"), cut("m2", "u2"));
        check(
            &format!("{START}\n"),
            &format!("{one}\n{two}\n"),
            &["session.start after -", "hangar.answer_cut after e1", "hangar.answer_cut after u1"],
        );
        check(
            &format!("{START}\n{one}\n"),
            &format!("{one}\n"),
            &["session.start after -", "hangar.answer_cut after x"],
        );
    }

    fn used(event: &str, parent: &str) -> String {
        format!(
            r#"{{"type":"session.usage_record","data":{{"usage":{{"model":"m","inputTokens":9,"finishReason":"cut"}},"computed":true}},"id":"{event}","timestamp":"2026-01-01T00:00:01Z","parentId":"{parent}"}}"#
        )
    }

    #[test]
    fn what_a_killed_call_used_is_logged_with_its_answer_or_where_the_log_ends() {
        let (one, of_one, silent) = (cut("m1", "u1"), used("u2", "x"), used("u3", "e1"));
        check(
            &format!("{START}\n"),
            &format!("{one}\n{of_one}\n{silent}\n"),
            &[
                "session.start after -",
                "hangar.answer_cut after e1",
                "session.usage_record after u1",
                "session.usage_record after u2",
            ],
        );
        let logged = format!("{START}\n{one}\n");
        let expected = ["session.start after -", "hangar.answer_cut after x"];
        check(&logged, &format!("{one}\n{of_one}\n"), &expected);
        check(&logged, &format!("{silent}\n"), &expected);
    }

    #[test]
    fn other_lines_are_never_logged() {
        check(
            &format!("{START}\n"),
            &format!("{START}\nnot json\n{}", &cut("m", "u")[..60]),
            &["session.start after -"],
        );
    }
}
