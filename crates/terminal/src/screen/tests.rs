//! The writer against a terminal emulator that reflows and keeps its scrollback.

mod bytes;
mod property;

use avt::{ScreenKind, Terminal};
use expect_test::{Expect, expect};

use super::*;
use crate::row::{Span, Style};

pub(super) const CAPS: ScreenCaps =
    ScreenCaps { color: ColorDepth::Rgb, sync: true, reflow: true, title: true, alternate: true };

/// A terminal with a shell's lines in it, and the writer that draws below them.
pub(super) struct Session {
    pub(super) terminal: Terminal,
    pub(super) screen: Screen,
    /// Bytes of the last draw.
    pub(super) last: Vec<u8>,
}

impl Session {
    pub(super) fn new(columns: usize, rows: usize, caps: ScreenCaps) -> Self {
        let mut terminal = Terminal::with_scrollback(columns, rows, None).unwrap();
        terminal.feed("$ one\r\n$ two\r\n");
        Self { terminal, screen: Screen::new(columns, rows, caps), last: Vec::new() }
    }

    pub(super) fn feed(&mut self, bytes: Vec<u8>) {
        self.terminal.feed(std::str::from_utf8(&bytes).unwrap());
        self.last = bytes;
    }

    pub(super) fn draw(&mut self, frame: &Frame) {
        let bytes = self.screen.draw(frame);
        self.feed(bytes);
    }

    /// Resizes the terminal and tells the writer.
    pub(super) fn resize(&mut self, columns: usize, rows: usize) {
        self.terminal.resize(columns, rows);
        self.screen.resize(columns, rows);
    }

    /// Lines of the scrollback and of the main screen, without those at the end that are empty.
    pub(super) fn lines(&self) -> Vec<String> {
        let mut lines = self.terminal.primary_screen().text();
        while lines.last().is_some_and(String::is_empty) {
            lines.pop();
        }
        lines
    }

    /// The lines, with the cursor as `▮`.
    fn picture(&self) -> String {
        let cursor = self.terminal.cursor();
        let screen = self.terminal.screen();
        let above = screen.all_lines().count() - self.terminal.size().1;
        let mut rows: Vec<String> =
            screen.all_lines().map(|line| line.text().trim_end().to_owned()).collect();
        if cursor.visible {
            let row = &mut rows[above + cursor.row];
            let mut text: Vec<char> = row.chars().collect();
            text.resize(text.len().max(cursor.col), ' ');
            text.insert(cursor.col, '▮');
            *row = text.into_iter().collect();
        }
        while rows.last().is_some_and(String::is_empty) {
            rows.pop();
        }
        rows.join("\n") + "\n"
    }

    fn check(&self, expected: Expect) {
        expected.assert_eq(&self.picture());
    }
}

pub(super) fn rows(texts: &[&str]) -> Vec<Row> {
    texts.iter().map(|text| Row::plain(*text)).collect()
}

/// A frame of committed and tail rows, with the cursor at the end of the tail's second row.
pub(super) fn frame(commit: &[&str], tail: &[&str]) -> Frame {
    let cursor = tail.get(1).map(|row| (1, Row::plain(*row).width()));
    Frame { commit: rows(commit), tail: rows(tail), cursor, ..Frame::default() }
}

