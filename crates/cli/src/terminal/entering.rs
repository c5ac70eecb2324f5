//! Opening sessions in this process, and joining sessions that another process has open.

use futures_util::FutureExt;
use hangar_protocol::Event;
use hangar_server::ShowRequest;
use hangar_store::SessionId;
use hangar_terminal::effect::CallId;
use hangar_terminal::input::Input;
use serde_json::{Value, json};

use super::app::{App, GREETING, LEAVING, LookupResult, NAMING, QUESTIONS};
use super::hosts::HostKind;
use super::link::{self, Link};
use super::opening::Wanted;
use super::owner::Owner;
use super::questions::Joining;
use crate::selection::SessionSelection;

impl App {
    /// Closes the current session and opens another one. Joins it if another process has it open.
    pub(super) fn open(&mut self, mut wanted: Wanted) {
        let SessionSelection::Resume(id) = &wanted.selection else { return self.enter(wanted) };
        if wanted.owner.is_some() {
            return self.enter(wanted);
        }
        if wanted.agent.is_some() && self.elsewhere.is_none() && self.session.as_deref() == Some(id.as_str())
        {
            // It is shown already: it is left, and opened again.
            wanted.owner = Some(Owner::Nobody);
            return self.enter(wanted);
        }
        let (home, store, id) = (self.settings.home.clone(), self.store.clone(), id.clone());
        let found = self.found.clone();
        tokio::spawn(FutureExt::boxed(async move {
            wanted.owner = Some(Owner::of(&home, &store, &id).await);
            // A view that has ended needs no result.
            let _ = found.send(LookupResult::Owner(Box::new(wanted))).await;
        }));
    }

    /// Opens or joins a session whose owner is known.
    pub(super) fn enter(&mut self, wanted: Wanted) {
        let id = wanted.selection.id().clone();
        let remote = match wanted.owner.as_ref().map_or(Ok(None), |owner| owner.link(&id)) {
            Ok(remote) => remote,
            Err(reason) => return self.refuse(reason),
        };
        if remote.is_none() && !self.trust.given {
            // The directory is asked about first.
            self.wanted = Some(wanted);
            return self.ask_or_begin();
        }
        if remote.is_none() && !self.has_model(&wanted) {
            self.wanted = Some(wanted);
            return;
        }
        let past = match remote {
            Some(_) => (Vec::new(), 0),
            None => match wanted.past(&self.store) {
                Ok(past) => past,
                Err(error) => return self.refuse(format!("{error:#}")),
            },
        };
        self.leave_session();
        if let Err(reason) = self.use_link(remote, &wanted) {
            return self.refuse(reason);
        }
        if let Some(link) = &self.link {
            if let Some(Owner::Terminal(endpoint)) = &self.elsewhere {
                link.call(GREETING, "connect", link::greeting(endpoint));
            }
            let (method, mut params) = wanted.request();
            if let (HostKind::Own, None, Some(model)) =
                (wanted.host_kind(), &self.elsewhere, self.models.demo())
            {
                params["model"] = json!(model);
            }
            // The answer to an earlier one is of no interest any more.
            self.opening = CallId(self.opening.0 - 1);
            link.call(self.opening, method, params);
        }
        self.session = Some(id.to_string());
        self.agent.clone_from(&wanted.agent);
        if !wanted.follows {
            self.last_event = None;
            self.take(Input::Closed);
        }
        if !past.0.is_empty() {
            self.take(Input::History { events: past.0, older: past.1, is_live: false });
        }
        self.wanted = Some(wanted);
    }

    /// Leaves the current session. A session of another process keeps running.
    fn leave_session(&mut self) {
        if let (Some(link), Some(before), None) = (&self.link, self.session.take(), &self.elsewhere) {
            link.call(LEAVING, "session.destroy", link::of_session(&before, Value::Null));
        }
    }

    /// Uses the connection to the process that owns the session, or to the server in this process.
    fn use_link(&mut self, remote: Option<Link>, wanted: &Wanted) -> Result<(), String> {
        match remote {
            Some(remote) => {
                self.hosts.park(&mut self.link);
                self.link = Some(remote);
                self.elsewhere.clone_from(&wanted.owner);
                self.joining.begin();
            }
            None => {
                self.elsewhere = None;
                self.joining.clear();
                let connected = self.hosts.connect(wanted.host_kind(), &mut self.link, &self.settings);
                connected.map_err(|error| format!("{error:#}"))?;
            }
        }
        Ok(())
    }

