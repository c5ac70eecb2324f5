//! Tests bring their own jobs, in a file of a `test` folder.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hangar_jobs::entry::DRIVING;
use hangar_jobs::read::{Format, MAX_ENTRY_BYTES, ReadError, read_entry};
use hangar_jobs::validate::{ValidEntry, validate_entry};
use hangar_runtimes::runtime::OfferedModel;
use serde::Serialize;
use serde_json::json;

use super::Polling;
use super::answer::PollingResponse;

/// Prefix of validation messages.
const CODE_PATH: &str = "testEntry";
const TEST_FOLDER: &str = "test";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
enum NotInstalled {
    InvalidatePath,
    InvalidateEntry,
    Rejected,
}

impl Polling {
    pub(super) async fn install(&self, path: &str) -> PollingResponse {
        let path = Path::new(path.trim());
        let installed = async {
            let entry = self.read_test_entry(path)?;
            self.check_models(&entry).await.map_err(|why| (NotInstalled::Rejected, why))?;
            self.use_entry(path, entry)
        };
        match installed.await {
            Ok(()) => PollingResponse::Done(json!({ "result": "OK" })),
            Err((result, error)) => PollingResponse::Done(json!({ "result": result, "error": error })),
        }
    }

    fn read_test_entry(&self, path: &Path) -> Result<ValidEntry, (NotInstalled, String)> {
        let wrong_path = |why: String| (NotInstalled::InvalidatePath, why);
        let file = in_test_folder(path, &self.roots).map_err(wrong_path)?;
        let length = std::fs::metadata(&file).map_err(|error| wrong_path(error.to_string()))?.len();
        if length > MAX_ENTRY_BYTES as u64 {
            return Err(wrong_path(
                ReadError::TooLong(usize::try_from(length).unwrap_or(usize::MAX)).to_string(),
            ));
        }
        let text = std::fs::read_to_string(&file).map_err(|error| wrong_path(error.to_string()))?;
        let entry = read_entry(&text, Format::of(&file), CODE_PATH).map_err(|error| match error {
            ReadError::TooLong(_) | ReadError::Json(_) | ReadError::Yaml(_) => wrong_path(error.to_string()),
            ReadError::Invalid(_) => (NotInstalled::InvalidateEntry, error.to_string()),
        })?;
        validate_entry(entry, CODE_PATH).map_err(|error| (NotInstalled::InvalidateEntry, error.to_string()))
    }

    /// Checks that agents offer the requested models. An agent that lists none is not checked.
    async fn check_models(&self, entry: &ValidEntry) -> Result<(), String> {
        for (runtime, wanted) in wanted_models(entry) {
            let offered = self.roster.models(runtime).await.map_err(|error| error.to_string())?;
            let Some(offered) = offered.filter(|offered| !offered.is_empty()) else { continue };
            if offered.iter().all(|model| model.id != wanted) {
                let known: Vec<String> = offered.iter().map(described).collect();
                return Err(format!("there is no model \"{wanted}\"; there are: {}", known.join(", ")));
            }
        }
        Ok(())
    }

    fn use_entry(&self, path: &Path, entry: ValidEntry) -> Result<(), (NotInstalled, String)> {
        if self.tables.sessions.any_open() || self.tables.jobs.any_open() {
            let why = "sessions are running; stop them before other jobs are installed";
            return Err((NotInstalled::Rejected, why.to_owned()));
        }
        self.runs.install(path, Arc::new(entry));
        Ok(())
    }
}

/// The models that an entry names, each with the agent that is asked for it; `None` is the default one.
fn wanted_models(entry: &ValidEntry) -> BTreeSet<(Option<&str>, &str)> {
    let retries = entry.driving_session_retries.iter().flatten().map(|retry| retry.model_id.as_str());
    let driving = entry.models.get(DRIVING).map(String::as_str);
    let mut wanted: BTreeSet<(Option<&str>, &str)> =
        retries.chain(driving).map(|model| (None, model)).collect();
    let of_tasks = entry.tasks.values().map(|task| (task, task.model.as_ref()));
    let works = entry.jobs.values().flat_map(|job| job.work.tasks());
    let overridden =
        works.filter_map(|work| Some((entry.tasks.get(&work.task_id)?, work.model_override.as_ref())));
    for (task, model) in of_tasks.chain(overridden) {
        wanted.extend(model.and_then(|model| entry.model_id(model)).map(|id| (task.worker(), id)));
    }
    // A model of a category that no task uses yet is checked with the default agent.
    let used: BTreeSet<&str> = wanted.iter().map(|(_, model)| *model).collect();
    let unused = entry.models.values().map(String::as_str).filter(|model| !used.contains(model));
    wanted.extend(unused.map(|model| (None, model)).collect::<Vec<_>>());
    wanted
}

fn described(model: &OfferedModel) -> String {
    let name = model.name.as_ref().unwrap_or(&model.id);
    match model.multiplier {
        Some(multiplier) => format!("{name} ({}, {multiplier}x)", model.id),
        None => format!("{name} ({})", model.id),
    }
}

/// The file that is meant, if it is in a `test` folder below one of these places.
fn in_test_folder(path: &Path, roots: &[PathBuf]) -> Result<PathBuf, String> {
    if !path.is_absolute() {
        return Err(format!("`{}` is not an absolute path", path.display()));
    }
    let file = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
    let within = |root: &PathBuf| {
        let root = root.canonicalize().unwrap_or_else(|_| root.clone());
        file.strip_prefix(root)
            .ok()
            .and_then(Path::parent)
            .is_some_and(|folders| folders.components().any(|folder| folder.as_os_str() == TEST_FOLDER))
    };
    if roots.iter().any(within) {
        return Ok(file);
    }
    let places: Vec<String> = roots.iter().map(|root| root.display().to_string()).collect();
    Err(format!("{} is not in a `{TEST_FOLDER}` folder of {}", path.display(), places.join(" or ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_of_test_folders_are_taken() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let inside = root.join("repo");
        for folder in ["repo/test/deep", "repo/tests", "elsewhere/test"] {
            std::fs::create_dir_all(root.join(folder)).unwrap();
        }
        for file in [
            "repo/test/a.json",
            "repo/test/deep/b.json",
            "repo/tests/c.json",
            "repo/test.json",
            "elsewhere/test/d.json",
        ] {
            std::fs::write(root.join(file), "{}").unwrap();
        }
        std::os::unix::fs::symlink(root.join("elsewhere/test/d.json"), inside.join("test/link.json"))
            .unwrap();
        let check = |file: &str, expected: bool| {
            let path = if file.starts_with('/') { PathBuf::from(file) } else { root.join(file) };
            let found = in_test_folder(&path, std::slice::from_ref(&inside));
            assert_eq!(found.is_ok(), expected, "{file}: {found:?}");
        };
        check("repo/test/a.json", true);
        check("repo/test/deep/b.json", true);
        check("repo/test/deep/../a.json", true);
        check("repo/tests/c.json", false);
        check("repo/test.json", false);
        check("repo/test/gone.json", false);
        check("repo/test/../../elsewhere/test/d.json", false);
        check("repo/test/link.json", false);
        assert!(in_test_folder(Path::new("test/a.json"), &[inside]).is_err());
    }
}
