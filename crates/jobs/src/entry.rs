//! Entry files as people write them: tasks with prompts, jobs as trees of work, and the grid that shows them.
//!
//! The same types are the file, the API and the published schema. An [`Entry`] is not validated;
//! [`validate_entry`](crate::validate::validate_entry) does that.

use std::collections::BTreeSet;
use std::fmt;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

use crate::prompt::TaskPrompt;
use crate::tools::JobTool;

/// The category of model that decides: it checks conditions in sessions of its own.
pub const DRIVING: &str = "driving";

/// A file of tasks and jobs.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(title = "Hangar job entry")]
pub struct Entry {
    /// The id of a model for each category. `driving` has to be among them.
    #[serde(default)]
    pub models: IndexMap<String, String>,
    /// Texts that prompts use as `$name`.
    #[serde(default)]
    pub prompt_variables: IndexMap<String, TaskPrompt>,
    #[serde(default)]
    pub tasks: IndexMap<String, Task>,
    #[serde(default)]
    pub jobs: IndexMap<String, Job>,
    /// Layout of the jobs for people to choose from.
    #[serde(default)]
    pub grid: Vec<GridRow>,
    /// On which models a driving session that crashed is tried again, and how often on each. Without it, five attempts
    /// on the same model.
    pub driving_session_retries: Option<Vec<DrivingRetry>>,
}

impl Entry {
    /// The id that a model stands for. `None` for a category that does not exist.
    pub fn model_id<'a>(&'a self, model: &'a Model) -> Option<&'a str> {
        match model {
            Model::Category(category) => self.models.get(category).map(String::as_str),
            Model::Id(id) => Some(id),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DrivingRetry {
    pub model_id: String,
    pub retries: u32,
}

/// A model by what it is for, or by its id.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Model {
    Category(String),
    Id(String),
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Model::Category(name) | Model::Id(name) => f.write_str(name),
        }
    }
}

/// One thing for an agent to do, with how to tell whether it is done.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Task {
    /// Without it, the caller that starts the task must name one.
    pub model: Option<Model>,
    /// The runtime that works on it. Without it, the one that the job is run with.
    pub runtime: Option<String>,
    /// The configured agent that works on it; it takes precedence over `runtime`. A task without a model uses the agent's.
    pub agent: Option<String>,
    /// Limits that fail the task.
    #[serde(default, skip_serializing_if = "TaskLimits::is_empty")]
    pub limits: TaskLimits,
    pub prompt: TaskPrompt,
    /// Whether the prompt uses `$user-input`.
    pub require_user_input: bool,
    pub availability: Option<Availability>,
    pub criteria: Option<Criteria>,
}

impl Task {
    /// Name of the agent or runtime that works on it.
    pub fn worker(&self) -> Option<&str> {
        self.agent.as_deref().or(self.runtime.as_deref())
    }

    /// Whether it can be judged only by the job tools that an agent calls.
    pub fn needs_job_tools(&self) -> bool {
        let asked = self.availability.as_ref().is_some_and(|availability| availability.condition.is_some());
        asked
            || self.criteria.as_ref().is_some_and(|criteria| {
                criteria.condition.is_some()
                    || criteria.tool_executed.as_ref().is_some_and(|tools| !tools.is_empty())
            })
    }
}

/// When a task may begin.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Availability {
    /// One of these must have been the task before it in the job.
    pub previous_tasks: Option<Vec<String>>,
    /// A prompt that ends in `job_boolean_true` if the task may begin.
    pub condition: Option<TaskPrompt>,
}

/// When a task has succeeded. All that is given has to hold.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Criteria {
    /// Job tools that must have been called while the agent worked on the prompt.
    pub tool_executed: Option<Vec<ToolName>>,
    /// Commands that must exit with 0, run by the shell in the working directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<CommandCheck>,
    /// Paths that must exist, from the working directory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// A prompt that ends in `job_boolean_true` if the task is done.
    pub condition: Option<TaskPrompt>,
    /// Whether the condition is put to the session that did the work. Defaults to true.
    pub run_condition_in_same_session: Option<bool>,
    pub failure_action: TaskRetry,
}

