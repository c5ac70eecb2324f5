//! Owner of a session: the process in which it runs.

use std::path::Path;

use anyhow::{Result, bail};
use hangar_store::{SessionId, Store};

use super::link::Link;
use crate::endpoint::{self, ProcessEndpoint};
use crate::portal::client::PortalClient;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Owner {
    /// No process has the session open.
    Nobody,
    /// This process.
    Own,
    Terminal(ProcessEndpoint),
    Portal(ProcessEndpoint),
    /// A process that runs a job by itself.
    Job(ProcessEndpoint),
    /// A process that takes no views.
    Other,
}

impl Owner {
    pub(super) async fn of(home: &Path, store: &Store, id: &SessionId) -> Self {
        match endpoint::of_session(home, id) {
            Some(endpoint) if endpoint.is_own() => return Self::Own,
            Some(endpoint) => return Self::Terminal(endpoint),
            None => {}
        }
        if let Some(portal) = first_with(endpoint::portals(home), id).await {
            return Self::Portal(portal);
        }
        // Jobs begin to listen when they are asked for views: not for a session that no process has.
        if !store.is_in_use(id) {
            return Self::Nobody;
        }
        first_with(endpoint::job_views(home).await, id).await.map_or(Self::Other, Self::Job)
    }

    /// Whether the session runs in another process.
    pub(super) fn is_elsewhere(&self) -> bool {
        match self {
            Self::Nobody | Self::Own => false,
            Self::Terminal(_) | Self::Portal(_) | Self::Job(_) | Self::Other => true,
        }
    }

    /// Connects to the process, if it is another one.
    pub(super) fn link(&self, id: &SessionId) -> Result<Option<Link>, String> {
        match self {
            Self::Nobody | Self::Own => Ok(None),
            Self::Terminal(endpoint) => Link::dial(endpoint).map(Some),
            Self::Portal(endpoint) | Self::Job(endpoint) => Link::to_portal(endpoint, id.as_str()).map(Some),
            Self::Other => Err(busy(id)),
        }
    }

    /// Place where the session runs, for people.
    pub(super) fn place(&self) -> &'static str {
        match self {
            Self::Nobody | Self::Own => "this terminal",
            Self::Terminal(_) => "another terminal",
            Self::Portal(_) => "a portal",
            Self::Job(_) => "a job",
            Self::Other => "another process",
        }
    }

    /// Checks that there is something to attach to.
    pub(super) fn attachable(self, id: &SessionId, program: &str) -> Result<Self> {
        match self {
            Self::Nobody | Self::Own => {
                bail!(
                    "session {id} is not open in any terminal or portal; `{program} --resume={id}` opens it"
                )
            }
            Self::Other => bail!(busy(id)),
            owner @ (Self::Terminal(_) | Self::Portal(_) | Self::Job(_)) => Ok(owner),
        }
    }
}

fn busy(id: &SessionId) -> String {
    format!(
        "session {id} is at work in a process that takes no views; wait until it is done, or see it in the portal"
    )
}

/// The first of these processes that has the session open.
async fn first_with(endpoints: Vec<ProcessEndpoint>, id: &SessionId) -> Option<ProcessEndpoint> {
    for endpoint in endpoints {
        if let Ok(client) = PortalClient::new(&endpoint)
            && client.has_open(id).await
        {
            return Some(endpoint);
        }
    }
    None
}
