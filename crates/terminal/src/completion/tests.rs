use expect_test::{Expect, expect};

use super::*;
use crate::key::Key;
use crate::keymap::{Action, KeyContext, KeyMeaning, Keymap, PendingKeys};
use crate::row::{Row, Style};

const PATHS: &[&str] =
    &["README.md", "docs/", "src/", "src/lib.rs", "src/main.rs", "my notes/", "my notes/to do.md"];

fn candidates(trigger: &Trigger) -> Filtered {
    match &trigger.kind {
        TriggerKind::Command => filter(
            &trigger.query,
            &[
                Suggestion::command("model", "choose the model"),
                Suggestion::command("mcp", "servers of tools"),
                Suggestion::command("memory", "on or off"),
                Suggestion::command("exit", "leave"),
            ],
        ),
        TriggerKind::Argument { command, before } if command == "memory" && before.is_empty() => {
            filter(&trigger.query, &[Suggestion::argument("on", ""), Suggestion::argument("off", "")])
        }
        TriggerKind::Argument { .. } => Filtered::default(),
        TriggerKind::File => filter_paths(&trigger.query, PATHS),
        TriggerKind::Issue => {
            filter(&trigger.query, &[Suggestion::issue(12, "login fails"), Suggestion::issue(7, "slow")])
        }
    }
}

/// Types into a composer with completions and shows the text, what was sent and the popup.
fn run(script: &str) -> (String, Completions) {
    let keymap = Keymap::default();
    let mut pending = PendingKeys::default();
    let mut composer = Composer::new();
    let mut completions = Completions::default();
    let mut sent = "";
    let keys = script.split_whitespace().flat_map(|word| match Key::parse(word) {
        Ok(key) => vec![key],
        Err(_) => word.chars().map(Key::char).collect(),
    });
    for key in keys {
        let context = KeyContext { empty: composer.is_empty(), completing: completions.open().is_some() };
        match keymap.resolve(&mut pending, key, context) {
            KeyMeaning::Insert(char) => composer.insert(char.encode_utf8(&mut [0; 4])),
            KeyMeaning::Action(Action::Complete) => {
                if let Some(trigger) = completions.request(&composer) {
                    let found = candidates(&trigger);
                    completions.offer(trigger, found);
                }
                continue;
            }
            KeyMeaning::Action(Action::Edit(edit)) => {
                composer.edit(edit, 80);
            }
            KeyMeaning::Action(action) => match completions.apply(action, &mut composer) {
                CompletionOutcome::Moved => continue,
                CompletionOutcome::Submitted => {
                    sent = " sent";
                    continue;
                }
                CompletionOutcome::Pass if action == Action::Send => sent = " sent",
                CompletionOutcome::Accepted | CompletionOutcome::Closed | CompletionOutcome::Pass => {}
            },
            KeyMeaning::Pending | KeyMeaning::Nothing => {}
        }
        if let Some(trigger) = completions.refresh(&composer) {
            let found = candidates(&trigger);
            completions.offer(trigger, found);
        }
    }
    let (before, after) = composer.text().split_at(composer.cursor());
    let open = completions.open().and_then(Completion::selected).map_or("", |candidate| &candidate.label);
    let popup = if open.is_empty() { String::new() } else { format!(" <{open}>") };
    (format!("{before}|{after}{sent}{popup}"), completions)
}

fn check(cases: &[(&str, &str)]) {
    for (script, expected) in cases {
        assert_eq!(run(script).0, *expected, "{script}");
    }
}

#[test]
fn a_popup_opens_at_a_word_and_a_key_accepts_it() {
    check(&[
        ("/", "/| <model>"),
        ("/mc", "/mc| <mcp>"),
        ("/mc tab", "/mcp |"),
        ("/mc ctrl+y", "/mcp |"),
        ("/mc enter", "/mcp | sent"),
        ("/ down tab", "/mcp |"),
        ("/ up tab", "/exit |"),
        ("/ down down up ctrl+n ctrl+p tab", "/mcp |"),
        ("/ down down down down", "/| <model>"),
        ("/zz", "/zz|"),
        ("/zz enter", "/zz| sent"),
        ("/mem tab", "/memory | <on>"),
        ("/mem tab enter", "/memory | sent"),
        ("/mem tab down enter", "/memory off | sent"),
        ("/mem tab tab", "/memory on |"),
        ("/mem tab of enter", "/memory off | sent"),
        ("/memory space on space", "/memory on |"),
        ("see space @main tab now", "see @src/main.rs now|"),
        ("@main enter", "@src/main.rs |"),
        ("@src tab", "@src/| <src/>"),
        ("@src tab tab", "@src/| <src/>"),
        ("@todo tab", "@\"my notes/to do.md\" |"),
        ("#log tab", "#12 |"),
        ("@main left left tab", "@src/main.rs |"),
    ]);
}

#[test]
fn a_closed_popup_stays_closed_until_another_word() {
    check(&[
        ("/m esc", "/m|"),
        ("/m esc c", "/mc|"),
        ("/m esc c tab", "/mc| <mcp>"),
        ("/m esc enter", "/m| sent"),
        ("@ma esc i space @li", "@mai @li| <src/lib.rs>"),
        ("/m esc backspace backspace /", "/| <model>"),
        ("/m ctrl+a", "|/m"),
    ]);
}

fn check_view(script: &str, columns: usize, rows: usize, expected: Expect) {
    let (_, completions) = run(script);
    let styles = CompletionStyles { matched: Style::BOLD, ..CompletionStyles::default() };
    let rows = completions.open().map_or(Vec::new(), |open| open.view(columns, rows, &styles));
    assert!(rows.iter().all(|row| row.width() <= columns));
    let show = |row: &Row| -> String {
        let spans = row.spans.iter();
        spans
            .map(|span| if span.style.bold { format!("[{}]", span.text) } else { span.text.clone() })
            .collect()
    };
    let shown: Vec<_> = rows.iter().map(|row| show(row).trim_end().to_owned() + "\n").collect();
    expected.assert_eq(&shown.concat());
}

#[test]
fn the_popup_shows_details_and_what_matched() {
    check_view(
        "/m",
        40,
        5,
        expect![[r#"
        ❯ [m]odel   choose the model
          [m]cp     servers of tools
          [m]emory  on or off
    "#]],
    );
    check_view(
        "@m",
        40,
        3,
        expect![[r#"
        ❯ [m]y notes/
          src/[m]ain.rs
          [m]y notes/to do.md
    "#]],
    );
    check_view(
        "@m down down down",
        40,
        3,
        expect![[r#"
          src/[m]ain.rs
          [m]y notes/to do.md
        ❯ README.[m]d
    "#]],
    );
    check_view(
        "@todo",
        12,
        3,
        expect![[r#"
        ❯ …/[to] [do].md
    "#]],
    );
    check_view(
        "/m",
        16,
        2,
        expect![[r#"
        ❯ [m]odel  choose…
          [m]cp    server…
    "#]],
    );
    check_view(
        "/m",
        1,
        2,
        expect![[r#"
        …
        …
    "#]],
    );
}

#[test]
fn the_number_of_all_matches_is_known() {
    let many: Vec<String> = (0..1000).map(|number| format!("file{number}")).collect();
    let filtered = filter_paths("file", &many);
    assert_eq!((filtered.items.len(), filtered.total), (MATCH_LIMIT, 1000));
}
