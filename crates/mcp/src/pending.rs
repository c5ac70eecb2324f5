//! Questions that wait for an answer from outside: from a client of the session, by the question's id.

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use hangar_protocol::data::ElicitationAction;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::oauth::Token;

/// Timeout of a person's answer.
const PATIENCE: Duration = Duration::from_secs(600);

/// Kinds of questions that a client subscribed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Interest {
    OAuth,
    Elicitation,
    Sampling,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ElicitationAnswer {
    pub action: ElicitationAction,
    pub content: Option<Value>,
}

#[derive(Default)]
pub(crate) struct PendingQuestions {
    interests: Mutex<HashSet<Interest>>,
    pub(crate) tokens: Questions<Option<Token>>,
    pub(crate) elicitations: Questions<ElicitationAnswer>,
    pub(crate) samplings: Questions<Option<Value>>,
}

impl PendingQuestions {
    pub(crate) fn is_answered(&self, interest: Interest) -> bool {
        self.interests.lock().contains(&interest)
    }

    pub(crate) fn set(&self, interest: Interest, answered: bool) {
        let mut interests = self.interests.lock();
        if answered {
            interests.insert(interest);
        } else {
            interests.remove(&interest);
        }
    }
}

pub(crate) struct Questions<T>(Arc<Mutex<HashMap<String, oneshot::Sender<T>>>>);

impl<T> Default for Questions<T> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<T> Questions<T> {
    /// Registers a question. Ask only then, so that no answer comes too early.
    pub(crate) fn open(&self, id: &str) -> Question<T> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().insert(id.to_owned(), sender);
        Question { id: id.to_owned(), receiver, questions: Self(Arc::clone(&self.0)) }
    }

    /// Delivers an answer; false if no caller waits for it.
    pub(crate) fn answer(&self, id: &str, answer: T) -> bool {
        let sender = self.0.lock().remove(id);
        sender.is_some_and(|sender| sender.send(answer).is_ok())
    }
}

/// A pending question. Dropping it withdraws it.
pub(crate) struct Question<T> {
    id: String,
    receiver: oneshot::Receiver<T>,
    questions: Questions<T>,
}

impl<T> Question<T> {
    /// The answer; `None` after the timeout.
    pub(crate) async fn answer(mut self) -> Option<T> {
        tokio::time::timeout(PATIENCE, &mut self.receiver).await.ok()?.ok()
    }
}

impl<T> Drop for Question<T> {
    fn drop(&mut self) {
        self.questions.0.lock().remove(&self.id);
    }
}
