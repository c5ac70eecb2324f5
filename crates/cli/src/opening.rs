//! Opens sessions of our own agent for every front end of this program: what is wanted, composed, in the engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use hangar_agent::driver::EventSink;
use hangar_agent::model::ModelProvider;
use hangar_agent::session::{AnswerableQuestions, Command, Input};
use hangar_engine::commands::Refusal;
use hangar_engine::{
    Composer, DEFAULT_TASK_WAIT, Engine, Naming, Options, Parts, ServerStart, SessionRecord,
};
use hangar_files::LocalFiles;
use hangar_mcp::Interest;
use hangar_protocol::Body;
use hangar_protocol::data::Mode;
use hangar_store::{SessionId, Store};

use crate::args::RunArgs;
use crate::compose::{self, Composed, Plan};
use crate::output::remark;
use crate::plan;
use crate::providers::{self, Chosen, Wanted};
use crate::redact;
use crate::sdk_server::instructions;
use crate::selection::Selection;
use crate::settings::Settings;

/// A session of our own agent, as it is wanted.
pub(crate) struct SessionOrder {
    pub(crate) args: Arc<RunArgs>,
    pub(crate) selection: Selection,
    /// Where to work; without it where the session worked before, or here.
    pub(crate) directory: Option<PathBuf>,
    /// Instructions of the host, in the system prompt.
    pub(crate) system: Option<String>,
    /// The prompt that names a new session when it is made. Without it the first prompt names it later.
    pub(crate) named_after: Option<String>,
    pub(crate) resumed: Resumed,
    pub(crate) questions: Questions,
    /// The client that the session is for, and what it brings.
    pub(crate) client: Option<ClientOrder>,
    /// What is on record right behind the session's beginning.
    pub(crate) records: Vec<Body>,
    /// Whether people are told on stderr that no real model answers.
    pub(crate) notes_script: bool,
}

/// A client of the session and the MCP servers that it brings, by their names, as configuration files write them.
pub(crate) struct ClientOrder {
    pub(crate) name: &'static str,
    pub(crate) mcp_servers: serde_json::Map<String, serde_json::Value>,
}

/// Makes the sink of a session, each time that it is composed.
pub(crate) type SinkFactory = Box<dyn Fn() -> Box<dyn EventSink> + Send + Sync>;

/// The model and the mode of a session that is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resumed {
    /// Those that it had, unless the flags name others.
    AsItWas,
    /// Those that a new session would have.
    AsNew,
}

/// Who answers what the session asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Questions {
    /// Nobody: what no rule allows is refused.
    Nobody,
    /// Whoever listens, without a person.
    Listener,
    /// A person, who is shown plans and forms too.
    Person,
    /// A client that can answer permissions and nothing else.
    Permissions,
}

impl SessionOrder {
    fn choose(&self, settings: &Settings, model: Option<&str>) -> Result<Chosen> {
        let (record, replay) = (self.args.record.as_deref(), self.args.replay.as_deref());
        providers::choose(settings, Wanted { model, record, replay, ..Wanted::default() })
    }
}

/// A session that is open, with nothing in it yet.
pub(crate) struct OpenSession {
    pub(crate) engine: Engine,
    pub(crate) id: SessionId,
    pub(crate) cwd: PathBuf,
    pub(crate) store: Store,
}

/// Opens a session. `naming` is what the first prompt does to a session that has no name yet.
pub(crate) fn open(
    settings: Settings,
    wanted: SessionOrder,
    servers: ServerStart,
    naming: Naming,
    sink: SinkFactory,
) -> Result<OpenSession> {
    let naming = match &wanted.selection {
        Selection::New { name: None, .. } if wanted.named_after.is_none() => naming,
        Selection::New { .. } => Naming::Named,
        Selection::Resume(id) => {
            let listed = Store::new(&settings.home).look(id);
            if listed.is_some_and(|listed| listed.meta.name.is_none()) { naming } else { Naming::Named }
        }
    };
    let options = Options {
        servers,
        naming,
        task_wait: task_wait(&settings)?,
        features: settings.features()?,
        ..Options::default()
    };
    let composing = Composing { settings, wanted, sink };
    let composed = composing.compose(None)?;
    let (id, cwd, store) = (composed.id.clone(), composed.cwd.clone(), composed.store.clone());
    let parts = composing.parts(composed);
    let composer = OwnComposer { composing, id: id.clone(), store: store.clone() };
    Ok(OpenSession { engine: Engine::new(parts, options, Arc::new(composer)), id, cwd, store })
}

/// How long a prompt waits for the end of what it left in the background.
pub(crate) fn task_wait(settings: &Settings) -> Result<Duration> {
    let seconds = settings.number("COPILOT_TASK_WAIT_TIMEOUT_SECONDS")?;
    Ok(seconds.map_or(DEFAULT_TASK_WAIT, Duration::from_secs))
}

/// What a session is composed from, as often as that is wanted.
struct Composing {
    settings: Settings,
    wanted: SessionOrder,
    sink: SinkFactory,
}

/// A new composition of a session that is open.
struct Again<'a> {
    id: &'a SessionId,
    directory: &'a Path,
}

