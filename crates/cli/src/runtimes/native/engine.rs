//! Engine of a session of our own agent: alone, or in the seat of a server whose clients are the session's extensions.

use std::ops::{Deref, DerefMut};

use anyhow::Result;
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hangar_agent::log::LogError;
use hangar_agent::session::{PendingPermission, Prompt};
use hangar_engine::{Engine, EngineProgress, Naming, ServerStart};
use hangar_protocol::permission::PermissionOutcome;
use hangar_server::HostedSession;

use crate::opening::{self, OpenedEngine, SessionOrder, SinkFactory};
use crate::sdk_server;
use crate::settings::Settings;

pub(super) enum NativeEngine {
    Alone(Box<Engine>),
    Hosted(Box<HostedSession>),
}

impl NativeEngine {
    /// Opens a session. Extensions join it where they are on.
    pub(super) fn open(
        settings: Settings,
        order: SessionOrder,
        sink: SinkFactory,
    ) -> Result<OpenedEngine<Self>> {
        let Some(hosting) = sdk_server::hosting(&settings, &order.args)? else {
            let opened = opening::open(settings, order, ServerStart::BeforeOpening, Naming::Quiet, sink)?;
            return Ok(opened.map(|engine| Self::Alone(Box::new(engine))));
        };
        let opened = opening::open_hosted(settings, order, &hosting, Naming::Quiet, sink)?;
        Ok(opened.map(|engine| Self::Hosted(Box::new(engine))))
    }

    /// Waits for the next thing to happen and takes it. Dropping the future loses nothing.
    pub(super) async fn next(&mut self) -> Result<EngineProgress, LogError> {
        match self {
            Self::Alone(engine) => engine.next().await,
            Self::Hosted(hosted) => hosted.next().await,
        }
    }

    /// The same while no turn is running: only extensions make something happen then.
    pub(super) async fn next_between_turns(&mut self) -> Result<EngineProgress, LogError> {
        match self {
            Self::Alone(_) => std::future::pending().await,
            Self::Hosted(hosted) => hosted.next().await,
        }
    }

    /// Submits typed text: a slash command, or a prompt.
    pub(super) fn submit_typed(&mut self, prompt: Prompt) -> Result<(), LogError> {
        match self {
            Self::Alone(engine) => engine.submit(prompt),
            Self::Hosted(hosted) => hosted.submit(prompt),
        }
    }

    pub(super) fn start_extensions(&self) {
        if let Self::Hosted(hosted) = self {
            hosted.start_extensions();
        }
    }

    /// Wait for the extensions that are starting, if the session has extensions.
    pub(super) fn extensions_ready(&self) -> Option<BoxFuture<'static, ()>> {
        match self {
            Self::Alone(_) => None,
            Self::Hosted(hosted) => Some(hosted.extensions_ready().boxed()),
        }
    }

    /// Ends the extensions and waits for that.
    pub(super) fn stop_extensions(&self) -> BoxFuture<'static, ()> {
        match self {
            Self::Alone(_) => std::future::ready(()).boxed(),
            Self::Hosted(hosted) => hosted.stop_extensions().boxed(),
        }
    }

    /// Permission questions of the model's calls and of extensions.
    pub(super) fn pending_permissions(&self) -> Vec<PendingPermission> {
        let mut pending = self.driver().pending_permissions();
        if let Self::Hosted(hosted) = self {
            pending.extend(hosted.pending_permissions());
        }
        pending
    }

    /// Answers a question that is about no call of the model. Returns the answer if it is about one.
    pub(super) fn answer_outside(
        &mut self,
        asked: &PendingPermission,
        answer: PermissionOutcome,
    ) -> Option<PermissionOutcome> {
        match self {
            Self::Hosted(hosted)
                if hosted.pending_permissions().iter().any(|own| own.request_id == asked.request_id) =>
            {
                hosted.answer(asked, answer);
                None
            }
            Self::Alone(_) | Self::Hosted(_) => Some(answer),
        }
    }
}

impl Deref for NativeEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        match self {
            Self::Alone(engine) => engine,
            Self::Hosted(hosted) => hosted.engine(),
        }
    }
}

impl DerefMut for NativeEngine {
    fn deref_mut(&mut self) -> &mut Engine {
        match self {
            Self::Alone(engine) => engine,
            Self::Hosted(hosted) => hosted.engine_mut(),
        }
    }
}
