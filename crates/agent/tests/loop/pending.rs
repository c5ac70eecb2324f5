//! Work that waited for someone when the process died, taken up by the next one.

use hangar_agent::session::{Command, Prompt};
use hangar_agent::tool::ToolOutcome;
use hangar_protocol::data::{AgentMode, ExternalToolRequested};
use hangar_protocol::permission::PermissionOutcome;
use hangar_protocol::{Body, Event, EventId};
use serde_json::json;

use crate::stage::{Line, Setting, Stage, call};

/// The log of a session that was killed while it asked for a permission.
async fn asking() -> Vec<Event> {
    let setting = Setting { user_reachable: true, allow_all: false, ..Default::default() };
    let mut stage = Stage::set(setting, vec![call("a", "write")]);
    stage.send("go");
    stage.until("permission.requested").await;
    stage.log()
}

/// The log of a session that was killed while a client and the session itself each made a call.
async fn calling(mode: Option<AgentMode>) -> Vec<Event> {
    let both = Line::Call(vec![("mine", "hang", json!({})), ("theirs", "hang", json!({"x": 1}))]);
    let mut stage = Stage::new(vec![both]);
    stage.command(Command::Send(Prompt { agent_mode: mode, ..Prompt::user("go") }));
    stage.until("tool.execution_start").await;
    let mut log = stage.log();
    let requested = ExternalToolRequested {
        request_id: "r1".to_owned(),
        session_id: "s".to_owned(),
        tool_call_id: "theirs".to_owned(),
        tool_name: "hang".to_owned(),
        arguments: json!({"x": 1}),
        working_directory: None,
        traceparent: None,
        tracestate: None,
    };
    let parent = log.last().map(|event| event.id().clone());
    let id = EventId("00000000-0000-4000-8000-000000000001".to_owned());
    log.push(Event::new(id, "2027-01-15T08:00:00.000Z".to_owned(), parent, None, requested.into()));
    log
}

fn resumed(log: Vec<Event>, continue_pending: bool) -> Stage {
    let setting = Setting {
        log,
        user_reachable: true,
        allow_all: false,
        continue_pending: Some(continue_pending),
        ..Default::default()
    };
    Stage::set(setting, vec![Line::Say("back")])
}

#[tokio::test(start_paused = true)]
async fn a_permission_can_be_given_after_the_process_that_asked_is_gone() {
    let mut stage = resumed(asking().await, true);
    let pending = stage.driver.session().pending_permissions();
    assert_eq!((pending.len(), stage.driver.session().is_idle()), (1, false));
    let request_id = pending[0].request_id.clone();
    assert_eq!(stage.count("permission.requested"), 1, "the client that resumes is asked again");
    stage.command(Command::AnswerPermission { request_id, answer: PermissionOutcome::Approved {} });
    stage.until_idle().await;
    assert_eq!(stage.last_request(), "user: go\nassistant: [\"a\"]\ntool a: a ok");
    assert_eq!(stage.count("session.warning"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_client_can_answer_its_call_after_the_process_that_asked_is_gone() {
    let mut stage = resumed(calling(None).await, true);
    // Calls that ran here ended with the process.
    assert_eq!((stage.count("tool.execution_complete"), stage.count("session.warning")), (1, 1));
    let waiting = stage.driver.session().awaits_client("r1").unwrap();
    assert_eq!((waiting.tool.as_str(), waiting.arguments), ("hang", json!({"x": 1})));
    let outcome = Box::new(ToolOutcome::success("their answer"));
    stage.command(Command::AnswerClientCall { request_id: "r1".to_owned(), outcome });
    stage.until_idle().await;
    let seen = stage.last_request();
    assert!(seen.ends_with("tool theirs: their answer"), "{seen}");
    assert!(seen.contains("tool mine: The execution of this tool"), "{seen}");
    assert!(stage.driver.session().awaits_client("r1").is_none());
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_up_is_in_the_mode_that_it_was_sent_in() {
    for (mode, may_write) in [(None, true), (Some(AgentMode::Plan), false)] {
        let setting =
            Setting { log: calling(mode).await, continue_pending: Some(true), ..Setting::default() };
        let mut stage =
            Stage::set(Setting { allow_all: true, ..setting }, vec![call("w", "write"), Line::Say("back")]);
        let outcome = Box::new(ToolOutcome::success("their answer"));
        stage.command(Command::AnswerClientCall { request_id: "r1".to_owned(), outcome });
        stage.until_idle().await;
        let wrote = stage
            .bodies()
            .into_iter()
            .any(|body| matches!(body, Body::ToolComplete(done) if done.tool_call_id == "w" && done.success));
        assert_eq!(wrote, may_write);
    }
}

#[tokio::test(start_paused = true)]
async fn without_the_wish_to_go_on_pending_work_is_interrupted() {
    for log in [asking().await, calling(None).await] {
        let stage = resumed(log, false);
        assert!(stage.driver.session().is_idle());
        assert!(stage.driver.session().pending_permissions().is_empty());
        assert_eq!(stage.count("session.warning"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_answered_before_the_end_is_not_pending() {
    let setting = Setting { user_reachable: true, allow_all: false, ..Default::default() };
    let mut stage = Stage::set(setting, vec![call("a", "write"), Line::Say("done")]);
    stage.send("go");
    stage.until("permission.requested").await;
    let request_id = stage.driver.session().pending_permissions()[0].request_id.clone();
    stage.command(Command::AnswerPermission { request_id, answer: PermissionOutcome::Approved {} });
    let log = stage.log();
    assert!(log.iter().any(|event| matches!(event.body(), Body::PermissionCompleted(_))));
    assert!(resumed(log, true).driver.session().is_idle());
}
