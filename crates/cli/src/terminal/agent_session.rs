//! One session of another agent, owned by one task: requests of the view in, events out and into the log.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use hangar_agent::session::iso;
use hangar_peer::Peer;
use hangar_protocol::data::{PendingMessagesModified, SessionError, SessionIdle, SessionWarning};
use hangar_protocol::{Body, Event, EventId, EventKind};
use hangar_runtimes::runtime::{AgentSession, SessionCommand, SessionNews, TurnEnded};
use hangar_runtimes::usage::AgentUsage;
use hangar_server::Presence as _;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::agent_answers;
use super::agent_server::{AgentContext, AgentFront, AgentOpening, Asker, ViewRequest};
use super::questions::{self, Change};
use crate::runtimes::plan::{self, SessionPlan};
use crate::runtimes::record::{self, SessionRecorder};

/// Prompts that may wait for their turn.
const MAX_QUEUED: usize = 64;
/// Events that are kept until the first prompt, with which the log begins. More begin it at once.
const MAX_UNRECORDED: usize = 64;
/// Time that an agent gets to end. It is longer than what its processes are given, and what is left then is killed.
const FAREWELL: Duration = Duration::from_secs(20);

/// The session's end of its handle.
pub(super) struct Inbox {
    pub(super) requests: mpsc::Receiver<ViewRequest>,
    /// Resolves when the session is to end, with the request that asks for it unless the server is gone.
    pub(super) ended: oneshot::Receiver<Asker>,
}

struct ServedSession {
    context: Arc<AgentContext>,
    front: AgentFront,
    /// Request of the last client that leaves.
    leaving: Option<Leaving>,
    /// Views of the session; the first is the terminal's own.
    views: Vec<Peer>,
    /// Questions that wait for an answer.
    questions: Vec<Event>,
    plan: SessionPlan,
    workspace: PathBuf,
    live: AgentSession,
    record: Option<SessionRecorder>,
    unrecorded: Vec<Event>,
    /// Name that was given before the log began.
    name: Option<String>,
    queue: VecDeque<QueuedPrompt>,
    /// Whether a turn is under way.
    is_working: bool,
    prompts: u64,
    model: Option<String>,
    /// Usage of the session, with the time before it was resumed.
    total: AgentUsage,
}

/// Request that ends the session.
struct Leaving {
    asker: Asker,
    /// Whether the log is deleted too.
    deletes: bool,
}

struct QueuedPrompt {
    id: String,
    text: String,
}

/// Runs a session from the request that opens it to its end.
pub(super) async fn run(context: Arc<AgentContext>, opening: AgentOpening, asked: Asker, mut inbox: Inbox) {
    let opened = tokio::select! {
        opened = ServedSession::open(&context, opening) => opened,
        ending = &mut inbox.ended => {
            asked.answer(Err("the session was left before it was open".to_owned()));
            if let Ok(asker) = ending {
                asker.answer(Ok(Value::Null));
            }
            return;
        }
    };
    let mut session = match opened {
        Ok(session) => session,
        Err(error) => return asked.answer(Err(format!("{error:#}"))),
    };
    session.views.push(asked.peer.clone());
    asked.answer(Ok(session.facts()));
    if session.record.is_some() {
        session.announce();
    }
    session.explain();
    let ended = session.serve(&mut inbox).await;
    // Requests that come now are answered by the server.
    inbox.requests.close();
    while let Ok(request) = inbox.requests.try_recv() {
        request.asker.answer(Err("the session is being closed".to_owned()));
    }
    let (asked, problem) = match ended {
        Ok(asked) => (asked, None),
        Err(error) => (None, Some(format!("{error:#}"))),
    };
    let (id, leaving) = (session.plan.selection.id().clone(), session.leaving.take());
    session.finish(problem).await;
    if let Some(presence) = &context.presence {
        presence.closed(&id);
    }
    if let Some(asker) = asked.or_else(|| inbox.ended.try_recv().ok()) {
        asker.answer(Ok(Value::Null));
    }
    if let Some(Leaving { asker, deletes }) = leaving {
        // A session in which nobody said anything has no log.
        let deleted = match deletes && context.store.contains(&id) {
            true => context.store.delete(&id).map_err(|error| error.to_string()),
            false => Ok(()),
        };
        asker.answer(deleted.map(|()| json!({ "success": true })));
    }
}

