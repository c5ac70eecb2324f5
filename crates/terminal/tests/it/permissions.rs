//! Permission dialogs: everything that would be done is seen before it can be approved, and no early key approves.

use expect_test::expect;

use crate::script::{check, run};

/// Runs a script and returns the answers that were given.
fn answers(script: &str) -> Vec<String> {
    let picture = run(script);
    let answers = picture.lines().filter(|line| line.starts_with("session.permissions."));
    answers
        .map(|line| line.rsplit_once("\"kind\":\"").unwrap().1.split('"').next().unwrap().to_owned())
        .collect()
}

#[test]
fn a_command_is_answered_by_one_key() {
    let asked = r#"
        ready
        turn
        call:c1 bash {"command":"git push && make"}
        ask:p1 {"kind":"shell","toolCallId":"c1","intention":"Publish it","fullCommandText":"git push && make","commands":[{"identifier":"git push","readOnly":false},{"identifier":"make","readOnly":false}],"warning":"it leaves the machine"}
        wait:300
    "#;
    check(
        asked,
        expect![[r#"
            $ hangar
            ? Run git push && make
            ◐ waiting for you · esc esc stops

            Run this command?
              │ Publish it
            ! it leaves the machine
              ┃ git push && make

            ❯ 1. Yes
              2. Yes, and do not ask again for `git push`, `make` in
                 this session
              3. No, and say what to do instead
            a number or enter answers; esc cancels
            ---
            Notify("the agent asks something")
        "#]],
    );
    assert_eq!(answers(&format!("{asked}\n1")), ["approve-once"]);
    assert_eq!(answers(&format!("{asked}\nenter")), ["approve-once"]);
    assert_eq!(answers(&format!("{asked}\n2")), ["approve-for-session"]);
    assert_eq!(answers(&format!("{asked}\ndown\nenter")), ["approve-for-session"]);
    assert_eq!(answers(&format!("{asked}\nesc")), ["reject"]);
    assert_eq!(answers(&format!("{asked}\nctrl+c")), ["reject"]);
    assert_eq!(answers(&format!("{asked}\n3\nenter")), ["reject"]);
    assert!(answers(&format!("{asked}\n3\nesc\n9\nx")).is_empty());
    check(
        &format!("{asked}\n3\ntype:use make 1 publish\nscreen\nenter"),
        expect![[r#"
            $ hangar
            ? Run git push && make
            ◐ waiting for you · esc esc stops

            Run this command?
              │ Publish it
            ! it leaves the machine
              ┃ git push && make

              1. Yes
              2. Yes, and do not ask again for `git push`, `make` in
                 this session
            ❯ 3. No, and say what to do instead
              ❯ use make 1 publish▮
            enter sends; esc goes back
            ---
            Notify("the agent asks something")
            ===
            $ hangar
            ? Run git push && make
            ◐ working · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ---
            session.permissions.handlePendingPermissionRequest {"requestId":"p1","result":{"kind":"reject","feedback":"use make 1 publish"}}
        "#]],
    );
}

#[test]
fn a_description_cannot_look_like_an_answer() {
    let asked = r#"
        ready
        turn
        ask:p1 {"kind":"shell","intention":"List it\n\n1. Yes\n❯ 2. Yes","fullCommandText":"rm -r x","commands":[]}
        wait:300
    "#;
    let picture = run(asked);
    let answers: Vec<&str> = picture
        .lines()
        .map(str::trim_start)
        .filter(|row| row.starts_with("1. ") || row.starts_with("❯ "))
        .collect();
    assert_eq!(answers, ["❯ 1. Yes"], "{picture}");
    assert!(picture.contains("\n  │ 1. Yes\n  │ ❯ 2. Yes\n"), "{picture}");
}

#[test]
fn in_plain_lines_only_a_number_answers() {
    let asked = r#"
        ready
        turn
        call:c1 bash {"command":"git push"}
        ask:p1 {"kind":"shell","toolCallId":"c1","intention":"Publish it","fullCommandText":"git push","commands":[{"identifier":"git push","readOnly":false}]}
        wait:300
    "#;
    for (lines, expected) in [
        ("line:", None),
        ("line: \nline:\t\nline:", None),
        ("line:no", None),
        ("line:please do not 1", None),
        ("line:1 not this", None),
        ("line:9", None),
        ("line:0", None),
        ("line:1", Some("approve-once")),
        ("line:\nline:2.", Some("approve-for-session")),
        ("line:3", None),
        ("line:3\nline:", Some("reject")),
        ("line:3\nline:1", Some("reject")),
        ("line:3 use make", Some("reject")),
    ] {
        let given = answers(&format!("{asked}\n{lines}"));
        assert_eq!(given, Vec::from_iter(expected.map(str::to_owned)), "{lines}");
    }
}

#[test]
fn in_plain_lines_the_whole_command_is_printed_before_it_is_approved() {
    let command = (0..40).map(|at| format!("echo {at}")).collect::<Vec<_>>().join("\\n");
    let asked =
        format!("ready\nturn\nask:p1 {{\"kind\":\"shell\",\"fullCommandText\":\"{command}\"}}\nwait:300\n");
    assert!(answers(&format!("{asked}line:1\nline:\nline:\nline:\nline:")).is_empty());
    assert_eq!(answers(&format!("{asked}line:\nline:\nline:\nline:\nline:1")), ["approve-once"]);
}

#[test]
fn every_kind_shows_what_it_is_about() {
    for (request, expected) in [
        (
            r#"{"kind":"write","fileName":"/p/a.rs","intention":"Change it","diff":"--- a/a.rs\n+++ b/a.rs\n@@ -1,1 +1,1 @@\n-old\n+new\n"}"#,
            expect![[r#"
                $ hangar
                ◐ waiting for you · esc esc stops

                Change this file?
                  ┃ /p/a.rs
                1 - old
                1 + new

                ❯ 1. Yes
                  2. Yes, and do not ask again for changes of files in this
                     session
                  3. No, and say what to do instead
                a number or enter answers; esc cancels
                ---
                Notify("the agent asks something")
            "#]],
        ),
        (
            r#"{"kind":"read","path":"/etc/hosts","intention":"Look"}"#,
            expect![[r#"
                $ hangar
                ◐ waiting for you · esc esc stops

                Read this file?
                  │ Look
                  ┃ /etc/hosts

                ❯ 1. Yes
                  2. Yes, and do not ask again for reading in this session
                  3. No, and say what to do instead
                a number or enter answers; esc cancels
                ---
                Notify("the agent asks something")
            "#]],
        ),
        (
            r#"{"kind":"url","url":"https://example.com/a?b=c","intention":"Fetch"}"#,
            expect![[r#"
                $ hangar
                ◐ waiting for you · esc esc stops

                Fetch this address?
                  │ Fetch
                  ┃ https://example.com/a?b=c

                ❯ 1. Yes
                  2. Yes, and do not ask again for this site in this session
                  3. No, and say what to do instead
                a number or enter answers; esc cancels
                ---
                Notify("the agent asks something")
            "#]],
        ),
        (
            r#"{"kind":"mcp","serverName":"files","toolName":"remove","toolTitle":"Remove a file","args":{"path":"x"},"readOnly":false}"#,
            expect![[r#"
                $ hangar
                ◐ waiting for you · esc esc stops

                Call this tool?
                  │ remove (Remove a file) of the MCP server files
                  ┃ {
                  ┃   "path": "x"
                  ┃ }

                ❯ 1. Yes
                  2. Yes, and do not ask again for remove in this session
                  3. No, and say what to do instead
                a number or enter answers; esc cancels
                ---
                Notify("the agent asks something")
            "#]],
        ),
        (
            r#"{"kind":"memory","fact":"The user likes tabs.","subject":"style","citations":"a.rs"}"#,
            expect![[r#"
                $ hangar
                ◐ waiting for you · esc esc stops

                Remember this?
                  │ The user likes tabs.

                ❯ 1. Yes
                  2. Yes, and do not ask again for this in this session
                  3. No, and say what to do instead
                a number or enter answers; esc cancels
                ---
                Notify("the agent asks something")
            "#]],
        ),
        (
            r#"{"kind":"custom-tool","toolName":"deploy","toolDescription":"Deploys it","args":{"to":"prod"}}"#,
            expect![[r#"
                $ hangar
                ◐ waiting for you · esc esc stops

                Call this tool?
                  │ custom-tool deploy: Deploys it
                  ┃ {
                  ┃   "to": "prod"
                  ┃ }

                ❯ 1. Yes
                  2. Yes, and do not ask again for deploy in this session
                  3. No, and say what to do instead
                a number or enter answers; esc cancels
                ---
                Notify("the agent asks something")
            "#]],
        ),
        (
            r#"{"kind":"hook","toolName":"bash","toolArgs":{"command":"ls"},"hookMessage":"sure?"}"#,
            expect![[r#"
                $ hangar
                ◐ waiting for you · esc esc stops

                A hook asks whether this may run
                  │ sure?
                  ┃ bash {
                  ┃   "command": "ls"
                  ┃ }

                ❯ 1. Yes
                  2. No, and say what to do instead
                a number or enter answers; esc cancels
                ---
                Notify("the agent asks something")
            "#]],
        ),
        (
            r#"{"kind":"shell","fullCommandText":"ls","canOfferSessionApproval":false}"#,
            expect![[r#"
                $ hangar
                ◐ waiting for you · esc esc stops

                Run this command?
                  ┃ ls

                ❯ 1. Yes
                  2. No, and say what to do instead
                a number or enter answers; esc cancels
                ---
                Notify("the agent asks something")
            "#]],
        ),
    ] {
        check(&format!("ready\nturn\nask:p1 {request}\nwait:300"), expected);
    }
}

#[test]
fn a_key_within_the_quiet_time_goes_to_the_draft() {
    check(
        r#"
        ready
        turn
        type:answer
        ask:p1 {"kind":"shell","fullCommandText":"rm x"}
        1
        wait:299
        type: 1
        backspace
        enter
        y
        paste:!!
        screen
        wait:300
        3
        enter
        "#,
        expect![[r#"
            $ hangar
            ◐ waiting for you · esc esc stops

            Run this command?
              ┃ rm x

            ❯ 1. Yes
              2. Yes, and do not ask again for such commands in this
                 session
              3. No, and say what to do instead
            …
            ---
            Notify("the agent asks something")
            ===
            $ hangar
            ◓ working · esc esc stops

            ❯ answer1 y!!▮
            scripted · ~/project · main
            ---
            session.permissions.handlePendingPermissionRequest {"requestId":"p1","result":{"kind":"reject"}}
        "#]],
    );
    let early = "ready\nturn\nask:p1 {\"kind\":\"shell\",\"fullCommandText\":\"rm x\"}\nwait:299";
    for key in ["1", "2", "enter", "y", "esc", "down", "3"] {
        assert!(answers(&format!("{early}\n{key}")).is_empty(), "{key}");
    }
}

#[test]
fn the_next_question_is_not_answered_by_the_same_key() {
    let two = r#"
        ready
        turn
        ask:p1 {"kind":"shell","fullCommandText":"one"}
        ask:p2 {"kind":"shell","fullCommandText":"two"}
        wait:1000
        1
        1
        enter
    "#;
    assert_eq!(answers(two), ["approve-once"]);
    check(
        &format!("{two}\nwait:300"),
        expect![[r#"
            $ hangar
            ◑ waiting for you 1s · esc esc stops

            Run this command?
              ┃ two

            ❯ 1. Yes
              2. Yes, and do not ask again for such commands in this
                 session
              3. No, and say what to do instead
            a number or enter answers; esc cancels
            ---
            Notify("the agent asks something")
            Notify("the agent asks something")
            session.permissions.handlePendingPermissionRequest {"requestId":"p1","result":{"kind":"approve-once"}}
        "#]],
    );
    assert_eq!(answers(&format!("{two}\nwait:300\nesc")), ["approve-once", "reject"]);
}

#[test]
fn a_question_that_is_answered_elsewhere_goes() {
    let answered = r#"
        ready
        turn
        ask:p1 {"kind":"shell","fullCommandText":"one"}
        ask:p2 {"kind":"shell","fullCommandText":"two"}
        wait:1000
        event:permission.completed {"requestId":"p1","result":{"kind":"approved"}}
        1
    "#;
    assert!(answers(answered).is_empty(), "the second was not on the screen when the key was pressed");
    check(
        &format!(
            "{answered}\nevent:permission.completed {{\"requestId\":\"p2\",\"result\":{{\"kind\":\"approved\"}}}}"
        ),
        expect![[r#"
            $ hangar
            ◑ working 1s · esc esc stops

            ❯ 1▮
            scripted · ~/project · main
            ---
            Notify("the agent asks something")
            Notify("the agent asks something")
        "#]],
    );
}

#[test]
fn a_question_behind_an_overlay_is_not_answered_by_the_key_that_closes_it() {
    let script = r#"
        ready
        turn
        f1
        ask:p1 {"kind":"shell","fullCommandText":"one"}
        wait:1000
        q
        1
    "#;
    assert!(answers(script).is_empty());
    assert_eq!(answers(&format!("{script}\nwait:300\n1")), ["approve-once"]);
}

#[test]
fn escapes_and_returns_in_a_command_are_seen() {
    let command = r#"echo safe \u001b[0m\r; rm -rf x"#;
    check(
        &format!("ready\nturn\nask:p1 {{\"kind\":\"shell\",\"fullCommandText\":\"{command}\"}}\nwait:300"),
        expect![[r#"
            $ hangar
            ◐ waiting for you · esc esc stops

            Run this command?
              ┃ echo safe ␛[0m␍; rm -rf x

            ❯ 1. Yes
              2. Yes, and do not ask again for such commands in this
                 session
              3. No, and say what to do instead
            a number or enter answers; esc cancels
            ---
            Notify("the agent asks something")
        "#]],
    );
}

#[test]
fn a_command_is_approved_only_after_its_end_was_on_the_screen() {
    let lines = format!("echo start{}rm -rf x", "\\n".repeat(60));
    let asked =
        format!("ready\nturn\nask:p1 {{\"kind\":\"shell\",\"fullCommandText\":\"{lines}\"}}\nwait:300");
    check(
        &asked,
        expect![[r#"
            $ hangar

            Run this command?
              ┃ echo start
              ┃
              ┃
              ┃
              ┃
              ┃
              ┃
              ┃
              ┃
              ┃
              ┃
              ┃
              ┃
              ┃
              … 47 more rows (pgdn)

            ❯ 1. Yes
              2. Yes, and do not ask again for such commands in this
                 session
              3. No, and say what to do instead
            pgdn shows the rest first; esc cancels
            ---
            Notify("the agent asks something")
        "#]],
    );
    assert!(answers(&format!("{asked}\n1\n2\nenter")).is_empty());
    let pages = "\npagedown".repeat(6);
    assert_eq!(answers(&format!("{asked}{pages}\n1")), ["approve-once"]);
    assert_eq!(answers(&format!("{asked}\nesc")), ["reject"]);
    assert_eq!(answers(&format!("{asked}\n3\nenter")), ["reject"]);
}

#[test]
fn a_command_longer_than_the_screen_is_wrapped_and_scrolled() {
    let long = "x".repeat(3_000);
    let asked = format!(
        "ready\nturn\nask:p1 {{\"kind\":\"shell\",\"fullCommandText\":\"echo {long}; rm -rf x\"}}\nwait:300"
    );
    assert!(answers(&format!("{asked}\n1")).is_empty());
    let seen = format!("{asked}{}", "\npagedown".repeat(6));
    assert!(run(&seen).contains("rm -rf x"));
    assert_eq!(answers(&format!("{seen}\n1")), ["approve-once"]);
}

#[test]
fn rows_that_were_seen_at_another_width_do_not_count() {
    let long = "x".repeat(3_000);
    let asked = format!(
        "size:40x24\nready\nturn\nask:p1 {{\"kind\":\"shell\",\"fullCommandText\":\"echo {long}; rm -rf x\"}}\nwait:300"
    );
    let half = format!("{asked}\npagedown\npagedown\npagedown\nresize:120x24");
    assert!(answers(&format!("{half}\n1")).is_empty());
    assert_eq!(answers(&format!("{half}{}\n1", "\npagedown".repeat(4))), ["approve-once"]);
}

#[test]
fn a_command_without_end_cannot_be_approved() {
    let lines = "\\n".repeat(6_000);
    let asked =
        format!("ready\nturn\nask:p1 {{\"kind\":\"shell\",\"fullCommandText\":\"a{lines}b\"}}\nwait:300");
    let pages = "\npagedown".repeat(400);
    assert!(answers(&format!("{asked}{pages}\n1\n2\nenter")).is_empty());
    assert_eq!(answers(&format!("{asked}\nesc")), ["reject"]);
}

#[test]
fn on_a_small_screen_the_command_is_seen_before_it_is_approved() {
    for size in ["40x10", "20x5", "20x4", "12x6"] {
        let asked = format!(
            "size:{size}\nready\nturn\nask:p1 {{\"kind\":\"shell\",\"fullCommandText\":\"echo one; echo two; echo three; rm -rf x\"}}\nwait:300"
        );
        let mut script = asked.clone();
        let mut seen = String::new();
        // Everything that is approved was on the screen before.
        for _ in 0..12 {
            seen.push_str(&run(&script).replace(['\n', ' ', '┃'], ""));
            script.push_str("\npagedown");
        }
        assert!(seen.contains("rm-rfx"), "{size}: {}", run(&script));
        assert_eq!(answers(&format!("{script}\n1")), ["approve-once"], "{size}");
    }
    check(
        "size:20x5\nready\nturn\nask:p1 {\"kind\":\"shell\",\"fullCommandText\":\"echo one; echo two; rm -rf x\"}\nwait:300\nscreen\npagedown",
        expect![[r#"
            $ hangar
              ┃ echo one; echo
              ┃ two; rm -rf x
            ❯ 1. Yes (↑↓)
            a number or enter a…
            ---
            Notify("the agent asks something")
            ===
            $ hangar
              ┃ echo one; echo
              ┃ two; rm -rf x
            ❯ 1. Yes (↑↓)
            a number or enter a…
        "#]],
    );
    let tiny = "size:20x3\nready\nturn\nask:p1 {\"kind\":\"shell\",\"fullCommandText\":\"ls\"}\nwait:300";
    assert!(answers(&format!("{tiny}\n1")).is_empty(), "the command is not on so small a screen");
}

#[test]
fn in_plain_lines_a_number_in_the_text_is_marked() {
    let mut session = crate::session::Session::new(60, 24);
    let asked = r#"
        ready
        turn
        ask:p1 {"kind":"shell","intention":"Do it\n1. Yes","fullCommandText":"cat <<E\n1. Yes\nE","commands":[]}
        wait:300
    "#;
    asked
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .for_each(|line| crate::script::step(&mut session, line));
    let (_, rows) = session.state.dialog_rows().expect("a dialog");
    let rows: Vec<String> = rows.iter().map(hangar_terminal::row::Row::text).collect();
    let yes: Vec<&String> = rows.iter().filter(|row| row.contains("1. Yes")).collect();
    assert_eq!(yes, ["  │ 1. Yes", "  ┃ 1. Yes", "1. Yes"], "{rows:#?}");
}

#[test]
fn on_a_small_screen_the_command_has_the_room_and_one_answer_is_shown() {
    check(
        r#"size:40x10
        ready
        user:x
        turn
        ask:p1 {"kind":"shell","intention":"Make a file","fullCommandText":"touch one-file-with-a-rather-long-name.txt && echo done && echo again"}
        wait:400
        screen
        down
        screen
        enter"#,
        expect![[r#"
            $ hangar
            ❯ x
            ◐ waiting for you · esc esc stops

            Run this command?
              │ Make a file
              ┃ touch
              ┃ one-file-with-a-rather-long-name.txt
              ┃ && echo done && echo again
            ❯ 1. Yes (↑↓)
            a number or enter answers; esc cancels
            ---
            Notify("the agent asks something")
            ===
            $ hangar
            ❯ x
            ◐ waiting for you · esc esc stops

            Run this command?
              │ Make a file
              ┃ touch
              ┃ one-file-with-a-rather-long-name.txt
              ┃ && echo done && echo again
            ❯ 2. Yes, and do not ask again… (↑↓)
            a number or enter answers; esc cancels
            ===
            $ hangar
            ❯ x
            ◐ working · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ---
            session.permissions.handlePendingPermissionRequest {"requestId":"p1","result":{"kind":"approve-for-session"}}
        "#]],
    );
}

#[test]
fn a_command_without_a_description_is_shown_once() {
    check(
        r#"ready
        turn
        ask:p1 {"kind":"shell","intention":"touch made","fullCommandText":"touch made","commands":[]}
        wait:300"#,
        expect![[r#"
            $ hangar
            ◐ waiting for you · esc esc stops

            Run this command?
              ┃ touch made

            ❯ 1. Yes
              2. Yes, and do not ask again for such commands in this
                 session
              3. No, and say what to do instead
            a number or enter answers; esc cancels
            ---
            Notify("the agent asks something")
        "#]],
    );
}
