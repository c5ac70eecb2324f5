//! Small screens, other scripts, no colours.

use expect_test::expect;

use crate::script::{check, run};

const BUSY: &str = r#"
    ready
    user:hello there, this is a prompt that is longer than a small screen is wide
    turn
    say:An answer that is also longer than the screen, with a list:\n\n- one\n- two\n
    call:c1 bash {"command":"make all the things that there are"}
    output:c1 compiling a file with a long name that does not fit
    type:and a draft that is long enough to be wrapped
    wait:2000
"#;

#[test]
fn a_session_fits_a_small_screen() {
    check(
        &format!("size:40x10{BUSY}"),
        expect![[r#"
            $ hangar
            ❯ hello there, this is a prompt that is
              longer than a small screen is wide

            An answer that is also longer than the
            screen, with a list:

            • one
            • two
            ● Run make all the things that the…  2s
              └ compiling a file with a long name …
            ◐ working 2s · esc esc stops

            ❯ and a draft that is long enough to
              be wrapped▮
            scripted · ~/project · main
        "#]],
    );
    check(
        &format!("size:20x5{BUSY}"),
        expect![[r#"
        $ hangar
        ❯ hello there, this
          is a prompt that
          is longer than a
          small screen is
          wide

        An answer that is
        also longer than the
        screen, with a list:

        • one

        ↑ is long enough to
          be wrapped▮
        scripted · ~/project
    "#]],
    );
}

#[test]
fn nothing_breaks_on_the_smallest_screens() {
    for size in ["1x1", "2x2", "3x1", "1x9", "5x3"] {
        run(&format!(
            "size:{size}{BUSY}\nask:p1 {{\"kind\":\"shell\",\"fullCommandText\":\"ls\"}}\nwait:300\nesc\nf1\nG\nq\nctrl+c\ntype:/mo\nresize:80x24"
        ));
    }
}

#[test]
fn wide_and_combining_characters_take_their_columns() {
    check(
        "size:30x20\nready\nuser:漢字を書く。長い文章はどこで折り返されるか\nturn\nsay:e\\u{301}a\\u{308} 👩‍👩‍👧 🇩🇪 漢字漢字漢字漢字漢字漢字漢字漢字\\n\nidle\ntype:漢字e\\u{301}x\nleft",
        expect![[r#"
            $ hangar
            ❯ 漢字を書く。長い文章はどこで
              折り返されるか

            éä 👩‍👩‍👧 🇩🇪 漢字漢字漢字
            漢字漢字
            漢字漢字漢字

            ❯ 漢字é▮x
            scripted · ~/project · main
        "#]],
    );
}

#[test]
fn text_from_right_to_left_is_kept_in_order() {
    check(
        "ready\nturn\nsay:שלום עולם and مرحبا\\n\nidle\ntype:שלום",
        expect![[r#"
        $ hangar
        שלום עולם and مرحبا

        ❯ שלום▮
        scripted · ~/project · main
    "#]],
    );
}

#[test]
fn tabs_are_blanks() {
    check(
        "ready\nturn\nsay:```\\na\\tb\\n\\tc\\n```\\n\ncall:c1 bash {\"command\":\"cut -f2\\tx\"}\nresult:c1 one\\ttwo\\nthree\\tfour\nidle\ntype:a\npaste:\\tb",
        expect![[r#"
            $ hangar
            a       b
                    c

            ● Run cut -f2 x
              └ one     two
                three   four

            ❯ a   b▮
            scripted · ~/project · main
        "#]],
    );
}

#[test]
fn without_colours_nothing_is_coloured() {
    let script = format!("theme:none{BUSY}");
    let mut session = crate::session::Session::new(60, 24);
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        crate::script::step(&mut session, line);
        let bytes = String::from_utf8(session.last.clone()).unwrap();
        for sequence in bytes.split("\x1b[").skip(1) {
            let Some(end) = sequence.find(|c: char| c.is_ascii_alphabetic()) else { continue };
            if &sequence[end..=end] == "m" {
                let colours = sequence[..end].split(';').filter_map(|number| number.parse::<u32>().ok());
                let coloured = colours.filter(|number| (30..50).contains(number) || *number >= 90).count();
                assert_eq!(coloured, 0, "{line}: {bytes:?}");
            }
        }
    }
}

#[test]
fn a_resize_keeps_everything() {
    check(
        &format!("size:60x16{BUSY}\nresize:30x16\nresize:80x12\nresult:c1 done\nidle"),
        expect![[r#"
        $ hangar
        ❯ hello there, this is a prompt that is longer than a small
          screen is wide

        An answer that is also longer than the screen, with a list:

        • one
        • two

        ● Run make all the things that there are
          └ done

        ❯ and a draft that is long enough to be wrapped▮
        scripted · ~/project · main
    "#]],
    );
}
