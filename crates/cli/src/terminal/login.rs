//! Setting a provider up in the terminal: at a start without a model, and by `/login`. `/logout` removes one.

use std::sync::Arc;

use futures_util::FutureExt;
use hangar_terminal::dialog::{BodyPart, HostAnswer, HostAsk, HostItem, HostQuestion};
use hangar_terminal::effect::CallId;
use hangar_terminal::input::Input;
use serde_json::json;
use tokio::task::AbortHandle;

use super::app::{App, LookupResult};
use super::hosts::HostKind;
use super::link::of_session;
use super::opening::{self, Wanted};
use crate::args::RunArgs;
use crate::providers::{self, SCRIPTED};
use crate::selection::SessionSelection;
use crate::settings::Settings;
use crate::setup::{self, Draft, KeyKind, Next, Offers, Outcome, Setup, Work, WorkDone};

/// Request that has the session use another model.
pub(super) const SWITCHING: CallId = CallId(u64::MAX / 2);
const NO_MODEL: &str = "no model is set up yet: /login sets one up, /exit leaves";

/// Models of this process, as far as they are known before a session is opened.
#[derive(Default)]
pub(super) struct ModelSetup {
    /// Whether a model is known to be there, or the person was asked already.
    is_known: bool,
    /// Model of `--model`.
    flag: Option<String>,
    /// Model of new sessions: that of a demo.
    demo: Option<String>,
    dialogue: Option<Dialogue>,
    /// Number of the work that is waited for. Results of earlier work are of no interest.
    round: u64,
    work: Option<AbortHandle>,
}

enum Dialogue {
    Setup(Box<Setup>),
    Logout,
}

/// Result of looking around.
pub(super) enum LoginNews {
    /// Whether a session can be opened, and what is offered if not.
    Looked(Option<Offers>),
    Work(u64, WorkDone),
}

impl ModelSetup {
    pub(super) fn new(own: &RunArgs, is_rehearsed: bool) -> Self {
        let is_known = is_rehearsed || own.models.replay.is_some();
        Self { is_known, flag: own.models.model.clone(), ..Self::default() }
    }

    /// Model that a session is opened with, unless its flags say another.
    pub(super) fn demo(&self) -> Option<&str> {
        self.demo.as_deref()
    }

    fn stop_work(&mut self) {
        self.round += 1;
        if let Some(work) = self.work.take() {
            work.abort();
        }
    }
}

impl App {
    /// Whether a session of our own may be opened. If nothing is known of its model yet, that is found out first.
    pub(super) fn has_model(&mut self, wanted: &Wanted) -> bool {
        if self.models.is_known || wanted.host_kind() == HostKind::Agents {
            return true;
        }
        let model = match &wanted.selection {
            SessionSelection::New { .. } => self.models.flag.clone(),
            // A session knows its model, and the scripted one has no provider.
            SessionSelection::Resume(id) => {
                let provider = self.store.look(id).and_then(|session| session.meta.model_provider);
                let usual = if provider.is_some() { "of the session" } else { SCRIPTED };
                self.models.flag.clone().or_else(|| Some(usual.to_owned()))
            }
        };
        self.look(move |settings| match providers::is_ready(settings, model.as_deref()) {
            true => None,
            false => Some(Offers::look(settings)),
        });
        false
    }

    /// Looks around on another thread: a program may have to be asked for a login.
    fn look(&self, look: impl FnOnce(&Settings) -> Option<Offers> + Send + 'static) {
        let (settings, found) = (self.login_settings(), self.found.clone());
        tokio::task::spawn_blocking(move || {
            // A view that has ended needs no result.
            let _ = found.blocking_send(LookupResult::Login(LoginNews::Looked(look(&settings))));
        });
    }

    /// Settings with the login that sessions are opened with.
    fn login_settings(&self) -> Settings {
        setup::with_account(&self.settings)
    }

    pub(super) fn login_news(&mut self, news: LoginNews) {
        match news {
            LoginNews::Looked(None) => {
                self.models.is_known = true;
                self.enter_wanted();
            }
            LoginNews::Looked(Some(offers)) => {
                let is_unasked = !self.models.is_known;
                self.models.is_known = true;
                let (setup, next) = Setup::new(offers, is_unasked);
                self.models.dialogue = Some(Dialogue::Setup(Box::new(setup)));
                self.login_next(next);
            }
            LoginNews::Work(round, done) => {
                if round == self.models.round
                    && let Some(Dialogue::Setup(setup)) = &mut self.models.dialogue
                {
                    let next = setup.done(done);
                    self.login_next(next);
                }
            }
        }
    }

    /// Opens the session that had to wait.
    fn enter_wanted(&mut self) {
        if let Some(wanted) = self.wanted.take() {
            self.enter(wanted);
        }
    }

    pub(super) fn login(&mut self) {
        self.models.stop_work();
        self.models.is_known = true;
        self.look(|settings| Some(Offers::look(settings)));
    }