impl ServedSession {
    async fn open(
        context: &Arc<AgentContext>,
        AgentOpening { args, selection, consent, front }: AgentOpening,
    ) -> Result<Self> {
        let AgentContext { settings, runtimes, store, .. } = &**context;
        let plan = SessionPlan::make(runtimes, store, &args, selection)?;
        if plan.own_log() {
            bail!("{} keeps the log of this session itself", plan.runtime.card().label);
        }
        let record = plan.take_up(store)?;
        let mut order = plan.order(runtimes, store, &args, record.as_ref())?;
        order.consent = consent;
        order.is_attended = true;
        if let Some(rehearsal) = plan::rehearsal(settings, &args).await? {
            plan.runtime.rehearse(&mut order, &rehearsal.stage);
        }
        let total = order.resume.as_ref().map(|resume| resume.used).unwrap_or_default();
        let workspace = order.workspace.clone();
        let live = plan.open(order).await?;
        Ok(Self {
            context: Arc::clone(context),
            front,
            leaving: None,
            views: Vec::new(),
            questions: Vec::new(),
            workspace,
            live,
            record,
            unrecorded: Vec::new(),
            name: None,
            queue: VecDeque::new(),
            is_working: false,
            prompts: 0,
            model: plan.choice.model.value.clone(),
            total,
            plan,
        })
    }

    /// Answer to the request that opened the session.
    fn facts(&self) -> Value {
        let (choice, id) = (&self.plan.choice, self.plan.selection.id());
        let mut facts = json!({
            "sessionId": id.as_str(),
            "agent": self.plan.runtime.card().label,
            "modelState": { "modelId": choice.model.value, "reasoningEffort": choice.effort.value },
        });
        match self.front {
            AgentFront::Terminal => facts["workspacePath"] = json!(self.workspace),
            AgentFront::Program => {
                facts["nativeSessionId"] = json!(id.as_str());
                facts["startTime"] = json!(iso(jiff::Timestamp::now()));
                facts["isRemote"] = json!(false);
                facts["workspacePath"] = json!(self.context.store.session_dir(id));
                facts["capabilities"] = json!({ "ui": { "elicitation": true } });
            }
        }
        facts
    }

    /// Tells the person of an agent that does not ask, before it does anything.
    fn explain(&self) {
        let card = self.plan.runtime.card();
        if !card.capabilities.permission_callbacks {
            let rules = match self.front {
                AgentFront::Terminal => "--allow-tool and --deny-tool",
                AgentFront::Program => "`allow_tools` and `deny_tools` of its table in config.toml",
            };
            let warning = format!(
                "{} cannot ask a person here: it runs its tools by itself, within {rules}",
                card.label
            );
            self.publish(&made(SessionWarning::new("agent", warning).into()));
        }
    }

    /// Serves until the session is to end, and returns the request for that. An error is why it cannot go on.
    async fn serve(&mut self, inbox: &mut Inbox) -> Result<Option<Asker>> {
        loop {
            tokio::select! {
                biased;
                asked = &mut inbox.ended => return Ok(asked.ok()),
                // Before the news, so that an agent that says much can be stopped.
                Some(request) = inbox.requests.recv() => {
                    self.take(request)?;
                    if self.leaving.is_some() {
                        return Ok(None);
                    }
                }
                () = all_closed(self.views.clone()), if self.ends_alone() => return Ok(None),
                news = self.live.news.recv() => match news {
                    Some(SessionNews::Event(event)) => {
                        self.hear(*event)?;
                        // Other views are left behind if they do not keep up.
                        if let Some(owner) = self.views.first().cloned() {
                            owner.keep_pace().await;
                        }
                    }
                    Some(SessionNews::TurnEnded(ended)) => self.turn_ended(&ended)?,
                    None => bail!("{} has ended; resume the session to go on with it", self.label()),
                },
            }
        }
    }

