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
            Commands
            /agent                Chooses the agent that answers
            /ask                  Asks something aside, outside the conversation (also /btw)
            /changelog            Shows what is new in this version (also /release-notes)
            /clear                Starts over in a new session (also /reset)
            /collect-debug-logs   Copies the session's log and the program's logs to a directory
            /compact              Sums the conversation up
            /context              Says what the model's context is filled with
            /copy                 Copies the last answer to the clipboard
            /cwd                  Directory (also /cd)
            /detach               Leaves the session running elsewhere
            /diagnose             Checks models, logins and this machine, as `hangar doctor` does
            /diff                 Shows what changed in the working tree
            /exit                 Closes the session and leaves (also /quit)
            /experimental         Lists the features that can be switched on and off
            /export               Writes the transcript to a file: md or html, and a path (also
            /share)
            /extensions           Lists the extensions and switches them on and off
            /fork                 Goes on in a copy of the session (also /branch)
            /help                 Lists commands and keys
            /hooks                Lists the hooks of the session
            /instructions         Lists the instruction files that are read
            /limits               Limits the cost of the session, or removes the limit
            /login                Sets up a provider and its model
            /logout               Removes a provider, with the key that was kept for it
            /mcp                  MCP servers
            /memory               Lists, shows, edits and deletes the notes about this repository
            /model                Chooses the model and its effort (also /models)
            1–28 of 115 · ↑↓ pgup pgdn g G move · / searches, n next · q closes
            ===
            Help
            ctrl+x h               no: there is no panel beside the conversation
            ctrl+x o               no: the terminal opens links, Hangar starts no browser
            ctrl+x v               no: there is no voice input
            ctrl+x x               no: there is no panel beside the conversation
            left, ctrl+b           left
            right, ctrl+f          right
            up                     up; above the first row queued prompts, then the history
            down                   down; below the last row newer prompts
            alt+b, alt+left, ctrl+left a word left
            alt+f, alt+right, ctrl+right a word right
            ctrl+a, home           start of the line
            ctrl+e, end            end of the line
            ctrl+home, alt+up, alt+< start of the text
            ctrl+end, alt+down, alt+> end of the text
            backspace, ctrl+h, shift+backspace delete to the left
            delete, ctrl+d         delete to the right
            ctrl+w                 kill back to a blank
            alt+backspace, ctrl+backspace kill the word to the left
            alt+d, alt+delete, ctrl+delete kill the word to the right
            ctrl+u                 kill to the start of the line
            ctrl+k                 kill to the end of the line
            ctrl+y                 insert what was killed
            alt+y                  insert an older kill instead
            ctrl+_, ctrl+-, ctrl+/, ctrl+7 undo
            alt+_, alt+-, ctrl+shift+z redo

            @ names a file, ! runs a command, / is a command; ctrl+v pastes an image.
            docs/terminal.md has more.
            88–115 of 115 · ↑↓ pgup pgdn g G move · / searches, n next · q closes
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
