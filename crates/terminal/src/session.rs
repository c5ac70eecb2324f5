//! The session as the view sees it: its events, its questions, its opening and its loss.

use hangar_protocol::data::WorkingDirectory;
use hangar_protocol::{Body, Event, EventKind};
use hangar_transcript::AskKind;
use serde_json::{Value, json};

use crate::blocks::{self, Detail, Rendering};
use crate::calls::Purpose;
use crate::completion::Completions;
use crate::composer::{AttachmentKind, DraftPiece, DraftSnapshot};
use crate::dialog::{self, Dialog, FormDialog, HostDialog, HostQuestion};
use crate::effect::Effect;
use crate::input::{AttachedFile, SessionFacts};
use crate::row::{Row, Style};
use crate::shell_lines::ShellLines;
use crate::state::{SessionRecap, State, TurnInProgress};

/// Number of past events whose rows are printed when a session is reopened.
const SHOWN_BLOCKS: usize = 40;
/// Prompts whose texts are kept, to be edited after a rewind.
const MAX_PROMPTS: usize = 500;

/// Said of a session whose process was killed while the agent worked.
const CUT_OFF: &str = "The answer to the last prompt was cut off: the program ended while the agent worked. Its finished steps are \
                       kept; ask it to continue.";

/// Kind of the information that a call has created a file.
const FILE_CREATED: &str = "file_created";

