//! Pickers on the alternate screen.

use expect_test::expect;

use crate::script::{check, run};

#[test]
fn a_model_is_picked_with_its_effort() {
    let open = r#"
        ready
        type:/model
        enter
        screen
        reply:models.list:{"models":[{"id":"small","name":"Small"},{"id":"large","name":"Large Model","capabilities":{"limits":{"max_context_window_tokens":200000}},"billing":{"tokenPrices":{"inputPrice":300.0,"outputPrice":1500.0,"batchSize":1000000}},"supportedReasoningEfforts":["low","high"],"defaultReasoningEffort":"low"},{"id":"scripted"}]}
    "#;
    check(
        open,
        expect![[r#"
            Models (0)
            ❯ ▮
            loading …




















            type to search · ↑↓ move · enter picks · esc closes
            ---
            models.list {}
            ===
            Models (3)
            ❯ ▮
              small           Small
              large  ‹ low ›  Large Model · 200k context · $3.00 in, $1…
            ❯ scripted        current


















            type to search · ↑↓ move · enter picks · ←→ changes · esc c…
        "#]],
    );
    check(
        &format!("{open}\ntype:lar\nenter"),
        expect![[r#"
            Models (0)
            ❯ ▮
            loading …




















            type to search · ↑↓ move · enter picks · esc closes
            ---
            models.list {}
            ===
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.model.switchTo {"modelId":"large","reasoningEffort":"low"}
        "#]],
    );
    check(
        &format!("{open}\nup\nright\nenter"),
        expect![[r#"
            Models (0)
            ❯ ▮
            loading …




















            type to search · ↑↓ move · enter picks · esc closes
            ---
            models.list {}
            ===
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.model.switchTo {"modelId":"large","reasoningEffort":"high"}
        "#]],
    );
    check(
        &format!("{open}\ntype:zzz\nenter\nesc\nesc"),
        expect![[r#"
            Models (0)
            ❯ ▮
            loading …




















            type to search · ↑↓ move · enter picks · esc closes
            ---
            models.list {}
            ===
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
        "#]],
    );
    check(
        "ready\ntype:/model\nenter\nrefuse:models.list:no provider answers",
        expect![[r#"
            Models (2)
            ❯ ▮
            ❯ scripted  current
              no provider answers



















            type to search · ↑↓ move · enter picks · esc closes
            ---
            models.list {}
        "#]],
    );
    check(
        "ready\ntype:/model large\nenter",
        expect![[r#"
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.commands.invoke {"name":"model","input":"large"}
        "#]],
    );
}

#[test]
fn an_answer_that_comes_late_opens_nothing_else() {
    let late = "ready\ntype:/model\nenter\nesc\ntype:/tasks\nenter\nreply:models.list:{\"models\":[{\"id\":\"small\"}]}";
    assert!(run(late).contains("Tasks (0)"), "{}", run(late));
    let closed = "ready\ntype:/model\nenter\nesc\nreply:models.list:{\"models\":[{\"id\":\"small\"}]}";
    assert!(!run(closed).contains("small"));
}

#[test]
fn a_session_is_resumed_or_deleted_by_a_key_pressed_twice() {
    let open = r#"
        ready
        type:/resume
        enter
        reply:sessions:{"sessions":[{"id":"s1","name":"fix the sign","age":90,"directory":"~/project"},{"id":"s2","age":90000,"agent":"claude","state":"open elsewhere"}]}
    "#;
    check(
        open,
        expect![[r#"
            Sessions (2)
            ❯ ▮
            ❯ fix the sign  1m ago · ~/project
              s2            1d ago · claude · open elsewhere



















            type to search · ↑↓ move · enter picks · ctrl+x deletes · e…
            ---
            ListSessions
        "#]],
    );
    check(
        &format!("{open}\ndown\nenter"),
        expect![[r#"
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            ListSessions
            Open(Resume("s2"))
        "#]],
    );
    check(
        &format!("{open}\nctrl+x\nscreen\nctrl+x"),
        expect![[r#"
            Sessions (2)
            ❯ ▮
            ❯ fix the sign  1m ago · ~/project
              s2            1d ago · claude · open elsewhere



















            ctrl+x again deletes; any other key keeps it
            ---
            ListSessions
            ===
            Sessions (0)
            ❯ ▮
            loading …




















            type to search · ↑↓ move · enter picks · esc closes
            ---
            sessions.bulkDelete {"sessionIds":["s1"]}
            ListSessions
        "#]],
    );
    check(
        &format!("{open}\nctrl+x\ndown\nctrl+x\nesc"),
        expect![[r#"
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            ListSessions
        "#]],
    );
    check(
        "ready\ntype:/resume abc\nenter",
        expect![[r#"
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            Open(Resume("abc"))
        "#]],
    );
}

#[test]
fn a_view_begins_with_the_session_that_is_picked() {
    let open = "pick\nreply:sessions:{\"sessions\":[{\"id\":\"s1\",\"name\":\"one\",\"age\":5}]}";
    check(
        &format!("{open}\nenter"),
        expect![[r#"
        $ hangar

        ❯ ▮
        opening the session …
        ---
        ListSessions
        Open(Resume("s1"))
    "#]],
    );
    check(
        &format!("{open}\nesc"),
        expect![[r#"
        $ hangar

        ❯ ▮
        opening the session …
        ---
        ListSessions
        Open(New)
    "#]],
    );
}

#[test]
fn an_agent_is_chosen() {
    let open = r#"
        ready
        type:/agent
        enter
        reply:session.agent.list:{"agents":[{"id":"tester","name":"tester","displayName":"Tester","description":"writes tests","model":"small"}]}
    "#;
    check(
        &format!("{open}\ndown\nscreen\nenter"),
        expect![[r#"
            Agents (2)
            ❯ ▮
              Hangar  the usual agent
            ❯ Tester  small · writes tests



















            type to search · ↑↓ move · enter picks · esc closes
            ---
            session.agent.list {"includeBuiltInAgents":false}
            ===
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.agent.select {"name":"tester"}
        "#]],
    );
    check(
        &format!("{open}\nenter"),
        expect![[r#"
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            session.agent.list {"includeBuiltInAgents":false}
            session.agent.deselect {}
        "#]],
    );
}

#[test]
fn colours_are_picked_by_name() {
    check(
        "ready\ntype:/theme\nenter\nscreen\ntype:dark\nenter",
        expect![[r#"
            Colours (5)
            ❯ ▮
              auto   dark or light by the terminal's background
            ❯ ansi   the 16 colours of your terminal
              dark   for a dark background
              light  for a light background
              none   bold and underlined, no colours
















            type to search · ↑↓ move · enter picks · esc closes
            ===
            $ hangar

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            Keep { key: "theme", value: String("dark") }
            Redraw
        "#]],
    );
    check(
        "ready\ntype:/theme light\nenter\ntype:/theme pink\nenter",
        expect![[r#"
            $ hangar
            ✗ `pink` is not a theme: choose auto, ansi, dark, light,
              none

            ❯ ▮
            scripted · ~/project · main · / commands · ? help
            ---
            Keep { key: "theme", value: String("light") }
            Redraw
        "#]],
    );
}
