//! `sql`: the session's own database, with tables for its todos.

mod client;
mod database;
mod execution;
mod statements;
mod todos;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::BoxFuture;
use hangar_agent::interned;
use hangar_agent::tool::{Access, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec};
use hangar_protocol::Body;
use hangar_protocol::data::TodosChanged;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use self::execution::{Execution, StatementFailure, StatementResult};
use crate::answer;
use crate::arguments;
use crate::workspace::Workspace;

pub use database::Database;
pub use todos::{TodoError, TodoList, TodoRow};

/// Bytes of a query.
const QUERY_LIMIT: usize = 1024 * 1024;

pub struct Sql {
    spec: Arc<ToolSpec>,
    workspace: Arc<Workspace>,
    database: Arc<Database>,
}

impl Sql {
    pub fn new(workspace: Arc<Workspace>, database: Arc<Database>) -> Self {
        Self {
            spec: interned::spec(ToolSpec {
                name: "sql".to_owned(),
                title: None,
                description: "Runs SQLite statements on a database that belongs to this session. It has the tables \
                              todos(id, title, description, status, created_at, updated_at), where status is pending, \
                              in_progress, done or blocked, and todo_deps(todo_id, depends_on) to plan work with; make \
                              others for anything else worth keeping in order. Several statements can be sent at \
                              once, separated by semicolons."
                    .to_owned(),
                input: ToolSchema::function(json!({
                    "type": "object",
                    "properties": {
                        "description": {
                            "type": "string",
                            "description": "What this does, in two to five words: \"Add parser todos\"."
                        },
                        "query": {"type": "string", "description": "The statements to run."}
                    },
                    "required": ["description", "query"]
                })),
            }),
            workspace,
            database,
        }
    }
}

impl Tool for Sql {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        check(&parse(call)?)?;
        Ok(Access::None)
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let workspace = Arc::clone(&self.workspace);
        let database = Arc::clone(&self.database);
        Box::pin(async move {
            let cancel = context.cancel.clone();
            let todos_changed = Arc::new(AtomicBool::new(false));
            let noted = Arc::clone(&todos_changed);
            let work = move || {
                parse(&call)
                    .and_then(|query| execute(&workspace, &database, &query, &cancel, &noted))
                    .unwrap_or_else(|answer| answer)
            };
            // A cancelled statement stops by itself, and what it did must be known.
            let outcome = answer::writing(&context.cancel, work).await;
            if todos_changed.load(Ordering::Relaxed) {
                answer::tell(&context, Body::TodosChanged(TodosChanged {})).await;
            }
            outcome
        })
    }
}

fn parse(call: &ToolInput) -> Result<String, ToolOutcome> {
    arguments::read(call, |a| {
        a.required_text("description");
        a.required_text("query")
    })
}

/// The statements of a query that may be run.
fn check(query: &str) -> Result<Vec<&str>, ToolOutcome> {
    let refuse = |message: String| answer::failed(message.clone(), format!("Error: {message}"));
    if query.len() > QUERY_LIMIT {
        return Err(refuse(format!("The query is larger than {QUERY_LIMIT} bytes")));
    }
    let statements = statements::split(query);
    if statements.is_empty() {
        return Err(answer::failed("Empty query provided", "Error: Empty query provided."));
    }
    match statements.iter().find_map(|statement| statements::reaches_out(statement)) {
        Some(words) => {
            Err(refuse(format!("Blocked SQL statement: \"{words}\" is not allowed for security reasons.")))
        }
        None => Ok(statements),
    }
}

fn execute(
    workspace: &Workspace,
    database: &Database,
    query: &str,
    cancel: &CancellationToken,
    todos_changed: &AtomicBool,
) -> Result<ToolOutcome, ToolOutcome> {
    let statements = check(query)?;
    let execution = database
        .execute(&statements, cancel)
        .map_err(|error| answer::failed(error.to_string(), format!("SQL Error: {error}")))?;
    todos_changed.store(execution.todos_changed, Ordering::Relaxed);
    let text = describe(statements.len(), execution)
        .map_err(|answer| ToolOutcome { text: workspace.spill.fit(answer.text, "sql"), ..answer })?;
    let text = workspace.spill.fit(text, "sql");
    Ok(ToolOutcome { detailed: Some(format!("SQL: {query}\n\n{text}")), ..ToolOutcome::success(text) })
}

fn describe(asked: usize, execution: Execution) -> Result<String, ToolOutcome> {
    let Execution { mut done, failure, .. } = execution;
    match failure {
        Some(StatementFailure::Cancelled) => Err(answer::interrupted()),
        Some(StatementFailure::Failed { message, .. }) if asked == 1 => {
            let error = format!("Error: {message}");
            Err(answer::failed(error.clone(), format!("SQL Error: {error}")))
        }
        Some(StatementFailure::Failed { keyword, message }) => {
            let mut text =
                format!("SQL Error after statement {} ({keyword}): Error: {message}", done.len() + 1);
            if !done.is_empty() {
                let list = list(&done);
                text.push_str(&format!(
                    "\n\nCompleted {} statement(s) before failure:\n\n{list}",
                    done.len()
                ));
            }
            Err(ToolOutcome::failure(text))
        }
        None if asked == 1 => Ok(done.pop().map(|done| done.text).unwrap_or_default()),
        None => Ok(format!("Executed {} statement(s):\n\n{}", done.len(), list(&done))),
    }
}

fn list(done: &[StatementResult]) -> String {
    let items: Vec<String> = (1..)
        .zip(done)
        .map(|(number, done)| format!("{number}. {}\n   {}", done.keyword, done.text.replace('\n', "\n   ")))
        .collect();
    items.join("\n\n")
}