/// A job tool as it was written, which may be none that exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct ToolName(pub String);

impl ToolName {
    pub fn known(&self) -> Option<JobTool> {
        JobTool::ALL.into_iter().find(|tool| tool.name() == self.0)
    }
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandCheck {
    /// For `sh -c`.
    pub run: String,
    /// Ten minutes unless it says otherwise.
    pub timeout_seconds: Option<u32>,
}

/// Retry policy for criteria that do not hold.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskRetry {
    pub retry_times: u32,
    /// Said after the prompt when it is sent again.
    pub additional_prompt: Option<TaskPrompt>,
}

#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Job {
    /// Whether any of its tasks requires it. Filled in by validation.
    pub require_user_input: Option<bool>,
    pub work: Work,
    /// Limits that stop the job.
    #[serde(default, skip_serializing_if = "JobLimits::is_empty")]
    pub limits: JobLimits,
    /// Its work goes before that of a lower priority, within the project. Default: 0.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub priority: i32,
    /// Labels that `per_label` of `[limits]` counts its work by.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub labels: BTreeSet<String>,
}

fn is_zero(priority: &i32) -> bool {
    *priority == 0
}

#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Limits")]
pub struct JobLimits {
    /// Prompts that may be sent, of all its tasks together.
    pub turns: Option<u64>,
    /// Time at work, without that in the queue and between a crash and its continuation.
    pub seconds: Option<u64>,
    /// Into and out of models, as far as agents tell.
    pub tokens: Option<u64>,
}

impl JobLimits {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Limits of one task.
#[skip_serializing_none]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskLimits {
    /// Prompts that may be sent, retries included.
    pub turns: Option<u64>,
    /// Into and out of models, as far as agents tell.
    pub tokens: Option<u64>,
}

impl TaskLimits {
    fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// The place of a task in its job's tree, counted by validation.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct WorkId(pub u32);

/// Work of a job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
pub enum Work {
    Ref(TaskWork),
    Seq(SequentialWork),
    Par(ParallelWork),
    Loop(LoopWork),
    Alt(AltWork),
}

/// Runs a task.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskWork {
    #[serde(default)]
    pub work_id_in_job: WorkId,
    /// The name of the task.
    pub task_id: String,
    pub model_override: Option<Model>,
    /// Whether it has a git worktree of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub worktree: bool,
}

/// One after the other, up to the first failure.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SequentialWork {
    pub works: Vec<Work>,
    /// Whether all of it has one git worktree of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub worktree: bool,
}

/// All at once. Succeeds if all do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ParallelWork {
    pub works: Vec<Work>,
    /// Whether all of it has one git worktree of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub worktree: bool,
}

/// Again and again while its conditions come out as expected. Without a last condition, once.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoopWork {
    pub pre_condition: Option<(bool, Box<Work>)>,
    pub post_condition: Option<(bool, Box<Work>)>,
    pub body: Box<Work>,
    /// Whether all of it has one git worktree of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub worktree: bool,
}

/// One of two, by how its condition comes out.
#[skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AltWork {
    pub condition: Box<Work>,
    pub true_work: Option<Box<Work>>,
    pub false_work: Option<Box<Work>>,
    /// Whether all of it has one git worktree of its own.
    #[serde(default, skip_serializing_if = "is_false")]
    pub worktree: bool,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GridRow {
    pub keyword: String,
    /// `null` leaves a cell empty.
    #[serde(default)]
    pub jobs: Vec<Option<GridColumn>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GridColumn {
    /// Label of the button.
    pub name: String,
    pub job_name: String,
}

/// The schema of an entry, for editors and for those who write entries by program. It is committed, since the code that makes it from
/// the types is large; a test does that.
pub const SCHEMA: &str = include_str!("../../../docs/job-entry.schema.json");

/// [`SCHEMA`], made from the types.
pub fn schema() -> serde_json::Value {
    schemars::schema_for!(Entry).to_value()
}