impl State {
    pub(crate) fn look(&self) -> Rendering<'_> {
        Rendering {
            columns: self.columns,
            detail: Detail::Brief,
            reasoning: self.options.reasoning,
            theme: &self.theme,
        }
    }

    /// Prints rows above the tail.
    pub(crate) fn print(&mut self, rows: Vec<Row>) {
        self.printed.pending.extend(rows);
    }

    pub(crate) fn print_text(&mut self, text: &str) {
        let rows =
            blocks::marked("∙ ", text, self.theme.dim, Style::PLAIN, self.columns.min(blocks::PROSE_COLUMNS));
        self.print_notice(rows);
    }

    /// Prints rows of the program itself, apart from what was said before.
    pub(crate) fn print_notice(&mut self, rows: Vec<Row>) {
        let space = self.printed.printer.space_before_notice();
        self.printed.pending.extend(space);
        self.print(rows);
    }

    pub(crate) fn print_markdown(&mut self, text: &str) {
        let rows = blocks::markdown(text, self.look());
        let space = self.printed.printer.space_before_prose();
        self.printed.pending.extend(space);
        self.print(rows);
    }

    pub(crate) fn print_error(&mut self, text: &str) {
        let columns = self.columns.min(blocks::PROSE_COLUMNS);
        let rows = blocks::marked("✗ ", text, self.theme.error, self.theme.error, columns);
        self.print_notice(rows);
    }

    pub(crate) fn print_warning(&mut self, text: &str) {
        let columns = self.columns.min(blocks::PROSE_COLUMNS);
        let rows = blocks::marked("! ", text, self.theme.warning, self.theme.warning, columns);
        self.print_notice(rows);
    }

    /// Another session is being opened.
    pub(crate) fn close_session(&mut self) {
        self.is_choosing = false;
        self.facts = None;
        let is_left = self.has_content();
        self.forget_session();
        if is_left {
            self.print_text("Another session begins here; /resume goes back to the one before.");
        }
        self.overlay = None;
    }

    /// The session is open: sends the prompts that waited for it.
    pub(crate) fn ready(&mut self, facts: SessionFacts) {
        self.lost = None;
        self.facts = Some(facts);
        self.call("session.commands.list", json!({}), Purpose::Commands);
        let is_own = self.facts.as_ref().is_some_and(|facts| facts.agent.is_none());
        if is_own && self.transcript.main().end() > 0 {
            self.call("session.schedule.list", json!({}), Purpose::ResumedSchedules);
        }
        self.run_status_command();
        for prompt in std::mem::take(&mut self.outbox.unsent) {
            if !self.is_working() {
                self.turn.unanswered = Some(prompt.draft);
            }
            self.submit_prompt(&prompt.text, prompt.attachments, false);
        }
    }

    /// Takes no more events: the rest of an answer that is arriving, and commands that run, are committed as they are.
    pub fn settle(&mut self) {
        self.shells = ShellLines::default();
        self.printed.settled = self.transcript.main().end();
    }

    /// Clears everything that belongs to a session.
    fn forget_session(&mut self) {
        // The unfinished text is printed first.
        self.printed.settled = self.transcript.main().end();
        self.printed.pending = self.take_rows();
        self.printed.settled = 0;
        self.transcript = hangar_transcript::Transcript::new();
        self.printed.printer.reset();
        self.questions.dialogs.clear();
        self.questions.of_agents.clear();
        self.outbox.queue.clear();
        self.outbox.drafts.clear();
        self.calls.clear();
        self.shells = ShellLines::default();
        self.known.files = None;
        self.told = SessionRecap::default();
        self.turn = TurnInProgress::default();
    }

    pub(crate) fn lose(&mut self, reason: String) {
        self.printed.settled = self.transcript.main().end();
        self.printed.pending = self.take_rows();
        self.print_error(&reason);
        self.bring_back_unsent();
        if !self.outbox.deferred.is_empty() && self.composer.is_empty() {
            self.composer.set(&std::mem::take(&mut self.outbox.deferred).join("\n"));
        }
        self.questions.dialogs.clear();
        self.questions.of_agents.clear();
        self.turn.since = None;
        self.turn.is_starting = false;
        self.lost = Some(reason);
    }

    /// Takes the history: its end is printed, and the rest is for the pager.
    pub(crate) fn take_history(&mut self, events: &[Event], older: u64, is_live: bool) {
        let mut is_cut = false;
        for event in events {
            self.count(event);
            self.transcript.apply(event);
            if event.agent_id().is_none() {
                is_cut = match event.event_kind() {
                    Some(EventKind::UserMessage) => true,
                    Some(kind) if is_last_word(kind) => self.transcript.is_working(),
                    _ => is_cut,
                };
            }
        }
        let end = self.transcript.main().end();
        if !is_live || !self.transcript.is_working() {
            self.printed.settled = end;
        }
        let first = end.saturating_sub(SHOWN_BLOCKS);
        if first > 0 || older > 0 {
            let told = "… earlier in this session: ctrl+o shows everything";
            self.printed.pending.push(Row::styled(told, self.theme.dim));
        }
        self.printed.printer.skip_to(first);
        if is_cut && !is_live {
            self.printed.pending = self.take_rows();
            self.print_warning(CUT_OFF);
        }
    }

    pub(crate) fn take_event(&mut self, event: &Event) {
        if says_again(event.body()) {
            return;
        }
        let was_working = self.is_working();
        self.count(event);
        if self.transcript.apply(event).status {
            self.run_status_command();
        }
        self.follow_shell(event);
        self.follow_agent(event);
        if event.event_kind().is_some_and(is_answer) {
            self.turn.unanswered = None;
        }
        match event.event_kind() {
            Some(
                EventKind::TurnStart
                | EventKind::AssistantIdle
                | EventKind::SessionIdle
                | EventKind::Abort
                | EventKind::SessionShutdown,
            ) => self.turn.is_starting = false,
            Some(EventKind::PermissionRequested) => self.ask(event, AskKind::Permission),
            Some(EventKind::UserInputRequested) => self.ask(event, AskKind::Question),
            Some(EventKind::ElicitationRequested) => self.ask(event, AskKind::Elicitation),
            Some(EventKind::ExitPlanModeRequested) => self.ask(event, AskKind::Plan),
            Some(
                EventKind::PermissionCompleted
                | EventKind::UserInputCompleted
                | EventKind::ElicitationCompleted
                | EventKind::ExitPlanModeCompleted,
            ) => self.answered(event),
            Some(EventKind::PendingMessagesModified) => {
                self.call("session.queue.pendingItems", json!({}), Purpose::Queue);
            }
            _ => {}
        }
        if let Body::SessionStart(start) = event.body() {
            self.set_branch(start.context.as_ref());
        }
        if event.agent_id().is_none() && !self.is_working() && event.event_kind().is_some_and(is_end) {
            self.printed.settled = self.transcript.main().end();
        }
        match (was_working, self.is_working()) {
            (false, true) => {
                self.turn.since = Some(self.now);
                // The terminal tells only of changes, and was not asked to before.
                self.is_focused = true;
            }
            (true, false) => self.ended_work(),
            _ => {}
        }
    }

    fn set_branch(&mut self, context: Option<&WorkingDirectory>) {
        if let (Some(facts), Some(context)) = (&mut self.facts, context) {
            facts.branch.clone_from(&context.branch);
        }
    }

    /// Shows the new working directory. Its files are listed when the next one is named.
    pub(crate) fn moved(&mut self, directory: String, branch: Option<String>) {
        if let Some(facts) = &mut self.facts {
            (facts.directory, facts.branch) = (directory, branch);
            self.known.files = None;
            self.run_status_command();
        }
    }

    fn ended_work(&mut self) {
        let took = self.turn.since.take().map_or(0, |since| self.now.saturating_sub(since));
        // A sub-agent in the background still waits for its answer.
        let agents = std::mem::take(&mut self.questions.of_agents);
        self.keep_dialogs(|dialog| dialog.request_id().is_none_or(|id| agents.contains(id)));
        self.questions.of_agents = agents;
        if !self.outbox.queue.is_empty() {
            self.call("session.queue.pendingItems", json!({}), Purpose::Queue);
        }
        // A person who is watching needs no notification.
        if self.options.notify && (!self.is_focused || took > 30_000) {
            self.effect(Effect::Notify("the agent is done".to_owned()));
        }
    }

    fn count(&mut self, event: &Event) {
        if let Body::AssistantUsage(usage) = event.body()
            && let Some(cost) = usage.cost
        {
            self.told.cost += cost;
        }
        match event.body() {
            Body::SessionLimitsChanged(changed) => {
                self.told.cost_limit = changed.session_limits.and_then(|limits| limits.max_ai_credits);
            }
            Body::UserMessage(message) if event.agent_id().is_none() => {
                if self.told.prompts.len() == MAX_PROMPTS {
                    self.told.prompts.pop_front();
                }
                self.told.prompts.push_back((event.id().0.clone(), message.content.clone()));
            }
            Body::AssistantMessage(message) if event.agent_id().is_none() && !message.content.is_empty() => {
                self.told.last_answer = Some(message.content.clone());
            }
            _ => {}
        }
    }

    fn agent_name(&self, id: &str) -> Option<&str> {
        self.transcript.agents().find(|(known, _, _)| *known == id).map(|(_, _, agent)| agent.name.as_str())
    }

    /// Opens the dialog of a question.
    fn ask(&mut self, event: &Event, kind: AskKind) {
        let data = serde_json::to_value(event).map(|mut event| event["data"].take()).unwrap_or(Value::Null);
        let asker = event.agent_id().and_then(|id| self.agent_name(&id.0)).map(str::to_owned);
        let dialog = match kind {
            AskKind::Permission => dialog::permission(&data, asker.as_deref(), self.now),
            AskKind::Question => dialog::question(&data, self.now),
            AskKind::Elicitation => FormDialog::of(&data, self.now),
            AskKind::Plan => dialog::plan(&data, self.now),
        };
        if let (Some(_), Some(id)) = (event.agent_id(), dialog.request_id()) {
            self.questions.of_agents.insert(id.to_owned());
        }
        self.open_dialog(dialog);
        if self.options.notify {
            self.effect(Effect::Notify("the agent asks something".to_owned()));
        }
    }

    pub(crate) fn open_dialog(&mut self, dialog: Dialog) {
        self.questions.dialogs.push_back(dialog);
        self.completions = Completions::default();
        self.lay_out_dialog();
    }

    /// Asks whether the directory is trusted.
    pub fn ask_trust(&mut self, directory: &str) {
        let dialog = dialog::trust(directory, self.now);
        self.questions.dialogs.push_front(dialog);
        self.lay_out_dialog();
    }

    /// Asks a question of the program itself, in place of the one before.
    pub(crate) fn ask_host(&mut self, question: Option<Box<HostQuestion>>) {
        self.questions.dialogs.retain(|dialog| !matches!(dialog, Dialog::Host(_)));
        match question {
            Some(question) => {
                self.completions = Completions::default();
                self.questions
                    .dialogs
                    .push_front(Dialog::Host(Box::new(HostDialog::new(*question, self.now))));
                self.lay_out_dialog();
            }
            None => self.show_dialog(),
        }
    }

    /// A question was answered, here or elsewhere.
    fn answered(&mut self, event: &Event) {
        let data = serde_json::to_value(event).map(|mut event| event["data"].take()).unwrap_or(Value::Null);
        let Some(id) = data["requestId"].as_str() else { return };
        self.questions.of_agents.remove(id);
        self.keep_dialogs(|dialog| dialog.request_id() != Some(id));
    }

    /// Drops the other dialogs. The next one takes keys only after a moment on the screen.
    fn keep_dialogs(&mut self, keep: impl Fn(&Dialog) -> bool) {
        let first_stays = self.questions.dialogs.front().is_none_or(&keep);
        self.questions.dialogs.retain(&keep);
        if !first_stays {
            self.show_dialog();
        }
    }

    /// Makes the first dialog wait again before it takes keys, because it is shown now.
    pub(crate) fn show_dialog(&mut self) {
        if let Some(dialog) = self.questions.dialogs.front_mut() {
            dialog.arm(self.now);
        }
        self.lay_out_dialog();
    }

    pub(crate) fn attach(&mut self, attachment: AttachedFile) {
        let kind = if attachment.is_image { AttachmentKind::Image } else { AttachmentKind::File };
        if !self.composer.attach(kind, attachment.path) {
            self.say("the draft is full; send it first");
        }
    }

    /// Puts the prompts that wait before the draft: the session cannot be opened, and another one is not sent them unseen.
    fn bring_back_unsent(&mut self) {
        let draft = self.composer.snapshot().pieces;
        let unsent = std::mem::take(&mut self.outbox.unsent).into_iter().map(|prompt| prompt.draft.pieces);
        let parts: Vec<Vec<DraftPiece>> = unsent.collect();
        if !parts.is_empty() {
            let parts = parts.into_iter().chain([draft].into_iter().filter(|draft| !draft.is_empty()));
            let line_end = [DraftPiece::Text("\n".to_owned())];
            self.composer.set_pieces(&parts.collect::<Vec<_>>().join(&line_end[..]));
        }
    }

    /// Keeps a prompt until the session is open.
    pub(crate) fn keep_unsent(&mut self, text: &str, attachments: Vec<Value>, draft: DraftSnapshot) {
        if self.outbox.unsent.len() < crate::state::MAX_UNSENT {
            self.outbox.unsent.push_back(crate::state::Unsent { text: text.to_owned(), attachments, draft });
        } else {
            self.composer.restore(&draft);
            self.say("too many prompts wait for the session; send this one when it is open");
        }
    }

    /// Prompts the session, or keeps the prompt until it is open.
    pub(crate) fn submit_prompt(&mut self, text: &str, attachments: Vec<Value>, queued: bool) {
        if self.facts.is_none() {
            return self.keep_unsent(text, attachments, DraftSnapshot::of_text(text));
        }
        let mode = if self.is_working() && !queued { "immediate" } else { "enqueue" };
        let mut params = json!({ "prompt": text, "mode": mode });
        if !attachments.is_empty() {
            params["attachments"] = Value::Array(attachments);
        }
        self.call("session.send", params, Purpose::Prompt(text.to_owned()));
    }

    pub(crate) fn set_mode(&mut self, mode: &str) {
        self.call("session.mode.set", json!({ "mode": mode }), Purpose::Nothing);
    }
}

/// Whether an event of this kind is something that the agent says or does.
fn is_answer(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::AssistantMessage
            | EventKind::MessageDelta
            | EventKind::Reasoning
            | EventKind::ReasoningDelta
            | EventKind::ToolCallDelta
            | EventKind::ToolStart
            | EventKind::SessionIdle
            | EventKind::SessionError
    )
}

/// Whether an event says what the call beside it shows.
fn says_again(body: &Body) -> bool {
    matches!(body, Body::SessionInfo(info) if info.info_type == FILE_CREATED)
}

/// Whether an event of this kind can be the last of a prompt's answer.
fn is_last_word(kind: EventKind) -> bool {
    is_end(kind) || matches!(kind, EventKind::Abort | EventKind::SessionError | EventKind::HistoryTruncated)
}

/// Whether the work has ended with an event of this kind. After an abort, the ends of running calls still arrive.
fn is_end(kind: EventKind) -> bool {
    matches!(
        kind,
        EventKind::TurnEnd
            | EventKind::SessionIdle
            | EventKind::AssistantIdle
            | EventKind::SessionResume
            | EventKind::SessionShutdown
    )
}
