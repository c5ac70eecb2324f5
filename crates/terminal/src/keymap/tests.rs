use expect_test::{Expect, expect};

use super::*;

/// Presses keys in a situation and lists their meanings.
fn check(keymap: &Keymap, context: KeyContext, keys: &str, expected: &str) {
    let mut pending = PendingKeys::default();
    let meanings: Vec<_> = Key::parse_all(keys)
        .unwrap()
        .into_iter()
        .map(|key| match keymap.resolve(&mut pending, key, context) {
            KeyMeaning::Action(Action::Edit(edit)) => format!("{edit:?}"),
            KeyMeaning::Action(action) => format!("{action:?}"),
            KeyMeaning::Pending => "…".into(),
            KeyMeaning::Insert(char) => format!("'{char}'"),
            KeyMeaning::Nothing => "-".into(),
        })
        .collect();
    assert_eq!(meanings.join(" "), expected, "{keys}");
}

const TEXT: KeyContext = KeyContext { empty: false, completing: false };
const EMPTY: KeyContext = KeyContext { empty: true, completing: false };
const POPUP: KeyContext = KeyContext { empty: false, completing: true };

#[test]
fn the_defaults_are_copilots() {
    let keymap = Keymap::default();
    for (context, keys, expected) in [
        (TEXT, "enter ctrl+q ctrl+enter", "Send Queue Queue"),
        (TEXT, "shift+enter alt+enter ctrl+j", "Newline Newline Newline"),
        (TEXT, "shift+tab backtab", "Mode Mode"),
        (TEXT, "ctrl+z ctrl+l ctrl+s ctrl+g", "Suspend Redraw Stash Editor"),
        (TEXT, "ctrl+r ctrl+p ctrl+n", "HistorySearch HistoryPrev HistoryNext"),
        (TEXT, "ctrl+v alt+v", "PasteAttachment PasteAttachment"),
        (TEXT, "ctrl+o ctrl+e ctrl+t ctrl+f", "ExpandRecent LineEnd Reasoning Right"),
        (EMPTY, "ctrl+o ctrl+e ctrl+t ctrl+f", "ExpandRecent ExpandAll Reasoning Search"),
        (TEXT, "pageup pgdn", "PageUp PageDown"),
        (TEXT, "ctrl+a ctrl+b ctrl+h ctrl+k", "LineStart Left Backspace KillLineEnd"),
        (TEXT, "ctrl+u ctrl+w ctrl+y ctrl+d", "KillLineStart KillBlankLeft Yank Delete"),
        (TEXT, "alt+b alt+f alt+d alt+backspace", "WordLeft WordRight KillWordRight KillWordLeft"),
        (TEXT, "alt+left alt+right alt+up alt+down", "WordLeft WordRight TextStart TextEnd"),
        (TEXT, "home end ctrl+home ctrl+end", "LineStart LineEnd TextStart TextEnd"),
        (TEXT, "ctrl+_ ctrl+- ctrl+7 alt+_", "Undo Undo Undo Redo"),
        (EMPTY, "ctrl+d left tab ?", "Exit Sidebar NextTab Help"),
        (TEXT, "ctrl+d left tab ?", "Delete Left Complete '?'"),
        (POPUP, "tab ctrl+y enter", "AcceptCompletion AcceptCompletion SubmitCompletion"),
        (POPUP, "up down ctrl+p ctrl+n", "CompletionPrev CompletionNext CompletionPrev CompletionNext"),
        (POPUP, "esc a", "CloseCompletion 'a'"),
        (TEXT, "a A 漢 space", "'a' 'A' '漢' ' '"),
        (TEXT, "f9 ctrl+5 alt+q insert", "- - - -"),
    ] {
        check(&keymap, context, keys, expected);
    }
}

#[test]
fn a_chord_waits_for_its_second_key() {
    let keymap = Keymap::default();
    for (keys, expected) in [
        ("ctrl+x e a", "… Editor 'a'"),
        ("ctrl+x ctrl+e", "… Editor"),
        ("ctrl+x / ctrl+x b ctrl+x g", "… CommandBeside … Background … Goal"),
        ("ctrl+x h ctrl+x o ctrl+x v ctrl+x x", "… Hide … OpenLink … Voice … Close"),
        ("ctrl+x z e", "… - 'e'"),
        ("ctrl+x esc esc", "… - Cancel"),
        ("ctrl+x ctrl+x e", "… - 'e'"),
    ] {
        check(&keymap, TEXT, keys, expected);
    }
}

#[test]
fn a_key_pressed_twice_acts_both_times() {
    let keymap = Keymap::default();
    for (keys, expected) in [
        ("esc esc esc", "Cancel Interrupt Cancel"),
        ("esc a esc", "Cancel 'a' Cancel"),
        ("ctrl+c ctrl+c", "Clear Exit"),
        ("ctrl+c esc ctrl+c", "Clear Cancel Clear"),
        ("esc ctrl+x e", "Cancel … Editor"),
    ] {
        check(&keymap, TEXT, keys, expected);
    }
}

