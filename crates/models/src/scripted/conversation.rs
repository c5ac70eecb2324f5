//! Requests for tests, written as conversations.

use std::sync::Arc;

use futures_util::StreamExt;
use hangar_agent::model::{
    AssistantTurn, Initiator, Message, ModelError, ModelEvent, ModelProvider, ModelRequest, Part, ToolCall,
    ToolChoice,
};
use hangar_agent::tool::{ToolSchema, ToolSpec};
use hangar_protocol::data::ToolType;

/// A request that offers `bash` and the custom tool `apply_patch`.
pub(super) fn request(messages: Vec<Message>) -> ModelRequest {
    let tool = |name: &str, input| {
        let description = format!("The tool {name}.");
        Arc::new(ToolSpec { name: name.to_owned(), title: None, description, input })
    };
    ModelRequest {
        model: "scripted".to_owned(),
        system: "You are a test.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [
            tool("bash", ToolSchema::function(serde_json::json!({"type": "object"}))),
            tool("apply_patch", ToolSchema::Custom { grammar: None }),
        ]
        .into(),
        late_tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        effort: None,
        stream: true,
        initiator: Initiator::User,
        session_id: "s".to_owned(),
        headers: Vec::new(),
        answer: None,
        max_output_tokens: None,
    }
}

pub(super) fn user(text: &str) -> Message {
    Message::User(vec![Part::Text(text.to_owned())])
}

pub(super) fn result(call: &ToolCall, text: &str) -> Message {
    let parts = vec![Part::Text(text.to_owned())];
    Message::Tool { call_id: call.id.clone(), kind: call.kind, parts, is_error: false }
}

pub(super) fn call(id: &str, name: &str, input: &str) -> ToolCall {
    ToolCall { id: id.to_owned(), name: name.to_owned(), kind: ToolType::Function, input: input.to_owned() }
}

pub(super) fn assistant(text: &str, calls: &[ToolCall]) -> Message {
    Message::Assistant(AssistantTurn {
        text: text.to_owned(),
        reasoning: None,
        tool_calls: calls.to_vec(),
        native: None,
    })
}

pub(super) async fn answer(
    provider: &dyn ModelProvider,
    request: &ModelRequest,
) -> Vec<Result<ModelEvent, ModelError>> {
    provider.stream(request.clone()).collect().await
}

/// One line for each event, for expectations.
pub(super) fn lines(events: &[Result<ModelEvent, ModelError>]) -> String {
    let line = |event: &Result<ModelEvent, ModelError>| match event {
        Ok(ModelEvent::Notice(text)) => format!("notice {text:?}"),
        Ok(ModelEvent::Text(text)) => format!("text {text:?}"),
        Ok(ModelEvent::Reasoning(text)) => format!("reasoning {text:?}"),
        Ok(ModelEvent::ToolInput { call_id, name, kind, delta }) => {
            format!("input of {kind:?} {name} {call_id}: {delta:?}")
        }
        Ok(ModelEvent::Finished(reply)) => {
            let mut line = format!("{:?}: {:?}", reply.finish, reply.turn.text);
            if let Some(reasoning) = &reply.turn.reasoning {
                line.push_str(&format!(" reasoning {:?}", reasoning.text));
            }
            for call in &reply.turn.tool_calls {
                line.push_str(&format!(" {:?} {}({})", call.kind, call.name, call.input));
            }
            line
        }
        Err(error) => {
            let retry = error.retry_after.map_or(String::new(), |after| format!(" (retry after {after:?})"));
            format!("{:?}: {error}{retry}", error.kind)
        }
    };
    events.iter().map(|event| line(event) + "\n").collect()
}
