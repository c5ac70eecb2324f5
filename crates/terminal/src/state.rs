//! State of the view, and how inputs change it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hangar_transcript::Transcript;
use serde_json::Value;

use crate::agent_view::AgentView;
use crate::calls::Purpose;
use crate::commands::{self, CommandEntry};
use crate::completion::Completions;
use crate::composer::{Composer, DraftSnapshot};
use crate::dialog::Dialog;
use crate::effect::{CallId, Effect};
use crate::history::History;
use crate::input::{Input, SessionFacts};
use crate::keymap::{Keymap, PendingKeys};
use crate::overlay::Overlay;
use crate::printer::Printer;
use crate::row::Row;
use crate::screens::DiffView;
use crate::search_prompt::SearchPrompt;
use crate::shell_lines::ShellLines;
use crate::status::StatusItem;
use crate::theme::Theme;

/// Time that a transient message stays above the status line, in milliseconds.
const NOTE_TIME: u64 = 4_000;
/// Interval of the spinner, in milliseconds.
pub const SPINNER_TIME: u64 = 500;
/// Number of requests that may be pending.
const MAX_CALLS: usize = 256;
/// Time after which the first key of a sequence is dropped, in milliseconds. Its hint is on the screen that long.
const CHORD_TIME: u64 = NOTE_TIME;
/// Prompts that may wait for the session to open.
pub(crate) const MAX_UNSENT: usize = 32;

/// Settings of the view that a person may change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewOptions {
    pub vim: bool,
    pub reasoning: bool,
    /// Whether a person whose terminal is not in focus is notified of questions and ends.
    pub notify: bool,
    /// Flat text for screen readers: no redrawn tail, no decoration.
    pub screen_reader: bool,
    pub status: Vec<StatusItem>,
    /// Command that prints a part of the status line.
    pub status_command: Option<String>,
}

impl Default for ViewOptions {
    fn default() -> Self {
        Self {
            vim: false,
            reasoning: false,
            notify: true,
            screen_reader: false,
            status: StatusItem::usual(),
            status_command: None,
        }
    }
}

/// A queued message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedItem {
    /// Id at the server; `None` for a steering message.
    pub id: Option<String>,
    pub text: String,
}

/// A prompt for a session that is not open yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Unsent {
    pub(crate) text: String,
    pub(crate) attachments: Vec<Value>,
    /// The draft that it was.
    pub(crate) draft: DraftSnapshot,
}

/// Progress of printing the transcript.
#[derive(Default)]
pub(crate) struct Printed {
    pub(crate) printer: Printer,
    /// First block of the work in progress: those before it are complete.
    pub(crate) settled: usize,
    /// Rows to print before those of the transcript.
    pub(crate) pending: Vec<Row>,
}

/// Names that are completed: of commands and files.
#[derive(Default)]
pub(crate) struct KnownNames {
    /// Commands of the session alone.
    pub(crate) session_commands: Vec<CommandEntry>,
    /// Commands of the session and of the view.
    pub(crate) commands: Vec<CommandEntry>,
    /// Files of the directory, once they were listed.
    pub(crate) files: Option<Vec<String>>,
}

/// Questions that wait for an answer of the person; the first one is shown.
#[derive(Default)]
pub(crate) struct Questions {
    pub(crate) dialogs: VecDeque<Dialog>,
    /// Number of times that the dialogs have changed.
    pub(crate) serial: u64,
    /// Questions of sub-agents, which may continue after the main agent.
    pub(crate) of_agents: BTreeSet<String>,
}

/// Messages that the agent has not got yet.
#[derive(Default)]
pub(crate) struct Outbox {
    /// Messages that the server has queued.
    pub(crate) queue: Vec<QueuedItem>,
    /// Drafts of messages that were sent while the agent worked, the last ones, by their text: the server lists only that.
    pub(crate) drafts: VecDeque<(String, DraftSnapshot)>,
    /// Prompts that are sent once the session is open.
    pub(crate) unsent: VecDeque<Unsent>,
    /// Commands and shell lines that run once the session is open.
    pub(crate) deferred: Vec<String>,
}

