//! The loop of the terminal: keys, events and time go into the view, frames and effects come out.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use hangar_protocol::EventId;
use hangar_server::ShowRequest;
use hangar_store::Store;
use hangar_terminal::effect::{CallId, ExitKind};
use hangar_terminal::input::Input;
use hangar_terminal::state::State;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::Launch;
use super::agents::Agents;
use super::detach::CLOSING;
use super::host::Ending;
use super::hosts::{HostKind, Hosts};
use super::link::{Link, LinkNews};
use super::login::{LoginNews, ModelSetup, SWITCHING};
use super::opening::{self, Start, Wanted};
use super::owner::Owner;
use super::preferences::{HistoryFile, TerminalPreferences};
use super::questions::Joining;
use super::restart;
use super::signals::{Caught, Signals};
use super::surface::{Drawn, Surface};
use crate::exit::Exit;
use crate::output::remark;
use crate::runtimes::plan;
use crate::runtimes::rehearsal::Rehearsal;
use crate::settings::Settings;
use crate::workspace::trust::{self, Trust};

/// Time between two draws while text streams. Keys draw at once.
const STREAM_PACE: Duration = Duration::from_millis(33);
/// Time without a change of the size after which the screen is drawn again.
const RESIZE_QUIET: Duration = Duration::from_millis(120);
/// Inputs of background work that may wait.
const INBOX: usize = 64;
/// Events that are taken before the screen is drawn.
const BATCH: usize = 512;
/// Ids of requests of the loop; the view's own count up from zero.
pub(super) const LEAVING: CallId = CallId(u64::MAX - 1);
pub(super) const NAMING: CallId = CallId(u64::MAX - 2);
pub(super) const GREETING: CallId = CallId(u64::MAX - 4);
pub(super) const QUESTIONS: CallId = CallId(u64::MAX - 5);
/// Requests that open sessions count down from here.
const OPENING: CallId = CallId(u64::MAX - 6);
/// Results of lookups that may wait.
const FOUND: usize = 16;

/// Result of a lookup outside of this process.
pub(super) enum LookupResult {
    /// The session, with the process that has it.
    Owner(Box<Wanted>),
    /// Whether a portal took the session over.
    HandedOver(Result<(), String>),
    /// A step of setting a provider up.
    Login(LoginNews),
    /// Process that has the session which was closed elsewhere, if one has.
    Moved(Option<Owner>),
}

pub(super) struct App {
    pub(super) settings: Settings,
    pub(super) hosts: Hosts,
    pub(super) agents: Agents,
    pub(super) store: Store,
    pub(super) directory: PathBuf,
    pub(super) preferences: TerminalPreferences,
    pub(super) history: HistoryFile,
    state: State,
    surface: Surface,
    pub(super) trust: DirectoryTrust,
    /// Connection to the server of the session that is shown.
    pub(super) link: Option<Link>,
    /// Owner of the session that is shown, if it runs in another process.
    pub(super) elsewhere: Option<Owner>,
    pub(super) joining: Joining,
    /// Whether the process that has the session next is being looked for.
    pub(super) is_following: bool,
    /// Last event of the session that is logged.
    pub(super) last_event: Option<EventId>,
    pub(super) models: ModelSetup,
    pub(super) found: mpsc::Sender<LookupResult>,
    /// Answer to the client that asked for the session.
    pub(super) showing: Option<oneshot::Sender<Result<(), String>>>,
    /// Session that the view shows.
    pub(super) session: Option<String>,
    /// Its agent, if that is not our own.
    pub(super) agent: Option<String>,
    pub(super) wanted: Option<Wanted>,
    /// Request that opens the session.
    pub(super) opening: CallId,
    /// Scripted model of a rehearsal, while the view is open.
    _rehearsal: Option<Rehearsal>,
    /// Prompt of `-i`, until the session is open.
    pub(super) first: Option<String>,
    pub(super) end: ViewEnd,
    inbox: mpsc::Sender<Input>,
    later: Vec<Input>,
    drawing: DrawTimes,
}

/// Trust in the directory.
#[derive(Default)]
pub(super) struct DirectoryTrust {
    /// Whether the person was asked about it.
    asked: bool,
    /// Whether it is trusted, so that sessions may be opened in this process.
    pub(super) given: bool,
}

