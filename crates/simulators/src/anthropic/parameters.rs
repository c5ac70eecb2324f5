//! Parameters that a model does not accept: kinds of thinking, efforts, sampling, forced tools.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::error::invalid;
use super::{Claude, DefaultThinking};
use crate::refusal::Refusal;
use crate::request::Request;

/// The smallest thinking budget.
const LEAST_BUDGET: u64 = 1024;
const BINDING: &str = "thinking-binding-controls-2026-08-01";

/// How the model thinks in this request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RequestThinking {
    pub(super) thinks: bool,
    /// Whether it has a thinking budget, which requires each turn with calls to begin with thinking.
    pub(super) budget: bool,
    /// Whether the text of thinking is left out.
    pub(super) omitted: bool,
    /// Whether thinking that no longer fits is dropped instead of refused.
    pub(super) drops: bool,
}

pub(super) fn check(model: &Claude, request: &Request) -> Result<RequestThinking, Refusal> {
    let body = &request.body;
    let max_tokens = body["max_tokens"].as_u64().unwrap_or(0);
    if max_tokens < 1 {
        return Err(invalid("max_tokens: Input should be greater than or equal to 1"));
    }
    if max_tokens > model.output {
        return Err(invalid(format!(
            "max_tokens: {max_tokens} > {}, which is the maximum allowed number of output tokens for {}",
            model.output, model.id
        )));
    }
    effort(model, body)?;
    let mode = thinking(model, request, max_tokens)?;
    sampling(model, body, mode)?;
    tool_choice(model, body, mode)?;
    format(body)?;
    Ok(mode)
}

fn effort(model: &Claude, body: &Value) -> Result<(), Refusal> {
    let Some(effort) = body["output_config"]["effort"].as_str() else { return Ok(()) };
    if model.efforts.is_empty() {
        return Err(invalid("This model does not support the effort parameter."));
    }
    if model.efforts.iter().any(|known| known == effort) {
        return Ok(());
    }
    let all = ["low", "medium", "high", "xhigh", "max"];
    if !all.contains(&effort) {
        let listed: Vec<_> = all.iter().map(|word| format!("'{word}'")).collect();
        let (last, rest) = (&listed[listed.len() - 1], listed[..listed.len() - 1].join(", "));
        return Err(invalid(format!("output_config.effort: Input should be {rest} or {last}")));
    }
    let levels = model.efforts.join(", ");
    Err(invalid(format!("This model does not support effort level '{effort}'. Supported levels: {levels}.")))
}

fn thinking(model: &Claude, request: &Request, max_tokens: u64) -> Result<RequestThinking, Refusal> {
    let thinking = &request.body["thinking"];
    let kind = thinking["type"].as_str();
    let rules = &model.rules;
    if let Some(kind) = kind {
        refused(model, kind, request.body["output_config"]["effort"].as_str())?;
    }
    if !thinking["block_binding"].is_null() {
        let betas = request.header("anthropic-beta").unwrap_or_default();
        if !betas.split(',').any(|beta| beta.trim() == BINDING) {
            let kind = kind.unwrap_or_default();
            return Err(invalid(format!("thinking.{kind}.block_binding: Extra inputs are not permitted")));
        }
    }
    if let Some(budget) = thinking["budget_tokens"].as_u64() {
        if budget < LEAST_BUDGET {
            let least = "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024";
            return Err(invalid(least));
        }
        if budget >= max_tokens {
            return Err(invalid("`max_tokens` must be greater than `thinking.budget_tokens`."));
        }
    }
    let thinks = match kind {
        Some(kind) => kind != "disabled",
        None => rules.thinking != DefaultThinking::Off,
    };
    let omitted = match thinking["display"].as_str() {
        Some(display) => display == "omitted",
        None => rules.omits_thinking,
    };
    let drops = thinking["block_binding"]["prefix_mismatch_behavior"] == "drop_block";
    Ok(RequestThinking { thinks, budget: kind == Some("enabled"), omitted, drops })
}

/// Kinds of thinking that the model does not accept.
fn refused(model: &Claude, kind: &str, effort: Option<&str>) -> Result<(), Refusal> {
    let rules = &model.rules;
    if rules.refused_thinking.iter().any(|refused| refused == kind) {
        return Err(invalid(match kind {
            "adaptive" => "adaptive thinking is not supported on this model".to_owned(),
            "enabled" => {
                "\"thinking.type.enabled\" is not supported for this model. Use \"thinking.type.adaptive\" \
                          and \"output_config.effort\" to control thinking behavior."
                    .to_owned()
            }
            kind => format!("\"thinking.type.{kind}\" is not supported for this model."),
        }));
    }
    let effort = effort.or(model.default_effort.as_deref()).unwrap_or_default();
    if kind == "disabled" && rules.disabled_refused_at.iter().any(|refused| refused == effort) {
        return Err(invalid(format!(
            "\"thinking.type.disabled\" is not supported for this model at effort '{effort}'."
        )));
    }
    let between = &rules.between_tools_efforts;
    if kind == "between_tools" && !between.iter().any(|accepted| accepted == effort) {
        return Err(invalid(format!(
            "\"thinking.type.between_tools\" requires an effort of {}.",
            between.join(", ")
        )));
    }
    Ok(())
}

fn sampling(model: &Claude, body: &Value, mode: RequestThinking) -> Result<(), Refusal> {
    if !model.rules.sampling {
        if let Some(name) = ["temperature", "top_p", "top_k"].iter().find(|name| body.get(**name).is_some()) {
            return Err(invalid(format!("`{name}` is deprecated for this model.")));
        }
        return Ok(());
    }
    if body.get("temperature").is_some() && body.get("top_p").is_some() {
        return Err(invalid(
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
        ));
    }
    if mode.thinks && body["temperature"].as_f64().is_some_and(|temperature| temperature != 1.0) {
        return Err(invalid(
            "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
        ));
    }
    if let Some(temperature) = body["temperature"].as_f64().filter(|t| !(0.0..=1.0).contains(t)) {
        let bound = if temperature > 1.0 { "less than or equal to 1" } else { "greater than or equal to 0" };
        return Err(invalid(format!("temperature: Input should be {bound}")));
    }
    Ok(())
}

fn tool_choice(model: &Claude, body: &Value, mode: RequestThinking) -> Result<(), Refusal> {
    let choice = body["tool_choice"]["type"].as_str().unwrap_or_default();
    let forced = ["any", "tool"].contains(&choice);
    if forced && !model.rules.forced_tool {
        return Err(invalid(format!("tool_choice.type '{choice}' is not supported for this model.")));
    }
    if forced && mode.thinks {
        return Err(invalid("Thinking may not be enabled when tool_choice forces tool use."));
    }
    if !choice.is_empty() && body["tools"].as_array().is_none_or(Vec::is_empty) {
        return Err(invalid("tool_choice: `tool_choice` may only be specified while providing `tools`."));
    }
    Ok(())
}

/// Citations and a schema for the answer exclude each other.
fn format(body: &Value) -> Result<(), Refusal> {
    if body["output_config"]["format"].is_null() {
        return Ok(());
    }
    let cited = body["messages"].as_array().into_iter().flatten().any(|message| {
        let blocks = message["content"].as_array();
        blocks.into_iter().flatten().any(|block| block["citations"]["enabled"] == true)
    });
    if cited {
        return Err(invalid("output_config.format: citations cannot be enabled when a format is specified"));
    }
    Ok(())
}
