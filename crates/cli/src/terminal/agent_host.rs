//! Server of the sessions of other agents, on a thread of its own: what [`super::host`] is for our own. It speaks the part of
//! the SDK protocol that a view uses.

use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::FutureExt;
use hangar_peer::{Framing, Outgoing, Peer};
use hangar_store::Store;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::agent_server::{AgentContext, AgentServer};
use super::agent_views;
use super::agents::Agents;
use super::host::Listening;
use crate::endpoint::TerminalPresence;
use crate::runtimes::args::RunWithArgs;
use crate::settings::Settings;

/// Capacity of the pipe between terminal and server, each way.
const PIPE: usize = 256 << 10;
/// Time that blocking work of closed sessions gets before the process ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Requests of other views that may wait.
const VIEW_REQUESTS: usize = 256;

/// Running server. [`AgentHost::close`] ends its agents.
pub(super) struct AgentHost {
    thread: JoinHandle<()>,
    stop: CancellationToken,
}

impl AgentHost {
    /// Starts the server and connects to it.
    pub(super) fn start(
        settings: &Settings,
        agents: &Agents,
        args: RunWithArgs,
    ) -> Result<(Self, DuplexStream)> {
        let runtimes = agents.runtimes()?;
        let listening = Listening::private()
            .inspect_err(|error| tracing::warn!(%error, "no other view can join the sessions"))
            .ok();
        let endpoint = listening.as_ref().and_then(|listening| listening.endpoint().ok());
        let context = AgentContext {
            settings: settings.clone(),
            runtimes,
            store: Store::new(&settings.home),
            presence: endpoint.map(|endpoint| TerminalPresence::new(&settings.home, endpoint)),
        };
        let (near, far) = tokio::io::duplex(PIPE);
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let thread = std::thread::Builder::new()
            .name("agents".to_owned())
            .spawn(move || {
                let (peer, outgoing) = Peer::new(Framing::Length);
                let server = AgentServer::new(context, args, peer.clone());
                serve(Connection { stream: far, peer, outgoing }, listening, &stopped, server);
            })
            .context("cannot start the thread of the agents")?;
        Ok((Self { thread, stop }, near))
    }

    /// Ends all agents and waits for that.
    pub(super) fn close(self) {
        self.stop.cancel();
        if self.thread.join().is_err() {
            tracing::error!("the thread of the agents panicked");
        }
    }
}

/// The server's end of the terminal's connection.
struct Connection {
    stream: DuplexStream,
    peer: Peer,
    outgoing: Outgoing,
}

fn serve(
    connection: Connection,
    listening: Option<Listening>,
    stop: &CancellationToken,
    server: AgentServer,
) {
    let Connection { stream, peer, mut outgoing } = connection;
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "the runtime of the agents cannot be started");
            return;
        }
    };
    runtime.block_on(async {
        let (reader, mut writer) = tokio::io::split(stream);
        tokio::spawn(FutureExt::boxed(async move {
            peer.write(&mut writer, &mut outgoing).await;
            // Nobody reads any more, so callers that wait for room are released.
            peer.close();
        }));
        let (views, requests) = mpsc::channel(VIEW_REQUESTS);
        let listening = tokio::spawn(FutureExt::boxed(agent_views::listen(listening, views)));
        server.run(reader, requests, stop).await;
        listening.abort();
    });
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
}