/// End or pause of the view.
pub(super) struct ViewEnd {
    pub(super) leaving: Option<ExitKind>,
    /// Whether the program starts again once it has ended.
    pub(super) restarts: bool,
    /// Whether the process is to stop, as Ctrl+Z asks.
    pub(super) suspending: bool,
    /// Exit code of the signal that ended the view.
    by_signal: Option<u8>,
    kind: Ending,
}

/// Times of the screen.
struct DrawTimes {
    began: Instant,
    /// When the screen is drawn next, if something changed.
    next: Option<Instant>,
    last: Instant,
}

pub(super) async fn run(launch: Launch) -> Result<Exit> {
    let Launch { settings, agents, own, mut for_agents, directory, start, listening } = launch;
    let store = Store::new(&settings.home);
    let rehearsal = plan::rehearsal(&settings, &for_agents).await?;
    if let Some(rehearsal) = &rehearsal {
        for_agents.agent.rehearse = Some(rehearsal.stage.model_url.clone());
    }
    let (preferences, problem) = TerminalPreferences::read(&settings.home);
    let (inbox, mut inputs) = mpsc::channel(INBOX);
    let (found, mut results) = mpsc::channel(FOUND);
    let signals = Signals::new().context("cannot catch signals")?;
    let mut options = preferences.options();
    let surface = Surface::open(options.screen_reader || own.compatible.silent.screen_reader)?;
    options.screen_reader = surface.is_plain();
    let (columns, rows) = surface.size();
    let (theme, follows) = preferences.theme(&settings);
    let mut state = State::new(columns, rows, 0).with_theme(theme, follows).with_options(options);
    let mut problems: Vec<String> = problem.into_iter().collect();
    if rehearsal.is_some() {
        problems.push("the scripted model answers; no real model is asked".to_owned());
    }
    match preferences.keymap() {
        Ok(keymap) => state = state.with_keymap(keymap),
        Err(problem) => problems.push(problem),
    }
    let now = Instant::now();
    let first = own.input.interactive.clone();
    let models = ModelSetup::new(&own, rehearsal.is_some() || for_agents.agent.rehearse.is_some());
    let mut app = App {
        history: HistoryFile::of(&settings.home),
        hosts: Hosts::new(own, for_agents, agents.clone(), listening),
        settings,
        agents,
        store,
        directory,
        preferences,
        state,
        surface,
        trust: DirectoryTrust::default(),
        link: None,
        elsewhere: None,
        joining: Joining::default(),
        is_following: false,
        last_event: None,
        models,
        found,
        showing: None,
        session: None,
        agent: None,
        wanted: None,
        opening: OPENING,
        _rehearsal: rehearsal,
        first,
        end: ViewEnd {
            leaving: None,
            restarts: false,
            suspending: false,
            by_signal: None,
            kind: Ending::ByUser,
        },
        inbox,
        later: Vec::new(),
        drawing: DrawTimes { began: now, next: None, last: now },
    };
    // The prompt comes first: keys that are pressed while everything else is loaded stay in it.
    app.draw();
    app.prepare(start, problems);
    app.run_loop(&mut inputs, &mut results, signals).await;
    app.finish()
}

impl App {
    /// Loads what the first screen did without, and opens the session or asks first.
    fn prepare(&mut self, start: Start, problems: Vec<String>) {
        self.state.set_history(self.history.read());
        for problem in problems {
            self.later(Input::Told(problem));
        }
        match start {
            // A session of another process needs nothing of this one.
            Start::Session(wanted) if wanted.is_elsewhere() => return self.enter(*wanted),
            Start::Session(wanted) => self.wanted = Some(*wanted),
            Start::Pick => self.state.ask_session(),
        }
        self.ask_or_begin();
    }

    /// Starts the servers of this process, once the directory is trusted.
    pub(super) fn ask_or_begin(&mut self) {
        if std::mem::replace(&mut self.trust.asked, true) {
            return;
        }
        let flags_trust = self.hosts.own.as_ref().is_some_and(|args| args.extensions.trust_folder);
        let trust = if flags_trust { Trust::Given } else { Trust::AsDecided };
        if trust::is_trusted(&self.settings, trust, &self.directory) {
            self.begin();
        } else {
            let shown = opening::shown(&self.directory, &self.settings);
            self.state.ask_trust(&shown);
        }
        // Effects of the view so far are performed, and drawn, with the first input.
        self.later(Input::Tick);
    }

