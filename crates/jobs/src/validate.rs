//! Validation of an entry. The result is ready to run: prompts expanded, works simplified and counted.

use std::ops::Deref;

use serde::{Deserialize, Serialize};

use crate::entry::{DRIVING, Entry, Model, Task, Work};
use crate::prompt::{RequiredTool, RuntimeVariable, TaskPrompt, expand_static, uses};

/// Maximum number of retries of a crashed driving session on one model.
const MAX_DRIVING_RETRIES: u32 = 100;

/// The first thing that is wrong with an entry, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {reason}")]
pub struct Invalid {
    pub path: String,
    pub reason: String,
}

impl Invalid {
    pub(crate) fn at(path: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { path: path.into(), reason: reason.into() }
    }
}

/// An entry that was found to be sound. Read back from a record it is taken to be so still.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ValidEntry(Entry);

impl Deref for ValidEntry {
    type Target = Entry;

    fn deref(&self) -> &Entry {
        &self.0
    }
}

/// Checks an entry in a fixed order and stops at the first mistake. `code_path` stands before every path.
pub fn validate_entry(mut entry: Entry, code_path: &str) -> Result<ValidEntry, Invalid> {
    check_models(&entry, code_path)?;
    check_grid(&entry, code_path)?;
    let mut tasks = std::mem::take(&mut entry.tasks);
    for index in 0..tasks.len() {
        let names = |name: &str| tasks.contains_key(name);
        let Some((name, task)) = tasks.get_index(index) else { continue };
        let path = format!("{code_path}entry.tasks[\"{name}\"]");
        let checked = check_task(&entry, names, task.clone(), &path)?;
        tasks[index] = checked;
    }
    entry.tasks = tasks;
    let mut jobs = std::mem::take(&mut entry.jobs);
    for (name, job) in &mut jobs {
        let path = format!("{code_path}entry.jobs[\"{name}\"]");
        job.work.simplify();
        job.work.assign_work_ids();
        check_work(&entry, &job.work, &format!("{path}.work"))?;
        let requires = job.work.tasks().iter().any(|work| entry.tasks[&work.task_id].require_user_input);
        if let Some(said) = job.require_user_input.filter(|said| *said != requires) {
            let reason = format!("Should be {requires} but is {said}.");
            return Err(Invalid::at(format!("{path}.requireUserInput"), reason));
        }
        job.require_user_input = Some(requires);
    }
    entry.jobs = jobs;
    Ok(ValidEntry(entry))
}

fn check_models(entry: &Entry, code_path: &str) -> Result<(), Invalid> {
    let Some(driving) = entry.models.get(DRIVING) else {
        return Err(Invalid::at(format!("{code_path}entry.models.driving"), "Should exist."));
    };
    if let Some(retries) = &entry.driving_session_retries {
        let path = format!("{code_path}entry.drivingSessionRetries");
        let Some(first) = retries.first() else {
            return Err(Invalid::at(path, "Should contain at least one item."));
        };
        if first.model_id != *driving {
            return Err(Invalid::at(path, "The first modelId should equal to entry.models.driving."));
        }
        if let Some(index) = retries.iter().position(|retry| retry.retries > MAX_DRIVING_RETRIES) {
            let reason = format!("Should be at most {MAX_DRIVING_RETRIES}.");
            return Err(Invalid::at(format!("{path}[{index}].retries"), reason));
        }
    }
    Ok(())
}

fn check_grid(entry: &Entry, code_path: &str) -> Result<(), Invalid> {
    for (row, cells) in entry.grid.iter().enumerate() {
        for (column, cell) in cells.jobs.iter().enumerate() {
            let Some(cell) = cell else { continue };
            if !entry.jobs.contains_key(&cell.job_name) {
                let path = format!("{code_path}entry.grid[{row}].jobs[{column}].jobName");
                return Err(Invalid::at(path, format!("\"{}\" is not a valid job name.", cell.job_name)));
            }
        }
    }
    Ok(())
}

