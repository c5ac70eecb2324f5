//! Keys of vim in the composer.

use super::super::buffer::Buffer;
use super::super::{Applied, Composer, Edit, Last, text};
use super::{Vim, VimMode, VimOutcome};
use crate::key::{Key, KeyCode};

/// Keeps the cursor of normal mode on a cluster instead of behind the last one of its line.
fn stay_on_line(buffer: &mut Buffer) {
    let at = buffer.cursor();
    let text = buffer.text();
    if at == text::line_end(text, at) && at > text::line_start(text, at) {
        buffer.go(text::prev(text, at));
    }
}

impl Composer {
    /// Turns vim's keys on, in insert mode, or off.
    pub fn set_vim(&mut self, on: bool) {
        self.buffer.undo.release();
        self.vim = on.then(Vim::new);
        if let Some(vim) = &mut self.vim {
            vim.insert(&mut self.buffer);
        }
    }

    pub fn vim_mode(&self) -> Option<VimMode> {
        self.vim.as_ref().map(|vim| vim.mode)
    }

    /// Mode for the status line.
    pub fn mode_label(&self) -> Option<&'static str> {
        Some(match self.vim_mode()? {
            VimMode::Normal => "NORMAL",
            VimMode::Insert => "INSERT",
        })
    }

    /// Gives a key to vim before the caller's own bindings.
    pub fn vim_key(&mut self, key: Key, columns: usize) -> VimOutcome {
        let Some(mut vim) = self.vim.take() else { return VimOutcome::Pass };
        let outcome = self.vim_key_in(&mut vim, key, columns);
        self.vim = Some(vim);
        outcome
    }

    fn vim_key_in(&mut self, vim: &mut Vim, key: Key, columns: usize) -> VimOutcome {
        if vim.mode == VimMode::Insert {
            if key != Key::plain(KeyCode::Esc) {
                return VimOutcome::Pass;
            }
            vim.mode = VimMode::Normal;
            let at = self.buffer.cursor();
            let start = text::line_start(self.buffer.text(), at);
            self.buffer.go(text::prev(self.buffer.text(), at).max(start));
            self.buffer.undo.release();
            self.last = Last::Other;
            return VimOutcome::Handled;
        }
        if key == Key::ctrl('r') {
            for _ in 0..vim.take_count() {
                if !self.buffer.redo() {
                    break;
                }
            }
            vim.clear();
            stay_on_line(&mut self.buffer);
            return VimOutcome::Handled;
        }
        let Some(char) = key.typed() else {
            let waited = vim.is_waiting();
            vim.clear();
            return match key.code {
                KeyCode::Esc if waited => VimOutcome::Handled,
                KeyCode::Backspace if key == Key::plain(KeyCode::Backspace) => {
                    self.edit(Edit::Left, columns);
                    stay_on_line(&mut self.buffer);
                    VimOutcome::Handled
                }
                _ => VimOutcome::Pass,
            };
        };
        if matches!(char, 'j' | 'k') && vim.operator.is_none() && vim.wait.is_none() {
            return self.vim_vertical(vim, char == 'k', columns);
        }
        if char == '?' && self.is_empty() && !vim.is_waiting() {
            return VimOutcome::Pass;
        }
        self.buffer.undo.hold();
        vim.char(&mut self.buffer, char);
        self.last = Last::Other;
        if vim.mode == VimMode::Normal {
            self.buffer.undo.release();
            stay_on_line(&mut self.buffer);
        }
        VimOutcome::Handled
    }

    fn vim_vertical(&mut self, vim: &mut Vim, up: bool, columns: usize) -> VimOutcome {
        let edit = if up { Edit::Up } else { Edit::Down };
        for step in 0..vim.take_count() {
            match self.edit(edit, columns) {
                Applied::Done => {}
                Applied::AtTop if step == 0 => return VimOutcome::AtTop,
                Applied::AtBottom if step == 0 => return VimOutcome::AtBottom,
                Applied::AtTop | Applied::AtBottom => break,
            }
        }
        let last = self.last;
        stay_on_line(&mut self.buffer);
        self.last = last;
        VimOutcome::Handled
    }
}
