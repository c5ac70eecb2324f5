//! Every model of every simulated vendor, at every effort, asked by Hangar's own providers: a request that a vendor refuses
//! fails the test. The tables of both sides are independent, so a fact that one of them has wrong is found here.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::sync::Arc;

use futures_util::StreamExt;
use hangar_agent::model::{
    AnswerSchema, AssistantTurn, Initiator, LateTools, Message, ModelEvent, ModelProvider, ModelRequest,
    Part, ToolCall, ToolChoice,
};
use hangar_agent::tool::{ToolSchema, ToolSpec};
use hangar_models::catalogue::{ModelInfo, list_models};
use hangar_models::config::ProviderConfig;
use hangar_models::config::table::providers;
use hangar_models::{build, build_with_models};
use hangar_simulators::{Profile, RequestOutcome, Scenario, Server};
use serde_json::json;

/// How each vendor is configured, beside address and key.
const TABLES: &[(&str, &str)] = &[
    ("anthropic", "type = \"anthropic\"\nhost = \"anthropic\""),
    ("openai-responses", "host = \"openai\"\nwire_api = \"responses\""),
    ("openai", "host = \"openai\""),
    ("azure", "type = \"azure\"\nhost = \"azure\""),
    ("gemini", "type = \"gemini\""),
    ("xai", "type = \"xai\""),
    ("mistral", "type = \"mistral\""),
    ("groq", "type = \"groq\""),
    ("deepseek", "type = \"deepseek\""),
    ("kimi", "type = \"kimi\""),
    ("qwen", "type = \"qwen\""),
    ("glm", "type = \"glm\""),
    ("openrouter", "type = \"openrouter\""),
    ("litellm", ""),
    ("copilot", "type = \"copilot\""),
    ("ollama", "type = \"ollama\""),
    ("llama-cpp", "type = \"llamacpp\""),
    ("vllm", "type = \"vllm\""),
    ("lm-studio", "type = \"lmstudio\""),
];
/// Models that were served without tools, which no agent can use.
const WITHOUT_TOOLS: [&str; 3] = ["gemma3:4b", "tinyllama-1.1b", "meta-llama/Llama-3.1-8B-Instruct"];
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/// An image of one pixel.
const DOT: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVQI12P4z8AAAAMBAQAY3Y2wAAAAAElFTkSuQmCC";

/// A vendor on loopback, with its models.
struct Stage {
    profile: Profile,
    server: Server,
    config: ProviderConfig,
    models: Vec<ModelInfo>,
}

impl Stage {
    async fn of(profile: Profile) -> Self {
        let server = Server::of(profile.simulator().unwrap()).unwrap();
        let (_, table) = TABLES.iter().find(|(name, _)| *name == profile.name).unwrap();
        let url = format!("{}{}", server.url(profile.name), profile.base_path);
        let toml =
            format!("[providers.v]\nbase_url = \"{url}\"\napi_key = \"key-of-this-test-1\"\n{table}\n");
        let config = providers(&toml, |_: &str| None).unwrap().remove(0);
        let mut models = list_models(&config).await.unwrap();
        models.retain(|model| !WITHOUT_TOOLS.contains(&model.id.as_str()));
        assert!(!models.is_empty(), "{} lists no models", profile.name);
        Self { profile, server, config, models }
    }

    fn play(&self, scenario: &str) {
        self.server.simulator(self.profile.name).unwrap().play(Scenario::parse(scenario).unwrap());
    }

    /// Number of requests so far.
    fn requests(&self) -> usize {
        self.server.simulator(self.profile.name).unwrap().totals().requests
    }

    /// Refusals and broken rules behind so many requests.
    fn problems(&self, before: usize, what: &str) -> Vec<String> {
        let simulator = self.server.simulator(self.profile.name).unwrap();
        let refused = simulator.exchanges().into_iter().filter(|exchange| exchange.number > before);
        let refused = refused.filter_map(|exchange| match exchange.outcome {
            RequestOutcome::Refused { refusal, .. } => {
                Some(format!("{what}: {} refused {refusal}", self.profile.name))
            }
            RequestOutcome::Answered { .. } | RequestOutcome::Failed { .. } => None,
        });
        refused.collect()
    }
}

