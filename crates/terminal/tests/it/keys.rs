//! Default keys of the prompt.

use std::fmt::Write as _;

use expect_test::expect;
use hangar_terminal::keymap::Keymap;

use crate::script::{check, run};

#[test]
fn every_default_key_does_something_or_says_why_not() {
    let mut told = String::new();
    for row in Keymap::default().rows() {
        let setup = match row.when {
            "empty prompt" => "ready".to_owned(),
            "completions" => "ready\ntype:/mo".to_owned(),
            _ => "ready\ntype:one two\nalt+enter\ntype:three four\nleft".to_owned(),
        };
        for keys in row.keys.split(", ") {
            let (before, after) = (run(&setup), run(&format!("{setup}\n{keys}")));
            let log = after.split_once("---\n").map_or("", |(_, log)| log).trim_end().replace('\n', " / ");
            let seen = match (before == after, log.is_empty()) {
                (true, _) => "nothing".to_owned(),
                (false, true) => "changes the screen".to_owned(),
                (false, false) => log,
            };
            writeln!(told, "{} {keys}: {seen}", row.name).unwrap();
        }
    }
    expect![[r#"
        send enter: session.send {"prompt":"one two\nthree four","mode":"enqueue"}
        queue ctrl+q: session.send {"prompt":"one two\nthree four","mode":"enqueue"}
        queue ctrl+enter: session.send {"prompt":"one two\nthree four","mode":"enqueue"}
        newline shift+enter: changes the screen
        newline alt+enter: changes the screen
        newline ctrl+j: changes the screen
        mode shift+tab: session.mode.set {"mode":"plan"}
        cancel esc: nothing
        interrupt esc esc: changes the screen
        clear ctrl+c: changes the screen
        exit ctrl+c ctrl+c: changes the screen
        exit-empty ctrl+d: Exit(Close)
        suspend ctrl+z: Suspend
        redraw ctrl+l: Redraw
        stash ctrl+s: changes the screen
        editor ctrl+g: Edit("one two\nthree four")
        editor ctrl+x e: Edit("one two\nthree four")
        editor ctrl+x ctrl+e: Edit("one two\nthree four")
        history-search ctrl+r: changes the screen
        history-prev ctrl+p: nothing
        history-next ctrl+n: nothing
        paste-attachment ctrl+v: ReadClipboard
        paste-attachment alt+v: ReadClipboard
        expand-recent ctrl+o: ReadTranscript
        expand-all ctrl+e: ReadTranscript
        reasoning ctrl+t: Keep { key: "reasoning", value: Bool(true) }
        search ctrl+f: ReadTranscript
        page-up pageup: ReadTranscript
        page-down pagedown: nothing
        sidebar left: session.tasks.list {}
        next-tab tab: session.tasks.list {}
        help ?: changes the screen
        help-always f1: changes the screen
        complete tab: nothing
        accept-completion tab: changes the screen
        accept-completion ctrl+y: changes the screen
        submit-completion enter: models.list {}
        completion-prev up: changes the screen
        completion-prev ctrl+p: changes the screen
        completion-prev shift+tab: changes the screen
        completion-next down: changes the screen
        completion-next ctrl+n: changes the screen
        close-completion esc: changes the screen
        command-beside ctrl+x /: changes the screen
        background ctrl+x b: session.tasks.promoteCurrentToBackground {}
        goal ctrl+x g: changes the screen
        hide ctrl+x h: changes the screen
        open-link ctrl+x o: changes the screen
        voice ctrl+x v: changes the screen
        close ctrl+x x: changes the screen
        left left: changes the screen
        left ctrl+b: changes the screen
        right right: changes the screen
        right ctrl+f: changes the screen
        up up: changes the screen
        down down: nothing
        word-left alt+b: changes the screen
        word-left alt+left: changes the screen
        word-left ctrl+left: changes the screen
        word-right alt+f: changes the screen
        word-right alt+right: changes the screen
        word-right ctrl+right: changes the screen
        line-start ctrl+a: changes the screen
        line-start home: changes the screen
        line-end ctrl+e: changes the screen
        line-end end: nothing
        text-start ctrl+home: changes the screen
        text-start alt+up: changes the screen
        text-start alt+<: changes the screen
        text-end ctrl+end: changes the screen
        text-end alt+down: changes the screen
        text-end alt+>: changes the screen
        backspace backspace: changes the screen
        backspace ctrl+h: changes the screen
        backspace shift+backspace: changes the screen
        delete delete: changes the screen
        delete ctrl+d: changes the screen
        kill-blank-left ctrl+w: changes the screen
        kill-word-left alt+backspace: changes the screen
        kill-word-left ctrl+backspace: changes the screen
        kill-word-right alt+d: changes the screen
        kill-word-right alt+delete: changes the screen
        kill-word-right ctrl+delete: changes the screen
        kill-line-start ctrl+u: changes the screen
        kill-line-end ctrl+k: changes the screen
        yank ctrl+y: nothing
        yank-older alt+y: nothing
        undo ctrl+_: changes the screen
        undo ctrl+-: changes the screen
        undo ctrl+/: changes the screen
        undo ctrl+7: changes the screen
        redo alt+_: nothing
        redo alt+-: nothing
        redo ctrl+shift+z: nothing
    "#]]
    .assert_eq(&told);
}

#[test]
fn the_history_is_walked_and_searched() {
    let sent = "ready\ntype:first prompt\nenter\ntype:second prompt\nenter\ntype:dr";
    check(
        &format!("{sent}\nup\nscreen\nup\nscreen\ndown\ndown"),
        expect![[r#"
        $ hangar

        ❯ dr▮
        scripted · ~/project · main
        ---
        session.send {"prompt":"first prompt","mode":"enqueue"}
        session.send {"prompt":"second prompt","mode":"enqueue"}
        ===
        $ hangar

        ❯ dr▮
        scripted · ~/project · main
        ===
        $ hangar

        ❯ dr▮
        scripted · ~/project · main
    "#]],
    );
    check(
        &format!("{sent}\nctrl+r\ntype:fir\nscreen\nenter"),
        expect![[r#"
        $ hangar

        search: fir▮  1/1
        ❯ first prompt
        scripted · ~/project · main
        ---
        session.send {"prompt":"first prompt","mode":"enqueue"}
        session.send {"prompt":"second prompt","mode":"enqueue"}
        ===
        $ hangar

        ❯ first prompt▮
        scripted · ~/project · main
    "#]],
    );
    check(
        &format!("{sent}\nctrl+r\ntype:fir\nesc"),
        expect![[r#"
        $ hangar

        ❯ dr▮
        scripted · ~/project · main
        ---
        session.send {"prompt":"first prompt","mode":"enqueue"}
        session.send {"prompt":"second prompt","mode":"enqueue"}
    "#]],
    );
}

#[test]
fn a_draft_is_stashed_edited_elsewhere_and_undone() {
    check(
        "ready\ntype:a draft\nctrl+s\nscreen\ntype:other\nctrl+s\nscreen\nctrl+g\nedited:from the editor\\n\nscreen\nctrl+_",
        expect![[r#"
        $ hangar

        ❯ ▮
        the draft is put away; ctrl+s brings it back
        ===
        $ hangar

        ❯ a draft▮
        the draft is put away; ctrl+s brings it back
        ===
        $ hangar

        ❯ from the editor▮
        the draft is put away; ctrl+s brings it back
        ---
        Edit("a draft")
        ===
        $ hangar

        ❯ a draft▮
        the draft is put away; ctrl+s brings it back
    "#]],
    );
    check(
        "ready\ntype:a draft\nctrl+x /\ntype:vim\nenter",
        expect![[r#"
            $ hangar
            ∙ Vim keys are on; /vim switches them off.

            ❯ a draft▮
            INSERT  scripted · ~/project · main
            ---
            Keep { key: "vim", value: Bool(true) }
        "#]],
    );
}

#[test]
fn vim_keys_edit_the_draft() {
    check(
        "ready\ntype:/vim\nenter\ntype:one two three\nesc\ntype:0dwA!\nscreen\nesc",
        expect![[r#"
        $ hangar
        ∙ Vim keys are on; /vim switches them off.

        ❯ two three!▮
        INSERT  scripted · ~/project · main
        ---
        Keep { key: "vim", value: Bool(true) }
        ===
        $ hangar
        ∙ Vim keys are on; /vim switches them off.

        ❯ two three▮!
        NORMAL  scripted · ~/project · main
    "#]],
    );
}

#[test]
fn the_mode_goes_round() {
    check(
        "ready\nshift+tab\nevent:session.mode_changed {\"previousMode\":\"interactive\",\"newMode\":\"plan\"}\nshift+tab\nevent:session.mode_changed {\"previousMode\":\"plan\",\"newMode\":\"autopilot\"}\nshift+tab",
        expect![[r#"
            $ hangar
            ∙ Mode: plan
            ∙ Mode: autopilot

            ❯ ▮
            autopilot · scripted · ~/project · main
            ---
            session.mode.set {"mode":"plan"}
            session.mode.set {"mode":"autopilot"}
            session.mode.set {"mode":"interactive"}
        "#]],
    );
}

#[test]
fn help_lists_commands_and_keys() {
    check(
        "size:90x30\nready\n?\nscreen\nG",
        expect![[r#"
            Help
            Keys
            @                                name a file or a folder
            !                                run a command in your shell
            /                                run a command of Hangar
            enter                            send the prompt, or steer while the agent works
            ctrl+q, ctrl+enter               send the prompt when the agent is done
            shift+enter, alt+enter, ctrl+j   new line
            shift+tab                        next mode: interactive, plan, autopilot
            esc                              close or cancel
            esc esc                          stop the agent, or rewind
            ctrl+c                           clear the prompt, or cancel
            ctrl+c ctrl+c                    exit
            ctrl+d                           exit (empty prompt)
            ctrl+z                           suspend to the shell
            ctrl+l                           draw the screen again
            ctrl+s                           put the draft away, or bring it back
            ctrl+g, ctrl+x e, ctrl+x ctrl+e  edit the prompt in $EDITOR
            ctrl+r                           search the history
            ctrl+p                           older prompt
            ctrl+n                           newer prompt
            ctrl+v, alt+v                    paste an image or a file
            ctrl+o                           expand what is folded, recent
            ctrl+e                           expand what is folded, all (empty prompt)
            ctrl+t                           show or hide reasoning
            ctrl+f                           search the transcript (empty prompt)
            pageup                           the transcript, at its end
            pagedown                         nothing: the terminal scrolls what is printed
            left                             tasks and sub-agents (empty prompt)
            1–28 of 114 · ↑↓ pgup pgdn g G move · / searches, n next · q closes
            ===
            Help
            /login               Sets up a provider and its model
            /logout              Removes a provider, with the key that was kept for it
            /mcp                 MCP servers
            /memory              Lists, shows, edits and deletes the notes about this repository
            /model               Chooses the model and its effort (also /models)
            /move                Moves uncommitted changes and the session into a new git worktree
            /new                 Opens a new session and leaves this one as it is
            /notify              Switches notifications on or off
            /plan                Plans first
            /plugin              Lists, installs, updates and removes plugins (also /plugins)
            /raw                 Prints the last answer as it was written, without layout
            /reasoning           Shows or hides the model's reasoning
            /refine              Rewrites a rough prompt into a clear one, for review
            /restart             Starts the program again, with this session
            /resume              Opens an earlier session, of any agent (also /continue)
            /rewind              Goes back to an earlier prompt, with or without files (also /undo)
            /search              Searches the transcript (also /find)
            /settings            Shows the settings of the terminal (also /config)
            /statusline          Chooses what the status line shows (also /footer)
            /subagents           Lists agents and their models (also /agents)
            /tasks               Lists sub-agents and background commands
            /theme               Chooses the colours
            /usage               Says what the session used and cost (also /cost)
            /version             Says which version this is
            /vim                 Switches vim keys on or off
            /worktree            Continues in a new git worktree: a branch, a task, or nothing

            docs/terminal.md has more.
            87–114 of 114 · ↑↓ pgup pgdn g G move · / searches, n next · q closes
        "#]],
    );
}

#[test]
fn the_second_key_of_a_sequence_may_not_come_late() {
    check(
        "ready\nctrl+c\nwait:60000\nctrl+c",
        expect![[r#"
        $ hangar

        ❯ ▮
        press it again to leave
    "#]],
    );
    check(
        "ready\nesc\nwait:60000\nesc",
        expect![[r#"
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
}

#[test]
fn a_popup_goes_with_the_draft_it_was_for() {
    check(
        "ready\ntype:/mod\nscreen\nctrl+r\nscreen\nesc",
        expect![[r#"
        $ hangar

        ❯ /mod▮
        ❯ model  Chooses the model and its effort
        scripted · ~/project · main
        ===
        $ hangar

        search: ▮  0/0
        scripted · ~/project · main
        ===
        $ hangar

        ❯ /mod▮
        scripted · ~/project · main
    "#]],
    );
    check(
        "ready\ntype:/mod\nctrl+s",
        expect![[r#"
        $ hangar

        ❯ ▮
        the draft is put away; ctrl+s brings it back
    "#]],
    );
    check(
        "ready\ntype:/mod\nctrl+g\nedited:other",
        expect![[r#"
        $ hangar

        ❯ other▮
        scripted · ~/project · main
        ---
        Edit("/mod")
    "#]],
    );
}

#[test]
fn a_notice_is_whole_while_the_agent_works() {
    check(
        "ready\nturn\ntold:the transcript cannot be written to /a/directory/that/is/not/there: no such file",
        expect![[r#"
            $ hangar
            ◐ working · esc esc stops

            ❯ ▮
            the transcript cannot be written to
            /a/directory/that/is/not/there: no such
            file
        "#]],
    );
}

#[test]
fn suspending_and_drawing_again_work_everywhere() {
    for place in [
        "f1",
        "type:/theme\nenter",
        "ctrl+r",
        "ask:p1 {\"kind\":\"shell\",\"fullCommandText\":\"ls\",\"intention\":\"look\"}\nwait:400",
    ] {
        for (key, effect) in [("ctrl+z", "Suspend"), ("ctrl+l", "Redraw")] {
            let done = run(&format!("ready\n{place}\n{key}"));
            assert!(done.lines().any(|line| line == effect), "{key} after {place}:\n{done}");
        }
    }
}

#[test]
fn a_chord_ends_with_its_own_key_where_a_question_comes_up() {
    let ask = "ask:p1 {\"kind\":\"shell\",\"fullCommandText\":\"ls\",\"intention\":\"look\"}";
    for key in ["ctrl+z", "ctrl+l"] {
        // The question takes no keys yet: the chord that the draft was given ends here, and means nothing.
        let ended = run(&format!("ready\nctrl+x\n{ask}\n{key}"));
        assert!(!ended.contains("Suspend") && !ended.contains("Redraw"), "{key}:\n{ended}");
        let after = run(&format!("ready\nctrl+x\n{ask}\n{key}\n{key}"));
        assert!(after.contains("Suspend") || after.contains("Redraw"), "{key}:\n{after}");
    }
}

#[test]
fn pasted_text_is_searched_for() {
    let picked = run("ready\ntype:/theme\nenter\npaste:ligh");
    assert!(picked.contains("❯ ligh▮\n❯ light"), "{picked}");
    // Where no text is typed, a paste is no row of keys.
    let found = run("ready\nf1\npaste:q\ntype:/\npaste:suspend\nenter");
    assert!(found.contains("▌ctrl+z"), "{found}");
}
