//! A conversation: answers, pieces, tools of the client, permissions, hooks, questions, what the model is told.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use github_copilot_sdk::handler::{PermissionHandler, PermissionResult, UserInputHandler, UserInputResponse};
use github_copilot_sdk::hooks::{
    HookContext, PostToolUseInput, PostToolUseOutput, PreToolUseInput, PreToolUseOutput, SessionHooks,
    UserPromptSubmittedInput, UserPromptSubmittedOutput,
};
use github_copilot_sdk::types::{
    Attachment, MessageOptions, PermissionRequestData, ProviderConfig, RequestId, SectionOverride,
    SessionConfig, SessionId, SystemMessageConfig, ToolResult, ToolResultExpanded,
};
use github_copilot_sdk::{Error, ErrorKind};
use hangar_sdk_rust::{
    answer, asked, call, client, config, data, directory, mark, model_url, run, told, tool,
};
use serde_json::{Value, json};

#[tokio::test]
async fn a_session_answers_and_its_history_says_so() {
    let client = client().await;
    let session = client.create_session(config()).await.unwrap();
    let reply = session.send_and_wait("SAY:hello there").await.unwrap().unwrap();
    assert_eq!(reply.data["content"], "hello there");
    let history = session.get_events().await.unwrap();
    assert_eq!(history[0].event_type, "session.start");
    assert_eq!(answer(&history), "hello there");
    client.stop().await.unwrap();
}

#[tokio::test]
async fn pieces_make_up_the_answer() {
    let client = client().await;
    let session = client.create_session(config().with_streaming(true)).await.unwrap();
    let events = run(&session, "STREAM:20").await;
    let pieces = data(&events, "assistant.message_delta");
    assert!(pieces.len() > 1, "{} pieces", pieces.len());
    let text: String = pieces.iter().filter_map(|piece| piece["deltaContent"].as_str()).collect();
    assert_eq!(text, answer(&events));
}

/// Lets the model call a tool and says how the call ended and what the model read.
async fn check_tool(
    result: impl Fn(Value) -> Result<ToolResult, Error> + Send + Sync + 'static,
    success: bool,
    read: &str,
) {
    let client = client().await;
    let session = client.create_session(config().with_tools([tool("lookup", result)])).await.unwrap();
    let word = mark();
    let events = run(&session, format!("{word}\n{}\nSAY:done", call("lookup", &json!({ "key": "a" })))).await;
    assert_eq!(data(&events, "tool.execution_complete")[0]["success"], success);
    assert!(told(&word).contains(read), "{}", told(&word));
    assert_eq!(answer(&events), "done");
}

#[tokio::test]
async fn a_tool_of_the_client_is_called_whatever_comes_of_it() {
    check_tool(|arguments| Ok(ToolResult::Text(format!("found {}", arguments["key"]))), true, "found ").await;
    check_tool(|_| Err(Error::with_message(ErrorKind::InvalidConfig, "the shelf is empty")), false, "lookup")
        .await;
    for kind in ["failure", "denied", "timeout"] {
        let result = ToolResultExpanded::new(format!("it was {kind}"), kind);
        check_tool(move |_| Ok(ToolResult::Expanded(result.clone())), false, kind).await;
    }
}

struct Decide {
    result: fn() -> PermissionResult,
    seen: Arc<Mutex<Vec<Value>>>,
}

#[async_trait]
impl PermissionHandler for Decide {
    async fn handle(&self, _: SessionId, _: RequestId, data: PermissionRequestData) -> PermissionResult {
        self.seen.lock().unwrap().push(data.extra);
        (self.result)()
    }
}

/// Lets the model create a file, and says what was asked and whether the file is there.
async fn check_permission(result: fn() -> PermissionResult, written: bool) {
    let client = client().await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let handler = Decide { result, seen: Arc::clone(&seen) };
    let session = client
        .create_session(SessionConfig::default().with_permission_handler(Arc::new(handler)))
        .await
        .unwrap();
    let path = directory().join("new.txt");
    let arguments = json!({ "path": path, "file_text": "text\n" });
    let events = run(&session, format!("{}\nSAY:done", call("create", &arguments))).await;
    assert_eq!(path.exists(), written);
    assert_eq!(answer(&events), "done");
    let seen = seen.lock().unwrap();
    let named = seen.iter().any(|asked| asked.to_string().contains(path.to_str().unwrap()));
    assert!(named, "{seen:?}");
}

#[tokio::test]
async fn a_permission_is_granted_or_refused() {
    check_permission(PermissionResult::approve_once, true).await;
    check_permission(|| PermissionResult::reject("not there".to_owned()), false).await;
    check_permission(PermissionResult::user_not_available, false).await;
}

struct Hooks(Mutex<Vec<String>>);

#[async_trait]
impl SessionHooks for Hooks {
    async fn on_pre_tool_use(&self, input: PreToolUseInput, _: HookContext) -> Option<PreToolUseOutput> {
        self.0.lock().unwrap().push(format!("pre {}", input.tool_name));
        let denied = input.tool_args.to_string().contains("forbidden");
        let decision = if denied { "deny" } else { "allow" };
        Some(PreToolUseOutput {
            permission_decision: Some(decision.to_owned()),
            permission_decision_reason: Some("as the hook says".to_owned()),
            ..Default::default()
        })
    }

