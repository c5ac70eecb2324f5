//! Number of bytes per key press, and per streamed answer.

use super::*;

/// Draws per second while an answer streams.
const DRAWS: usize = 30;
/// Tokens per second of a fast model.
const TOKENS: usize = 125;

fn composer(text: &str) -> Frame {
    Frame {
        tail: vec![
            Row::default(),
            Row::new(vec![Span::new("> ", Style::ansi(4)), Span::plain(text)]),
            Row::styled("model-name  ~/project  main", Style::DIM),
        ],
        cursor: Some((1, 2 + Row::plain(text).width())),
        ..Frame::default()
    }
}

/// Draws two contents of the composer and counts the bytes of the second draw.
fn cost(before: &str, after: &str) -> usize {
    let mut session = Session::new(80, 24, CAPS);
    session.draw(&composer(before));
    session.draw(&composer(after));
    let picture = session.picture();
    let mut anew = Session::new(80, 24, CAPS);
    anew.draw(&composer(after));
    assert_eq!(picture, anew.picture());
    session.last.len()
}

#[test]
fn a_key_costs_a_few_bytes() {
    for (before, after, bytes) in [
        ("hell", "hello", 1),
        ("hello", "hell", 4),
        ("hello", "hello ", 3),
        ("hello ", "hello w", 3),
        ("漢", "漢字", 3),
        ("same", "same", 0),
    ] {
        assert_eq!(cost(before, after), bytes, "{before:?} to {after:?}");
    }
}

#[test]
fn a_key_in_the_middle_costs_the_rest_of_the_row() {
    let mut session = Session::new(80, 24, CAPS);
    let at = |text: &str, column| Frame { cursor: Some((1, column)), ..composer(text) };
    session.draw(&at("hello world", 7));
    session.draw(&at("hello, world", 8));
    // The comma, what is behind it, and the way back.
    assert_eq!(session.last, b", world\x1b[6D");
}

#[test]
fn a_change_in_the_status_costs_the_change() {
    let mut session = Session::new(80, 24, CAPS);
    let status =
        |text: &str| Frame { tail: rows(&["", "> hello", text]), cursor: Some((1, 7)), ..Frame::default() };
    session.draw(&status("working 1 s, esc to stop"));
    session.draw(&status("working 2 s, esc to stop"));
    assert_eq!(
        String::from_utf8(session.last).unwrap().replace('\x1b', "^"),
        "^[?2026h\r\n^[8C2^[A\x08\x08^[?2026l"
    );
}

/// An answer of a thousand tokens, drawn as the view draws it: prose wrapped at the width and committed row by row, the open row as
/// its last columns, a composer with a draft, a spinner and a status.
fn stream(columns: usize) -> usize {
    let words = ["the", " screen", " is", " drawn", ",", " once", " more", " and", " again"];
    let mut session = Session::new(columns, 40, CAPS);
    let (mut total, mut open, mut committed) = (0, String::new(), Vec::new());
    let mut expected = vec!["$ one".to_owned(), "$ two".to_owned()];
    for token in 0..1000 {
        let word = words[token % words.len()];
        if open.len() + word.len() > columns - 2 {
            committed.push(std::mem::take(&mut open));
        }
        open.push_str(word);
        // A draw comes whenever the next thirtieth of a second has begun.
        if token * DRAWS / TOKENS == (token + 1) * DRAWS / TOKENS {
            continue;
        }
        let shown = &open[open.len().saturating_sub(38)..];
        let seconds = token / TOKENS;
        let frame = Frame {
            commit: committed
                .drain(..)
                .map(|row: String| {
                    expected.push(row.clone());
                    Row::plain(row)
                })
                .collect(),
            tail: vec![
                Row::plain(shown),
                Row::styled(
                    format!("{} working {seconds} s", ['-', '+'][token / (TOKENS / 2) % 2]),
                    Style::DIM,
                ),
                Row::new(vec![Span::new("> ", Style::ansi(4)), Span::plain("next question")]),
                Row::styled("model-name  ~/project  main", Style::DIM),
            ],
            cursor: Some((2, 15)),
            ..Frame::default()
        };
        session.draw(&frame);
        total += session.last.len();
    }
    let lines = session.lines();
    let trimmed: Vec<&str> = expected.iter().map(|row| row.trim_end()).collect();
    assert_eq!(lines[..trimmed.len()], trimmed);
    total
}

#[test]
fn a_thousand_tokens_stay_under_35_kilobytes() {
    for columns in [60, 80, 120] {
        let bytes = stream(columns);
        assert!(bytes <= 35_000, "{bytes} bytes at {columns} columns");
        println!("{columns} columns: {bytes} bytes per 1,000 tokens");
    }
}
