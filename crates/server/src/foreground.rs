//! Foreground session: the one that a view beside the server shows. Without a view there is none.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};

use crate::hub::{Lifecycle, ServerHub};

/// Requests to show another session that may wait for the view.
const REQUESTS: usize = 16;
/// Time that a view gets to show another session.
const PATIENCE: Duration = Duration::from_secs(30);

/// Request of a client that the view shows a session.
#[derive(Debug)]
pub struct ShowRequest {
    pub session_id: String,
    /// Takes the result: an error is a sentence that says why the view shows what it showed before.
    pub answer: oneshot::Sender<Result<(), String>>,
}

/// View beside the server, if there is one, and the session that it shows.
#[derive(Default)]
pub(crate) struct Foreground(Mutex<Option<View>>);

struct View {
    shown: Option<String>,
    requests: mpsc::Sender<ShowRequest>,
}

impl Foreground {
    pub(crate) fn has_view(&self) -> bool {
        self.0.lock().is_some()
    }

    /// Session that the view shows.
    pub(crate) fn shown(&self) -> Option<String> {
        self.0.lock().as_ref().and_then(|view| view.shown.clone())
    }

    /// Has the view show a session.
    pub(crate) async fn request(&self, session_id: String) -> Result<(), String> {
        let requests = self.0.lock().as_ref().map(|view| view.requests.clone());
        let gone = || "the terminal is gone".to_owned();
        let requests = requests.ok_or_else(gone)?;
        let (answer, answered) = oneshot::channel();
        let busy = || "the terminal has too many sessions to show already; ask again later".to_owned();
        requests.try_send(ShowRequest { session_id, answer }).map_err(|_| busy())?;
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(gone()),
            Err(_) => Err(format!("the terminal did not answer within {} s", PATIENCE.as_secs())),
        }
    }
}

impl ServerHub {
    /// Adds the view that a person looks at, which receives the requests to show other sessions.
    pub fn add_view(&self) -> mpsc::Receiver<ShowRequest> {
        let (requests, received) = mpsc::channel(REQUESTS);
        *self.foreground.0.lock() = Some(View { shown: None, requests });
        received
    }

    /// Records the session that the view shows, and tells the clients.
    pub fn shows(self: &Arc<Self>, session: Option<&str>) {
        let before = {
            let mut view = self.foreground.0.lock();
            let Some(view) = view.as_mut() else { return };
            if view.shown.as_deref() == session {
                return;
            }
            std::mem::replace(&mut view.shown, session.map(str::to_owned))
        };
        if let Some(before) = before {
            self.announce_live(Lifecycle::Background, &before);
        }
        if let Some(session) = session {
            self.announce_live(Lifecycle::Foreground, session);
        }
    }
}
