use super::*;

#[test]
fn typing_and_moving() {
    check(&[
        ("h e l l o ctrl+a X", "X|hello"),
        ("hello left left X", "helX|lo"),
        ("hello ctrl+b ctrl+b ctrl+f X", "hellX|o"),
        ("hello home right right X", "heX|llo"),
        ("hello home left X", "X|hello"),
        ("hello right X", "helloX|"),
        ("ab shift+enter cd", "ab⏎cd|"),
        ("ab alt+enter cd", "ab⏎cd|"),
        ("ab ctrl+j cd", "ab⏎cd|"),
        ("ab ctrl+j cd home X", "ab⏎X|cd"),
        ("ab ctrl+j cd ctrl+home X", "X|ab⏎cd"),
        ("ab ctrl+j cd ctrl+home end X", "abX|⏎cd"),
        ("ab ctrl+j cd ctrl+home ctrl+end X", "ab⏎cdX|"),
        ("ab ctrl+j cd home left X", "abX|⏎cd"),
        ("ab ctrl+j left right X", "ab⏎X|"),
        ("漢字 left X", "漢X|字"),
        ("e\u{301}a left left X", "X|e\u{301}a"),
        ("👩\u{200D}👩\u{200D}👧x left left X", "X|👩\u{200D}👩\u{200D}👧x"),
        ("🇩🇪🇫🇷 left X", "🇩🇪X|🇫🇷"),
        ("שלום left left X", "שלX|ום"),
    ]);
}

#[test]
fn moving_by_words() {
    check(&[
        ("text=one_two_three alt+b X", "one two X|three"),
        ("text=one_two_three alt+b alt+b X", "one X|two three"),
        ("text=one_two_three alt+left alt+left alt+left alt+left X", "X|one two three"),
        ("text=one_two home alt+f X", "oneX| two"),
        ("text=one_two home alt+right alt+right X", "one twoX|"),
        ("text=foo.bar(baz) alt+b X", "foo.bar(X|baz)"),
        ("text=foo.bar(baz) home alt+f alt+f X", "foo.barX|(baz)"),
        ("text=a_b\\nc alt+b alt+b X", "a X|b⏎c"),
        ("text=snake_case- ctrl+left X", "snake X|case-"),
        ("text=über_ß alt+b alt+b X", "X|über ß"),
        ("text=a ctrl+right ctrl+right X", "aX|"),
    ]);
}

#[test]
fn deleting() {
    check(&[
        ("hello backspace", "hell|"),
        ("hello ctrl+h ctrl+h", "hel|"),
        ("hello home backspace", "|hello"),
        ("hello home delete", "|ello"),
        ("hello home ctrl+d ctrl+d", "|llo"),
        ("hello delete", "hello|"),
        ("ab ctrl+j cd home backspace", "ab|cd"),
        ("ab ctrl+j cd ctrl+home end delete", "ab|cd"),
        ("e\u{301} backspace", "|"),
        ("a👩\u{200D}👧 backspace", "a|"),
        ("a👩\u{200D}👧 left delete", "a|"),
        ("🇩🇪🇫🇷 backspace", "🇩🇪|"),
        // The mark joins the letter before it when the letter between them goes.
        ("ab\u{301} left backspace X", "X|b\u{301}"),
        ("a ctrl+j \u{301} left backspace X", "a\u{301}X|"),
    ]);
}

#[test]
fn killing_and_yanking() {
    check(&[
        ("text=one_two ctrl+w", "one |"),
        ("text=one_two ctrl+w ctrl+w", "|"),
        ("text=one_two/three ctrl+w", "one |"),
        ("text=one_two/three alt+backspace", "one two/|"),
        ("text=one_two/three ctrl+backspace", "one two/|"),
        ("text=one__ ctrl+w", "|"),
        ("text=one_two home alt+d", "| two"),
        ("text=one_two home alt+d alt+d", "|"),
        ("text=one_two home ctrl+delete", "| two"),
        ("text=one_two home ctrl+k", "|"),
        ("text=one_two left ctrl+u", "|o"),
        ("text=a\\nb ctrl+u ctrl+u ctrl+u", "|"),
        ("text=a\\nb ctrl+u ctrl+u", "a|"),
        ("text=a\\nb ctrl+home ctrl+k ctrl+k", "|b"),
        ("text=a\\nb home ctrl+k", "a⏎|"),
        ("text=one_two ctrl+w ctrl+y ctrl+y", "one twotwo|"),
        ("text=one_two ctrl+w ctrl+w ctrl+y", "one two|"),
        ("text=one_two home alt+d alt+d ctrl+y", "one two|"),
        ("text=one_two ctrl+w left ctrl+u ctrl+y", "one| "),
        ("text=one_two ctrl+w left right ctrl+w ctrl+y alt+y", "two|"),
        ("text=one_two ctrl+w left right ctrl+w ctrl+y alt+y alt+y", "one |"),
        ("text=one_two ctrl+w ctrl+y left alt+y", "one tw|o"),
        ("ctrl+y", "|"),
        ("alt+y", "|"),
        ("text=one_two ctrl+w ctrl+y ctrl+_ ctrl+_", "one two|"),
    ]);
}

