//! Editing the queue of prompts. A prompt is identified by the id that its sender was given.

use hangar_protocol::data::{self, Delivery};

use super::run::Phase;
use super::{Context, Origin, Prompt, QUEUE_LIMIT, Session, SessionEffect, Step};

/// `source` of the prompt that a cleared conversation begins with.
const ROLLOVER: &str = "session-memory-rollover";

#[derive(Debug)]
pub enum QueueEdit {
    /// Inserts a prompt. An idle session starts with it.
    Insert {
        at: usize,
        prompt: Box<Prompt>,
    },
    Move {
        id: String,
        to: usize,
    },
    Remove {
        id: String,
    },
    /// Duplicates a prompt, right behind it and with an id of its own.
    Duplicate {
        id: String,
        copy: String,
    },
    Reword {
        id: String,
        text: String,
        shown: Option<String>,
    },
    /// Pauses or continues the queue.
    Pause(bool),
}

impl Session {
    /// Whether the queue is paused.
    pub fn is_queue_paused(&self) -> bool {
        self.queue_paused
    }

    /// Takes over the queue of the session that this one replaces.
    pub fn take_queue(&mut self, before: &mut Session) {
        self.queue = std::mem::take(&mut before.queue);
        self.queue_paused = before.queue_paused;
    }

    /// Whether the queue has room for another prompt.
    pub fn has_room_in_queue(&self) -> bool {
        self.queue.len() + self.steering.len() < QUEUE_LIMIT
    }

    /// Whether an edit would change the text of a queued prompt.
    pub fn would_reword(&self, id: &str, text: &str, shown: Option<&str>) -> bool {
        let prompt = self.place_of(id).map(|place| &self.queue[place]);
        prompt.is_some_and(|prompt| prompt.text != text || prompt.shown.as_deref() != shown)
    }

    /// Takes the next prompt of the queue, after performing the model switches before it.
    pub(super) fn next_queued(&mut self, step: &mut Step) -> Option<Prompt> {
        while !self.queue_paused {
            let prompt = self.queue.pop_front()?;
            let Origin::Switch(switch) = prompt.origin else { return Some(prompt) };
            self.emit(step, data::PendingMessagesModified {});
            self.switch_model(*switch, prompt.message_id, step);
        }
        None
    }

    /// Has a prompt join the current run.
    pub(super) fn steer(&mut self, prompt: Prompt, step: &mut Step) {
        // A person's message does not wait for a command that can continue in the background.
        if matches!(prompt.origin, Origin::User | Origin::Source(_)) {
            step.effects.push(SessionEffect::Hurry);
        }
        self.steering.push(prompt);
    }

    /// Index in the queue of the n-th prompt that is shown.
    fn place_at(&self, position: usize) -> usize {
        let mut shown = self.queue.iter().enumerate().filter(|(_, prompt)| prompt.origin.is_shown());
        shown.nth(position).map_or(self.queue.len(), |(place, _)| place)
    }

    fn place_of(&self, id: &str) -> Option<usize> {
        self.queue.iter().position(|prompt| prompt.message_id.as_deref() == Some(id))
    }

    pub(super) fn edit_queue(&mut self, edit: QueueEdit, step: &mut Step, context: &mut Context<'_>) {
        let delivery = match &edit {
            QueueEdit::Insert { .. } if self.queue.is_empty() => Delivery::Idle,
            _ => Delivery::Queued,
        };
        if self.apply_edit(edit) {
            self.emit(step, data::PendingMessagesModified {});
        }
        // A prompt that can start now is not left in the queue.
        if self.run.is_none()
            && let Some(prompt) = self.next_queued(step)
        {
            self.emit(step, data::PendingMessagesModified {});
            self.start_run(prompt, delivery, step, context);
        }
    }

    /// Applies an edit. True if the queue has changed.
    fn apply_edit(&mut self, edit: QueueEdit) -> bool {
        match edit {
            QueueEdit::Insert { at, prompt } => {
                let room = self.has_room_in_queue();
                if room {
                    self.queue.insert(self.place_at(at), *prompt);
                }
                room
            }
            QueueEdit::Move { id, to } => {
                let Some(from) = self.place_of(&id) else { return false };
                let Some(prompt) = self.queue.remove(from) else { return false };
                let to = self.place_at(to);
                self.queue.insert(to, prompt);
                from != to
            }
            QueueEdit::Remove { id } => {
                self.place_of(&id).and_then(|place| self.queue.remove(place)).is_some()
            }
            QueueEdit::Duplicate { id, copy } => {
                let Some(place) = self.place_of(&id).filter(|_| self.has_room_in_queue()) else {
                    return false;
                };
                let prompt = Prompt { message_id: Some(copy), ..self.queue[place].clone() };
                self.queue.insert(place + 1, prompt);
                true
            }
            QueueEdit::Reword { id, text, shown } => {
                let changed = self.would_reword(&id, &text, shown.as_deref());
                if let Some(place) = self.place_of(&id) {
                    let prompt = &mut self.queue[place];
                    (prompt.text, prompt.shown) = (text, shown);
                }
                changed
            }
            QueueEdit::Pause(paused) => {
                self.queue_paused = paused;
                false
            }
        }
    }

    /// Has a queued prompt join the current run, or starts one with it.
    pub(super) fn send_now(&mut self, id: &str, step: &mut Step, context: &mut Context<'_>) {
        let Some(prompt) = self.place_of(id).and_then(|place| self.queue.remove(place)) else { return };
        self.emit(step, data::PendingMessagesModified {});
        match &self.run {
            Some(_) => self.steer(prompt, step),
            None => self.start_run(prompt, Delivery::Queued, step, context),
        }
    }

    /// Ends the run, but not the session's agents. The queue is dropped unless it is kept.
    pub(super) fn interrupt(
        &mut self,
        reason: String,
        keep_queue: bool,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if self.run.is_none() {
            return;
        }
        let kept = if keep_queue {
            self.steering.drain(..).chain(self.queue.drain(..)).collect()
        } else {
            Vec::new()
        };
        self.abort(reason, step, context);
        if kept.is_empty() {
            return;
        }
        self.queue.extend(kept);
        if self.run.is_none()
            && let Some(prompt) = self.next_queued(step)
        {
            self.start_run(prompt, Delivery::Queued, step, context);
        }
    }

    /// Whether a call is running, from which the conversation may be cleared.
    pub fn may_clear_context(&self) -> bool {
        let calls = matches!(&self.run, Some(run) if matches!(run.phase, Phase::Tools { .. }));
        calls && self.state.conversation.open_calls().next().is_some()
    }

    /// Clears the conversation. The results of the running calls have no place any more, so the run ends with them.
    pub(super) fn clear_context(&mut self, prompt: String, step: &mut Step) {
        if !self.may_clear_context() {
            return;
        }
        let messages_cleared = self.state.conversation.len() as u64;
        self.emit(step, data::ContextCleared { messages_cleared, initial_message: Some(prompt.clone()) });
        if let Some(run) = &mut self.run {
            run.ended = true;
        }
        let origin = Origin::Source(ROLLOVER.to_owned());
        self.queue.push_front(Prompt { origin, shown: Some(String::new()), ..Prompt::user(prompt) });
    }
}
