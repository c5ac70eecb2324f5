//! Live reload: sessions that are opened after a change of the file use the new settings.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

use hangar_registry::queue::Scheduler;

use crate::queue;
use crate::settings::Settings;

/// How often the file is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Identity of a file's content, as far as its metadata tells. A file that is not there has the default one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FileStamp {
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl FileStamp {
    pub(crate) fn of(path: &Path) -> Self {
        let Ok(data) = std::fs::metadata(path) else { return Self::default() };
        Self { inode: data.ino(), length: data.len(), modified: (data.mtime(), data.mtime_nsec()) }
    }
}

/// Follows limits, budgets and retries of the file: new ones apply to what is granted next.
pub(crate) async fn follow_limits(settings: Settings, scheduler: Scheduler) {
    let path = settings.config_path();
    let mut stamp = FileStamp::of(&path);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let now = FileStamp::of(&path);
        if now == stamp {
            continue;
        }
        stamp = now;
        match queue::configured(&settings) {
            Ok((limits, retries)) => scheduler.configure(limits, retries),
            Err(error) => tracing::error!("the limits stay as they were: {error:#}"),
        }
    }
}
