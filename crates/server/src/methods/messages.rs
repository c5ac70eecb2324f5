//! Several messages at once, and interrupting the turn of the last ones.

use std::collections::BTreeMap;

use hangar_agent::session::{Command, Origin, Prompt, Timing};
use hangar_protocol::Body;
use hangar_protocol::data::{AgentMode, UserMessage};
use serde::Deserialize;
use serde_json::{Value, json};

use super::session::{ResponseFormat, call_options, deliver, timing};
use super::{Call, Failure, Method, Reply};
use crate::attachments;
use hangar_spec::TraceContext;

/// Messages of one request.
const MAX_MESSAGES: usize = 256;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.sendMessages", run: |call| Box::pin(send(call)) },
    Method { name: "session.interruptMainTurn", run: |call| Box::pin(interrupt(call)) },
];

/// One message of a client.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageParams {
    pub(super) prompt: String,
    pub(super) display_prompt: Option<String>,
    #[serde(default)]
    pub(super) attachments: Vec<Value>,
    pub(super) source: Option<String>,
}

impl MessageParams {
    /// Converts the message into a prompt with a new id.
    pub(super) fn into_prompt(self) -> Prompt {
        Prompt {
            shown: self.display_prompt,
            attachments: self.attachments.into_iter().filter_map(attachments::read).collect(),
            origin: self.source.map_or(Origin::User, Origin::Source),
            message_id: Some(uuid::Uuid::new_v4().to_string()),
            ..Prompt::user(self.prompt)
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SendParams {
    messages: Vec<MessageParams>,
    mode: Option<String>,
    #[serde(default)]
    prepend: bool,
    agent_mode: Option<AgentMode>,
    request_headers: Option<BTreeMap<String, String>>,
    response_format: Option<ResponseFormat>,
    #[serde(default)]
    wait: bool,
    #[serde(flatten)]
    trace: TraceContext,
}

/// Has the model answer several messages in one turn, or what there is without a message.
async fn send(call: Call) -> Result<Reply, Failure> {
    let params: SendParams = call.params()?;
    let live = call.live()?;
    if params.messages.len() > MAX_MESSAGES {
        return Err(Failure::new(format!("more than {MAX_MESSAGES} messages are sent at once")));
    }
    call.hub.admits_prompt(params.agent_mode)?;
    let timing = timing(params.mode.as_deref(), params.prepend, params.response_format.as_ref())?;
    let call_options = call_options(params.request_headers, params.response_format);
    let prompts: Vec<Prompt> = params.messages.into_iter().map(MessageParams::into_prompt).collect();
    let ids: Vec<String> = prompts.iter().filter_map(|prompt| prompt.message_id.clone()).collect();
    let prompts = if timing == Timing::Steer { prompts } else { vec![in_one_turn(prompts)] };
    if let [Prompt { origin: Origin::Nobody, .. }] = prompts.as_slice()
        && live.ask(|task| task.session().state().conversation.is_empty()).await?
    {
        return Err(Failure::new("there is nothing to answer yet; the first turn needs a message"));
    }
    let prompts = prompts
        .into_iter()
        .map(|prompt| Prompt {
            timing,
            agent_mode: params.agent_mode,
            call_options: call_options.clone(),
            ..prompt
        })
        .collect();
    deliver(live, prompts, params.trace, params.wait, json!({ "messageIds": ids })).await
}

/// The last message begins the turn; the others go before it.
fn in_one_turn(mut prompts: Vec<Prompt>) -> Prompt {
    let Some(last) = prompts.pop() else {
        return Prompt { origin: Origin::Nobody, ..Prompt::user("") };
    };
    let before = prompts.into_iter().map(|prompt| {
        let message = UserMessage {
            content: prompt.as_shown().to_owned(),
            transformed_content: Some(prompt.text),
            message_id: prompt.message_id,
            attachments: prompt.attachments,
            source: if let Origin::Source(source) = prompt.origin { Some(source) } else { None },
            ..UserMessage::default()
        };
        Body::from(message)
    });
    Prompt { preface: before.collect(), ..last }
}

/// Stops the turn, and leaves what works in the background alone.
async fn interrupt(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        /// Whether queued messages run next; otherwise they are discarded.
        #[serde(default)]
        flush_queued: bool,
    }
    let Params { flush_queued } = call.params()?;
    let interrupted = call
        .live()?
        .ask(move |task| {
            let running = task.session().is_running();
            if running && !flush_queued {
                task.commands.clear();
            }
            task.command(Command::Interrupt { reason: "user_abort".to_owned(), keep_queue: flush_queued });
            running
        })
        .await?;
    Reply::of(json!({ "interrupted": interrupted }))
}
