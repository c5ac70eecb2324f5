//! Server of a terminal's own sessions, on a thread of its own: keys never wait for a session that is busy. It also listens on
//! loopback, so that other views can join its sessions.

use std::net::{Ipv4Addr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use anyhow::{Context, Result};
use hangar_server::{
    ConnectionToken, Presence, ServerAccess, ServerHub, ShowRequest, serve_owner, serve_tcp,
};
use tokio::io::DuplexStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::args::{RunArgs, ServerArgs};
use crate::endpoint::{ProcessEndpoint, TerminalPresence};
use crate::sdk_server::{Admission, announce, terminal_hub};
use crate::settings::Settings;

/// Capacity of the pipe between terminal and server, each way.
const PIPE: usize = 256 << 10;
/// Time that blocking work of closed sessions gets before the process ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Socket on which other views join, and what they have to show.
pub(super) struct Listening {
    listener: TcpListener,
    token: Option<String>,
}

impl Listening {
    /// Any free port, with a token that only the endpoint's file tells.
    pub(super) fn private() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        Ok(Self { listener, token: Some(uuid::Uuid::new_v4().simple().to_string()) })
    }

    /// The port that `--ui-server` names, for the clients that it is for. It is printed before the view takes the screen.
    pub(super) fn for_clients(settings: &Settings, server: &ServerArgs) -> Result<Self> {
        let admission = Admission::of(server, settings)?;
        let host = server.host.as_deref().unwrap_or("127.0.0.1");
        let port = server.port.unwrap_or(0);
        let listener =
            TcpListener::bind((host, port)).with_context(|| format!("cannot listen on {host}:{port}"))?;
        let address = listener.local_addr().context("cannot say which port is listened on")?;
        admission.suits(address.ip())?;
        announce(address.port(), &admission)?;
        Ok(Self { listener, token: admission.into_token() })
    }

    /// The socket, and the token that its clients have to show.
    pub(super) fn into_parts(self) -> (TcpListener, Option<String>) {
        (self.listener, self.token)
    }

    fn access(&self) -> ServerAccess {
        match &self.token {
            Some(token) => ServerAccess::Token(ConnectionToken::new(token)),
            None => ServerAccess::Anyone,
        }
    }

    pub(super) fn endpoint(&self) -> std::io::Result<ProcessEndpoint> {
        let address = self.listener.local_addr()?;
        Ok(ProcessEndpoint { pid: std::process::id(), address, token: self.token.clone() })
    }
}

/// Running server. Dropping it leaves the thread; [`LocalHost::close`] ends its sessions first.
pub(super) struct LocalHost {
    thread: JoinHandle<()>,
    stop: CancellationToken,
    /// Whether the user did not ask for the end.
    from_outside: Arc<AtomicBool>,
    hub: Arc<ServerHub>,
}

/// A server that has just been started.
pub(super) struct StartedHost {
    pub(super) host: LocalHost,
    pub(super) stream: DuplexStream,
    /// Requests of clients that the view shows another session.
    pub(super) shows: mpsc::Receiver<ShowRequest>,
}

impl LocalHost {
    /// Starts the server and connects to it. Without a given socket it listens on one of its own, if it can.
    pub(super) fn start(
        settings: &Settings,
        args: RunArgs,
        listening: Option<Listening>,
    ) -> Result<StartedHost> {
        let listening = match listening {
            Some(listening) => Some(listening),
            None => Listening::private()
                .inspect_err(|error| tracing::warn!(%error, "no other view can join the sessions"))
                .ok(),
        };
        let access = listening.as_ref().map_or(ServerAccess::Owner, Listening::access);
        let endpoint = listening.as_ref().and_then(|listening| listening.endpoint().ok());
        let presence = endpoint.map(|endpoint| -> Box<dyn Presence> {
            Box::new(TerminalPresence::new(&settings.home, endpoint))
        });
        let hub = terminal_hub(settings, args, access, presence)?;
        let shows = hub.add_view();
        let (near, far) = tokio::io::duplex(PIPE);
        let stop = CancellationToken::new();
        let (stopped, served) = (stop.clone(), Arc::clone(&hub));
        let from_outside = Arc::new(AtomicBool::new(false));
        let outside = Arc::clone(&from_outside);
        let thread = std::thread::Builder::new()
            .name("sessions".to_owned())
            .spawn(move || serve(&served, far, listening, &stopped, &outside))
            .context("cannot start the thread of the sessions")?;
        Ok(StartedHost { host: Self { thread, stop, from_outside, hub }, stream: near, shows })
    }

    /// Records the session that the view shows.
    pub(super) fn shows(&self, session: Option<&str>) {
        self.hub.shows(session);
    }

    /// Closes all sessions and waits for that.
    pub(super) fn close(self, ending: Ending) {
        self.from_outside.store(ending == Ending::FromOutside, Ordering::Release);
        self.stop.cancel();
        if self.thread.join().is_err() {
            tracing::error!("the thread of the sessions panicked");
        }
    }
}

/// Cause of the end of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    ByUser,
    /// A signal, or a terminal that is gone.
    FromOutside,
}

fn serve(
    hub: &Arc<ServerHub>,
    stream: DuplexStream,
    listening: Option<Listening>,
    stop: &CancellationToken,
    from_outside: &AtomicBool,
) {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "the runtime of the sessions cannot be started");
            return;
        }
    };
    runtime.block_on(async {
        let (reader, writer) = tokio::io::split(stream);
        tokio::select! {
            () = serve_owner(hub, reader, writer) => stop.cancelled().await,
            () = serve_views(hub, listening) => {}
            () = stop.cancelled() => {}
        }
        match from_outside.load(Ordering::Acquire) {
            true => hub.close_from_outside().await,
            false => hub.close().await,
        }
    });
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
}

/// Serves the views and clients that join from other processes.
async fn serve_views(hub: &Arc<ServerHub>, listening: Option<Listening>) {
    let listener = listening.map(|Listening { listener, .. }| {
        listener.set_nonblocking(true)?;
        tokio::net::TcpListener::from_std(listener)
    });
    match listener {
        Some(Ok(listener)) => serve_tcp(hub, listener).await,
        Some(Err(error)) => tracing::warn!(%error, "no other view can join the sessions"),
        None => {}
    }
    std::future::pending::<()>().await;
}
