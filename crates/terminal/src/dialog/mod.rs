//! Dialogs: questions of the session that stay in the tail until a person answers.
//!
//! A dialog takes keys once it has been on the screen for a moment ([`crate::arming`]) and its whole subject has been
//! shown: a command whose end was never on the screen cannot be approved.

mod body;
mod choice;
mod form;
mod host;
mod permission;
mod question;

use serde_json::Value;

use crate::arming::Arming;
use crate::key::Key;
use crate::keymap::Keymap;
use crate::row::Row;
use crate::theme::Theme;

pub use body::{BodyPart, DialogBody};
pub use choice::{ChoiceDialog, DialogChoice, MakeReply, TextNeed};
pub use form::FormDialog;
pub use host::{HostAnswer, HostAsk, HostDialog, HostItem, HostQuestion};
pub use permission::permission;
pub use question::{confirm_exit, plan, question, trust};

/// A dialog, and the target of its answer.
pub enum Dialog {
    Choice(Box<ChoiceDialog>),
    Form(Box<FormDialog>),
    Host(Box<HostDialog>),
}

/// Rows of a dialog, and the cursor in them if it is a text that is edited.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DialogView {
    pub rows: Vec<Row>,
    pub cursor: Option<(usize, usize)>,
}

/// State of a dialog after a key.
#[derive(Debug, Clone, PartialEq)]
pub enum DialogEnd {
    /// It stays.
    Open,
    Answered(DialogReply),
}

/// Answer to a dialog.
#[derive(Debug, Clone, PartialEq)]
pub enum DialogReply {
    /// A request to the server.
    Call {
        method: &'static str,
        params: Value,
    },
    Trust {
        remember: bool,
    },
    /// An answer to the program itself.
    Host(HostAnswer),
    Exit,
    /// Nothing is done.
    Dismissed,
}

impl Dialog {
    /// Id of the question, which may be answered elsewhere.
    pub fn request_id(&self) -> Option<&str> {
        match self {
            Self::Choice(dialog) => dialog.request_id.as_deref(),
            Self::Form(dialog) => Some(&dialog.request_id),
            Self::Host(_) => None,
        }
    }

    /// Fits the dialog to the screen. Has to be called before it is shown and when the size changes.
    pub fn layout(&mut self, columns: usize, rows: usize, theme: &Theme) {
        match self {
            Self::Choice(dialog) => dialog.layout(columns, rows, theme),
            Self::Form(dialog) => dialog.layout(columns, rows, theme),
            Self::Host(dialog) => dialog.layout(columns, rows, theme),
        }
    }

    /// Whether a key that comes now is for the dialog.
    pub fn takes_key(&mut self, now: u64) -> bool {
        match self {
            Self::Choice(dialog) => dialog.arming.takes_key(now),
            Self::Form(dialog) => dialog.arming.takes_key(now),
            Self::Host(dialog) => dialog.arming.takes_key(now),
        }
    }

    /// Notes that time has passed: the dialog may take keys by now.
    pub fn pass_time(&mut self, now: u64) {
        match self {
            Self::Choice(dialog) => dialog.arming.is_armed(now),
            Self::Form(dialog) => dialog.arming.is_armed(now),
            Self::Host(dialog) => dialog.arming.is_armed(now),
        };
    }

    /// Makes the dialog wait before it takes keys, because it is shown now.
    pub fn arm(&mut self, now: u64) {
        let arming = Arming::new(now);
        match self {
            Self::Choice(dialog) => dialog.arming = arming,
            Self::Form(dialog) => dialog.arming = arming,
            Self::Host(dialog) => dialog.arming = arming,
        }
    }

    /// Time at which the dialog changes without a key.
    pub fn due(&self) -> Option<u64> {
        match self {
            Self::Choice(dialog) => dialog.arming.due(),
            Self::Form(dialog) => dialog.arming.due(),
            Self::Host(dialog) => dialog.arming.due(),
        }
    }

    pub fn key(&mut self, key: Key, keymap: &Keymap) -> DialogEnd {
        match self {
            Self::Choice(dialog) => dialog.key(key, keymap),
            Self::Form(dialog) => dialog.key(key, keymap),
            Self::Host(dialog) => dialog.key(key, keymap),
        }
    }

    /// Takes pasted text into the field that is being edited, if there is one.
    pub fn paste(&mut self, text: &str) {
        match self {
            Self::Choice(dialog) => dialog.paste(text),
            Self::Form(dialog) => dialog.paste(text),
            Self::Host(dialog) => dialog.paste(text),
        }
    }

    pub fn view(&self, now: u64, theme: &Theme) -> DialogView {
        match self {
            Self::Choice(dialog) => dialog.view(now, theme),
            Self::Form(dialog) => dialog.view(now, theme),
            Self::Host(dialog) => dialog.view(now, theme),
        }
    }
}
