//! Facts about the session: in its messages, told once, and again when they have changed.

use hangar_agent::model::{Message, ModelRequest, Part};
use hangar_agent::session::Command;
use hangar_protocol::Body;
use hangar_protocol::data::ContextCleared;
use serde_json::json;

use crate::stage::{Line, Setting, Stage, call};

/// The facts that the messages of a request tell, message by message.
fn told(request: &ModelRequest) -> Vec<String> {
    let text = |message: &Message| match message {
        Message::User(parts) => parts.iter().find_map(|part| match part {
            Part::Text(text) => Some(text.clone()),
            _ => None,
        }),
        Message::Assistant(_) | Message::Tool { .. } => None,
    };
    let facts = |text: String| {
        let block = text.split_once("<session_context>\n")?.1.split_once("\n</session_context>")?.0;
        Some(block.replace('\n', " | "))
    };
    request
        .messages
        .iter()
        .filter_map(|message| text(message))
        .map(|text| facts(text).unwrap_or_default())
        .collect()
}

fn setting() -> Setting {
    Setting { facts: vec!["Session folder: /s".to_owned()], ..Default::default() }
}

const FIRST: &str = "Session folder: /s | Model: m | Permissions: all tools are allowed, on files in the working \
                     directory; nobody can be asked, so everything else is refused.";

#[tokio::test(start_paused = true)]
async fn the_first_message_tells_them_and_the_next_what_has_changed() {
    let mut stage = Stage::set(setting(), vec![call("a", "echo"), Line::Say("one")]);
    stage.play("first").await;
    stage.play("second").await;
    stage.command(Command::SetModel { model: "n".to_owned(), effort: None });
    stage.play("third").await;
    let requests = stage.requests();
    assert_eq!(told(requests.last().unwrap()), [FIRST, "", "Model: n"]);
    assert!(requests.iter().all(|request| *request.system == *requests[0].system));
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_is_told_what_is_different_now() {
    let mut stage = Stage::set(setting(), vec![]);
    stage.play("first").await;
    stage.driver.close(None).await.unwrap();
    let facts = vec!["Session folder: /s".to_owned(), "Git state: clean".to_owned()];
    let mut stage = Stage::set(Setting { log: stage.log(), facts, ..setting() }, vec![]);
    stage.play("second").await;
    assert_eq!(told(stage.requests().last().unwrap()), [FIRST, "Git state: clean"]);
}

#[tokio::test(start_paused = true)]
async fn a_cleared_conversation_is_told_all_of_them_again() {
    let mut stage = Stage::set(setting(), vec![]);
    stage.play("first").await;
    stage.command(Command::Record(ContextCleared { messages_cleared: 2, initial_message: None }.into()));
    stage.play("second").await;
    assert_eq!(told(stage.requests().last().unwrap()), [FIRST]);
}

#[tokio::test(start_paused = true)]
async fn instructions_of_a_server_that_comes_late_are_told_by_a_message() {
    let server = |instructions: &str| {
        vec![
            json!({ "name": "s", "status": "connected", "serverMetadata": { "instructions": instructions } }),
        ]
    };
    let mut stage = Stage::set(setting(), vec![]);
    stage.driver.session_mut().set_mcp_servers(server("Early."));
    stage.play("first").await;
    stage.driver.session_mut().set_mcp_servers(server("Late."));
    stage.play("second").await;
    stage.play("third").await;
    let requests = stage.requests();
    assert!(requests.iter().all(|request| *request.system == *requests[0].system));
    assert!(requests[0].system.contains("Early."), "{}", requests[0].system);
    let messages = requests.last().unwrap().messages.iter().map(|message| format!("{message:?}"));
    assert_eq!(messages.filter(|message| message.contains("Late.")).count(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_resumed_conversation_keeps_its_system_prompt_and_is_told_changed_instructions() {
    let resumed = |log, instructions| Stage::set(Setting { log, instructions, ..setting() }, vec![]);
    let mut log = Vec::new();
    for (instructions, told) in [
        ("Use tabs.", None),
        ("Use spaces.", Some("These hold from now on, and no others:\nUse spaces.")),
        ("Use spaces.", None),
        ("Use tabs.", Some("These hold from now on, and no others:\nUse tabs.")),
        ("", Some("There are none any more.")),
        ("", None),
    ] {
        let known = log.len();
        let mut stage = resumed(log, instructions);
        stage.play("go").await;
        let request = stage.requests().pop().unwrap();
        assert_eq!(&*request.system, "system\n\nUse tabs.", "{instructions:?}");
        stage.driver.close(None).await.unwrap();
        log = stage.log();
        let news: Vec<String> = log[known..]
            .iter()
            .filter_map(|event| match event.body() {
                Body::SystemNotification(notification) => Some(notification.content.clone()),
                _ => None,
            })
            .collect();
        match told {
            None => assert_eq!(news, [""; 0], "{instructions:?}"),
            Some(told) => assert!(news.len() == 1 && news[0].contains(told), "{instructions:?}: {news:?}"),
        }
    }
}