/// Keys that were pressed, as far as the next one depends on them.
#[derive(Default)]
pub(crate) struct KeyState {
    pub(crate) map: Keymap,
    /// Keys of a sequence that is not complete.
    pub(crate) chord: PendingKeys,
    /// When the last key came.
    pub(crate) last: u64,
    /// Time until which a second press of the key quits the program.
    pub(crate) leaving_until: Option<u64>,
}

/// The turn in progress.
#[derive(Default)]
pub(crate) struct TurnInProgress {
    /// When it began.
    pub(crate) since: Option<u64>,
    /// Our last prompt until the agent answers it: it returns to the composer if the agent is stopped before.
    pub(crate) unanswered: Option<DraftSnapshot>,
    /// Whether the session has started with a prompt of ours and its agent has not answered yet.
    pub(crate) is_starting: bool,
}

/// Facts about the session so far, for commands of the view.
#[derive(Default)]
pub(crate) struct SessionRecap {
    pub(crate) cost: f64,
    /// Most that the session may cost, in credits, if a client has set it.
    pub(crate) cost_limit: Option<f64>,
    /// Last answer of the main agent, for `/copy`.
    pub(crate) last_answer: Option<String>,
    /// The last prompts, each after the id of its event.
    pub(crate) prompts: VecDeque<(String, String)>,
}

pub struct State {
    pub(crate) facts: Option<SessionFacts>,
    pub(crate) transcript: Transcript,
    pub(crate) printed: Printed,
    pub(crate) composer: Composer,
    pub(crate) history: History,
    pub(crate) search: Option<SearchPrompt>,
    pub(crate) completions: Completions,
    pub(crate) known: KnownNames,
    pub(crate) questions: Questions,
    pub(crate) overlay: Option<Overlay>,
    pub(crate) outbox: Outbox,
    pub(crate) agent_view: AgentView,
    /// Changes that the page of changes shows.
    pub(crate) diff_view: DiffView,
    /// Text that is searched for in the transcript once it is read.
    pub(crate) sought: Option<String>,
    /// Whether the draft was put away for a command, after which it comes back.
    pub(crate) is_beside: bool,
    pub(crate) shells: ShellLines,
    /// Number of shell lines that were sent.
    pub(crate) shells_sent: u64,
    pub(crate) calls: BTreeMap<CallId, Purpose>,
    next_call: u64,
    pub(crate) keys: KeyState,
    pub(crate) theme: Theme,
    /// Whether the theme follows the terminal's background.
    pub(crate) theme_follows: bool,
    pub options: ViewOptions,
    /// Line of the user's command for the status line, whether that runs, and whether the facts have changed since it began.
    pub(crate) status_text: Option<String>,
    pub(crate) status_command_runs: bool,
    pub(crate) status_is_stale: bool,
    pub(crate) note: Option<(String, u64)>,
    pub(crate) turn: TurnInProgress,
    pub(crate) told: SessionRecap,
    /// Whether the initial session is still to be picked.
    pub(crate) is_choosing: bool,
    pub(crate) is_focused: bool,
    pub(crate) lost: Option<String>,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) now: u64,
    pub(crate) effects: Vec<Effect>,
}

impl State {
    pub fn new(columns: usize, rows: usize, now: u64) -> Self {
        Self {
            facts: None,
            transcript: Transcript::new(),
            printed: Printed::default(),
            composer: Composer::new(),
            history: History::default(),
            search: None,
            completions: Completions::default(),
            known: KnownNames { commands: commands::entries(&[]), ..KnownNames::default() },
            questions: Questions::default(),
            overlay: None,
            outbox: Outbox::default(),
            agent_view: AgentView::default(),
            diff_view: DiffView::default(),
            sought: None,
            is_beside: false,
            shells: ShellLines::default(),
            shells_sent: 0,
            calls: BTreeMap::new(),
            next_call: 0,
            keys: KeyState::default(),
            theme: Theme::ansi(),
            theme_follows: false,
            options: ViewOptions::default(),
            status_text: None,
            status_command_runs: false,
            status_is_stale: false,
            note: None,
            turn: TurnInProgress::default(),
            told: SessionRecap::default(),
            is_choosing: false,
            is_focused: true,
            lost: None,
            columns: columns.max(1),
            rows: rows.max(1),
            now,
            effects: Vec::new(),
        }
    }

