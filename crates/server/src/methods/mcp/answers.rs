//! Answers to requests of MCP servers: tokens, forms and sampling.

use hangar_mcp::{ElicitationAnswer, Sampled, Token};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Reply, host};
use crate::elicitations::ElicitationResult;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerParams {
    request_id: String,
    #[serde(default)]
    result: Value,
    response: Option<Value>,
}

pub(super) async fn oauth(call: Call) -> Result<Reply, Failure> {
    let AnswerParams { request_id, result, .. } = call.params()?;
    let token = match result["kind"].as_str() {
        Some("token") => {
            let token = result["accessToken"].as_str().filter(|token| !token.is_empty());
            Some(Token(
                token.ok_or_else(|| Failure::Params("`accessToken` is missing".to_owned()))?.to_owned(),
            ))
        }
        Some("cancelled") => None,
        _ => return Err(Failure::Params("`kind` is neither `token` nor `cancelled`".to_owned())),
    };
    let success = host(&call).await?.is_some_and(|host| host.answer_oauth(&request_id, token));
    Reply::of(json!({ "success": success }))
}

/// Headers are never asked for, so no answer is waited for.
pub(super) async fn headers(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::of(json!({ "success": false }))
}

/// Hands a form to the server that wants it. False when none does.
pub(in crate::methods) async fn answer_form(
    call: &Call,
    request_id: &str,
    result: ElicitationResult,
) -> Result<bool, Failure> {
    let content = result.content.filter(|content| !content.is_null());
    let answer = ElicitationAnswer { action: result.action, content };
    Ok(host(call).await?.is_some_and(|host| host.answer_elicitation(request_id, answer)))
}

pub(super) async fn sampling(call: Call) -> Result<Reply, Failure> {
    let AnswerParams { request_id, response, .. } = call.params()?;
    let success = host(&call).await?.is_some_and(|host| host.answer_sampling(&request_id, response));
    Reply::of(json!({ "success": success }))
}

/// Samples the model for a server whose request the client has approved.
pub(super) async fn sample(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: String,
        request: Value,
    }
    let Params { request_id, request } = call.params()?;
    let Some(host) = host(&call).await? else { return Err(Failure::new(super::NO_HOST)) };
    match host.sample(&request_id, request).await {
        Sampled::Answer(result) => Reply::of(json!({ "action": "success", "result": result })),
        Sampled::Failed(error) => Reply::of(json!({ "action": "failure", "error": error })),
        Sampled::Cancelled => Reply::of(json!({ "action": "cancelled" })),
    }
}

pub(super) async fn cancel_sampling(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        request_id: String,
    }
    let Params { request_id } = call.params()?;
    let cancelled = host(&call).await?.is_some_and(|host| host.cancel_sampling(&request_id));
    Reply::of(json!({ "cancelled": cancelled }))
}
