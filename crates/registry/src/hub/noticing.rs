//! Notices of the hub: questions, failures, ends, and budgets that begin to hold work.

use hangar_protocol::{Body, Event, EventId};
use hangar_store::SessionId;
use tokio::sync::broadcast;

use super::{Hub, iso};
use crate::live::LiveSession;
use crate::notice::{Notice, NoticeKind};

impl Hub {
    /// Notices from now on. A reader that falls behind loses the oldest ones.
    pub fn notices(&self) -> broadcast::Receiver<Notice> {
        self.0.notices.subscribe()
    }

    pub(crate) fn notify(&self, notice: Notice) {
        self.announce("notice", &notice);
        // Nobody may listen.
        let _ = self.0.notices.send(notice);
    }

    pub(crate) fn notice(&self, kind: NoticeKind, title: String, text: &str) -> Notice {
        Notice::new(kind, title, text, iso(self.now()))
    }

    /// Publishes an event to the subscribers of all sessions that are open here. No log keeps it.
    pub fn tell_open(&self, body: &Body) {
        let all: Vec<_> = self.0.live.lock().values().filter(|live| !live.elsewhere).cloned().collect();
        for live in all {
            let id = EventId(uuid::Uuid::new_v4().to_string());
            live.publish(&self.0.store, &Event::new(id, iso(self.now()), None, None, body.clone()));
        }
    }

    fn name_of(&self, id: &SessionId) -> (String, Option<String>) {
        let summary = self.0.store.look(id);
        let project =
            summary.as_ref().and_then(|found| found.meta.context.as_ref()).map(|found| found.cwd.clone());
        let name = summary.and_then(|found| found.meta.name).map(|name| name.as_str().to_owned());
        (name.unwrap_or_else(|| id.to_string()), project)
    }

    pub(super) fn notify_question(&self, live: &LiveSession, text: &str) {
        let (name, project) = self.name_of(&live.id);
        let run = live.state().stats.run.as_ref().map(|run| run.id.clone());
        let notice = self.notice(NoticeKind::Question, format!("{name}: a question"), text);
        self.notify(Notice { session: Some(live.id.to_string()), run, project, ..notice });
    }

    /// Sends the notice that a turn has ended. Runs send those of their own turns.
    pub(super) fn notify_turn(&self, live: &LiveSession, failure: Option<&str>) {
        if live.state().stats.run.is_some() || live.elsewhere {
            return;
        }
        let (name, project) = self.name_of(&live.id);
        let notice = match failure {
            Some(failure) => self.notice(NoticeKind::Failure, format!("{name}: failed"), failure),
            None => self.notice(NoticeKind::Finish, format!("{name}: done"), "The turn has ended."),
        };
        self.notify(Notice { session: Some(live.id.to_string()), project, ..notice });
    }

    /// Sends the notice that a run has ended, with the error if it failed.
    pub fn notify_run(&self, run: &str, job: &str, project: &str, failure: Option<&str>) {
        let notice = match failure {
            Some(failure) => self.notice(NoticeKind::Failure, format!("{job}: failed"), failure),
            None => self.notice(NoticeKind::Finish, format!("{job}: done"), "The run has ended."),
        };
        self.notify(Notice { run: Some(run.to_owned()), project: Some(project.to_owned()), ..notice });
    }

    /// Sends notices of budgets that have begun to hold work since the last call.
    pub(super) fn notify_budgets(&self) {
        let Ok(view) = self.0.scheduler.view_of(0) else { return };
        let held: std::collections::BTreeMap<(String, String), String> = view
            .budgets
            .into_iter()
            .filter_map(|budget| Some(((budget.kind, budget.name), budget.held?)))
            .collect();
        let news: Vec<((String, String), String)> = {
            let mut known = self.0.held_budgets.lock();
            let news = held.iter().filter(|(scope, _)| !known.contains(*scope));
            let news = news.map(|(scope, reason)| (scope.clone(), reason.clone())).collect();
            *known = held.into_keys().collect();
            news
        };
        for ((kind, name), reason) in news {
            let notice = self.notice(NoticeKind::Budget, "A budget is used up".to_owned(), &reason);
            let run = (kind == "run").then(|| name.clone());
            let project = (kind == "project").then_some(name);
            self.notify(Notice { run, project, ..notice });
        }
    }
}