    #[must_use]
    pub fn with_theme(mut self, theme: Theme, follows_background: bool) -> Self {
        self.theme = theme;
        self.theme_follows = follows_background;
        self
    }

    #[must_use]
    pub fn with_keymap(mut self, keymap: Keymap) -> Self {
        self.keys.map = keymap;
        self
    }

    /// Takes the history of prompts, which is read after the first screen.
    pub fn set_history(&mut self, history: History) {
        self.history = history;
    }

    #[must_use]
    pub fn with_options(mut self, options: ViewOptions) -> Self {
        self.composer.set_vim(options.vim);
        self.options = options;
        self
    }

    /// Applies one input and returns the effects. `now` is a monotonic clock in milliseconds.
    pub fn update(&mut self, input: Input, now: u64) -> Vec<Effect> {
        self.now = self.now.max(now);
        self.forget_what_passed();
        match input {
            Input::Key(key) => self.take_key(key),
            Input::Paste(text) => self.take_paste(&text),
            Input::Line(line) => self.take_line(&line),
            Input::Resize { columns, rows } => self.resize(columns, rows),
            Input::Focus(focused) => self.is_focused = focused,
            Input::Tick => {}
            Input::Event(event) => self.take_event(&event),
            Input::History { events, older, is_live } => self.take_history(&events, older, is_live),
            Input::Transcript { events, older } => self.show_transcript(&events, older),
            Input::Ready(facts) => self.ready(facts),
            Input::Moved { directory, branch } => self.moved(directory, branch),
            Input::Closed => self.close_session(),
            Input::Prompt(text) => self.submit_prompt(&text, Vec::new(), false),
            Input::Lost(reason) => self.lose(reason),
            Input::Reply { call, result } => self.take_reply(call, result),
            Input::Files(files) => {
                self.known.files = Some(files);
                self.complete();
            }
            Input::Edited(Ok(text)) => self.composer.set(text.trim_end_matches('\n')),
            Input::Edited(Err(reason)) | Input::Told(reason) => self.say(reason),
            Input::Printed(text) => self.print_text(&text),
            Input::StatusText(text) => self.take_status_text(text),
            Input::Ask(question) => self.ask_host(question),
            Input::Attached(Ok(attachment)) => self.attach(attachment),
            Input::Attached(Err(reason)) => self.say(reason),
            Input::Background { red, green, blue } if self.theme_follows => {
                self.theme = Theme::for_background(red, green, blue);
            }
            Input::Background { .. } => {}
        }
        if self.search.is_some() {
            self.completions.close();
        }
        self.completions.drop_stale(&self.composer);
        std::mem::take(&mut self.effects)
    }

    /// Whether the terminal is asked to report its focus: only while the agent works, since only then a notification depends on it.
    /// A program that is killed leaves the reports on.
    pub fn watches_focus(&self) -> bool {
        self.options.notify && self.is_working()
    }

    fn resize(&mut self, columns: usize, rows: usize) {
        let before = self.rows;
        (self.columns, self.rows) = (columns.max(1), rows.max(1));
        if let Some(Overlay::Pager(pager)) = &mut self.overlay {
            pager.resize(self.columns, before, self.rows);
        }
        self.lay_out_dialog();
    }

