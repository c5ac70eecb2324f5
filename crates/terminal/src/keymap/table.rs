//! Actions with their names and default keys.

use super::{Action, When};
use crate::composer::Edit;

/// Action in one situation.
pub(super) struct KeymapEntry {
    pub(super) action: Action,
    /// Name in a user's file.
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) when: When,
    pub(super) keys: &'static [&'static str],
}

const fn entry(
    action: Action,
    name: &'static str,
    about: &'static str,
    when: When,
    keys: &'static [&'static str],
) -> KeymapEntry {
    KeymapEntry { action, name, about, when, keys }
}

const fn always(
    action: Action,
    name: &'static str,
    about: &'static str,
    keys: &'static [&'static str],
) -> KeymapEntry {
    entry(action, name, about, When::Always, keys)
}

const fn empty(
    action: Action,
    name: &'static str,
    about: &'static str,
    keys: &'static [&'static str],
) -> KeymapEntry {
    entry(action, name, about, When::Empty, keys)
}

const fn completing(
    action: Action,
    name: &'static str,
    about: &'static str,
    keys: &'static [&'static str],
) -> KeymapEntry {
    entry(action, name, about, When::Completing, keys)
}

const fn edit(
    edit: Edit,
    name: &'static str,
    about: &'static str,
    keys: &'static [&'static str],
) -> KeymapEntry {
    entry(Action::Edit(edit), name, about, When::Always, keys)
}

