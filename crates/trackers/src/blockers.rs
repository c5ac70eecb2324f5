//! Blockers of the issues of a list, where each takes a request: they are kept, and a list costs a bounded number of requests.

use std::time::Duration;

use futures_util::future::BoxFuture;

use crate::error::{TrackerError, TrackerErrorKind};
use crate::issue::{Blocker, Issue};
use crate::kept::Kept;
use crate::label_states::LabelStates;

/// Most requests for blockers in one reading of a list.
const MAX_READS: usize = 50;
/// Time after which open blockers are read again: that one is closed does not change the issue.
const OPEN_FRESH: Duration = Duration::from_secs(60);
const FRESH: Duration = Duration::from_secs(600);

#[derive(Default)]
pub(crate) struct Blockers(Kept<Vec<Blocker>>);

impl Blockers {
    /// Adds the blockers of open issues. An issue whose turn has not come is not dispatchable until the next reading.
    pub(crate) async fn add<'a, 'i>(
        &self,
        issues: impl Iterator<Item = &'i mut Issue>,
        states: &LabelStates,
        read: impl Fn(u64) -> BoxFuture<'a, Result<Vec<Blocker>, TrackerError>>,
    ) -> Result<(), TrackerError> {
        let is_open = |blocker: &Blocker| !states.is_terminal(&blocker.state);
        let mut reads = 0;
        for issue in issues.filter(|issue| !states.is_terminal(&issue.state)) {
            let Ok(number) = issue.id.0.parse::<u64>() else { continue };
            let updated = issue.updated_at.clone().unwrap_or_default();
            let fresh = |known: &Vec<Blocker>| if known.iter().any(is_open) { OPEN_FRESH } else { FRESH };
            if let Some(known) = self.0.get(number, &updated, fresh) {
                issue.blocked_by = known;
                continue;
            }
            if reads == MAX_READS {
                issue.dispatchable = false;
                continue;
            }
            reads += 1;
            issue.blocked_by = match read(number).await {
                Ok(found) => found,
                // The edition or the settings of the project have no blockers.
                Err(error) if matches!(error.kind, TrackerErrorKind::NotFound | TrackerErrorKind::Auth) => {
                    Vec::new()
                }
                Err(error) => return Err(error),
            };
            self.0.put(number, &updated, issue.blocked_by.clone());
        }
        Ok(())
    }
}
