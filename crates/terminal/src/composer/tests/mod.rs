//! Tests of the composer: keys in, text with a mark at the cursor out.

mod edits;
mod pastes;
mod properties;
mod views;
mod vim;

use super::*;
use crate::key::Key;
use crate::keymap::{Action, KeyContext, KeyMeaning, Keymap, PendingKeys};

/// Composer with the default keys.
#[derive(Default)]
struct Session {
    composer: Composer,
    keymap: Keymap,
    pending: PendingKeys,
    columns: usize,
    /// Moves that left the text: `^` at the top, `v` at the bottom.
    edges: String,
}

impl Session {
    fn new(columns: usize) -> Self {
        Self { columns, ..Self::default() }
    }

    /// Runs words separated by blanks: `name=argument` for what is no key, names of keys, and all else typed as it is.
    fn run(&mut self, script: &str) {
        for word in script.split_whitespace() {
            match word.split_once('=') {
                Some(("paste", lines)) => {
                    let lines: Vec<_> =
                        (1..=lines.parse().unwrap()).map(|line: usize| line.to_string()).collect();
                    self.composer.paste(&lines.join("\n"));
                }
                Some(("text", text)) => {
                    self.composer.paste(&text.replace('_', " ").replace("\\n", "\n").replace("\\t", "\t"));
                }
                Some(("image", path)) => assert!(self.composer.attach(AttachmentKind::Image, path)),
                Some(("file", path)) => assert!(self.composer.attach(AttachmentKind::File, path)),
                _ => match Key::parse(word) {
                    Ok(key) => self.key(key),
                    Err(_) => word.chars().for_each(|char| self.key(Key::char(char))),
                },
            }
        }
    }

    fn key(&mut self, key: Key) {
        match self.composer.vim_key(key, self.columns) {
            VimOutcome::Handled => return,
            VimOutcome::AtTop => return self.edges.push('^'),
            VimOutcome::AtBottom => return self.edges.push('v'),
            VimOutcome::Pass => {}
        }
        let context = KeyContext::default();
        match self.keymap.resolve(&mut self.pending, key, context) {
            KeyMeaning::Action(Action::Edit(edit)) => match self.composer.edit(edit, self.columns) {
                Applied::Done => {}
                Applied::AtTop => self.edges.push('^'),
                Applied::AtBottom => self.edges.push('v'),
            },
            KeyMeaning::Action(Action::Stash) => {
                self.composer.stash();
            }
            KeyMeaning::Insert(char) => self.composer.insert(char.encode_utf8(&mut [0; 4])),
            KeyMeaning::Action(_) | KeyMeaning::Pending | KeyMeaning::Nothing => {}
        }
    }

    /// Text with placeholders, `⏎` for line breaks, `→` for tabs and `|` at the cursor.
    fn shown(&self) -> String {
        let (before, after) = self.composer.text().split_at(self.composer.cursor());
        let show = |text: &str| {
            let pieces = self.composer.parts.pieces(text);
            let text: String = pieces.iter().map(DraftPiece::label).collect();
            text.replace('\n', "⏎").replace('\t', "→")
        };
        format!("{}|{}{}", show(before), show(after), self.edges)
    }
}

/// Runs scripts in a screen of 80 columns.
fn check(cases: &[(&str, &str)]) {
    for (script, expected) in cases {
        let mut session = Session::new(80);
        session.run(script);
        assert_eq!(session.shown(), *expected, "{script}");
    }
}
