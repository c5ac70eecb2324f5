//! Tools that are too many to be shown: they are searched for, and what was found stays.

use std::sync::Arc;

use hangar_agent::model::ModelRequest;
use hangar_agent::tool_search::Deferral;
use serde_json::json;

use crate::stage::{Line, Setting, Stage, call};

/// A session in which any description of these tools is too much.
fn setting() -> Setting {
    let names = ["echo", "slow"].map(str::to_owned);
    let deferral = Deferral { names: Arc::new(names.into()), tokens: 0, count: None };
    Setting { deferral: Some(deferral), ..Default::default() }
}

fn shown(request: &ModelRequest) -> Vec<&str> {
    request.tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn search(query: &str) -> Line {
    Line::Call(vec![("s", "tool_search_tool", json!({ "query": query }))])
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_was_found_is_shown_from_the_next_request_on_at_the_end() {
    let mut stage = Stage::set(setting(), vec![search("echo"), call("e", "echo"), Line::Say("done")]);
    stage.play("go").await;
    let requests = stage.requests();
    assert_eq!(shown(&requests[0]), ["hang", "write", "tool_search_tool"]);
    assert_eq!(shown(&requests[1]), ["hang", "write", "tool_search_tool", "echo"]);
    assert!(stage.last_request().contains("tool e: e ok"), "{}", stage.last_request());
    assert_eq!(stage.count("tool_search.activated"), 1);
    let first = format!("{:?}", requests[0].messages);
    assert!(first.contains("Tools that tool_search_tool finds: echo, slow"), "{first}");
    let again = requests.iter().any(|request| request.messages.len() > 1 && request.tools.len() < 4);
    assert!(!again, "what was shown once was taken away");
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_is_shown_what_it_had_found() {
    let mut stage = Stage::set(setting(), vec![search("select:slow,echo"), Line::Say("done")]);
    stage.play("go").await;
    stage.driver.close(None).await.unwrap();
    let before = stage.requests().pop().unwrap();
    let mut stage = Stage::set(Setting { log: stage.log(), ..setting() }, vec![]);
    stage.play("go on").await;
    assert_eq!(shown(&stage.requests()[0]), shown(&before));
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_called_without_a_search_runs_and_is_shown() {
    let mut stage = Stage::set(setting(), vec![call("e", "echo"), Line::Say("done")]);
    stage.play("go").await;
    assert!(stage.last_request().contains("tool e: e ok"), "{}", stage.last_request());
    assert_eq!(shown(&stage.requests()[1]), ["hang", "write", "tool_search_tool", "echo"]);
}

#[tokio::test(start_paused = true)]
async fn a_search_that_finds_nothing_says_so() {
    let mut stage = Stage::set(setting(), vec![search("weather"), Line::Say("done")]);
    stage.play("go").await;
    assert!(stage.last_request().contains("No tool matches"), "{}", stage.last_request());
    assert_eq!(stage.count("tool_search.activated"), 0);
}

#[tokio::test(start_paused = true)]
async fn tools_that_are_few_are_shown_at_once() {
    let setting =
        Setting { deferral: setting().deferral.map(|few| Deferral { tokens: 1_000, ..few }), ..setting() };
    let mut stage = Stage::set(setting, vec![]);
    stage.play("go").await;
    assert_eq!(shown(&stage.requests()[0]), ["echo", "slow", "hang", "write"]);
}

#[tokio::test(start_paused = true)]
async fn tools_that_come_late_are_added_at_the_end_and_those_that_were_shown_stay() {
    let mut stage = Stage::new(vec![]);
    stage.play("go").await;
    let mut tools: Vec<_> = stage.driver.tools().iter().cloned().collect();
    tools.rotate_left(1);
    let tools = hangar_agent::tool::Toolset::new(tools);
    stage.driver.set_tools(tools, &[]).unwrap();
    // They are many now, but the model has seen them.
    let names = ["echo", "slow"].map(str::to_owned);
    stage.driver.session_mut().set_deferrable(names.into());
    stage.play("go on").await;
    let requests = stage.requests();
    assert_eq!(shown(&requests[0]), shown(&requests[1]));
}

/// A session whose tool `echo` is gone after its first prompt, and the next prompt, which calls it.
async fn without_echo(replaced: bool) -> Stage {
    let mut stage = Stage::new(vec![Line::Say("hello"), call("a", "echo"), Line::Say("done")]);
    stage.play("go").await;
    let tools = stage.driver.tools().iter().filter(|tool| tool.spec().name != "echo").cloned();
    let tools = hangar_agent::tool::Toolset::new(tools.collect());
    stage.driver.set_tools(tools, &[]).unwrap();
    if replaced {
        stage.driver.session_mut().forget_withdrawn_tools();
    }
    stage.play("go on").await;
    stage
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_is_gone_stays_in_the_requests_and_its_calls_are_refused() {
    let mut stage = without_echo(false).await;
    let requests = stage.requests();
    assert_eq!(shown(&requests[2]), shown(&requests[0]), "the prefix stays as it was");
    let told = stage.last_request();
    assert!(told.contains("Tools no longer available: echo"), "{told}");
    assert!(
        told.contains("Tool 'echo' is no longer available. Available tools that can be called are slow"),
        "{told}"
    );
    // It comes back as it was.
    let tools: Vec<_> = Stage::new(vec![]).driver.tools().iter().cloned().collect();
    stage.driver.set_tools(hangar_agent::tool::Toolset::new(tools), &[]).unwrap();
    stage.play("once more").await;
    assert_eq!(shown(stage.requests().last().unwrap()), shown(&requests[0]));
}

#[tokio::test(start_paused = true)]
async fn tools_that_were_replaced_on_purpose_are_gone() {
    let stage = without_echo(true).await;
    assert_eq!(shown(&stage.requests()[2]), ["slow", "hang", "write"]);
    let told = stage.last_request();
    assert!(told.contains("Tools no longer available: echo"), "{told}");
    assert!(told.contains("Tool 'echo' does not exist."), "{told}");
}
