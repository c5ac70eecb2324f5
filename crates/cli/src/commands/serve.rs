//! `hangar model serve`: the scripted model for other programs, on loopback only.

use std::fs::OpenOptions;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use hangar_models::scripted::{Script, ServeOptions, serve};
use tokio_util::sync::CancellationToken;

use super::print_line;
use crate::exit::Exit;
use crate::providers::read_script;

pub(crate) fn run(port: u16, script: Option<&Path>, default: String, log: Option<PathBuf>) -> Result<Exit> {
    let script = script.map_or_else(|| Ok(Script::default()), read_script)?.with_default(default);
    let mut options = ServeOptions::new(script, SystemTime::now);
    options.log = log
        .map(|path| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .with_context(|| format!("cannot write the log {}", path.display()))
        })
        .transpose()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
        print_line(&format!("listening on http://{}", listener.local_addr()?))?;
        let shutdown = CancellationToken::new();
        let stop = shutdown.clone();
        let interrupted = async move {
            let terminated = async {
                match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
                    Ok(mut signal) => {
                        signal.recv().await;
                    }
                    Err(_) => std::future::pending().await,
                }
            };
            tokio::select! {
                _ = tokio::signal::ctrl_c() => {}
                () = terminated => {}
            }
            stop.cancel();
        };
        let (served, ()) = tokio::join!(serve(listener, options, shutdown), interrupted);
        served.context("the model server stopped")
    })?;
    Ok(Exit::Done)
}
