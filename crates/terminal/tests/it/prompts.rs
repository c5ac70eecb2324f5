//! The composer and the session: sending, steering, queueing, leaving.

use expect_test::expect;

use crate::script::check;

#[test]
fn the_prompt_is_there_before_the_session() {
    check(
        "type:fix it\nenter\nscreen\ntype:next\nready",
        expect![[r#"
            $ hangar
              next: fix it

            ❯ ▮
            opening the session; your prompt is sent then …
            ===
            $ hangar

            ❯ next▮
            scripted · ~/project · main
            ---
            session.send {"prompt":"fix it","mode":"enqueue"}
        "#]],
    );
}

#[test]
fn prompts_without_a_session_are_seen_and_taken_back() {
    // They come back when the session cannot be opened.
    check(
        "type:fix it\nenter\ntype:and test it\nenter\ntype:a draft\nlost:no model",
        expect![[r#"
        $ hangar
        ✗ no model

        ❯ fix it
          and test it
          a draft▮
    "#]],
    );
    // Those that are typed afterwards wait in sight, also while a provider is chosen, and the last one can be taken back.
    let lost = "lost:no model\ntype:fix it\nenter\ntype:and test it\nenter";
    check(
        &format!(
            "{lost}\nscreen\nhost:{{\"title\":\"Which?\",\"items\":[[\"a\",\"A\",\"\"]]}}\nscreen\n1\nup\nready"
        ),
        expect![[r#"
            $ hangar
            ✗ no model
              next: fix it
              next: and test it

            ❯ ▮
            ===
            $ hangar
            ✗ no model
              next: fix it
              next: and test it

            Which?
            ❯ 1. A
            a number or enter picks; esc goes back
            ===
            $ hangar
            ✗ no model

            ❯ and test it▮
            scripted · ~/project · main
            ---
            Answer(Picked("a"))
            session.send {"prompt":"fix it","mode":"enqueue"}
        "#]],
    );
}

#[test]
fn a_prompt_is_sent_and_shown_when_the_session_says_so() {
    check(
        "ready\ntype:fix it\nenter\nscreen\nuser:fix it\nturn\nwait:2100",
        expect![[r#"
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.send {"prompt":"fix it","mode":"enqueue"}
            ===
            $ hangar
            ❯ fix it
            ◐ working 2s · esc esc stops

            ❯ ▮
            scripted · ~/project · main
        "#]],
    );
}

#[test]
fn what_is_typed_meanwhile_steers_or_waits() {
    check(
        r#"
        ready
        user:fix it
        turn
        type:not so
        enter
        type:then test
        ctrl+q
        event:pending_messages.modified
        reply:session.queue.pendingItems:{"steeringMessages":["not so"],"items":[{"id":"1","displayText":"then test"},{"id":"2","displayText":"then push\nit"}]}
        screen
        up
        screen
        ctrl+c
        esc esc
        event:abort {"reason":"user_initiated"}
        event:session.idle
        "#,
        expect![[r#"
            $ hangar
            ❯ fix it
            ◐ working · esc esc stops
              steers: not so
              next: then test
              next: then push

            ❯ ▮
            scripted · ~/project · main
            ---
            session.send {"prompt":"not so","mode":"immediate"}
            session.send {"prompt":"then test","mode":"enqueue"}
            ===
            $ hangar
            ❯ fix it
            ◐ working · esc esc stops
              steers: not so
              next: then test

            ❯ then push
              it▮
            scripted · ~/project · main
            ---
            session.queue.removeAt {"id":"2"}
            ===
            $ hangar
            ❯ fix it

            ! Aborted · user initiated

            ❯ not so
              then test▮
            scripted · ~/project · main
            ---
            session.abort {"reason":"user_initiated"}
        "#]],
    );
}

#[test]
fn what_is_queued_is_listed_in_order_and_counted() {
    check(
        r#"
        ready
        turn
        event:pending_messages.modified
        reply:session.queue.pendingItems:{"items":[{"id":"1","displayText":"one"},{"id":"2","displayText":"two"},{"id":"3","displayText":"three"},{"id":"4","displayText":"four"}]}
        "#,
        expect![[r#"
            $ hangar
            ◐ working · esc esc stops
              next: one
              next: two
              next: three
              … 1 more

            ❯ ▮
            scripted · ~/project · main
        "#]],
    );
}

#[test]
fn a_refused_prompt_comes_back() {
    check(
        "ready\ntype:fix it\nenter\nrefuse:session.send:the queue is full",
        expect![[r#"
        $ hangar
        ✗ the queue is full

        ❯ fix it▮
        scripted · ~/project · main
        ---
        session.send {"prompt":"fix it","mode":"enqueue"}
    "#]],
    );
}

#[test]
fn a_line_ends_by_backslash_or_alt_enter() {
    check(
        "ready\ntype:one\\u{5c}\nenter\ntype:two\nalt+enter\ntype:three",
        expect![[r#"
        $ hangar

        ❯ one
          two
          three▮
        scripted · ~/project · main
    "#]],
    );
}

#[test]
fn a_paste_of_many_lines_is_a_placeholder_and_sent_in_full() {
    check(
        "ready\npaste:one\\ntwo\\nthree\\nfour\\nfive\\nsix\\nseven\\neight\\nnine\\nten\\neleven\\ntwelve\ntype: ok\nscreen\nenter",
        expect![[r#"
            $ hangar

            ❯ [Paste #1: 12 lines] ok▮
            scripted · ~/project · main
            ===
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.send {"prompt":"one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\neleven\ntwelve ok","mode":"enqueue"}
        "#]],
    );
}

#[test]
fn an_image_goes_with_the_prompt() {
    check(
        "ready\npaste:/tmp/a.png\nimage:/tmp/a.png\ntype: what is it\nscreen\nenter",
        expect![[r#"
            $ hangar

            ❯ [Image #1: a.png] what is it▮
            scripted · ~/project · main
            ---
            Attach("/tmp/a.png")
            ===
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.send {"prompt":"[Image #1: a.png] what is it","mode":"enqueue","attachments":[{"type":"file","path":"/tmp/a.png"}]}
        "#]],
    );
}

#[test]
fn a_queued_image_comes_back_with_its_prompt() {
    check(
        r#"
        ready
        user:work
        turn
        image:/tmp/a.png
        type: look
        ctrl+q
        event:pending_messages.modified {}
        reply:session.queue.pendingItems:{"items":[{"id":"q1","displayText":"[Image #1: a.png] look"}],"steeringMessages":[]}
        up
        screen
        idle
        enter"#,
        expect![[r#"
            $ hangar
            ❯ work
            ◐ working · esc esc stops

            ❯ [Image #1: a.png] look▮
            scripted · ~/project · main
            ---
            session.send {"prompt":"[Image #1: a.png] look","mode":"enqueue","attachments":[{"type":"file","path":"/tmp/a.png"}]}
            session.queue.removeAt {"id":"q1"}
            ===
            $ hangar
            ❯ work

            ❯ ▮
            scripted · ~/project · main
            ---
            session.send {"prompt":"[Image #1: a.png] look","mode":"enqueue","attachments":[{"type":"file","path":"/tmp/a.png"}]}
        "#]],
    );
}

#[test]
fn a_shell_line_is_run_and_its_output_stays() {
    check(
        r#"
        ready
        type:!ls
        screen
        enter
        event:tool.user_requested {"toolCallId":"c1","toolName":"bash","arguments":{"command":"ls"}}
        wait:1000
        screen
        event:tool.execution_complete {"toolCallId":"c1","success":true,"result":{"content":"a.txt\nb.txt"}}
        "#,
        expect![[r#"
            $ hangar

            ! ls▮
            scripted · ~/project · main
            ===
            $ hangar
            ● Run ls
            ◑ running a command 1s · esc stops

            ❯ ▮
            scripted · ~/project · main
            ---
            session.shell.executeUserRequested {"requestId":"shell-0-1","command":"ls"}
            ===
            $ hangar
            ● Run ls
              └ a.txt
                b.txt

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
}

#[test]
fn what_needs_the_session_waits_for_it() {
    check(
        "type:!ls\nenter\nscreen\ntype:/compact\nenter\nready",
        expect![[r#"
            $ hangar

            ❯ ▮
            opening the session; your prompt is sent then …
            ===
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.shell.executeUserRequested {"requestId":"shell-0-1","command":"ls"}
            session.commands.invoke {"name":"compact","input":""}
        "#]],
    );
}

#[test]
fn ctrl_c_clears_first_and_leaves_only_when_it_was_said() {
    check(
        "ready\ntype:a draft\nctrl+c\nscreen\nctrl+c\nscreen\nwait:2500\nctrl+c\nscreen\nctrl+c",
        expect![[r#"
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ===
            $ hangar

            ❯ ▮
            press it again to leave
            ===
            $ hangar

            ❯ ▮
            press it again to leave
            ===
            $ hangar

            ❯ ▮
            press it again to leave
            ---
            Exit(Close)
        "#]],
    );
}

#[test]
fn ctrl_c_stops_the_agent() {
    check(
        "ready\nturn\nctrl+c\nscreen\nctrl+c",
        expect![[r#"
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        press it again to leave
        ---
        session.abort {"reason":"user_initiated"}
        ===
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        press it again to leave
        ---
        Exit(Close)
    "#]],
    );
}

#[test]
fn ctrl_d_leaves_an_empty_prompt_and_asks_while_the_agent_works() {
    check(
        "ready\nctrl+d",
        expect![[r#"
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            Exit(Close)
        "#]],
    );
    check(
        "ready\ntype:ab\nleft\nctrl+d\nscreen\nctrl+c\nturn\nctrl+d\nscreen\nwait:300\n1",
        expect![[r#"
            $ hangar

            ❯ a▮
            scripted · ~/project · main
            ===
            $ hangar
            ◐ waiting for you · esc esc stops

            Leave now?
            The agent works. What it has done so far stays; the session
            can be resumed.

            ❯ 1. Stop it and leave
              2. Stay
            …
            ===
            $ hangar
            ◐ working · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ---
            Exit(Close)
        "#]],
    );
    check(
        "ready\nturn\nctrl+d\nwait:300\nesc",
        expect![[r#"
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        scripted · ~/project · main
    "#]],
    );
}

#[test]
fn esc_twice_stops_rewinds_or_puts_the_draft_away() {
    check(
        "ready\nturn\nesc\nscreen\nesc",
        expect![[r#"
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        esc again stops the agent
        ===
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        scripted · ~/project · main
        ---
        session.abort {"reason":"user_initiated"}
    "#]],
    );
    check(
        "ready\nturn\nesc\nwait:5000\nesc",
        expect![[r#"
        $ hangar
        ◑ working 5s · esc esc stops

        ❯ ▮
        esc again stops the agent
    "#]],
    );
    check(
        "ready\nesc esc",
        expect![[r#"
        Go back to (0)
        ❯ ▮
        loading …




















        type to search · ↑↓ move · enter picks · esc closes
        ---
        session.history.listRewindPoints {}
    "#]],
    );
    check(
        "ready\ntype:a draft\nesc esc\nscreen\nctrl+s",
        expect![[r#"
        $ hangar

        ❯ ▮
        the draft is put away; ctrl+s brings it back
        ===
        $ hangar

        ❯ a draft▮
        the draft is put away; ctrl+s brings it back
    "#]],
    );
}

#[test]
fn a_session_that_is_lost_says_so_and_rests() {
    check(
        "ready\nturn\nsay:half of\nlost:the server is gone\nwait:10000\ntype:hello",
        expect![[r#"
            $ hangar
            half of

            ✗ the server is gone

            ❯ hello▮
            scripted · ~/project · main
        "#]],
    );
}

#[test]
fn another_session_takes_the_place_of_one() {
    check(
        "ready\nuser:one\nturn\nsay:half of an answer\ntype:/new\nenter\nclosed\nscreen\nready\nuser:two",
        expect![[r#"
            $ hangar
            ❯ one

            half of an answer

            ∙ Another session begins here; /resume goes back to the one
              before.

            ❯ ▮
            opening the session …
            ---
            Open(New)
            ===
            $ hangar
            ❯ one

            half of an answer

            ∙ Another session begins here; /resume goes back to the one
              before.

            ❯ two

            ❯ ▮
            scripted · ~/project · main
        "#]],
    );
}

#[test]
fn a_session_that_is_opened_again_shows_the_end_of_its_log() {
    check(
        "prompt:from the start\nready\ntold:the file is not read",
        expect![[r#"
        $ hangar

        ❯ ▮
        the file is not read
        ---
        session.send {"prompt":"from the start","mode":"enqueue"}
    "#]],
    );
}

#[test]
fn a_prompt_without_an_answer_comes_back_when_the_agent_is_stopped() {
    let sent = "ready\npaste:/tmp/a.png\nimage:/tmp/a.png\ntype: fix it\nenter\nuser:fix it\nturn";
    check(
        &format!("{sent}\nesc esc"),
        expect![[r#"
        $ hangar
        ❯ fix it
        ◐ working · esc esc stops

        ❯ [Image #1: a.png] fix it▮
        scripted · ~/project · main
        ---
        Attach("/tmp/a.png")
        session.send {"prompt":"[Image #1: a.png] fix it","mode":"enqueue","attachments":[{"type":"file","path":"/tmp/a.png"}]}
        session.abort {"reason":"user_initiated"}
    "#]],
    );
    // With a draft it does not: the draft stays, and the history has the prompt.
    check(
        &format!("{sent}\ntype:or not\nesc esc"),
        expect![[r#"
        $ hangar
        ❯ fix it
        ◐ working · esc esc stops

        ❯ or not▮
        scripted · ~/project · main
        ---
        Attach("/tmp/a.png")
        session.send {"prompt":"[Image #1: a.png] fix it","mode":"enqueue","attachments":[{"type":"file","path":"/tmp/a.png"}]}
        session.abort {"reason":"user_initiated"}
    "#]],
    );
    // Nor once something was said to it.
    check(
        &format!("{sent}\nsay:well\nesc esc"),
        expect![[r#"
        $ hangar
        ❯ fix it
        well
        ◐ working · esc esc stops

        ❯ ▮
        scripted · ~/project · main
        ---
        Attach("/tmp/a.png")
        session.send {"prompt":"[Image #1: a.png] fix it","mode":"enqueue","attachments":[{"type":"file","path":"/tmp/a.png"}]}
        session.abort {"reason":"user_initiated"}
    "#]],
    );
}

#[test]
fn what_waits_is_put_before_the_draft_when_the_agent_is_stopped() {
    check(
        r#"
        ready
        turn
        say:well
        type:and then
        event:pending_messages.modified
        reply:session.queue.pendingItems:{"items":[{"id":"1","displayText":"one"},{"id":"2","displayText":"two"}]}
        esc esc
        "#,
        expect![[r#"
            $ hangar
            well
            ◐ working · esc esc stops

            ❯ one
              two
              and then▮
            scripted · ~/project · main
            ---
            session.abort {"reason":"user_initiated"}
        "#]],
    );
}
