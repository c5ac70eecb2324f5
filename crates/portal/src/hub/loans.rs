//! Sessions in the hands of tasks, which say what is to be done and hear how it goes.

use std::sync::Arc;

use hangar_runtimes::runtime::{Command, Live};
use hangar_store::SessionId;
use tokio::sync::mpsc;

use super::Hub;
use crate::live::{Asker, LiveSession};
use crate::trouble::Trouble;

/// News that may wait for whoever borrowed a session.
const BORROWED_QUEUE: usize = 256;

/// Who ends a session that was lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeper {
    Hub,
    Borrower,
}

/// A session in somebody else's hands. Letting go of it gives it back, or ends it.
struct Loan {
    live: Arc<LiveSession>,
    keeper: Keeper,
}

impl Drop for Loan {
    fn drop(&mut self) {
        if self.keeper == Keeper::Borrower {
            self.live.end_now();
        }
    }
}

impl Hub {
    /// Lends a session to a task. It stays open when the task lets go of it.
    pub async fn lend(&self, id: &SessionId) -> Result<Live, Trouble> {
        let live = self.woken(id).await?;
        self.lend_out(&live, Keeper::Hub)
    }

    pub(super) fn lend_out(&self, live: &Arc<LiveSession>, keeper: Keeper) -> Result<Live, Trouble> {
        let (commands, mut orders) = mpsc::channel::<Command>(BORROWED_QUEUE);
        let (news, heard) = mpsc::channel(BORROWED_QUEUE);
        let lease = live.lease(news).ok_or_else(|| Trouble::Borrowed(live.id.clone()))?;
        self.changed(live);
        let loan = Loan { live: Arc::clone(live), keeper };
        let hub = self.clone();
        let passing = async move {
            while let Some(command) = orders.recv().await {
                match command {
                    Command::Stop if loan.keeper == Keeper::Hub => return,
                    Command::Stop => loan.live.end().await,
                    command => {
                        let Ok(place) = loan.live.commands.reserve().await else { return };
                        let mut state = loan.live.state();
                        if matches!(command, Command::Send(_)) {
                            state.prompted(Asker::Holder(lease));
                        }
                        place.send(command);
                    }
                }
                hub.changed(&loan.live);
            }
        };
        let owner = tokio::spawn(passing).abort_handle();
        Ok(Live::new(commands, heard, owner))
    }
}
