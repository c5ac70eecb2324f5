//! Inputs of a view.

use hangar_protocol::Event;
use serde_json::Value;

use crate::dialog::HostQuestion;
use crate::effect::CallId;
use crate::key::Key;

#[derive(Debug)]
pub enum Input {
    Key(Key),
    Paste(String),
    /// A whole line, from a terminal that has no keys: an answer to the open question, or the prompt.
    Line(String),
    Resize {
        columns: usize,
        rows: usize,
    },
    /// The terminal gained or lost the focus.
    Focus(bool),
    /// Time has passed.
    Tick,
    /// An event of the session, as it happens.
    Event(Box<Event>),
    /// Events from before the view was opened, oldest first, and the number of older ones.
    History {
        events: Vec<Event>,
        older: u64,
        /// Whether another process runs the session, so that its last answer may still be coming.
        is_live: bool,
    },
    /// Events of the log for the pager, and the number of older ones.
    Transcript {
        events: Vec<Event>,
        older: u64,
    },
    /// The session is open and takes requests.
    Ready(SessionFacts),
    /// The session changed its working directory.
    Moved {
        /// As it is shown.
        directory: String,
        branch: Option<String>,
    },
    /// The session was left; another one is being opened.
    Closed,
    /// A prompt that was given with the start of the program.
    Prompt(String),
    /// The session cannot be opened, or its server is gone.
    Lost(String),
    Reply {
        call: CallId,
        result: Result<Value, String>,
    },
    /// Files below the session's directory.
    Files(Vec<String>),
    /// The text as the editor left it. `None` if the editor failed, with the reason as a notice.
    Edited(Result<String, String>),
    /// An attachment that was read from the clipboard or a file.
    Attached(Result<AttachedFile, String>),
    /// A sentence for the person, from the loop.
    Told(String),
    /// A sentence that stays on the screen, such as where a file is.
    Printed(String),
    /// First line that the user's command for the status line printed. `None` if it failed.
    StatusText(Option<String>),
    /// A question of the program itself, in place of the one before. `None` if there is none any more.
    Ask(Option<Box<HostQuestion>>),
    /// The terminal's background, as far as it says.
    Background {
        red: u8,
        green: u8,
        blue: u8,
    },
}

/// Facts about a session that are not in its events.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionFacts {
    pub id: String,
    /// Working directory, as it is shown.
    pub directory: String,
    pub branch: Option<String>,
    pub model: Option<String>,
    pub effort: Option<String>,
    pub mode: String,
    /// Name of the agent, if it is not Hangar's own.
    pub agent: Option<String>,
    /// Whether the session runs in another process, which continues without this view.
    pub remote: bool,
}

/// A file or an image to be sent with the prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachedFile {
    pub path: String,
    pub is_image: bool,
}
