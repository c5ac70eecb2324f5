//! Answers of the session to requests of the view.

use serde_json::{Value, json};

use crate::commands;
use crate::effect::{CallId, Effect, SessionTarget};
use crate::overlay::{Overlay, Pager, PickItem, Picker};
use crate::program::Reload;
use crate::row::Row;
use crate::screens;
use crate::state::{QueuedItem, State};

/// Purpose of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Purpose {
    /// Only an error is shown.
    Nothing,
    Commands,
    Queue,
    /// A slash command of the session; the text is shown if it is a prompt.
    Command,
    /// What fills the model's window.
    ContextInfo,
    /// The same in words, which do not tell the window.
    Context,
    /// The running task is moved to the background.
    Background,
    /// A prompt, which goes back to the composer if it is refused.
    Prompt(String),
    /// A shell line, by the id of its request.
    Shell(String),
    Models,
    Agents,
    Sessions,
    RewindPoints,
    /// Preview of going back to an event, with the prompt there.
    RewindPreview {
        event_id: String,
        prompt: String,
    },
    Rewound(String),
    Tasks,
    Diff,
    Hooks,
    Usage,
    Plugins,
    Aside,
    /// A prompt to be rewritten, as it was typed.
    Refine(String),
    /// The limit of the session's cost, as a sentence.
    Limit(String),
    /// Output of a command in the background.
    CommandOutput,
    /// A prompt that the session is to send itself.
    Scheduled,
    Schedules,
    /// The same of a session that was opened again.
    ResumedSchedules,
    ScheduleStopped,
    Logs,
    McpLogin,
    Program(Reload),
    Fork,
    Extensions,
    /// Extensions were switched or loaded again; then they are listed.
    ExtensionsChanged,
    /// A working tree, and the task for it.
    Worktree {
        task: Option<String>,
    },
    /// The session moves to its new working tree.
    Entered {
        task: Option<String>,
    },
    /// A list that is shown as text under a title.
    Text(&'static str),
}

impl State {
    pub(crate) fn take_reply(&mut self, call: CallId, result: Result<Value, String>) {
        let Some(purpose) = self.calls.remove(&call) else { return };
        match result {
            Ok(answer) => self.take_answer(purpose, &answer),
            Err(reason) => self.take_refusal(purpose, reason),
        }
    }

    fn take_refusal(&mut self, purpose: Purpose, reason: String) {
        match purpose {
            // Typed text is never lost.
            Purpose::Prompt(text) | Purpose::Refine(text) if self.composer.is_empty() => {
                self.composer.set(&text);
            }
            Purpose::Models if self.overlay.is_some() => {
                let picker = screens::unlisted_models(&reason, self.model_and_effort());
                return self.pick(picker);
            }
            Purpose::Agents
            | Purpose::Sessions
            | Purpose::RewindPoints
            | Purpose::RewindPreview { .. }
            | Purpose::Tasks => {
                if let Some(Overlay::Picker(picker)) = &mut self.overlay {
                    picker.say(reason);
                    return;
                }
            }
            Purpose::Worktree { task: Some(text) } | Purpose::Entered { task: Some(text) }
                if self.composer.is_empty() =>
            {
                self.composer.set(&text);
            }
            Purpose::Extensions | Purpose::ExtensionsChanged => return self.extensions_refused(&reason),
            Purpose::Commands => self.run_deferred(),
            Purpose::ContextInfo => return self.tell_context(),
            // Sessions of other programs have none.
            Purpose::ResumedSchedules => return,
            _ => {}
        }
        self.print_error(&reason);
    }

