//! The tools as the model is offered them.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::interned;
use hangar_agent::tool::{Access, Tool, ToolContext, ToolInput, ToolOutcome, ToolSchema, ToolSpec};
use serde_json::json;

use super::registry::{Registry, ShellLookup, Shells};
use super::{access, arguments, calls};

struct ShellTool {
    spec: Arc<ToolSpec>,
    kind: Kind,
    registry: Arc<Registry>,
}

#[derive(Debug, Clone, Copy)]
enum Kind {
    Bash,
    Read,
    Write,
    Stop,
    List,
}

impl Shells {
    /// `bash`, `read_bash`, `write_bash`, `stop_bash` and `list_bash` over these commands.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        [Kind::Bash, Kind::Read, Kind::Write, Kind::Stop, Kind::List]
            .into_iter()
            .map(|kind| {
                let registry = Arc::clone(&self.0);
                Arc::new(ShellTool { spec: interned::spec(spec(kind)), kind, registry }) as Arc<dyn Tool>
            })
            .collect()
    }
}

impl Tool for ShellTool {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        match self.kind {
            Kind::Bash => {
                let bash = arguments::bash(call)?;
                let needed =
                    access::of_command(&self.registry, &bash.command, &bash.description, &call.call_id);
                Ok(Access::Needs(Box::new(needed)))
            }
            Kind::Read => arguments::read(call).map(|_| Access::None),
            Kind::Write => {
                let write = arguments::write(call)?;
                Ok(match self.registry.find(&write.shell_id) {
                    ShellLookup::Here(shell) => {
                        let needed = access::of_input(&self.registry, &shell, &write.inputs, &call.call_id);
                        Access::Needs(Box::new(needed))
                    }
                    // Running it says so.
                    ShellLookup::Stopped | ShellLookup::Never => Access::None,
                })
            }
            Kind::Stop => arguments::stop(call).map(|_| Access::None),
            Kind::List => Ok(Access::None),
        }
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let (kind, registry) = (self.kind, Arc::clone(&self.registry));
        Box::pin(async move { run(kind, registry, call, context).await.unwrap_or_else(|outcome| outcome) })
    }
}

async fn run(
    kind: Kind,
    registry: Arc<Registry>,
    call: ToolInput,
    context: ToolContext,
) -> Result<ToolOutcome, ToolOutcome> {
    Ok(match kind {
        Kind::Bash => {
            let bash = arguments::bash(&call)?;
            let sandboxed = registry.options.sandbox.is_some();
            ToolOutcome { sandboxed, ..calls::bash(registry, call.call_id, bash, context).await }
        }
        Kind::Read => calls::read(registry, arguments::read(&call)?, context).await,
        Kind::Write => calls::write(registry, arguments::write(&call)?, context).await,
        Kind::Stop => calls::stop(registry, arguments::stop(&call)?).await,
        Kind::List => calls::list(&registry),
    })
}

fn spec(kind: Kind) -> ToolSpec {
    let shell_id = json!({"type": "string", "description": "The shellId of the command."});
    let delay = json!({
        "type": "number",
        "description": "Seconds to wait for the command to end before its output is returned; 0 to 600."
    });
    let (name, title, description, properties, required) = match kind {
        Kind::Bash => (
            "bash",
            "Running command",
            "Runs a command in bash and returns what it prints (stdout and stderr in order) and its exit code.\n\
             * Every command is a new shell in the session's directory: `cd` and variables do not carry over to the \
             next call, and there is no terminal.\n\
             * With mode \"sync\" the call waits up to initial_wait seconds. A command that takes longer goes on in \
             the background: you are told its shellId and notified when it ends.\n\
             * With mode \"async\" the call returns at once, for servers, watchers and long builds. Such a command \
             ends with the session unless it is detached.",
            json!({
                "command": {"type": "string", "description": "The command line, as typed into bash."},
                "description": {
                    "type": "string",
                    "description": "What the command does, in a few words for a person: \"Run the unit tests\"."
                },
                "shellId": {
                    "type": "string",
                    "description": "A name of your choice for this command, to read, write to or stop it by."
                },
                "mode": {
                    "type": "string",
                    "enum": ["sync", "async"],
                    "description": "Wait for the command (sync, the default) or let it run on its own (async)."
                },
                "detach": {
                    "type": "boolean",
                    "description": "With mode \"async\": let the command outlive the session. Only when that is asked \
                                    for."
                },
                "initial_wait": {
                    "type": "number",
                    "description": "With mode \"sync\": seconds to wait, 30 (the default) to 600. Give more to builds \
                                    and tests that you need the result of."
                }
            }),
            vec!["command", "description"],
        ),
        Kind::Read => (
            "read_bash",
            "Read shell output",
            "Returns what a command in the background has printed so far and, once it has ended, its exit code.",
            json!({"shellId": shell_id, "delay": delay}),
            vec!["shellId", "delay"],
        ),
        Kind::Write => (
            "write_bash",
            "Write to shell",
            "Writes to the input of a command that was started with mode \"async\", then returns its output like \
             read_bash. `{enter}` stands for a line break and is not added for you; `{ctrl+d}` at the end closes the \
             input.",
            json!({
                "shellId": shell_id,
                "input": {"type": "string", "description": "What to write."},
                "delay": delay
            }),
            vec!["shellId", "input", "delay"],
        ),
        Kind::Stop => (
            "stop_bash",
            "Stop shell",
            "Stops a command and everything it started.",
            json!({"shellId": shell_id}),
            vec!["shellId"],
        ),
        Kind::List => (
            "list_bash",
            "List shells",
            "Lists the commands of this session: shellId, state, and whether there is output to read.",
            json!({}),
            Vec::new(),
        ),
    };
    ToolSpec {
        name: name.to_owned(),
        title: Some(title.to_owned()),
        description: description.to_owned(),
        input: ToolSchema::function(
            json!({"type": "object", "properties": properties, "required": required}),
        ),
    }
}
