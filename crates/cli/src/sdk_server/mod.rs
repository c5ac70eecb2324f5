//! `hangar --server`: the server that the Copilot SDKs start.

mod access;
mod account;
mod endpoint;
mod extensions;
mod finder;
pub(crate) mod instructions;
mod models;
mod opener;
mod other_agents;
mod remote;

use std::convert::Infallible;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hangar_engine::Naming;
use hangar_server::{
    OpenedSession, OtherAgents, Presence, RemoteAccess, Seat, ServerAccess, ServerHub, ServerHubConfig,
    serve_stdio, serve_tcp,
};
use hangar_spec::SessionSpec;
use hangar_store::{SessionId, Store};
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{RunArgs, ServerArgs};
use crate::compose::Opened;
use crate::config::live::LiveConfig;
use crate::exit::Exit;
use crate::logging;
use crate::output::remark;
use crate::settings::{LoginPlaces, LoginSource, Settings};
pub(crate) use access::Admission;
use extensions::NodeExtensions;
use finder::ConfiguredPlaces;
use opener::{Front, Opener, Server};
use other_agents::ClientAgents;
use remote::PortalAccess;

/// Time that a stopped server waits for its client to close the connection.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(10);

pub(crate) fn run(settings: &Settings, server: &ServerArgs, args: RunArgs) -> Result<Exit> {
    if let Some(word) = args.compatible.named.words.first() {
        bail!("`{word}` is not a flag of the server");
    }
    logging::start(settings, &args)?;
    let mut settings = settings.clone();
    let given = server.auth_token_env.as_deref().and_then(|name| settings.var(name)).map(str::to_owned);
    if let Some(token) = &given {
        settings = settings
            .with_login(token, LoginSource::Given)
            .with_secret(server.auth_token_env.as_deref(), token);
    }
    if server.no_auto_login {
        settings.logins = LoginPlaces::Nowhere;
    }
    let admission = Admission::of(server, &settings)?;
    let (config, composer) =
        hub_config(&settings, Arc::new(args), admission.access(), given, Front::Program)?;
    // Zero is how SDKs say "never".
    let idle_timeout = server.session_idle_timeout.filter(|seconds| *seconds > 0).map(Duration::from_secs);
    let hub = ServerHub::new(ServerHubConfig { idle_timeout, ..config });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let result = runtime.block_on(async {
        tokio::select! {
            result = serve(&hub, server, &admission) => result,
            never = tell_changes(&hub, composer.config()) => match never {},
        }
    });
    // Reading standard input blocks a thread for as long as the client likes.
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

/// Hub of a terminal: its sessions are those of the flags, and a person answers their questions.
pub(crate) fn terminal_hub(
    settings: &Settings,
    args: RunArgs,
    access: ServerAccess,
    presence: Option<Box<dyn Presence>>,
) -> Result<Arc<ServerHub>> {
    let mut defaults = crate::flags::spec(&args);
    defaults.client.extensions = Some(extensions::are_on(settings)?);
    let (config, _) = hub_config(settings, Arc::new(args), access, None, Front::Person)?;
    let remote_access: Option<Box<dyn RemoteAccess>> = match presence {
        Some(_) => Some(Box::new(PortalAccess::to_announced(settings.home.clone()))),
        None => config.remote_access,
    };
    Ok(ServerHub::new(ServerHubConfig { defaults, presence, remote_access, ..config }))
}

/// Place of a session that this program drives itself. `None` where extensions are off: nobody joins such a session.
pub(crate) fn hosting(settings: &Settings, args: &Arc<RunArgs>) -> Result<Option<Hosting>> {
    if !extensions::are_on(settings)? {
        return Ok(None);
    }
    let (config, _) = hub_config(settings, Arc::clone(args), ServerAccess::Owner, None, Front::Person)?;
    let hub = ServerHub::new(ServerHubConfig { remote_access: None, ..config });
    let opener = Opener::new(settings.clone(), None, Arc::clone(args), Front::Person)?;
    Ok(Some(Hosting { hub, opener }))
}

/// Hub of one session that this program drives itself.
pub(crate) struct Hosting {
    hub: Arc<ServerHub>,
    opener: Opener,
}

impl Hosting {
    pub(crate) fn seat(&self, id: &SessionId) -> Seat {
        Seat::new(&self.hub, id.clone())
    }

    /// A composed session, in the parts that its owner drives and those that extensions see.
    pub(crate) fn split(&self, opened: Opened) -> OpenedSession {
        self.opener.split(opened)
    }
}

/// Configuration of a hub, and the state that its sessions share.
fn hub_config(
    settings: &Settings,
    args: Arc<RunArgs>,
    access: ServerAccess,
    given: Option<String>,
    front: Front,
) -> Result<(ServerHubConfig, Arc<Server>)> {
    let finder = Box::new(ConfiguredPlaces::new(settings.clone(), &args));
    let extensions = Box::new(NodeExtensions::new(settings.clone(), &args, front));
    let opener = Opener::new(settings.clone(), given, args, front)?;
    let other_agents: Option<Box<dyn OtherAgents>> = match front {
        Front::Program => Some(Box::new(ClientAgents::new(Arc::clone(opener.server())))),
        // The terminal has a server of its own for them.
        Front::Person => None,
    };
    let composer = Arc::clone(opener.server());
    let config = ServerHubConfig {
        store: Store::new(&settings.home),
        access,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        directory: std::env::current_dir().context("the working directory cannot be read")?,
        git: crate::credentials::git(),
        now: jiff::Timestamp::now,
        features: settings.features()?,
        defaults: SessionSpec::default(),
        // SDK clients get the title that the reference gives, a person one that a model made.
        naming: match front {
            Front::Person => Naming::Titled,
            Front::Program => Naming::Announced,
        },
        task_wait: crate::opening::task_wait(settings)?,
        idle_timeout: None,
        farewell: crate::telemetry::finish,
        presence: None,
        remote_access: Some(Box::new(PortalAccess::new(settings.home.clone()))),
        extensions: Some(extensions),
        other_agents,
        finder,
        account: Box::new(opener.clone()),
        opener: Box::new(opener),
    };
    Ok((config, composer))
}

/// Tells sessions under way of changes of the configuration, which they do not follow.
async fn tell_changes(hub: &ServerHub, config: &LiveConfig) -> Infallible {
    loop {
        let change = config.changed().await;
        hub.record_in_all(&change.event()).await;
    }
}

async fn serve(hub: &Arc<ServerHub>, server: &ServerArgs, admission: &Admission) -> Result<Exit> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
    let serving = async {
        if server.stdio {
            serve_stdio(hub).await;
            return Ok(());
        }
        let host = server.host.as_deref().unwrap_or("127.0.0.1");
        let port = server.port.unwrap_or(0);
        let listener = tokio::net::TcpListener::bind((host, port))
            .await
            .with_context(|| format!("cannot listen on {host}:{port}"))?;
        let address = listener.local_addr().context("cannot determine the port of the server")?;
        admission.suits(address.ip())?;
        announce(address.port(), admission)?;
        tokio::select! {
            () = serve_tcp(hub, listener) => {}
            () = async { hub.stopped().await; tokio::time::sleep(FLUSH_TIMEOUT).await } => {}
        }
        Ok(())
    };
    let result: Result<()> = tokio::select! {
        result = serving => result,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    };
    hub.close().await;
    result.map(|()| Exit::Done)
}

/// Prints where the server listens, and the token if it was generated here. SDKs read the first line.
pub(crate) fn announce(port: u16, admission: &Admission) -> Result<()> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "CLI server listening on port {port}").and_then(|()| stdout.flush())?;
    match admission {
        // A client may stop reading after the port; the server continues all the same.
        Admission::Generated(token) => {
            let _ = writeln!(stdout, "Connection token: {token}").and_then(|()| stdout.flush());
        }
        Admission::Anyone => {
            remark("warning: with --no-token every program that reaches the port is served");
        }
        Admission::Owner | Admission::Given(_) => {}
    }
    Ok(())
}
