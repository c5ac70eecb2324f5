//! Pickers that act on the work itself: going back, and tasks.

use expect_test::expect;

use crate::script::check;

#[test]
fn a_rewind_shows_what_changes_first() {
    let open = r#"
        ready
        user:make a file
        esc esc
        reply:session.history.listRewindPoints:{"points":[{"eventId":"e1","userMessage":"make a file","fileCount":2}]}
        screen
        enter
        reply:session.history.previewRewind:{"available":true,"files":[{"path":"a.txt","changeType":"created","linesAdded":3,"linesRemoved":0},{"path":"b.txt","changeType":"modified","linesAdded":1,"linesRemoved":2}]}
    "#;
    check(
        open,
        expect![[r#"
            Go back to (1)
            ❯ ▮
            ❯ make a file  2 files edited since




















            type to search · ↑↓ move · enter picks · esc closes
            ---
            session.history.listRewindPoints {}
            ===
            Go back (5)
            ❯ ▮
            ❯ the conversation only  before: make a file
              the conversation and the files  2 files, listed below
                  a.txt  is deleted (edits of +3 −0 lines)
                  b.txt  is changed back (edits of +1 −2 lines)
                  changes by shell commands are not recorded and stay
















            type to search · ↑↓ move · enter picks · esc closes
            ---
            session.history.previewRewind {"eventId":"e1"}
        "#]],
    );
    check(
        &format!(
            "{open}\ndown\ndown\nenter\nscreen\nup\nenter\nreply:session.history.rewind:{{\"outcome\":\"success\",\"restoredFiles\":[\"a.txt\",\"b.txt\"]}}"
        ),
        expect![[r#"
            Go back to (1)
            ❯ ▮
            ❯ make a file  2 files edited since




















            type to search · ↑↓ move · enter picks · esc closes
            ---
            session.history.listRewindPoints {}
            ===
            Go back (5)
            ❯ ▮
              the conversation only  before: make a file
              the conversation and the files  2 files, listed below
            ❯     a.txt  is deleted (edits of +3 −0 lines)
                  b.txt  is changed back (edits of +1 −2 lines)
                  changes by shell commands are not recorded and stay
















            type to search · ↑↓ move · enter picks · esc closes
            ---
            session.history.previewRewind {"eventId":"e1"}
            ===
            $ hangar
            ❯ make a file

            ∙ 2 files are as they were before that prompt.

            ❯ make a file▮
            scripted · ~/project · main
            ---
            session.history.rewind {"eventId":"e1","mode":"conversation-and-files"}
        "#]],
    );
    check(
        &format!("{open}\nenter"),
        expect![[r#"
            Go back to (1)
            ❯ ▮
            ❯ make a file  2 files edited since




















            type to search · ↑↓ move · enter picks · esc closes
            ---
            session.history.listRewindPoints {}
            ===
            $ hangar
            ❯ make a file

            ❯ ▮
            scripted · ~/project · main
            ---
            session.history.previewRewind {"eventId":"e1"}
            session.history.rewind {"eventId":"e1","mode":"conversation"}
        "#]],
    );
    check(
        "ready\nesc esc\nreply:session.history.listRewindPoints:{\"points\":[]}",
        expect![[r#"
        Go back to (0)
        ❯ ▮
        there is no earlier prompt




















        type to search · ↑↓ move · enter picks · esc closes
        ---
        session.history.listRewindPoints {}
    "#]],
    );
    check(
        "ready\nuser:a\nesc esc\nreply:session.history.listRewindPoints:{\"points\":[{\"eventId\":\"e1\",\"userMessage\":\"a\"}]}\nenter\nrefuse:session.history.previewRewind:it is gone",
        expect![[r#"
        Go back (0)
        ❯ ▮
        it is gone




















        type to search · ↑↓ move · enter picks · esc closes
        ---
        session.history.listRewindPoints {}
        session.history.previewRewind {"eventId":"e1"}
    "#]],
    );
}

#[test]
fn tasks_are_opened_stopped_and_moved() {
    let open = r#"
        ready
        turn
        call:c1 task {"description":"look around"}
        event@a1:subagent.started {"toolCallId":"c1","agentName":"explore","agentDisplayName":"explore","agentDescription":"look"}
        event@a1:assistant.message {"messageId":"x","content":"I see a file."}
        type:/tasks
        enter
        reply:session.tasks.list:{"tasks":[{"id":"a1","displayName":"explore","status":"running","description":"look around"},{"type":"shell","id":"b1","command":"sleep 9","status":"running"}]}
    "#;
    check(
        open,
        expect![[r#"
        Tasks (2)
        ❯ ▮
        ❯ explore  running · look around
          sleep 9  running



















        type to search · ↑↓ move · enter picks · ctrl+x stops · ctr…
        ---
        session.tasks.list {}
    "#]],
    );
    check(
        &format!("{open}\nenter"),
        expect![[r#"
            Sub-agent: look
            I see a file.





















            1–2 of 2 · ↑↓ pgup pgdn g G move · / searches, n next · q c…
            ---
            session.tasks.list {}
        "#]],
    );
    check(
        &format!(
            "{open}\ndown\nenter\nreply:session.tasks.getProgress:{{\"progress\":{{\"type\":\"shell\",\"recentOutput\":\"one\\ntwo\\n\"}}}}"
        ),
        expect![[r#"
            Output
            one
            two




















            1–2 of 2 · ↑↓ pgup pgdn g G move · / searches, n next · q c…
            ---
            session.tasks.list {}
            session.tasks.getProgress {"id":"b1"}
        "#]],
    );
    check(
        &format!("{open}\ndown\nctrl+x"),
        expect![[r#"
        $ hangar
        ● Agent look around
        ◐ working · 1 agent · esc esc stops

        ❯ ▮
        scripted · ~/project · main
        ---
        session.tasks.list {}
        session.tasks.cancel {"id":"b1"}
    "#]],
    );
    check(
        &format!("{open}\nctrl+b"),
        expect![[r#"
        $ hangar
        ● Agent look around
        ◐ working · 1 agent · esc esc stops

        ❯ ▮
        scripted · ~/project · main
        ---
        session.tasks.list {}
        session.tasks.promoteToBackground {"id":"a1"}
    "#]],
    );
    check(
        "ready\nleft\nreply:session.tasks.list:{\"tasks\":[]}",
        expect![[r#"
        Tasks (0)
        ❯ ▮
        no sub-agents and no background commands




















        type to search · ↑↓ move · enter picks · ctrl+x stops · ctr…
        ---
        session.tasks.list {}
    "#]],
    );
}

#[test]
fn a_rewind_is_told_of_once() {
    check(
        r#"
        ready
        user:fix it
        event:hangar.history_truncated {"upToEventId":"e1"}
        event:session.snapshot_rewind {"upToEventId":"e1","eventsRemoved":1}
        "#,
        expect![[r#"
            $ hangar
            ❯ fix it

            ∙ Rewound to an earlier point

            ❯ ▮
            scripted · ~/project · main
        "#]],
    );
}
