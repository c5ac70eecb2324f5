//! Any agent of the Agent Client Protocol: one process that serves all sessions.

mod connection;
mod permission;
mod servers;
mod session;

use std::path::PathBuf;
use std::sync::{Arc, Weak};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hangar_peer::PeerError;
use hangar_process::credentials::Child;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};
use tokio::time::Instant;

use crate::agents::{copilot, mcp_servers};
use crate::capabilities::{Capabilities, unmet};
use crate::cli_runtime::{COMMAND_QUEUE, NEWS_QUEUE, check_workspace, refusal, snapshot, tree_probe};
use crate::environment::RuntimeEnvironment;
use crate::event_emitter::EventEmitter;
use crate::host::{Host, NO_WORKSPACE};
use crate::outcome::{ErrorKind, Evidence, ReportedError, TurnFailure};
use crate::program_query::{NO_SUCH_PROGRAM, ProbeHost};
use crate::resolution::{Located, ProgramQuestions, Resolution};
use crate::runtime::{
    AgentCard, AgentOrder, AgentSession, LoginState, Lookup, OfferedModel, Preflight, RehearsalStage, Runtime,
};
use crate::turn::until;
use connection::{AgentConnection, Launch};
use servers::ServerReach;
use session::AcpSession;

/// The version of the protocol that is spoken.
const PROTOCOL_VERSION: u32 = 1;

pub struct AcpRuntime {
    card: AgentCard,
    shared: Arc<AcpShared>,
}

struct AcpShared {
    program: String,
    args: Vec<String>,
    runtime_env: Arc<RuntimeEnvironment>,
    current: Mutex<CurrentProcess>,
}

/// The process that serves new sessions, as long as any session holds it.
#[derive(Default)]
struct CurrentProcess {
    connection: Weak<AgentProcess>,
    /// Host and variables of the process. A session with another host or other variables needs another process.
    made_for: Option<(Host, Vec<(String, String)>)>,
}

/// Process of an agent, with the capabilities that it announced.
struct AgentProcess {
    connection: AgentConnection,
    loads: bool,
    reach: ServerReach,
}

impl AcpRuntime {
    pub fn new(name: &str, program: &str, args: Vec<String>, runtime_env: &RuntimeEnvironment) -> Self {
        let capabilities = Capabilities {
            streaming: true,
            permission_callbacks: true,
            mcp_config: true,
            shared_process: true,
            ..Capabilities::in_a_process()
        };
        let card = AgentCard {
            name: name.to_owned().into(),
            label: format!("{name} (Agent Client Protocol)").into(),
            runtime: None,
            capabilities,
            install: format!("put `{program}` on the path").into(),
            shell_tool: None,
        };
        let runtime_env = Arc::new(runtime_env.seen_by(Child::AcpAgent));
        let shared = AcpShared { program: program.to_owned(), args, runtime_env, current: Mutex::default() };
        Self { card, shared: Arc::new(shared) }
    }
}

impl Runtime for AcpRuntime {
    fn card(&self) -> &AgentCard {
        &self.card
    }

