//! News of background work: they start a run of an idle session, and join the run of another.

use hangar_protocol::data;

use super::{BackgroundNotice, Context, Origin, Prompt, ReadForModel, Session, Step, Timing};

impl Session {
    pub(super) fn background(
        &mut self,
        notice: BackgroundNotice,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        self.notify_of_news(&notice.kind, &notice.text, step, context);
        self.send(prompt_of(notice), step, context);
    }

    /// Keeps news for the next prompt, because a session that was just resumed does not start by itself.
    pub(crate) fn owe(&mut self, notice: BackgroundNotice) {
        self.owed.push(prompt_of(notice));
    }

    /// Drops all queued prompts. News of background work are kept for the next prompt.
    pub(super) fn drop_prompts(&mut self) {
        let waiting = std::mem::take(&mut self.steering).into_iter().chain(std::mem::take(&mut self.queue));
        self.owed.extend(waiting.filter(|prompt| prompt.origin.is_news()));
    }

    /// Adds a call that the model would have made next, and its result.
    pub(super) fn read_for_model(&mut self, read: ReadForModel, step: &mut Step, context: &mut Context<'_>) {
        let tool_call_id = context.entropy.uuid();
        let request = data::ToolRequest {
            tool_call_id: tool_call_id.clone(),
            name: read.tool.to_owned(),
            arguments: read.arguments.clone(),
            kind: None,
            intention_summary: None,
            tool_title: None,
            mcp_server_name: None,
            mcp_tool_name: None,
        };
        let message = data::AssistantMessage {
            message_id: context.entropy.uuid(),
            tool_requests: vec![request],
            ..Default::default()
        };
        self.emit(step, message);
        let start = data::ToolStart {
            tool_call_id: tool_call_id.clone(),
            tool_name: read.tool.to_owned(),
            arguments: read.arguments,
            turn_id: None,
            model: None,
            shell_tool_info: None,
            mcp_server_name: None,
            mcp_tool_name: None,
            parent_tool_call_id: None,
        };
        self.emit(step, start);
        let (result, error) = super::tools::result_of(read.outcome);
        let complete = data::ToolComplete {
            tool_call_id,
            success: error.is_none(),
            result,
            error,
            tool_telemetry: Some(serde_json::json!({ "properties": {}, "metrics": {} })),
            ..Default::default()
        };
        self.emit(step, complete);
    }
}

fn prompt_of(notice: BackgroundNotice) -> Prompt {
    Prompt {
        timing: Timing::Steer,
        origin: Origin::News { kind: notice.kind, read: notice.read },
        ..Prompt::user(format!("<system_notification>\n{}\n</system_notification>", notice.text))
    }
}