    /// Whether the session ends when no client is left.
    fn ends_alone(&self) -> bool {
        self.front == AgentFront::Program && !self.is_working
    }

    fn label(&self) -> &str {
        &self.plan.runtime.card().label
    }

    fn publish(&self, event: &Event) {
        if self.front == AgentFront::Program && !is_for_clients(event) {
            return;
        }
        let session_id = self.plan.selection.id().as_str();
        let told = json!({ "sessionId": session_id, "event": event });
        for view in self.views.iter().filter(|view| !view.is_closed()) {
            view.notify("session.event", &told);
        }
    }

    /// Tells other processes that the session is open here. It has a log by now.
    fn announce(&self) {
        if let Some(presence) = &self.context.presence {
            presence.opened(self.plan.selection.id());
        }
    }

    /// Notes a question, or that one was settled.
    fn note_question(&mut self, event: &Event) {
        match questions::change(event) {
            Some(Change::Asks(_)) => self.questions.push(event.clone()),
            Some(Change::Settles(id)) => self.questions.retain(
                |asked| !matches!(questions::change(asked), Some(Change::Asks(known)) if known == id),
            ),
            None => {}
        }
    }

    /// A client leaves. The last one ends the session.
    fn leave(&mut self, asker: Asker, deletes: bool) {
        self.views.retain(|view| !view.is_closed() && !view.is_same(&asker.peer));
        match self.views.is_empty() || deletes {
            true => self.leaving = Some(Leaving { asker, deletes }),
            false => asker.answer(Ok(json!({ "success": true }))),
        }
    }

    /// Events of the log, or those before it begins, as clients receive them.
    fn messages(&self) -> Result<Value, String> {
        let mut events = match &self.record {
            None => self.unrecorded.clone(),
            Some(_) => {
                let read = self.context.store.read(self.plan.selection.id());
                let read = read.and_then(|events| events.collect::<Result<Vec<Event>, _>>());
                read.map_err(|error| format!("Failed to load session events: {error}"))?
            }
        };
        events.retain(is_for_clients);
        Ok(json!({ "events": events }))
    }

    /// Another view joins: it gets everything from here on.
    fn join(&mut self, view: &Peer) -> Value {
        self.views.retain(|known| !known.is_closed());
        self.views.push(view.clone());
        self.facts()
    }

    /// Logs an event and tells the view. What cannot be written down must not go on.
    fn hear(&mut self, mut event: Event) -> Result<()> {
        match &mut self.record {
            Some(record) => {
                record.append(&event)?.into_iter().for_each(|position| event.set_position(position));
            }
            None => self.unrecorded.push(event.clone()),
        }
        self.note_question(&event);
        self.publish(&event);
        if self.unrecorded.len() == MAX_UNRECORDED {
            self.begin_record("")?;
        }
        Ok(())
    }

    /// Begins the log, with what was said so far. A session in which nobody says anything leaves none.
    fn begin_record(&mut self, prompt: &str) -> Result<()> {
        if self.record.is_some() {
            return Ok(());
        }
        let AgentContext { runtimes, store, .. } = &*self.context;
        let mut record =
            self.plan.begin_record(runtimes, store, &self.workspace, self.name.as_deref(), prompt)?;
        for event in self.unrecorded.drain(..) {
            record.append(&event)?;
        }
        self.record = Some(record);
        self.announce();
        Ok(())
    }

