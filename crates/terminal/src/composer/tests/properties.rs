use proptest::prelude::*;

use super::*;

/// Words of scripts: every editing key, and text that is hard to edit.
const WORDS: &[&str] = &[
    "a",
    "b",
    "space",
    "ctrl+j",
    "漢",
    "e\u{301}",
    "\u{301}",
    "👩",
    "\u{200D}",
    "🇩",
    "🇪",
    "ש",
    "\u{202E}",
    "\u{600}",
    "text=\\t",
    "text=one_two",
    "paste=11",
    "image=a.png",
    "left",
    "right",
    "up",
    "down",
    "home",
    "end",
    "ctrl+home",
    "ctrl+end",
    "alt+b",
    "alt+f",
    "backspace",
    "delete",
    "ctrl+w",
    "alt+backspace",
    "alt+d",
    "ctrl+u",
    "ctrl+k",
    "ctrl+y",
    "alt+y",
    "ctrl+_",
    "alt+_",
    "!",
];

const VIM_WORDS: &[&str] = &[
    "i",
    "a",
    "I",
    "A",
    "o",
    "O",
    "h",
    "j",
    "k",
    "l",
    "w",
    "b",
    "e",
    "0",
    "^",
    "$",
    "gg",
    "G",
    "x",
    "X",
    "D",
    "C",
    "d",
    "c",
    "y",
    "p",
    "P",
    "2",
    "3",
    "u",
    "ctrl+r",
    "r",
    "~",
    "f",
    "t",
    "F",
    "T",
    ";",
    ",",
    "esc",
    "漢",
    "\u{301}",
    "space",
    "ctrl+j",
    "paste=11",
    "left",
    "backspace",
    "S",
    "Y",
    "s",
    "?",
];

fn words(all: &'static [&'static str]) -> impl Strategy<Value = Vec<&'static str>> {
    prop::collection::vec(prop::sample::select(all), 0..60)
}

fn part_is_laid_out_like_the_whole(composer: &Composer, columns: usize) {
    let (whole, part) = (composer.layout(columns), composer.layout_around(columns, 1));
    let cursor = composer.cursor();
    assert_eq!((part.rows(), part.position(cursor)), (whole.rows(), whole.position(cursor)));
    let (row, _) = part.position(cursor);
    for row in row.saturating_sub(1)..=(row + 1).min(whole.rows() - 1) {
        let text = |layout: &layout::Layout<'_>| -> String {
            layout.cells(row).iter().map(|cell| cell.shown.as_ref()).collect()
        };
        assert_eq!(text(&part), text(&whole), "row {row}");
    }
}

fn holds(session: &Session) {
    let composer = &session.composer;
    let (text, cursor) = (composer.text(), composer.cursor());
    assert_eq!(text::snap(text, cursor), cursor, "the cursor is at a boundary");
    part_is_laid_out_like_the_whole(composer, session.columns);
    let columns = session.columns;
    for max_rows in [1, 4] {
        let view = composer.view(columns, max_rows, &ComposerStyles::default());
        assert!((1..=max_rows).contains(&view.rows.len()));
        for row in &view.rows {
            assert!(row.width() <= columns.max(1), "{:?} in {columns} columns", row.text());
            assert!(!row.text().contains(char::is_control));
        }
        assert!(view.cursor.0 < view.rows.len() && view.cursor.1 < columns.max(1));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_keys_leave_a_cursor_at_a_boundary_and_a_view_that_fits(script in words(WORDS), columns in 0usize..30) {
        let mut session = Session::new(columns);
        for word in script {
            session.run(word);
            holds(&session);
        }
    }

    #[test]
    fn any_keys_of_vim_do_too(script in words(VIM_WORDS), columns in 0usize..30) {
        let mut session = Session::new(columns);
        session.composer.set_vim(true);
        for word in script {
            session.run(word);
            holds(&session);
        }
    }

    #[test]
    fn undoing_everything_gives_the_original_and_redoing_the_result(script in words(WORDS), vim in any::<bool>()) {
        let mut session = Session::new(10);
        session.composer.restore(&DraftSnapshot::of_text("first\nsecond"));
        session.composer.set_vim(vim);
        script.into_iter().for_each(|word| session.run(word));
        // Changes that the script undid itself are redone first.
        while session.composer.buffer.redo() {}
        let result = session.composer.text().to_owned();
        while session.composer.buffer.undo() {}
        prop_assert_eq!(session.composer.text(), "first\nsecond");
        while session.composer.buffer.redo() {}
        prop_assert_eq!(session.composer.text(), result);
    }

    #[test]
    fn the_part_around_any_cursor_of_a_long_text_is_like_the_whole(
        lines in prop::collection::vec("[a-c漢é\\t]{0,9}( [a-c漢]{0,30}){0,20}", 0..40), place in 0usize..4000, columns in 0usize..40
    ) {
        let mut composer = Composer::new();
        composer.insert(&lines.join("\n"));
        composer.buffer.go(place);
        part_is_laid_out_like_the_whole(&composer, columns);
    }

    #[test]
    fn any_text_survives_paste_and_snapshot(text in ".{0,60}") {
        let mut composer = Composer::new();
        composer.paste(&text);
        let sent = text.replace("\r\n", "\n").replace('\r', "\n");
        prop_assert_eq!(&composer.content().text, &sent);
        let mut other = Composer::new();
        other.restore(&composer.snapshot());
        prop_assert_eq!(other.content().text, sent);
        let view = composer.view(9, 100, &ComposerStyles::default());
        for row in &view.rows {
            prop_assert!(row.width() <= 9, "{:?}", row.text());
        }
    }

    #[test]
    fn a_field_is_one_row_that_fits(text in ".{0,40}", script in words(WORDS), columns in 0usize..20) {
        let keymap = Keymap::default();
        let mut field = TextField::new(&text);
        for word in script {
            match Key::parse(word) {
                Ok(key) => {
                    field.key(key, &keymap);
                }
                Err(_) => field.insert(word),
            }
            prop_assert!(!field.text().contains('\n'));
            let view = field.view(columns, crate::row::Style::PLAIN);
            prop_assert!(view.row.width() <= columns.max(1) && view.cursor < columns.max(1), "{:?}", view);
        }
    }
}
