//! Parameters that a model or an account may not use.

use serde_json::Value;

use super::Gpt;
use super::error::{invalid, listed, refuse};
use crate::refusal::Refusal;
use crate::request::Request;

const LEAST_OUTPUT: u64 = 16;
const MAX_CACHE_KEY: usize = 64;
const MAX_BREAKPOINTS: usize = 4;
/// Part of a key that belongs to an unverified organisation.
const UNVERIFIED: &str = "unverified";

/// Whether the model reasons in this request.
pub(super) fn check(model: &Gpt, request: &Request) -> Result<bool, Refusal> {
    let body = &request.body;
    let thinks = effort(model, body)?;
    let verified = !request.bearer().unwrap_or_default().contains(UNVERIFIED);
    if !body["reasoning"]["summary"].is_null() && !verified {
        return Err(invalid(
            "Your organization must be verified to generate reasoning summaries. Please go to: \
             https://platform.openai.com/settings/organization/general and click on Verify Organization.",
            "reasoning.summary",
            "unsupported_value",
        ));
    }
    if thinks
        && let Some(name) =
            ["temperature", "top_p", "top_logprobs"].iter().find(|name| !body[**name].is_null())
    {
        return Err(unsupported(name));
    }
    output(model, body)?;
    cache(body)?;
    stored(body)?;
    include(model, body)?;
    Ok(thinks)
}

fn unsupported(name: &str) -> Refusal {
    let message = format!("Unsupported parameter: '{name}' is not supported with this model.");
    invalid(message, name, "unsupported_parameter")
}

fn effort(model: &Gpt, body: &Value) -> Result<bool, Refusal> {
    let effort = body["reasoning"]["effort"].as_str();
    if model.efforts.is_empty() {
        return match (effort, body["reasoning"]["summary"].as_str()) {
            (None, None) => Ok(false),
            (Some(_), _) => Err(unsupported("reasoning.effort")),
            (None, Some(_)) => Err(unsupported("reasoning.summary")),
        };
    }
    let Some(effort) = effort.or(model.default_effort.as_deref()) else { return Ok(true) };
    if model.efforts.iter().any(|known| known == effort) {
        return Ok(effort != "none");
    }
    let message = format!(
        "Unsupported value: '{effort}' is not supported with the '{}' model. Supported values are: {}.",
        model.id,
        listed(&model.efforts)
    );
    Err(invalid(message, "reasoning.effort", "unsupported_value"))
}

fn output(model: &Gpt, body: &Value) -> Result<(), Refusal> {
    let Some(limit) = body["max_output_tokens"].as_u64() else { return Ok(()) };
    if limit < LEAST_OUTPUT {
        let message = format!(
            "Invalid 'max_output_tokens': integer below minimum value. Expected a value >= {LEAST_OUTPUT}, but got {limit} \
             instead."
        );
        return Err(invalid(message, "max_output_tokens", "integer_below_min_value"));
    }
    if limit > model.output {
        let message = format!(
            "max_output_tokens is too large: {limit}. This model supports at most {} completion tokens, whereas you provided \
             {limit}.",
            model.output
        );
        return Err(invalid(message, "max_output_tokens", "invalid_value"));
    }
    Ok(())
}

fn cache(body: &Value) -> Result<(), Refusal> {
    let key = body["prompt_cache_key"].as_str().unwrap_or_default();
    if key.chars().count() > MAX_CACHE_KEY {
        return Err(too_long("prompt_cache_key", MAX_CACHE_KEY, key.chars().count()));
    }
    let breakpoints = breakpoints(&body["input"]);
    if breakpoints > MAX_BREAKPOINTS {
        let message = format!(
            "Too many cache breakpoints: at most {MAX_BREAKPOINTS} are allowed, but got {breakpoints}."
        );
        return Err(invalid(message, "input", "invalid_value"));
    }
    Ok(())
}

fn breakpoints(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(breakpoints).sum(),
        Value::Object(fields) => {
            let own = usize::from(fields.contains_key("prompt_cache_breakpoint"));
            own + ["content", "output"]
                .iter()
                .filter_map(|name| fields.get(*name))
                .map(breakpoints)
                .sum::<usize>()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

pub(super) fn too_long(param: &str, longest: usize, found: usize) -> Refusal {
    let message = format!(
        "Invalid '{param}': string too long. Expected a string with maximum length {longest}, but got a string with length \
         {found} instead."
    );
    invalid(message, param, "string_above_max_length")
}

/// Nothing is stored here, so nothing can be referred to.
fn stored(body: &Value) -> Result<(), Refusal> {
    if let Some(id) = body["previous_response_id"].as_str() {
        let message = format!("Previous response with id '{id}' not found.");
        return Err(invalid(message, "previous_response_id", "previous_response_not_found"));
    }
    Ok(())
}

fn include(model: &Gpt, body: &Value) -> Result<(), Refusal> {
    let known = [
        "reasoning.encrypted_content",
        "message.output_text.logprobs",
        "message.input_image.image_url",
        "file_search_call.results",
        "web_search_call.action.sources",
        "code_interpreter_call.outputs",
        "computer_call_output.output.image_url",
    ];
    for name in body["include"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !known.contains(&name) {
            let known: Vec<_> = known.iter().map(|word| (*word).to_owned()).collect();
            let message = format!("Invalid value: '{name}'. Supported values are: {}.", listed(&known));
            return Err(invalid(message, "include", "invalid_value"));
        }
        if name == "reasoning.encrypted_content" && model.efforts.is_empty() {
            return Err(refuse(
                400,
                "Encrypted content is not supported with this model.",
                Some("include"),
                None,
            ));
        }
    }
    Ok(())
}
