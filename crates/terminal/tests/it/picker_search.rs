//! Search in pickers, and pickers in plain lines.

use expect_test::{Expect, expect};
use hangar_terminal::state::{State, ViewOptions};

use crate::script::{check, run, step};
use crate::session::Session;

const MODELS: &str = r#"
    size:70x12
    ready
    type:/model
    enter
    reply:models.list:{"models":[{"id":"gpt-5-mini","name":"Small"},{"id":"claude-sonnet-4.5","name":"Sonnet"},{"id":"gpt-5","name":"GPT 5","supportedReasoningEfforts":["low","high"],"defaultReasoningEffort":"low"},{"id":"grok-code","name":"A model for programs"},{"id":"scripted"}]}
"#;

#[test]
fn what_is_called_so_comes_first_and_weak_matches_do_not_come() {
    check(
        &format!("{MODELS}\ntype:gpt-5"),
        expect![[r#"
            Models (2)
            ❯ gpt-5▮
            ❯ gpt-5  ‹ low ›     GPT 5
              gpt-5-mini         Small







            type to search · ↑↓ move · enter picks · ←→ changes · esc closes
            ---
            models.list {}
        "#]],
    );
    check(
        &format!("{MODELS}\ntype:gpt-5\nenter"),
        expect![[r#"
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            models.list {}
            session.model.switchTo {"modelId":"gpt-5","reasoningEffort":"low"}
        "#]],
    );
    check(
        &format!("{MODELS}\ntype:program"),
        expect![[r#"
            Models (1)
            ❯ program▮
            ❯ grok-code          A model for programs








            type to search · ↑↓ move · enter picks · ←→ changes · esc closes
            ---
            models.list {}
        "#]],
    );
    // The letters are in one name and one description in their order.
    check(
        &format!("{MODELS}\ntype:ge"),
        expect![[r#"
        Models (0)
        ❯ ge▮
        nothing fits








        type to search · ↑↓ move · enter picks · ←→ changes · esc closes
        ---
        models.list {}
    "#]],
    );
    let cleared = run(&format!("{MODELS}\ntype:ge\nesc"));
    assert!(cleared.contains("Models (5)"), "{cleared}");
}

/// A session in a terminal that only prints.
fn plain() -> Session {
    let mut session = Session::new(70, 24);
    let state = std::mem::replace(&mut session.state, State::new(1, 1, 0));
    session.state = state.with_options(ViewOptions { screen_reader: true, ..ViewOptions::default() });
    session
}

/// Runs a script in a terminal that only prints, and lists what the picker prints.
fn check_plain(script: &str, expected: Expect) {
    let mut session = plain();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        step(&mut session, line);
    }
    let lines = session.state.picker_lines().map(|lines| lines.join("\n") + "\n");
    let asked: Vec<String> = session.log.iter().map(|line| format!("{line}\n")).collect();
    expected.assert_eq(&format!("{}---\n{}", lines.unwrap_or_default(), asked.concat()));
}

#[test]
fn a_picker_is_a_numbered_list_where_nothing_is_redrawn() {
    let models = MODELS.replace("size:70x12", "").replace("type:/model\n    enter", "line:/model");
    check_plain(
        "ready\nline:/model",
        expect![[r#"
        ---
        models.list {}
    "#]],
    );
    check_plain(
        &models,
        expect![[r#"
        Models
        1. gpt-5-mini, Small
        2. claude-sonnet-4.5, Sonnet
        3. gpt-5, low (of low, high), GPT 5
        4. grok-code, A model for programs
        5. scripted, current
        A number picks, with a word after it for its other values, other text searches, an empty line closes.
        ---
        models.list {}
    "#]],
    );
    check_plain(
        &format!("{models}\nline:3"),
        expect![[r#"
        ---
        models.list {}
        session.model.switchTo {"modelId":"gpt-5","reasoningEffort":"low"}
    "#]],
    );
    check_plain(
        &format!("{models}\nline:3 high"),
        expect![[r#"
        ---
        models.list {}
        session.model.switchTo {"modelId":"gpt-5","reasoningEffort":"high"}
    "#]],
    );
    check_plain(
        &format!("{models}\nline:gpt\nline:1"),
        expect![[r#"
        ---
        models.list {}
        session.model.switchTo {"modelId":"gpt-5-mini"}
    "#]],
    );
    check_plain(
        &format!("{models}\nline:sonnet"),
        expect![[r#"
        Models
        1. claude-sonnet-4.5, Sonnet
        A number picks, with a word after it for its other values, other text searches, an empty line closes.
        ---
        models.list {}
    "#]],
    );
    check_plain(
        &format!("{models}\nline:99"),
        expect![[r#"
        Models
        nothing fits
        A number picks, with a word after it for its other values, other text searches, an empty line closes.
        ---
        models.list {}
    "#]],
    );
    check_plain(
        &format!("{models}\nline:"),
        expect![[r#"
        ---
        models.list {}
    "#]],
    );
}

#[test]
fn a_letter_and_a_number_do_what_a_key_does() {
    let sessions = r#"
        ready
        line:/resume
        reply:sessions:{"sessions":[{"id":"a","name":"fix","age":60},{"id":"b","name":"test","age":120}]}
    "#;
    check_plain(
        sessions,
        expect![[r#"
        Sessions
        1. fix, 1m ago
        2. test, 2m ago
        A number picks, x and a number deletes, other text searches, an empty line closes.
        ---
        ListSessions
    "#]],
    );
    check_plain(
        &format!("{sessions}\nline:x 2"),
        expect![[r#"
        ---
        ListSessions
        sessions.bulkDelete {"sessionIds":["b"]}
        ListSessions
    "#]],
    );
    check_plain(
        &format!("{sessions}\nline:2"),
        expect![[r#"
        ---
        ListSessions
        Open(Resume("b"))
    "#]],
    );
}

#[test]
fn a_page_is_printed_where_nothing_can_be_opened() {
    let mut session = plain();
    for line in
        ["ready", "line:/instructions", r#"reply:session.instructions.getSources:{"sources":["AGENTS.md"]}"#]
    {
        step(&mut session, line);
    }
    assert!(!session.is_overlay());
    assert_eq!(session.committed.last().map(String::as_str), Some("AGENTS.md"));
}
