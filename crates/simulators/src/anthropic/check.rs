//! The check of a request, in the vendor's order: credentials, version, model, shape, rules.

use serde_json::{Value, json};

use super::error::{flawed, invalid, refuse};
use super::prompt::Reading;
use super::{Anthropic, Claude, marks, messages, parameters, search, thinking, tools};
use crate::cache::Caching;
use crate::history::AnswerHistory;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::usage::VendorPrice;
use crate::vendor::Accepted;

/// Bytes of the longest body.
const MAX_BODY: usize = 32 * 1024 * 1024;
/// Blocks before a mark within which an older mark is found.
const LOOK_BACK: usize = 20;
/// USD for a thousand searches.
const SEARCH_PRICE: f64 = 10.0;

pub(super) fn check(
    vendor: &Anthropic,
    request: &Request,
    history: &AnswerHistory,
) -> Result<Accepted, Refusal> {
    if request.method != "POST" || !request.path.ends_with("/messages") {
        return Err(refuse(404, "not_found_error", "Not found"));
    }
    let account = account(request)?;
    if request.header("anthropic-version").is_none() {
        return Err(invalid("anthropic-version: header is required"));
    }
    if request.size > MAX_BODY {
        return Err(refuse(413, "request_too_large", "Request exceeds the maximum size"));
    }
    let body = &request.body;
    let foreign = shape(vendor, request)?;
    let model = model(vendor, body)?;
    let mode = parameters::check(model, request)?;
    tools::check(request)?;
    messages::check(model, body)?;
    marks::check(body)?;
    let mut violations = cut_calls(body, history);
    violations.extend(search::check(body, history)?);
    let sealed = thinking::check(model, request, &account, mode, history)?;
    let reading = Reading { model, body, dropped: &sealed.dropped };
    let prompt = reading.prompt();
    let tokens = prompt.tokens();
    if tokens > model.window {
        return Err(invalid(format!("prompt is too long: {tokens} tokens > {} maximum", model.window)));
    }
    let context = json!({
        "mode": mode, "prefix": sealed.prefix, "tools": sealed.tools, "preserved": model.rules.preserved,
        "prose_is_thinking": model.rules.prose_is_thinking, "dropped": sealed.dropped,
        "named": body["model"], "pending": search::pending(body, history),
    });
    Ok(Accepted {
        model: model.id.clone(),
        account,
        stream: body["stream"] == true,
        asked: reading.asked(),
        prompt_text: reading.prompt_text(),
        thinks: mode.thinks && !(mode.budget && is_between_calls(request)),
        tools: tools::offered(body),
        prompt,
        caching: Caching::Marked { minimum: model.cache_minimum, look_back: LOOK_BACK },
        searches: search::is_offered(body),
        dropped: sealed.dropped_now,
        price: VendorPrice { search: SEARCH_PRICE, ..model.price },
        token_percent: model.token_percent,
        foreign,
        violations,
        context,
    })
}

/// Whether the answer follows results, and the client has not asked for thinking there. Models with a budget then think only in
/// front of the first call of a turn.
fn is_between_calls(request: &Request) -> bool {
    let betas = request.header("anthropic-beta").unwrap_or_default();
    let last = messages::list(&request.body["messages"]).last();
    let content = last.map_or(&[][..], |last| messages::list(&last["content"]));
    !betas.contains("interleaved-thinking-2025-05-14")
        && content.iter().any(|block| block["type"] == "tool_result")
}

/// A client drops calls that were cut: half an input means nothing, and the vendor may not parse it.
fn cut_calls(body: &Value, history: &AnswerHistory) -> Vec<String> {
    let blocks =
        messages::list(&body["messages"]).iter().flat_map(|message| messages::list(&message["content"]));
    let calls = blocks.filter(|block| block["type"] == "tool_use").filter_map(|call| call["id"].as_str());
    let cut = calls.filter(|id| history.recall(&format!("cut:{id}")).is_some());
    cut.map(|id| format!("the call {id} was cut inside its input: it must be dropped, not sent back"))
        .collect()
}

/// Exactly one credential.
fn account(request: &Request) -> Result<String, Refusal> {
    let unauthorized = |message: &str| refuse(401, "authentication_error", message);
    let key = request.header("x-api-key").filter(|key| !key.is_empty());
    let betas = request.header("anthropic-beta").unwrap_or_default();
    match (key, request.bearer()) {
        (None, None) => Err(unauthorized("x-api-key header is required")),
        (Some(_), Some(_)) => {
            Err(unauthorized("Only one of the x-api-key and authorization headers may be provided"))
        }
        (Some(key), None) => Ok(Request::account(key)),
        (None, Some(token)) if token.starts_with("sk-ant-oat") && !betas.contains("oauth-2025-04-20") => {
            Err(unauthorized("OAuth authentication is currently not supported."))
        }
        (None, Some(token)) => Ok(Request::account(token)),
    }
}

/// Unknown fields are refused, or reported if the simulator is lenient.
fn shape(vendor: &Anthropic, request: &Request) -> Result<Vec<String>, Refusal> {
    let ignored = vendor.shapes.ignored(request).map_err(|flaw| flawed(&flaw))?;
    Ok(ignored.iter().map(|flaw| flaw.dotted(false)).collect())
}

/// Ids are exact: no dots, and no dates that were not published.
pub(super) fn model<'a>(vendor: &'a Anthropic, body: &Value) -> Result<&'a Claude, Refusal> {
    let id = body["model"].as_str().unwrap_or_default();
    vendor.models.find(id).ok_or_else(|| refuse(404, "not_found_error", format!("model: {id}")))
}
