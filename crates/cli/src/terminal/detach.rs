//! Detaching: the view ends, and the session goes on where a portal or another process runs it.

use futures_util::FutureExt;
use hangar_store::SessionId;
use hangar_terminal::effect::{CallId, ExitKind};
use hangar_terminal::input::Input;
use serde_json::Value;

use super::app::{App, LookupResult};
use super::link::of_session;
use super::opening::Wanted;
use super::owner::Owner;
use crate::endpoint;
use crate::portal::client::PortalClient;
use crate::selection::SessionSelection;

/// Id of the request that closes the session here, before a portal opens it.
pub(super) const CLOSING: CallId = CallId(u64::MAX - 3);

impl App {
    /// Leaves a session that runs elsewhere; hands one that runs here over to a portal, once it is idle.
    pub(super) fn detach(&mut self) {
        if self.elsewhere.is_some() {
            self.end.leaving = Some(ExitKind::Detach);
            return;
        }
        let program = &self.settings.program;
        let refusal = if self.session.is_none() || !self.has_content() {
            Some("nothing was said in this session yet, so there is nothing to leave running".to_owned())
        } else if let Some(agent) = &self.agent {
            Some(format!("{agent} runs in this terminal and ends with it; --resume goes on with the session"))
        } else if self.is_working() {
            // The running turn would end with this process.
            Some(
                "the session is at work in this terminal and would end with it; /detach again once it is idle"
                    .to_owned(),
            )
        } else if endpoint::portals(&self.settings.home).is_empty() {
            Some(format!(
                "no portal is up that could go on with the session; start one with `{program} up` and /detach again"
            ))
        } else {
            None
        };
        match (refusal, &self.link, &self.session) {
            (Some(refusal), _, _) => self.later(Input::Told(refusal)),
            (None, Some(link), Some(id)) => {
                link.call(CLOSING, "session.shutdown", of_session(id, Value::Null));
            }
            (None, _, _) => {}
        }
    }

    /// The session is closed here: has a portal open it.
    pub(super) fn closed_here(&mut self, result: Result<Value, String>) {
        let Some(id) = self.session.as_ref().and_then(|id| id.parse::<SessionId>().ok()) else { return };
        if let Err(reason) = result {
            return self.later(Input::Told(format!("the session cannot be closed here: {reason}")));
        }
        let (home, found) = (self.settings.home.clone(), self.found.clone());
        tokio::spawn(FutureExt::boxed(async move {
            let mut refusal = "no portal is up any more".to_owned();
            for portal in endpoint::portals(&home) {
                let opened = match PortalClient::new(&portal) {
                    Ok(client) => client.take_over(&id).await,
                    Err(reason) => Err(reason),
                };
                match opened {
                    Ok(()) => return drop(found.send(LookupResult::HandedOver(Ok(()))).await),
                    Err(reason) => refusal = reason,
                }
            }
            // A view that has ended needs no result.
            let _ = found.send(LookupResult::HandedOver(Err(refusal))).await;
        }));
    }

    /// The portal has the session, or it is opened here again.
    pub(super) fn handed_over(&mut self, result: Result<(), String>) {
        match result {
            Ok(()) => self.end.leaving = Some(ExitKind::Detach),
            Err(reason) => {
                self.later(Input::Told(format!("the portal did not take the session: {reason}")));
                if let Some(id) = self.session.take().and_then(|id| id.parse().ok()) {
                    let selection = SessionSelection::Resume(id);
                    let directory = self.directory.clone();
                    let (owner, agent) = (Some(Owner::Nobody), self.agent.clone());
                    self.open(Wanted { selection, directory, owner, agent, typed: false, follows: false });
                }
            }
        }
    }
}