    fn take_answer(&mut self, purpose: Purpose, answer: &Value) {
        match purpose {
            // An agent in another process may take a while to start, and can be stopped meanwhile.
            Purpose::Prompt(_) if answer["started"] == true => {
                self.turn.is_starting = true;
                self.turn.since.get_or_insert(self.now);
            }
            Purpose::Nothing | Purpose::Prompt(_) | Purpose::Shell(_) => {}
            Purpose::Commands => {
                self.known.session_commands = commands::listed(answer);
                self.known.commands = commands::entries(&self.known.session_commands);
                self.run_deferred();
            }
            Purpose::Queue => self.outbox.queue = queued(answer),
            Purpose::Command => self.command_replied(answer),
            Purpose::ContextInfo => self.show_context(answer),
            Purpose::Background if answer["task"].is_null() => {
                self.say("no task is running that could be moved to the background");
            }
            Purpose::Background => self.say("it goes on in the background; /tasks lists it"),
            Purpose::Context => {
                self.command_replied(answer);
                self.print_window();
            }
            Purpose::Models => self.pick(screens::models(answer, self.model_and_effort())),
            Purpose::Agents => self.pick(screens::agents(answer)),
            Purpose::Sessions => self.pick(screens::sessions(answer)),
            Purpose::RewindPoints => self.pick(screens::rewind_points(answer)),
            Purpose::RewindPreview { event_id, prompt } => {
                self.pick(screens::rewind_modes(answer, &event_id, &prompt));
            }
            Purpose::Rewound(prompt) => self.rewound(answer, &prompt),
            Purpose::Tasks => self.pick(screens::tasks(answer)),
            Purpose::Diff => {
                let page = screens::diff(answer, &self.theme);
                self.page(&screens::diff_title(answer, self.diff_view), page.rows);
                if let Some(Overlay::Pager(pager)) = self.overlay.take() {
                    let pager = pager.with_keys(screens::DIFF_KEYS);
                    let is_empty = page.places.is_empty();
                    let pager = if is_empty { pager } else { pager.with_places(page.places, page.files) };
                    self.overlay = Some(Overlay::Pager(Box::new(pager)));
                }
            }
            Purpose::Hooks => {
                let rows = screens::hooks(answer, &self.theme);
                self.page("Hooks", rows);
            }
            Purpose::Usage => {
                let text = screens::usage(answer, self.told.cost);
                self.print_text(&text);
            }
            Purpose::Plugins => {
                let text = screens::plugins(answer);
                self.print_text(&text);
            }
            Purpose::Aside => {
                let text = aside(answer).unwrap_or("no answer").to_owned();
                self.print_markdown(&text);
            }
            Purpose::Refine(typed) => self.refined(answer, &typed),
            Purpose::Limit(sentence) => self.print_text(&sentence),
            Purpose::CommandOutput => self.show_command_output(answer),
            Purpose::Scheduled => self.take_scheduled(answer),
            Purpose::Schedules => self.take_schedules(answer),
            Purpose::ResumedSchedules => self.take_resumed_schedules(answer),
            Purpose::ScheduleStopped => self.take_stopped_schedule(answer),
            Purpose::Logs => {
                let path = answer["path"].as_str().unwrap_or_default().to_owned();
                self.print_text(&format!(
                    "The logs are in {path}; look through them before you send them to anybody."
                ));
            }
            Purpose::McpLogin => match answer["authorizationUrl"].as_str().map(str::to_owned) {
                Some(url) => {
                    self.print_text("Open this address in a browser to log in:");
                    self.print_output(&url);
                }
                None => self.print_text("The server is logged in to."),
            },
            Purpose::Program(reload) => self.program_ended(answer, reload),
            Purpose::Fork => {
                if let Some(id) = answer["sessionId"].as_str() {
                    self.effect(Effect::Open(SessionTarget::Resume(id.to_owned())));
                }
            }
            Purpose::Extensions => self.show_extensions(answer),
            Purpose::ExtensionsChanged => self.list_extensions(),
            Purpose::Worktree { task } => self.enter_worktree(answer, task),
            Purpose::Entered { task } => self.entered_worktree(task),
            Purpose::Text(title) => {
                let rows = screens::document(answer);
                self.page(title, rows);
            }
        }
    }

    /// Shows a picker in place of the one that is being filled.
    fn pick(&mut self, picker: Picker) {
        // A picker that was closed meanwhile stays closed.
        if matches!(&self.overlay, Some(Overlay::Picker(open)) if open.title() == picker.title()) {
            self.overlay = Some(Overlay::Picker(Box::new(picker)));
        }
    }

    /// Whether the session is being opened: its capabilities are unknown yet.
    pub(crate) fn is_opening(&self) -> bool {
        let asks = self.calls.values().any(|purpose| *purpose == Purpose::Commands);
        self.lost.is_none() && (self.facts.is_none() || asks)
    }

