//! Keys and pastes: the effect of each in the current situation.

use serde_json::{Value, json};

use crate::calls::Purpose;
use crate::commands;
use crate::completion::Completions;
use crate::composer::{Applied, DraftPiece, DraftSnapshot, Edit, Pasted, Stashed, VimOutcome};
use crate::dialog::{self, DialogEnd, DialogReply};
use crate::effect::{Effect, ExitKind, SessionTarget};
use crate::history::HistoryEntry;
use crate::key::{Key, KeyCode};
use crate::keymap::{Action, KeyContext, KeyMeaning, PendingKeys};
use crate::overlay::{Overlay, OverlayEnd};
use crate::search_prompt::{SearchOutcome, SearchPrompt};
use crate::state::{MAX_UNSENT, State};

/// Time within which the quit key has to be pressed again, in milliseconds.
const LEAVE_TIME: u64 = 2_000;

impl State {
    pub(crate) fn take_key(&mut self, key: Key) {
        self.keys.last = self.now;
        if let Some(action) = self.everywhere(key) {
            return self.act(action);
        }
        if let Some(overlay) = &mut self.overlay {
            let end = overlay.key(key, self.rows, &self.keys.map);
            self.overlay_ended(end);
            if self.overlay.is_none() {
                self.show_dialog();
            }
            return;
        }
        if let Some(dialog) = self.questions.dialogs.front_mut() {
            if dialog.takes_key(self.now) {
                let end = dialog.key(key, &self.keys.map);
                return self.dialog_ended(end);
            }
            return self.edit_unseen(key);
        }
        if let Some(search) = &mut self.search {
            if let SearchOutcome::Accept(draft) | SearchOutcome::Restore(draft) =
                search.key(key, &self.keys.map)
            {
                self.composer.restore(&draft);
                self.search = None;
            }
            return;
        }
        if self.completions.open().is_none() {
            match self.composer.vim_key(key, self.draft_columns()) {
                VimOutcome::Handled => return self.draft_changed(),
                VimOutcome::AtTop => return self.history_prev(),
                VimOutcome::AtBottom => return self.history_next(),
                VimOutcome::Pass => {}
            }
        }
        let context =
            KeyContext { empty: self.composer.is_empty(), completing: self.completions.open().is_some() };
        match self.keys.map.resolve(&mut self.keys.chord, key, context) {
            KeyMeaning::Action(action) => self.act(action),
            KeyMeaning::Insert(char) => {
                self.composer.insert(char.encode_utf8(&mut [0; 4]));
                self.draft_changed();
            }
            KeyMeaning::Pending | KeyMeaning::Nothing => {}
        }
    }

    /// Action of a key that works in pagers, pickers, questions and the search too: they have no use for it.
    fn everywhere(&mut self, key: Key) -> Option<Action> {
        let question = self.questions.dialogs.front();
        let is_covered = self.overlay.is_some() || question.is_some() || self.search.is_some();
        // Until a question takes keys they are the draft's, where the key may be the next one of a chord.
        let is_early = question.and_then(dialog::Dialog::due).is_some_and(|due| due > self.now);
        let edits = self.overlay.is_none() && is_early;
        let mut chord = if edits { self.keys.chord.clone() } else { PendingKeys::default() };
        match self.keys.map.resolve(&mut chord, key, KeyContext::default()) {
            KeyMeaning::Action(action @ (Action::Suspend | Action::Redraw)) if is_covered => {
                self.keys.chord.clear();
                Some(action)
            }
            _ => None,
        }
    }

    /// Takes a line of a terminal without keys. One that was typed before the question was printed is a prompt.
    pub(crate) fn take_line(&mut self, line: &str) {
        if let Some(Overlay::Picker(picker)) = &mut self.overlay {
            let end = picker.line(line);
            self.overlay_ended(end);
            if self.overlay.is_none() {
                self.show_dialog();
            }
            return;
        }
        let is_asked = self.questions.dialogs.front().is_some_and(|dialog| dialog.due().is_none());
        if self.overlay.is_none() && !is_asked {
            self.composer.set(line);
            return self.send(false);
        }
        let end = match self.questions.dialogs.front_mut().filter(|_| self.overlay.is_none()) {
            Some(dialog::Dialog::Host(dialog)) => Some(dialog.line(line)),
            Some(dialog::Dialog::Choice(dialog)) => Some(dialog.line(line)),
            Some(dialog::Dialog::Form(dialog)) => Some(dialog.line(line)),
            None => None,
        };
        if let Some(end) = end {
            // A question that stays is printed again.
            self.questions.serial += 1;
            return self.dialog_ended(end);
        }
        let question = self.questions.serial;
        // A number alone is the key: an answer with a text waits for the next line.
        let is_number = line.len() == 1 && line.starts_with(|char: char| char.is_ascii_digit());
        let end = (!is_number).then(|| Key::plain(KeyCode::Enter));
        for key in line.chars().map(Key::char).chain(end) {
            // A number answers at once; the rest of the line is ignored.
            if self.overlay.is_none() && self.questions.serial != question {
                return;
            }
            self.take_key(key);
        }
    }

