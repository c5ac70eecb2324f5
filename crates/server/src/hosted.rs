//! A session that this program drives itself, and not for a client: `-p`, `run`, a job. Extensions join it all the same, as
//! they join the sessions of clients; their requests are jobs that take turns with the session.

use std::sync::Arc;

use futures_util::FutureExt;
use hangar_agent::driver::{EventSink, Hooks};
use hangar_agent::log::LogError;
use hangar_agent::session::{PendingPermission, Prompt};
use hangar_engine::commands::{self, CommandRefusal, CommandReply};
use hangar_engine::{Engine, EngineProgress};
use hangar_protocol::permission::PermissionOutcome;
use hangar_spec::SessionSpec;
use hangar_store::SessionId;

use crate::audience::{Audience, Broadcast, ClientHooks};
use crate::client_tools::PendingCalls;
use crate::extensions;
use crate::hub::{ServedSession, ServerHub, SessionPlace};
use crate::methods::{self, CommandEnd};
use crate::opener::SessionSurroundings;
use crate::session_files::SessionDir;
use crate::task::SessionTask;

/// Questions of a session that the program around it answers.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostAbilities {
    pub permissions: bool,
    pub questions: bool,
    pub plans: bool,
    pub elicitations: bool,
}

/// Place of a hosted session, before it is composed: the composition needs its listeners and hooks.
pub struct Seat {
    hub: Arc<ServerHub>,
    id: SessionId,
    audience: Arc<Audience>,
}

impl Seat {
    pub fn new(hub: &Arc<ServerHub>, id: SessionId) -> Self {
        let audience = Arc::new(Audience::hosted(id.as_str(), hub));
        Self { hub: Arc::clone(hub), id, audience }
    }

    /// Listeners of the session. Each composition of the session takes one.
    pub fn sink(&self) -> Box<dyn EventSink> {
        Box::new(Broadcast(Arc::clone(&self.audience)))
    }

    /// Hooks that extensions bring.
    pub fn hooks(&self) -> Arc<dyn Hooks> {
        Arc::new(ClientHooks(Arc::clone(&self.audience)))
    }

    /// The session in its seat.
    pub fn host(
        &self,
        engine: Engine,
        surroundings: SessionSurroundings,
        spec: SessionSpec,
        abilities: HostAbilities,
    ) -> HostedSession {
        let store = self.hub.store_of(&spec);
        let dir = SessionDir::local(store.session_dir(&self.id));
        let place = SessionPlace { dir, client_files: None, store };
        let (live, jobs) =
            ServedSession::new(self.id.clone(), place, &self.audience, Arc::new(PendingCalls::default()));
        self.audience.set_began(&engine.session().state().started);
        let mut task = SessionTask::new(engine, surroundings, jobs, spec, Arc::clone(&self.audience), None);
        task.host = abilities;
        task.restore_schedules((self.hub.config().now)());
        task.refresh();
        self.hub.add(&live);
        HostedSession { hub: Arc::clone(&self.hub), live, task }
    }
}

/// A session that its owner drives with [`HostedSession::next`]. Its extensions end when it is dropped.
pub struct HostedSession {
    hub: Arc<ServerHub>,
    live: Arc<ServedSession>,
    task: SessionTask,
}

impl HostedSession {
    pub fn engine(&self) -> &Engine {
        &self.task.engine
    }

    pub fn engine_mut(&mut self) -> &mut Engine {
        &mut self.task.engine
    }

    /// Starts the extensions. Requires that the session has begun; their requests are served by [`HostedSession::next`].
    pub fn start_extensions(&self) {
        if self.live.extensions.turn_on() {
            let (hub, live) = (Arc::clone(&self.hub), Arc::clone(&self.live));
            tokio::spawn(FutureExt::boxed(async move { extensions::begin(&hub, &live).await }));
        }
    }

    /// Waits until each extension has joined or failed, for a while.
    pub fn extensions_ready(&self) -> impl Future<Output = ()> + Send + use<> {
        let live = Arc::clone(&self.live);
        async move { live.extensions.ready().await }
    }

    /// Waits for the next thing to happen and takes it, be it in the session or a request of an extension. Dropping the
    /// future loses nothing.
    pub async fn next(&mut self) -> Result<EngineProgress, LogError> {
        let progress = tokio::select! {
            biased;
            Some(job) = self.task.jobs.recv() => {
                job(&mut self.task);
                EngineProgress::Moved
            }
            progress = self.task.engine.next() => progress?,
        };
        self.task.settle_choices();
        Ok(if self.task.is_ending() { EngineProgress::Closed } else { progress })
    }

    /// Submits typed text: a slash command of the session or of an extension, or a prompt.
    pub fn submit(&mut self, prompt: Prompt) -> Result<(), LogError> {
        let Some((name, args)) = self.command_in(&prompt.text) else {
            return self.task.engine.submit(prompt);
        };
        let live = Arc::clone(&self.live);
        self.task.engine.reply_later(Box::pin(async move {
            let refused = |why: String| CommandRefusal(format!("/{name} failed: {why}"));
            match methods::carry_out_command(&live, &name, args).await {
                Ok(CommandEnd::Done) => Ok(CommandReply::Done(None)),
                Ok(CommandEnd::Failed(error)) => Err(refused(error)),
                Ok(CommandEnd::Unknown) => Err(refused("its extension is gone".to_owned())),
                Err(failure) => Err(refused(failure.into_message())),
            }
        }));
        Ok(())
    }

    /// Name and arguments of an extension's command, if that is what a text is. The session's own come first.
    fn command_in(&self, text: &str) -> Option<(String, String)> {
        let words = text.trim().strip_prefix('/')?;
        let (name, args) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let mut brought = self.task.client_commands().iter().map(|command| &command.name);
        let brought = brought.find(|known| known.eq_ignore_ascii_case(name)).cloned();
        brought.filter(|_| commands::find(name).is_none()).map(|name| (name, args.trim().to_owned()))
    }

    /// Permission questions that are about no call of the model, such as those of extensions that join.
    pub fn pending_permissions(&self) -> Vec<PendingPermission> {
        self.task.asked.pending().cloned().collect()
    }

    /// Answers one of these questions.
    pub fn answer(&mut self, asked: &PendingPermission, answer: PermissionOutcome) {
        methods::answer_outside(&mut self.task, asked, answer);
    }

    /// Ends the extensions and waits for that.
    pub fn stop_extensions(&self) -> impl Future<Output = ()> + Send + use<> {
        let live = Arc::clone(&self.live);
        async move { live.extensions.stop_all().await }
    }
}

impl Drop for HostedSession {
    fn drop(&mut self) {
        self.hub.forget(&self.live);
    }
}
