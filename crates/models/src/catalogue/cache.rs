//! Lists of models on disk, with a time to live. A list that cannot be read or written only costs time.

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hangar_agent::model::ModelError;
use serde::{Deserialize, Serialize};

use super::{ModelInfo, list_models};
use crate::config::ProviderConfig;
use crate::provider::account;

/// Changes when [`ModelInfo`] does; older and newer files are then ignored.
const VERSION: u32 = 4;

/// A directory with a file for each provider.
#[derive(Debug, Clone)]
pub struct Cache {
    pub dir: PathBuf,
    /// Time to live of a list.
    pub ttl: Duration,
}

#[derive(Serialize, Deserialize)]
struct CacheEntry {
    version: u32,
    /// Seconds since 1970.
    fetched_at: u64,
    /// A list is valid only for the URL that it came from.
    base_url: String,
    /// Fingerprint of the account: what a model may be asked for depends on it.
    account: String,
    models: Vec<ModelInfo>,
}

impl Cache {
    /// The provider's models, from disk if the list there is not too old at `now`.
    pub async fn list_models(
        &self,
        config: &ProviderConfig,
        now: SystemTime,
    ) -> Result<Vec<ModelInfo>, ModelError> {
        if let Some(models) = self.read(config, now) {
            return Ok(models);
        }
        self.refresh(config, now).await
    }

    /// The provider's models as it lists them now.
    pub async fn refresh(
        &self,
        config: &ProviderConfig,
        now: SystemTime,
    ) -> Result<Vec<ModelInfo>, ModelError> {
        let models = list_models(config).await?;
        self.write(config, now, &models);
        Ok(models)
    }

    /// The list on disk, if there is one that is valid at `now`.
    pub fn read(&self, config: &ProviderConfig, now: SystemTime) -> Option<Vec<ModelInfo>> {
        let entry: CacheEntry = serde_json::from_slice(&std::fs::read(self.file(config)).ok()?).ok()?;
        // A list from the future comes from a clock that was wrong.
        let age = seconds(now).checked_sub(entry.fetched_at)?;
        let good = entry.version == VERSION
            && entry.base_url == config.base_url.to_string()
            && entry.account == account(&config.auth, false)
            && Duration::from_secs(age) < self.ttl;
        good.then_some(entry.models)
    }

    pub(super) fn write(&self, config: &ProviderConfig, now: SystemTime, models: &[ModelInfo]) {
        let entry = CacheEntry {
            version: VERSION,
            fetched_at: seconds(now),
            base_url: config.base_url.to_string(),
            account: account(&config.auth, false),
            models: models.to_vec(),
        };
        // Without the copy, the next run only asks again.
        let _ = serde_json::to_vec(&entry)
            .map_err(std::io::Error::from)
            .and_then(|bytes| hangar_disk::keep(&self.file(config), bytes));
    }

    fn file(&self, config: &ProviderConfig) -> PathBuf {
        let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
        self.dir.join(format!("{}.json", config.name.chars().map(safe).collect::<String>()))
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
