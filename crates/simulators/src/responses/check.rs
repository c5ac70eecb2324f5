//! The check of a request, in the vendor's order: credentials, shape, model, rules.

use serde_json::json;

use super::error::{flawed, invalid, refuse};
use super::prompt::Reading;
use super::{Responses, items, parameters, reasoning, tools};
use crate::cache::Caching;
use crate::history::AnswerHistory;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::shape::Flaw;
use crate::usage::VendorPrice;
use crate::vendor::Accepted;

pub(super) const TOO_LONG: &str =
    "Your input exceeds the context window of this model. Please adjust your input and try again.";
/// Granularity of cached prefixes, in tokens.
const CACHE_STEP: u64 = 128;
/// USD for a thousand searches.
const SEARCH_PRICE: f64 = 10.0;

pub(super) fn check(
    vendor: &Responses,
    request: &Request,
    history: &AnswerHistory,
) -> Result<Accepted, Refusal> {
    if request.method != "POST" || !request.path.ends_with("/responses") {
        let message = format!("Invalid URL ({} {})", request.method, request.path);
        return Err(refuse(404, message, None, None));
    }
    let account = account(request)?;
    let body = &request.body;
    let foreign = shape(vendor, request)?;
    let id = body["model"].as_str().unwrap_or_default();
    let Some(model) = vendor.models.find(id) else {
        let message = format!("The requested model '{id}' does not exist.");
        return Err(invalid(message, "model", "model_not_found"));
    };
    let thinks = parameters::check(model, request)?;
    tools::check(model, body)?;
    let violations = items::check(model, body, history)?;
    let dropped = reasoning::check(model, body, &account, history)?;
    let reading = Reading { model, body, dropped: &dropped };
    let prompt = reading.prompt();
    if prompt.tokens() > model.window - model.output {
        return Err(invalid(TOO_LONG, "input", "context_length_exceeded"));
    }
    let include = body["include"].as_array().into_iter().flatten();
    let context = json!({
        "encrypted": include.into_iter().any(|name| name == "reasoning.encrypted_content"),
        "summary": !body["reasoning"]["summary"].is_null(),
        "phase": model.rules.phase,
        "namespaces": tools::namespaces(body),
    });
    Ok(Accepted {
        model: model.id.clone(),
        account,
        stream: body["stream"] == true,
        asked: reading.asked(),
        prompt_text: reading.prompt_text(),
        thinks,
        tools: tools::offered(body),
        prompt,
        caching: Caching::Automatic {
            minimum: model.cache_minimum,
            step: CACHE_STEP,
            charges_writes: model.rules.charges_writes,
        },
        searches: tools::searches(body),
        dropped: Vec::new(),
        price: VendorPrice { search: SEARCH_PRICE, ..model.price },
        token_percent: model.token_percent,
        foreign,
        violations,
        context,
    })
}

fn account(request: &Request) -> Result<String, Refusal> {
    let Some(token) = request.bearer() else {
        return Err(refuse(
            401,
            "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth \
             (i.e. Authorization: Bearer YOUR_KEY).",
            None,
            None,
        ));
    };
    Ok(Request::account(token))
}

/// Unknown fields are refused, or reported if the simulator is lenient.
fn shape(vendor: &Responses, request: &Request) -> Result<Vec<String>, Refusal> {
    let ignored = vendor.shapes.ignored(request).map_err(|flaw| flawed(&flaw))?;
    Ok(ignored.iter().map(Flaw::bracketed).collect())
}
