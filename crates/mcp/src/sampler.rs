//! Asks the session's model on behalf of a server. The request and the answer are those of `sampling/createMessage`.

use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::future::BoxFuture;
use hangar_agent::model::{
    AssistantTurn, Finish, Initiator, Message, ModelEvent, ModelProvider, ModelRequest, Part, ToolChoice,
};
use serde_json::{Value, json};

/// The model that is asked, and for which session.
#[derive(Clone)]
pub struct Sampler {
    pub provider: Arc<dyn ModelProvider>,
    pub model: String,
    pub session_id: String,
}

/// Outcome of a sampling request that a client made for a server.
#[derive(Debug, PartialEq)]
pub enum Sampled {
    Answer(Value),
    Failed(String),
    Cancelled,
}

impl Sampler {
    pub(crate) fn sample(&self, request: &Value) -> BoxFuture<'static, Result<Value, String>> {
        let model = self.model.clone();
        let request = ModelRequest {
            model: self.model.clone(),
            system: request["systemPrompt"].as_str().unwrap_or_default().into(),
            messages: request["messages"].as_array().into_iter().flatten().map(message).collect(),
            tools: Arc::new([]),
            late_tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            effort: None,
            stream: true,
            initiator: Initiator::Agent,
            session_id: self.session_id.clone(),
            headers: Vec::new(),
            answer: None,
            max_output_tokens: None,
        };
        let mut answer = self.provider.stream(request);
        Box::pin(async move {
            while let Some(event) = answer.next().await {
                if let ModelEvent::Finished(reply) = event.map_err(|error| error.message)? {
                    let reason = match reply.finish {
                        Finish::Length => "maxTokens",
                        _ => "endTurn",
                    };
                    return Ok(json!({
                        "role": "assistant",
                        "content": { "type": "text", "text": reply.turn.text },
                        "model": model,
                        "stopReason": reason,
                    }));
                }
            }
            Err("the model's answer broke off".to_owned())
        })
    }
}

fn message(message: &Value) -> Arc<Message> {
    let blocks = match &message["content"] {
        Value::Array(blocks) => blocks.clone(),
        block => vec![block.clone()],
    };
    let parts: Vec<Part> = blocks
        .iter()
        .filter_map(|block| {
            let text = |key: &str| block[key].as_str().map(str::to_owned);
            match block["type"].as_str()? {
                "text" => text("text").map(Part::Text),
                "image" => Some(Part::Image { mime_type: text("mimeType")?, data: text("data")? }),
                _ => None,
            }
        })
        .collect();
    if message["role"] == "assistant" {
        let texts = parts.into_iter().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            Part::Image { .. } | Part::Document { .. } => None,
        });
        return Arc::new(Message::Assistant(AssistantTurn {
            text: texts.collect(),
            ..AssistantTurn::default()
        }));
    }
    Arc::new(Message::User(parts))
}
