//! `hangar up`: assembles the portal and serves it until it is stopped.

pub(crate) mod args;
pub(crate) mod client;
pub(crate) mod joined;
mod memory;
mod settings_host;

use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use hangar_portal::api::{About, App, SettingsParts, router};
use hangar_portal::fleet::FleetHost;
use hangar_portal::guard::AccessGuard;
use hangar_portal::issues::IssuesHost;
use hangar_portal::serve::serve;
use hangar_process::credentials::Child;
use hangar_registry::runs::{Runs, RunsConfig};
use tokio_util::task::AbortOnDropHandle;

use crate::automation::Automation;
use crate::commands::print_line;
use crate::compose::working_dir;
use crate::config::live;
use crate::credentials;
use crate::endpoint::{Announcement, ProcessEndpoint};
use crate::exit::Exit;
use crate::fleet::portal::FleetPortal;
use crate::headless::Interrupts;
use crate::jobs;
use crate::logging;
use crate::machine::{self, Machine};
use crate::notify;
use crate::orchestrate::host::{Desk, Orchestrators};
use crate::output::remark;
use crate::settings::Settings;
use crate::workspace::git::Repository;
use args::{ListenArgs, UpArgs};
use memory::HomeMemory;
use settings_host::PortalSettings;

/// Maximum number of worker threads. Agents and clients wait more than they work.
const MOST_THREADS: usize = 4;
/// Minimum length of a token, so that it cannot be guessed.
const MIN_TOKEN: usize = 8;
const MAX_TOKEN: usize = 4096;

pub(crate) fn run(settings: &Settings, args: UpArgs) -> Result<Exit> {
    let (address, token) = listen_address(settings, &args.listen)?;
    // For other processes of the same user, who find it in a file; the given token is written nowhere.
    let local = token.is_some().then(|| uuid::Uuid::new_v4().simple().to_string());
    // From here on they are secrets like any other: hidden from agents and their commands, and redacted in output.
    let settings = &match (&token, &local) {
        (Some(token), Some(local)) => {
            settings.with_secret(args.listen.token_env.as_deref(), token).with_secret(None, local)
        }
        _ => settings.clone(),
    };
    let workspace = working_dir(args.directory.as_deref())?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).clamp(2, MOST_THREADS);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let exit =
        runtime.block_on(up(settings, &args, address, PortalTokens { given: token, local }, &workspace));
    // A thread that is still blocked must not delay the exit.
    runtime.shutdown_timeout(Duration::from_millis(100));
    exit
}

/// Address that the portal listens on, and the token that clients must send.
pub(crate) fn listen_address(settings: &Settings, args: &ListenArgs) -> Result<(SocketAddr, Option<String>)> {
    let address = address(&args.host, args.port)?;
    let token = token(settings, args)?;
    if !address.ip().is_loopback() && token.is_none() {
        bail!(
            "{} can be reached from other machines, so the portal needs a token: --token-env NAME or --token-file FILE",
            address.ip()
        );
    }
    Ok((address, token))
}

fn address(host: &str, port: u16) -> Result<SocketAddr> {
    if let Ok(ip) = host.parse::<IpAddr>() {
        return Ok(SocketAddr::new(ip, port));
    }
    let mut found = (host, port).to_socket_addrs().with_context(|| format!("there is no host `{host}`"))?;
    found.next().with_context(|| format!("there is no host `{host}`"))
}

/// The token that clients must send. It is never printed.
fn token(settings: &Settings, args: &ListenArgs) -> Result<Option<String>> {
    let (token, source) = match (&args.token_env, &args.token_file) {
        (Some(name), _) => match settings.var(name) {
            Some(token) => (token.to_owned(), name.clone()),
            None => bail!("--token-env {name}: the variable is not set"),
        },
        (None, Some(file)) => {
            let text = std::fs::read_to_string(file)
                .with_context(|| format!("cannot read the token in {}", file.display()))?;
            (text, file.display().to_string())
        }
        (None, None) => return Ok(None),
    };
    let token = token.trim();
    if !(MIN_TOKEN..=MAX_TOKEN).contains(&token.len()) {
        bail!("the token in {source} must have {MIN_TOKEN} to {MAX_TOKEN} characters");
    }
    Ok(Some(token.to_owned()))
}

/// Tokens that the portal accepts.
struct PortalTokens {
    given: Option<String>,
    /// For other processes of the same user, where one is needed.
    local: Option<String>,
}

