//! Facts from events whose data could be parsed: the frequent ones, without a copy. `loose.rs` reads all others, and
//! gives the same facts for these.

use hangar_protocol::Body;
use hangar_protocol::data::{AssistantMessage, ToolComplete, ToolRequest};

use crate::fact::{CalledTool, Done, Fact};

pub(crate) fn read(body: &Body) -> Option<Fact<'_>> {
    Some(match body {
        Body::TurnStart(_) => Fact::TurnStarted,
        Body::TurnEnd(_) => Fact::TurnEnded,
        Body::MessageDelta(delta) => {
            Fact::MessageDelta { message: &delta.message_id, piece: &delta.delta_content }
        }
        Body::AssistantMessage(message) => return message_done(message),
        Body::ReasoningDelta(delta) => {
            Fact::ReasoningDelta { reasoning: &delta.reasoning_id, piece: &delta.delta_content }
        }
        Body::Reasoning(whole) => {
            Fact::ReasoningDone { reasoning: &whole.reasoning_id, text: &whole.content }
        }
        Body::ToolCallDelta(delta) => Fact::ToolWriting {
            call: &delta.tool_call_id,
            name: non_empty(delta.tool_name.as_deref()),
            piece: &delta.input_delta,
        },
        Body::ToolPartialResult(result) => {
            Fact::ToolOutput { call: &result.tool_call_id, text: &result.partial_output }
        }
        Body::ToolProgress(progress) => {
            Fact::ToolProgress { call: &progress.tool_call_id, message: &progress.progress_message }
        }
        Body::ToolComplete(complete) => Fact::ToolDone(tool_done(complete)),
        Body::UsageInfo(used) => Fact::Context {
            tokens: i64::try_from(used.current_tokens).unwrap_or(i64::MAX),
            limit: i64::try_from(used.token_limit).unwrap_or(i64::MAX),
        },
        _ => return None,
    })
}

fn non_empty(text: Option<&str>) -> Option<&str> {
    text.filter(|text| !text.is_empty())
}

/// `None` if a request has no name where it belongs.
fn message_done(message: &AssistantMessage) -> Option<Fact<'_>> {
    let requests = message.tool_requests.iter().map(request).collect::<Option<Vec<_>>>()?;
    Some(Fact::MessageDone {
        message: &message.message_id,
        text: &message.content,
        reasoning: message.reasoning_text.as_deref().unwrap_or_default(),
        requests,
    })
}

fn request(request: &ToolRequest) -> Option<CalledTool<'_>> {
    let title = non_empty(request.intention_summary.as_deref());
    (!request.name.is_empty()).then(|| CalledTool {
        call: &request.tool_call_id,
        name: &request.name,
        args: &request.arguments,
        title: title.or_else(|| non_empty(request.tool_title.as_deref())),
    })
}

fn tool_done(complete: &ToolComplete) -> Done<'_> {
    let result = complete.result.as_ref();
    let content = result.map(|result| result.content.as_str()).unwrap_or_default();
    let detailed = result.and_then(|result| result.detailed_content.as_deref()).unwrap_or_default();
    let mut done = Done {
        call: &complete.tool_call_id,
        success: complete.success,
        output: "",
        diff: None,
        error: non_empty(complete.error.as_ref().map(|error| error.message.as_str())),
        exit_code: complete.shell_execution.as_ref().map(|shell| i64::from(shell.exit_code)),
        pictures: Vec::new(),
    }
    .with_texts(content, detailed);
    for binary in result.iter().flat_map(|result| &result.binary_results_for_llm) {
        done.add_picture(&binary.mime_type, &binary.data);
    }
    done
}
