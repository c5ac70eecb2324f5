//! Live reload: sessions that are opened after a change of the file use the new settings.

use std::convert::Infallible;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hangar_protocol::Body;
use hangar_protocol::data::{SessionInfo, SessionWarning};
use hangar_registry::hub::Hub;
use parking_lot::Mutex;

use super::check;

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

/// Type of the events that tell sessions of a change.
const CONFIGURATION: &str = "configuration";

/// Change of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ConfigChange {
    Used,
    /// It cannot be used, for a reason with its line. The settings stay as they were.
    Refused(String),
}

impl ConfigChange {
    /// The change as the sessions under way tell it.
    pub(crate) fn event(&self) -> Body {
        match self {
            Self::Used => {
                let told = "config.toml has changed: new sessions use it, this session keeps the settings that it \
                            began with";
                SessionInfo::new(CONFIGURATION, told.to_owned()).into()
            }
            Self::Refused(why) => {
                let told = format!("config.toml has changed and cannot be used, so all settings stay: {why}");
                SessionWarning::new(CONFIGURATION, told).into()
            }
        }
    }
}

/// Settings with the last text of `config.toml` that can be used.
pub(crate) struct LiveConfig {
    settings: Settings,
    current: Mutex<CurrentConfig>,
}

struct CurrentConfig {
    stamp: FileStamp,
    text: Arc<str>,
    /// Changes that nobody was told of yet; the last one counts.
    news: Option<ConfigChange>,
}

impl LiveConfig {
    /// A text that cannot be used from the start fails where it is used, with its own error.
    pub(crate) fn new(settings: Settings) -> Self {
        let stamp = FileStamp::of(&settings.config_path());
        let text = settings.config_text().unwrap_or_default().into();
        Self { settings, current: Mutex::new(CurrentConfig { stamp, text, news: None }) }
    }

    /// The settings as they are now. They do not change any more.
    pub(crate) fn settings(&self) -> Settings {
        let mut current = self.current.lock();
        self.refresh(&mut current);
        self.settings.with_config(Arc::clone(&current.text))
    }

    /// Waits for the next change of the file.
    pub(crate) async fn changed(&self) -> ConfigChange {
        loop {
            if let Some(change) = self.take_news() {
                return change;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    fn take_news(&self) -> Option<ConfigChange> {
        let mut current = self.current.lock();
        self.refresh(&mut current);
        current.news.take()
    }

    fn refresh(&self, current: &mut CurrentConfig) {
        let stamp = FileStamp::of(&self.settings.config_path());
        if stamp == current.stamp {
            return;
        }
        current.stamp = stamp;
        let read = self.settings.config_text().map_err(|error| format!("{error:#}"));
        let usable = read.and_then(|text| match check::obstacle(&self.settings, &text) {
            Some(why) => Err(why),
            None => Ok(text),
        });
        match usable {
            Ok(text) if *text == *current.text => {}
            Ok(text) => (current.text, current.news) = (text.into(), Some(ConfigChange::Used)),
            Err(why) => {
                tracing::error!("the configuration stays as it was: {why}");
                current.news = Some(ConfigChange::Refused(why));
            }
        }
    }
}

/// Follows the file for a hub: new limits, budgets and retries apply to what is granted next, and sessions under way are told.
pub(crate) async fn follow_for(settings: Settings, hub: Hub) -> Infallible {
    let config = LiveConfig::new(settings);
    loop {
        let change = config.changed().await;
        if change == ConfigChange::Used {
            match queue::configured(&config.settings()) {
                Ok((limits, retries)) => hub.scheduler().configure(limits, retries),
                Err(error) => tracing::error!("the limits stay as they were: {error:#}"),
            }
        }
        hub.tell_open(&change.event());
    }
}
