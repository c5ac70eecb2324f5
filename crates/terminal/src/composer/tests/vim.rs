use super::*;

/// Runs a script with vim's keys, in a text that begins with the first script.
fn check_vim(cases: &[(&str, &str)]) {
    for (script, expected) in cases {
        let mut session = Session::new(80);
        session.composer.set_vim(true);
        session.run(script);
        assert_eq!(session.shown(), *expected, "{script}");
    }
}

#[test]
fn modes_change_and_have_a_label() {
    let mut session = Session::new(80);
    assert_eq!(session.composer.mode_label(), None);
    session.composer.set_vim(true);
    assert_eq!(session.composer.mode_label(), Some("INSERT"));
    session.run("ab esc");
    assert_eq!(session.composer.mode_label(), Some("NORMAL"));
    assert_eq!(session.composer.vim_key(Key::parse("esc").unwrap(), 80), VimOutcome::Pass);
    assert_eq!(session.composer.vim_key(Key::parse("enter").unwrap(), 80), VimOutcome::Pass);
    session.run("i");
    assert_eq!(session.composer.mode_label(), Some("INSERT"));
    session.run("esc");
    session.composer.take();
    assert_eq!(session.composer.mode_label(), Some("INSERT"));
    session.composer.set_vim(false);
    assert_eq!(session.composer.mode_label(), None);
}

#[test]
fn inserting() {
    check_vim(&[
        ("abc esc", "ab|c"),
        ("abc esc i X", "abX|c"),
        ("abc esc a X", "abcX|"),
        ("text=_abc esc I X", " X|abc"),
        ("abc esc 0 A X", "abcX|"),
        ("abc esc o X", "abc⏎X|"),
        ("abc esc O X", "X|⏎abc"),
        ("abc esc i X esc", "ab|Xc"),
        ("esc a X", "X|"),
        ("abc esc z Q", "ab|c"),
    ]);
}

#[test]
fn moving() {
    check_vim(&[
        ("abc esc h", "a|bc"),
        ("abc esc h h h h", "|abc"),
        ("abc esc 0 l", "a|bc"),
        ("abc esc 0 l l l l", "ab|c"),
        ("abcdef esc 0 3 l", "abc|def"),
        ("text=ab\\ncd esc k", "a|b⏎cd"),
        ("text=ab\\ncd esc k j", "ab⏎c|d"),
        ("text=ab\\ncd esc j", "ab⏎c|dv"),
        ("text=ab\\ncd esc k k", "a|b⏎cd^"),
        ("text=abc\\nx\\ndef esc k k", "ab|c⏎x⏎def"),
        ("text=one_two.three esc 0 w", "one |two.three"),
        ("text=one_two.three esc 0 w w", "one two|.three"),
        ("text=one_two.three esc 0 3 w", "one two.|three"),
        ("text=one_two.three esc 0 9 w", "one two.thre|e"),
        ("text=one_two.three esc b", "one two.|three"),
        ("text=one_two.three esc 3 b", "one |two.three"),
        ("text=one_two esc 0 e", "on|e two"),
        ("text=one_two esc 0 e e", "one tw|o"),
        ("text=one_two esc 0 e e e", "one tw|o"),
        ("text=__ab_cd esc ^", "  |ab cd"),
        ("text=__ab_cd esc 0", "|  ab cd"),
        ("text=__ab_cd esc 0 $", "  ab c|d"),
        ("text=1\\n2\\n3 esc gg", "|1⏎2⏎3"),
        ("text=1\\n2\\n3 esc gg G", "1⏎2⏎|3"),
        ("text=1\\n2\\n3 esc 2 G", "1⏎|2⏎3"),
        ("text=1\\n2\\n3 esc 2 gg", "1⏎|2⏎3"),
        ("text=a.b.c.d esc 0 f.", "a|.b.c.d"),
        ("text=a.b.c.d esc 0 f. ;", "a.b|.c.d"),
        ("text=a.b.c.d esc 0 f. ; ; ,", "a.b|.c.d"),
        ("text=a.b.c.d esc 0 3f.", "a.b.c|.d"),
        ("text=a.b.c.d esc 0 9f.", "|a.b.c.d"),
        ("text=a.b.c.d esc 0 tc", "a.b|.c.d"),
        ("text=a.b.c.d esc 0 tb t.", "a.|b.c.d"),
        ("text=a.b.c.d esc 0 tb t. ;", "a.b.|c.d"),
        ("text=a.b.c.d esc F.", "a.b.c|.d"),
        ("text=a.b.c.d esc Tb", "a.b|.c.d"),
        ("text=a.b esc 0 fz", "|a.b"),
        ("漢字 esc h", "|漢字"),
        ("ab paste=11 cd esc h h", "ab|[Paste #1: 11 lines]cd"),
        ("ab paste=11 cd esc 0 w", "ab|[Paste #1: 11 lines]cd"),
        ("ab paste=11 cd esc 0 w w", "ab[Paste #1: 11 lines]|cd"),
    ]);
}