    fn take(&mut self, ViewRequest { asker, method, params }: ViewRequest) -> Result<()> {
        if let Some(answer) = agent_answers::read(&method, &params) {
            let given = answer.and_then(|(request_id, answer)| {
                self.command(SessionCommand::Answer { request_id, answer })?;
                Ok(json!({ "success": true }))
            });
            asker.answer(given);
            return Ok(());
        }
        let result = match method.as_str() {
            "session.send" => return self.prompt(asker, &params),
            "session.destroy" | "session.detach" | "session.shutdown" | "session.delete"
                if self.front == AgentFront::Program =>
            {
                self.leave(asker, method == "session.delete");
                return Ok(());
            }
            "session.getMessages" => self.messages(),
            "session.model.getCurrent" => Ok(json!({ "modelId": self.model })),
            "session.resume" => Ok(self.join(&asker.peer)),
            "session.eventLog.read" => Ok(json!({ "events": self.questions })),
            "session.metadata.isProcessing" => Ok(json!({ "processing": self.is_working })),
            "session.abort" => self.abort(),
            "session.commands.list" => Ok(json!({ "commands": [] })),
            "session.queue.pendingItems" => Ok(self.pending()),
            "session.queue.removeMostRecent" => {
                let removed = self.queue.pop_back().is_some();
                self.queue_changed();
                Ok(json!({ "removed": removed }))
            }
            "session.queue.removeAt" => self.unqueue(params["id"].as_str().unwrap_or_default()),
            "session.name.set" => self.rename(params["name"].as_str().unwrap_or_default()),
            "session.usage.getMetrics" => Ok(self.metrics()),
            _ => Err(format!("{} does not offer that here", self.label())),
        };
        asker.answer(result);
        Ok(())
    }

    /// Gives the agent a command. One that takes none does not read: it is asked again or stopped.
    fn command(&self, command: SessionCommand) -> Result<(), String> {
        let taken = self.live.commands.try_send(command);
        taken.map_err(|_| format!("{} takes nothing just now; try again, or leave", self.label()))
    }

    fn prompt(&mut self, asker: Asker, params: &Value) -> Result<()> {
        let text = prompt_text(params);
        let message_id = uuid::Uuid::new_v4().to_string();
        let immediate = params["mode"] == "immediate";
        let result = if !self.is_working {
            let mut answer = json!({ "messageId": message_id });
            if self.front == AgentFront::Terminal {
                answer["started"] = json!(true);
            }
            asker.answer(Ok(answer));
            return self.start(text);
        } else if immediate && self.plan.runtime.card().capabilities.steering {
            self.command(SessionCommand::Steer(text))
        } else if self.queue.len() == MAX_QUEUED {
            Err(format!("{MAX_QUEUED} messages wait already; this one was not taken"))
        } else {
            self.queue.push_back(QueuedPrompt { id: message_id.clone(), text });
            self.queue_changed();
            Ok(())
        };
        asker.answer(result.map(|()| json!({ "messageId": message_id })));
        Ok(())
    }

    /// Stops the turn and drops the queue, as Hangar's own sessions do: the view has put it back into the draft.
    fn abort(&mut self) -> Result<Value, String> {
        self.command(SessionCommand::Abort)?;
        if !self.queue.is_empty() {
            self.queue.clear();
            self.queue_changed();
        }
        Ok(json!({ "success": true }))
    }

    /// Removes a queued prompt by its id.
    fn unqueue(&mut self, id: &str) -> Result<Value, String> {
        let place = self.queue.iter().position(|prompt| prompt.id == id);
        let place = place.ok_or_else(|| format!("unknown queue item id '{id}'"))?;
        self.queue.remove(place);
        self.queue_changed();
        Ok(json!({ "removed": true }))
    }

    /// Begins a turn.
    fn start(&mut self, text: String) -> Result<()> {
        self.begin_record(&text)?;
        self.is_working = true;
        self.prompts += 1;
        self.command(SessionCommand::Send(text)).map_err(anyhow::Error::msg)
    }

    fn turn_ended(&mut self, ended: &TurnEnded) -> Result<()> {
        self.is_working = false;
        self.questions.clear();
        self.total = ended.outcome.total;
        self.model = ended.model.clone().or_else(|| self.model.take());
        match self.queue.pop_front() {
            Some(next) => {
                self.queue_changed();
                self.start(next.text)
            }
            None => {
                // Views that count turns, such as a portal's, end theirs with it.
                self.publish(&made(SessionIdle::default().into()));
                Ok(())
            }
        }
    }

    fn queue_changed(&self) {
        self.publish(&made(PendingMessagesModified {}.into()));
    }

