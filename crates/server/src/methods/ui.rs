//! Questions to users: forms that clients show, answers to the session's questions, and side questions.

use std::time::Duration;

use futures_util::StreamExt;
use hangar_agent::model::ModelEvent;
use hangar_agent::session::Command;
use hangar_protocol::data::{
    ElicitationAction, ElicitationCompleted, ElicitationRequested, EphemeralQuery, PlanDecision, QueryPhase,
    SwitchAnswer,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::mcp::answers;
use super::{Call, Failure, Method, Reply};
use crate::elicitations::ElicitationResult;

/// Timeout of the model for a side question.
const PATIENCE: Duration = Duration::from_secs(600);
/// Clients, or parts of them, that may say that they answer by themselves.
const MAX_HANDLERS: usize = 256;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.ui.elicitation", run: |call| Box::pin(elicit(call)) },
    Method { name: "session.ui.handlePendingElicitation", run: |call| Box::pin(answer_form(call)) },
    Method { name: "session.ui.handlePendingUserInput", run: |call| Box::pin(answer_question(call)) },
    Method { name: "session.ui.handlePendingExitPlanMode", run: |call| Box::pin(review_plan(call)) },
    Method { name: "session.ui.handlePendingAutoModeSwitch", run: |call| Box::pin(answer_switch(call)) },
    // Nothing here asks these questions, so nothing can wait for their answers.
    Method {
        name: "session.ui.handlePendingSessionLimitsExhausted",
        run: |call| Box::pin(nothing_pending(call)),
    },
    Method {
        name: "session.ui.registerDirectAutoModeSwitchHandler",
        run: |call| Box::pin(register_direct(call)),
    },
    Method {
        name: "session.ui.unregisterDirectAutoModeSwitchHandler",
        run: |call| Box::pin(unregister_direct(call)),
    },
    Method { name: "session.ui.ephemeralQuery", run: |call| Box::pin(ask_aside(call)) },
];

async fn elicit(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        message: String,
        mode: Option<String>,
        requested_schema: Option<Value>,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    if !live.audience.members().iter().any(|member| member.elicitations) {
        return Err(Failure::new("no client of this session can show forms"));
    }
    let request_id = uuid::Uuid::new_v4().to_string();
    let Some(answered) = live.elicitations.expect(&request_id) else {
        return Err(Failure::new("too many forms wait for an answer already"));
    };
    let requested = ElicitationRequested {
        request_id: request_id.clone(),
        tool_call_id: None,
        elicitation_source: None,
        message: params.message,
        mode: params.mode.or_else(|| Some("form".to_owned())),
        requested_schema: params.requested_schema,
        url: None,
    };
    live.ask(move |task| task.record(requested)).await?;
    // A session that ends takes its forms along.
    let result = tokio::select! {
        result = answered => result.ok(),
        () = live.ended() => None,
    };
    let result = result.unwrap_or(ElicitationResult { action: ElicitationAction::Cancel, content: None });
    let completed =
        ElicitationCompleted { request_id, action: Some(result.action), content: result.content.clone() };
    // The answer counts even if the session has just ended.
    let _ = live.ask(move |task| task.record(completed)).await;
    Reply::of(json!(result))
}

async fn answer_form(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: String,
        result: ElicitationResult,
    }
    let Params { request_id, result } = call.params()?;
    if call.live()?.elicitations.answer(&request_id, result.clone()) {
        return Reply::did(true);
    }
    // A form that was not requested here may be one of an MCP server.
    Reply::did(answers::answer_form(&call, &request_id, result).await?)
}

async fn answer_question(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: String,
        response: Response,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Response {
        answer: String,
        #[serde(default)]
        was_freeform: bool,
    }
    let Params { request_id, response } = call.params()?;
    let answered = call
        .live()?
        .ask(move |task| {
            let awaited = task.session().awaits_answer(&request_id);
            if awaited {
                let Response { answer, was_freeform } = response;
                task.command(Command::AnswerQuestion { request_id, answer, was_freeform });
            }
            awaited
        })
        .await?;
    Reply::did(answered)
}

async fn review_plan(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: String,
        response: PlanDecision,
    }
    let Params { request_id, response } = call.params()?;
    let answered = call
        .live()?
        .ask(move |task| {
            let awaited = task.session().awaits_review(&request_id);
            if awaited {
                task.command(Command::ReviewPlan { request_id, decision: response });
            }
            awaited
        })
        .await?;
    Reply::did(answered)
}

async fn answer_switch(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: String,
        response: SwitchAnswer,
    }
    let Params { request_id, response } = call.params()?;
    let answered = call
        .live()?
        .ask(move |task| {
            let awaited = task.session().awaits_switch(&request_id);
            if awaited {
                task.command(Command::AnswerSwitch { request_id, answer: response });
            }
            awaited
        })
        .await?;
    Reply::did(answered)
}

async fn nothing_pending(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::did(false)
}

/// Registers a client that answers `auto_mode_switch.requested` itself; no other client is asked while it is
/// registered.
async fn register_direct(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let handle = uuid::Uuid::new_v4().to_string();
    {
        let mut direct = live.audience.direct_switches();
        if direct.len() >= MAX_HANDLERS {
            return Err(Failure::new(format!("{MAX_HANDLERS} handlers are registered already")));
        }
        direct.insert(handle.clone(), call.client.id);
    }
    live.ask(crate::task::SessionTask::refresh).await?;
    Reply::of(json!({ "handle": handle }))
}

async fn unregister_direct(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        handle: String,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let known = live.audience.direct_switches().remove(&params.handle).is_some();
    live.ask(crate::task::SessionTask::refresh).await?;
    Reply::of(json!({ "unregistered": known }))
}

/// Asks the session's model something that stays out of the conversation.
async fn ask_aside(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        question: String,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let request_id = uuid::Uuid::new_v4().to_string();
    let note = |phase: QueryPhase, answer: Option<String>, error: Option<String>| EphemeralQuery {
        request_id: request_id.clone(),
        phase,
        answer,
        error,
    };
    let started = note(QueryPhase::Started, None, None);
    let mut stream = live
        .ask(move |task| {
            task.record(started);
            let request = task.session().aside(params.question);
            task.engine.driver().ask_model(request)
        })
        .await?;
    let answer = async {
        loop {
            match stream.next().await {
                Some(Ok(ModelEvent::Finished(reply))) => break Ok(reply),
                Some(Ok(_)) => {}
                Some(Err(error)) => break Err(error.message),
                None => break Err("the answer broke off before its end".to_owned()),
            }
        }
    };
    let outcome = tokio::select! {
        answer = tokio::time::timeout(PATIENCE, answer) => {
            answer.unwrap_or_else(|_| Err("the model took too long to answer".to_owned()))
        }
        () = live.ended() => return Err(Failure::new("the session ended before the answer was there")),
    };
    let outcome = match outcome {
        Ok(reply) => {
            let answer = reply.turn.text.clone();
            live.ask(move |task| {
                let usage = task.session().aside_usage(&reply);
                task.record(usage);
            })
            .await?;
            Ok(answer)
        }
        Err(error) => Err(error),
    };
    let told = match &outcome {
        Ok(answer) => note(QueryPhase::Completed, Some(answer.clone()), None),
        Err(error) => note(QueryPhase::Failed, None, Some(error.clone())),
    };
    live.ask(move |task| task.record(told)).await?;
    Reply::of(json!({ "answer": outcome.map_err(Failure::new)? }))
}
