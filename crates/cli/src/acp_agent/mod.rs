//! `hangar --acp`: Hangar as an agent of the Agent Client Protocol, for editors.

mod opener;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures_util::FutureExt;
use hangar_acp::{EditorAgentConfig, serve_stdio, serve_tcp};
use hangar_store::Store;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::args::{RunArgs, ServerArgs};
use crate::exit::Exit;
use crate::logging;
use crate::settings::Settings;
use opener::Opener;

pub(crate) fn run(settings: &Settings, server: &ServerArgs, args: RunArgs) -> Result<Exit> {
    if let Some(word) = args.compatible.named.words.first() {
        bail!("`{word}` is not a flag of --acp");
    }
    logging::start(settings, &args)?;
    let config = Arc::new(EditorAgentConfig {
        store: Store::new(&settings.home),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        opener: Box::new(Opener::new(settings.clone(), args)?),
    });
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let result = runtime.block_on(serve(&config, server));
    // Reading standard input blocks a thread for as long as the client likes.
    runtime.shutdown_timeout(Duration::from_millis(100));
    result.map(|()| Exit::Done)
}

async fn serve(config: &Arc<EditorAgentConfig>, server: &ServerArgs) -> Result<()> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch SIGINT")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot catch SIGTERM")?;
    let stop = CancellationToken::new();
    let told = stop.clone();
    let signals = tokio::spawn(FutureExt::boxed(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        told.cancel();
    }));
    match server.port {
        None => serve_stdio(config, &stop).await,
        Some(port) => {
            let host = server.host.as_deref().unwrap_or("127.0.0.1");
            let listener = tokio::net::TcpListener::bind((host, port))
                .await
                .with_context(|| format!("cannot listen on {host}:{port}"))?;
            serve_tcp(config, listener, &stop).await;
        }
    }
    signals.abort();
    Ok(())
}
