//! Output of a headless run: JSONL or text on stdout, remarks on stderr.

use parking_lot::Mutex;
use std::io::{self, Write};
use std::sync::Arc;

use hangar_agent::driver::EventSink;
use hangar_agent::session::{OUTPUT_LIMIT, iso};
use hangar_protocol::data::{Mode, ToolRequest};
use hangar_protocol::result::{ResultKind, RunResult, RunUsage};
use hangar_protocol::{Body, Event, EventKind, Totals};

use crate::args::OutputFormat;
use crate::exit::Exit;
use crate::prose::Prose;

/// Facts about the printed events for the caller.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Totals of the run.
    pub(crate) totals: Totals,
    /// Whether a hook refused a prompt.
    pub(crate) refused: bool,
    /// Whether the reader of stdout is gone.
    broken_pipe: bool,
    /// Error of writing to stdout, other than a missing reader.
    unwritable: Option<String>,
}

impl Seen {
    /// Whether the output has no reader.
    pub(crate) fn is_unheard(&self) -> bool {
        self.broken_pipe || self.unwritable.is_some()
    }
}

#[derive(Clone, Default)]
pub(crate) struct SeenHandle(Arc<Mutex<Seen>>);

impl SeenHandle {
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Seen) -> T) -> T {
        look(&mut self.0.lock())
    }
}

pub(crate) struct OutputPrinter {
    format: OutputFormat,
    silent: bool,
    all_events: bool,
    /// Whether the first events of a session are shown.
    beginning: bool,
    prose: Prose,
    seen: SeenHandle,
}

impl OutputPrinter {
    pub(crate) fn new(format: OutputFormat, silent: bool, all_events: bool, seen: SeenHandle) -> Self {
        Self { format, silent, all_events, beginning: false, prose: Prose::default(), seen }
    }

    /// The same printer, which also shows `session.start` and `session.resume`. Drivers of Copilot CLI do not see these events;
    /// with them the first line has the id of the session.
    pub(crate) fn with_beginning(self) -> Self {
        Self { beginning: true, ..self }
    }

    fn note(&self, event: &Event) {
        self.seen.with(|seen| seen.totals.apply(event));
        self.seen.with(|seen| match event.body() {
            Body::SessionWarning(warning)
                if event.agent_id().is_none() && warning.warning_type == "policy_blocked" =>
            {
                seen.refused = true;
            }
            _ => {}
        });
    }

    fn print(&mut self, text: &[u8]) {
        if text.is_empty() {
            return;
        }
        let mut stdout = io::stdout().lock();
        if let Err(error) = stdout.write_all(text).and_then(|()| stdout.flush()) {
            self.seen.with(|seen| match error.kind() {
                // A reader that went away is a normal end, not a failure of ours.
                io::ErrorKind::BrokenPipe => seen.broken_pipe = true,
                _ => drop(seen.unwritable.get_or_insert_with(|| error.to_string())),
            });
        }
    }

    /// Exit code of the program: a failed write is reported once and is a failure.
    pub(crate) fn exit(&self, exit: Exit) -> Exit {
        match self.seen.with(|seen| seen.unwritable.take()) {
            None => exit,
            Some(why) => {
                remark(&format!("error: standard output cannot be written: {why}"));
                Exit::Failed
            }
        }
    }

    fn print_json(&mut self, value: &impl serde::Serialize) {
        if let Ok(mut line) = serde_json::to_vec(value) {
            line.push(b'\n');
            self.print(&line);
        }
    }

    fn print_text(&mut self, event: &Event) {
        let ours = event.agent_id().is_none();
        let mut out = String::new();
        match event.body() {
            Body::MessageDelta(delta) if ours => {
                out = self.prose.piece(&delta.message_id, &delta.delta_content);
            }
            Body::AssistantMessage(message) if ours => {
                out = self.prose.whole(&message.content);
                if !self.silent {
                    for request in &message.tool_requests {
                        out.push_str(&self.prose.aside(&format!("\u{25cf} {}", describe(request))));
                    }
                }
            }
            // Only an abandoned answer is still open here: its call failed for good, or was aborted.
            Body::TurnEnd(_) if ours => out = self.prose.end(),
            Body::ToolComplete(complete) if !self.silent => {
                if let Some(error) = &complete.error {
                    let first = error.message.lines().next().unwrap_or_default();
                    out = self.prose.aside(&format!("  \u{2514} {first}"));
                }
            }
            Body::SessionInfo(info) if ours && !self.silent && info.info_type == "model_retry" => {
                out = self.prose.again(&format!("\u{25cf} {}", info.message));
            }
            Body::SessionInfo(info) if ours && !self.silent && info.info_type == "model_adapted" => {
                remark(&info.message);
            }
            // The answer of a slash command.
            Body::SessionInfo(info) if ours && info.info_type == "command" => {
                out = self.prose.aside(&info.message);
            }
            Body::SessionError(error) => remark(&format!("\n{}\n", error.message)),
            Body::SessionWarning(warning) if !self.silent => remark(&warning.message),
            Body::ModeNoticeDelivered(notice) if !self.silent && notice.mode == Mode::Plan => {
                remark("Plan mode: nothing outside the session folder is changed.");
            }
            _ => {}
        }
        self.print(out.as_bytes());
    }