    fn pending(&self) -> Value {
        let items = self.queue.iter().map(|prompt| {
            json!({ "id": prompt.id, "messageId": prompt.id, "kind": "message", "displayText": prompt.text })
        });
        json!({ "items": items.collect::<Vec<_>>(), "steeringMessages": [], "inFlightSteeringCount": 0 })
    }

    fn rename(&mut self, name: &str) -> Result<Value, String> {
        let name = self.context.runtimes.redactor.text(name.trim().to_owned());
        if name.is_empty() {
            return Err("a name has at least one letter".to_owned());
        }
        match &mut self.record {
            Some(record) => record.rename(name).map_err(|error| format!("{error:#}"))?,
            None => self.name = Some(name),
        }
        Ok(json!({}))
    }

    fn metrics(&self) -> Value {
        json!({
            "totalUserRequests": self.prompts,
            "totalApiDurationMs": self.total.api_ms.count().unwrap_or(0),
            "modelMetrics": record::metrics(self.model.as_deref(), &self.total),
            "currentModel": self.model,
        })
    }

    /// Ends the agent and closes the log.
    async fn finish(mut self, problem: Option<String>) {
        if let Some(problem) = &problem {
            self.complain(problem);
        }
        if tokio::time::timeout(FAREWELL, self.drain()).await.is_err() {
            tracing::warn!(agent = self.label(), "the agent did not end in time and is killed");
        }
        let changes = self.live.code_changes().await.unwrap_or_default();
        let Some(mut record) = self.record.take() else { return };
        let changes = record.changes(changes);
        match record.close(self.model.clone(), &self.total, changes, problem) {
            Ok(event) => self.publish(&event),
            Err(error) => tracing::error!(%error, "the log of the session cannot be closed"),
        }
    }

    /// Tells the view why the session ends.
    fn complain(&mut self, problem: &str) {
        let error = SessionError {
            error_type: "agent".to_owned(),
            message: problem.to_owned(),
            transient: true,
            ..SessionError::default()
        };
        self.publish(&made(error.into()));
    }

    /// Lets the agent end, and records what it says at that.
    async fn drain(&mut self) {
        let mut is_told = false;
        loop {
            let commands = self.live.commands.clone();
            tokio::select! {
                place = commands.reserve(), if !is_told => {
                    is_told = true;
                    // An agent that is gone needs no word.
                    if let Ok(place) = place {
                        place.send(SessionCommand::Stop);
                    }
                }
                news = self.live.news.recv() => match news {
                    Some(SessionNews::Event(event)) => {
                        if let Err(error) = self.hear(*event) {
                            tracing::error!(%error, "the log of the session cannot be written");
                            return;
                        }
                    }
                    Some(SessionNews::TurnEnded(ended)) => {
                        self.total = ended.outcome.total;
                        self.model = ended.model.or_else(|| self.model.take());
                    }
                    None => return,
                },
            }
        }
    }
}

/// Whether SDK clients receive an event.
fn is_for_clients(event: &Event) -> bool {
    !event.event_kind().is_some_and(EventKind::is_internal)
}

/// Resolves when all connections are closed.
async fn all_closed(views: Vec<Peer>) {
    for view in views {
        view.closed().await;
    }
}

/// An event of ours that is for the view alone.
fn made(body: Body) -> Event {
    let id = EventId(uuid::Uuid::new_v4().to_string());
    Event::new(id, iso(jiff::Timestamp::now()), None, None, body)
}

/// The prompt with the paths of its attachments.
fn prompt_text(params: &Value) -> String {
    let mut text = params["prompt"].as_str().unwrap_or_default().to_owned();
    let files = params["attachments"].as_array().into_iter().flatten();
    for path in files.filter_map(|file| file["path"].as_str()) {
        text.push_str("\n\nAttached file: ");
        text.push_str(path);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attached_files_are_named_in_the_prompt() {
        let params = json!({ "prompt": "look", "attachments": [{ "type": "file", "path": "/a.png" }] });
        assert_eq!(prompt_text(&params), "look\n\nAttached file: /a.png");
        assert_eq!(prompt_text(&json!({ "prompt": "look" })), "look");
    }
}
