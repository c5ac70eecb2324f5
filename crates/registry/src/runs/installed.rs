//! The jobs that are offered.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hangar_jobs::chart::{ChartGraph, chart};
use hangar_jobs::entry::{GridRow, Work};
use hangar_jobs::read::{LoadError, load};
use hangar_jobs::validate::ValidEntry;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

use super::Runs;
use crate::error::RegistryError;

#[derive(Debug, Clone)]
pub struct InstalledJobs {
    pub path: PathBuf,
    pub entry: Arc<ValidEntry>,
}

/// The installed jobs.
#[skip_serializing_none]
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Jobs")]
pub struct JobsView {
    pub entry: Option<EntryView>,
    pub grid: Vec<GridRow>,
    #[schemars(with = "std::collections::BTreeMap<String, JobView>")]
    pub jobs: Map<String, Value>,
    #[schemars(with = "std::collections::BTreeMap<String, ChartGraph>")]
    pub chart: Map<String, Value>,
    pub tasks: Vec<TaskView>,
    /// Id of the model of each category.
    #[schemars(with = "std::collections::BTreeMap<String, String>")]
    pub models: Map<String, Value>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "JobsEntry")]
pub struct EntryView {
    pub path: String,
    /// Errors in the file as it is now; the jobs are those of its last valid version.
    pub problems: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Job")]
struct JobView {
    require_user_input: bool,
    work: Work,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Task")]
pub struct TaskView {
    pub name: String,
    pub require_user_input: bool,
}

impl Runs {
    pub fn entry(&self) -> Option<Arc<ValidEntry>> {
        self.0.installed.lock().as_ref().map(|installed| Arc::clone(&installed.entry))
    }

    pub fn entry_path(&self) -> Option<PathBuf> {
        self.0.installed.lock().as_ref().map(|installed| installed.path.clone())
    }

    /// Offers these jobs from now on. Runs that are under way keep theirs.
    pub fn install(&self, path: &Path, entry: Arc<ValidEntry>) {
        *self.0.installed.lock() = Some(InstalledJobs { path: path.to_owned(), entry });
    }

    /// Offers the jobs of a file.
    pub fn install_file(&self, path: &Path) -> Result<(), RegistryError> {
        if !path.is_absolute() {
            return Err(RegistryError::Unprocessable(format!(
                "`{}` is not an absolute path",
                path.display()
            )));
        }
        let entry = load(path).map_err(|error| RegistryError::Unprocessable(sentence(&error)))?;
        self.install(path, Arc::new(entry));
        Ok(())
    }

    pub fn jobs(&self) -> JobsView {
        let Some(InstalledJobs { path, entry }) = self.0.installed.lock().clone() else {
            return JobsView {
                entry: None,
                grid: Vec::new(),
                jobs: Map::new(),
                chart: Map::new(),
                tasks: Vec::new(),
                models: Map::new(),
            };
        };
        // A file that was edited is reported; its new content counts once it is installed again.
        let problems = load(&path).err().map(|error| sentence(&error)).into_iter().collect();
        let jobs = entry.jobs.iter().map(|(name, job)| {
            let view =
                JobView { require_user_input: job.require_user_input == Some(true), work: job.work.clone() };
            (name.clone(), json(&view))
        });
        let charts = entry.jobs.iter().map(|(name, job)| (name.clone(), json(&chart(&job.work))));
        let tasks = entry
            .tasks
            .iter()
            .map(|(name, task)| TaskView { name: name.clone(), require_user_input: task.require_user_input });
        let models = entry.models.iter().map(|(name, id)| (name.clone(), Value::String(id.clone())));
        JobsView {
            entry: Some(EntryView { path: path.display().to_string(), problems }),
            grid: entry.grid.clone(),
            jobs: jobs.collect(),
            chart: charts.collect(),
            tasks: tasks.collect(),
            models: models.collect(),
        }
    }
}

/// Error with its causes, as one sentence.
fn sentence(error: &LoadError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

/// Our own types have a JSON form.
fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}