fn check_model(entry: &Entry, model: Option<&Model>, path: &str) -> Result<(), Invalid> {
    match model {
        Some(Model::Category(category)) if !entry.models.contains_key(category) => {
            Err(Invalid::at(format!("{path}.category"), format!("\"{category}\" is not a valid model key.")))
        }
        _ => Ok(()),
    }
}

fn check_task(
    entry: &Entry,
    is_task: impl Fn(&str) -> bool,
    mut task: Task,
    path: &str,
) -> Result<Task, Invalid> {
    let expand = |prompt: &mut TaskPrompt, field: &str, asks: RequiredTool| -> Result<(), Invalid> {
        *prompt = expand_static(&entry.prompt_variables, &format!("{path}.{field}"), prompt, asks)?;
        Ok(())
    };
    check_model(entry, task.model.as_ref(), &format!("{path}.model"))?;
    expand(&mut task.prompt, "prompt", RequiredTool::Anything)?;
    let uses_input = task.prompt.0.iter().any(|text| uses(text, RuntimeVariable::UserInput));
    if uses_input != task.require_user_input {
        let reason = match task.require_user_input {
            true => "Prompt should use $user-input when requireUserInput is true.",
            false => "Prompt should not use $user-input when requireUserInput is false.",
        };
        return Err(Invalid::at(format!("{path}.requireUserInput"), reason));
    }
    if let Some(availability) = &mut task.availability {
        for (index, name) in availability.previous_tasks.iter().flatten().enumerate() {
            if !is_task(name) {
                let path = format!("{path}.availability.previousTasks[{index}]");
                return Err(Invalid::at(path, format!("\"{name}\" is not a valid task name.")));
            }
        }
        if let Some(condition) = &mut availability.condition {
            expand(condition, "availability.condition", RequiredTool::YesOrNo)?;
        }
    }
    if let Some(criteria) = &mut task.criteria {
        for (index, tool) in criteria.tool_executed.iter().flatten().enumerate() {
            if tool.known().is_none() {
                let path = format!("{path}.criteria.toolExecuted[{index}]");
                return Err(Invalid::at(path, format!("\"{}\" is not an available tool.", tool.0)));
            }
        }
        for (index, command) in criteria.commands.iter().enumerate() {
            if command.run.trim().is_empty() {
                return Err(Invalid::at(
                    format!("{path}.criteria.commands[{index}].run"),
                    "Should not be empty.",
                ));
            }
        }
        for (index, file) in criteria.files.iter().enumerate() {
            if file.is_empty() {
                return Err(Invalid::at(format!("{path}.criteria.files[{index}]"), "Should not be empty."));
            }
        }
        if let Some(condition) = &mut criteria.condition {
            expand(condition, "criteria.condition", RequiredTool::YesOrNo)?;
        }
        if let Some(additional) = &mut criteria.failure_action.additional_prompt {
            expand(additional, "criteria.failureAction.additionalPrompt", RequiredTool::Anything)?;
        }
    }
    Ok(task)
}

fn check_work(entry: &Entry, work: &Work, path: &str) -> Result<(), Invalid> {
    match work {
        Work::Ref(work) => {
            let Some(task) = entry.tasks.get(&work.task_id) else {
                let reason = format!("\"{}\" is not a valid task name.", work.task_id);
                return Err(Invalid::at(format!("{path}.taskId"), reason));
            };
            check_model(entry, work.model_override.as_ref(), &format!("{path}.modelOverride"))?;
            if work.model_override.is_none() && task.model.is_none() && task.agent.is_none() {
                let reason =
                    format!("must be defined because task \"{}\" has no specified model.", work.task_id);
                return Err(Invalid::at(format!("{path}.modelOverride"), reason));
            }
        }
        Work::Seq(_) | Work::Par(_) if work.children().is_empty() => {
            return Err(Invalid::at(format!("{path}.works"), "should have at least one element."));
        }
        Work::Seq(_) | Work::Par(_) | Work::Loop(_) | Work::Alt(_) => {}
    }
    for (step, child) in work.children() {
        check_work(entry, child, &format!("{path}{step}"))?;
    }
    Ok(())
}
