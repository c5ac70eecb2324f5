//! Events of a session as rows.

use expect_test::expect;

use crate::script::{check, run};

#[test]
fn an_answer_streams_row_by_row() {
    check(
        "ready\nuser:hello\nturn\nsay:# Title\\n\\nSome **bold** words and `code` that go on until the row is full and\nscreen\nsay: on.\\n\\n- one\\n- two\\n\\n```rust\\nfn main() {}\\n```\\n\nsay:\\n| a | b |\\n|---|---|\\n| 1 | 2 |\\n\nscreen\nsay:\\nEnd\nidle",
        expect![[r#"
            $ hangar
            ❯ hello

            Title
            …e that go on until the row is full and
            ◐ working · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ===
            $ hangar
            ❯ hello

            Title

            Some bold words and code that go on until the row is full
            and on.

            • one
            • two

            rust
            fn main() {}

            ◐ working · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ===
            $ hangar
            ❯ hello

            Title

            Some bold words and code that go on until the row is full
            and on.

            • one
            • two

            rust
            fn main() {}

            ┌───┬───┐
            │ a │ b │
            ├───┼───┤
            │ 1 │ 2 │
            └───┴───┘

            End

            ❯ ▮
            scripted · ~/project · main
        "#]],
    );
}

#[test]
fn the_whole_message_repeats_nothing() {
    check(
        "ready\nturn\nsay:one two\nmessage:m1 one two\nsay:three\nidle",
        expect![[r#"
            $ hangar
            one two

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
}

#[test]
fn reasoning_is_shown_live_and_kept_if_asked_for() {
    check(
        "ready\nturn\nthink:let me see\nscreen\nsay:Done.\nidle",
        expect![[r#"
            $ hangar
            let me see
            ◐ working · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ===
            $ hangar
            Done.

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
    check(
        "ready\nctrl+t\nturn\nthink:let me see\nsay:Done.\nidle",
        expect![[r#"
        $ hangar
        ∴ let me see

        Done.

        ❯ ▮
        reasoning is shown
        ---
        Keep { key: "reasoning", value: Bool(true) }
    "#]],
    );
}

#[test]
fn a_call_is_live_then_brief() {
    check(
        r#"
        ready
        turn
        call:c1 bash {"command":"make\nmake test"}
        wait:3000
        output:c1 cc a.c\ncc b.c\n
        screen
        result:c1 1\n2\n3\n4\n5\n6\n7\n8\n9\n10
        call:c2 view {"path":"a.rs"}
        result:c2 1\n2\n3
        idle
        "#,
        expect![[r#"
            $ hangar
            ● Run make … +1 line  3s
              └ cc b.c
            ◑ working 3s · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ===
            $ hangar
            ● Run make … +1 line
              └ 1
                2
                … 4 lines (ctrl+o shows all)
                7
                8
                9
                10
            ● Read a.rs
              └ 3 lines

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
}

#[test]
fn a_call_that_fails_says_why() {
    check(
        r#"
        ready
        turn
        call:c1 bash {"command":"false"}
        event:tool.execution_complete {"toolCallId":"c1","success":false,"shellExecution":{"exitCode":2},"result":{"content":"no such file"},"error":{"message":"failed"}}
        call:c2 edit {"path":"a.rs"}
        fail:c2 the text is not in the file
        idle
        "#,
        expect![[r#"
            $ hangar
            ● Run false  exit code 2
              └ no such file
            ● Edit a.rs
              └ the text is not in the file

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
}

#[test]
fn a_call_that_was_not_allowed_says_so() {
    check(
        r#"
        ready
        turn
        call:c1 bash {"command":"rm x"}
        ask:p1 {"kind":"shell","toolCallId":"c1","fullCommandText":"rm x"}
        event:permission.completed {"requestId":"p1","toolCallId":"c1","result":{"kind":"denied-interactively-by-user","feedback":"use git rm"}}
        fail:c1 not allowed
        idle
        "#,
        expect![[r#"
            $ hangar
            ● Run rm x
              └ not allowed: use git rm

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            Notify("the agent asks something")
        "#]],
    );
}

#[test]
fn a_change_is_a_diff() {
    check(
        r#"
        ready
        turn
        call:c1 edit {"path":"a.rs"}
        event:tool.execution_complete {"toolCallId":"c1","success":true,"result":{"content":"changed","detailedContent":"--- a/a.rs\n+++ b/a.rs\n@@ -1,2 +1,2 @@\n one\n-let a = 1;\n+let a = 2;\n"}}
        idle
        "#,
        expect![[r#"
            $ hangar
            ● Edit a.rs
            1   one
            2 - let a = 1;
            2 + let a = 2;

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
}

#[test]
fn calls_side_by_side_are_shown_side_by_side() {
    check(
        r#"
        ready
        turn
        call:c1 bash {"command":"sleep 9"}
        call:c2 bash {"command":"ls"}
        output:c2 a.txt
        screen
        result:c2 a.txt
        screen
        result:c1 woke
        idle
        "#,
        expect![[r#"
            $ hangar
            ● Run sleep 9
            ● Run ls
              └ a.txt
            ◐ working · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ===
            $ hangar
            ● Run sleep 9
            ● Run ls
              └ a.txt
            ◐ working · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ===
            $ hangar
            ● Run sleep 9
              └ woke
            ● Run ls
              └ a.txt

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
}

#[test]
fn an_agent_is_its_call_with_what_it_took() {
    check(
        r#"
        ready
        turn
        call:c1 task {"description":"look around","prompt":"look"}
        event@a1:subagent.started {"toolCallId":"c1","agentName":"explore","agentDisplayName":"explore","agentDescription":"look around"}
        event@a1:assistant.message {"messageId":"x","content":"nothing for the main screen"}
        wait:2000
        screen
        event@a1:subagent.completed {"toolCallId":"c1","agentName":"explore","agentDisplayName":"explore","totalToolCalls":3,"totalTokens":3738,"durationMs":5000}
        result:c1 all is well
        idle
        "#,
        expect![[r#"
            $ hangar
            ● Agent look around  2s
            ◐ working 2s · 1 agent · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ===
            $ hangar
            ● Agent look around
              └ done · 3 tool calls · 3.7k tokens · 5s

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
}

#[test]
fn an_agent_in_the_background_works_on() {
    check(
        r#"
        ready
        turn
        call:c1 task {"description":"look around","mode":"background"}
        event@a1:subagent.started {"toolCallId":"c1","agentName":"explore","agentDisplayName":"explore","agentDescription":"look","executionMode":"background"}
        result:c1 started
        say:It runs.
        idle
        screen
        event@a1:permission.requested {"requestId":"p1","permissionRequest":{"kind":"shell","fullCommandText":"ls"}}
        turn
        idle
        "#,
        expect![[r#"
            $ hangar
            ● Agent look around
              └ works in the background

            It runs.

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ===
            $ hangar
            ● Agent look around
              └ works in the background

            It runs.

            Run this command? (asked by explore)
              ┃ ls

            ❯ 1. Yes
              2. Yes, and do not ask again for such commands in this
                 session
              3. No, and say what to do instead
            …
            ---
            Notify("the agent asks something")
        "#]],
    );
}

#[test]
fn notices_are_rows_of_their_own() {
    check(
        r#"
        ready
        turn
        event:assistant.turn_retry {"turnId":"0","reason":"streaming_error"}
        event:session.compaction_start
        event:session.compaction_complete {"success":true,"preCompactionTokens":90000,"postCompactionTokens":4000,"summaryContent":"We did it.\nAnd more."}
        event:session.warning {"message":"a warning"}
        event:session.error {"errorType":"query","message":"400 bad request"}
        event:session.task_complete {"summary":"all of it"}
        event:session.mode_changed {"previousMode":"interactive","newMode":"plan"}
        event:session.model_change {"newModel":"other","reasoningEffort":"high"}
        event:session.usage_info {"tokenLimit":128000,"currentTokens":110000,"messagesLength":1}
        event:assistant.usage {"model":"other","cost":0.25}
        idle
        "#,
        expect![[r#"
            $ hangar
            ! Trying the model again · streaming_error
            ∙ Conversation compacted: 90k → 4.0k tokens · We did it.
            ! a warning
            ✗ 400 bad request
            ✓ Task complete · all of it
            ∙ Mode: plan
            ∙ Model: other

            ❯ ▮
            plan · other (high) · 85% of 128k · $0.250 · ~/project
        "#]],
    );
}

#[test]
fn a_rewind_is_told() {
    check(
        "ready\nuser:one\nturn\nsay:1\nidle\nevent:session.snapshot_rewind {\"upToEventId\":\"e1\",\"eventsRemoved\":4}",
        expect![[r#"
            $ hangar
            ❯ one

            1

            ∙ Rewound to an earlier point

            ❯ ▮
            scripted · ~/project · main
        "#]],
    );
}

#[test]
fn an_answer_that_was_cut_off_is_told_of_when_the_session_is_resumed() {
    let prompt = r#"user.message {"content":"fix it"}; assistant.turn_start {"turnId":"0"}"#;
    check(
        &format!("past:{prompt}\nevent:session.resume {{\"resumeTime\":\"\",\"eventCount\":2}}\nready"),
        expect![[r#"
            $ hangar
            ❯ fix it

            ! The answer to the last prompt was cut off: the program
              ended while the agent worked. Its finished steps are kept;
              ask it to continue.
            ∙ Resumed

            ❯ ▮
            scripted · ~/project · main
            ---
            session.schedule.list {}
        "#]],
    );
    // One of another process may still be coming.
    check(
        &format!("past-live:{prompt}\nready"),
        expect![[r#"
            $ hangar
            ❯ fix it
            ◐ working · esc esc stops

            ❯ ▮
            scripted · ~/project · main
            ---
            session.schedule.list {}
        "#]],
    );
    let ended = r#"assistant.message {"messageId":"m","content":"done"}; assistant.turn_end {"turnId":"0"}"#;
    for end in
        [ended, r#"abort {"reason":"user_initiated"}"#, r#"session.shutdown {"shutdownType":"routine"}"#]
    {
        let picture = run(&format!("past:{prompt}; {end}\nready"));
        assert!(!picture.contains("cut off"), "{picture}");
    }
}

#[test]
fn output_that_was_too_large_says_in_which_file_it_is() {
    let notice = "Output too large to read at once (106.3 KB). Saved to: /home/u/files/1-copilot-tool-output-bash.txt\\n\
        Consider using tools like grep.\\n\\nPreview (first 10 chars):\\n";
    let many = format!(
        "{notice}1\\n2\\n3\\n\\n[... 90 lines (95.0 KB) left out; they are in the file ...]\\n\\n\
        Preview (last 12 chars):\\n96\\n97\\n98\\n99\\n100"
    );
    let call = r#"call:c1 bash {"command":"seq 100"}"#;
    check(
        &format!("size:90x20\nready\nturn\n{call}\nresult:c1 {many}\\n<exited with exit code 0>\nidle"),
        expect![[r#"
            $ hangar
            ● Run seq 100
              └ 1
                2
                … 92 lines, all 106.3 KB in /home/u/files/1-copilot-tool-output-bash.txt
                97
                98
                99
                100

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
    check(
        &format!("size:90x20\nready\nturn\n{call}\nresult:c1 {notice}one long line\nidle"),
        expect![[r#"
            $ hangar
            ● Run seq 100
              └ one long line
                … all 106.3 KB in /home/u/files/1-copilot-tool-output-bash.txt

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
}

#[test]
fn of_notices_for_the_model_a_person_is_told_what_happened() {
    check(
        r##"ready
        turn
        event:system.notification {"content":"<system_notification>\nAgent \"looker\" (task) has finished processing and is now idle. Use read_agent with agent_id \"a1\" to read the results, or write_agent to send more.\n</system_notification>","kind":{"type":"agent_idle","agentId":"a1","agentType":"task"}}
        event:system.notification {"content":"<system_reminder>\nsub/AGENTS.md has instructions for the code you are looking at. Follow them there:\n\n# Rules\nUse tabs.\n</system_reminder>","kind":{"type":"instruction_discovered","sourcePath":"sub/AGENTS.md","triggerFile":"sub/x","triggerTool":"view"}}
        event:system.notification {"content":"Use read_agent with agent_id 1: said by somebody else","kind":{"type":"unclassified"}}
        event:session.info {"infoType":"file_created","message":"/w/new.txt"}
        idle"##,
        expect![[r#"
            $ hangar
            ∙ Agent "looker" (task) has finished processing and is now
              idle.
            ∙ sub/AGENTS.md has instructions for the code you are
              looking at.
            ∙ Use read_agent with agent_id 1: said by somebody else

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
}
