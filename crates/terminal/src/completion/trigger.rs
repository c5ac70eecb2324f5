//! Place in the text that completions are offered for.

use std::ops::Range;

use crate::composer::is_part;

/// Kind of the candidates that fit a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerKind {
    /// Slash command.
    Command,
    /// Argument of a slash command, with the arguments before it.
    Argument { command: String, before: Vec<String> },
    /// File or folder, after `@`.
    File,
    /// Issue, after `#`.
    Issue,
}

/// Word at the cursor that can be completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trigger {
    pub kind: TriggerKind,
    /// Range of the text that a completion replaces, with the sign that begins it.
    pub range: Range<usize>,
    /// Text between the sign and the cursor.
    pub query: String,
}

/// Finds the word at the cursor that can be completed, in the text of the composer.
pub fn trigger(text: &str, cursor: usize) -> Option<Trigger> {
    let before = text.get(..cursor)?;
    mention(text, before).or_else(|| sign(text, before)).or_else(|| slash(text, before))
}

fn ends_word(char: char) -> bool {
    char.is_whitespace() || is_part(char)
}

/// Whether a sign after this text is at the start of a word.
fn starts_word(before: &str) -> bool {
    before.chars().next_back().is_none_or(|char| ends_word(char) || "([{<\"'`".contains(char))
}

fn word_end(text: &str, at: usize) -> usize {
    text[at..].find(ends_word).map_or(text.len(), |index| at + index)
}

fn mention(text: &str, before: &str) -> Option<Trigger> {
    let line = before.rfind('\n').map_or(0, |index| index + 1);
    let mut signs = before[line..].rmatch_indices('@').map(|(index, _)| line + index);
    signs.find_map(|start| {
        if !starts_word(&before[..start]) {
            return None;
        }
        let word = &before[start + 1..];
        let (query, end) = match word.strip_prefix('"') {
            Some(quoted) => {
                let (path, closed) = super::mention::unquoted(quoted);
                if closed.is_some() {
                    return None;
                }
                let rest = &text[before.len()..];
                let rest = rest.split('\n').next().unwrap_or_default();
                let (_, close) = super::mention::unquoted(rest);
                (path, close.map_or(before.len(), |close| before.len() + close))
            }
            None if word.contains(ends_word) => return None,
            None => (word.to_owned(), word_end(text, before.len())),
        };
        Some(Trigger { kind: TriggerKind::File, range: start..end, query })
    })
}

fn sign(text: &str, before: &str) -> Option<Trigger> {
    let start = before.rfind('#')?;
    let query = &before[start + 1..];
    let fits =
        starts_word(&before[..start]) && query.chars().all(|char| char.is_alphanumeric() || char == '-');
    fits.then(|| Trigger {
        kind: TriggerKind::Issue,
        range: start..word_end(text, before.len()),
        query: query.to_owned(),
    })
}

fn slash(text: &str, before: &str) -> Option<Trigger> {
    let line = before.strip_prefix('/').filter(|line| !line.contains('\n'))?;
    let end = word_end(text, before.len());
    let Some((command, arguments)) = line.split_once(char::is_whitespace) else {
        // A second slash makes it a path.
        let fits = !text[..end].get(1..)?.contains('/') && !line.contains(is_part);
        return fits.then(|| Trigger { kind: TriggerKind::Command, range: 0..end, query: line.to_owned() });
    };
    if command.is_empty() || command.contains('/') {
        return None;
    }
    let start = arguments
        .rfind(ends_word)
        .map_or(0, |index| index + arguments[index..].chars().next().map_or(0, char::len_utf8));
    let query = arguments[start..].to_owned();
    let before_it = arguments[..start].split_whitespace().map(str::to_owned).collect();
    Some(Trigger {
        kind: TriggerKind::Argument { command: command.to_owned(), before: before_it },
        range: before.len() - query.len()..end,
        query,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Finds the trigger at `|` and shows its kind, the range that it replaces and its query.
    fn check(cases: &[(&str, &str)]) {
        for (text, expected) in cases {
            let cursor = text.find('|').unwrap();
            let text = text.replace('|', "");
            let found = trigger(&text, cursor).map_or("-".to_owned(), |trigger| {
                let kind = match &trigger.kind {
                    TriggerKind::Command => "command".to_owned(),
                    TriggerKind::Argument { command, before } => {
                        format!(
                            "argument of {}",
                            [std::slice::from_ref(command), before.as_slice()].concat().join(" ")
                        )
                    }
                    TriggerKind::File => "file".to_owned(),
                    TriggerKind::Issue => "issue".to_owned(),
                };
                format!("{kind}: {} for {}", trigger.query, &text[trigger.range])
            });
            assert_eq!(found, *expected, "{text}");
        }
    }

    #[test]
    fn a_slash_at_the_start_is_a_command() {
        check(&[
            ("/|", "command:  for /"),
            ("/mo|", "command: mo for /mo"),
            ("/m|odel", "command: m for /model"),
            ("|/model", "-"),
            (" /mo|", "-"),
            ("a /mo|", "-"),
            ("/usr/bi|", "-"),
            ("/us|r/bin", "-"),
            ("/model |", "argument of model:  for "),
            ("/model gp|", "argument of model: gp for gp"),
            ("/model gp|t-5 x", "argument of model: gp for gpt-5"),
            ("/mcp auth fo|", "argument of mcp auth: fo for fo"),
            ("/mcp  auth  |", "argument of mcp auth:  for "),
            ("/usr/bin x|", "-"),
            ("/model a\nb|", "-"),
            ("/ a|", "-"),
        ]);
    }

    #[test]
    fn an_at_sign_at_the_start_of_a_word_is_a_file() {
        check(&[
            ("@|", "file:  for @"),
            ("@src/ma|", "file: src/ma for @src/ma"),
            ("see @ma|in.rs now", "file: ma for @main.rs"),
            ("see (@ma|", "file: ma for @ma"),
            ("a@b|", "-"),
            ("@a b|", "-"),
            ("@\"my dir/a b|", "file: my dir/a b for @\"my dir/a b"),
            ("@\"my di|r/x\" now", "file: my di for @\"my dir/x\""),
            ("@\"my dir\"|", "-"),
            ("@\"my dir\" @a|", "file: a for @a"),
            ("@a\n@b|", "file: b for @b"),
            ("@a\n|", "-"),
            ("/add-dir @sr|", "file: sr for @sr"),
            ("x@y @z|", "file: z for @z"),
            ("@x@y|", "file: x@y for @x@y"),
            ("\u{10F000}@x|", "file: x for @x"),
        ]);
    }

    #[test]
    fn a_number_sign_at_the_start_of_a_word_is_an_issue() {
        check(&[
            ("#|", "issue:  for #"),
            ("fix #12|", "issue: 12 for #12"),
            ("fix #log-|in", "issue: log- for #log-in"),
            ("a#1|", "-"),
            ("##|", "-"),
            ("# title|", "-"),
            ("plain|", "-"),
            ("|", "-"),
        ]);
    }

    proptest! {
        #[test]
        fn any_trigger_is_a_range_around_the_cursor(text in "[@#/\"\\\\ a漢\\n\u{301}\u{10F000}]{0,20}") {
            for cursor in (0..=text.len() + 1).filter(|at| text.is_char_boundary(*at) || *at > text.len()) {
                if let Some(found) = trigger(&text, cursor) {
                    prop_assert!(found.range.start <= cursor && cursor <= found.range.end);
                    prop_assert!(text.get(found.range).is_some());
                }
            }
        }
    }
}
