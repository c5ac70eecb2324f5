use super::*;

#[test]
fn a_long_paste_is_a_placeholder() {
    check(&[
        ("paste=10", "1⏎2⏎3⏎4⏎5⏎6⏎7⏎8⏎9⏎10|"),
        ("paste=11", "[Paste #1: 11 lines]|"),
        ("a paste=240 b", "a[Paste #1: 240 lines]b|"),
        ("paste=11 paste=12", "[Paste #1: 11 lines][Paste #2: 12 lines]|"),
        ("a paste=11 left X", "aX|[Paste #1: 11 lines]"),
        ("a paste=11 b backspace backspace", "a|"),
        ("a paste=11 home right delete", "a|"),
        ("a paste=11 b left alt+b X", "aX|[Paste #1: 11 lines]b"),
        ("a paste=11 ctrl+w ctrl+y", "a[Paste #1: 11 lines]|"),
        ("paste=11 ctrl+u ctrl+y ctrl+y", "[Paste #1: 11 lines][Paste #1: 11 lines]|"),
        ("paste=11 \u{301} left X", "[Paste #1: 11 lines]X\u{301}|"),
        ("image=shots/a.png", "[Image #1: a.png]|"),
        ("image=a.png image=b.png", "[Image #1: a.png][Image #2: b.png]|"),
        ("file=src/main.rs", "[File: src/main.rs]|"),
        ("file=a paste=11 image=b.png", "[File: a][Paste #1: 11 lines][Image #1: b.png]|"),
    ]);
}

#[test]
fn a_placeholder_is_sent_as_what_it_stands_for() {
    let mut session = Session::new(80);
    session.run("text=look:_ paste=11 image=x/a.png space file=b.rs");
    let draft = session.composer.take();
    assert_eq!(draft.text, "look: 1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11[Image #1: a.png] [File: b.rs]");
    let image = AttachmentRef { kind: AttachmentKind::Image, number: 1, path: "x/a.png".into() };
    let file = AttachmentRef { kind: AttachmentKind::File, number: 0, path: "b.rs".into() };
    assert_eq!(draft.attachments, [image, file]);
    assert!(session.composer.is_empty());
    session.run("ctrl+_ ctrl+y paste=11");
    assert_eq!(session.shown(), "[Paste #1: 11 lines]|");
}

#[test]
fn pasted_text_keeps_its_bytes_but_for_the_ends_of_its_lines() {
    for (pasted, sent) in [
        ("a\r\nb\rc\n", "a\nb\nc\n"),
        ("a\tb", "a\tb"),
        ("\u{1b}[31mred\u{7}", "\u{1b}[31mred\u{7}"),
        ("\u{202E}abc", "\u{202E}abc"),
        ("", ""),
        ("\n", "\n"),
        // The character that marks a placeholder is a paste of its own when it comes from outside.
        ("x\u{10F000}y", "x\u{10F000}y"),
    ] {
        let mut composer = Composer::new();
        composer.paste(pasted);
        assert_eq!(composer.content().text, sent, "{pasted:?}");
        composer.restore(&composer.snapshot());
        assert_eq!(composer.content().text, sent, "{pasted:?}");
    }
}

#[test]
fn a_paste_of_200_kb_is_one_character() {
    let text = "0123456789\n".repeat(20_000);
    let mut composer = Composer::new();
    assert_eq!(composer.paste(&text), Pasted::Placeholder);
    composer.insert("!");
    assert_eq!(composer.text().chars().count(), 2);
    assert_eq!(
        composer.view(80, 10, &ComposerStyles::default()).rows[0].text(),
        "❯ [Paste #1: 20000 lines]!"
    );
    assert_eq!(composer.content().text, text + "!");
}

#[test]
fn one_long_line_is_told_in_bytes() {
    let mut composer = Composer::new();
    assert_eq!(composer.paste(&"x".repeat(1000)), Pasted::Text);
    assert_eq!(composer.paste(&"x".repeat(1001)), Pasted::Placeholder);
    assert_eq!(composer.snapshot().pieces[1].label(), "[Paste #1: 1001 bytes]");
}

#[test]
fn a_paste_above_the_limit_is_refused() {
    let mut composer = Composer::new();
    composer.insert("a");
    assert_eq!(composer.paste(&"x".repeat(PASTE_LIMIT + 1)), Pasted::TooLong);
    assert_eq!(composer.text(), "a");
}

#[test]
fn text_above_the_limit_of_the_editor_becomes_a_placeholder() {
    let text = "x".repeat(TEXT_LIMIT + 1);
    let mut composer = Composer::new();
    composer.set(&text);
    assert_eq!(composer.text().chars().count(), 1);
    assert_eq!(composer.content().text, text);
}

#[test]
fn more_parts_than_the_table_holds_are_plain_text() {
    let mut composer = Composer::new();
    for _ in 0..4200 {
        composer.attach(AttachmentKind::File, "a");
    }
    assert_eq!(composer.content().attachments.len(), 1);
    assert_eq!(composer.paste("x\u{10F000}"), Pasted::Text);
    assert!(composer.content().text.ends_with("x\u{FFFD}"));
}

#[test]
fn a_name_with_control_characters_stays_in_its_row() {
    let mut composer = Composer::new();
    composer.attach(AttachmentKind::File, "a\nb\u{1b}[2J");
    assert_eq!(composer.snapshot().label(), "[File: a�b�[2J]");
    composer.set("");
    composer.attach(AttachmentKind::File, "d/".repeat(100) + "end.rs");
    assert!(composer.snapshot().label().ends_with("/d/d/end.rs]"));
    assert!(composer.snapshot().label().chars().count() < 70);
}

#[test]
fn the_stash_puts_a_draft_away_and_brings_it_back() {
    check(&[
        ("ab left ctrl+s", "|"),
        ("ab left ctrl+s ctrl+s", "a|b"),
        ("ab left ctrl+s X ctrl+s", "a|b"),
        ("ab left ctrl+s X ctrl+s ctrl+u delete ctrl+s", "X|"),
        ("ctrl+s", "|"),
        ("a paste=11 ctrl+s paste=12 ctrl+s", "a[Paste #1: 11 lines]|"),
    ]);
    let mut composer = Composer::new();
    assert_eq!(composer.stash(), Stashed::Nothing);
    composer.insert("a");
    assert_eq!((composer.stash(), composer.has_stash()), (Stashed::PutAway, true));
    composer.insert("b");
    assert_eq!((composer.stash(), composer.text()), (Stashed::Swapped, "a"));
    composer.take();
    assert_eq!((composer.stash(), composer.has_stash()), (Stashed::BroughtBack, false));
}

#[test]
fn a_snapshot_brings_back_the_same_draft() {
    let mut session = Session::new(80);
    session.run("text=a\\nb paste=30 image=i.png file=f space x left left");
    let json = serde_json::to_string(&session.composer.snapshot()).unwrap();
    let shown = session.shown();
    let mut other = Session::new(80);
    other.composer.restore(&serde_json::from_str(&json).unwrap());
    assert_eq!(other.shown(), shown);
    assert_eq!(other.composer.content(), session.composer.content());
    other.run("end paste=11");
    assert!(other.shown().contains("[Paste #2: 11 lines]"));
}
