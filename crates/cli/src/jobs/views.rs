//! Views of the sessions of a run: the portal's API on a private port of this machine, which `hangar attach` finds.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;

use anyhow::{Context, Result};
use hangar_portal::api::{About, App, router};
use hangar_portal::guard::AccessGuard;
use hangar_portal::serve::serve;
use hangar_registry::hub::Hub;
use hangar_registry::runs::{Runs, RunsConfig};

use crate::endpoint::{Announcement, ProcessEndpoint};
use crate::settings::Settings;

/// Token of the views of a run, which only its file tells.
pub(super) fn token() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}

/// Serves views until the hub stops. The file that tells of them is removed with the result.
pub(super) async fn open(
    settings: &Settings,
    hub: &Hub,
    token: &str,
    workspace: &Path,
) -> Result<Announcement> {
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
    tokio::spawn(serve(listener, router, hub.stopping().clone()));
    let endpoint = ProcessEndpoint { pid: std::process::id(), address, token: Some(token.to_owned()) };
    Announcement::of_job(&settings.home, &endpoint).context("cannot say where the views are served")
}
