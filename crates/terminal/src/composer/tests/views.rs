use expect_test::{Expect, expect};

use super::*;

/// Draws the composer with `|` before the cell under the cursor, rows between bars.
fn check_view(columns: usize, max_rows: usize, script: &str, expected: Expect) {
    let mut session = Session::new(columns);
    session.run(script);
    let view = session.composer.view(columns, max_rows, &ComposerStyles::default());
    let mut shown = String::new();
    for (index, row) in view.rows.iter().enumerate() {
        let text = row.text();
        assert!(row.width() <= columns.max(1), "{text:?}");
        let mut column = 0;
        let mut marked = String::new();
        for (_, cluster) in text::clusters(&text) {
            if (index, column) == view.cursor {
                marked.push('|');
            }
            marked.push_str(cluster);
            column += unicode_width::UnicodeWidthStr::width(cluster);
        }
        if index == view.cursor.0 && column <= view.cursor.1 {
            marked.push_str(&" ".repeat(view.cursor.1 - column));
            marked.push('|');
        }
        shown.push_str(marked.trim_end_matches(' '));
        shown.push('\n');
    }
    expected.assert_eq(&shown);
}

#[test]
fn rows_are_wrapped_after_blanks_and_indented() {
    check_view(
        20,
        5,
        "",
        expect![[r#"
        ❯ |
    "#]],
    );
    check_view(
        20,
        5,
        "text=the_quick_brown_fox_jumps",
        expect![[r#"
        ❯ the quick brown
          fox jumps|
    "#]],
    );
    check_view(
        13,
        5,
        "abcdefghijklmnopqrstuvwxyz",
        expect![[r#"
        ❯ abcdefghij
          klmnopqrst
          uvwxyz|
    "#]],
    );
    // The blank at which a row is broken hangs in the column of the cursor.
    check_view(
        8,
        5,
        "text=hello_world",
        expect![[r#"
        ❯ hello
          world|
    "#]],
    );
    check_view(
        8,
        5,
        "text=hello_world home",
        expect![[r#"
        ❯ |hello
          world
    "#]],
    );
    check_view(
        8,
        5,
        "hello",
        expect![[r#"
        ❯ hello|
    "#]],
    );
    check_view(
        8,
        5,
        "text=a\\n\\nb",
        expect![[r#"
        ❯ a

          b|
    "#]],
    );
    check_view(
        8,
        5,
        "text=a\\n",
        expect![[r#"
        ❯ a
          |
    "#]],
    );
}

#[test]
fn a_command_for_the_shell_has_its_own_mark() {
    check_view(
        20,
        5,
        "!ls",
        expect![[r#"
        ! ls|
    "#]],
    );
    check_view(
        20,
        5,
        "!ls home",
        expect![[r#"
        ! |ls
    "#]],
    );
    check_view(
        5,
        5,
        "!ls",
        expect![[r#"
        !ls|
    "#]],
    );
}

#[test]
fn hidden_rows_are_told_by_arrows() {
    let script = "text=1\\n2\\n3\\n4\\n5\\n6\\n7";
    check_view(
        10,
        3,
        script,
        expect![[r#"
        ↑ 5
          6
          7|
    "#]],
    );
    check_view(
        10,
        3,
        &format!("{script} up up up"),
        expect![[r#"
        ↑ 3
          4|
        ↓ 5
    "#]],
    );
    check_view(
        10,
        3,
        &format!("{script} ctrl+home"),
        expect![[r#"
        ❯ |1
          2
        ↓ 3
    "#]],
    );
    check_view(
        10,
        1,
        &format!("{script} up"),
        expect![[r#"
        ↑ 6|
    "#]],
    );
    let mut session = Session::new(10);
    session.run(script);
    let view = session.composer.view(10, 3, &ComposerStyles::default());
    assert_eq!((view.hidden_above, view.hidden_below, view.cursor), (4, 0, (2, 3)));
}

#[test]
fn wide_combining_and_right_to_left_text_is_shown_as_it_is_stored() {
    check_view(
        8,
        5,
        "漢字漢字",
        expect![[r#"
        ❯ 漢字
          漢字|
    "#]],
    );
    check_view(
        20,
        5,
        "q\u{323}\u{307}x left",
        expect![[r#"
        ❯ q̣̇|x
    "#]],
    );
    check_view(
        20,
        5,
        "שלום left",
        expect![[r#"
        ❯ שלו|ם
    "#]],
    );
    check_view(
        20,
        5,
        "👩\u{200D}👩\u{200D}👧🇩🇪 left",
        expect![[r#"
        ❯ 👩‍👩‍👧|🇩🇪
    "#]],
    );
}

#[test]
fn tabs_go_to_the_next_stop() {
    check_view(
        20,
        5,
        "text=a\\tb\\t\\tc",
        expect![[r#"
        ❯ a   b       c|
    "#]],
    );
    let mut session = Session::new(20);
    session.run("text=a\\tb");
    assert_eq!(session.composer.content().text, "a\tb");
    assert_eq!(session.shown(), "a→b|");
}

#[test]
fn characters_that_a_terminal_obeys_are_marks() {
    for (text, shown) in [
        ("a\u{1b}[31mb\u{7}", "❯ a␛[31mb␇"),
        ("a\u{202E}b\u{200B}c\u{9b}", "❯ a<U+202E>b<U+200B>c<U+009B>"),
        ("\u{301}", "❯ ◌\u{301}"),
        ("a\u{200D}", "❯ a<U+200D>"),
        ("\u{7F}\u{FEFF}", "❯ ␡<U+FEFF>"),
        ("\u{2028}", "❯ <U+2028>"),
        // Tag characters hide text behind a letter.
        ("a\u{E0061}\u{E0062}", "❯ a<U+E0061><U+E0062>"),
    ] {
        let mut composer = Composer::new();
        composer.paste(text);
        let view = composer.view(80, 5, &ComposerStyles::default());
        assert_eq!(view.rows[0].text(), shown, "{text:?}");
        assert_eq!(composer.content().text, text);
    }
}

#[test]
fn placeholders_wrap_and_have_their_style() {
    check_view(
        12,
        5,
        "ab paste=20 cd",
        expect![[r#"
        ❯ ab[Paste
          #1: 20
          lines]cd|
    "#]],
    );
    let mut session = Session::new(80);
    session.run("a paste=11");
    let styles = ComposerStyles { placeholder: crate::row::Style::DIM, ..ComposerStyles::default() };
    let spans = &session.composer.view(80, 5, &styles).rows[0].spans;
    assert_eq!(spans[2].text, "[Paste #1: 11 lines]");
    assert_eq!(spans[2].style, crate::row::Style::DIM);
}

#[test]
fn any_width_is_wide_enough() {
    check_view(
        1,
        3,
        "ab",
        expect![[r#"
        a
        |b
    "#]],
    );
    check_view(
        1,
        3,
        "漢",
        expect![[r#"
        |…
    "#]],
    );
    check_view(
        2,
        3,
        "漢a",
        expect![[r#"
        …
        a|
    "#]],
    );
    check_view(
        0,
        0,
        "a",
        expect![[r#"
        |a
    "#]],
    );
}

#[test]
fn a_field_scrolls_to_its_cursor() {
    let keymap = Keymap::default();
    let press = |field: &mut TextField, keys: &str| {
        let mut handled = true;
        for key in Key::parse_all(keys).unwrap() {
            handled = field.key(key, &keymap);
        }
        handled
    };
    let mut field = TextField::new("because\r\nit is");
    assert_eq!(field.text(), "because it is");
    let view = field.view(6, crate::row::Style::PLAIN);
    assert_eq!((view.row.text().as_str(), view.cursor), ("it is", 5));
    assert!(press(&mut field, "home X"));
    let view = field.view(6, crate::row::Style::PLAIN);
    assert_eq!((view.row.text().as_str(), view.cursor), ("Xbecau", 1));
    assert!(press(&mut field, "ctrl+k ctrl+y ctrl+_"));
    assert_eq!(field.text(), "X");
    for key in ["enter", "esc", "tab", "up", "shift+enter", "ctrl+c"] {
        assert!(!press(&mut field, key), "{key}");
    }
    let wide = TextField::new("漢字漢字");
    let view = wide.view(4, crate::row::Style::PLAIN);
    assert_eq!((view.row.text().as_str(), view.cursor), (" 字", 3));
    let long = TextField::new(&"x".repeat(20_000));
    assert_eq!(long.text().len(), 16 * 1024);
    assert!(!field.is_empty());
    field.clear();
    assert!(field.is_empty());
}