#[test]
fn committed_rows_are_above_the_tail_and_scroll_away() {
    let mut session = Session::new(20, 6, CAPS);
    session.draw(&frame(&[], &["open", "> ", "status"]));
    session.check(expect![[r#"
        $ one
        $ two
        open
        > ▮
        status
    "#]]);
    session.draw(&frame(&["first", "second"], &["third", "> hi", "status"]));
    session.draw(&frame(&["third"], &["", "> hi", "status"]));
    session.check(expect![[r#"
        $ one
        $ two
        first
        second
        third

        > hi▮
        status
    "#]]);
    assert_eq!(session.terminal.screen().visible_lines().len(), 6);
}

#[test]
fn a_tail_grows_and_shrinks_in_place() {
    let mut session = Session::new(20, 8, CAPS);
    session.draw(&frame(&["done"], &["", "> a", "status"]));
    session.draw(&frame(&[], &["", "> a", "  b", "  c", "status"]));
    session.check(expect![[r#"
        $ one
        $ two
        done

        > a▮
          b
          c
        status
    "#]]);
    session.draw(&frame(&[], &["working", "> "]));
    session.check(expect![[r#"
        $ one
        $ two
        done
        working
        > ▮
    "#]]);
    session.draw(&Frame::default());
    session.check(expect![[r#"
        $ one
        $ two
        done
    "#]]);
}

#[test]
fn a_wide_row_is_one_line_in_the_scrollback_and_cut_in_the_tail() {
    let mut session = Session::new(10, 6, CAPS);
    let text = "abcdefghijklmnopqrstuvwxyz";
    session.draw(&frame(&[text], &[text, "> 漢字漢字漢字"]));
    assert_eq!(session.lines(), ["$ one", "$ two", text, "abcdefghi…", "> 漢字漢…"]);
}

#[test]
fn a_tail_higher_than_the_screen_shows_its_end() {
    let mut session = Session::new(20, 4, CAPS);
    session.draw(&frame(&["done"], &["1", "2", "3", "4", "5"]));
    session.check(expect![[r#"
        $ one
        $ two
        done
        3▮
        4
        5
    "#]]);
    session.draw(&frame(&["more"], &["4", "5"]));
    assert_eq!(session.lines(), ["$ one", "$ two", "done", "more", "4", "5"]);
}

#[test]
fn an_overlay_leaves_no_trace_and_keeps_rows_back() {
    let mut session = Session::new(20, 6, CAPS);
    session.draw(&frame(&["first"], &["", "> x"]));
    let overlay =
        Frame { overlay: Some(rows(&["diff", "+ one", "- two"])), ..frame(&["second"], &["", "> x"]) };
    session.draw(&overlay);
    session.check(expect![[r#"
        diff
        + o▮ne
        - two
    "#]]);
    assert_eq!(session.terminal.active_screen_kind(), ScreenKind::Alternate);
    assert!(session.screen.has_overlay());
    session.draw(&Frame { overlay: Some(rows(&["diff", "+ only"])), ..frame(&["third"], &["", "> x"]) });
    session.check(expect![[r#"
        diff
        + o▮nly
    "#]]);
    session.draw(&frame(&["fourth"], &["", "> x"]));
    assert_eq!(session.lines(), ["$ one", "$ two", "first", "second", "third", "fourth", "", "> x"]);
    assert_eq!(session.terminal.active_screen_kind(), ScreenKind::Primary);
}

#[test]
fn rows_behind_an_overlay_are_bounded() {
    let mut session = Session::new(20, 6, CAPS);
    let overlay =
        |commit: Vec<Row>| Frame { commit, overlay: Some(rows(&["pager"])), ..frame(&[], &["", "> x"]) };
    let many = |from: usize| (from..from + 3000).map(|index| Row::plain(format!("row {index}"))).collect();
    session.draw(&overlay(many(0)));
    session.draw(&overlay(many(3000)));
    assert!(session.screen.held.is_empty());
    assert_eq!(session.terminal.active_screen_kind(), ScreenKind::Alternate);
    session.check(expect![[r#"
        pager
           ▮
    "#]]);
    session.draw(&frame(&["last"], &["", "> x"]));
    let lines = session.lines();
    assert_eq!((lines.len(), lines[2].as_str(), lines[6002].as_str()), (6005, "row 0", "last"));
}

#[test]
fn the_terminal_is_given_back_on_an_empty_row() {
    for (overlay, keep_tail, expected) in [
        (false, true, &["$ one", "$ two", "first", "open", "> x", "status", "$"][..]),
        (false, false, &["$ one", "$ two", "first", "$"]),
        (true, true, &["$ one", "$ two", "first", "open", "> x", "status", "$"]),
        (true, false, &["$ one", "$ two", "first", "$"]),
    ] {
        let mut session = Session::new(20, 9, CAPS);
        let tail = ["open", "> x", "status"];
        session.draw(&Frame {
            overlay: overlay.then(|| rows(&["pager"])),
            cursor: None,
            ..frame(&["first"], &tail)
        });
        let bytes = session.screen.leave(keep_tail);
        session.feed(bytes);
        assert!(session.terminal.cursor().visible);
        session.feed(b"$".to_vec());
        assert_eq!(session.lines(), expected, "overlay {overlay}, keep {keep_tail}");
    }
}

#[test]
fn a_terminal_that_does_not_reflow_loses_no_row() {
    // Without reflow a row that is too wide is cut: it still takes one screen row, as if it had been short.
    let mut session = Session::new(40, 8, ScreenCaps { reflow: false, ..CAPS });
    let wide = "a row that is wider than the screen";
    session.draw(&frame(&["first", "second"], &[wide, "> x"]));
    session.screen.resize(12, 8);
    let bytes = session.screen.draw(&frame(&[], &["now", "> x"]));
    assert!(String::from_utf8(bytes).unwrap().contains("\x1b[A\r \x1b[J\r\x1b[Know"));
}

#[test]
fn without_an_alternate_screen_an_overlay_overwrites_nothing() {
    let mut session = Session::new(40, 8, ScreenCaps { alternate: false, ..CAPS });
    session.draw(&frame(&["first", "second"], &["", "> x"]));
    session.draw(&Frame { overlay: Some(rows(&["diff", "+ one"])), ..frame(&["third"], &["", "> x"]) });
    assert!(session.lines().ends_with(&["diff".to_owned(), "+ one".to_owned()]));
    session.draw(&frame(&["fourth"], &["", "> x"]));
    let lines: Vec<String> = session.lines().into_iter().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, ["$ one", "$ two", "first", "second", "third", "fourth", "> x"]);
    assert!(!String::from_utf8_lossy(&session.last).contains("1049"));
}

#[test]
fn styles_end_before_the_line_does() {
    let mut session = Session::new(20, 6, ScreenCaps { sync: false, ..CAPS });
    let row = Row::new(vec![Span::new("red", Style::ansi(1)), Span::new(" bold", Style::BOLD)]);
    session.draw(&Frame {
        commit: vec![row],
        tail: rows(&[">  "]),
        cursor: Some((0, 2)),
        ..Frame::default()
    });
    let text = String::from_utf8(session.last).unwrap().replace('\x1b', "^");
    expect!["^[?25l ^[J\r^[K^[31mred^[0;1m bold^[m\r\n>^[C^[?25h"].assert_eq(&text);
}

#[test]
fn the_title_is_set_once_and_without_control_characters() {
    let mut session = Session::new(20, 6, CAPS);
    let titled = Frame { title: Some("fix\x07 it\u{9c}".to_owned()), ..Frame::default() };
    let text = String::from_utf8(session.screen.draw(&titled)).unwrap();
    assert!(text.starts_with("\x1b]2;fix it\x1b\\"), "{text:?}");
    assert_eq!(session.screen.draw(&titled), b"");
}