async fn up(
    settings: &Settings,
    args: &UpArgs,
    address: SocketAddr,
    tokens: PortalTokens,
    workspace: &Path,
) -> Result<Exit> {
    logging::start_run_logs(settings);
    // Signals are caught before the first agent could be started.
    let mut interrupts = Interrupts::new()?;
    let fleet = match &args.fleet {
        Some(url) => Some(FleetPortal::connect(settings, url).await?),
        None => None,
    };
    let listener = listen(settings, address).await?;
    let address = listener.local_addr().context("cannot determine the port of the server")?;
    let machine = Arc::new(Machine::new(settings)?);
    let hub = machine::registry(settings, &machine, fleet.as_ref())?;
    if let Some(fleet) = &fleet {
        fleet.announce_to(&hub);
    }
    let runs = Runs::new(
        hub.clone(),
        RunsConfig {
            store: jobs::store(settings),
            job_tools: Some(jobs::job_tools()?),
            environment: jobs::run_environment(settings),
            now: jiff::Timestamp::now,
        },
    );
    notify::start(settings, &hub)?;
    let charged = hub.clone();
    tokio::task::spawn_blocking(move || charged.charge_all());
    if let Some(file) = &args.entry {
        let file = std::path::absolute(file).with_context(|| format!("invalid path {}", file.display()))?;
        runs.install_file(&file)?;
    }
    let repository = Repository::find(workspace);
    let about = About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        home: settings.home.clone(),
        repo_root: repository.map_or_else(|| workspace.to_owned(), |repository| repository.root),
        workspace: workspace.to_owned(),
        test: args.test,
    };
    let mut guard = AccessGuard::new(address, args.allow_host.clone(), tokens.given);
    if let Some(local) = &tokens.local {
        guard = guard.with_local_token(local);
    }
    let endpoint = ProcessEndpoint { pid: std::process::id(), address, token: tokens.local };
    // Without it the portal serves all the same; terminals do not find it.
    let _announced = Announcement::of_portal(&settings.home, &endpoint)
        .inspect_err(|error| tracing::warn!(%error, "terminals cannot find the portal"));
    let automation = Arc::new(Automation::new(settings, runs.clone(), workspace.to_owned()));
    hub.spawn(Arc::clone(&automation).run());
    let _config = AbortOnDropHandle::new(tokio::spawn(live::follow_for(settings.clone(), hub.clone())));
    let orchestrators = Arc::new(Orchestrators::new(settings, machine, hub.clone()));
    hub.spawn(Arc::clone(&orchestrators).run());
    let issues = Arc::new(Desk(orchestrators));
    let parts = SettingsParts {
        issues: Arc::clone(&issues) as Arc<dyn IssuesHost>,
        workflows: issues,
        settings: Arc::new(PortalSettings(settings.clone())),
        automation,
        memory: Arc::new(HomeMemory { home: settings.home.clone() }),
    };
    let machines = fleet.map(|fleet| Arc::new(fleet) as Arc<dyn FleetHost>);
    let app = App::new(runs, guard, about).with_settings(parts).with_fleet(machines);
    let router = router(app);
    let url = match address.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST) {
        true => format!("http://localhost:{}", address.port()),
        false => format!("http://{address}"),
    };
    print_line(&format!("Hangar portal: {url}"))?;
    // A reader may stop reading after the address; the portal continues all the same.
    let _ = writeln!(std::io::stdout(), "To stop it: Ctrl+C, or {}", stop_command(&args.listen, &url));
    if args.open {
        browse(settings, &url);
    }
    let stopping = hub.stopping().clone();
    let serving = tokio::spawn(serve(listener, router, stopping.clone()));
    tokio::select! {
        () = interrupts.next() => hub.shut_down(),
        () = stopping.cancelled() => {}
    }
    hub.close().await;
    serving.await.context("serving failed")?;
    Ok(Exit::Done)
}

/// The command that stops the portal. The token stays where it is.
fn stop_command(args: &ListenArgs, url: &str) -> String {
    let token = match (&args.token_env, &args.token_file) {
        (Some(name), _) => format!(" -H \"Authorization: Bearer ${name}\""),
        (None, Some(file)) => {
            let file = file.display().to_string().replace('\'', "'\\''");
            format!(" -H \"Authorization: Bearer $(cat '{file}')\"")
        }
        (None, None) => String::new(),
    };
    format!("curl -X POST{token} {url}/api/stop")
}

async fn listen(settings: &Settings, address: SocketAddr) -> Result<tokio::net::TcpListener> {
    let program = &settings.program;
    tokio::net::TcpListener::bind(address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => anyhow!(
            "{address} is in use, perhaps by another portal; `{program} up --port 0` picks a free port"
        ),
        _ => anyhow::Error::new(error).context(format!("cannot listen on {address}")),
    })
}

/// Opens the page in a browser. A machine without one prints a note.
fn browse(settings: &Settings, url: &str) {
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started = std::process::Command::new(opener)
        .arg(url)
        .env_clear()
        .envs(credentials::environment(settings, Child::Helper, &[]))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    if started.is_err() {
        remark(&format!("note: no browser could be opened; go to {url}"));
    }
}
