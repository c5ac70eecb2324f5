//! Commands about the program, the session's limits and the draft: subcommands, `/limits`, `/refine`, `/search`, `/context`, `/diff` and
//! the status line.

use expect_test::expect;

use crate::script::{check, run};

#[test]
fn subcommands_of_the_program_are_run_and_the_session_reads_what_they_changed() {
    check(
        r#"ready
        type:/plugin install "my plugin"@shop
        enter
        reply:program:{"output":"installed\nmy plugin","success":true}
        type:/mcp add files -- npx -y server
        enter
        reply:program:{"output":"Error: it is there already","success":false}
        type:/mcp delete files
        enter
        type:/mcp search x
        enter
        type:/memory
        enter
        type:/plugin install 'open
        enter"#,
        expect![[r#"
            $ hangar
            installed
            my plugin
            Error: it is there already
            ∙ Hangar has no registry of servers; /mcp add takes a
              command or a URL.
            ✗ a quotation mark is not closed

            ❯ ▮
            hangar memory list …
            ---
            ListFiles
            hangar plugin install my plugin@shop
            session.plugins.reload {}
            hangar mcp add files -- npx -y server
            hangar mcp remove files
            hangar memory list
        "#]],
    );
}

#[test]
fn a_server_is_logged_in_to_at_its_address() {
    check(
        r#"ready
        type:/mcp auth
        enter
        type:/mcp auth tickets
        enter
        reply:session.mcp.oauth.login:{"authorizationUrl":"https://login.example/authorize?x=1"}
        type:/mcp auth tickets
        enter
        reply:session.mcp.oauth.login:{}"#,
        expect![[r#"
            $ hangar
            ∙ Usage: /mcp auth NAME
            ∙ Open this address in a browser to log in:
            https://login.example/authorize?x=1
            ∙ The server is logged in to.

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.mcp.oauth.login {"serverName":"tickets"}
            session.mcp.oauth.login {"serverName":"tickets"}
        "#]],
    );
}

#[test]
fn a_rough_prompt_is_rewritten_and_can_be_brought_back() {
    check(
        r#"ready
        type:/refine
        enter
        type:fix teh tests pls
        ctrl+x /
        type:refine
        enter
        screen
        reply:session.ui.ephemeralQuery:{"answer":"Fix the failing tests."}
        screen
        ctrl+_"#,
        expect![[r#"
            $ hangar
            ∙ Usage: /refine PROMPT, or ctrl+x / and /refine while a
              draft is typed

            ❯ ▮
            rewriting the prompt …
            ---
            session.ui.ephemeralQuery {"question":"Rewrite the prompt below, which a person typed in a hurry, so that it is clear to a coding agent: keep every wish, name, path and number in it, add none, order it, and keep its language. …
            ===
            $ hangar
            ∙ Usage: /refine PROMPT, or ctrl+x / and /refine while a
              draft is typed

            ❯ Fix the failing tests.▮
            enter sends it; ctrl+_ brings back what you typed
            ===
            $ hangar
            ∙ Usage: /refine PROMPT, or ctrl+x / and /refine while a
              draft is typed

            ❯ fix teh tests pls▮
            enter sends it; ctrl+_ brings back what you typed
        "#]],
    );
    // A refusal loses nothing.
    check(
        "ready\ntype:/refine a b\nenter\nrefuse:session.ui.ephemeralQuery:no model",
        expect![[r#"
        $ hangar
        ✗ no model

        ❯ a b▮
        rewriting the prompt …
        ---
        session.ui.ephemeralQuery {"question":"Rewrite the prompt below, which a person typed in a hurry, so that it is clear to a coding agent: keep every wish, name, path and number in it, add none, order it, and keep its language. …
    "#]],
    );
}

#[test]
fn the_draft_comes_back_after_a_command_beside_it() {
    check(
        "ready\ntype:a draft\nctrl+x /\nscreen\ntype:version\nenter",
        expect![[r#"
            $ hangar

            ❯ /▮
            ❯ after               Sends a prompt later: a time and the …
              agent               Chooses the agent that answers
              ask                 Asks something aside, outside the con…
              changelog           Shows what is new in this version
              clear               Starts over in a new session
              collect-debug-logs  Copies the session's log and the prog…
              compact             Sums the conversation up
              context             Says what the model's context is fill…
            scripted · ~/project · main · 8 of 49 · ↑↓ tab
            ===
            $ hangar
            ∙ Hangar 0.2.0

            ❯ a draft▮
            scripted · ~/project · main
        "#]],
    );
    check(
        "ready\ntype:a draft\nctrl+x /\nctrl+c",
        expect![[r#"
        $ hangar

        ❯ a draft▮
        scripted · ~/project · main
    "#]],
    );
}

#[test]
fn the_cost_of_a_session_is_limited() {
    check(
        r#"ready
        type:/limits
        enter
        type:/limits $2.50
        enter
        reply:session.options.update:{}
        event:session.session_limits_changed {"sessionLimits":{"maxAiCredits":250}}
        type:/limits
        enter
        type:/limits much
        enter
        type:/limits off
        enter"#,
        expect![[r#"
            $ hangar
            ∙ The session has cost $0; /limits AMOUNT limits it, in
              dollars. Limits of --max-cost and [budget] hold too.
            ∙ The session stops before it has cost more than $2.50.
            ∙ The session has cost $0 of at most $2.50.
            ✗ `much` is not an amount: /limits 2.50, or /limits off

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.options.update {"sessionLimits":{"maxAiCredits":250.0}}
            session.options.update {"sessionLimits":null}
        "#]],
    );
}

#[test]
fn the_transcript_opens_where_a_text_is() {
    check(
        "ready\ntype:/search FIRST\nenter\ntranscript:the answer",
        expect![[r#"
        Transcript
        ▌❯ the first prompt

        the answer



















        1–4 of 4 · ↑↓ pgup pgdn g G move · / searches, n next · q c…
        ---
        ReadTranscript
    "#]],
    );
}

#[test]
fn the_window_is_a_bar_with_a_legend() {
    check(
        r#"ready
        type:/context
        enter
        reply:session.metadata.contextInfo:{"contextInfo":{"modelName":"gpt","promptTokenLimit":100000,"totalTokens":40500,"systemTokens":500,"toolDefinitionsTokens":10000,"conversationTokens":30000,"compactionThreshold":80000}}
        type:/context
        enter
        refuse:session.metadata.contextInfo:unknown"#,
        expect![[r#"
            $ hangar
            ∙ gpt: 40.5k of 100k tokens (40%)
              █▓▓▓▓▒▒▒▒▒▒▒▒▒▒▒▒·······················
              █ system prompt     500    0%
              ▓ tools             10k   10%
              ▒ conversation      30k   30%
              · free            59.5k   59%
              at 80k the conversation is compacted

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.metadata.contextInfo {}
            session.metadata.contextInfo {}
            session.commands.invoke {"name":"context"}
        "#]],
    );
}

#[test]
fn changes_are_walked_by_file_and_shown_for_the_branch() {
    let diff = r"diff --git a/a.rs b/a.rs\n--- a/a.rs\n+++ b/a.rs\n@@ -1,1 +1,1 @@\n-one\n+two\ndiff --git a/b.rs b/b.rs\n--- a/b.rs\n+++ b/b.rs\n@@ -1,1 +1,1 @@\n-three\n+four\n";
    check(
        &format!(
            r#"size:60x16
            ready
            type:/diff
            enter
            reply:session.workspaces.diff:{{"diff":"{diff}"}}
            l
            screen
            h
            b
            reply:session.workspaces.diff:{{"diff":"{diff}","baseBranch":"main"}}
            w
            c
            type:why
            enter
            b
            q"#
        ),
        expect![[r#"
            Changes in the working tree
              a.rs
              @@ -1,1 +1,1 @@
              1 - one
              1 + two
              b.rs
              @@ -1,1 +1,1 @@
            ❯ 1 - three
              1 + four






            ↑↓ selects · c comments · ←→ file · b branch · w blanks · /…
            ---
            session.workspaces.diff {"mode":"unstaged"}
            ===
            $ hangar

            ❯ Comments on the changes:
              - a.rs:1 `-one`: why▮
            enter sends the comments; edit them first if you like
            ---
            session.workspaces.diff {"mode":"branch"}
            session.workspaces.diff {"mode":"branch","ignoreWhitespace":true}
        "#]],
    );
}

#[test]
fn another_name_of_a_command_is_completed() {
    check(
        "ready\ntype:/cos",
        expect![[r#"
        $ hangar

        ❯ /cos▮
        ❯ cost                Says what the session used and cost
          collect-debug-logs  Copies the session's log and the prog…
          instructions        Lists the instruction files that are …
        scripted · ~/project · main
    "#]],
    );
    check(
        "ready\ntype:/cos\ntab",
        expect![[r#"
        $ hangar

        ❯ /cost ▮
        scripted · ~/project · main
    "#]],
    );
}

#[test]
fn a_command_prints_a_part_of_the_status_line() {
    check(
        r#"ready
        type:/statusline command ./status
        enter
        status:3 todos\e[31m
        user:hi
        turn
        event:session.usage_info {"currentTokens":1000,"tokenLimit":10000,"messagesLength":1}
        status:4 todos"#,
        expect![[r#"
            $ hangar
            ❯ hi
            ◐ working · esc esc stops

            ❯ ▮
            scripted · 10% of 10k · ~/project
            ---
            Keep { key: "statusCommand", value: String("./status") }
            Keep { key: "statusLine", value: Array [String("mode"), String("agent"), String("model"), String("context"), String("cost"), String("directory"), String("branch"), String("command")] }
            StatusCommand { command: "./status", input: Object {"session_id": String("s1"), "session_name": Null, "cwd": String("~/project"), "branch": String("main"), "agent": Null, "model": Object {"id": String("scripted"), "effort": Null}, "mode": String("interactive"), "cost": Object {"total_cost_usd": Number(0.0)}, "context_window": Object {"used_tokens": Null, "context_window_size": Null}, "version": String("0.2.0")} }
            StatusCommand { command: "./status", input: Object {"session_id": String("s1"), "session_name": Null, "cwd": String("~/project"), "branch": String("main"), "agent": Null, "model": Object {"id": String("scripted"), "effort": Null}, "mode": String("interactive"), "cost": Object {"total_cost_usd": Number(0.0)}, "context_window": Object {"used_tokens": Null, "context_window_size": Null}, "version": String("0.2.0")} }
            StatusCommand { command: "./status", input: Object {"session_id": String("s1"), "session_name": Null, "cwd": String("~/project"), "branch": String("main"), "agent": Null, "model": Object {"id": String("scripted"), "effort": Null}, "mode": String("interactive"), "cost": Object {"total_cost_usd": Number(0.0)}, "context_window": Object {"used_tokens": Number(1000), "context_window_size": Number(10000)}, "version": String("0.2.0")} }
        "#]],
    );
}

#[test]
fn the_running_task_is_moved_to_the_background() {
    check(
        "ready\nctrl+x b\nreply:session.tasks.promoteCurrentToBackground:{}\nscreen\nctrl+x b\nreply:session.tasks.promoteCurrentToBackground:{\"task\":{\"id\":\"a\"}}",
        expect![[r#"
            $ hangar

            ❯ ▮
            no task is running that could be moved to the background
            ---
            session.tasks.promoteCurrentToBackground {}
            ===
            $ hangar

            ❯ ▮
            it goes on in the background; /tasks lists it
            ---
            session.tasks.promoteCurrentToBackground {}
        "#]],
    );
}

#[test]
fn the_changelog_is_a_page() {
    let page = crate::script::run("ready\ntype:/changelog\nenter");
    assert!(page.starts_with("Changelog\n") && page.contains("[0.2.0]"), "{page}");
}

#[test]
fn the_last_answer_is_printed_without_layout() {
    check(
        "ready\ntype:/raw\nenter\nmessage:m **bold** and `code`\nidle\ntype:/raw\nenter",
        expect![[r#"
        $ hangar
        bold and code
        **bold** and `code`

        ❯ ▮
        there is no answer yet
    "#]],
    );
}

#[test]
fn a_session_continues_in_a_new_working_tree() {
    check(
        r#"ready
        type:/worktree side
        enter
        reply:worktree:{"path":"/r.worktrees/side","branch":"side","isDirty":true,"isMoved":false,"source":"/r"}
        reply:session.commands.invoke:{"kind":"text","text":"moved"}
        moved:/r.worktrees/side
        type:/move fix the thing
        enter
        reply:worktree:{"path":"/r.worktrees/fix-the-thing","branch":"fix-the-thing","isDirty":true,"isMoved":true,"source":"/r"}
        reply:session.commands.invoke:{"kind":"text","text":"moved"}"#,
        expect![[r#"
            $ hangar
            ∙ The working tree /r.worktrees/side has the branch side.
              Your uncommitted changes stayed in /r.
            ∙ The working tree /r.worktrees/fix-the-thing has the branch
              fix-the-thing. Your uncommitted changes are there.

            ❯ ▮
            scripted · /r.worktrees/side · side · / commands · ? help
            ---
            Worktree Some("side") Stay
            session.commands.invoke {"name":"cwd","input":"/r.worktrees/side"}
            Worktree Some("fix-the-thing") Move
            session.commands.invoke {"name":"cwd","input":"/r.worktrees/fix-the-thing"}
            session.send {"prompt":"fix the thing","mode":"enqueue"}
        "#]],
    );
    // A refusal loses no task.
    check(
        "ready\ntype:/worktree new a b\nenter\nrefuse:worktree:the working tree was not made: no git\nctrl+c\ntype:/move\nenter",
        expect![[r#"
            $ hangar
            ✗ the working tree was not made: no git

            ❯ ▮
            making a working tree …
            ---
            Worktree Some("a-b") Stay
            Worktree None Move
        "#]],
    );
    // One that is typed before the session is open waits for it.
    check(
        "type:/worktree side\nenter\nready",
        expect![[r#"
            $ hangar

            ❯ ▮
            making a working tree …
            ---
            Worktree Some("side") Stay
        "#]],
    );
    // The tree cannot change under a working agent.
    check(
        "ready\nuser:x\nturn\ntype:/move it\nenter",
        expect![[r#"
        $ hangar
        ❯ x
        ◐ working · esc esc stops

        ❯ /move it▮
        /move waits until the agent is done:
        press enter then
    "#]],
    );
}

#[test]
fn extensions_are_listed_and_switched() {
    check(
        r#"ready
        type:/extensions
        enter
        reply:session.extensions.list:{"extensions":[{"id":"user:notes","name":"notes","source":"user","status":"running"}]}
        type:/extensions disable user:notes
        enter
        reply:session.extensions.disable:null
        reply:session.extensions.list:{"extensions":[]}
        type:/extensions enable
        enter
        type:/extensions reload
        enter
        refuse:session.extensions.reload:Extensions not available"#,
        expect![[r#"
            $ hangar
            ∙ user:notes (user): running
            ∙ No extension is loaded. Put one into
              .github/extensions/NAME or extensions/NAME of Hangar's
              home folder, and start with `HANGAR_FEATURES=extensions`.
            ∙ Usage: /extensions [list], enable ID, disable ID, or
              reload
            ∙ Extensions are off in this session; start with
              `HANGAR_FEATURES=extensions` to load them.

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.extensions.list {}
            session.extensions.disable {"id":"user:notes"}
            session.extensions.list {}
            session.extensions.reload {}
        "#]],
    );
}

#[test]
fn the_program_is_started_again_when_nothing_runs() {
    check(
        "ready\nuser:x\nturn\ntype:/restart\nenter\nscreen\nidle\ntype:/restart\nenter",
        expect![[r#"
        $ hangar
        ❯ x
        ◐ working · esc esc stops

        ❯ ▮
        the agent works; stop it with esc esc
        first
        ===
        $ hangar
        ❯ x

        ❯ ▮
        the agent works; stop it with esc esc first
        ---
        Restart
    "#]],
    );
}

#[test]
fn prompts_are_scheduled_listed_and_stopped() {
    check(
        r#"ready
        type:/every
        enter
        reply:session.schedule.list:{"entries":[]}
        type:/every 10m
        enter
        type:/every 10m check the build
        enter
        reply:session.schedule.add:{"entry":{"id":1,"intervalMs":600000,"prompt":"check the build","recurring":true}}
        type:/after 90s run the tests
        enter
        reply:session.schedule.add:{"entry":{"id":2,"intervalMs":90000,"prompt":"run the tests","recurring":false}}
        type:/every 1s too often
        enter
        reply:session.schedule.add:{"error":"the shortest interval is 5 seconds"}
        type:/after list
        enter
        reply:session.schedule.list:{"entries":[{"id":1,"intervalMs":600000,"prompt":"check the build","recurring":true},{"id":2,"intervalMs":90000,"prompt":"run the tests","recurring":false}]}
        type:/every stop 1
        enter
        reply:session.schedule.stop:{"entry":{"id":1,"intervalMs":600000,"prompt":"check the build","recurring":true}}
        type:/every stop 7
        enter
        reply:session.schedule.stop:{}
        type:/every stop it
        enter"#,
        expect![[r#"
            $ hangar
            ∙ No prompts are scheduled. /every 10m PROMPT sends one
              every ten minutes.
            ✗ an interval and a prompt are needed: /every 10m check the
              build, or /after 2h run the tests
            ∙ every 10m: check the build
              /every stop 1 ends it; while the session is closed, it
              waits.
            ∙ once, after 90s: run the tests
              /every stop 2 ends it; while the session is closed, it
              waits.
            ✗ the shortest interval is 5 seconds
            ∙ 1. every 10m: check the build
              2. once, after 90s: run the tests
              /every stop NUMBER ends one.
            ∙ Stopped: every 10m: check the build
            ✗ there is no schedule of that number; /every lists them
            ✗ which one? /every lists them with their numbers

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.schedule.list {}
            session.schedule.add {"interval":"10m","prompt":"check the build","recurring":true}
            session.schedule.add {"interval":"90s","prompt":"run the tests","recurring":false}
            session.schedule.add {"interval":"1s","prompt":"too often","recurring":true}
            session.schedule.list {}
            session.schedule.stop {"id":1}
            session.schedule.stop {"id":7}
        "#]],
    );
}

#[test]
fn a_session_that_is_opened_again_tells_what_it_will_send_itself() {
    let past = r#"past:user.message {"content":"hello"}"#;
    check(
        &format!(
            r#"{past}
        ready
        reply:session.schedule.list:{{"entries":[{{"id":2,"intervalMs":600000,"prompt":"check","recurring":true}}]}}"#
        ),
        expect![[r#"
            $ hangar
            ❯ hello

            ! The answer to the last prompt was cut off: the program
              ended while the agent worked. Its finished steps are kept;
              ask it to continue.
            ∙ This session has scheduled prompts:
              2. every 10m: check
              /every stop NUMBER ends one.

            ❯ ▮
            scripted · ~/project · main
            ---
            session.schedule.list {}
        "#]],
    );
    // Where there are none, or the program that has the session knows no schedules, nothing is said.
    for answer in
        [r#"reply:session.schedule.list:{"entries":[]}"#, "refuse:session.schedule.list:unknown method"]
    {
        let screen = run(&format!("{past}\nready\n{answer}"));
        assert!(!screen.contains("scheduled") && !screen.contains("unknown method"), "{screen}");
    }
}
