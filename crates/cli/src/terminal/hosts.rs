//! Servers of the sessions that run in this process: one for our own, one for other agents. Each is started when it is needed
//! and stays; the view is connected to one of them, or to another process.

use anyhow::{Result, bail};
use hangar_server::ShowRequest;
use tokio::io::DuplexStream;
use tokio::sync::mpsc;

use super::agent_host::AgentHost;
use super::agents::Agents;
use super::host::{Ending, Listening, LocalHost, StartedHost};
use super::link::Link;
use crate::args::RunArgs;
use crate::runtimes::args::RunWithArgs;
use crate::runtimes::choice::NATIVE;
use crate::runtimes::rehearsal;
use crate::settings::Settings;

/// Kind of a server: whose sessions it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HostKind {
    /// Hangar's own agent.
    Own,
    /// Agents that are programs of their own.
    Agents,
}

pub(super) struct Hosts {
    /// Flags of our own sessions, until their server has them.
    pub(super) own: Option<RunArgs>,
    for_agents: RunWithArgs,
    agents: Agents,
    /// Socket of `--ui-server`, until our own server is started.
    listening: Option<Listening>,
    local: Option<LocalHost>,
    agent: Option<AgentHost>,
    /// Requests of clients that the view shows a session.
    pub(super) shows: Option<mpsc::Receiver<ShowRequest>>,
    parked: ParkedLinks,
    /// Server that the view is connected to.
    current: Option<HostKind>,
}

/// Connections to the servers that the view is not connected to.
#[derive(Default)]
struct ParkedLinks {
    own: Option<Link>,
    agents: Option<Link>,
}

impl ParkedLinks {
    fn of(&mut self, kind: HostKind) -> &mut Option<Link> {
        match kind {
            HostKind::Own => &mut self.own,
            HostKind::Agents => &mut self.agents,
        }
    }
}

impl Hosts {
    pub(super) fn new(
        own: RunArgs,
        for_agents: RunWithArgs,
        agents: Agents,
        listening: Option<Listening>,
    ) -> Self {
        Self {
            own: Some(own),
            for_agents,
            agents,
            listening,
            local: None,
            agent: None,
            shows: None,
            parked: ParkedLinks::default(),
            current: None,
        }
    }

    /// Whether clients wait for our own server.
    pub(super) fn has_clients(&self) -> bool {
        self.listening.is_some()
    }

    /// Starts our own server, unless it was started. Has to be called in a runtime.
    pub(super) fn start_own(&mut self, settings: &Settings) -> Result<()> {
        if self.own.is_some() {
            self.parked.own = Some(linked(self.start(HostKind::Own, settings)?));
        }
        Ok(())
    }

    /// Connects the view to a server of this process. Has to be called in a runtime.
    pub(super) fn connect(
        &mut self,
        kind: HostKind,
        link: &mut Option<Link>,
        settings: &Settings,
    ) -> Result<()> {
        if link.is_some() && self.current == Some(kind) {
            return Ok(());
        }
        self.park(link);
        let connected = match self.parked.of(kind).take() {
            Some(parked) => parked,
            None => linked(self.start(kind, settings)?),
        };
        *link = Some(connected);
        self.current = Some(kind);
        Ok(())
    }

    /// Puts the connection of the view aside. One to another process is closed.
    pub(super) fn park(&mut self, link: &mut Option<Link>) {
        let before = link.take();
        if let Some(kind) = self.current.take() {
            *self.parked.of(kind) = before;
        }
    }

    fn start(&mut self, kind: HostKind, settings: &Settings) -> Result<DuplexStream> {
        match kind {
            HostKind::Own => {
                let Some(own) = self.own.take() else {
                    bail!("the server of our own sessions is gone; leave and come back with --continue");
                };
                let settings = self.rehearsed(settings)?;
                let StartedHost { host, stream, shows } =
                    LocalHost::start(&settings, own, self.listening.take())?;
                self.local = Some(host);
                self.shows = Some(shows);
                Ok(stream)
            }
            HostKind::Agents => {
                let (host, stream) = AgentHost::start(settings, &self.agents, self.for_agents.clone())?;
                if let Some(before) = self.agent.replace(host) {
                    before.close();
                }
                Ok(stream)
            }
        }
    }

    /// Settings of our own sessions, which ask the scripted model too if the others do.
    fn rehearsed(&self, settings: &Settings) -> Result<Settings> {
        let Some(url) = &self.for_agents.agent.rehearse else { return Ok(settings.clone()) };
        let runtimes = self.agents.runtimes()?;
        let variables = rehearsal::variables(&**runtimes.find(NATIVE)?, url, &settings.home)?;
        Ok(variables.iter().fold(settings.clone(), |settings, (name, value)| settings.with_var(name, value)))
    }

    /// Tells the clients of our own server which session is shown.
    pub(super) fn tell_shown(&self, session: Option<&str>) {
        if let Some(host) = &self.local {
            host.shows(session);
        }
    }

    /// Closes all sessions and waits for that.
    pub(super) fn close(self, ending: Ending) {
        drop(self.parked);
        if let Some(host) = self.local {
            host.close(ending);
        }
        if let Some(host) = self.agent {
            host.close();
        }
    }
}

fn linked(stream: DuplexStream) -> Link {
    let (reader, writer) = tokio::io::split(stream);
    Link::over(reader, writer)
}