    pub(super) fn args_trust(&mut self) {
        if let Some(args) = &mut self.hosts.own {
            args.extensions.trust_folder = true;
        }
    }

    /// Starts the server of our own sessions, unless only another agent's is asked for, and opens the wanted one.
    pub(super) fn begin(&mut self) {
        self.trust.given = true;
        let is_agents = self.wanted.as_ref().is_some_and(|wanted| wanted.host_kind() == HostKind::Agents);
        if (!is_agents || self.hosts.has_clients())
            && let Err(error) = self.hosts.start_own(&self.settings)
        {
            return self.later(Input::Lost(format!("{error:#}")));
        }
        if let Some(wanted) = self.wanted.take() {
            self.open(wanted);
        }
    }

    pub(super) fn has_content(&self) -> bool {
        self.state.has_content()
    }

    pub(super) fn is_working(&self) -> bool {
        self.state.is_working()
    }

    fn now(&self) -> u64 {
        u64::try_from(self.drawing.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Gives the view an input and does what it asks for.
    pub(super) fn take(&mut self, input: Input) {
        let now = self.now();
        for effect in self.state.update(input, now) {
            self.perform(effect);
        }
    }

    /// Has the view take an input in the next round.
    pub(super) fn later(&mut self, input: Input) {
        self.later.push(input);
    }

    /// Runs work that may take a while, and gives the view its result.
    pub(super) fn in_background(&self, work: impl FnOnce() -> Input + Send + 'static) {
        let inbox = self.inbox();
        tokio::task::spawn_blocking(move || {
            // A view that has ended needs no result.
            let _ = inbox.blocking_send(work());
        });
    }

    /// Where results of background work go.
    pub(super) fn inbox(&self) -> mpsc::Sender<Input> {
        self.inbox.clone()
    }

    async fn run_loop(
        &mut self,
        inputs: &mut mpsc::Receiver<Input>,
        results: &mut mpsc::Receiver<LookupResult>,
        mut signals: Signals,
    ) {
        loop {
            for input in std::mem::take(&mut self.later) {
                self.take(input);
                self.schedule(Duration::ZERO);
            }
            if self.end.suspending {
                self.suspend().await;
            }
            if self.end.leaving.is_some() {
                return;
            }
            if self.later.is_empty() && self.drawing.next.is_some_and(|at| at <= Instant::now()) {
                self.draw();
            }
            let due = self.state.due().map(|due| self.drawing.began + Duration::from_millis(due));
            let wake = [due, self.drawing.next].into_iter().flatten().min();
            tokio::select! {
                biased;
                typed = self.surface.next() => match typed {
                    Some(typed) => {
                        self.take(typed);
                        self.schedule(Duration::ZERO);
                    }
                    // The terminal is gone.
                    None => {
                        self.end.kind = Ending::FromOutside;
                        return;
                    }
                },
                caught = signals.next() => match caught {
                    Caught::Resize => self.drawing.next = Some(Instant::now() + RESIZE_QUIET),
                    caught => {
                        self.end.by_signal = caught.exit_code();
                        self.end.kind = Ending::FromOutside;
                        return;
                    }
                },
                news = next_news(&mut self.link) => self.hear(news),
                Some(found) = results.recv() => {
                    match found {
                        LookupResult::Owner(wanted) => self.enter(*wanted),
                        LookupResult::HandedOver(result) => self.handed_over(result),
                        LookupResult::Login(news) => self.login_news(news),
                        LookupResult::Moved(owner) => self.moved(owner),
                    }
                    self.schedule(Duration::ZERO);
                }
                Some(request) = next_show(&mut self.hosts.shows) => {
                    self.show(request);
                    self.schedule(Duration::ZERO);
                }
                Some(input) = inputs.recv() => {
                    self.take(input);
                    self.schedule(Duration::ZERO);
                }
                () = until(wake) => {
                    if due.is_some_and(|due| due <= Instant::now()) {
                        self.take(Input::Tick);
                        self.schedule(Duration::ZERO);
                    }
                }
            }
        }
    }

    /// Takes news of the session, as many as there are.
    fn hear(&mut self, news: LinkNews) {
        let mut next = Some(news);
        let mut taken = 0;
        while let Some(news) = next {
            match news {
                LinkNews::Event { session_id, event } if Some(&session_id) == self.session.as_ref() => {
                    if self.joining.admits(&event) {
                        self.heard(&event);
                        self.take(Input::Event(event));
                    }
                }
                LinkNews::Event { .. } | LinkNews::Reply { call: GREETING | LEAVING | NAMING, .. } => {}
                LinkNews::Reply { call, result } if call == self.opening => self.opened(result),
                LinkNews::Reply { call: SWITCHING, result: Ok(_) } => {}
                LinkNews::Reply { call: SWITCHING, result: Err(reason) } => {
                    self.take(Input::Printed(format!("the session keeps its model: {reason}")));
                }
                LinkNews::Reply { call: QUESTIONS, result } => self.ask_open_questions(result),
                LinkNews::Reply { call: CLOSING, result } => self.closed_here(result),
                LinkNews::Reply { call, result } => self.take(Input::Reply { call, result }),
                LinkNews::Closed => {
                    self.link = None;
                    if !self.follow() {
                        self.lost_elsewhere();
                    }
                }
            }
            taken += 1;
            next = match &mut self.link {
                Some(link) if taken < BATCH => link.news.try_recv().ok(),
                _ => None,
            };
        }
        self.schedule(STREAM_PACE);
    }

    /// Has the screen drawn, at most once in `pace`.
    fn schedule(&mut self, pace: Duration) {
        let at = self.drawing.last + pace;
        self.drawing.next = Some(self.drawing.next.map_or(at, |known| known.min(at)));
    }

    fn draw(&mut self) {
        self.drawing.next = None;
        match self.surface.draw(&mut self.state) {
            Drawn::Done => self.drawing.last = Instant::now(),
            Drawn::Resized(columns, rows) => {
                self.take(Input::Resize { columns, rows });
                // The terminal may still be changing: what is drawn now could wrap under us.
                self.drawing.next = Some(Instant::now() + RESIZE_QUIET);
            }
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) {
        self.surface.write(bytes);
    }

    pub(super) fn redraw(&mut self) {
        self.surface.invalidate();
        self.schedule(Duration::ZERO);
    }

    /// Gives the terminal back for a while.
    pub(super) fn release(&mut self) {
        self.surface.release();
    }

    pub(super) fn retake(&mut self) {
        let taken = self.surface.retake();
        self.taken_back(taken);
    }

    async fn suspend(&mut self) {
        self.end.suspending = false;
        let taken = self.surface.suspend().await;
        self.taken_back(taken);
    }

    fn taken_back(&mut self, taken: std::io::Result<()>) {
        if let Err(error) = taken {
            tracing::error!(%error, "the terminal cannot be taken back");
            self.end.leaving = Some(ExitKind::Close);
            return;
        }
        let (columns, rows) = self.surface.size();
        self.take(Input::Resize { columns, rows });
        self.schedule(Duration::ZERO);
    }

    /// Leaves the terminal as it was, then closes the session.
    fn finish(mut self) -> Result<Exit> {
        self.surface.leave(&mut self.state);
        let goes_on = self.goes_on();
        self.link = None;
        self.hosts.close(self.end.kind);
        if let Some(line) = self.state.unsent_line() {
            // The draft is found again with the up key.
            let _ = self.history.add(&line);
        }
        let session = self.session.as_ref().filter(|_| self.state.has_content());
        if self.end.restarts && self.end.by_signal.is_none() {
            return Err(restart::again(session.map(String::as_str)));
        }
        if let Some(id) = session {
            let program = &self.settings.program;
            match goes_on {
                true => remark(&format!("Session {id} goes on; see it with {program} attach {id}")),
                false => remark(&format!("Session {id}: resume it with {program} --resume={id}")),
            }
        }
        Ok(self.end.by_signal.map_or(Exit::Done, Exit::Signal))
    }
}

async fn next_news(link: &mut Option<Link>) -> LinkNews {
    match link {
        Some(link) => link.news.recv().await.unwrap_or(LinkNews::Closed),
        None => std::future::pending().await,
    }
}

async fn next_show(shows: &mut Option<mpsc::Receiver<ShowRequest>>) -> Option<ShowRequest> {
    match shows {
        Some(shows) => shows.recv().await,
        None => std::future::pending().await,
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}
