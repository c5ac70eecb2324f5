//! Questions, plans, trust, and what is shown beside them.

use expect_test::expect;

use crate::script::check;

#[test]
fn a_question_is_answered_by_a_number_or_by_a_text() {
    let asked = r#"
        ready
        turn
        event:user_input.requested {"requestId":"q1","question":"Which **side**?","choices":["left","right"],"allowFreeform":true}
        wait:300
    "#;
    check(
        asked,
        expect![[r#"
            $ hangar
            ◐ waiting for you · esc esc stops

            A question
              │ Which side?

            ❯ 1. left
              2. right
              3. Something else
            a number or enter answers; esc cancels
            ---
            Notify("the agent asks something")
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
        session.ui.handlePendingUserInput {"requestId":"q1","response":{"answer":"right","wasFreeform":false}}
    "#]],
    );
    check(
        &format!("{asked}\n3\nenter\ntype:the middle\nscreen\nenter"),
        expect![[r#"
            $ hangar
            ◐ waiting for you · esc esc stops

            A question
              │ Which side?

              1. left
              2. right
            ❯ 3. Something else
              ❯ the middle▮
            enter sends; esc goes back
            ---
            Notify("the agent asks something")
            ===
            $ hangar
            ◐ working · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ---
            session.ui.handlePendingUserInput {"requestId":"q1","response":{"answer":"the middle","wasFreeform":true}}
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
        session.ui.handlePendingUserInput {"requestId":"q1","response":{"answer":"The user skipped this question. Go on without an answer, or ask differently.","wasFreeform":true}}
    "#]],
    );
}

#[test]
fn a_question_without_choices_takes_a_text() {
    let asked = r#"
        ready
        turn
        event:user_input.requested {"requestId":"q1","question":"What name?"}
        wait:300
    "#;
    check(
        &format!("{asked}\npaste:Ada\\nL.\nscreen\nenter"),
        expect![[r#"
            $ hangar
            ◐ waiting for you · esc esc stops

            A question
              │ What name?

              ❯ Ada L.▮
            enter sends; esc goes back
            ---
            Notify("the agent asks something")
            ===
            $ hangar
            ◐ working · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ---
            session.ui.handlePendingUserInput {"requestId":"q1","response":{"answer":"Ada L.","wasFreeform":true}}
        "#]],
    );
    check(
        &format!("{asked}\nctrl+c"),
        expect![[r#"
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        scripted · ~/project · main
        ---
        Notify("the agent asks something")
        session.ui.handlePendingUserInput {"requestId":"q1","response":{"answer":"The user skipped this question. Go on without an answer, or ask differently.","wasFreeform":true}}
    "#]],
    );
}

#[test]
fn an_answer_stands_in_the_transcript() {
    check(
        r#"
        ready
        turn
        event:user_input.requested {"requestId":"q1","question":"Which side?","choices":["left","right"]}
        event:user_input.completed {"requestId":"q1","answer":"left","wasFreeform":false}
        event:exit_plan_mode.requested {"requestId":"x1","summary":"s","planContent":"1. turn it","actions":["interactive"],"recommendedAction":"interactive"}
        event:exit_plan_mode.completed {"requestId":"x1","approved":false,"feedback":"test it too"}
        idle
        "#,
        expect![[r#"
            $ hangar
            ? Which side?
              → left

            1. turn it
            ∙ Plan not approved: test it too

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            Notify("the agent asks something")
            Notify("the agent asks something")
        "#]],
    );
}

#[test]
fn a_plan_is_approved_in_the_recommended_way_or_changed() {
    let asked = r##"
        ready
        turn
        event:exit_plan_mode.requested {"requestId":"x1","summary":"s","planContent":"# Plan\n\n1. turn the sign\n2. test","actions":["interactive","autopilot","exit_only"],"recommendedAction":"autopilot"}
        wait:300
    "##;
    check(
        asked,
        expect![[r#"
            $ hangar
            ◐ waiting for you · esc esc stops

            Approve this plan?
              │ Plan
              │
              │ 1. turn the sign
              │ 2. test

              1. Yes, and ask before each step
            ❯ 2. Yes, and work on alone until it is done
              3. Leave plan mode and wait for my prompt
              4. No, change the plan: say how
            a number or enter answers; esc cancels
            ---
            Notify("the agent asks something")
        "#]],
    );
    check(
        &format!("{asked}\nenter"),
        expect![[r#"
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        scripted · ~/project · main
        ---
        Notify("the agent asks something")
        session.ui.handlePendingExitPlanMode {"requestId":"x1","response":{"approved":true,"selectedAction":"autopilot"}}
    "#]],
    );
    check(
        &format!("{asked}\n4\ntype:smaller steps\nenter"),
        expect![[r#"
        $ hangar
        ◐ working · esc esc stops

        ❯ ▮
        scripted · ~/project · main
        ---
        Notify("the agent asks something")
        session.ui.handlePendingExitPlanMode {"requestId":"x1","response":{"approved":false,"feedback":"smaller steps"}}
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
        session.ui.handlePendingExitPlanMode {"requestId":"x1","response":{"approved":false}}
    "#]],
    );
}

#[test]
fn trust_is_asked_before_anything_is_read() {
    check(
        "trust:~/project\nwait:300",
        expect![[r#"
            $ hangar

            Do you trust this directory?
              ┃ ~/project
            Files here can hold instructions for the model, and programs
            that are started with a session (MCP servers, hooks). Work
            in directories that you trust.

            ❯ 1. Yes, for this session
              2. Yes, and remember this directory
              3. No, leave
            a number or enter answers; esc cancels
        "#]],
    );
    check(
        "trust:~/project\nwait:300\n1",
        expect![[r#"
        $ hangar

        ❯ ▮
        opening the session …
        ---
        Trust { remember: false }
    "#]],
    );
    check(
        "trust:~/project\nwait:300\n2",
        expect![[r#"
        $ hangar

        ❯ ▮
        opening the session …
        ---
        Trust { remember: true }
    "#]],
    );
    check(
        "trust:~/project\nwait:300\nesc",
        expect![[r#"
        $ hangar

        ❯ ▮
        opening the session …
        ---
        Exit(Close)
    "#]],
    );
    check(
        "trust:~/project\ntype:fix 1 2\nenter",
        expect![[r#"
            $ hangar

            Do you trust this directory?
              ┃ ~/project
            Files here can hold instructions for the model, and programs
            that are started with a session (MCP servers, hooks). Work
            in directories that you trust.

            ❯ 1. Yes, for this session
              2. Yes, and remember this directory
              3. No, leave
            …
        "#]],
    );
}

#[test]
fn questions_of_work_that_ended_go() {
    check(
        r#"
        ready
        turn
        ask:p1 {"kind":"shell","fullCommandText":"one"}
        event:abort {"reason":"user_initiated"}
        event:session.idle
        "#,
        expect![[r#"
            $ hangar
            ! Aborted · user initiated

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            Notify("the agent asks something")
        "#]],
    );
}

#[test]
fn someone_who_looks_elsewhere_is_told() {
    check(
        "ready\nturn\nfocus:out\nask:p1 {\"kind\":\"shell\",\"fullCommandText\":\"one\"}\nidle",
        expect![[r#"
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            Notify("the agent asks something")
            Notify("the agent is done")
        "#]],
    );
}
