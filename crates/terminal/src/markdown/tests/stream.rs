//! Tests of what is committed when, and that it does not depend on how the text comes.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::super::MarkdownStream;
use super::shown;
use crate::gate::attacks::obeyed;
use crate::theme::Theme;

/// Rows after each piece, then the open row.
fn check_stream(pieces: &[&str], expected: Expect) {
    let mut stream = MarkdownStream::new(Theme::ansi());
    let mut out = String::new();
    for piece in pieces {
        stream.push(piece);
        out.push_str(&shown(&stream.take_rows(40)));
        let open = stream.open_row(30).map_or("none".to_owned(), |row| row.text());
        out.push_str(&format!("-- open: {open}\n"));
    }
    stream.finish();
    out.push_str(&shown(&stream.take_rows(40)));
    assert_eq!(stream.open_row(30), None);
    expected.assert_eq(&out);
}

#[test]
fn rows_are_committed_while_a_paragraph_is_written() {
    let long = "This sentence is long enough to be known as prose before its line has ended, which takes some more words \
                than one would think, but not too many of them, and it goes on";
    check_stream(
        &[long, " and on with **bold that", " is open** now\nnext ", "line\n", "\n"],
        expect![[r#"
        This sentence is long enough to be known
        as prose before its line has ended,
        which takes some more words than one
        would think, but not too many of them,
        -- open: and it goes on
        -- open: …goes on and on with bold that
        and it goes on and on with bold that is
        -- open: open now next
        -- open: open now next line
        open now next line
        -- open: none
    "#]],
    );
}

#[test]
fn a_list_item_is_committed_when_the_next_line_shows_that_it_is_final() {
    check_stream(
        &["- one", "\n", "- ", "two\n", "\nText"],
        expect![[r#"
            -- open: • one
            -- open: • one
            -- open: • 
            • one
            -- open: • two
            • two
            -- open: Text

            Text
        "#]],
    );
}

#[test]
fn code_is_committed_line_by_line_and_a_table_at_its_end() {
    check_stream(
        &["```sh\nls", " -l\ncat `x", "\n```\n", "|a|b|\n|-|-|\n|1|", "2|\n", "\n", "# Head", "ing\n"],
        expect![[r#"
            sh
            -- open: ls
            ls -l⏎
            -- open: cat `x
            cat `x⏎
            -- open: none

            -- open: |1|
            -- open: none
            ┌───┬───┐
            │ a │ b │
            ├───┼───┤
            │ 1 │ 2 │
            └───┴───┘
            -- open: none
            -- open: Head

            Heading
            -- open: none
        "#]],
    );
}

#[test]
fn emphasis_shows_before_it_is_closed() {
    let mut stream = MarkdownStream::new(Theme::ansi());
    stream.push("- a **bold `co");
    let row = stream.open_row(30).unwrap();
    assert_eq!(row.text(), "• a **bold co");
    assert_eq!(row.spans.last().unwrap().style, Theme::ansi().code);
    stream.push("de` wo");
    assert_eq!(stream.open_row(30).unwrap().text(), "• a bold code wo");
    assert_eq!(stream.open_row(8).unwrap().text(), "…code wo");
}

/// Text of 200 KB that repeats a part.
fn long(part: &str) -> String {
    part.repeat(200_000 / part.len())
}

#[test]
fn no_text_is_read_again_and_again() {
    let texts = [
        ("one line", long("some words of prose ")),
        ("short lines", long("some words\nof prose\n")),
        ("items", long("- an item\n")),
        ("open emphasis", long("**word *more _all ")),
        ("open code", format!("`{}", long("word "))),
        ("open link", long("[word ")),
        ("one word", long("word")),
        ("ideographs", long("漢字")),
        ("heading", format!("# {}", long("word "))),
        ("table", format!("|a|b|\n|-|-|\n{}", long("|c|d|\n"))),
        ("wide table row", format!("|a|b|\n|-|-|\n{}", long("|c"))),
        ("code", format!("```\n{}", long("let x = 1;\n"))),
        ("quotes", long("> ")),
        ("blank", long("\n")),
    ];
    for (name, text) in texts {
        let mut stream = MarkdownStream::new(Theme::none());
        let (mut rows, mut most, mut rest) = (0, 0, text.as_str());
        while !rest.is_empty() {
            let end = (4..rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            stream.push(piece);
            rows += stream.take_rows(80).len();
            most = most.max(stream.reread());
            rest = after;
        }
        stream.finish();
        rows += stream.take_rows(80).len();
        assert!(most <= 320, "{name}: {most} bytes are read again with each piece");
        assert!(rows > 0 || name == "blank", "{name}");
    }
}

/// Fragments that documents of the property test are made of.
const FRAGMENTS: &[&str] = &[
    "word ",
    "word",
    "a ",
    "\n",
    "\n",
    "\n\n",
    "\r\n",
    "# ",
    "- ",
    "1. ",
    "2) ",
    "> ",
    "```\n",
    "```rust\n",
    "~~~\n",
    "  ",
    "    ",
    "\t",
    "**",
    "*",
    "_",
    "~~",
    "`",
    "``",
    "[a](b)",
    "[",
    "](",
    ")",
    "| a | b |\n",
    "|---|:-:|\n",
    "|",
    "---\n",
    "===\n",
    "- [x] ",
    "<div>",
    "<br>",
    "<",
    ">",
    "&amp;",
    "&#27;",
    "\\",
    "漢字",
    "。",
    "\u{1b}[31m",
    "e\u{301}",
    "\u{301}",
    "👩\u{200d}🚀",
    "\u{200b}",
    "https://example.com/a-long/path ",
    "this is a sentence that fills some of a row and then it ends. ",
    "a much longer sentence, which has more bytes than a line may have before it is known to be prose, so that it flows into its \
     paragraph while it is written, word by word, and is committed row by row ",
];

fn documents() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(FRAGMENTS), 0..60).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn rows_do_not_depend_on_pieces_or_on_when_they_are_taken(
        text in documents(),
        steps in prop::collection::vec((1usize..40, any::<bool>()), 1..40),
        columns in prop_oneof![1usize..12, 12usize..140],
    ) {
        let whole = MarkdownStream::render(&text, columns, Theme::ansi());
        let mut stream = MarkdownStream::new(Theme::ansi());
        let mut rows = Vec::new();
        let mut rest = text.as_str();
        for (size, take) in steps.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let end = (*size..rest.len()).find(|at| rest.is_char_boundary(*at)).unwrap_or(rest.len());
            let (piece, after) = rest.split_at(end);
            stream.push(piece);
            if *take {
                rows.extend(stream.take_rows(columns));
                let open = stream.open_row(columns);
                prop_assert!(open.is_none_or(|row| row.width() <= columns && obeyed(&row.text()).is_none()));
            }
            rest = after;
        }
        stream.finish();
        rows.extend(stream.take_rows(columns));
        prop_assert_eq!(shown(&rows), shown(&whole));
        prop_assert_eq!(rows, whole);
    }

    #[test]
    fn wrapped_rows_fit_and_hold_nothing_that_a_terminal_obeys(text in documents(), columns in prop_oneof![1usize..12, 12usize..140]) {
        for row in MarkdownStream::render(&text, columns, Theme::ansi()) {
            prop_assert!(row.unwrapped || row.width() <= columns, "{:?} at {}", row.text(), columns);
            prop_assert_eq!(obeyed(&row.text()), None);
        }
    }
}
