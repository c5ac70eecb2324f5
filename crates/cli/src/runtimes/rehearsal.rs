//! Rehearsals: the scripted model on loopback instead of a real one, and a scratch home.

use std::fs::File;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};
use futures_util::FutureExt;
use hangar_models::scripted::{Script, ServeOptions, serve};
use hangar_runtimes::runtime::{AgentOrder, RehearsalStage, Runtime};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// File in the scratch home that records the requests to the model.
const REQUESTS: &str = "requests.jsonl";

/// Scripted model and scratch home of a rehearsal. Both end with it.
pub(crate) struct Rehearsal {
    pub(crate) stage: RehearsalStage,
    shutdown: CancellationToken,
    /// Directory that is removed at the end, if it was created here.
    scratch: Option<PathBuf>,
}

impl Rehearsal {
    /// Starts a rehearsal with a model of its own.
    pub(super) async fn start(home: &Path) -> Result<Self> {
        Self::begin(home, None).await
    }

    /// The same, recording the requests to the model.
    pub(super) async fn watched(home: &Path) -> Result<Self> {
        let path = home.join(REQUESTS);
        std::fs::create_dir_all(home).with_context(|| format!("cannot make {}", home.display()))?;
        let file = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
        Self::begin(home, Some(file)).await
    }

    async fn begin(home: &Path, log: Option<File>) -> Result<Self> {
        let listener = tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
            .await
            .context("cannot listen on loopback for a rehearsal")?;
        let model_url = format!("http://{}", listener.local_addr()?);
        let shutdown = CancellationToken::new();
        let script = Script::default().with_default("pong".to_owned());
        let options = ServeOptions { log, ..ServeOptions::new(script, SystemTime::now) };
        let stop = shutdown.clone();
        tokio::spawn(FutureExt::boxed(async move {
            if let Err(error) = serve(listener, options, stop).await {
                tracing::warn!(%error, "the scripted model stopped");
            }
        }));
        Ok(Self { stage: stage(model_url, home)?, shutdown, scratch: None })
    }

    /// Rehearsal with a model that is already served.
    pub(crate) fn with(model_url: &str, home: &Path) -> Result<Self> {
        let model_url = model_url.trim_end_matches('/').to_owned();
        Ok(Self { stage: stage(model_url, home)?, shutdown: CancellationToken::new(), scratch: None })
    }

    /// Model requests so far, if the model is recorded.
    pub(super) fn requests(&self) -> Vec<Value> {
        let log = std::fs::read_to_string(self.stage.home.join(REQUESTS)).unwrap_or_default();
        let request =
            |line: &str| serde_json::from_str::<Value>(line).ok().map(|mut line| line["body"].take());
        log.lines().filter_map(request).collect()
    }

    /// Removes the scratch home at the end.
    pub(super) fn in_passing(mut self) -> Self {
        self.scratch = Some(self.stage.home.clone());
        self
    }
}

/// Variables that make an agent ask the scripted model at an address.
pub(crate) fn variables(runtime: &dyn Runtime, url: &str, home: &Path) -> Result<Vec<(String, String)>> {
    let rehearsal = Rehearsal::with(url, &home_of(home))?;
    let mut order = AgentOrder::new(String::new(), PathBuf::new());
    runtime.rehearse(&mut order, &rehearsal.stage);
    Ok(order.env)
}

/// Directory that agents of a rehearsal take for the user's home. It stays, so that a rehearsed session can be resumed.
pub(super) fn home_of(home: &Path) -> PathBuf {
    home.join("rehearsal")
}

fn stage(model_url: String, home: &Path) -> Result<RehearsalStage> {
    std::fs::create_dir_all(home).with_context(|| format!("cannot make {}", home.display()))?;
    Ok(RehearsalStage { model_url, home: home.to_owned() })
}

impl Drop for Rehearsal {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(dir) = &self.scratch {
            // A directory that cannot be removed because an agent still uses it is not a failure.
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}