    fn preflight(&self) -> BoxFuture<'static, Preflight> {
        let shared = Arc::clone(&self.shared);
        let AgentCard { name, install, .. } = self.card.clone();
        Box::pin(async move {
            let settings = shared.runtime_env.settings(&name);
            let (host, program) = match &settings.host {
                Host::Local => (None, shared.locate()),
                Host::Ssh(ssh) => (Some(ssh.target.clone()), Some(shared.program.clone().into())),
            };
            let Some(program) = program else {
                let problem = format!("`{}` is not installed: {install}", shared.program);
                return Preflight { problems: vec![problem], ..Preflight::default() };
            };
            let questions = ProgramQuestions { name: &name, help: &["--help"], named: Vec::new() };
            let runtime_env = match settings.host {
                Host::Local => shared.runtime_env.with(&settings.env),
                Host::Ssh(_) => (*shared.runtime_env).clone(),
            };
            let place = ProbeHost { host: &settings.host, runtime_env: &runtime_env, env: &settings.env };
            let known = Resolution::ask(Located::program(&program), &questions, &place).await;
            if let Some(problem) = known.absent {
                return Preflight { problems: vec![problem], host, ..Preflight::default() };
            }
            Preflight {
                program: Some(program),
                host,
                version: known.version,
                help_hash: known.help_hash,
                auth: LoginState::Unknown,
                ..Preflight::default()
            }
        })
    }

    fn models(&self, _: Lookup) -> BoxFuture<'static, Option<Vec<OfferedModel>>> {
        Box::pin(std::future::ready(None))
    }

    fn open(&self, order: AgentOrder) -> BoxFuture<'static, Result<AgentSession, TurnFailure>> {
        let shared = Arc::clone(&self.shared);
        let card = self.card.clone();
        Box::pin(async move {
            if order.host == Host::Local {
                check_workspace(&order.workspace)?;
            }
            let agent = shared.agent(&order).await?;
            let tree = snapshot(&order, &shared.runtime_env).await;
            let (servers, lacking) = servers::offered(mcp_servers(order.mcp_config.as_deref()), agent.reach);
            let agent_session = open_session(&agent, &order, &servers).await?;
            let incoming = agent.connection.subscribe(&agent_session);
            let (commands, inbox) = mpsc::channel(COMMAND_QUEUE);
            let (outbox, news) = mpsc::channel(NEWS_QUEUE);
            let emitter = EventEmitter::new(outbox, Arc::clone(&shared.runtime_env), &card, &order);
            let mut warnings = unmet(&card, &order);
            warnings.extend(lacking);
            let probe = tree_probe(&order, &shared.runtime_env);
            let session = AcpSession::new(agent, agent_session, order, emitter, incoming, probe);
            let owner = tokio::spawn(FutureExt::boxed(session.run(inbox, warnings))).abort_handle();
            Ok(AgentSession::new(commands, news, owner).on(tree))
        })
    }

    fn rehearse(&self, order: &mut AgentOrder, stage: &RehearsalStage) {
        // How an agent is told where its model is, the protocol does not say. These are understood by some.
        order.env.extend(copilot::rehearsal(stage));
        order.env.push(("ANTHROPIC_BASE_URL".to_owned(), stage.model_url.clone()));
        order.env.push(("ANTHROPIC_API_KEY".to_owned(), "rehearsal".to_owned()));
    }
}

impl AcpShared {
    fn locate(&self) -> Option<PathBuf> {
        self.runtime_env.find(&self.program)
    }

    /// The process that serves sessions like this one, started if there is none.
    async fn agent(&self, order: &AgentOrder) -> Result<Arc<AgentProcess>, TurnFailure> {
        let mut current = self.current.lock().await;
        if let Some(agent) = current.connection.upgrade()
            && current.made_for.as_ref().is_some_and(|(host, env)| *host == order.host && *env == order.env)
            && agent.connection.is_open()
        {
            return Ok(agent);
        }
        let program = match order.host {
            Host::Local => self.locate().map(|program| program.display().to_string()),
            // Only the remote side knows the path there.
            Host::Ssh(_) => Some(self.program.clone()),
        };
        let program = program.ok_or_else(|| {
            refusal(ErrorKind::AgentNotFound, format!("`{}` is not installed", self.program))
        })?;
        let environment = match order.host {
            Host::Local => self.runtime_env.vars.clone(),
            Host::Ssh(_) => self.runtime_env.environment(Child::Helper),
        };
        let launch = Launch {
            host: &order.host,
            environment: &environment,
            program: &program,
            args: &self.args,
            env: &order.env,
            cwd: &order.workspace,
        };
        let connection = AgentConnection::start(&launch).map_err(|error| {
            refusal(ErrorKind::PortExit, format!("`{program}` could not be started: {error}"))
        })?;
        let hello = json!({
            "protocolVersion": PROTOCOL_VERSION,
            "clientCapabilities": { "fs": { "readTextFile": false, "writeTextFile": false }, "terminal": false },
            "clientInfo": { "name": "hangar", "version": env!("CARGO_PKG_VERSION") },
        });
        let answer = ask(&connection, order, "initialize", &hello).await?;
        let loads = answer["agentCapabilities"]["loadSession"].as_bool().unwrap_or(false);
        let agent = Arc::new(AgentProcess { connection, loads, reach: ServerReach::of(&answer) });
        let made_for = Some((order.host.clone(), order.env.clone()));
        *current = CurrentProcess { connection: Arc::downgrade(&agent), made_for };
        Ok(agent)
    }
}