    /// Opens the pager, or prints its rows where nothing can be opened.
    pub(crate) fn page(&mut self, title: &str, rows: Vec<Row>) {
        if self.options.screen_reader {
            return self.print(rows);
        }
        self.overlay = Some(Overlay::Pager(Box::new(Pager::new(title, rows, self.columns))));
    }

    pub(crate) fn load(&mut self, title: &str) {
        self.overlay = Some(Overlay::Picker(Box::new(Picker::loading(title))));
    }

    pub(crate) fn model_and_effort(&self) -> (Option<&str>, Option<&str>) {
        let facts = self.facts.as_ref();
        let model = self.transcript.model().or_else(|| facts.and_then(|facts| facts.model.as_deref()));
        let effort = self.transcript.effort().or_else(|| facts.and_then(|facts| facts.effort.as_deref()));
        (model, effort)
    }

    /// Shows the result of a slash command of the session.
    fn command_replied(&mut self, answer: &Value) {
        if let Some(mode) = answer["mode"].as_str() {
            self.set_mode(mode);
        }
        match answer["kind"].as_str() {
            Some("text") => {
                let text = answer["text"].as_str().unwrap_or_default().to_owned();
                match answer["markdown"].as_bool() {
                    Some(true) => self.print_markdown(&text),
                    _ => self.print_text(&text),
                }
            }
            Some("agent-prompt") => {
                let prompt = answer["prompt"].as_str().unwrap_or_default();
                let mut params = json!({ "prompt": prompt, "displayPrompt": answer["displayPrompt"] });
                if let Some(mode) = answer["mode"].as_str() {
                    params["agentMode"] = json!(mode);
                }
                self.call("session.send", params, Purpose::Nothing);
            }
            _ => {
                if let Some(message) = answer["message"].as_str() {
                    let message = message.to_owned();
                    self.print_text(&message);
                }
            }
        }
    }

    /// Tells the size of the model's window, which is known once the model was called.
    fn print_window(&mut self) {
        if let Some(used) = self.transcript.context() {
            let (tokens, limit) = (crate::format::tokens(used.tokens), crate::format::tokens(used.limit));
            let percent = used.tokens.saturating_mul(100) / used.limit.max(1);
            self.print_text(&format!(
                "The window has {limit} tokens; the last request used {tokens} ({percent}%)."
            ));
        }
    }

    fn rewound(&mut self, answer: &Value, prompt: &str) {
        let outcome = answer["outcome"].as_str().unwrap_or_default();
        if let Some(error) = answer["error"].as_str() {
            let error = error.to_owned();
            self.print_error(&error);
        }
        match outcome {
            "success" => {
                if self.composer.is_empty() {
                    self.composer.set(prompt);
                }
                let files = answer["restoredFiles"].as_array().map_or(0, Vec::len);
                match files {
                    0 => {}
                    1 => self.print_text("1 file is as it was before that prompt."),
                    files => self.print_text(&format!("{files} files are as they were before that prompt.")),
                }
                for left in screens::left_files(answer) {
                    self.print_warning(&left);
                }
            }
            "session-busy" => self.say("the agent works; stop it with esc esc first"),
            "file-change-tracking-disabled" => self.say("changes of files were not recorded in this session"),
            _ => {}
        }
    }
}

/// Text of the answer to `session.ui.ephemeralQuery`.
pub(crate) fn aside(answer: &Value) -> Option<&str> {
    answer["response"].as_str().or_else(|| answer["answer"].as_str())
}

/// Queued messages, from the answer to `session.queue.pendingItems`.
fn queued(answer: &Value) -> Vec<QueuedItem> {
    let steering = answer["steeringMessages"].as_array().into_iter().flatten();
    let steering =
        steering.map(|text| QueuedItem { id: None, text: text.as_str().unwrap_or_default().to_owned() });
    let items = answer["items"].as_array().into_iter().flatten().map(|item| QueuedItem {
        id: item["id"].as_str().map(str::to_owned),
        text: item["displayText"].as_str().unwrap_or_default().to_owned(),
    });
    steering.chain(items).collect()
}

/// An item for a picker, from texts.
pub(crate) fn item(id: &str, label: impl Into<String>, detail: impl Into<String>) -> PickItem {
    PickItem { id: id.to_owned(), label: label.into(), detail: detail.into(), ..PickItem::default() }
}
