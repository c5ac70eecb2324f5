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

#[test]
fn a_draft_stays_on_a_small_screen_beside_its_completions() {
    check(
        "size:40x10\nready\nuser:hi\nturn\nsay:hello\\n\nidle\ntype:/",
        expect![[r#"
            $ hangar
            ❯ hi

            hello
            ❯ /▮
            ❯ after               Sends a prompt la…
              agent               Chooses the agent…
              ask                 Asks something as…
              changelog           Shows what is new…
              clear               Starts over in a …
              collect-debug-logs  Copies the sessio…
              compact             Sums the conversa…
            scripted · ~/project · main
        "#]],
    );
}

#[test]
fn a_question_keeps_its_title_on_a_small_screen() {
    let ask = r#"ask:p1 {"kind":"shell","toolCallId":"c1","intention":"Tidy up","fullCommandText":"touch a_rather_long_name_of_a_file.txt && echo one two three four five six seven eight nine ten && rm -f a_rather_long_name_of_a_file.txt","commands":[]}"#;
    check(
        &format!("size:40x10\nready\nturn\n{ask}\nwait:300"),
        expect![[r#"
            $ hangar
            Run this command?
              │ Tidy up
              ┃ touch
              ┃ a_rather_long_name_of_a_file.txt &&
              ┃ echo one two three four five six
              ┃ seven eight nine ten && rm -f
              ┃ a_rather_long_name_of_a_file.txt
            ❯ 1. Yes (↑↓)
            a number or enter answers; esc cancels
            ---
            Notify("the agent asks something")
        "#]],
    );
}

#[test]
fn calls_are_named_in_full_on_a_small_screen() {
    check(
        r#"
        size:40x24
        ready
        turn
        call:c1 bash {"command":"touch a_rather_long_name_of_a_file.txt && make all"}
        result:c1 done
        call:c2 ask_user {"question":"Which of the many databases should the new service use?"}
        result:c2 SQLite
        call:c3 view {"path":"/home/somebody/projects/shop/server/src/main.rs"}
        wait:3000
    "#,
        expect![[r#"
            $ hangar
            ● Run touch a_rather_long_name_of_a_file
            .txt && make all
              └ done
            ● Ask Which of the many databases should
              the new service use?
              └ SQLite
            ● Read …cts/shop/server/src/main.rs  3s
            ◑ working 3s · esc esc stops

            ❯ ▮
            scripted · ~/project · main
        "#]],
    );
}

#[test]
fn help_is_in_two_columns_where_there_is_room() {
    check(
        "size:40x10\nready\nf1\nscreen\nresize:80x12\nG",
        expect![[r#"
            Help
            Keys
            @
                name a file or a folder
            !
                run a command in your shell
            /
                run a command of Hangar
            enter
            1–8 of 253 · ↑↓ pgup pgdn g G move · / …
            ===
            Help
            /subagents           Lists agents and their models (also /agents)
            /tasks               Lists sub-agents and background commands
            /theme               Chooses the colours
            /usage               Says what the session used and cost (also /cost)
            /version             Says which version this is
            /vim                 Switches vim keys on or off
            /worktree            Continues in a new git worktree: a branch, a task, or
                                 nothing

            docs/terminal.md has more.
            114–123 of 123 · ↑↓ pgup pgdn g G move · / searches, n next · q closes
        "#]],
    );
}

#[test]
fn a_word_of_the_program_stands_apart_from_an_answer() {
    check(
        "ready\nuser:hi\nturn\nsay:hello\\n\nidle\ntype:/settings\nenter\ntype:/version\nenter\nuser:next",
        expect![[r#"
            $ hangar
            ❯ hi

            hello

            ∙ theme: ansi (/theme)
              vim keys: off (/vim)
              reasoning: off (ctrl+t)
              notifications: on (/notify)
              status line: mode, agent, model, context, cost, directory,
              branch (/statusline)
            ∙ Hangar 0.2.0

            ❯ next

            ❯ ▮
            scripted · ~/project · main
        "#]],
    );
}