    /// Edits the draft with a key that came too early for a dialog: it was meant for the draft. Keys with other effects
    /// are ignored.
    fn edit_unseen(&mut self, key: Key) {
        match self.keys.map.resolve(&mut self.keys.chord, key, KeyContext::default()) {
            KeyMeaning::Insert(char) => self.composer.insert(char.encode_utf8(&mut [0; 4])),
            KeyMeaning::Action(Action::Edit(edit)) => {
                self.composer.edit(edit, self.draft_columns());
            }
            KeyMeaning::Action(_) | KeyMeaning::Pending | KeyMeaning::Nothing => {}
        }
    }

    pub(crate) fn take_paste(&mut self, text: &str) {
        self.keys.last = self.now;
        if let Some(overlay) = &mut self.overlay {
            return overlay.paste(text);
        }
        if let Some(dialog) = self.questions.dialogs.front_mut() {
            if dialog.takes_key(self.now) {
                return dialog.paste(text);
            }
            self.composer.paste(text);
            return;
        }
        // A path that a terminal pastes when a file is dropped on it.
        let path = text.trim().trim_matches('\'').trim_matches('"').replace("\\ ", " ");
        let path = path.strip_prefix("file://").unwrap_or(&path);
        if path.starts_with('/') && !path.contains('\n') && is_image_name(path) {
            return self.effect(Effect::Attach(path.to_owned()));
        }
        if self.composer.paste(text) == Pasted::TooLong {
            self.say("that is too much to paste; name a file with @ instead");
        }
        self.draft_changed();
    }

    fn act(&mut self, action: Action) {
        if action != Action::Clear && action != Action::Exit {
            self.keys.leaving_until = None;
        }
        match action {
            Action::Send => self.send(false),
            Action::Queue => self.send(true),
            Action::Mode => self.next_mode(),
            Action::Cancel => self.cancel(),
            Action::Interrupt => self.interrupt(),
            Action::Clear => self.clear_or_leave(),
            Action::Exit if self.keys.leaving_until.is_some() => self.effect(Effect::Exit(ExitKind::Close)),
            Action::Exit => self.leave(),
            Action::Suspend => self.effect(Effect::Suspend),
            Action::Redraw => self.effect(Effect::Redraw),
            Action::Stash => match self.composer.stash() {
                Stashed::PutAway => self.say("the draft is put away; ctrl+s brings it back"),
                Stashed::BroughtBack | Stashed::Swapped | Stashed::Nothing => {}
            },
            Action::Editor => {
                let draft = self.composer.content().text;
                self.effect(Effect::Edit(draft));
            }
            Action::HistorySearch => {
                self.search = Some(SearchPrompt::new(&self.history, self.composer.snapshot()));
            }
            Action::HistoryPrev => self.history_prev(),
            Action::HistoryNext => self.history_next(),
            Action::PasteAttachment => self.effect(Effect::ReadClipboard),
            Action::ExpandRecent | Action::ExpandAll | Action::Search | Action::PageUp => {
                self.open_transcript();
            }
            Action::Reasoning => self.toggle_reasoning(),
            Action::Sidebar | Action::NextTab => self.open_tasks(),
            Action::Background => {
                self.call("session.tasks.promoteCurrentToBackground", json!({}), Purpose::Background);
            }
            Action::Help => self.open_help(),
            Action::Complete => self.request_completion(),
            Action::AcceptCompletion
            | Action::SubmitCompletion
            | Action::CompletionPrev
            | Action::CompletionNext
            | Action::CloseCompletion => {
                if self.popup(action) {
                    self.send(false);
                }
            }
            Action::CommandBeside => {
                self.is_beside = self.composer.stash() == Stashed::PutAway;
                self.composer.set("/");
                self.draft_changed();
            }
            Action::Goal => self.composer.set("/autopilot "),
            Action::OpenLink => self.say("your terminal opens links; hangar starts no browser"),
            Action::Voice => self.say("there is no voice input"),
            Action::Close | Action::Hide => self.say("there is no panel; ctrl+o shows the transcript"),
            // The terminal scrolls what is printed.
            Action::PageDown => {}
            Action::Edit(edit) => self.edit(edit),
        }
    }

