//! Opens sessions of our own agent for every front end of this program: composes the order and puts it into the engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use hangar_agent::driver::EventSink;
use hangar_agent::session::{AnswerableQuestions, ClientAbilities, Command, SessionInput};
use hangar_engine::commands::CommandRefusal;
use hangar_engine::{
    BackgroundWork, DEFAULT_TASK_WAIT, Engine, EngineParts, Naming, Options, ServerStart, SessionComposer,
    SessionRecord, SwitchedModel,
};
use hangar_files::LocalFiles;
use hangar_mcp::Interest;
use hangar_protocol::data::{Attachment, Mode};
use hangar_protocol::{Body, Event};
use hangar_server::{HostAbilities, HostedSession, OpenedSession, Seat};
use hangar_spec::{ModelOptions, SessionSpec};
use hangar_store::{SessionId, Store};

use crate::args::RunArgs;
use crate::compose::{self, HostSettings, Opened, OutputFile, SessionRequest};
use crate::flags;
use crate::output::remark;
use crate::sdk_server::{Hosting, instructions};
use crate::selection::SessionSelection;
use crate::settings::Settings;

/// Order for a session of our own agent.
pub(crate) struct SessionOrder {
    pub(crate) args: Arc<RunArgs>,
    pub(crate) selection: SessionSelection,
    /// Working directory; by default that of the resumed session, or the current one.
    pub(crate) directory: Option<PathBuf>,
    /// Instructions of the host, in the system prompt.
    pub(crate) system: Option<String>,
    /// Prompt that names a new session when it is created. Without it, the first prompt names it later.
    pub(crate) named_after: Option<String>,
    /// Files that go with the first prompt.
    pub(crate) attachments: Vec<PathBuf>,
    /// Files that the caller writes when the session has ended.
    pub(crate) outputs: Vec<OutputFile>,
    pub(crate) resumed: Resumed,
    pub(crate) questions: Questions,
    /// The client that the session is for, and what it brings.
    pub(crate) client: Option<ClientOrder>,
    /// Events that are logged right after the first event of the session.
    pub(crate) records: Vec<Body>,
    /// Whether stderr says that the scripted model answers.
    pub(crate) notes_script: bool,
    /// Whether the session is work of the queue, which decides about retries of a refused login.
    pub(crate) is_queued: bool,
}

/// A client of the session and the MCP servers that it brings, by their names, as configuration files write them.
pub(crate) struct ClientOrder {
    pub(crate) name: &'static str,
    pub(crate) mcp_servers: serde_json::Map<String, serde_json::Value>,
}

/// Makes the sink of a session, each time that it is composed.
pub(crate) type SinkFactory = Box<dyn Fn() -> Box<dyn EventSink> + Send + Sync>;

/// The mode of a session that is resumed, and its model where the environment names one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resumed {
    /// The earlier ones, unless the flags name others.
    AsItWas,
    /// Those of a new session.
    AsNew,
}

/// Recipient of the questions that a session asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Questions {
    /// Nobody: what no rule allows is refused.
    Nobody,
    /// A listener that is a program.
    Listener,
    /// A person, who is shown plans and forms too.
    Person,
    /// A client that can answer permissions and nothing else.
    Permissions,
}

impl Questions {
    fn abilities(self) -> HostAbilities {
        let (permissions, questions, person) = match self {
            Self::Nobody => (false, false, false),
            Self::Permissions => (true, false, false),
            Self::Listener => (true, true, false),
            Self::Person => (true, true, true),
        };
        HostAbilities { permissions, questions, plans: person, elicitations: person }
    }
}

/// Open session that has no input yet, in its engine.
pub(crate) struct OpenedEngine<E = Engine> {
    pub(crate) engine: E,
    pub(crate) id: SessionId,
    pub(crate) cwd: PathBuf,
    pub(crate) store: Store,
    /// Attachments of the first prompt.
    pub(crate) attachments: Vec<Attachment>,
}

impl<E> OpenedEngine<E> {
    /// The same session in another kind of engine.
    pub(crate) fn map<F>(self, change: impl FnOnce(E) -> F) -> OpenedEngine<F> {
        let Self { engine, id, cwd, store, attachments } = self;
        OpenedEngine { engine: change(engine), id, cwd, store, attachments }
    }
}

