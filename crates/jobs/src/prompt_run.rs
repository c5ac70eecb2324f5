//! A prompt as a run of one task. So it passes the queue, and can be continued after a kill.

use std::path::PathBuf;
use std::sync::Arc;

use crate::entry::{DRIVING, Entry, Model, Task};
use crate::record::{RunOrder, Subject};
use crate::validate::{Invalid, ValidEntry, validate_entry};

/// Name of the task.
const TASK: &str = "prompt";

/// A prompt, and who works on it.
#[derive(Debug, Clone)]
pub struct PromptWork {
    pub prompt: String,
    /// Named agent or runtime; the default one where absent.
    pub agent: Option<String>,
    /// Model; that of the agent where absent.
    pub model: Option<String>,
    pub directory: PathBuf,
}

/// Order of the run.
pub fn prompt_order(work: PromptWork) -> Result<RunOrder, Invalid> {
    let PromptWork { prompt, agent, model, directory } = work;
    Ok(RunOrder {
        subject: Subject::Task {
            name: TASK.to_owned(),
            model: None,
            borrowed_session: None,
            skip_availability: true,
        },
        entry: Arc::new(entry(agent.clone(), model)?),
        input: prompt,
        working_directory: directory,
        runtime: agent,
    })
}

/// Whether the run of an order is a prompt that somebody left to the queue.
pub fn is_prompt(order: &RunOrder) -> bool {
    let Subject::Task { name, borrowed_session: None, .. } = &order.subject else { return false };
    name == TASK && order.entry.jobs.is_empty() && order.entry.tasks.len() == 1
}

/// An entry with one task, whose prompt is the input of the run.
fn entry(agent: Option<String>, model: Option<String>) -> Result<ValidEntry, Invalid> {
    let task = Task {
        // Without one, the agent's own model is used.
        model: model.clone().map(Model::Id),
        agent,
        prompt: ["$user-input"].into(),
        require_user_input: true,
        ..Task::default()
    };
    let entry = Entry {
        models: [(DRIVING.to_owned(), model.unwrap_or_default())].into_iter().collect(),
        tasks: [(TASK.to_owned(), task)].into_iter().collect(),
        ..Entry::default()
    };
    validate_entry(entry, "")
}
