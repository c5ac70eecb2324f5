//! Cache of what servers offer, so that those which are not used need not be started.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use hangar_agent::schema::Schema;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::{Reach, ServerConfig};

/// Lifetime of a cached list of tools.
const LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// The largest file that is read.
const MAX_BYTES: u64 = 4 << 20;

/// Tools and instructions of a server.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct ToolListing {
    pub(crate) tools: Vec<OfferedTool>,
    pub(crate) instructions: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct OfferedTool {
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) schema: Schema,
    #[serde(default)]
    pub(crate) read_only: bool,
    pub(crate) meta: Option<serde_json::Value>,
}

/// A directory with one file for each configuration of a server.
#[derive(Debug, Clone)]
pub(crate) struct ToolCache {
    dir: PathBuf,
    now: fn() -> Timestamp,
}

impl ToolCache {
    pub(crate) fn new(dir: PathBuf, now: fn() -> Timestamp) -> Self {
        Self { dir, now }
    }

    pub(crate) fn load(&self, config: &ServerConfig) -> Option<ToolListing> {
        let file = fs::File::open(self.path(config)).ok()?;
        let facts = file.metadata().ok()?;
        let now = SystemTime::from((self.now)());
        let age = now.duration_since(facts.modified().ok()?).unwrap_or_default();
        if age > LIFETIME || facts.len() > MAX_BYTES {
            return None;
        }
        let mut text = Vec::with_capacity(facts.len() as usize + 1);
        file.take(MAX_BYTES).read_to_end(&mut text).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// A cache that cannot be written is one that is not there.
    pub(crate) fn save(&self, config: &ServerConfig, offer: &ToolListing) {
        let path = self.path(config);
        let Ok(text) = serde_json::to_vec(offer) else { return };
        let _ = hangar_disk::keep(&path, &text);
    }

    pub(crate) fn forget(&self, config: &ServerConfig) {
        let _ = fs::remove_file(self.path(config));
    }

    fn path(&self, config: &ServerConfig) -> PathBuf {
        let mut hasher = DefaultHasher::new();
        config.name.hash(&mut hasher);
        match &config.reach {
            Reach::Stdio(program) => {
                (0, &program.command, &program.args, &program.env, &program.cwd).hash(&mut hasher);
            }
            Reach::Http(remote) => (1, &remote.url, &remote.headers).hash(&mut hasher),
            Reach::Sse(remote) => (2, &remote.url, &remote.headers).hash(&mut hasher),
        }
        self.dir.join(format!("{:016x}.json", hasher.finish()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ConfigSource;

    fn config(command: &str) -> ServerConfig {
        ServerConfig::parse("s", &serde_json::json!({ "command": command }), ConfigSource::User, &|_| None)
            .unwrap()
    }

    fn offer() -> ToolListing {
        ToolListing { tools: Vec::new(), instructions: Some("be kind".to_owned()) }
    }

    #[test]
    fn an_offer_belongs_to_its_configuration() {
        let dir = tempfile::tempdir().unwrap();
        let cache = ToolCache::new(dir.path().to_path_buf(), Timestamp::now);
        cache.save(&config("one"), &offer());
        assert_eq!(cache.load(&config("one")), Some(offer()));
        assert_eq!(cache.load(&config("two")), None);
        cache.forget(&config("one"));
        assert_eq!(cache.load(&config("one")), None);
    }

    #[test]
    fn an_old_offer_is_not_believed() {
        let dir = tempfile::tempdir().unwrap();
        let later = ToolCache::new(dir.path().to_path_buf(), || Timestamp::now() + 2 * LIFETIME);
        later.save(&config("one"), &offer());
        assert_eq!(later.load(&config("one")), None);
    }
}