    /// Lists the providers that can be removed.
    pub(super) fn logout(&mut self) {
        self.models.stop_work();
        let providers = setup::configured_providers(&self.settings);
        if providers.is_empty() {
            let told = "No provider is in the configuration. Keys in the environment are yours to remove.";
            return self.later(Input::Printed(told.to_owned()));
        }
        let items = providers.into_iter().map(|provider| HostItem {
            id: provider.name.clone(),
            label: provider.name,
            detail: provider.credential,
        });
        let told = "It is removed from the configuration, with the key that was kept for it.";
        let question = HostQuestion {
            title: "Which provider is to be removed?".to_owned(),
            parts: vec![BodyPart::Text(told.to_owned())],
            asks: HostAsk::Pick(items.collect()),
            is_unasked: false,
        };
        self.models.dialogue = Some(Dialogue::Logout);
        self.later(Input::Ask(Some(Box::new(question))));
    }

    pub(super) fn login_answered(&mut self, answer: HostAnswer) {
        self.models.stop_work();
        match &mut self.models.dialogue {
            Some(Dialogue::Setup(setup)) => {
                let next = setup.answer(answer);
                self.login_next(next);
            }
            Some(Dialogue::Logout) => {
                self.models.dialogue = None;
                self.later(Input::Ask(None));
                if let HostAnswer::Picked(name) = answer {
                    self.remove_provider(&name);
                }
            }
            None => {}
        }
    }

    fn remove_provider(&mut self, name: &str) {
        let told = match setup::remove(&self.settings, name) {
            Ok(had_key) => {
                let key = if had_key { " Its key is deleted." } else { " No key was kept for it here." };
                format!(
                    "{name} is removed.{key} A session that is open keeps its model until you choose another."
                )
            }
            Err(error) => format!("{name} cannot be removed: {error:#}"),
        };
        self.later(Input::Printed(told));
    }

    fn login_next(&mut self, next: Next) {
        match next {
            Next::Ask(question) => self.later(Input::Ask(Some(Box::new(question)))),
            Next::Work(work) => self.login_work(work),
            Next::Done(outcome) => {
                self.models.dialogue = None;
                self.later(Input::Ask(None));
                self.login_done(outcome);
            }
        }
    }

    /// Does the work of a step. Esc stops it.
    fn login_work(&mut self, work: Work) {
        self.models.stop_work();
        let settings = Arc::new(self.login_settings());
        let question = HostQuestion {
            title: "One moment …".to_owned(),
            parts: vec![BodyPart::Text(work.told(&settings))],
            asks: HostAsk::Nothing,
            is_unasked: false,
        };
        self.later(Input::Ask(Some(Box::new(question))));
        let (round, found) = (self.models.round, self.found.clone());
        let task = tokio::spawn(FutureExt::boxed(async move {
            let done = work.run(&settings).await;
            // A view that has ended needs no result.
            let _ = found.send(LookupResult::Login(LoginNews::Work(round, done))).await;
        }));
        self.models.work = Some(task.abort_handle());
    }

    fn login_done(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Left if self.session.is_none() => self.later(Input::Lost(NO_MODEL.to_owned())),
            Outcome::Left => {}
            Outcome::Demo => {
                self.later(Input::Printed(
                    "The scripted model answers: type SAY:hello, or see docs/config.md. It is a demo, no real model is asked; \
                     /login sets one up."
                        .to_owned(),
                ));
                self.models.demo = Some(SCRIPTED.to_owned());
                self.use_model(SCRIPTED);
            }
            Outcome::Chosen { draft, model, says } => match setup::write(&self.settings, &draft, &model) {
                Ok(path) => {
                    let path = opening::shown(&path, &self.settings);
                    let key = key_place(&draft, &self.settings);
                    self.later(Input::Printed(format!("{says}\n{path} has it{key}. /login changes it.")));
                    self.models.demo = None;
                    self.use_model(&format!("{}/{model}", draft.name));
                }
                Err(error) => {
                    let told = format!("the configuration cannot be written: {error:#}");
                    match self.session {
                        Some(_) => self.later(Input::Printed(told)),
                        None => self.later(Input::Lost(told)),
                    }
                }
            },
        }
    }

    /// Goes on with a model: in the session that is shown, or in the one that waits for it, or in a new one.
    fn use_model(&mut self, model: &str) {
        let is_own = self.elsewhere.is_none() && self.agent.is_none();
        match (&self.link, &self.session) {
            (Some(link), Some(id)) if is_own => {
                let params = of_session(id, json!({ "modelId": model }));
                link.call(SWITCHING, "session.model.switchTo", params);
            }
            (_, Some(_)) => {
                self.later(Input::Printed(format!("New sessions of Hangar's own agent use {model}.")));
            }
            (_, None) if self.wanted.is_some() => self.enter_wanted(),
            (_, None) => match Wanted::new_session(self.directory.clone(), None) {
                Ok(wanted) => self.enter(wanted),
                Err(error) => self.later(Input::Told(format!("{error:#}"))),
            },
        }
    }
}

/// Says where the key was put, if it was typed.
fn key_place(draft: &Draft, settings: &Settings) -> String {
    match &draft.key {
        KeyKind::Typed(_) => {
            let path = settings.home.join(draft.key_file());
            format!(", and {} the key", opening::shown(&path, settings))
        }
        _ => String::new(),
    }
}