#[test]
fn undo_takes_back_words_and_commands() {
    check(&[
        ("hello ctrl+_", "|"),
        ("hello ctrl+_ ctrl+_", "|"),
        ("ab space cd ctrl+_", "ab |"),
        ("ab space cd ctrl+- ctrl+-", "|"),
        ("ab space cd ctrl+_ alt+_", "ab cd|"),
        ("ab space cd ctrl+_ ctrl+_ alt+_ alt+_ alt+_", "ab cd|"),
        ("ab space cd ctrl+_ X alt+_", "ab X|"),
        ("ab left X ctrl+_", "a|b"),
        ("ab left X ctrl+_ ctrl+_", "|"),
        ("ab left X ctrl+_ alt+_", "aX|b"),
        ("abc backspace backspace ctrl+_", "abc|"),
        ("abc backspace X ctrl+_", "ab|"),
        ("abc backspace X ctrl+_ ctrl+_", "abc|"),
        ("a ctrl+j b ctrl+_", "a⏎|"),
        ("ab ctrl+u ctrl+_", "ab|"),
        ("text=one_two ctrl+w X ctrl+_ ctrl+_", "one two|"),
        ("ctrl+_ alt+_", "|"),
        ("paste=20 ctrl+_", "|"),
        ("paste=20 ctrl+_ alt+_", "[Paste #1: 20 lines]|"),
    ]);
}

#[test]
fn up_and_down_follow_the_rows_of_the_screen() {
    // Seven columns: two for the gutter, one for the cursor, four for text.
    for (script, expected) in [
        // The end of a wrapped row is the start of the next one.
        ("abcdefgh up X", "abcX|defgh"),
        ("abcdefgh up up", "abc|defgh^"),
        ("abcdefgh up down X", "abcdefghX|"),
        ("abcdefgh home up", "|abcdefgh^"),
        ("abcdefgh left up X", "abcX|defgh"),
        ("abcdefgh left up down X", "abcdefgX|h"),
        ("abcdefgh down", "abcdefgh|v"),
        ("abc ctrl+j x ctrl+j defg up up X", "abcX|⏎x⏎defg"),
        ("abc ctrl+j x ctrl+j defg up X", "abc⏎xX|⏎defg"),
        ("abc ctrl+j ctrl+j defg up up X", "abcX|⏎⏎defg"),
        ("abc ctrl+j x ctrl+j defg up left up X", "X|abc⏎x⏎defg"),
        ("abc ctrl+j x ctrl+home down down", "abc⏎|xv"),
        ("漢字漢 up X", "漢X|字漢"),
        ("text=ab_cdef up X", "abX| cdef"),
        ("text=ab_cdef home down X", "ab X|cdef"),
        // A placeholder has no place for the cursor in the rows between its first and its last.
        ("paste=20 up", "|[Paste #1: 20 lines]"),
        ("ab paste=20 up up", "ab|[Paste #1: 20 lines]^"),
        ("ab paste=20 cd ctrl+home down X", "ab[Paste #1: 20 lines]X|cd"),
    ] {
        let mut session = Session::new(7);
        session.run(script);
        assert_eq!(session.shown(), expected, "{script}");
    }
}

#[test]
fn a_backslash_before_enter_is_a_line_break() {
    let mut session = Session::new(80);
    session.run("ab\\");
    assert!(session.composer.newline_by_backslash());
    assert_eq!(session.shown(), "ab⏎|");
    assert!(!session.composer.newline_by_backslash());
    session.run("ctrl+_");
    assert_eq!(session.shown(), "ab\\|");
}

#[test]
fn a_completion_replaces_a_range() {
    let mut session = Session::new(80);
    session.run("text=see_@ma_now");
    session.composer.replace(4..7, "@main.rs");
    assert_eq!(session.shown(), "see @main.rs| now");
    session.run("ctrl+_");
    assert_eq!(session.shown(), "see @ma now|");
    session.composer.replace(900..950, "!");
    assert_eq!(session.shown(), "see @ma now!|");
}
