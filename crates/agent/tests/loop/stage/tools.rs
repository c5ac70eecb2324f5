//! The tools of the stage.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use hangar_agent::permissions::Grant;
use hangar_agent::tool::*;
use hangar_protocol::data::CodeChanges;
use hangar_protocol::permission::{PermissionRequest, ShellCommand, ShellRequest};
use parking_lot::Mutex;

/// `echo` answers at once, and with `look` it is a command that needs more than it seems to; `slow` takes two seconds; `hang` waits to be cancelled, or hurried; `write` needs permission.
pub(super) struct Prop {
    pub(super) spec: Arc<ToolSpec>,
    pub(super) cancelled: Arc<Mutex<Vec<String>>>,
}

impl Tool for Prop {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.spec
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        if call.arguments.get("bad").is_some() {
            return Err(ToolOutcome::failure("\"path\": Required"));
        }
        if call.arguments.get("look").is_some() {
            let commands = vec![ShellCommand { identifier: "cat".to_owned(), read_only: true }];
            let request = PermissionRequest::Shell(ShellRequest { commands, ..ShellRequest::default() });
            return Ok(Access::Needs(Box::new(AccessRequest {
                request,
                reads: Vec::new(),
                writes: Vec::new(),
            })));
        }
        Ok(match self.spec.name.as_str() {
            "write" => Access::Needs(Box::new(AccessRequest {
                request: PermissionRequest::Write {
                    tool_call_id: Some(call.call_id.clone()),
                    intention: "write".to_owned(),
                    file_name: "/w/a".to_owned(),
                    diff: String::new(),
                    new_file_contents: None,
                    can_offer_session_approval: true,
                },
                reads: Vec::new(),
                writes: vec!["/w/a".into()],
            })),
            _ => Access::None,
        })
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let name = self.spec.name.clone();
        let cancelled = Arc::clone(&self.cancelled);
        Box::pin(async move {
            match name.as_str() {
                "slow" => {
                    tokio::time::sleep(Duration::from_secs(2)).await;
                    ToolOutcome::success(format!("{} done", call.call_id))
                }
                "hang" => {
                    tokio::select! {
                        () = context.hurry.cancelled() => return ToolOutcome::success("let go"),
                        () = context.cancel.cancelled() => {}
                    }
                    cancelled.lock().push(call.call_id);
                    ToolOutcome::of(ToolStatus::Interrupted, "stopped")
                }
                _ if context.grant != Grant::Full => {
                    let blocked = Some(Box::new(Blocked { from: "reading /x".to_owned() }));
                    ToolOutcome { blocked, ..ToolOutcome::success("cat: /x: Permission denied") }
                }
                "write" => {
                    let files_modified = vec!["/w/a".to_owned()];
                    let changes = CodeChanges { lines_added: 2, lines_removed: 1, files_modified };
                    ToolOutcome { changes, ..ToolOutcome::success(format!("{} ok", call.call_id)) }
                }
                _ => ToolOutcome::success(format!("{} ok", call.call_id)),
            }
        })
    }
}
