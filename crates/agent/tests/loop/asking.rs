//! Questions that only some watchers can answer: about plans and about other models; and limits that the model is told.

use hangar_agent::model::ModelErrorKind;
use hangar_agent::session::{AnswerableQuestions, CallOptions, Command, Prompt};
use hangar_protocol::Body;
use hangar_protocol::data::{Mode, PlanAction, PlanDecision, SessionLimits, SwitchAnswer};
use serde_json::json;

use crate::stage::{Line, Setting, Stage};

/// A session in plan mode whose model hands a plan in, and the id of the question about it.
async fn plan_handed_in(reviewed: bool) -> (Stage, Option<String>) {
    let setting = Setting { mode: Mode::Plan, ..Default::default() };
    let arguments = json!({ "summary": "the plan", "actions": ["interactive", "moonshot"] });
    let lines = vec![Line::Call(vec![("p", "exit_plan_mode", arguments)]), Line::Say("ok")];
    let mut stage = Stage::set(setting, lines);
    stage
        .driver
        .session_mut()
        .set_answerable_questions(AnswerableQuestions { plans: reviewed, switches: false });
    stage.send("plan it");
    if !reviewed {
        stage.until_idle().await;
        return (stage, None);
    }
    stage.until("exit_plan_mode.requested").await;
    let asked = stage.bodies().into_iter().find_map(|body| match body {
        Body::ExitPlanModeRequested(asked) => Some(asked),
        _ => None,
    });
    let asked = asked.unwrap();
    assert_eq!(
        (asked.actions, asked.recommended_action),
        (vec![PlanAction::Interactive], PlanAction::Interactive)
    );
    (stage, Some(asked.request_id))
}

#[tokio::test(start_paused = true)]
async fn an_approved_plan_leaves_plan_mode_and_the_model_goes_on() {
    let (mut stage, request_id) = plan_handed_in(true).await;
    let request_id = request_id.unwrap();
    assert!(stage.driver.session().awaits_review(&request_id));
    let decision = PlanDecision { approved: true, ..PlanDecision::default() };
    stage.command(Command::ReviewPlan { request_id: request_id.clone(), decision });
    assert!(!stage.driver.session().awaits_review(&request_id), "answered once");
    stage.until_idle().await;
    assert_eq!(stage.driver.session().state().mode, Mode::Interactive);
    assert!(stage.last_request().contains("You are now in interactive mode."), "{}", stage.last_request());
}

#[tokio::test(start_paused = true)]
async fn a_refused_plan_stays_a_plan() {
    let (mut stage, request_id) = plan_handed_in(true).await;
    let decision = PlanDecision { feedback: Some("smaller steps".to_owned()), ..PlanDecision::default() };
    stage.command(Command::ReviewPlan { request_id: request_id.unwrap(), decision });
    stage.until_idle().await;
    assert_eq!(stage.driver.session().state().mode, Mode::Plan);
    assert!(stage.last_request().contains("smaller steps"));
}

#[tokio::test(start_paused = true)]
async fn without_a_reviewer_there_is_no_such_tool() {
    let (stage, _) = plan_handed_in(false).await;
    assert!(stage.last_request().contains("Tool 'exit_plan_mode' does not exist."));
}

/// A model at its rate limit, of GitHub's own provider.
async fn rate_limited(switches: bool) -> Stage {
    let limit = Line::Fail(ModelErrorKind::RateLimit, Some(429));
    let mut lines = vec![limit; 6];
    lines.push(Line::Say("recovered"));
    let mut stage = Stage::set(Setting { github: true, ..Default::default() }, lines);
    stage.driver.session_mut().set_answerable_questions(AnswerableQuestions { plans: false, switches });
    stage.send("go");
    stage
}

async fn answered(answer: SwitchAnswer) -> Stage {
    let mut stage = rate_limited(true).await;
    stage.until("auto_mode_switch.requested").await;
    let asked = stage.bodies().into_iter().find_map(|body| match body {
        Body::AutoModeSwitchRequested(asked) => Some(asked.request_id),
        _ => None,
    });
    let request_id = asked.unwrap();
    assert!(stage.driver.session().awaits_switch(&request_id));
    stage.command(Command::AnswerSwitch { request_id, answer });
    stage.until_idle().await;
    stage
}

#[tokio::test(start_paused = true)]
async fn another_model_goes_on_where_one_is_at_its_limit() {
    let stage = answered(SwitchAnswer::Yes).await;
    assert_eq!(stage.requests().last().unwrap().model, "auto");
    assert_eq!((stage.count("session.model_change"), stage.count("session.error")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_no_and_silence_end_the_run_as_before() {
    for stage in [answered(SwitchAnswer::No).await, {
        let mut stage = rate_limited(false).await;
        stage.until_idle().await;
        stage
    }] {
        assert_eq!((stage.requests().len(), stage.count("session.error")), (6, 1));
        assert_eq!(stage.driver.session().state().model, "m");
    }
}

#[tokio::test(start_paused = true)]
async fn limits_are_told_once_and_survive_a_resume() {
    let mut stage = Stage::new(vec![]);
    stage.command(Command::SetLimits(Some(SessionLimits { max_ai_credits: Some(30.0) })));
    stage.play("one").await;
    stage.play("two").await;
    assert_eq!(stage.last_request().matches("Remaining session limits: 30 AI credits.").count(), 1);
    let mut resumed = Stage::set(Setting { log: stage.log(), ..Default::default() }, vec![]);
    resumed.play("three").await;
    assert_eq!(resumed.last_request().matches("session_limits_status>").count(), 2, "one message, two tags");
}

#[tokio::test(start_paused = true)]
async fn the_trace_of_a_prompt_is_on_the_wire() {
    let mut stage = Stage::new(vec![]);
    let headers = vec![("traceparent".to_owned(), "00-a-b-01".to_owned())];
    let call_options = CallOptions { headers: headers.clone(), ..CallOptions::default() };
    stage.command(Command::Send(Prompt { call_options, ..Prompt::user("go") }));
    stage.until_idle().await;
    assert_eq!(stage.requests()[0].headers, headers);
}
