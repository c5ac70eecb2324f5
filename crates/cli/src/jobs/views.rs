//! Views of the sessions of a run: the portal's API on a private port of this machine, opened when `hangar attach` asks for it.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context, Result};
use futures_util::FutureExt;
use hangar_portal::api::{About, App, router};
use hangar_portal::guard::AccessGuard;
use hangar_portal::serve::serve;
use hangar_registry::hub::Hub;
use hangar_registry::runs::{Runs, RunsConfig};

use crate::endpoint::{JobPresence, ProcessEndpoint};
use crate::settings::Settings;

/// Views that other processes may request. Dropping it removes the file that announces this process.
pub(super) struct ViewRequests {
    presence: Option<JobPresence>,
}

impl ViewRequests {
    pub(super) fn new(settings: &Settings) -> Self {
        let presence = JobPresence::announce(&settings.home)
            .inspect_err(|error| tracing::warn!(%error, "no view can join the sessions of the run"));
        Self { presence: presence.ok() }
    }

    /// Serves views once they are requested, until the hub stops. Without them the run is carried out all the same.
    pub(super) async fn serve(&mut self, settings: &Settings, hub: &Hub, token: &str) -> Infallible {
        if let Some(presence) = &mut self.presence {
            presence.requested().await;
            let opened = open(settings, hub, token, Path::new(".")).await;
            let published = match opened {
                Ok(endpoint) => presence.serve(endpoint).context("cannot say where the views are served"),
                Err(error) => Err(error),
            };
            if let Err(error) = published {
                tracing::warn!(%error, "no view can join the sessions of the run");
            }
        }
        std::future::pending().await
    }
}

/// Token of the views of a run, which only its file tells.
pub(super) fn token() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// Serves views until the hub stops.
async fn open(settings: &Settings, hub: &Hub, token: &str, workspace: &Path) -> Result<ProcessEndpoint> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = tokio::net::TcpListener::bind(address).await.context("cannot listen")?;
    let address = listener.local_addr().context("cannot determine the port of the server")?;
    let runs = Runs::new(
        hub.clone(),
        RunsConfig {
            store: super::store(settings),
            job_tools: None,
            environment: super::run_environment(settings),
            now: jiff::Timestamp::now,
        },
    );
    let about = About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        home: settings.home.clone(),
        repo_root: workspace.to_owned(),
        workspace: workspace.to_owned(),
        test: false,
    };
    let guard = AccessGuard::new(address, Vec::new(), Some(token.to_owned()));
    let router = router(App::new(runs, guard, about));
    tokio::spawn(FutureExt::boxed(serve(listener, router, hub.stopping().clone())));
    Ok(ProcessEndpoint { pid: std::process::id(), address, token: Some(token.to_owned()) })
}
