//! Effects of the view: what only the owner of the tty and the home can do.

use std::path::PathBuf;

use hangar_terminal::effect::{Effect, ExitKind, ExportFormat, SessionTarget};
use hangar_terminal::html::HtmlPage;
use hangar_terminal::input::{AttachedFile, Input};
use serde_json::{Value, json};

use super::app::App;
use super::opening::{PAGER_EVENTS, Wanted};
use super::{clipboard, editor, files};

impl App {
    pub(super) fn perform(&mut self, effect: Effect) {
        match effect {
            Effect::Call { call, method, params } => match (&self.link, &self.session) {
                (Some(link), Some(id)) => link.call(call, method, super::link::of_session(id, params)),
                _ => self.later(Input::Reply { call, result: Err("no session is open".to_owned()) }),
            },
            Effect::Open(target) => self.switch(target),
            Effect::ListFiles => {
                let directory = self.directory.clone();
                self.in_background(move || Input::Files(files::below(&directory)));
            }
            Effect::ListSessions { call } => {
                let (store, agents, here) = (self.store.clone(), self.agents.clone(), self.session.clone());
                self.in_background(move || Input::Reply {
                    call,
                    result: agents.sessions(&store, here.as_deref(), jiff::Timestamp::now()),
                });
            }
            Effect::ReadTranscript => self.read_transcript(),
            Effect::Program { call, arguments } => self.run_subcommand(call, arguments),
            Effect::CollectLogs { call, path } => {
                let name = || format!("{}-logs-{}", self.settings.program, uuid::Uuid::new_v4().simple());
                let directory = self.directory.join(path.unwrap_or_else(name));
                let destination = json!({ "kind": "directory", "outputDirectory": directory });
                let params = json!({ "destination": destination });
                self.perform(Effect::Call { call, method: "session.debug.collectLogs", params });
            }
            Effect::Worktree { call, branch, uncommitted } => {
                self.make_worktree(call, branch, uncommitted);
            }
            Effect::Restart => {
                self.end.restarts = true;
                self.end.leaving = Some(ExitKind::Close);
            }
            Effect::Edit(text) => {
                self.release();
                let edited = editor::edit(&self.settings, &text);
                self.retake();
                self.later(Input::Edited(edited));
            }
            Effect::Copy(text) => match clipboard::copy(&text) {
                Ok(bytes) => self.write(&bytes),
                Err(reason) => self.later(Input::Told(reason)),
            },
            Effect::ReadClipboard => {
                let directory = self.attachments_dir();
                self.in_background(move || {
                    let image = clipboard::image(&directory);
                    let file =
                        |path: PathBuf| AttachedFile { path: path.display().to_string(), is_image: true };
                    Input::Attached(image.map(file))
                });
            }
            Effect::Attach(path) => {
                let attached = match std::fs::metadata(&path) {
                    Ok(found) if found.is_file() => Ok(AttachedFile { path, is_image: true }),
                    Ok(_) => Err(format!("{path} is not a file")),
                    Err(error) => Err(format!("cannot read {path}: {error}")),
                };
                self.later(Input::Attached(attached));
            }
            Effect::Export { path, format } => self.export(path, format),
            Effect::Notify(text) => {
                let text: String = text.chars().filter(|c| !c.is_control()).collect();
                self.write(format!("\x07\x1b]9;{text}\x07").as_bytes());
            }
            Effect::Remember(line) => {
                if let Err(error) = self.history.add(&line) {
                    tracing::warn!(%error, "the history of prompts cannot be written");
                }
            }
            Effect::StatusCommand { command, input } => self.run_status_command(command, input),
            Effect::Keep { key, value } => self.keep(key, value),
            Effect::Trust { remember } => self.trusted(remember),
            Effect::Login => self.login(),
            Effect::Logout => self.logout(),
            Effect::Answer(answer) => self.login_answered(answer),
            Effect::Suspend => self.end.suspending = true,
            Effect::Redraw => self.redraw(),
            Effect::Exit(ExitKind::Detach) => self.detach(),
            Effect::Exit(ExitKind::Close) => self.end.leaving = Some(ExitKind::Close),
        }
    }

    fn keep(&mut self, key: &str, value: Value) {
        if let Err(problem) = self.preferences.keep(key, value) {
            self.later(Input::Told(problem));
        }
    }

    /// The person trusts the directory; the session is opened with its configuration.
    fn trusted(&mut self, remember: bool) {
        self.args_trust();
        if remember && let Err(error) = hangar_server::trust_folder(&self.settings.home, &self.directory) {
            self.later(Input::Told(format!("the directory is trusted for this session only: {error}")));
        }
        self.begin();
    }

    fn switch(&mut self, target: SessionTarget) {
        let wanted = match target {
            SessionTarget::New => Wanted::new_session(self.directory.clone(), self.agent.clone()),
            SessionTarget::Resume(text) => {
                Wanted::resumed(&self.store, &self.agents, &text, self.directory.clone())
            }
        };
        match wanted {
            Ok(wanted) => self.open(wanted),
            Err(error) => self.later(Input::Told(format!("{error:#}"))),
        }
    }

    fn read_transcript(&mut self) {
        let Some(id) = self.session.as_ref().and_then(|id| id.parse().ok()) else { return };
        let store = self.store.clone();
        self.in_background(move || match store.read_back(&id, PAGER_EVENTS) {
            Ok(events) => {
                let older = u64::from(events.len() == PAGER_EVENTS);
                Input::Transcript { events, older }
            }
            Err(error) => Input::Told(format!("the transcript cannot be read: {error}")),
        });
    }

    fn export(&mut self, path: Option<String>, format: ExportFormat) {
        let Some(id) = self.session.clone().and_then(|id| id.parse::<hangar_store::SessionId>().ok()) else {
            return;
        };
        let name = match format {
            ExportFormat::Markdown => format!("{}-session-{id}.md", self.settings.program),
            ExportFormat::Html => format!("{}-session-{id}.html", self.settings.program),
        };
        let path = self.directory.join(path.map_or_else(|| PathBuf::from(name), PathBuf::from));
        let store = self.store.clone();
        self.in_background(move || {
            let write = || -> anyhow::Result<()> {
                let mut text = Vec::new();
                match format {
                    ExportFormat::Markdown => hangar_store::export_markdown(store.read(&id)?, &mut text)?,
                    ExportFormat::Html => {
                        let mut page = HtmlPage::default();
                        for event in store.read(&id)? {
                            page.add(&event?);
                        }
                        text = page.finish(&format!("Session {id}")).into_bytes();
                    }
                }
                std::fs::write(&path, text)?;
                Ok(())
            };
            match write() {
                Ok(()) => Input::Printed(format!("The transcript is in {}", path.display())),
                Err(error) => {
                    Input::Told(format!("the transcript cannot be written to {}: {error:#}", path.display()))
                }
            }
        });
    }

    /// Where images that were pasted are kept: beside the session.
    fn attachments_dir(&self) -> PathBuf {
        match self.session.as_ref().and_then(|id| id.parse().ok()) {
            Some(id) => self.store.session_dir(&id).join("files"),
            None => self.settings.home.join("tmp"),
        }
    }

    /// Whether the session goes on when the view has ended.
    pub(super) fn goes_on(&self) -> bool {
        self.elsewhere.is_some() || self.end.leaving == Some(ExitKind::Detach)
    }
}