#[test]
fn a_caller_can_let_a_second_press_come_too_late() {
    let keymap = Keymap::default();
    let mut pending = PendingKeys::default();
    let esc = Key::parse("esc").unwrap();
    keymap.resolve(&mut pending, esc, TEXT);
    assert!(!pending.is_empty());
    pending.clear();
    assert_eq!(keymap.resolve(&mut pending, esc, TEXT), KeyMeaning::Action(Action::Cancel));
}

fn changed(changes: &[(&str, &str)]) -> Result<Keymap, String> {
    let changes: Vec<_> =
        changes.iter().map(|(name, keys)| ((*name).to_owned(), (*keys).to_owned())).collect();
    Keymap::from_config(&changes)
}

#[test]
fn a_users_keys_replace_the_default_ones() {
    let keymap = changed(&[
        ("send", "ctrl+enter"),
        ("queue", "none"),
        ("newline", "enter, alt+enter"),
        ("stash", "f5, ctrl+x s"),
        ("help", "none"),
    ])
    .unwrap();
    check(&keymap, TEXT, "enter ctrl+enter ctrl+q alt+enter shift+enter", "Newline Send - Newline -");
    check(&keymap, TEXT, "f5 ctrl+s ctrl+x s", "Stash - … Stash");
    check(&keymap, EMPTY, "? f1", "'?' Help");
    assert_eq!(keymap.keys(Action::Stash), ["f5", "ctrl+x s"]);
}

fn refused(changes: &[(&str, &str)], expected: Expect) {
    expected.assert_eq(&changed(changes).unwrap_err());
}

#[test]
fn a_change_that_cannot_work_is_refused_in_one_sentence() {
    refused(
        &[("sned", "enter")],
        expect!["`sned` is not an action; docs/terminal-commands.md lists them with their keys"],
    );
    refused(
        &[("send", "hyper+a")],
        expect![
            "`send`: `hyper+a` is not a key; write a character or a name such as `enter`, with `ctrl+`, `alt+` or `shift+` before it"
        ],
    );
    refused(
        &[("stash", "ctrl+t")],
        expect!["`ctrl+t` is bound to both `reasoning` and `stash`; give `reasoning` another key or `none`"],
    );
    refused(
        &[("stash", "f5"), ("editor", "f5")],
        expect!["`f5` is bound to both `stash` and `editor`; give `stash` another key or `none`"],
    );
    refused(
        &[("stash", "ctrl+x")],
        expect!["`ctrl+x` of `stash` begins `ctrl+x e` of `editor`; give one of them another key"],
    );
    refused(
        &[("stash", "ctrl+t s")],
        expect!["`ctrl+t` of `reasoning` begins `ctrl+t s` of `stash`; give one of them another key"],
    );
    refused(&[("stash", "s")], expect!["`stash`: `s` types a character; add `ctrl+` or `alt+`"]);
    refused(&[("stash", "")], expect!["`stash` has no key; write `none` to leave it without one"]);
    refused(&[("stash", "f2 f3 f4 f5")], expect!["`stash`: `f2 f3 f4 f5` has more than 3 keys"]);
}

#[test]
fn the_table_has_no_conflicts_and_every_key_parses() {
    let keymap = Keymap::default();
    let keys: usize = table::ACTIONS.iter().map(|entry| entry.keys.len()).sum();
    assert_eq!(keymap.bindings.len(), keys);
    for (index, binding) in keymap.bindings.iter().enumerate() {
        let mut others = keymap.clone();
        others.bindings.remove(index);
        let name = name_of(binding.action, binding.when);
        assert_eq!(others.check(name, &shown(&binding.keys), binding), Ok(()));
    }
    for (index, entry) in table::ACTIONS.iter().enumerate() {
        assert!(table::ACTIONS[..index].iter().all(|other| other.name != entry.name), "{}", entry.name);
    }
}

#[test]
fn help_lists_the_keys_that_are_in_force() {
    let keymap = changed(&[("mode", "f2"), ("voice", "none")]).unwrap();
    let rows = keymap.rows();
    let find = |name| rows.iter().find(|row: &&HelpRow| row.name == name).map(|row| row.keys.clone());
    assert_eq!(find("mode").as_deref(), Some("f2"));
    assert_eq!(find("voice"), None);
    assert_eq!(find("editor").as_deref(), Some("ctrl+g, ctrl+x e, ctrl+x ctrl+e"));
    let first: Vec<_> = rows[..4].iter().map(|row| format!("{} | {}", row.keys, row.about)).collect();
    expect![[r#"
        enter | send the prompt, or steer while the agent works
        ctrl+q, ctrl+enter | send the prompt when the agent is done
        shift+enter, alt+enter, ctrl+j | new line
        f2 | next mode: interactive, plan, autopilot"#]]
    .assert_eq(&first.join("\n"));
}