    async fn on_post_tool_use(&self, input: PostToolUseInput, _: HookContext) -> Option<PostToolUseOutput> {
        self.0.lock().unwrap().push("post".to_owned());
        let mut result = input.tool_result;
        result["textResultForLlm"] = json!("changed by the hook");
        Some(PostToolUseOutput { modified_result: Some(result), ..Default::default() })
    }

    async fn on_user_prompt_submitted(
        &self,
        _: UserPromptSubmittedInput,
        _: HookContext,
    ) -> Option<UserPromptSubmittedOutput> {
        self.0.lock().unwrap().push("prompt".to_owned());
        Some(UserPromptSubmittedOutput {
            additional_context: Some("the hook says hello".to_owned()),
            ..Default::default()
        })
    }
}

#[tokio::test]
async fn hooks_see_change_and_deny() {
    let client = client().await;
    let hooks = Arc::new(Hooks(Mutex::default()));
    let session = client.create_session(config().with_hooks(Arc::clone(&hooks) as _)).await.unwrap();
    let word = mark();
    let bash = |command: &str| call("bash", &json!({ "command": command, "description": "d" }));
    run(&session, format!("{word}\n{}\nSAY:done", bash("echo plain"))).await;
    assert_eq!(*hooks.0.lock().unwrap(), ["prompt", "pre bash", "post"]);
    assert!(told(&word).contains("changed by the hook") && told(&word).contains("the hook says hello"));
    let path = directory().join("forbidden");
    run(&session, format!("{}\nSAY:done", bash(&format!("touch {}", path.display())))).await;
    assert!(!path.exists());
    assert!(told(&word).contains("as the hook says"));
}

struct Second;

#[async_trait]
impl UserInputHandler for Second {
    async fn handle(
        &self,
        _: SessionId,
        _: String,
        choices: Option<Vec<String>>,
        _: Option<bool>,
    ) -> Option<UserInputResponse> {
        Some(UserInputResponse { answer: choices?.get(1)?.clone(), was_freeform: false })
    }
}

#[tokio::test]
async fn a_question_is_answered() {
    let client = client().await;
    let session = client.create_session(config().with_user_input_handler(Arc::new(Second))).await.unwrap();
    let word = mark();
    let question = json!({ "question": "which?", "choices": ["left", "right"] });
    run(&session, format!("{word}\n{}\nSAY:done", call("ask_user", &question))).await;
    assert!(told(&word).contains("User selected: right"), "{}", told(&word));
}

async fn system(message: SystemMessageConfig) -> String {
    let client = client().await;
    let session = client.create_session(config().with_system_message(message)).await.unwrap();
    let word = mark();
    run(&session, format!("{word}\nSAY:x")).await;
    asked(&word)["body"]["messages"][0]["content"].to_string()
}

#[tokio::test]
async fn the_system_message_is_the_client_s() {
    let message = |mode: &str, text: &str| SystemMessageConfig::new().with_mode(mode).with_content(text);
    assert_eq!(system(message("replace", "You are a teapot.")).await, "\"You are a teapot.\"");
    assert!(system(message("append", "Speak softly.")).await.contains("Speak softly."));
    let mut sections = HashMap::new();
    let mut tone = SectionOverride::default();
    tone.action = Some("replace".to_owned());
    tone.content = Some("Answer in verse.".to_owned());
    sections.insert("tone".to_owned(), tone);
    let mut custom = SystemMessageConfig::new().with_mode("customize");
    custom.sections = Some(sections);
    assert!(system(custom).await.contains("Answer in verse."));
}

#[tokio::test]
async fn a_provider_of_the_client_is_used() {
    let client = client().await;
    let provider = ProviderConfig::new(format!("{}/v1", model_url()))
        .with_provider_type("openai")
        .with_api_key("their-key")
        .with_headers(HashMap::from([("x-team".to_owned(), "blue".to_owned())]));
    let session =
        client.create_session(config().with_model("their-model").with_provider(provider)).await.unwrap();
    let word = mark();
    assert_eq!(answer(&run(&session, format!("{word}\nSAY:from afar")).await), "from afar");
    let request = asked(&word);
    assert_eq!(
        (&request["headers"]["x-team"], &request["body"]["model"]),
        (&json!("blue"), &json!("their-model"))
    );
}

#[tokio::test]
async fn attachments_reach_the_model() {
    let client = client().await;
    let session = client.create_session(config()).await.unwrap();
    let path: PathBuf = directory().join("notes.txt");
    std::fs::write(&path, "attached words").unwrap();
    let word = mark();
    let file = Attachment::File { path, display_name: None, line_range: None };
    let message = MessageOptions::new(format!("{word}\nSAY:read")).with_attachments(vec![file]);
    let events = run(&session, message).await;
    assert_eq!(data(&events, "user.message")[0]["attachments"].as_array().map(Vec::len), Some(1));
    assert!(told(&word).contains("notes.txt"));
}
