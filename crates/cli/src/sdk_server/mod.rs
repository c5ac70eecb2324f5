//! `hangar --server`: what the Copilot SDKs start as their server.

mod account;
mod endpoint;
mod finder;
mod instructions;
mod models;
mod opener;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hangar_server::{Hub, HubConfig, Token, serve_stdio, serve_tcp};
use hangar_store::Store;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::{RunArgs, ServerArgs};
use crate::exit::Exit;
use crate::settings::{LoginSource, Logins, Settings};
use crate::{logging, plan};
use finder::ConfiguredPlaces;
use opener::Opener;

/// How long a server that was told to end waits for its client to close the connection.
const LAST_WORDS: Duration = Duration::from_secs(10);

pub(crate) fn run(settings: &Settings, server: &ServerArgs, args: RunArgs) -> Result<Exit> {
    if let Some(word) = args.compatible.named.words.first() {
        bail!("`{word}` is not a flag of the server");
    }
    logging::start(settings, &args)?;
    let mut settings = settings.clone();
    let given = server.auth_token_env.as_deref().and_then(|name| settings.var(name)).map(str::to_owned);
    if let Some(token) = &given {
        settings = settings.with_login(token, LoginSource::Given);
    }
    if server.no_auto_login {
        settings.logins = Logins::Nowhere;
    }
    let hub = Hub::new(HubConfig {
        store: Store::new(&settings.home),
        token: settings.var("COPILOT_CONNECTION_TOKEN").filter(|_| !server.stdio).map(Token::new),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        now: jiff::Timestamp::now,
        features: settings.features()?,
        // Zero is how SDKs say "never".
        idle_timeout: server.session_idle_timeout.filter(|seconds| *seconds > 0).map(Duration::from_secs),
        farewell: crate::telemetry::finish,
        finder: Box::new(ConfiguredPlaces::new(settings.clone(), &args)),
        opener: Box::new(Opener::new(settings.clone(), given, plan::policy(&args, &settings)?, args)),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let result = runtime.block_on(serve(&hub, server));
    // Reading standard input blocks a thread for as long as the client likes.
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

async fn serve(hub: &Arc<Hub>, server: &ServerArgs) -> Result<Exit> {
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
        let port = listener.local_addr().context("cannot say which port is listened on")?.port();
        let mut stdout = std::io::stdout();
        writeln!(stdout, "CLI server listening on port {port}").and_then(|()| stdout.flush())?;
        tokio::select! {
            () = serve_tcp(hub, listener) => {}
            () = async { hub.stopped().await; tokio::time::sleep(LAST_WORDS).await } => {}
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