/// All actions, in the order of the help screen.
pub(super) const ACTIONS: &[KeymapEntry] = &[
    always(Action::Send, "send", "send the prompt, or steer while the agent works", &["enter"]),
    always(Action::Queue, "queue", "send the prompt when the agent is done", &["ctrl+q", "ctrl+enter"]),
    // A legacy terminal sends ctrl+j for a line feed, also where shift+enter is set up to send one.
    edit(Edit::Newline, "newline", "new line", &["shift+enter", "alt+enter", "ctrl+j"]),
    always(Action::Mode, "mode", "next mode: interactive, plan, autopilot", &["shift+tab"]),
    always(Action::Cancel, "cancel", "close or cancel", &["esc"]),
    always(Action::Interrupt, "interrupt", "stop the agent, or rewind", &["esc esc"]),
    always(Action::Clear, "clear", "clear the prompt, or cancel", &["ctrl+c"]),
    always(Action::Exit, "exit", "exit", &["ctrl+c ctrl+c"]),
    empty(Action::Exit, "exit-empty", "exit", &["ctrl+d"]),
    always(Action::Suspend, "suspend", "suspend to the shell", &["ctrl+z"]),
    always(Action::Redraw, "redraw", "draw the screen again", &["ctrl+l"]),
    always(Action::Stash, "stash", "put the draft away, or bring it back", &["ctrl+s"]),
    always(Action::Editor, "editor", "edit the prompt in $EDITOR", &["ctrl+g", "ctrl+x e", "ctrl+x ctrl+e"]),
    always(Action::HistorySearch, "history-search", "search the history", &["ctrl+r"]),
    always(Action::HistoryPrev, "history-prev", "older prompt", &["ctrl+p"]),
    always(Action::HistoryNext, "history-next", "newer prompt", &["ctrl+n"]),
    always(Action::PasteAttachment, "paste-attachment", "paste an image or a file", &["ctrl+v", "alt+v"]),
    always(Action::ExpandRecent, "expand-recent", "expand what is folded, recent", &["ctrl+o"]),
    empty(Action::ExpandAll, "expand-all", "expand what is folded, all", &["ctrl+e"]),
    always(Action::Reasoning, "reasoning", "show or hide reasoning", &["ctrl+t"]),
    empty(Action::Search, "search", "search the transcript", &["ctrl+f"]),
    always(Action::PageUp, "page-up", "the transcript, at its end", &["pageup"]),
    always(Action::PageDown, "page-down", "nothing: the terminal scrolls what is printed", &["pagedown"]),
    empty(Action::Sidebar, "sidebar", "tasks and sub-agents", &["left"]),
    empty(Action::NextTab, "next-tab", "tasks and sub-agents", &["tab"]),
    empty(Action::Help, "help", "help", &["?"]),
    always(Action::Help, "help-always", "help", &["f1"]),
    always(Action::Complete, "complete", "complete the word", &["tab"]),
    completing(Action::AcceptCompletion, "accept-completion", "accept", &["tab", "ctrl+y"]),
    completing(Action::SubmitCompletion, "submit-completion", "accept, and send a command", &["enter"]),
    completing(Action::CompletionPrev, "completion-prev", "one up", &["up", "ctrl+p", "shift+tab"]),
    completing(Action::CompletionNext, "completion-next", "one down", &["down", "ctrl+n"]),
    completing(Action::CloseCompletion, "close-completion", "close", &["esc"]),
    always(Action::CommandBeside, "command-beside", "run a command beside the draft", &["ctrl+x /"]),
    always(Action::Background, "background", "move the running task to the background", &["ctrl+x b"]),
    always(Action::Goal, "goal", "set a goal for the autopilot", &["ctrl+x g"]),
    always(Action::Hide, "hide", "no: there is no panel beside the conversation", &["ctrl+x h"]),
    always(
        Action::OpenLink,
        "open-link",
        "no: the terminal opens links, Hangar starts no browser",
        &["ctrl+x o"],
    ),
    always(Action::Voice, "voice", "no: there is no voice input", &["ctrl+x v"]),
    always(Action::Close, "close", "no: there is no panel beside the conversation", &["ctrl+x x"]),
    edit(Edit::Left, "left", "left", &["left", "ctrl+b"]),
    edit(Edit::Right, "right", "right", &["right", "ctrl+f"]),
    edit(Edit::Up, "up", "up; above the first row queued prompts, then the history", &["up"]),
    edit(Edit::Down, "down", "down; below the last row newer prompts", &["down"]),
    edit(Edit::WordLeft, "word-left", "a word left", &["alt+b", "alt+left", "ctrl+left"]),
    edit(Edit::WordRight, "word-right", "a word right", &["alt+f", "alt+right", "ctrl+right"]),
    edit(Edit::LineStart, "line-start", "start of the line", &["ctrl+a", "home"]),
    edit(Edit::LineEnd, "line-end", "end of the line", &["ctrl+e", "end"]),
    edit(Edit::TextStart, "text-start", "start of the text", &["ctrl+home", "alt+up", "alt+<"]),
    edit(Edit::TextEnd, "text-end", "end of the text", &["ctrl+end", "alt+down", "alt+>"]),
    edit(Edit::Backspace, "backspace", "delete to the left", &["backspace", "ctrl+h", "shift+backspace"]),
    edit(Edit::Delete, "delete", "delete to the right", &["delete", "ctrl+d"]),
    edit(Edit::KillBlankLeft, "kill-blank-left", "kill back to a blank", &["ctrl+w"]),
    edit(
        Edit::KillWordLeft,
        "kill-word-left",
        "kill the word to the left",
        &["alt+backspace", "ctrl+backspace"],
    ),
    edit(
        Edit::KillWordRight,
        "kill-word-right",
        "kill the word to the right",
        &["alt+d", "alt+delete", "ctrl+delete"],
    ),
    edit(Edit::KillLineStart, "kill-line-start", "kill to the start of the line", &["ctrl+u"]),
    edit(Edit::KillLineEnd, "kill-line-end", "kill to the end of the line", &["ctrl+k"]),
    edit(Edit::Yank, "yank", "insert what was killed", &["ctrl+y"]),
    edit(Edit::YankOlder, "yank-older", "insert an older kill instead", &["alt+y"]),
    // A legacy terminal sends one byte for ctrl with `_`, `-`, `/` and 7.
    edit(Edit::Undo, "undo", "undo", &["ctrl+_", "ctrl+-", "ctrl+/", "ctrl+7"]),
    edit(Edit::Redo, "redo", "redo", &["alt+_", "alt+-", "ctrl+shift+z"]),
];
