//! Slash commands: each does what it says, or says what to do instead.

use expect_test::expect;
use hangar_terminal::commands;

use crate::script::{check, run};

/// Results of a command: requests and effects, and the rows that it prints.
fn outcome(command: &str) -> String {
    let picture = run(&format!("ready\ntype:{command}\nenter"));
    let (screen, log) = picture.split_once("---\n").unwrap_or((&picture, ""));
    let printed: Vec<&str> = screen
        .lines()
        .skip(1)
        .take_while(|line| !line.starts_with("❯ "))
        .filter(|line| !line.is_empty())
        .collect();
    format!("{command}: {} {}\n", printed.join(" / "), log.trim_end().replace('\n', " / "))
}

#[test]
fn every_command_of_the_terminal_answers() {
    let mut told = String::new();
    // The changelog has a test of its own: its text changes with every version.
    let is_other = |entry: &commands::CommandEntry| entry.name != "changelog";
    for entry in commands::entries(&[]).into_iter().filter(is_other) {
        told.push_str(&outcome(&format!("/{}", entry.name)));
        for alias in &entry.aliases {
            let name = commands::find(&entry.name);
            assert!(name.is_some() && commands::find(alias) == name, "{alias}");
            told.push_str(&outcome(&format!("/{alias}")));
        }
    }
    expect![[r#"
        /after:  session.schedule.list {}
        /agent:  session.agent.list {"includeBuiltInAgents":false}
        /ask: ∙ Usage: /ask QUESTION 
        /btw: ∙ Usage: /btw QUESTION 
        /clear:  Open(New)
        /reset:  Open(New)
        /collect-debug-logs:  CollectLogs None
        /context:  session.metadata.contextInfo {}
        /copy:  
        /detach:  Exit(Detach)
        /diagnose:  hangar doctor
        /diff:  session.workspaces.diff {"mode":"unstaged"}
        /every:  session.schedule.list {}
        /exit:  Exit(Close)
        /quit:  Exit(Close)
        /experimental:  hangar features
        /export:  Export { path: None, format: Markdown }
        /share:  Export { path: None, format: Markdown }
        /extensions:  session.extensions.list {}
        /fork:  sessions.fork {"sessionId":"s1"}
        /branch:  sessions.fork {"sessionId":"s1"}
        /help: Keys / @                         name a file or a folder / !                         run a command in your shell / /                         run a command of Hangar / enter                     send the prompt, or steer while /                           the agent works / ctrl+q, ctrl+enter        send the prompt when the agent is /                           done / shift+enter, alt+enter, ctrl+j  new line / shift+tab                 next mode: interactive, plan, /                           autopilot / esc                       close or cancel / esc esc                   stop the agent, or rewind / ctrl+c                    clear the prompt, or cancel / ctrl+c ctrl+c             exit / ctrl+d                    exit (empty prompt) / ctrl+z                    suspend to the shell / ctrl+l                    draw the screen again / ctrl+s                    put the draft away, or bring it /                           back / ctrl+g, ctrl+x e, ctrl+x ctrl+e  edit the prompt in $EDITOR / ctrl+r                    search the history / 1–22 of 159 · ↑↓ pgup pgdn g G move · / searches, n next · … 
        /hooks:  hooks.discover {}
        /instructions:  session.instructions.getSources {}
        /limits: ∙ The session has cost $0; /limits AMOUNT limits it, in /   dollars. Limits of --max-cost and [budget] hold too. 
        /login:  Login
        /logout:  Logout
        /memory:  hangar memory list
        /model:  models.list {}
        /models:  models.list {}
        /move:  Worktree None Move
        /new:  Open(New)
        /notify: ∙ Notifications are off. Keep { key: "notify", value: Bool(false) }
        /plugin:  session.plugins.list {}
        /plugins:  session.plugins.list {}
        /raw:  
        /reasoning:  Keep { key: "reasoning", value: Bool(true) }
        /refine: ∙ Usage: /refine PROMPT, or ctrl+x / and /refine while a /   draft is typed 
        /restart:  Restart
        /resume:  ListSessions
        /continue:  ListSessions
        /rewind:  session.history.listRewindPoints {}
        /undo:  session.history.listRewindPoints {}
        /search:  ReadTranscript
        /find:  ReadTranscript
        /settings: ∙ theme: ansi (/theme) /   vim keys: off (/vim) /   reasoning: off (ctrl+t) /   notifications: on (/notify) /   status line: mode, agent, model, context, cost, directory, /   branch (/statusline) 
        /config: ∙ theme: ansi (/theme) /   vim keys: off (/vim) /   reasoning: off (ctrl+t) /   notifications: on (/notify) /   status line: mode, agent, model, context, cost, directory, /   branch (/statusline) 
        /statusline: ∙ The status line shows: mode, agent, model, context, cost, /   directory, branch. /   Choose with /statusline and names of: mode, agent, model, /   context, cost, directory, branch, title, command. /   /statusline command COMMAND adds what a command prints. 
        /footer: ∙ The status line shows: mode, agent, model, context, cost, /   directory, branch. /   Choose with /statusline and names of: mode, agent, model, /   context, cost, directory, branch, title, command. /   /statusline command COMMAND adds what a command prints. 
        /subagents:  session.agent.list {"includeBuiltInAgents":true}
        /agents:  session.agent.list {"includeBuiltInAgents":true}
        /tasks:  session.tasks.list {}
        /theme:  
        /usage:  session.usage.getMetrics {}
        /cost:  session.usage.getMetrics {}
        /version: ∙ Hangar 0.2.0 
        /vim: ∙ Vim keys are on; /vim switches them off. Keep { key: "vim", value: Bool(true) }
        /worktree:  Worktree None Stay
    "#]].assert_eq(&told);
}

#[test]
fn what_hangar_has_not_is_answered_by_a_sentence() {
    let mut told = String::new();
    for name in [
        "app",
        "computer",
        "delegate",
        "pr",
        "remote",
        "user",
        "feedback",
        "bug",
        "update",
        "upgrade",
        "voice",
        "ide",
        "lsp",
        "chronicle",
        "terminal-setup",
        "every",
        "after",
    ] {
        told.push_str(&outcome(&format!("/{name}")));
    }
    expect![[r#"
        /app: ∙ This needs GitHub's own service, which Hangar does not /   use. 
        /computer: ∙ This needs GitHub's own service, which Hangar does not /   use. 
        /delegate: ∙ This needs GitHub's own service, which Hangar does not /   use. 
        /pr: ∙ Ask the agent to use `gh`, or set up GitHub's MCP server /   with `hangar mcp add`. 
        /remote: ∙ `hangar up` shows and steers the sessions of this machine /   in a browser. 
        /user: ∙ Hangar has no accounts; `hangar doctor` shows which keys /   are found. 
        /feedback: ∙ `hangar doctor --json` says everything that a report /   needs. 
        /bug: ∙ `hangar doctor --json` says everything that a report /   needs. 
        /update: ∙ Hangar does not update itself: install the new version as /   you installed this one. 
        /upgrade: ∙ Hangar does not update itself: install the new version as /   you installed this one. 
        /voice: ∙ Hangar has no voice input. 
        /ide: ∙ Editors start Hangar themselves: `hangar --acp` speaks the /   Agent Client Protocol. 
        /lsp: ∙ Hangar starts no language servers; an MCP server can bring /   one. 
        /chronicle: ∙ /resume lists the earlier sessions of all agents. 
        /terminal-setup: ∙ alt+enter and ctrl+j make a new line everywhere; /   shift+enter does where the terminal tells it apart. 
        /every:  session.schedule.list {}
        /after:  session.schedule.list {}
    "#]].assert_eq(&told);
}

#[test]
fn commands_of_the_session_are_invoked() {
    let mut told = String::new();
    for command in [
        "/compact",
        "/compact the tests",
        "/plan a bridge",
        "/mcp show files",
        "/nothing",
        "/modle",
        "/COMPACT",
    ] {
        told.push_str(&outcome(command));
    }
    expect![[r#"
        /compact:  session.commands.invoke {"name":"compact","input":""}
        /compact the tests:  session.commands.invoke {"name":"compact","input":"the tests"}
        /plan a bridge:  session.commands.invoke {"name":"plan","input":"a bridge"}
        /mcp show files:  session.commands.invoke {"name":"mcp","input":"show files"}
        /nothing: ✗ /nothing is not a command. /help lists them. 
        /modle: ✗ /modle is not a command; /model is. /help lists them. 
        /COMPACT:  session.commands.invoke {"name":"compact","input":""}
    "#]]
    .assert_eq(&told);
}

#[test]
fn answers_of_commands_are_shown() {
    check(
        "ready\ntype:/mcp list\nenter\nreply:session.commands.invoke:{\"kind\":\"text\",\"text\":\"one\\ntwo\"}\ntype:/mcp\nenter\nreply:session.commands.invoke:{\"kind\":\"text\",\"text\":\"**bold**\",\"markdown\":true}\ntype:/plan it\nenter\nreply:session.commands.invoke:{\"kind\":\"agent-prompt\",\"prompt\":\"plan it well\",\"displayPrompt\":\"/plan it\",\"mode\":\"plan\"}\ntype:/compact\nenter\nrefuse:session.commands.invoke:nothing to sum up",
        expect![[r#"
            $ hangar
            ∙ one
              two

            bold

            ✗ nothing to sum up

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.commands.invoke {"name":"mcp","input":"list"}
            session.commands.invoke {"name":"mcp","input":""}
            session.commands.invoke {"name":"plan","input":"it"}
            session.mode.set {"mode":"plan"}
            session.send {"prompt":"plan it well","displayPrompt":"/plan it","agentMode":"plan"}
            session.commands.invoke {"name":"compact","input":""}
        "#]],
    );
}

#[test]
fn a_command_that_must_wait_stays_in_the_prompt() {
    check(
        "ready\nturn\ntype:/compact now\nenter",
        expect![[r#"
            $ hangar
            ◐ working · esc esc stops

            ❯ /compact now▮
            /compact waits until the agent is done:
            press enter then
        "#]],
    );
}

#[test]
fn settings_are_kept_and_shown() {
    check(
        "ready\ntype:/vim\nenter\ntype:/notify\nenter\ntype:/statusline model branch\nenter\ntype:/statusline nonsense\nenter\ntype:/statusline\nenter\ntype:/settings\nenter",
        expect![[r#"
            $ hangar
            ∙ Vim keys are on; /vim switches them off.
            ∙ Notifications are off.
            ✗ `nonsense` is not an item: choose of mode, agent, model,
              context, cost, directory, branch, title, command
            ∙ The status line shows: model, branch.
              Choose with /statusline and names of: mode, agent, model,
              context, cost, directory, branch, title, command.
              /statusline command COMMAND adds what a command prints.
            ∙ theme: ansi (/theme)
              vim keys: on (/vim)
              reasoning: off (ctrl+t)
              notifications: off (/notify)
              status line: model, branch (/statusline)

            ❯ ▮
            INSERT  scripted · main · / commands · ? help
            ---
            Keep { key: "vim", value: Bool(true) }
            Keep { key: "notify", value: Bool(false) }
            Keep { key: "statusLine", value: Array [String("model"), String("branch")] }
        "#]],
    );
}

#[test]
fn use_and_changes_are_shown() {
    check(
        "ready\ntype:/usage\nenter\nreply:session.usage.getMetrics:{\"totalUserRequests\":2,\"totalApiDurationMs\":65000,\"codeChanges\":{\"linesAdded\":3,\"linesRemoved\":1},\"modelMetrics\":{\"scripted\":{\"requests\":{\"count\":4},\"usage\":{\"inputTokens\":18729,\"outputTokens\":120,\"cacheReadTokens\":0}}}}",
        expect![[r#"
            $ hangar
            ∙ scripted: 4 requests, 18.7k tokens in (0 from cache), 120
              out
              2 prompts, 1m 5s of model time, +3 −1 lines, $0

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.usage.getMetrics {}
        "#]],
    );
    check(
        "ready\ntype:/diff\nenter\nreply:session.workspaces.diff:{\"changes\":[{\"diff\":\"--- a/x\\n+++ b/x\\n@@ -1,1 +1,1 @@\\n-old\\n+new\\n\"}]}",
        expect![[r#"
            Changes in the working tree
              x
              @@ -1,1 +1,1 @@
            ❯ 1 - old
              1 + new


















            ↑↓ selects · c comments · ←→ file · b branch · w blanks · /…
            ---
            session.workspaces.diff {"mode":"unstaged"}
        "#]],
    );
    check(
        "ready\ntype:/diff branch\nenter\nreply:session.workspaces.diff:{\"changes\":[]}",
        expect![[r#"
            Changes in the working tree (this branch has no base)
            Nothing has changed.





















            1–1 of 1 · ↑↓ pgup pgdn g G move · / searches, n next · q c…
            ---
            session.workspaces.diff {"mode":"branch"}
        "#]],
    );
    check(
        "ready\ntype:/ask why\nenter\nreply:session.ui.ephemeralQuery:{\"response\":\"Because.\"}",
        expect![[r#"
        $ hangar
        Because.

        ❯ ▮
        asking aside …
        ---
        session.ui.ephemeralQuery {"question":"why"}
    "#]],
    );
    check(
        "ready\ntype:/instructions\nenter\nreply:session.instructions.getSources:{\"sources\":[{\"label\":\"AGENTS.md\",\"location\":\"repository\"}]}",
        expect![[r#"
        Instructions
        AGENTS.md  repository





















        1–1 of 1 · ↑↓ pgup pgdn g G move · / searches, n next · q c…
        ---
        session.instructions.getSources {}
    "#]],
    );
    check(
        "ready\ntype:/fork\nenter\nreply:sessions.fork:{\"sessionId\":\"s2\"}",
        expect![[r#"
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            sessions.fork {"sessionId":"s1"}
            Open(Resume("s2"))
        "#]],
    );
    check(
        "ready\nturn\nmessage:m1 The answer.\nidle\ntype:/copy\nenter",
        expect![[r#"
        $ hangar
        The answer.

        ❯ ▮
        the last answer is on the clipboard
        ---
        Copy("The answer.")
    "#]],
    );
    check(
        "ready\ntype:/export html out.html\nenter\ntype:/export notes.md\nenter\ntype:/export gist\nenter",
        expect![[r#"
            $ hangar
            ∙ Hangar publishes nothing; /export writes a file.

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            Export { path: Some("out.html"), format: Html }
            Export { path: Some("notes.md"), format: Markdown }
        "#]],
    );
}

#[test]
fn the_popup_completes_commands_and_arguments() {
    check(
        "ready\ntype:/mo\nscreen\ntab\nscreen\nenter",
        expect![[r#"
            $ hangar

            ❯ /mo▮
            ❯ model   Chooses the model and its effort
              move    Moves uncommitted changes and the session into a …
              memory  Lists, shows, edits and deletes the notes about t…
            scripted · ~/project · main
            ===
            $ hangar

            ❯ /model ▮
            scripted · ~/project · main
            ===
            Models (0)
            ❯ ▮
            loading …




















            type to search · ↑↓ move · enter picks · esc closes
            ---
            models.list {}
        "#]],
    );
    check(
        "ready\ntype:/mcp sh\nscreen\ntab",
        expect![[r#"
        $ hangar

        ❯ /mcp sh▮
        ❯ show  one of them
        scripted · ~/project · main
        ===
        $ hangar

        ❯ /mcp show ▮
        scripted · ~/project · main
    "#]],
    );
    check(
        "ready\ntype:/th\ndown\nesc",
        expect![[r#"
        $ hangar

        ❯ /th▮
        scripted · ~/project · main
    "#]],
    );
}

#[test]
fn the_popup_completes_files() {
    check(
        "ready\ntype:look at @\nfiles:src/main.rs,src/lib.rs,README.md\ntype:li\nscreen\ntab\ntype: please\nenter",
        expect![[r#"
            $ hangar

            ❯ look at @li▮
            ❯ src/lib.rs
            scripted · ~/project · main
            ---
            ListFiles
            ===
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.send {"prompt":"look at @src/lib.rs  please","mode":"enqueue"}
        "#]],
    );
}

#[test]
fn hooks_are_listed_with_their_command_and_file() {
    check(
        r#"
        size:70x16
        ready
        type:/hooks
        enter
        enter
        reply:hooks.discover:{"hooks":[{"hookType":"preToolUse","matcher":"bash|edit","action":"./check.sh\n--strict","source":".github/hooks/a.json","origin":"repository","enabled":true,"trusted":true},{"hookType":"agentStop","action":"https://h.example/x","source":"global settings","origin":"user","enabled":false,"trusted":true},{"hookType":"sessionStart","action":"rm -rf /","source":".github/hooks/b.json","origin":"repository","enabled":false,"trusted":false}],"errors":["a.json has hooks for `x`, which nothing ever asks."]}
        "#,
        expect![[r#"
            Hooks
            preToolUse  bash|edit
              ./check.sh
              --strict
              .github/hooks/a.json (of the project)
            agentStop  not run: hooks are switched off
              https://h.example/x
              global settings (yours)
            sessionStart  not run: the directory is not trusted
              rm -rf /
              .github/hooks/b.json (of the project)
            a.json has hooks for `x`, which nothing ever asks.



            1–11 of 11 · ↑↓ pgup pgdn g G move · / searches, n next · q closes
            ---
            hooks.discover {}
        "#]],
    );
    check(
        "size:70x8\nready\ntype:/hooks\nenter\nenter\nreply:hooks.discover:{\"hooks\":[]}",
        expect![[r#"
            Hooks
            There are none. They are configured in .github/hooks/*.json of a
            project, or in hooks/ of the home.




            1–2 of 2 · ↑↓ pgup pgdn g G move · / searches, n next · q closes
            ---
            hooks.discover {}
        "#]],
    );
}

#[test]
fn the_context_is_told_with_its_window() {
    let told = crate::script::run(
        r#"
        ready
        event:session.usage_info {"currentTokens":32000,"tokenLimit":128000,"messagesLength":3}
        type:/context
        enter
        refuse:session.metadata.contextInfo:nobody counts them
        reply:session.commands.invoke:{"kind":"text","text":"32000 tokens"}
        "#,
    );
    assert!(told.contains("∙ The window has 128k tokens; the last request used 32k\n"), "{told}");
}

#[test]
fn the_path_of_a_dropped_image_is_attached() {
    for pasted in ["/tmp/a b.png", "'/tmp/a b.png'", r"/tmp/a\u{5c} b.png", "file:///tmp/a b.png"] {
        let told = crate::script::run(&format!("ready\npaste:{pasted}"));
        assert!(told.contains("Attach(\"/tmp/a b.png\")"), "{pasted}: {told}");
    }
}
