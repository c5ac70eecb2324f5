//! Forms of MCP servers.

use expect_test::expect;

use crate::script::check;

const ALL: &str = r#"
    ready
    turn
    event:elicitation.requested {"requestId":"f1","message":"Who are you?","elicitationSource":"github","requestedSchema":{"type":"object","required":["name"],"properties":{"name":{"type":"string","title":"Name"},"age":{"type":"integer"},"height":{"type":"number","default":1.8},"member":{"type":"boolean"},"side":{"type":"string","enum":["left","right"],"enumNames":["To the left","To the right"]},"size":{"oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}],"default":"l"},"tags":{"type":"array","items":{"enum":["a","b","c"]},"default":["b"]}}}}
    wait:300
"#;

#[test]
fn every_kind_of_field_is_filled() {
    check(
        ALL,
        expect![[r#"
        $ hangar
        ◐ waiting for you · esc esc stops

        github asks
        Who are you?
        ❯ Name *: ▮
          age:
          height: 1.8
          member: [ ] no
          side: ‹ choose one of 2 ›
          size: ‹ Large ›
          tags:  [ ] a  [x] b  [ ] c
        enter goes on and sends; ←→ or space choose; ctrl+d decline…
        ---
        Notify("the agent asks something")
    "#]],
    );
    check(
        &format!(
            "{ALL}\ntype:Ada\nenter\ntype:36\nenter\nenter\nspace\nenter\nright\nright\nenter\nleft\nenter\nspace\nright\nspace\nscreen\nenter"
        ),
        expect![[r#"
            $ hangar
            ◐ waiting for you · esc esc stops

            github asks
            Who are you?
              Name *: Ada
              age: 36
              height: 1.8
              member: [x] yes
              side: ‹ To the right ›
              size: ‹ Small ›
            ❯ tags:  [x] a >[ ] b  [ ] c
            enter goes on and sends; ←→ or space choose; ctrl+d decline…
            ---
            Notify("the agent asks something")
            ===
            $ hangar
            ◐ working · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ---
            session.ui.handlePendingElicitation {"requestId":"f1","result":{"action":"accept","content":{"name":"Ada","age":36,"height":1.8,"member":true,"side":"right","size":"s","tags":["a"]}}}
        "#]],
    );
}

#[test]
fn a_form_says_what_is_missing_or_wrong() {
    let end = "down\n".repeat(6);
    check(
        &format!("{ALL}\n{end}enter"),
        expect![[r#"
        $ hangar
        ◐ waiting for you · esc esc stops

        github asks
        Who are you?
        ❯ Name *: ▮
          age:
          height: 1.8
          member: [ ] no
          side: ‹ choose one of 2 ›
          size: ‹ Large ›
          tags:  [ ] a  [x] b  [ ] c
        Name is needed
        enter goes on and sends; ←→ or space choose; ctrl+d decline…
        ---
        Notify("the agent asks something")
    "#]],
    );
    check(
        &format!("{ALL}\ntype:Ada\ndown\ntype:many\n{end}enter"),
        expect![[r#"
        $ hangar
        ◐ waiting for you · esc esc stops

        github asks
        Who are you?
          Name *: Ada
        ❯ age: many▮
          height: 1.8
          member: [ ] no
          side: ‹ choose one of 2 ›
          size: ‹ Large ›
          tags:  [ ] a  [x] b  [ ] c
        age: a whole number is needed
        enter goes on and sends; ←→ or space choose; ctrl+d decline…
        ---
        Notify("the agent asks something")
    "#]],
    );
    check(
        &format!("{ALL}\ntype:Ada\ndown\ndown\nctrl+u\ntype:nan\n{end}enter"),
        expect![[r#"
        $ hangar
        ◐ waiting for you · esc esc stops

        github asks
        Who are you?
          Name *: Ada
          age:
        ❯ height: nan▮
          member: [ ] no
          side: ‹ choose one of 2 ›
          size: ‹ Large ›
          tags:  [ ] a  [x] b  [ ] c
        height: a number is needed
        enter goes on and sends; ←→ or space choose; ctrl+d decline…
        ---
        Notify("the agent asks something")
    "#]],
    );
}

#[test]
fn a_form_is_declined_or_cancelled() {
    check(
        &format!("{ALL}\nctrl+d"),
        expect![[r#"
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        scripted · ~/project · main
        ---
        Notify("the agent asks something")
        session.ui.handlePendingElicitation {"requestId":"f1","result":{"action":"decline"}}
    "#]],
    );
    check(
        &format!("{ALL}\nesc"),
        expect![[r#"
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        scripted · ~/project · main
        ---
        Notify("the agent asks something")
        session.ui.handlePendingElicitation {"requestId":"f1","result":{"action":"cancel"}}
    "#]],
    );
    check(
        &format!("{ALL}\nctrl+c"),
        expect![[r#"
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        scripted · ~/project · main
        ---
        Notify("the agent asks something")
        session.ui.handlePendingElicitation {"requestId":"f1","result":{"action":"cancel"}}
    "#]],
    );
    check(
        &format!("{ALL}\nevent:elicitation.completed {{\"requestId\":\"f1\",\"action\":\"cancel\"}}"),
        expect![[r#"
            $ hangar
            ? Who are you?
              → not answered
            ◐ working · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ---
            Notify("the agent asks something")
        "#]],
    );
}

#[test]
fn keys_before_it_is_armed_are_for_the_draft() {
    let early = ALL.replace("wait:300", "wait:100");
    check(
        &format!("{early}\ntype:abc\npaste: def\nenter\nesc\nscreen\nwait:300\nesc"),
        expect![[r#"
        $ hangar
        ◐ waiting for you · esc esc stops

        github asks
        Who are you?
        ❯ Name *: ▮
          age:
          height: 1.8
          member: [ ] no
          side: ‹ choose one of 2 ›
          size: ‹ Large ›
          tags:  [ ] a  [x] b  [ ] c
        …
        ---
        Notify("the agent asks something")
        ===
        $ hangar
        ◐ working · esc esc stops

        ❯ abc def▮
        scripted · ~/project · main
        ---
        session.ui.handlePendingElicitation {"requestId":"f1","result":{"action":"cancel"}}
    "#]],
    );
}

#[test]
fn the_field_that_is_edited_is_on_a_small_screen() {
    let small = format!("size:30x7{ALL}");
    check(
        &format!("{small}\ntype:Ada\nscreen\n{}", "down\n".repeat(6)),
        expect![[r#"
        $ hangar

        github asks
        Who are you?
        ❯ Name *: Ada▮
          age:
        enter goes on and sends; ←→ o…
        ---
        Notify("the agent asks something")
        ===
        $ hangar

        github asks
        Who are you?
          size: ‹ Large ›
        ❯ tags: >[ ] a  [x] b  [ ] c
        enter goes on and sends; ←→ o…
    "#]],
    );
}

#[test]
fn a_long_message_is_scrolled() {
    let lines = (1..40).map(|line| line.to_string()).collect::<Vec<_>>().join("\\n");
    let asked = format!(
        "ready\nturn\nevent:elicitation.requested {{\"requestId\":\"f1\",\"message\":\"{lines}\",\"requestedSchema\":{{\"type\":\"object\",\"properties\":{{\"name\":{{\"type\":\"string\"}}}}}}}}\nwait:300"
    );
    check(
        &format!("{asked}\nscreen\npagedown\npagedown\npagedown\npagedown"),
        expect![[r#"
        $ hangar
        ◐ waiting for you · esc esc stops

        A form
        1
        2
        3
        4
        5
        6
        7
        8
        9
        10
          … 29 more rows (pgup, pgdn)
        ❯ name: ▮
        enter goes on and sends; ←→ or space choose; ctrl+d decline…
        ---
        Notify("the agent asks something")
        ===
        $ hangar
        ◐ waiting for you · esc esc stops

        A form
        30
        31
        32
        33
        34
        35
        36
        37
        38
        39
          … 29 more rows (pgup, pgdn)
        ❯ name: ▮
        enter goes on and sends; ←→ or space choose; ctrl+d decline…
    "#]],
    );
}

#[test]
fn an_address_is_opened_by_the_person() {
    let asked = r#"
        ready
        turn
        event:elicitation.requested {"requestId":"f1","mode":"url","message":"Log in there.","url":"https://example.com/login?a=b","elicitationSource":"github"}
        wait:300
    "#;
    check(
        asked,
        expect![[r#"
            $ hangar
            ◐ waiting for you · esc esc stops

            github asks
            Log in there.
              ┃ https://example.com/login?a=b

            ❯ 1. I opened it
              2. Decline
            a number or enter answers; esc cancels
            ---
            Notify("the agent asks something")
        "#]],
    );
    check(
        &format!("{asked}\n1"),
        expect![[r#"
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        scripted · ~/project · main
        ---
        Notify("the agent asks something")
        session.ui.handlePendingElicitation {"requestId":"f1","result":{"action":"accept"}}
    "#]],
    );
    check(
        &format!("{asked}\n2"),
        expect![[r#"
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        scripted · ~/project · main
        ---
        Notify("the agent asks something")
        session.ui.handlePendingElicitation {"requestId":"f1","result":{"action":"decline"}}
    "#]],
    );
    check(
        &format!("{asked}\nesc"),
        expect![[r#"
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        scripted · ~/project · main
        ---
        Notify("the agent asks something")
        session.ui.handlePendingElicitation {"requestId":"f1","result":{"action":"cancel"}}
    "#]],
    );
}

/// The form in plain lines after each line, and the requests.
fn check_lines(lines: &[&str], expected: expect_test::Expect) {
    let mut session = crate::session::Session::new(60, 24);
    ALL.lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .for_each(|line| crate::script::step(&mut session, line));
    session.log.clear();
    let mut told = String::new();
    let plain = |session: &crate::session::Session| {
        let rows = session.state.dialog_rows().map(|(_, rows)| rows).unwrap_or_default();
        rows.iter().map(|row| format!("{}\n", row.text().trim_end())).collect::<String>()
    };
    for line in lines {
        crate::script::step(&mut session, &format!("line:{line}"));
        told = format!("{}{}\n", plain(&session), session.log.join("\n"));
    }
    expected.assert_eq(told.trim_end());
}

#[test]
fn in_plain_lines_an_empty_line_fills_and_sends_nothing() {
    check_lines(
        &["", "", ""],
        expect![[r#"
        github asks
        Who are you?
        Field 1 of 7: Name, required, now empty
        the next line is the text; - leaves it; an empty line asks again; /cancel cancels"#]],
    );
    check_lines(
        &["-"],
        expect![[r#"
        github asks
        Who are you?
        Name is needed
        Field 1 of 7: Name, required, now empty
        the next line is the text; - leaves it; an empty line asks again; /cancel cancels"#]],
    );
    check_lines(
        &["Ada", "old"],
        expect![[r#"
        age: a whole number is needed
        Field 2 of 7: age, now old
        the next line is the number; - leaves it; an empty line asks again; /cancel cancels"#]],
    );
    check_lines(
        &["Ada", "36", "-", "yes", "2"],
        expect![[r#"
        Field 6 of 7: size, now Large
        1. Small
        2. Large
        a number, then enter; - leaves it; an empty line asks again; /cancel cancels"#]],
    );
    let all = ["Ada", "36", "-", "yes", "to the right", "1", "1, 3", "", "", "yes"];
    check_lines(
        &all,
        expect![[r#"
        Name: Ada
        age: 36
        height: 1.8
        member: yes
        side: To the right
        size: Small
        tags: a, c
        1. Send
        2. Change it
        3. Decline
        a number, then enter; an empty line asks again; /cancel cancels"#]],
    );
    check_lines(
        &[&all[..], &["1"]].concat(),
        expect![[
            r#"session.ui.handlePendingElicitation {"requestId":"f1","result":{"action":"accept","content":{"name":"Ada","age":36,"height":1.8,"member":true,"side":"right","size":"s","tags":["a","c"]}}}"#
        ]],
    );
    check_lines(
        &[&all[..], &["3"]].concat(),
        expect![[r#"session.ui.handlePendingElicitation {"requestId":"f1","result":{"action":"decline"}}"#]],
    );
    check_lines(
        &["/cancel"],
        expect![[r#"session.ui.handlePendingElicitation {"requestId":"f1","result":{"action":"cancel"}}"#]],
    );
}
