//! Effects that a view asks for: requests to the session, and things that only the owner of the tty can do.

use serde_json::Value;

use crate::dialog::HostAnswer;
use crate::worktrees::Uncommitted;

/// Identifies a request until its answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallId(pub u64);

/// An action for the loop around the view.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A request to the server of the session, in the words of the SDK protocol. The loop adds the session's id.
    Call { call: CallId, method: &'static str, params: Value },
    /// Switches the view to another session.
    Open(SessionTarget),
    /// Lists the files below the session's directory, for completion.
    ListFiles,
    /// Lists the sessions of all agents on this machine.
    ListSessions { call: CallId },
    /// Reads the events of the session from its log, for the pager.
    ReadTranscript,
    /// Runs a subcommand of the program in the session's directory, and replies with its output.
    Program { call: CallId, arguments: Vec<String> },
    /// Makes a working tree of the session's repository, and replies with its path. Without a branch it is named by the time.
    Worktree { call: CallId, branch: Option<String>, uncommitted: Uncommitted },
    /// Starts the program again, with the session.
    Restart,
    /// Opens the draft in the user's editor.
    Edit(String),
    /// Copies text to the clipboard.
    Copy(String),
    /// Reads an image or text from the clipboard.
    ReadClipboard,
    /// Loads a file as an attachment.
    Attach(String),
    /// Writes a file below the session's directory: an export of the transcript.
    Export { path: Option<String>, format: ExportFormat },
    /// Copies the logs of the session and of the program to a directory, by default a new one in the session's directory.
    CollectLogs { call: CallId, path: Option<String> },
    /// Notifies a person whose terminal is not in focus.
    Notify(String),
    /// Adds a line to the history file.
    Remember(String),
    /// Runs the user's command for the status line, with the session's facts as JSON on its standard input.
    StatusCommand { command: String, input: Value },
    /// Keeps a setting of the terminal for later starts.
    Keep { key: &'static str, value: Value },
    /// Records that the person trusts the directory.
    Trust { remember: bool },
    /// Sets a provider and a model up.
    Login,
    /// Removes a provider that was set up.
    Logout,
    /// Answer to a question of the program itself.
    Answer(HostAnswer),
    /// Stops the process, as Ctrl+Z does.
    Suspend,
    /// Redraws everything.
    Redraw,
    /// Ends the view.
    Exit(ExitKind),
}

/// Session that a view switches to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionTarget {
    New,
    Resume(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportFormat {
    Markdown,
    Html,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExitKind {
    /// The session closes with the view.
    Close,
    /// The session continues where it runs.
    Detach,
}