    fn edit(&mut self, edit: Edit) {
        match self.composer.edit(edit, self.draft_columns()) {
            Applied::Done => self.draft_changed(),
            Applied::AtTop => self.history_prev(),
            Applied::AtBottom => self.history_next(),
        }
    }

    /// Up: brings back the queued message for editing, then the history.
    fn history_prev(&mut self) {
        if self.composer.is_empty()
            && let Some(last) = self.outbox.unsent.pop_back()
        {
            return self.composer.restore(&last.draft);
        }
        if self.composer.is_empty()
            && let Some(last) = self.outbox.queue.pop()
        {
            let draft = self.queued_draft(&last.text);
            self.composer.set_pieces(&draft);
            return match last.id {
                Some(id) => self.call("session.queue.removeAt", json!({ "id": id }), Purpose::Nothing),
                // Steering messages have no id; the last one is meant only if no other is queued after it.
                None => self.call("session.queue.removeMostRecent", json!({}), Purpose::Nothing),
            };
        }
        if let Some(entry) = self.history.prev(&self.composer.snapshot()) {
            self.composer.restore(&entry);
        }
    }

    /// Draft of a queued message, with its attachments if it was sent from here.
    fn queued_draft(&mut self, text: &str) -> Vec<DraftPiece> {
        let known = self.outbox.drafts.iter().rposition(|(sent, _)| sent == text);
        match known.and_then(|at| self.outbox.drafts.remove(at)) {
            Some((_, draft)) => draft.pieces,
            None => vec![DraftPiece::Text(text.to_owned())],
        }
    }

    fn history_next(&mut self) {
        if let Some(entry) = self.history.next(&self.composer.snapshot()) {
            self.composer.restore(&entry);
        }
    }

    fn draft_changed(&mut self) {
        self.complete();
    }

    /// Adds a prompt to the history, here and on disk.
    fn remember(&mut self, prompt: &DraftSnapshot) {
        if let Some(line) = self.history.push(prompt).map(HistoryEntry::to_line) {
            self.effect(Effect::Remember(line));
        }
    }

    /// Sends the draft: a command, a shell line, or a prompt.
    fn send(&mut self, queued: bool) {
        if self.composer.newline_by_backslash() || self.composer.is_empty() {
            return;
        }
        self.completions = Completions::default();
        let snapshot = self.composer.snapshot();
        let draft = self.composer.take();
        self.remember(&snapshot);
        let text = draft.text.trim_end();
        let is_beside = std::mem::take(&mut self.is_beside);
        if let Some((name, argument)) = commands::parse(text)
            && self.command(name, argument)
        {
            if is_beside && self.composer.is_empty() {
                self.composer.stash();
            }
            return;
        }
        if let Some(line) = text.strip_prefix('!') {
            return self.shell(line.trim());
        }
        let attachments: Vec<Value> =
            draft.attachments.iter().map(|file| json!({ "type": "file", "path": file.path })).collect();
        if self.facts.is_none() {
            return self.keep_unsent(text, attachments, snapshot);
        }
        if self.is_working() {
            self.outbox.drafts.push_back((text.to_owned(), snapshot));
            if self.outbox.drafts.len() > MAX_UNSENT {
                self.outbox.drafts.pop_front();
            }
        } else {
            self.turn.unanswered = Some(snapshot);
        }
        self.submit_prompt(text, attachments, queued);
    }

    /// Keeps a command or a shell line until the session is open.
    pub(crate) fn defer(&mut self, line: String) {
        if self.outbox.deferred.len() == MAX_UNSENT {
            self.composer.set(&line);
            return self.say("too much waits for the session; send this when it is open");
        }
        self.outbox.deferred.push(line);
    }

    /// Runs what waited for the session.
    pub(crate) fn run_deferred(&mut self) {
        for line in std::mem::take(&mut self.outbox.deferred) {
            match (commands::parse(&line), line.strip_prefix('!')) {
                (Some((name, argument)), _) => _ = self.command(name, argument),
                (None, Some(line)) => self.shell(line),
                (None, None) => {}
            }
        }
    }

    fn next_mode(&mut self) {
        let next = match self.mode() {
            "interactive" => "plan",
            "plan" => "autopilot",
            _ => "interactive",
        };
        self.set_mode(next);
    }