/// Opens or loads a session of the agent; returns the agent's name for it.
async fn open_session(
    agent: &AgentProcess,
    order: &AgentOrder,
    servers: &[Value],
) -> Result<String, TurnFailure> {
    let connection = &agent.connection;
    let mut params = json!({ "cwd": order.workspace, "mcpServers": servers });
    let before = order.resume.as_ref().and_then(|resume| resume.agent_session.clone());
    let id = match before {
        Some(id) if agent.loads => {
            params["sessionId"] = id.clone().into();
            ask(connection, order, "session/load", &params).await?;
            id
        }
        Some(_) => {
            return Err(refusal(
                ErrorKind::TurnFailed,
                "the agent cannot go on with earlier sessions".to_owned(),
            ));
        }
        None => {
            let answer = ask(connection, order, "session/new", &params).await?;
            let id = answer["sessionId"].as_str().map(str::to_owned);
            id.ok_or_else(|| {
                refusal(ErrorKind::ResponseError, "the agent gave the session no name".to_owned())
            })?
        }
    };
    if let Some(model) = &order.model {
        ask(connection, order, "session/set_model", &json!({ "sessionId": id, "modelId": model })).await?;
    }
    Ok(id)
}

/// Asks something that needs no model.
async fn ask(
    connection: &AgentConnection,
    order: &AgentOrder,
    method: &str,
    params: &Value,
) -> Result<Value, TurnFailure> {
    let limit = order.limits.startup;
    tokio::select! {
        answer = connection.request(method, params) => {
            answer.map_err(|error| failure(connection, error, &format!("`{method}` failed")))
        }
        () = until(limit.map(|limit| Instant::now() + limit)) => {
            let seconds = limit.unwrap_or_default().as_secs();
            let message = format!("the agent did not answer `{method}` within {seconds} s");
            Err(refusal(ErrorKind::ResponseTimeout, message))
        }
    }
}

/// Converts an error of the protocol into a complaint.
fn reported_error(error: &hangar_protocol::rpc::ErrorObject) -> ReportedError {
    let data = error.data.as_ref();
    let detail = data.and_then(|data| {
        data["details"].as_str().or_else(|| data["message"].as_str()).or_else(|| data.as_str())
    });
    ReportedError {
        message: detail.unwrap_or(&error.message).to_owned(),
        status_code: data.and_then(|data| data["statusCode"].as_u64()).and_then(|code| code.try_into().ok()),
        // The protocol has a code of its own for a login that is missing.
        code: Some(if error.code == -32000 {
            "authentication_required".to_owned()
        } else {
            error.code.to_string()
        }),
    }
}

fn failure(connection: &AgentConnection, error: PeerError, what: &str) -> TurnFailure {
    match error {
        PeerError::Refused(error) => {
            let reported_error = reported_error(&error);
            TurnFailure {
                kind: reported_error.kind().unwrap_or(ErrorKind::TurnFailed),
                message: format!("{what}: {}", reported_error.message),
                evidence: Evidence {
                    code: reported_error.code,
                    status_code: reported_error.status_code,
                    ..Evidence::default()
                },
            }
        }
        PeerError::Gone if connection.exit() == Some(NO_SUCH_PROGRAM) => TurnFailure {
            kind: ErrorKind::AgentNotFound,
            message: format!("{what}: the agent's program was not found"),
            evidence: Evidence { stderr: connection.stderr(), ..Evidence::default() },
        },
        PeerError::Gone if connection.exit() == Some(NO_WORKSPACE) => refusal(
            ErrorKind::InvalidWorkspace,
            format!("{what}: the working directory is not there on the remote host"),
        ),
        PeerError::Unexpected(error) => {
            refusal(ErrorKind::ResponseError, format!("{what}: the answer is not as expected: {error}"))
        }
        PeerError::Gone => TurnFailure {
            kind: ErrorKind::PortExit,
            message: format!("{what}: the agent ended"),
            evidence: Evidence { stderr: connection.stderr(), ..Evidence::default() },
        },
    }
}