    /// The last line of a JSON run.
    pub(crate) fn result(&mut self, result: &RunResult) {
        if self.format == OutputFormat::Json {
            self.print_json(result);
        }
    }
}

impl EventSink for OutputPrinter {
    fn publish(&mut self, event: &Event) {
        self.note(event);
        match self.format {
            OutputFormat::Json => {
                let begins = self.beginning && is_beginning(event);
                if self.all_events || begins || is_shown(event) {
                    self.print_json(event);
                }
                // A person who typed a slash command reads stderr too.
                if let Body::SessionError(error) = event.body()
                    && error.error_type == "command"
                {
                    remark(&error.message);
                }
            }
            OutputFormat::Text => self.print_text(event),
        }
    }
}

/// Whether a command line that could not be parsed asks for JSON.
pub(crate) fn typed_json(words: impl Iterator<Item = std::ffi::OsString>) -> bool {
    let words: Vec<String> = words.map(|word| word.to_string_lossy().into_owned()).collect();
    words.iter().any(|word| word == "--output-format=json")
        || words.windows(2).any(|pair| pair[0] == "--output-format" && pair[1] == "json")
}

/// Prints the `result` of a run that never began. Readers of JSON wait for that line in any case.
pub(crate) fn result_of_nothing(exit: Exit) {
    let result = RunResult {
        kind: ResultKind::Result,
        timestamp: iso(jiff::Timestamp::now()),
        session_id: String::new(),
        exit_code: exit.code(),
        usage: RunUsage::default(),
    };
    let mut printer = OutputPrinter::new(OutputFormat::Json, true, false, SeenHandle::default());
    printer.result(&result);
    printer.exit(exit);
}

/// A line for people, on stderr.
pub(crate) fn remark(text: &str) {
    // A missing stderr cannot be reported, and nothing depends on it.
    let _ = writeln!(io::stderr().lock(), "{text}");
}

fn is_beginning(event: &Event) -> bool {
    event.agent_id().is_none() && matches!(event.body(), Body::SessionStart(_) | Body::SessionResume(_))
}

/// Events that drivers of Copilot CLI see on its stdout. The others are in the log only.
fn is_shown(event: &Event) -> bool {
    let Some(kind) = event.event_kind() else { return true };
    // The role of the session itself is chosen before the first listener is there.
    let own_role = kind == EventKind::SubagentSelected && event.agent_id().is_none();
    // The reference does not show that it asks a model to continue.
    let goes_on =
        matches!(event.body(), Body::UserMessage(message) if message.source.as_deref() == Some(OUTPUT_LIMIT));
    !own_role
        && !goes_on
        && !matches!(
            kind,
            EventKind::SessionStart
                | EventKind::SessionResume
                | EventKind::SessionShutdown
                | EventKind::Handoff
                | EventKind::SessionIdle
                | EventKind::ModelChange
                | EventKind::ModeChanged
                | EventKind::PermissionsChanged
                | EventKind::UsageRecord
                | EventKind::ModelItems
                | EventKind::AnswerCut
                | EventKind::Reservation
                | EventKind::Forked
                | EventKind::ToolsOffered
                | EventKind::UsageInfo
                | EventKind::Truncation
                | EventKind::CompactionStart
                | EventKind::CompactionComplete
                | EventKind::PlanAndTodos
                | EventKind::ImagesWithheld
                | EventKind::ReasoningWithheld
                | EventKind::AssistantUsage
                | EventKind::PendingMessagesModified
                | EventKind::PermissionRequested
                | EventKind::PermissionCompleted
                | EventKind::UserInputRequested
                | EventKind::UserInputCompleted
                | EventKind::SystemMessage
                | EventKind::HookStart
                | EventKind::HookEnd
                | EventKind::SkillInvoked
                | EventKind::SkillContextDelivered
        )
}

fn describe(request: &ToolRequest) -> String {
    let argument = |name: &str| request.arguments.get(name).and_then(serde_json::Value::as_str);
    let what = argument("description")
        .or_else(|| argument("path"))
        .or_else(|| argument("pattern"))
        .or_else(|| argument("url"))
        .or_else(|| argument("summary"));
    match what {
        Some(what) => format!("{}: {}", request.name, what.lines().next().unwrap_or_default()),
        None => request.name.clone(),
    }
}
