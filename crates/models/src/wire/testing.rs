//! A conversation to write, and transcripts to read, for the tests of the wires.

use std::fmt::Write as _;
use std::sync::Arc;

use expect_test::Expect;
use hangar_agent::model::{
    AnswerSchema, AssistantTurn, Initiator, Message, ModelEvent, ModelRequest, NativeTurn, Part,
    ReasoningText, Reply, ToolCall, ToolChoice,
};
use hangar_agent::tool::{ToolSchema, ToolSpec};
use hangar_protocol::data::{ModelOrigin, ToolType};
use serde_json::json;

use super::anthropic::binding::Binding;
use super::{Ask, Carrier, Decode, Progress, Wire, WireVariant};
use crate::base_url::BaseUrl;
use crate::config::{AnswerStyle, ProviderConfig, ProviderKind, WireApi};
use crate::facts::{self, HostFacts};
use crate::learned::Learned;

pub(crate) fn request(model: &str, messages: Vec<Message>) -> ModelRequest {
    ModelRequest {
        model: model.into(),
        system: "Be brief.".into(),
        messages: messages.into_iter().map(Arc::new).collect(),
        tools: [].into(),
        late_tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        effort: None,
        stream: true,
        initiator: Initiator::User,
        session_id: "session-1".into(),
        headers: Vec::new(),
        answer: None,
        max_output_tokens: None,
    }
}

pub(crate) fn user(text: &str) -> Message {
    Message::User(vec![Part::Text(text.into())])
}

pub(crate) fn image() -> Part {
    Part::Image { mime_type: "image/png".into(), data: "iVBORw==".into() }
}

pub(crate) fn call(id: &str, name: &str, kind: ToolType, input: &str) -> ToolCall {
    ToolCall { id: id.into(), name: name.into(), kind, input: input.into() }
}

pub(crate) fn tools() -> Arc<[Arc<ToolSpec>]> {
    let spec = |name: &str, input| {
        let description = format!("The tool {name}.");
        Arc::new(ToolSpec { name: name.into(), title: None, description, input })
    };
    let schema =
        json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    [
        spec("view", ToolSchema::function(schema)),
        spec("apply_patch", ToolSchema::Custom { grammar: Some("start: LINE+".into()) }),
    ]
    .into()
}

/// Origin of the answers in the tests.
pub(crate) fn origin() -> ModelOrigin {
    ModelOrigin { provider: "http://here/".to_owned(), ..ModelOrigin::default() }
}

/// A turn in the items of the vendor that is called.
pub(crate) fn native(items: &str) -> Option<NativeTurn> {
    Some(NativeTurn { origin: origin(), items: items.into(), rewritten: false, paused: false, prefix: None })
}

/// A turn in the items of another vendor.
pub(crate) fn foreign(items: &str) -> Option<NativeTurn> {
    native(items).map(|native| NativeTurn { origin: ModelOrigin::default(), ..native })
}

