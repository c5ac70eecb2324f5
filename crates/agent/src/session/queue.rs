//! Changes to the prompts that wait for their turn. A prompt is known by the id that its sender was told.

use hangar_protocol::data::{self, Delivery};

use super::run::Phase;
use super::{Context, Effect, Origin, Prompt, QUEUE_LIMIT, Session, Step};

/// Where a prompt comes from that a cleared conversation begins with.
const ROLLOVER: &str = "session-memory-rollover";

#[derive(Debug)]
pub enum QueueEdit {
    /// Puts a prompt among those that wait. Where nothing is under way, it is begun with.
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
    /// Has the same said once more, right behind, under an id of its own.
    Duplicate {
        id: String,
        copy: String,
    },
    Reword {
        id: String,
        text: String,
        shown: Option<String>,
    },
    /// Whether what waits is left waiting when nothing is under way.
    Pause(bool),
}

impl Session {
    /// Whether what waits is left waiting.
    pub fn is_queue_paused(&self) -> bool {
        self.queue_paused
    }

    /// Takes over what waits in a session that it takes the place of.
    pub fn take_queue(&mut self, before: &mut Session) {
        self.queue = std::mem::take(&mut before.queue);
        self.queue_paused = before.queue_paused;
    }

    /// Whether another prompt may wait.
    pub fn has_room_in_queue(&self) -> bool {
        self.queue.len() + self.steering.len() < QUEUE_LIMIT
    }

    /// Whether a waiting prompt says something else.
    pub fn would_reword(&self, id: &str, text: &str, shown: Option<&str>) -> bool {
        let prompt = self.place_of(id).map(|place| &self.queue[place]);
        prompt.is_some_and(|prompt| prompt.text != text || prompt.shown.as_deref() != shown)
    }

    /// The next prompt whose turn it is. A switch of the model that comes before it is made.
    pub(super) fn next_queued(&mut self, step: &mut Step) -> Option<Prompt> {
        while !self.queue_paused {
            let prompt = self.queue.pop_front()?;
            let Origin::Switch(switch) = prompt.origin else { return Some(prompt) };
            self.emit(step, data::PendingMessagesModified {});
            self.switch_model(*switch, prompt.message_id, step);
        }
        None
    }

    /// Has a prompt join the run that is under way.
    pub(super) fn steer(&mut self, prompt: Prompt, step: &mut Step) {
        // What a person says does not wait for a command that can go on by itself.
        if matches!(prompt.origin, Origin::User | Origin::Source(_)) {
            step.effects.push(Effect::Hurry);
        }
        self.steering.push(prompt);
    }

    /// Where in the queue a position is among those that people see.
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
        // Whatever may be begun with now is not left waiting.
        if self.run.is_none()
            && let Some(prompt) = self.next_queued(step)
        {
            self.emit(step, data::PendingMessagesModified {});
            self.start_run(prompt, delivery, step, context);
        }
    }

    /// Says whether something else waits now, or in another order.
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

    /// Has a prompt that waits join the run that is under way, or be one where there is none.
    pub(super) fn send_now(&mut self, id: &str, step: &mut Step, context: &mut Context<'_>) {
        let Some(prompt) = self.place_of(id).and_then(|place| self.queue.remove(place)) else { return };
        self.emit(step, data::PendingMessagesModified {});
        match &self.run {
            Some(_) => self.steer(prompt, step),
            None => self.start_run(prompt, Delivery::Queued, step, context),
        }
    }

    /// Ends the run, but not the agents that work for the session. What waits goes with it unless it is kept.
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

    /// Whether a call is under way from which the conversation can be begun anew.
    pub fn may_clear_context(&self) -> bool {
        let calls = matches!(&self.run, Some(run) if matches!(run.phase, Phase::Tools { .. }));
        calls && self.state.conversation.open_calls().next().is_some()
    }

    /// Forgets the conversation. The results of the calls under way have no place any more, so the run ends with them.
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