/// Opens a session. `naming` says how the first prompt names a session that has no name yet.
pub(crate) fn open(
    settings: Settings,
    wanted: SessionOrder,
    servers: ServerStart,
    naming: Naming,
    sink: SinkFactory,
) -> Result<OpenedEngine> {
    let options = options(&settings, &wanted, servers, naming)?;
    let composing = Composing { settings, wanted, sink, seat: None };
    let mut composed = composing.compose(None)?;
    let (id, cwd, store) = (composed.id.clone(), composed.cwd.clone(), composed.store.clone());
    let attachments = std::mem::take(&mut composed.attachments);
    let parts = composing.parts(composed);
    let composer = OwnComposer { composing, id: id.clone(), store: store.clone() };
    let engine = Engine::new(parts, options, Arc::new(composer));
    Ok(OpenedEngine { engine, id, cwd, store, attachments })
}

/// Opens a session that extensions join.
pub(crate) fn open_hosted(
    settings: Settings,
    wanted: SessionOrder,
    hosting: &Hosting,
    naming: Naming,
    sink: SinkFactory,
) -> Result<OpenedEngine<HostedSession>> {
    let options = options(&settings, &wanted, ServerStart::BeforeOpening, naming)?;
    let seat = Arc::new(hosting.seat(wanted.selection.id()));
    let composing = Composing { settings, wanted, sink, seat: Some(Arc::clone(&seat)) };
    let mut composed = composing.compose(None)?;
    let (id, cwd, store) = (composed.id.clone(), composed.cwd.clone(), composed.store.clone());
    let attachments = std::mem::take(&mut composed.attachments);
    let OpenedSession { parts, surroundings } = hosting.split(composed);
    let (spec, questions) = (composing.spec(), composing.wanted.questions);
    let composer = OwnComposer { composing, id: id.clone(), store: store.clone() };
    let engine = Engine::new(parts, options, Arc::new(composer));
    let engine = seat.host(engine, surroundings, spec, questions.abilities());
    Ok(OpenedEngine { engine, id, cwd, store, attachments })
}

fn options(
    settings: &Settings,
    wanted: &SessionOrder,
    servers: ServerStart,
    naming: Naming,
) -> Result<Options> {
    let naming = match &wanted.selection {
        SessionSelection::New { name: None, .. } if wanted.named_after.is_none() => naming,
        SessionSelection::New { .. } => Naming::Named,
        SessionSelection::Resume(id) => {
            let listed = Store::new(&settings.home).look(id);
            if listed.is_some_and(|listed| listed.meta.name.is_none()) { naming } else { Naming::Named }
        }
    };
    Ok(Options {
        servers,
        naming,
        // An editor shows a prompt as busy until it ends, and stays open for what comes after it.
        waits_for: if wanted.client.is_some() { BackgroundWork::Agents } else { BackgroundWork::All },
        task_wait: task_wait(settings)?,
        features: settings.features()?,
        ..Options::default()
    })
}

/// Time limit for the background work that a prompt leaves.
pub(crate) fn task_wait(settings: &Settings) -> Result<Duration> {
    let seconds = settings.number("COPILOT_TASK_WAIT_TIMEOUT_SECONDS")?;
    Ok(seconds.map_or(DEFAULT_TASK_WAIT, Duration::from_secs))
}

/// Input from which a session is composed, once or several times.
struct Composing {
    settings: Settings,
    wanted: SessionOrder,
    sink: SinkFactory,
    /// Place of a session that extensions join.
    seat: Option<Arc<Seat>>,
}

/// Events for the session's owner, then for its extensions.
struct BothSinks(Box<dyn EventSink>, Box<dyn EventSink>);

impl EventSink for BothSinks {
    fn publish(&mut self, event: &Event) {
        self.0.publish(event);
        self.1.publish(event);
    }
}

/// Recomposition of an open session.
struct Again<'a> {
    id: &'a SessionId,
    directory: &'a Path,
}

impl Composing {
    fn host(&self) -> Result<HostSettings> {
        let Self { settings, wanted, .. } = self;
        let mut host = flags::host(settings, &wanted.args)?;
        // Clients show how full the context is.
        host.conduct.metered |= wanted.client.is_some();
        // The environment names the model of a process that runs one prompt, as a flag does.
        host.models.keeps_model = wanted.resumed == Resumed::AsItWas || !host.models.is_fixed;
        Ok(host)
    }

    fn spec(&self) -> SessionSpec {
        let wanted = &self.wanted;
        let mut spec = flags::spec(&wanted.args);
        spec.workspace.directory.clone_from(&wanted.directory);
        spec.instructions.organization = wanted.system.clone().filter(|system| !system.is_empty());
        if let Some(client) = &wanted.client {
            spec.identity.client_name = Some(client.name.to_owned());
            spec.servers.configs = Some(client.mcp_servers.clone());
        }
        spec
    }