#[test]
fn deleting_and_changing() {
    check_vim(&[
        ("abc esc x", "a|b"),
        ("abc esc 0 x", "|bc"),
        ("abc esc 0 2 x", "|c"),
        ("abc esc 0 9 x", "|"),
        ("abc esc X", "a|c"),
        ("abc esc 0 X", "|abc"),
        ("abcd esc h D", "a|b"),
        ("abcd esc h C X", "abX|"),
        ("abc esc 0 s X", "X|bc"),
        ("text=a\\nb\\nc esc k dd", "a⏎|c"),
        ("text=a\\nb\\nc esc dd", "a⏎|b"),
        ("text=a\\nb\\nc esc gg 2 dd", "|c"),
        ("text=a\\nb\\nc esc gg d 2 d", "|c"),
        ("text=a\\nb\\nc esc gg 9 dd", "|"),
        ("a esc dd", "|"),
        ("text=a\\nb\\nc esc gg dj", "|c"),
        ("text=a\\nb\\nc esc dk", "|a"),
        ("text=a\\nb\\nc esc k dG", "|a"),
        ("text=a\\nb\\nc esc k dgg", "|c"),
        ("text=ab\\ncd esc cc X", "ab⏎X|"),
        ("text=ab\\ncd esc S X", "ab⏎X|"),
        ("text=one_two_three esc 0 dw", "|two three"),
        ("text=one_two_three esc 0 2 dw", "|three"),
        ("text=one_two_three esc 0 d 2 w", "|three"),
        ("text=one_two esc b dw", "one| "),
        ("text=one\\ntwo esc gg dw", "|⏎two"),
        ("text=one_two_three esc 0 cw X", "X| two three"),
        ("text=one_two_three esc 0 c2w X", "X| three"),
        ("text=one_two_three esc db", "one two |e"),
        ("text=one_two esc 0 de", "| two"),
        ("text=one_two esc 0 w d$", "one| "),
        ("text=one_two esc 0 w c$ X", "one X|"),
        ("text=one_two esc d0", "|o"),
        ("text=one_two esc 0 dft", "|wo"),
        ("text=one_two esc 0 dtt", "|two"),
        ("text=one_two esc dFn", "o|o"),
        ("text=one_two esc 0 dl dh", "|ne two"),
        ("text=one_two esc 0 d esc x", "|ne two"),
        ("text=one_two esc 0 dz x", "|ne two"),
        ("a paste=11 b esc h x", "a|b"),
    ]);
}

#[test]
fn yanking_and_putting() {
    check_vim(&[
        ("text=one_two esc 0 yw p", "oone| ne two"),
        ("text=one_two esc 0 yw P", "one| one two"),
        ("text=a\\nb esc yy p", "a⏎b⏎|b"),
        ("text=a\\nb esc yy P", "a⏎|b⏎b"),
        ("text=a\\nb esc gg yy 2 p", "a⏎|a⏎a⏎b"),
        ("text=a\\nb esc gg Y p", "a⏎|a⏎b"),
        ("text=a\\nb esc gg dd p", "b⏎|a"),
        ("ab esc 0 x p", "b|a"),
        ("ab esc 0 x 3 p", "baa|a"),
        ("ab esc p", "a|b"),
        // Text that would exceed the limit is not put.
        ("text=0123456789 esc 0 y$ 9999 p", "|0123456789"),
        ("a paste=11 esc yy p", "a[Paste #1: 11 lines]⏎|a[Paste #1: 11 lines]"),
    ]);
}

#[test]
fn replacing_and_swapping_case() {
    check_vim(&[
        ("abc esc r X", "ab|X"),
        ("abc esc 0 2 r X", "X|Xc"),
        ("abc esc 0 9 r X", "|abc"),
        ("aBc esc 0 ~ ~", "Ab|c"),
        ("aBc esc 0 3 ~", "Ab|C"),
        ("straße esc 0 6 ~", "STRASS|E"),
        ("abc esc 0 r esc x", "|bc"),
    ]);
}

#[test]
fn undo_takes_back_one_command() {
    check_vim(&[
        ("abc esc x u", "ab|c"),
        ("abc esc x x u", "a|b"),
        ("abc esc x x u u", "ab|c"),
        ("abc esc x x 2 u", "ab|c"),
        ("abc esc x u ctrl+r", "a|b"),
        ("text=one_two_three esc 0 cw X Y Z esc u", "|one two three"),
        ("a space b space c esc u", "|"),
        ("abc esc o X esc u", "ab|c"),
        ("u ctrl+r esc u", "|"),
    ]);
}