impl Composing {
    fn compose(&self, again: Option<Again<'_>>) -> Result<Composed> {
        let Self { settings, wanted, sink } = self;
        let keeps = again.is_some() || wanted.resumed == Resumed::AsItWas;
        let choose = |before: Option<&str>| {
            let typed = wanted.args.model.as_deref();
            let model = match again {
                // It may have been switched since.
                Some(_) => before.or(typed),
                None => typed.or(before.filter(|_| keeps)),
            };
            let chosen = wanted.choose(settings, model)?;
            if chosen.scripted && wanted.notes_script && again.is_none() {
                remark("note: the scripted model answers; no real model is asked");
            }
            Ok(chosen)
        };
        let usual = plan::of_run(settings, &wanted.args, "", &choose, sink())?;
        let mut servers = usual.mcp;
        if let (Some(servers), Some(client)) = (&mut servers, &wanted.client) {
            servers.client.extend(client.mcp_servers.clone());
        }
        let usual = Plan {
            further_instructions: wanted.system.clone().filter(|system| !system.is_empty()),
            prompt: wanted.named_after.clone(),
            client_name: wanted.client.as_ref().map(|client| client.name.to_owned()),
            // Clients show how full the context is.
            metered: usual.metered || wanted.client.is_some(),
            mcp: servers,
            ..usual
        };
        let plan = match &again {
            Some(Again { id, directory }) => Plan {
                selection: Selection::Resume((*id).clone()),
                directory: Some(directory.to_path_buf()),
                mode: None,
                effort: None,
                silent_resume: true,
                ..usual
            },
            None => {
                let resumes = matches!(wanted.selection, Selection::Resume(_));
                Plan {
                    selection: wanted.selection.clone(),
                    directory: wanted.directory.clone(),
                    // A session that is gone on with stays in its mode, unless the flags name another.
                    mode: usual.mode.filter(|mode| !(resumes && keeps) || *mode != Mode::Interactive),
                    ..usual
                }
            }
        };
        let mut composed = compose::session(settings, plan)?;
        if again.is_none() {
            let records = wanted.records.iter().cloned();
            composed.opening.extend(records.map(|body| Input::Command(Command::Record(body))));
        }
        Ok(composed)
    }

    /// What the engine takes of a composition.
    fn parts(&self, composed: Composed) -> Parts {
        let mut driver = composed.driver;
        let questions = self.wanted.questions;
        let session = driver.session_mut();
        let hooks = session.config().client_hooks;
        match questions {
            Questions::Nobody => {}
            Questions::Permissions => session.set_reachable(true, false, hooks),
            Questions::Listener | Questions::Person => {
                session.set_reachable(true, true, hooks);
                let plans = questions == Questions::Person;
                session.set_answerable_questions(AnswerableQuestions { plans, switches: false });
            }
        }
        if let Some((host, _)) = &composed.mcp {
            host.set_interest(Interest::Elicitation, questions == Questions::Person);
        }
        Parts {
            driver,
            opening: composed.opening,
            mcp: composed.mcp,
            filter: plan::filter(&self.wanted.args),
            skills: composed.skills,
            background: Arc::new(composed.shells),
            directory: composed.cwd,
            sandboxed: composed.sandbox.is_some(),
        }
    }
}

struct OwnComposer {
    composing: Composing,
    id: SessionId,
    store: Store,
}

fn refused(error: anyhow::Error) -> Refusal {
    Refusal(format!("{error:#}"))
}

impl Composer for OwnComposer {
    fn provider(&self, model: &str) -> Result<Arc<dyn ModelProvider>, Refusal> {
        let Composing { settings, wanted, .. } = &self.composing;
        let chosen = wanted.choose(settings, Some(model)).map_err(refused)?;
        let redactor = redact::of_session(settings, &wanted.args.secret_env_vars, &[], &chosen);
        Ok(redactor.provider(chosen.provider))
    }

    fn recompose(&self, directory: &Path) -> Result<Parts, Refusal> {
        let composed = self.composing.compose(Some(Again { id: &self.id, directory })).map_err(refused)?;
        Ok(self.composing.parts(composed))
    }

    fn instruction_files(&self, directory: &Path) -> Vec<String> {
        instruction_files(&self.composing.settings, &self.composing.wanted.args, directory)
    }

    fn record(&self) -> Result<SessionRecord, Refusal> {
        record(&self.store, &self.id)
    }
}

/// The files of custom instructions that a session in a directory is told.
fn instruction_files(settings: &Settings, args: &RunArgs, directory: &Path) -> Vec<String> {
    if args.no_custom_instructions {
        return Vec::new();
    }
    // A directory that is gone has none.
    let found = instructions::sources(settings, Some(directory), &[]).unwrap_or_default();
    found.into_iter().map(|source| source.source_path).collect()
}

/// A session of the store, for commands that look at it.
fn record(store: &Store, id: &SessionId) -> Result<SessionRecord, Refusal> {
    let failed = |error| Refusal(format!("the folder of session {id} cannot be read: {error}"));
    let files = Arc::new(LocalFiles::held(store.folder(id).map_err(failed)?));
    let name = store.look(id).and_then(|listed| listed.meta.name).map(|name| name.as_str().to_owned());
    Ok(SessionRecord { id: id.to_string(), name, files })
}