    fn compose(&self, again: Option<Again<'_>>) -> Result<Opened> {
        let Self { settings, wanted, sink, seat } = self;
        let (mut host, mut spec) = (self.host()?, self.spec());
        let is_first = again.is_none();
        let selection = match again {
            Some(Again { id, directory }) => {
                spec.workspace.directory = Some(directory.to_path_buf());
                // The model may have been switched since, and so may the effort and the mode.
                host.models.usual = spec.model.name.take();
                (host.models.keeps_model, host.models.is_fixed) = (true, true);
                spec.model.effort = None;
                host.conduct.mode = None;
                spec.entry.silent = Some(true);
                SessionSelection::Resume(id.clone())
            }
            None => {
                let keeps = wanted.resumed == Resumed::AsItWas
                    && matches!(wanted.selection, SessionSelection::Resume(_));
                // A resumed session stays in its mode, unless the flags name another.
                host.conduct.mode = host.conduct.mode.filter(|mode| !keeps || *mode != Mode::Interactive);
                wanted.selection.clone()
            }
        };
        let request = SessionRequest {
            selection,
            spec,
            host,
            prompt: wanted.named_after.clone(),
            attachments: wanted.attachments.iter().filter(|_| is_first).cloned().collect(),
            outputs: wanted.outputs.iter().filter(|_| is_first).cloned().collect(),
            sink: match seat {
                Some(seat) => Box::new(BothSinks(sink(), seat.sink())),
                None => sink(),
            },
            hooks: seat.as_ref().map(|seat| seat.hooks()),
            client_session: None,
        };
        let checked = compose::check(settings, request)?;
        if is_first && wanted.notes_script && checked.is_scripted() {
            remark("note: the scripted model answers; no real model is asked");
        }
        let mut opened = checked.open()?;
        if is_first {
            let records = wanted.records.iter().cloned();
            opened.opening.extend(records.map(|body| SessionInput::Command(Command::Record(body))));
        }
        Ok(opened)
    }

    /// Parts of a composition that the engine takes over.
    fn parts(&self, composed: Opened) -> EngineParts {
        let mut driver = composed.driver;
        if self.wanted.is_queued {
            driver.give_up_refused_logins();
        }
        let abilities = self.wanted.questions.abilities();
        let session = driver.session_mut();
        let hooks = session.config().clients.hooks;
        let HostAbilities { permissions, questions, plans, elicitations } = abilities;
        if permissions {
            session.set_clients(ClientAbilities { permissions, questions, hooks });
        }
        if questions {
            session.set_answerable_questions(AnswerableQuestions { plans, switches: false });
        }
        if let Some((host, _)) = &composed.mcp {
            host.set_interest(Interest::Elicitation, elicitations);
        }
        EngineParts {
            driver,
            opening: composed.opening,
            mcp: composed.mcp,
            filter: composed.filter,
            skills: composed.skills,
            background: Arc::new(composed.shells),
            directory: composed.cwd,
            sandboxed: composed.sandbox.is_some(),
            fact: composed.git_state,
        }
    }
}

struct OwnComposer {
    composing: Composing,
    id: SessionId,
    store: Store,
}

fn refused(error: anyhow::Error) -> CommandRefusal {
    CommandRefusal(format!("{error:#}"))
}

impl SessionComposer for OwnComposer {
    fn provider(&self, model: &str, effort: Option<&str>) -> Result<SwitchedModel, CommandRefusal> {
        let host = self.composing.host().map_err(refused)?;
        let options = ModelOptions {
            name: Some(model.to_owned()),
            effort: effort.map(str::to_owned),
            ..self.composing.spec().model
        };
        compose::provider(&self.composing.settings, &host, &options).map_err(refused)
    }

    fn recompose(&self, directory: &Path) -> Result<EngineParts, CommandRefusal> {
        let composed = self.composing.compose(Some(Again { id: &self.id, directory })).map_err(refused)?;
        Ok(self.composing.parts(composed))
    }

    fn instruction_files(&self, directory: &Path) -> Vec<String> {
        let options = self.composing.spec().instructions;
        match options.skip {
            Some(true) => Vec::new(),
            Some(false) | None => {
                let found = instructions::sources(&self.composing.settings, &options, directory);
                found.into_iter().map(|source| source.source_path).collect()
            }
        }
    }

    fn record(&self) -> Result<SessionRecord, CommandRefusal> {
        record(&self.store, &self.id)
    }
}

/// Session of the store, for commands that show it.
fn record(store: &Store, id: &SessionId) -> Result<SessionRecord, CommandRefusal> {
    let failed = |error| CommandRefusal(format!("the folder of session {id} cannot be read: {error}"));
    let files = Arc::new(LocalFiles::held(store.folder(id).map_err(failed)?));
    let name = store.look(id).and_then(|listed| listed.meta.name).map(|name| name.as_str().to_owned());
    Ok(SessionRecord { id: id.to_string(), name, files })
}
