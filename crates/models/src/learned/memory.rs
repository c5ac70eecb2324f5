//! Lessons on disk, so that the next process does not pay for the same refusals. A file that cannot be read or written only
//! costs those.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::{EFFORT_WITH_TOOLS, IMAGES, Learned, OPTIONAL};
use crate::config::ProviderConfig;
use crate::facts::{Endpoint, Level};
use crate::wire::Wire;

/// Changes when the meaning of a lesson does; other files are ignored.
const VERSION: u32 = 1;
/// Age at which a lesson is tried again: vendors lift limits, and models change behind their names.
const AGE: Duration = Duration::from_secs(7 * 24 * 3600);
/// Models of one provider that are remembered; the oldest are forgotten.
const MODELS: usize = 64;
/// Bytes of the largest file that is read.
const BYTES: u64 = 256 * 1024;

/// The file of a provider.
pub(super) struct Memory {
    path: PathBuf,
    /// Lessons hold for the URL that they came from.
    base_url: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct LessonFile {
    version: u32,
    base_url: String,
    models: BTreeMap<String, Lesson>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct Lesson {
    /// Seconds since 1970.
    at: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<Endpoint>,
    refused: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    efforts: Option<Vec<Level>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output: Option<u64>,
}

impl Memory {
    pub(super) fn of(dir: &Path, config: &ProviderConfig) -> Self {
        let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
        let name: String = config.name.chars().map(safe).collect();
        Self { path: dir.join(format!("{name}.learned.json")), base_url: config.base_url.to_string() }
    }

    pub(super) fn read(&self, now: SystemTime) -> BTreeMap<String, Learned> {
        self.file(now).models.into_iter().map(|(model, lesson)| (model, lesson.learned())).collect()
    }

    /// Writes what is known of a model now, beside what other processes have written.
    pub(super) fn keep(&self, model: &str, learned: &Learned, now: SystemTime) {
        let mut file = self.file(now);
        file.models.insert(model.to_owned(), Lesson::of(learned, seconds(now)));
        while file.models.len() > MODELS {
            let Some(oldest) =
                file.models.iter().min_by_key(|(_, lesson)| lesson.at).map(|(name, _)| name.clone())
            else {
                break;
            };
            file.models.remove(&oldest);
        }
        let _ = serde_json::to_vec(&file)
            .map_err(std::io::Error::from)
            .and_then(|bytes| hangar_disk::keep(&self.path, bytes));
    }

    /// The file, without lessons that are too old.
    fn file(&self, now: SystemTime) -> LessonFile {
        let empty =
            || LessonFile { version: VERSION, base_url: self.base_url.clone(), models: BTreeMap::new() };
        let fits = std::fs::metadata(&self.path).is_ok_and(|meta| meta.len() <= BYTES);
        let read = fits.then(|| std::fs::read(&self.path).ok()).flatten();
        let Some(mut file) = read.and_then(|bytes| serde_json::from_slice::<LessonFile>(&bytes).ok()) else {
            return empty();
        };
        if file.version != VERSION || file.base_url != self.base_url {
            return empty();
        }
        let now = seconds(now);
        // A lesson from the future comes from a clock that was wrong.
        file.models.retain(|_, lesson| now.checked_sub(lesson.at).is_some_and(|age| age < AGE.as_secs()));
        file
    }
}

impl Lesson {
    fn of(learned: &Learned, at: u64) -> Self {
        Self {
            at,
            endpoint: learned.wire.map(Wire::api),
            refused: learned.refused.iter().map(|field| (*field).to_owned()).collect(),
            efforts: learned.efforts.clone(),
            max_output: learned.max_output,
        }
    }

    fn learned(self) -> Learned {
        let known = |name: &String| {
            let names = OPTIONAL.iter().map(|(field, _)| *field).chain([IMAGES, EFFORT_WITH_TOOLS]);
            names.into_iter().find(|field| field == name)
        };
        Learned {
            wire: self.endpoint.map(Wire::from),
            refused: self.refused.iter().filter_map(known).collect(),
            efforts: self.efforts,
            max_output: self.max_output,
        }
    }
}

fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base_url::BaseUrl;
    use crate::config::ProviderKind;

    fn learned() -> Learned {
        Learned {
            wire: Some(Wire::Responses),
            refused: ["temperature", IMAGES, EFFORT_WITH_TOOLS].into(),
            efforts: Some(vec![Level::Low, Level::High]),
            max_output: Some(8192),
        }
    }

    fn config(url: &str) -> ProviderConfig {
        ProviderConfig::new("a/b", ProviderKind::Anthropic, BaseUrl::parse(url).unwrap())
    }

    #[test]
    fn lessons_outlive_their_process_for_a_while() {
        let dir = tempfile::tempdir().unwrap();
        let at = |days: u64| UNIX_EPOCH + Duration::from_secs(days * 24 * 3600);
        let memory = Memory::of(dir.path(), &config("http://one.example"));
        assert!(memory.read(at(100)).is_empty());
        memory.keep("m", &learned(), at(100));
        memory.keep("n", &Learned::default(), at(101));
        assert_eq!(memory.read(at(102))["m"], learned());
        assert_eq!(memory.read(at(107)).into_keys().collect::<Vec<_>>(), ["n"], "a week");
        assert!(memory.read(at(99)).is_empty(), "a clock that was wrong");
        let moved = Memory::of(dir.path(), &config("http://two.example"));
        assert!(moved.read(at(102)).is_empty(), "another server");
    }

    #[test]
    fn the_oldest_lessons_are_forgotten() {
        let dir = tempfile::tempdir().unwrap();
        let memory = Memory::of(dir.path(), &config("http://one.example"));
        let at = |second: u64| UNIX_EPOCH + Duration::from_secs(1_000 + second);
        for n in 0..=MODELS as u64 {
            memory.keep(&format!("m{n:03}"), &learned(), at(n));
        }
        let kept = memory.read(at(100));
        assert_eq!((kept.len(), kept.contains_key("m000")), (MODELS, false));
    }
}