    /// Rows of the open dialog once it takes answers, with a number that changes when another one opens.
    pub fn dialog_rows(&self) -> Option<(u64, Vec<Row>)> {
        let dialog = self.questions.dialogs.front().filter(|dialog| dialog.due().is_none())?;
        let rows = match dialog {
            Dialog::Host(dialog) => dialog.plain(&self.theme),
            Dialog::Choice(dialog) => dialog.plain(&self.theme),
            Dialog::Form(dialog) => dialog.plain(&self.theme),
        };
        Some((self.questions.serial, rows))
    }

    /// Whether the text that is being typed must not be shown.
    pub fn is_hidden(&self) -> bool {
        matches!(self.questions.dialogs.front(), Some(Dialog::Host(dialog)) if dialog.is_hidden())
    }

    /// Lines of the open picker once its items are there, for a terminal that only prints.
    pub fn picker_lines(&self) -> Option<Vec<String>> {
        match &self.overlay {
            Some(Overlay::Picker(picker)) => picker.lines(),
            Some(Overlay::Pager(_)) | None => None,
        }
    }

    /// Fits the first dialog to the screen, after the dialogs or the size have changed.
    pub(crate) fn lay_out_dialog(&mut self) {
        self.questions.serial += 1;
        if let Some(dialog) = self.questions.dialogs.front_mut() {
            dialog.layout(self.columns, self.rows.saturating_sub(1), &self.theme);
        }
    }

    fn forget_what_passed(&mut self) {
        self.note.take_if(|(_, until)| *until <= self.now);
        if let Some(dialog) = self.questions.dialogs.front_mut() {
            dialog.pass_time(self.now);
        }
        let stays = self.keys.leaving_until.take_if(|until| *until <= self.now).is_none();
        if !stays || self.now.saturating_sub(self.keys.last) >= CHORD_TIME {
            self.keys.chord.clear();
        }
    }

    /// Time at which the view changes without any input. The loop sends a tick then.
    pub fn due(&self) -> Option<u64> {
        let spinner =
            (self.is_working() || self.runs_shell()).then(|| (self.now / SPINNER_TIME + 1) * SPINNER_TIME);
        let note = self.note.as_ref().map(|(_, until)| *until);
        let dialog = self.questions.dialogs.front().and_then(Dialog::due);
        [spinner, note, dialog, self.keys.leaving_until].into_iter().flatten().min()
    }

    /// Whether the agent is working.
    pub fn is_working(&self) -> bool {
        self.lost.is_none() && (self.turn.is_starting || self.transcript.is_working())
    }

    /// Shows a transient message above the status line.
    pub(crate) fn say(&mut self, text: impl Into<String>) {
        self.note = Some((text.into(), self.now + NOTE_TIME));
    }

    pub(crate) fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }

    /// Id for a pending answer. `None` if too many are pending.
    pub(crate) fn expect(&mut self, purpose: Purpose) -> Option<CallId> {
        if self.calls.len() >= MAX_CALLS {
            self.say("the session does not answer; wait a moment");
            return None;
        }
        let call = CallId(self.next_call);
        self.next_call += 1;
        self.calls.insert(call, purpose);
        Some(call)
    }

    /// Sends a request to the session.
    pub(crate) fn call(&mut self, method: &'static str, params: Value, purpose: Purpose) {
        if let Some(call) = self.expect(purpose) {
            self.effect(Effect::Call { call, method, params });
        }
    }

    /// Facts of the session, once it is open.
    pub fn session(&self) -> Option<&SessionFacts> {
        self.facts.as_ref()
    }

    pub fn theme(&self) -> &Theme {
        &self.theme
    }

    /// Whether the session has any message.
    pub fn has_content(&self) -> bool {
        !self.told.prompts.is_empty()
    }

    /// The draft as a line of the history file, for a view that ends before it was sent.
    pub fn unsent_line(&mut self) -> Option<String> {
        let draft = self.composer.snapshot();
        self.history.push(&draft).map(crate::history::HistoryEntry::to_line)
    }
}

#[cfg(test)]
mod tests;