fn tool(name: &str, input: ToolSchema) -> Arc<ToolSpec> {
    Arc::new(ToolSpec { name: name.into(), title: None, description: format!("The tool {name}."), input })
}

fn view() -> Arc<ToolSpec> {
    tool(
        "view",
        ToolSchema::function(json!({
            "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"], "additionalProperties": false,
        })),
    )
}

/// Schemas as servers of users have them: valid JSON Schema, of which each vendor accepts another part.
fn odd_tools() -> Vec<Arc<ToolSpec>> {
    let schemas = [
        json!({ "type": "object" }),
        json!({}),
        json!({ "type": "object", "properties": { "list": { "type": "array" } } }),
        json!({ "type": "object", "properties": { "list": { "type": "array", "items": { "type": "array" } } } }),
        json!({ "type": "object", "properties": { "any": true, "no": false } }),
        json!({ "type": "object", "properties": { "n": { "enum": [1, 2, null] }, "t": { "type": ["string", "null"] } } }),
        json!({ "anyOf": [
            { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
            { "type": "object", "properties": { "b": { "type": "string" } }, "required": ["b"] },
        ] }),
        json!({ "type": "object", "properties": { "a": { "type": "string" } }, "oneOf": [{ "required": ["a"] }, { "required": [] }] }),
        json!({ "type": "object", "allOf": [{ "properties": { "a": { "type": "string" } } }] }),
        json!({
            "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
            "properties": { "node": { "$ref": "#/$defs/node", "description": "a tree" } },
            "$defs": { "node": { "type": "object", "properties": { "next": { "$ref": "#/$defs/node" } } } },
        }),
        json!({ "type": "object", "properties": { "pair": { "type": "array", "items": [{ "type": "string" }, { "type": "number" }] } } }),
        json!({ "type": "object", "properties": { "a": { "type": "any" }, "n": { "type": "number", "minimum": 0, "exclusiveMinimum": true } } }),
        json!({ "$ref": "#/definitions/input", "definitions": { "input": { "type": "object", "properties": { "a": { "type": "string" } } } } }),
        json!({ "type": "object", "properties": { "m": { "type": "object", "additionalProperties": { "type": "string" } } } }),
    ];
    let odd = schemas.into_iter().enumerate();
    odd.map(|(at, schema)| tool(&format!("odd-{at}"), ToolSchema::function(schema))).collect()
}

fn user(text: &str) -> Arc<Message> {
    Message::User(vec![Part::Text(text.into())]).into()
}

fn request(model: &str) -> ModelRequest {
    ModelRequest {
        model: model.into(),
        system: "You are an agent that works on the code of people.".into(),
        messages: vec![user("look")],
        tools: [view(), tool("apply_patch", ToolSchema::Custom { grammar: None })].into(),
        late_tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        effort: None,
        stream: true,
        initiator: Initiator::User,
        session_id: "5e5510a0-0000-4000-8000-00000000a11e".into(),
        headers: Vec::new(),
        answer: None,
        max_output_tokens: None,
    }
}

/// Asks once, and adds the answer with the results of its calls to the conversation.
async fn ask(provider: &Arc<dyn ModelProvider>, request: &mut ModelRequest) -> Result<(), String> {
    let mut events = provider.stream(request.clone());
    while let Some(event) = events.next().await {
        match event.map_err(|error| error.message)? {
            ModelEvent::Finished(reply) => {
                let calls = reply.turn.tool_calls.clone();
                request.messages.push(Arc::new(Message::Assistant(reply.turn)));
                request.messages.extend(calls.iter().enumerate().map(|(at, call)| result(at, call)));
                request.initiator = Initiator::Agent;
                return Ok(());
            }
            ModelEvent::Notice(_)
            | ModelEvent::Text(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::ToolInput { .. } => {}
        }
    }
    Err("the answer has no end".to_owned())
}

/// Results of all kinds: text, an image, an error without words, an error with an image.
fn result(at: usize, call: &ToolCall) -> Arc<Message> {
    let parts = match at % 4 {
        0 => vec![Part::Text("alpha".into())],
        1 | 3 => {
            vec![Part::Text("a dot".into()), Part::Image { mime_type: "image/png".into(), data: DOT.into() }]
        }
        _ => vec![Part::Text(String::new())],
    };
    Message::Tool { call_id: call.id.clone(), kind: call.kind, parts, is_error: at % 4 > 1 }.into()
}

const CYCLE: &str = r#"
    [[turn]]
    say = [{ thinking = "First." }, { text = "I look." }, { call = "view", input = { path = "a" } }]
    [[turn]]
    say = [{ text = "All of it." }]
"#;

#[tokio::test]
async fn every_model_takes_every_effort_in_the_form_that_it_is_sent() {
    let mut problems = Vec::new();
    for profile in Profile::all() {
        let stage = Stage::of(profile).await;
        // By the tables alone, and by what the vendor says of its models.
        let providers =
            [build(stage.config.clone()), build_with_models(stage.config.clone(), stage.models.clone())];
        for model in &stage.models {
            for (at, effort) in [None].into_iter().chain(EFFORTS.map(Some)).enumerate() {
                let provider = &providers[at % providers.len()];
                let before = stage.requests();
                let what = format!("{} at {effort:?}", model.id);
                stage.play(CYCLE);
                let mut request = ModelRequest { effort: effort.map(str::to_owned), ..request(&model.id) };
                for _ in 0..2 {
                    if let Err(error) = ask(provider, &mut request).await {
                        problems.push(format!("{what}: {error}"));
                    }
                }
                problems.extend(stage.problems(before, &what));
            }
        }
        let finished = stage.server.simulator(profile.name).unwrap().finish();
        problems.extend(finished.err().map(|failures| format!("{}: {failures}", profile.name)));
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

/// A turn of another vendor, with an id and arguments that no vendor would have written.
fn foreign() -> [Arc<Message>; 2] {
    let id = format!("call.{}:1", "x".repeat(90));
    let call = json!({ "id": id, "name": "view", "kind": "function", "input": "{\"path\": " });
    let call: ToolCall = serde_json::from_value(call).unwrap();
    let parts = vec![Part::Text("not JSON".into())];
    let answer = Message::Tool { call_id: id, kind: call.kind, parts, is_error: true };
    let turn = AssistantTurn { text: " ".into(), tool_calls: vec![call], ..AssistantTurn::default() };
    [Message::Assistant(turn).into(), answer.into()]
}

const LONG: &str = r#"
    [[turn]]
    say = [{ thinking = "First." }, { text = "I look." }, { call = "view", input = { path = "a" } }, { call = "view", input = { path = "b" } }, { call = "view", input = { path = "c" } }, { call = "apply_patch", input = { input = "*** Begin Patch" } }]
    [[turn]]
    say = [{ thinking = "Then." }, { call = "view", input = { path = "d" } }, { text = "So." }]
    [[turn]]
    say = [{ text = "All of it." }]
    [[turn]]
    say = [{ thinking = "Now another effort." }, { call = "view", input = { path = "e" } }]
    [[turn]]
    say = [{ text = "Seen." }]
    [[turn]]
    say = [{ thinking = "More tools." }, { call = "late", input = { path = "e" } }]
    [[turn]]
    say = [{ text = "Used." }]
    [[turn]]
    say = [{ text = "Read." }]
    [[turn]]
    say = [{ text = "A summary." }]
    [[turn]]
    say = [{ text = "{\"a\": \"b\"}" }]
"#;

/// The whole conversation with one model: parallel calls, images, steering, another effort, late tools, a turn of another
/// vendor, a summary, an answer of a given form.
async fn converse(provider: &Arc<dyn ModelProvider>, model: &str) -> Result<(), String> {
    let mut request = request(model);
    for _ in 0..2 {
        ask(provider, &mut request).await?;
    }
    // A message behind results.
    request.messages.push(user("faster"));
    ask(provider, &mut request).await?;
    request.effort = Some("low".to_owned());
    request.messages.push(Message::User(vec![Part::Text("".into()), Part::Text("and now?".into())]).into());
    for _ in 0..2 {
        ask(provider, &mut request).await?;
    }
    let late = tool("late", view().input.clone());
    request.late_tools.push(LateTools { first: request.tools.len(), behind: request.messages.len() });
    request.tools = request.tools.iter().cloned().chain([late]).collect();
    request.messages.push(user("with more tools"));
    for _ in 0..2 {
        ask(provider, &mut request).await?;
    }
    request.messages.push(user("another one answers this"));
    request.messages.extend(foreign());
    ask(provider, &mut request).await?;
    request.messages.push(user("sum up"));
    let mut summary = ModelRequest {
        tool_choice: ToolChoice::None,
        max_output_tokens: Some(2000),
        initiator: Initiator::Compaction,
        stream: false,
        ..request.clone()
    };
    ask(provider, &mut summary).await?;
    let schema = json!({
        "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"], "additionalProperties": false,
    });
    let answer = AnswerSchema { name: "form".into(), schema, description: None, strict: Some(true) };
    let mut formed = ModelRequest { answer: Some(Arc::new(answer)), ..request.clone() };
    ask(provider, &mut formed).await
}

#[tokio::test]
async fn every_model_is_talked_to_at_length_without_a_refusal() {
    let mut problems = Vec::new();
    for profile in Profile::all() {
        let stage = Stage::of(profile).await;
        let provider = build(stage.config.clone());
        for model in &stage.models {
            let before = stage.requests();
            stage.play(LONG);
            if let Err(error) = converse(&provider, &model.id).await {
                problems.push(format!("{}: {error}", model.id));
            }
            problems.extend(stage.problems(before, &model.id));
        }
        let finished = stage.server.simulator(profile.name).unwrap().finish();
        problems.extend(finished.err().map(|failures| format!("{}: {failures}", profile.name)));
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

#[tokio::test]
async fn schemas_of_any_server_are_sent_in_the_form_that_the_vendor_takes() {
    let mut problems = Vec::new();
    for profile in Profile::all() {
        let stage = Stage::of(profile).await;
        // The schema is a matter of the host and the wire, not of the model.
        let provider = build(stage.config.clone());
        for model in profile.models {
            for odd in odd_tools() {
                let before = stage.requests();
                let what = format!("{model} with {:?}", odd.input);
                stage.play("[[turn]]\nsay = [{ text = \"pong\" }]\n");
                let mut request = ModelRequest { tools: [view(), odd].into(), ..request(model) };
                if let Err(error) = ask(&provider, &mut request).await {
                    problems.push(format!("{what}: {error}"));
                }
                problems.extend(stage.problems(before, &what));
            }
        }
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

#[tokio::test]
async fn two_calls_with_one_id_are_both_answered() {
    let mut problems = Vec::new();
    for profile in Profile::all() {
        let stage = Stage::of(profile).await;
        let provider = build(stage.config.clone());
        for fault in [
            "same_call_id\", \"fragments",
            "same_call_id\", \"index_zero\", \"arguments_as_object",
            "same_call_id",
        ] {
            let model = profile.models[0];
            let before = stage.requests();
            stage.play(&format!(
                r#"
                [[turn]]
                say = [{{ call = "view", input = {{ path = "a" }} }}, {{ call = "view", input = {{ path = "b" }} }}]
                faults = ["{fault}"]
                [[turn]]
                say = [{{ text = "Both." }}]
                "#
            ));
            let mut request = request(model);
            for _ in 0..2 {
                if let Err(error) = ask(&provider, &mut request).await {
                    problems.push(format!("{model}: {error}"));
                }
            }
            let results =
                request.messages.iter().filter(|message| matches!(***message, Message::Tool { .. }));
            if results.count() != 2 {
                problems.push(format!("{model} with {fault}: a call has no result of its own"));
            }
            problems.extend(stage.problems(before, model));
        }
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

/// A cap of the budget leaves at least so much for an answer.
#[tokio::test]
async fn the_smallest_limit_that_a_cap_leaves_for_an_answer_is_taken() {
    let mut problems = Vec::new();
    for profile in Profile::all() {
        let stage = Stage::of(profile).await;
        let provider = build(stage.config.clone());
        for model in &stage.models {
            for limit in [1024, 1500] {
                let before = stage.requests();
                let what = format!("{} with a limit of {limit}", model.id);
                stage.play("[[turn]]\nsay = [{ text = \"pong\" }]\n");
                let mut request = ModelRequest {
                    max_output_tokens: Some(limit),
                    effort: Some("high".to_owned()),
                    ..request(&model.id)
                };
                if let Err(error) = ask(&provider, &mut request).await {
                    problems.push(format!("{what}: {error}"));
                }
                problems.extend(stage.problems(before, &what));
            }
        }
    }
    assert!(problems.is_empty(), "{} problems\n{}", problems.len(), problems.join("\n"));
}

#[test]
fn every_vendor_is_tried() {
    let names: Vec<&str> = Profile::all().iter().map(|profile| profile.name).collect();
    let tried: Vec<&str> = TABLES.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, tried);
}

/// A model that thinks by budget must not be switched between thinking and not thinking inside a turn: that loses the cache of
/// the conversation.
#[tokio::test]
async fn models_that_think_by_budget_do_so_over_all_calls_of_a_turn() {
    const TURN: &str = r#"
    [[turn]]
    say = [{ thinking = "First." }, { call = "view", input = { path = "a" } }]
    [[turn]]
    say = [{ thinking = "Then." }, { call = "view", input = { path = "b" } }]
    [[turn]]
    say = [{ thinking = "Now." }, { text = "Done." }]
    "#;
    let profile = Profile::all().into_iter().find(|profile| profile.name == "anthropic").unwrap();
    let stage = Stage::of(profile).await;
    let provider = build(stage.config.clone());
    for model in ["claude-sonnet-4-5", "claude-haiku-4-5"] {
        stage.play(TURN);
        let before = stage.requests();
        let mut request = request(model);
        request.effort = Some("medium".to_owned());
        for _ in 0..3 {
            ask(&provider, &mut request).await.unwrap();
        }
        let exchanges = stage.server.simulator(profile.name).unwrap().exchanges();
        let thought: Vec<bool> =
            exchanges[before..].iter().map(|exchange| exchange.body.get("thinking").is_some()).collect();
        assert_eq!(thought, [true; 3], "{model}");
    }
}

/// Whether a tool that comes late leaves the cache of the conversation as it was.
async fn keeps_its_cache(vendor: &str, model: &str) -> bool {
    let profile = Profile::all().into_iter().find(|profile| profile.name == vendor).unwrap();
    let stage = Stage::of(profile).await;
    let provider = build(stage.config.clone());
    stage.play(CYCLE);
    let mut request = request(model);
    request.system = "Every file of this project has a purpose, and a test. ".repeat(400).into();
    ask(&provider, &mut request).await.unwrap();
    ask(&provider, &mut request).await.unwrap();
    let late = tool("late", view().input.clone());
    request.late_tools.push(LateTools { first: request.tools.len(), behind: request.messages.len() });
    request.tools = request.tools.iter().cloned().chain([late]).collect();
    request.messages.push(user("with more tools"));
    ask(&provider, &mut request).await.unwrap();
    let exchanges = stage.server.simulator(profile.name).unwrap().exchanges();
    let usages = exchanges.iter().filter_map(|exchange| match &exchange.outcome {
        RequestOutcome::Answered { usage, .. } => Some((usage.input, usage.cache_read)),
        RequestOutcome::Refused { .. } | RequestOutcome::Failed { .. } => None,
    });
    let [.., (input, _), (_, read)] = usages.collect::<Vec<_>>()[..] else { panic!("{vendor}: two answers") };
    read * 10 > input * 9
}

#[tokio::test]
async fn late_tools_keep_the_cache_where_the_vendor_takes_them_in_the_conversation() {
    assert!(keeps_its_cache("anthropic", "claude-opus-5-5").await);
    assert!(keeps_its_cache("openai-responses", "gpt-5.6-sol").await);
    // A limit of the vendors: the list of tools stands before the conversation.
    assert!(!keeps_its_cache("openai-responses", "gpt-5.2").await);
    assert!(!keeps_its_cache("deepseek", "deepseek-flash").await);
}
