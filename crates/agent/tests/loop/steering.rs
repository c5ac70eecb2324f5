//! The outer loop: queueing, steering, aborting, being idle.

use std::sync::Arc;

use expect_test::expect;
use futures_core::stream::BoxStream;
use hangar_agent::model::{
    AnswerSchema, AssistantTurn, Finish, ModelError, ModelEvent, ModelProvider, ModelRequest, ProviderFacts,
    Reply, TokenUsage,
};
use hangar_agent::session::{
    BackgroundNotice, CallOptions, Command, ModelSwitch, Origin, Prompt, QueueEdit, ReadForModel,
    SessionInput, Timing, Unqueue,
};
use hangar_agent::tool::ToolOutcome;
use hangar_protocol::Body;
use hangar_protocol::data::{AgentMode, Delivery, Mode, ModelChange, NotificationKind};
use serde_json::json;

use crate::stage::{Line, Setting, Stage, call, facts};

fn deliveries(stage: &Stage) -> Vec<Delivery> {
    let messages = stage.bodies().into_iter().filter_map(|body| match body {
        Body::UserMessage(message) => message.delivery,
        _ => None,
    });
    messages.collect()
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_comes_while_busy_waits_and_idle_comes_once() {
    let mut stage = Stage::new(vec![call("a", "slow"), Line::Say("one"), Line::Say("two")]);
    stage.send("first");
    stage.send("second");
    stage.until_idle().await;
    assert_eq!(deliveries(&stage), [Delivery::Idle, Delivery::Queued]);
    assert_eq!(stage.count("session.idle"), 1);
    assert_eq!(stage.kinds().last().unwrap(), "session.idle");
}

#[tokio::test(start_paused = true)]
async fn steering_joins_the_next_request_of_the_same_run() {
    let mut stage = Stage::new(vec![call("a", "slow"), Line::Say("one")]);
    stage.send("first");
    stage.until("tool.execution_start").await;
    stage.command(Command::Send(Prompt { timing: Timing::Steer, ..Prompt::user("rather this") }));
    stage.until_idle().await;
    expect![[r#"
        user: first
        assistant: ["a"]
        tool a: a done
        user: rather this"#]]
    .assert_eq(&stage.last_request());
    assert_eq!(deliveries(&stage), [Delivery::Idle, Delivery::Steering]);
    assert_eq!(stage.count("assistant.idle"), 1);
}

#[tokio::test(start_paused = true)]
async fn tools_know_when_a_person_has_something_to_say_and_not_when_there_is_news() {
    let mut stage = Stage::new(vec![call("a", "hang"), Line::Say("one")]);
    stage.send("first");
    stage.until("tool.execution_start").await;
    stage.driver.advance(SessionInput::Background(news())).unwrap();
    let hour = std::time::Duration::from_secs(3600);
    assert!(tokio::time::timeout(hour, stage.until_idle()).await.is_err(), "news can wait");
    stage.command(Command::Send(Prompt { timing: Timing::Steer, ..Prompt::user("rather this") }));
    tokio::time::timeout(hour, stage.until_idle()).await.unwrap();
    let shown = stage.last_request();
    assert!(shown.contains("tool a: let go") && shown.ends_with("user: rather this"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn steering_during_the_last_answer_is_still_answered() {
    let mut stage = Stage::new(vec![Line::Hang("..."), Line::Say("one")]);
    stage.send("first");
    stage.until("assistant.message_delta").await;
    stage.command(Command::Send(Prompt { timing: Timing::Steer, ..Prompt::user("and this") }));
    stage.command(Command::Abort { reason: "user_initiated".to_owned() });
    stage.until_idle().await;
    // An abort stops what waits, too: it means stop.
    assert_eq!(stage.requests().len(), 1);

    let mut stage = Stage::new(vec![Line::Say("one"), Line::Say("two")]);
    stage.send("first");
    stage.command(Command::Send(Prompt { timing: Timing::Steer, ..Prompt::user("and this") }));
    stage.until_idle().await;
    assert_eq!(stage.requests().len(), 2);
    assert!(stage.last_request().ends_with("user: and this"));
    assert_eq!(deliveries(&stage), [Delivery::Idle, Delivery::Queued], "its run was over");
    assert_eq!((stage.count("assistant.idle"), stage.count("session.idle")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn an_abort_mid_answer_logs_what_was_said_and_the_model_knows_it() {
    let mut stage = Stage::new(vec![Line::Hang("half an ans"), Line::Say("fine")]);
    stage.send("first");
    stage.until("assistant.message_delta").await;
    stage.command(Command::Abort { reason: "user_initiated".to_owned() });
    stage.until_idle().await;
    expect![[r#"
        user.message
        assistant.turn_start
        model.call_start
        hangar.answer_cut
        agent.interrupted
        abort
        model.call_finished
        assistant.turn_end
        assistant.idle
        session.idle"#]]
    .assert_eq(&stage.story());
    stage.play("second").await;
    expect![[r#"
        user: first
        assistant: half an ans[]
        user: second"#]]
    .assert_eq(&stage.last_request());
}

#[tokio::test(start_paused = true)]
async fn an_abort_stops_the_tools_and_the_model_is_told() {
    let mut stage = Stage::new(vec![
        Line::Call(vec![("a", "echo", serde_json::json!({})), ("b", "hang", serde_json::json!({}))]),
        Line::Say("fine"),
    ]);
    stage.send("first");
    stage.until("tool.execution_complete").await;
    stage.command(Command::Abort { reason: "user_initiated".to_owned() });
    stage.play("second").await;
    expect![[r#"
        user: first
        assistant: ["a", "b"]
        tool a: a ok
        tool b: The execution of this tool, or a previous tool was interrupted.
        user: second"#]]
    .assert_eq(&stage.last_request());
    stage.driver.close(None).await.unwrap();
    assert_eq!(*stage.cancelled.lock(), ["b"]);
}

#[tokio::test(start_paused = true)]
async fn an_abort_of_an_idle_session_is_nothing() {
    let mut stage = Stage::new(vec![]);
    stage.command(Command::Abort { reason: "user_initiated".to_owned() });
    assert_eq!(stage.count("abort"), 0);
}

#[tokio::test(start_paused = true)]
async fn news_from_the_background_wakes_an_idle_session() {
    let mut stage = Stage::new(vec![Line::Say("started"), Line::Say("noted")]);
    stage.play("go").await;
    let kind =
        NotificationKind::ShellCompleted { shell_id: "s1".to_owned(), exit_code: Some(0), description: None };
    stage
        .inbox
        .send(Box::new(SessionInput::Background(BackgroundNotice {
            text: "shell s1 ended".to_owned(),
            kind,
            read: None,
        })))
        .await
        .unwrap();
    stage.until("system.notification").await;
    stage.until_idle().await;
    let told = "user: <system_notification>\nshell s1 ended\n</system_notification>";
    assert!(stage.last_request().ends_with(told), "{}", stage.last_request());
}

fn news() -> BackgroundNotice {
    let kind =
        NotificationKind::ShellCompleted { shell_id: "s1".to_owned(), exit_code: Some(0), description: None };
    let outcome = ToolOutcome::success("out\n<exited with exit code 0>");
    let arguments = json!({ "shellId": "s1", "delay": 0 });
    let read = ReadForModel { tool: "read_bash", arguments, outcome };
    BackgroundNotice { text: "shell s1 ended".to_owned(), kind, read: Some(Box::new(read)) }
}

/// The news as the model is shown them, without ids.
fn told(stage: &Stage) -> String {
    let shown = stage.last_request();
    let (_, told) = shown.split_once("user: <system_notification>").unwrap_or_default();
    let call = told.split('"').nth(1).unwrap_or("nothing").to_owned();
    told.replace(&call, "CALL")
}

const TOLD: &str = "\nshell s1 ended\n</system_notification>\nassistant: [\"CALL\"]\ntool CALL: out\n<exited with exit code 0>";

#[tokio::test(start_paused = true)]
async fn what_the_model_would_read_next_is_read_for_it() {
    let mut stage = Stage::new(vec![Line::Say("started"), Line::Say("noted")]);
    stage.play("go").await;
    stage.driver.advance(SessionInput::Background(news())).unwrap();
    stage.until_idle().await;
    assert_eq!(told(&stage), TOLD);
    let reads = stage.bodies().into_iter().filter_map(|body| match body {
        Body::ToolStart(start) => Some((start.tool_name, start.arguments)),
        _ => None,
    });
    assert_eq!(reads.collect::<Vec<_>>(), [("read_bash".to_owned(), json!({ "shellId": "s1", "delay": 0 }))]);
}

#[tokio::test(start_paused = true)]
async fn news_joins_the_run_that_is_under_way() {
    let mut stage = Stage::new(vec![call("a", "slow"), Line::Say("noted")]);
    stage.send("go");
    stage.until("tool.execution_start").await;
    stage.driver.advance(SessionInput::Background(news())).unwrap();
    stage.until_idle().await;
    assert_eq!((stage.requests().len(), stage.count("assistant.idle")), (2, 1));
    assert_eq!(told(&stage), TOLD);
}

#[tokio::test(start_paused = true)]
async fn news_outlives_an_abort_and_comes_with_the_next_prompt() {
    let mut stage = Stage::new(vec![Line::Hang("..."), Line::Say("noted")]);
    stage.send("go");
    stage.until("assistant.message_delta").await;
    stage.driver.advance(SessionInput::Background(news())).unwrap();
    stage.send("never mind this");
    stage.command(Command::Abort { reason: "user_initiated".to_owned() });
    assert!(stage.driver.is_idle(), "nothing wakes it");
    stage.play("go on").await;
    assert_eq!(told(&stage), format!("{TOLD}\nuser: go on"));
    assert!(!stage.last_request().contains("never mind"));
}

#[tokio::test(start_paused = true)]
async fn a_prompt_may_go_before_those_that_wait() {
    let mut stage =
        Stage::new(vec![call("a", "slow"), Line::Say("one"), Line::Say("two"), Line::Say("three")]);
    stage.send("first");
    stage.send("last");
    stage.command(Command::Send(Prompt { timing: Timing::Next, ..Prompt::user("next") }));
    stage.until_idle().await;
    let said = stage.bodies().into_iter().filter_map(|body| match body {
        Body::UserMessage(message) => Some(message.content),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), ["first", "next", "last"]);
}

#[tokio::test(start_paused = true)]
async fn people_are_shown_one_text_and_the_model_another() {
    let mut stage = Stage::new(vec![Line::Say("one")]);
    let shown = Some("/tidy".to_owned());
    stage.command(Command::Send(Prompt { shown, ..Prompt::user("Tidy the whole tree.") }));
    stage.until_idle().await;
    assert_eq!(stage.last_request(), "user: Tidy the whole tree.");
    let Some(Body::UserMessage(message)) =
        stage.bodies().into_iter().find(|body| matches!(body, Body::UserMessage(_)))
    else {
        panic!("no message")
    };
    assert_eq!(message.content, "/tidy");
}

#[tokio::test(start_paused = true)]
async fn the_form_of_an_answer_holds_for_the_run_that_asked_for_it_and_no_other() {
    let mut stage = Stage::new(vec![call("a", "slow"), Line::Say("{}"), Line::Say("two")]);
    let schema = AnswerSchema {
        name: "verdict".to_owned(),
        schema: serde_json::json!({ "type": "object" }),
        description: None,
        strict: None,
    };
    let call_options = CallOptions { answer: Some(Arc::new(schema)), ..CallOptions::default() };
    stage.command(Command::Send(Prompt { call_options, ..Prompt::user("first") }));
    stage.until_idle().await;
    stage.send("second");
    stage.until_idle().await;
    let formed: Vec<bool> = stage.requests().iter().map(|request| request.answer.is_some()).collect();
    assert_eq!(formed, [true, true, false]);
}

fn in_mode(mode: AgentMode, text: &str) -> Command {
    Command::Send(Prompt { agent_mode: Some(mode), ..Prompt::user(text) })
}

fn waiting(id: &str, text: &str) -> Prompt {
    Prompt { message_id: Some(id.to_owned()), ..Prompt::user(text) }
}

fn insert(at: usize, prompt: Prompt) -> Command {
    Command::EditQueue(QueueEdit::Insert { at, prompt: Box::new(prompt) })
}

/// Messages with their senders, and model switches, in order.
fn said(stage: &Stage) -> Vec<String> {
    let said = stage.bodies().into_iter().filter_map(|body| match body {
        Body::UserMessage(message) => {
            let mode = message.agent_mode.map(|mode| format!(" ({mode:?})")).unwrap_or_default();
            Some(format!("user: {}{mode}", message.content))
        }
        Body::ModelChange(change) => {
            Some(format!("{} to {}", change.previous_model.unwrap_or_default(), change.new_model))
        }
        Body::ModeChanged(change) => Some(format!("mode: {:?}", change.new_mode)),
        _ => None,
    });
    said.collect()
}

#[tokio::test(start_paused = true)]
async fn the_mode_of_a_message_holds_while_that_message_is_worked_on() {
    let refused = Line::Call(vec![("a", "write", json!({}))]);
    let allowed = Line::Call(vec![("b", "write", json!({}))]);
    let mut stage = Stage::set(
        Setting { allow_all: true, ..Setting::default() },
        vec![Line::Say("one"), refused, Line::Say("two"), allowed, Line::Say("three")],
    );
    stage.send("first");
    stage.command(in_mode(AgentMode::Plan, "second"));
    stage.send("third");
    stage.until_idle().await;
    assert_eq!(said(&stage), ["user: first", "user: second (Plan)", "user: third"]);
    let done = stage.bodies().into_iter().filter_map(|body| match body {
        Body::ToolComplete(done) => Some((done.tool_call_id, done.success)),
        _ => None,
    });
    assert_eq!(done.collect::<Vec<_>>(), [("a".to_owned(), false), ("b".to_owned(), true)]);
    assert_eq!(stage.driver.session().state().mode, Mode::Interactive);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_plans_does_so_whatever_a_message_says() {
    let mut stage = Stage::new(vec![Line::Say("one"), Line::Say("two")]);
    stage.command(Command::SetMode(Mode::Plan));
    stage.command(in_mode(AgentMode::Interactive, "first"));
    stage.until_idle().await;
    assert_eq!(said(&stage), ["mode: Plan", "user: first (Plan)"]);
}

#[tokio::test(start_paused = true)]
async fn a_message_for_an_autopilot_makes_none_of_a_session() {
    let mut stage = Stage::new(vec![Line::Say("one")]);
    stage.command(in_mode(AgentMode::Autopilot, "first"));
    stage.until_idle().await;
    assert_eq!(said(&stage), ["user: first (Autopilot)"], "nobody tells it to go on");
}

fn switch(id: &str, model: &str) -> Prompt {
    let switch = ModelSwitch {
        change: ModelChange { new_model: model.to_owned(), ..ModelChange::default() },
        keeps_effort: true,
        provider: Arc::new(Says(model.to_owned())),
        vision: true,
    };
    Prompt { origin: Origin::Switch(Box::new(switch)), ..waiting(id, "") }
}

/// A model that says its name.
struct Says(String);

impl ModelProvider for Says {
    fn stream(&self, _: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let turn =
            AssistantTurn { text: self.0.clone(), reasoning: None, tool_calls: Vec::new(), native: None };
        let reply = Reply::new(turn, Finish::Stop, TokenUsage::default());
        Box::pin(futures_util::stream::iter([Ok(ModelEvent::Finished(Box::new(reply)))]))
    }

    fn facts(&self) -> ProviderFacts {
        facts()
    }
}

#[tokio::test(start_paused = true)]
async fn a_switch_of_the_model_waits_for_what_was_sent_before_it() {
    let mut stage = Stage::new(vec![call("a", "slow"), Line::Say("one"), Line::Say("two")]);
    stage.send("first");
    stage.send("second");
    stage.command(insert(usize::MAX, switch("s", "b")));
    stage.send("third");
    stage.command(insert(usize::MAX, switch("t", "c")));
    stage.until_idle().await;
    let changes = said(&stage);
    let model = &stage.driver.session().state().model;
    assert_eq!(changes.len(), 5, "{changes:?}");
    assert!(changes[2].ends_with(" to b") && changes[3] == "user: third" && changes[4] == "b to c");
    assert_eq!(model, "c");
    assert_eq!(stage.driver.take_switched(), ["s", "t"]);
    let mut answers = stage.bodies().into_iter().filter_map(|body| match body {
        Body::AssistantMessage(message) => Some(message.content),
        _ => None,
    });
    assert_eq!(answers.next_back().as_deref(), Some("b"), "the third message is answered by the next model");
}

#[tokio::test(start_paused = true)]
async fn an_abort_takes_back_a_switch_that_waits() {
    let mut stage = Stage::new(vec![Line::Hang("...")]);
    stage.send("first");
    stage.command(insert(usize::MAX, switch("s", "b")));
    stage.command(Command::Abort { reason: "user_initiated".to_owned() });
    stage.until_idle().await;
    assert_eq!(said(&stage), ["user: first"]);
    assert_eq!(stage.driver.take_switched(), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_paused_queue_keeps_what_is_meant_for_now_until_somebody_says_now() {
    let mut stage = Stage::new(vec![Line::Say("one"), Line::Say("two")]);
    stage.command(Command::EditQueue(QueueEdit::Pause(true)));
    stage.command(Command::Send(waiting("a", "first")));
    stage.command(Command::Send(Prompt { timing: Timing::Steer, ..waiting("b", "second") }));
    let shown = |stage: &Stage| -> Vec<String> {
        let waiting = stage.driver.session().queued();
        waiting.map(|waiting| waiting.shown).collect()
    };
    assert_eq!(shown(&stage), ["first", "second"]);
    stage.command(Command::SendNow { id: "b".to_owned() });
    stage.until_idle().await;
    assert_eq!(said(&stage), ["user: second"]);
    assert_eq!(shown(&stage), ["first"]);
    stage.command(Command::EditQueue(QueueEdit::Pause(false)));
    stage.until_idle().await;
    assert_eq!(said(&stage), ["user: second", "user: first"]);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_message_that_is_sent_now_does_not_wait_for_a_command_either() {
    let mut stage = Stage::new(vec![call("a", "hang"), Line::Say("one")]);
    stage.send("first");
    stage.until("tool.execution_start").await;
    stage.command(Command::Send(waiting("b", "second")));
    stage.command(Command::SendNow { id: "b".to_owned() });
    stage.until_idle().await;
    let shown = stage.last_request();
    assert!(shown.contains("tool a: let go") && shown.ends_with("user: second"), "{shown}");
}

#[tokio::test(start_paused = true)]
async fn positions_are_those_of_what_people_see() {
    let mut stage = Stage::new(Vec::new());
    stage.command(Command::EditQueue(QueueEdit::Pause(true)));
    stage.driver.advance(SessionInput::Background(news())).unwrap();
    for (id, text) in [("a", "first"), ("b", "second")] {
        stage.command(Command::Send(waiting(id, text)));
    }
    stage.command(insert(1, waiting("c", "between")));
    stage.command(Command::EditQueue(QueueEdit::Move { id: "b".to_owned(), to: 0 }));
    let shown: Vec<_> = stage.driver.session().queued().map(|waiting| waiting.shown).collect();
    assert_eq!(shown, ["second", "first", "between"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_back_is_what_people_said() {
    for (which, left) in [(Unqueue::Last, vec!["user: first"]), (Unqueue::All, vec!["user: third"])] {
        let mut stage = Stage::new(Vec::new());
        stage.command(Command::EditQueue(QueueEdit::Pause(true)));
        for text in ["first", "second"] {
            stage.command(Command::Send(waiting(text, text)));
        }
        stage.driver.advance(SessionInput::Background(news())).unwrap();
        stage.command(Command::Unqueue(which));
        stage.command(Command::EditQueue(QueueEdit::Pause(false)));
        if which == Unqueue::All {
            stage.send("third");
        }
        stage.until_idle().await;
        assert_eq!(said(&stage), left);
        assert_eq!(stage.count("system.notification"), 1, "news stays true: {which:?}");
    }
}