    /// Esc: closes the open popup or dialog. Pressed again it stops the agent, or rewinds.
    fn cancel(&mut self) {
        if self.stop_shell() {
            // The next press is another first one.
            return self.keys.chord.clear();
        }
        if self.is_working() {
            self.say("esc again stops the agent");
        }
    }

    fn interrupt(&mut self) {
        if self.is_working() {
            self.note = None;
            return self.stop_agent();
        }
        if self.composer.is_empty() {
            return self.open_rewind();
        }
        self.composer.stash();
        self.say("the draft is put away; ctrl+s brings it back");
    }

    /// Stops the agent. Queued messages go back to the composer, since the session drops them with the work, behind the prompt
    /// that the agent has not answered yet.
    fn stop_agent(&mut self) {
        let draft = self.composer.snapshot().pieces;
        let prompt = self.turn.unanswered.take().filter(|_| draft.is_empty());
        let queue: Vec<Vec<DraftPiece>> =
            std::mem::take(&mut self.outbox.queue).iter().map(|item| self.queued_draft(&item.text)).collect();
        let parts: Vec<Vec<DraftPiece>> =
            prompt.map(|prompt| prompt.pieces).into_iter().chain(queue).collect();
        if !parts.is_empty() {
            let parts = parts.into_iter().chain([draft].into_iter().filter(|draft| !draft.is_empty()));
            let line_end = [DraftPiece::Text("\n".to_owned())];
            self.composer.set_pieces(&parts.collect::<Vec<_>>().join(&line_end[..]));
        }
        self.call("session.abort", json!({ "reason": "user_initiated" }), Purpose::Nothing);
    }

    /// Ctrl+C: clears the draft, stops the agent, and on a second press quits.
    fn clear_or_leave(&mut self) {
        self.completions = Completions::default();
        if !self.composer.is_empty() {
            let snapshot = self.composer.snapshot();
            self.remember(&snapshot);
            self.composer.take();
            if std::mem::take(&mut self.is_beside) {
                self.composer.stash();
            }
            // Only a press after this one begins to quit.
            return self.keys.chord.clear();
        }
        if self.keys.leaving_until.is_some() {
            return self.effect(Effect::Exit(ExitKind::Close));
        }
        if self.stop_shell() {
            return self.keys.chord.clear();
        }
        if self.is_working() {
            self.stop_agent();
        }
        self.keys.leaving_until = Some(self.now + LEAVE_TIME);
    }

    /// Ctrl+D on an empty prompt, and `/exit`.
    pub(crate) fn leave(&mut self) {
        // Work in another process continues there.
        let goes_on = self.facts.as_ref().is_some_and(|facts| facts.remote);
        if self.is_working() && !goes_on {
            let working = "The agent works. What it has done so far stays; the session can be resumed.";
            return self.open_dialog(dialog::confirm_exit(working, self.now));
        }
        self.effect(Effect::Exit(ExitKind::Close));
    }

    fn dialog_ended(&mut self, end: DialogEnd) {
        let DialogEnd::Answered(reply) = end else { return };
        if let Some(id) = self.questions.dialogs.pop_front().as_ref().and_then(dialog::Dialog::request_id) {
            self.questions.of_agents.remove(id);
        }
        self.show_dialog();
        match reply {
            DialogReply::Call { method, params } => self.call(method, params, Purpose::Nothing),
            DialogReply::Trust { remember } => self.effect(Effect::Trust { remember }),
            DialogReply::Host(answer) => self.effect(Effect::Answer(answer)),
            DialogReply::Exit => self.effect(Effect::Exit(ExitKind::Close)),
            DialogReply::Dismissed => {}
        }
    }

    fn overlay_ended(&mut self, end: OverlayEnd) {
        match end {
            OverlayEnd::Open => {}
            OverlayEnd::Closed => {
                self.overlay = None;
                if std::mem::take(&mut self.is_choosing) {
                    self.effect(Effect::Open(SessionTarget::New));
                }
            }
            OverlayEnd::Picked(pick) => self.picked(&pick),
            OverlayEnd::Keyed(key) => {
                match key {
                    'b' => self.diff_view.of_branch ^= true,
                    _ => self.diff_view.ignores_blanks ^= true,
                }
                self.open_diff();
            }
            OverlayEnd::Commented(message) => {
                self.overlay = None;
                if !self.composer.is_empty() {
                    self.composer.stash();
                }
                self.composer.set(&message);
                self.say("enter sends the comments; edit them first if you like");
            }
        }
    }
}

fn is_image_name(path: &str) -> bool {
    let name = path.to_ascii_lowercase();
    [".png", ".jpg", ".jpeg", ".gif", ".webp"].iter().any(|extension| name.ends_with(extension))
}
