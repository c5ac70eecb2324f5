//! Fallback models: a turn that fails because its model is overloaded, or because the account has used its quota up, is tried
//! again on the next model. The session goes on, and its log says so.

use std::collections::VecDeque;
use std::sync::Arc;

use futures_util::FutureExt;
use hangar_protocol::data::SessionWarning;
use hangar_protocol::{Body, EventId};
use tokio::sync::mpsc;

use crate::outcome::{ErrorKind, TurnFailure, TurnResult};
use crate::runtime::{AgentOrder, AgentSession, Resume, Runtime, SessionCommand, SessionNews, TurnEnded};

/// Capacity of the queues of commands and of news; the other side has to wait beyond it.
const QUEUE: usize = 64;
/// Prompts that may wait for their turn. Beyond it the oldest is not repeated.
const MOST_PROMPTS: usize = 64;

/// Whether another model may succeed where this one failed.
fn is_model_busy(failure: &TurnFailure) -> bool {
    match failure.kind {
        ErrorKind::RateLimited | ErrorKind::Overloaded => true,
        // A cap of our own would only be used up once more.
        ErrorKind::BudgetExceeded => !failure.is_own_cap(),
        _ => false,
    }
}

/// Opens a session that changes to the next of its fallback models when one is overloaded or its quota is used up.
pub(crate) async fn open(
    runtime: Arc<dyn Runtime>,
    mut order: AgentOrder,
) -> Result<AgentSession, TurnFailure> {
    let mut next: VecDeque<String> = std::mem::take(&mut order.fallback_models).into();
    let session = loop {
        match runtime.open(order.clone()).await {
            Ok(session) => break session,
            Err(failure) if is_model_busy(&failure) => match next.pop_front() {
                Some(model) => change_model(&mut order, model, &failure),
                None => return Err(failure),
            },
            Err(failure) => return Err(failure),
        }
    };
    if next.is_empty() {
        return Ok(session);
    }
    let (commands, inbox) = mpsc::channel(QUEUE);
    let (outbox, news) = mpsc::channel(QUEUE);
    let tree = session.tree.clone();
    order.opening.clear();
    let relay = Relay {
        runtime,
        order,
        next,
        session,
        inbox,
        outbox,
        prompts: VecDeque::new(),
        resume: Resume::default(),
    };
    let owner = tokio::spawn(FutureExt::boxed(relay.run()));
    Ok(AgentSession::relayed(commands, news, owner.abort_handle(), tree))
}

/// Puts the next model into an order, with a warning for the log.
fn change_model(order: &mut AgentOrder, model: String, failure: &TurnFailure) {
    let before = order.model.as_deref().unwrap_or("its default model");
    let told = format!(
        "{before} failed ({}: {}); the session goes on with {model}",
        failure.kind.as_str(),
        failure.message
    );
    order.opening.push(SessionWarning::new("model_fallback", told).into());
    order.model = Some(model);
}

struct Relay {
    runtime: Arc<dyn Runtime>,
    order: AgentOrder,
    next: VecDeque<String>,
    session: AgentSession,
    inbox: mpsc::Receiver<SessionCommand>,
    outbox: mpsc::Sender<SessionNews>,
    /// Prompts whose turns have not ended.
    prompts: VecDeque<String>,
    /// State of the session, for its continuation on the next model.
    resume: Resume,
}

impl Relay {
    async fn run(mut self) {
        loop {
            tokio::select! {
                command = self.inbox.recv() => {
                    let Some(command) = command else { return };
                    if let SessionCommand::Send(prompt) = &command {
                        self.remember(prompt.clone());
                    }
                    // A session that has ended closes its news.
                    let _ = self.session.commands.send(command).await;
                }
                news = self.session.news.recv() => {
                    let passed = match news {
                        None => return,
                        Some(SessionNews::Event(event)) => {
                            self.note(&event);
                            self.outbox.send(SessionNews::Event(event)).await
                        }
                        Some(SessionNews::TurnEnded(ended)) => self.ended(ended).await,
                    };
                    if passed.is_err() {
                        return;
                    }
                }
            }
        }
    }

    fn remember(&mut self, prompt: String) {
        if self.prompts.len() >= MOST_PROMPTS {
            self.prompts.pop_front();
        }
        self.prompts.push_back(prompt);
    }

    fn note(&mut self, event: &hangar_protocol::Event) {
        if event.is_ephemeral() {
            return;
        }
        self.resume.last_event = Some(EventId::clone(event.id()));
        self.resume.events += 1;
        if let Body::Handoff(handoff) = event.body() {
            self.resume.agent_session.clone_from(&handoff.remote_session_id);
        }
    }

    /// Passes the end of a turn on, unless another model can repeat the turn.
    async fn ended(&mut self, ended: Box<TurnEnded>) -> Result<(), mpsc::error::SendError<SessionNews>> {
        let failure = match &ended.outcome.end {
            TurnResult::Failed(failure) if is_model_busy(failure) => failure.clone(),
            TurnResult::Failed(_) | TurnResult::Completed => {
                self.prompts.pop_front();
                return self.outbox.send(SessionNews::TurnEnded(ended)).await;
            }
        };
        let Some(model) = self.next.pop_front() else {
            self.prompts.pop_front();
            return self.outbox.send(SessionNews::TurnEnded(ended)).await;
        };
        self.resume.used = ended.outcome.total;
        if self.reopen(model, &failure).await.is_err() {
            // The first failure is the one that a caller can act on.
            self.prompts.clear();
            return self.outbox.send(SessionNews::TurnEnded(ended)).await;
        }
        for prompt in &self.prompts {
            let _ = self.session.commands.send(SessionCommand::Send(prompt.clone())).await;
        }
        Ok(())
    }

    async fn reopen(&mut self, model: String, failure: &TurnFailure) -> Result<(), TurnFailure> {
        let _ = self.session.commands.send(SessionCommand::Stop).await;
        while let Some(news) = self.session.news.recv().await {
            if let SessionNews::Event(event) = news {
                self.note(&event);
                let _ = self.outbox.send(SessionNews::Event(event)).await;
            }
        }
        let mut order = self.order.clone();
        order.resume = Some(Resume { model: Some(model.clone()), ..self.resume.clone() });
        change_model(&mut order, model, failure);
        self.session = self.runtime.open(order.clone()).await?;
        self.order.model = order.model;
        Ok(())
    }
}