    /// Shows why a session could not be opened. The current session stays open.
    fn refuse(&mut self, reason: String) {
        self.answer_show(Err(reason.clone()));
        match self.session {
            Some(_) => self.later(Input::Told(reason)),
            None => self.later(Input::Lost(reason)),
        }
    }

    pub(super) fn opened(&mut self, result: Result<Value, String>) {
        let Some(wanted) = self.wanted.take() else { return };
        match result {
            Ok(answer) => {
                if let SessionSelection::New { name: Some(name), .. } = &wanted.selection
                    && let Some(link) = &self.link
                {
                    let named = json!({ "name": name });
                    link.call(
                        NAMING,
                        "session.name.set",
                        link::of_session(wanted.selection.id().as_str(), named),
                    );
                }
                if self.elsewhere.is_some() {
                    self.joined(&wanted);
                }
                let facts = wanted.facts(&self.settings, &self.store, &answer);
                self.take(Input::Ready(facts));
                if let Some(prompt) = self.first.take() {
                    self.take(Input::Prompt(prompt));
                }
                self.shown();
                self.answer_show(Ok(()));
            }
            Err(reason) => {
                self.session = None;
                self.shown();
                self.answer_show(Err(reason.clone()));
                self.take(Input::Lost(reason));
            }
        }
    }

    /// Handles a successful join: shows the history of the session and requests its pending questions.
    fn joined(&mut self, wanted: &Wanted) {
        let place = self.elsewhere.as_ref().map_or("", Owner::place);
        match wanted.past(&self.store) {
            Ok((events, _)) if wanted.follows => {
                self.joining.opened(&events);
                self.catch_up(events);
            }
            Ok((events, older)) => {
                self.joining.opened(&events);
                self.last_event = events.last().map(|event| event.id().clone());
                self.take(Input::History { events, older, is_live: true });
            }
            Err(error) => {
                self.joining.opened(&[]);
                self.later(Input::Told(format!("the past of the session cannot be read: {error:#}")));
            }
        }
        let id = wanted.selection.id();
        let word = if wanted.follows { "the session moved to" } else { "attached to a session in" };
        self.later(Input::Told(format!("{word} {place}, which goes on without this view")));
        if let Some(link) = &self.link {
            link.call(QUESTIONS, "session.eventLog.read", link::of_session(id.as_str(), Joining::request()));
        }
    }

    /// Shows events that were logged after the last one received.
    pub(super) fn catch_up(&mut self, events: Vec<Event>) {
        let last = self.last_event.as_ref();
        let seen = events.iter().position(|event| Some(event.id()) == last).map_or(0, |at| at + 1);
        for event in events.into_iter().skip(seen) {
            self.heard(&event);
            self.take(Input::Event(Box::new(event)));
        }
    }

    pub(super) fn ask_open_questions(&mut self, result: Result<Value, String>) {
        match result {
            Ok(answer) => {
                for event in self.joining.open_questions(&answer) {
                    self.take(Input::Event(Box::new(event)));
                }
            }
            Err(reason) => self.later(Input::Told(format!("open questions cannot be read: {reason}"))),
        }
    }

    /// Tells the clients of this process which session is shown.
    fn shown(&self) {
        self.hosts.tell_shown(self.session.as_deref());
    }

    /// Shows the session that a client asks for.
    pub(super) fn show(&mut self, request: ShowRequest) {
        let ShowRequest { session_id, answer } = request;
        if self.session.as_ref() == Some(&session_id) && self.wanted.is_none() {
            // A client that is gone needs no answer.
            let _ = answer.send(Ok(()));
            return;
        }
        let known = session_id.parse::<SessionId>().ok().filter(|id| self.store.contains(id));
        let Some(id) = known else {
            let _ = answer.send(Err(format!("Session not found: {session_id}")));
            return;
        };
        self.answer_show(Err("another session was asked for meanwhile".to_owned()));
        self.showing = Some(answer);
        match Wanted::resumed(&self.store, &self.agents, id.as_str(), self.directory.clone()) {
            Ok(wanted) => self.open(wanted),
            Err(error) => self.answer_show(Err(format!("{error:#}"))),
        }
    }

    fn answer_show(&mut self, result: Result<(), String>) {
        if let Some(answer) = self.showing.take() {
            // A client that is gone needs no answer.
            let _ = answer.send(result);
        }
    }
}