/// A turn with text, reasoning and two calls, one of them of a custom tool, and its results, one with an image.
pub(crate) fn conversation(model: &str, native: Option<NativeTurn>) -> ModelRequest {
    let turn = AssistantTurn {
        text: "Looking.".into(),
        reasoning: Some(ReasoningText { text: "hmm".into(), ..ReasoningText::default() }),
        native,
        tool_calls: vec![
            call("call:1", "view", ToolType::Function, r#"{"path": "/a"}"#),
            call("call_2", "apply_patch", ToolType::Custom, "*** Begin Patch\n"),
        ],
    };
    let result = |id: &str, kind, parts| Message::Tool { call_id: id.into(), kind, parts, is_error: false };
    let mut request = request(
        model,
        vec![
            Message::User(vec![Part::Text("What is this?".into()), image()]),
            Message::Assistant(turn),
            result("call:1", ToolType::Function, vec![Part::Text("Viewed.".into()), image()]),
            result("call_2", ToolType::Custom, vec![Part::Text("Done.".into())]),
        ],
    );
    request.tools = tools();
    request.initiator = Initiator::Agent;
    request
}

pub(crate) fn body(wire: Wire, dialect: WireVariant, request: &ModelRequest) -> serde_json::Value {
    body_for(wire, dialect, &HostFacts::default(), request)
}

pub(crate) fn body_for(
    wire: Wire,
    dialect: WireVariant,
    host: &HostFacts,
    request: &ModelRequest,
) -> serde_json::Value {
    let body = asked(dialect, host, request, None, |ask| wire.body(ask));
    serde_json::from_slice(&body).unwrap()
}

/// The body of a request whose answer is limited.
pub(crate) fn body_within(wire: Wire, request: &ModelRequest, limit: Option<u64>) -> serde_json::Value {
    let body = asked(WireVariant::Vendor, &HostFacts::default(), request, limit, |ask| wire.body(ask));
    serde_json::from_slice(&body).unwrap()
}

/// Which thinking of a request does not fit it.
pub(crate) fn binding_of(request: &ModelRequest) -> Binding {
    asked(WireVariant::Vendor, &HostFacts::default(), request, None, |ask| std::mem::take(&mut ask.binding))
}

/// What is known of a host of the table.
pub(crate) fn host_named(name: &str) -> HostFacts {
    let kind = ProviderKind::OpenAi { wire: WireApi::PerModel };
    let mut config = ProviderConfig::new("p", kind, BaseUrl::parse("http://host.example").unwrap());
    config.preset = Some(name.to_owned());
    facts::host(&config)
}

/// Does something with a request as a provider asks it.
pub(crate) fn asked<T>(
    dialect: WireVariant,
    host: &HostFacts,
    request: &ModelRequest,
    max_output_tokens: Option<u64>,
    act: impl FnOnce(&mut Ask<'_>) -> T,
) -> T {
    let (facts, origin, learned) = (facts::of(&request.model), origin(), Learned::default());
    let mut ask = Ask {
        request,
        model: &request.model,
        facts: &facts,
        host,
        origin: &origin,
        learned: &learned,
        max_output_tokens,
        dialect,
        carrier: Carrier::Http,
        citations: true,
        style: AnswerStyle::default(),
        search: host.web_search.as_ref(),
        binding: Binding::default(),
    };
    ask.binding = Binding::of(&ask);
    act(&mut ask)
}

/// The body, a line for each value and for each entry of a list.
pub(crate) fn check_body(wire: Wire, request: &ModelRequest, expected: Expect) {
    let mut shown = String::new();
    for (name, value) in body(wire, WireVariant::Vendor, request).as_object().unwrap() {
        match value.as_array() {
            Some(list) => {
                writeln!(shown, "{name}:").unwrap();
                for entry in list {
                    writeln!(shown, "  {entry}").unwrap();
                }
            }
            None => writeln!(shown, "{name}: {value}").unwrap(),
        }
    }
    expected.assert_eq(&shown);
}

/// The body without the conversation.
pub(crate) fn check_parameters(wire: Wire, request: &ModelRequest, expected: Expect) {
    let mut body = body(wire, WireVariant::Vendor, request);
    let object = body.as_object_mut().unwrap();
    for name in ["messages", "input", "instructions", "system", "tools"] {
        object.shift_remove(name);
    }
    expected.assert_eq(&body.to_string());
}

/// Reads a stream and prints its events. Blank lines and lines with `#` are skipped.
pub(crate) fn check_stream(wire: Wire, request: &ModelRequest, events: &str, expected: Expect) {
    let mut decoder = wire.decoder(request, origin());
    let mut shown = String::new();
    let mut out = Vec::new();
    for data in events.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
        assert_ne!(decoder.progress(), Progress::Over, "{data} comes after the end");
        if let Err(error) = decoder.event(data, &mut out) {
            show_events(&mut shown, &out);
            writeln!(shown, "error: {:?}: {}", error.kind, error.message).unwrap();
            expected.assert_eq(&shown);
            return;
        }
    }
    finish(&mut *decoder, shown, out, &expected);
}

/// Reads an answer in one piece.
pub(crate) fn check_whole(wire: Wire, request: &ModelRequest, answer: &str, expected: Expect) {
    let mut decoder = wire.decoder(request, origin());
    match decoder.whole(answer) {
        Ok(()) => finish(&mut *decoder, String::new(), Vec::new(), &expected),
        Err(error) => expected.assert_eq(&format!("error: {:?}: {}\n", error.kind, error.message)),
    }
}

fn finish(decoder: &mut dyn Decode, mut shown: String, mut out: Vec<ModelEvent>, expected: &Expect) {
    let told = out.len();
    let reply = decoder.finish(&mut out);
    show_events(&mut shown, &out);
    match &reply {
        Some(reply) => show_reply(&mut shown, reply),
        None => shown.push_str("cut\n"),
    }
    expected.assert_eq(&shown);
    if let Some(reply) = reply
        && told > 0
    {
        assert_pieces_make_the_reply(&out, &reply);
    }
}

fn show_events(shown: &mut String, events: &[ModelEvent]) {
    for event in events {
        match event {
            ModelEvent::Text(text) => writeln!(shown, "text {text:?}"),
            ModelEvent::Reasoning(text) => writeln!(shown, "reasoning {text:?}"),
            ModelEvent::ToolInput { call_id, name, kind, delta } => {
                writeln!(shown, "{kind:?} {name} {call_id} {delta:?}")
            }
            ModelEvent::Notice(_) | ModelEvent::Finished(_) => {
                unreachable!("a decoder does not finish by itself")
            }
        }
        .unwrap();
    }
}

fn show_reply(shown: &mut String, reply: &Reply) {
    let Reply { id, request_ids: _, phase, turn, finish, usage } = reply;
    writeln!(shown, "-- {finish:?} {}", id.as_deref().unwrap_or("without id")).unwrap();
    if let Some(phase) = phase {
        writeln!(shown, "phase {phase}").unwrap();
    }
    if !turn.text.is_empty() {
        writeln!(shown, "text {:?}", turn.text).unwrap();
    }
    if let Some(ReasoningText { text, opaque, encrypted }) = &turn.reasoning {
        writeln!(shown, "reasoning {text:?} opaque {opaque:?} encrypted {encrypted:?}").unwrap();
    }
    for ToolCall { id, name, kind, input } in &turn.tool_calls {
        writeln!(shown, "{kind:?} {name} {id} {input:?}").unwrap();
    }
    if let Some(native) = &turn.native {
        writeln!(shown, "items {}", native.items).unwrap();
    }
    let count = |count: Option<u64>| count.map_or("?".to_owned(), |count| count.to_string());
    writeln!(
        shown,
        "input {} output {} read {} written {} reasoning {}",
        count(usage.input_tokens),
        count(usage.output_tokens),
        count(usage.cache_read_tokens),
        count(usage.cache_write_tokens),
        count(usage.reasoning_tokens),
    )
    .unwrap();
}

fn assert_pieces_make_the_reply(events: &[ModelEvent], reply: &Reply) {
    let mut text = String::new();
    let mut thoughts = String::new();
    for event in events {
        match event {
            ModelEvent::Text(delta) => text += delta,
            ModelEvent::Reasoning(delta) => thoughts += delta,
            ModelEvent::ToolInput { .. } | ModelEvent::Notice(_) | ModelEvent::Finished(_) => {}
        }
    }
    assert_eq!(text, reply.turn.text);
    assert_eq!(thoughts, reply.turn.reasoning.clone().unwrap_or_default().text);
    for call in &reply.turn.tool_calls {
        let pieces = events.iter().filter_map(|event| match event {
            ModelEvent::ToolInput { call_id, delta, .. } if *call_id == call.id => Some(delta.as_str()),
            _ => None,
        });
        let input: String = pieces.collect();
        assert!(
            input == call.input || (input.is_empty() && call.input == "{}"),
            "{input:?} is not {:?}",
            call.input
        );
    }
}

/// A request with a response format.
pub(crate) fn formed(model: &str) -> ModelRequest {
    let answer = AnswerSchema {
        name: "verdict".to_owned(),
        schema: json!({ "type": "object", "properties": { "ok": { "type": "boolean" } } }),
        description: Some("Whether it is right.".to_owned()),
        strict: Some(true),
    };
    ModelRequest { answer: Some(Arc::new(answer)), ..request(model, vec![user("hi")]) }
}
