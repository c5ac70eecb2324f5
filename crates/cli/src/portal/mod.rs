//! `hangar up`: the portal, put together and served until it is told to stop.

pub(crate) mod args;

use std::io::{ErrorKind, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use hangar_portal::api::{About, App, router};
use hangar_portal::guard::Guard;
use hangar_portal::serve::serve;
use hangar_process::credentials::Child;
use hangar_registry::hub::{Hub, HubConfig};
use hangar_registry::runs::{Runs, RunsConfig};
use hangar_store::Store;

use crate::commands::print_line;
use crate::compose::working_dir;
use crate::credentials;
use crate::exit::Exit;
use crate::headless::Interrupts;
use crate::jobs;
use crate::machine::Machine;
use crate::output::remark;
use crate::settings::Settings;
use crate::workspace::git::Repository;
use args::{ListenArgs, UpArgs};

/// Threads that serve. Agents and clients wait more than they work.
const MOST_THREADS: usize = 4;
/// Shorter tokens are guessed.
const MIN_TOKEN: usize = 8;
const MAX_TOKEN: usize = 4096;

pub(crate) fn run(settings: &Settings, args: UpArgs) -> Result<Exit> {
    let (address, token) = listen_address(settings, &args.listen)?;
    // From here on it is a secret like any other: agents and their commands do not see it, nobody is shown it.
    let settings = &match &token {
        Some(token) => settings.with_secret(args.listen.token_env.as_deref(), token),
        None => settings.clone(),
    };
    let workspace = working_dir(args.directory.as_deref())?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).clamp(2, MOST_THREADS);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let exit = runtime.block_on(up(settings, &args, address, token, &workspace));
    // Whatever still blocks a thread must not hold the exit up.
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

/// The token that clients have to show. It is never printed.
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

async fn up(
    settings: &Settings,
    args: &UpArgs,
    address: SocketAddr,
    token: Option<String>,
    workspace: &Path,
) -> Result<Exit> {
    // Signals are caught before the first agent could be started.
    let mut interrupts = Interrupts::new()?;
    let listener = listen(settings, address).await?;
    let address = listener.local_addr().context("cannot say which port is listened on")?;
    let hub = Hub::new(HubConfig {
        host: Arc::new(Machine::new(settings)?),
        store: Store::new(&settings.home),
        now: jiff::Timestamp::now,
    });
    let runs = Runs::new(
        hub.clone(),
        RunsConfig {
            store: jobs::store(settings),
            job_tools: Some(jobs::job_tools()?),
            environment: jobs::run_environment(settings)?,
            now: jiff::Timestamp::now,
        },
    );
    if let Some(file) = &args.entry {
        let file = std::path::absolute(file).with_context(|| format!("bad path {}", file.display()))?;
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
    let guard = Guard::new(address, args.allow_host.clone(), token);
    let app = App::new(runs, guard, about);
    let router = router(app);
    let url = match address.ip() == IpAddr::V4(Ipv4Addr::LOCALHOST) {
        true => format!("http://localhost:{}", address.port()),
        false => format!("http://{address}"),
    };
    print_line(&format!("Hangar portal: {url}"))?;
    // Whoever reads the address may read no further; the portal serves all the same.
    let _ = writeln!(std::io::stdout(), "To stop it: {url}/api/stop");
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

async fn listen(settings: &Settings, address: SocketAddr) -> Result<tokio::net::TcpListener> {
    let program = &settings.program;
    tokio::net::TcpListener::bind(address).await.map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => anyhow!(
            "{address} is in use, perhaps by another portal; `{program} up --port 0` picks a free port"
        ),
        _ => anyhow::Error::new(error).context(format!("cannot listen on {address}")),
    })
}

/// Shows the page. A machine without a browser has one elsewhere.
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
