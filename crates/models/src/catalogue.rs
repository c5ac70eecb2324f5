//! The list of models that a provider offers, and a copy on disk.

mod cache;
#[cfg(test)]
mod tests;

use hangar_agent::model::{ModelError, Price, PriceStep, Rates};
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use cache::Cache;

use crate::config::{ProviderConfig, ProviderKind};
use crate::error;
use crate::facts;
use crate::local;
use crate::provider::{Provider, models_url};

/// Pages of a list that are followed.
const PAGES: usize = 20;

/// A model as its provider describes it. `None` is "it did not say".
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelInfo {
    pub id: String,
    pub name: Option<String>,
    /// The provider's name in the configuration.
    pub provider: String,
    /// Vendor of the model, where the provider offers models of others.
    pub vendor: Option<String>,
    /// Whether the account is entitled to it, where the provider says so.
    pub entitled: Option<bool>,
    pub max_prompt_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    /// Prompt and answer together.
    pub max_context_tokens: Option<u64>,
    pub vision: Option<bool>,
    pub tools: Option<bool>,
    /// The reasoning efforts that it accepts.
    pub efforts: Option<Vec<String>>,
    /// `/chat/completions`, `/responses`, `/v1/messages`.
    pub endpoints: Option<Vec<String>>,
    /// Cost of a request, relative to others of GitHub's offer.
    pub multiplier: Option<String>,
    pub price: Option<Price>,
    /// Whether the model decides how much to think, for Claude models.
    pub adaptive_thinking: Option<bool>,
    /// Highest thinking budget that a request may ask for, in tokens.
    pub max_thinking_budget: Option<u64>,
    /// Images of one request.
    pub max_images: Option<u64>,
    /// Bytes of an image.
    pub max_image_bytes: Option<u64>,
}

/// Asks the provider for its models.
pub async fn list_models(config: &ProviderConfig) -> Result<Vec<ModelInfo>, ModelError> {
    fetch(&Provider::new(config.clone())).await
}

pub(crate) async fn fetch(provider: &Provider) -> Result<Vec<ModelInfo>, ModelError> {
    let config = provider.config();
    let mut models = Vec::new();
    let mut url = models_url(config);
    for _ in 0..PAGES {
        let page = ListPage::parse(&provider.get(url.clone()).await?)?;
        models.extend(page.models.iter().filter_map(|model| parse_entry(config, model)));
        let Some(after) = page.next else { break };
        url = models_url(config);
        url.query_pairs_mut().append_pair("after_id", &after);
    }
    if let Some(server) = facts::host(config).local {
        local::add_windows(provider, server, &mut models).await;
    }
    Ok(models)
}

/// A page of any of the lists: all put their entries in `data` or in `models`, or are the list themselves.
struct ListPage {
    models: Vec<Value>,
    next: Option<String>,
}

impl ListPage {
    fn parse(body: &str) -> Result<Self, ModelError> {
        let mut body: Value = serde_json::from_str(body).map_err(|error| {
            error::protocol(format!("the model provider's list of models is not JSON: {error}"))
        })?;
        let more = body.get("has_more").and_then(Value::as_bool).unwrap_or(false);
        let next = body.get("last_id").and_then(Value::as_str).filter(|_| more).map(str::to_owned);
        let list = ["data", "models"].into_iter().find(|name| body.get(name).is_some_and(Value::is_array));
        let list = match list {
            Some(name) => body[name].take(),
            None => body,
        };
        match list {
            Value::Array(models) => Ok(Self { models, next }),
            _ => Err(error::protocol("the model provider's list of models is not a list")),
        }
    }
}

pub(crate) fn parse_entry(config: &ProviderConfig, model: &Value) -> Option<ModelInfo> {
    let text = |pointer: &str| model.pointer(pointer).and_then(Value::as_str).map(str::to_owned);
    let mut info = ModelInfo {
        id: text("/id").or_else(|| text("/name"))?,
        name: text("/display_name").or_else(|| text("/name")),
        provider: config.name.clone(),
        vendor: None,
        entitled: None,
        max_prompt_tokens: None,
        max_output_tokens: None,
        max_context_tokens: None,
        vision: None,
        tools: None,
        efforts: None,
        endpoints: None,
        multiplier: None,
        price: None,
        adaptive_thinking: None,
        max_thinking_budget: None,
        max_images: None,
        max_image_bytes: None,
    };
    match config.kind {
        ProviderKind::Copilot => read_copilot(model, &mut info).then_some(info),
        ProviderKind::OpenAi { .. } | ProviderKind::Azure { .. } | ProviderKind::Anthropic => {
            read_other(model, &mut info);
            if config.kind == ProviderKind::Anthropic {
                // Its longest input is the window, which the answer is a part of.
                info.max_context_tokens = info.max_context_tokens.or(info.max_prompt_tokens.take());
            }
            Some(info)
        }
    }
}

/// False for entries that are not for chat, or that the account may not use.
fn read_copilot(model: &Value, info: &mut ModelInfo) -> bool {
    let number = |pointer: &str| model.pointer(pointer).and_then(Value::as_u64);
    let flag = |pointer: &str| model.pointer(pointer).and_then(Value::as_bool);
    let text = |pointer: &str| model.pointer(pointer).and_then(Value::as_str);
    info.max_prompt_tokens = number("/capabilities/limits/max_prompt_tokens");
    info.max_output_tokens = number("/capabilities/limits/max_output_tokens");
    info.max_context_tokens = number("/capabilities/limits/max_context_window_tokens");
    info.vision = flag("/capabilities/supports/vision");
    info.tools = flag("/capabilities/supports/tool_calls");
    info.efforts = strings(model.pointer("/capabilities/supports/reasoning_effort"));
    info.endpoints = strings(model.get("supported_endpoints"));
    info.adaptive_thinking = flag("/capabilities/supports/adaptive_thinking");
    info.max_thinking_budget = number("/capabilities/supports/max_thinking_budget");
    info.max_images = number("/capabilities/limits/vision/max_prompt_images");
    info.max_image_bytes = number("/capabilities/limits/vision/max_prompt_image_size");
    info.price = model.pointer("/billing/token_prices").and_then(copilot_price);
    info.multiplier =
        model.pointer("/billing/multiplier").filter(|value| value.is_number()).map(Value::to_string);
    info.vendor = text("/vendor").map(str::to_owned);
    // GitHub's picker shows the models that the account may use. A list without that field has a policy or a preview
    // flag for such models.
    let in_picker = flag("/model_picker_enabled");
    let in_policy = text("/policy/state") == Some("enabled") || flag("/preview") == Some(true);
    info.entitled = Some(in_picker.unwrap_or(in_policy));
    text("/capabilities/type").is_none_or(|kind| kind == "chat")
        && text("/policy/state").is_none_or(|state| state == "enabled")
}

/// GitHub's prices are in credits of a cent for a batch of tokens.
fn copilot_price(prices: &Value) -> Option<Price> {
    let dollars = 0.01 * 1_000_000.0 / prices.get("batch_size")?.as_f64().filter(|size| *size > 0.0)?;
    let card = |card: &Value| {
        let price = |name: &str| card.get(name).and_then(Value::as_f64).map(|credits| credits * dollars);
        Some(Rates {
            input: price("input_price")?,
            output: price("output_price")?,
            cache_read: price("cache_price"),
            cache_write: price("cache_write_price"),
        })
    };
    let usual = prices.get("default")?;
    let above = usual.get("context_max").and_then(Value::as_u64);
    let long = prices.get("long_context").and_then(card);
    let step = above.zip(long).map(|(above, rates)| PriceStep { above, rates });
    Some(Price { rates: card(usual)?, steps: step.into_iter().collect(), searches: None })
}

/// OpenRouter's prices are decimal text, in dollars for a token.
fn router_price(pricing: &Value) -> Option<Price> {
    let price = |name: &str| {
        let value = pricing.get(name)?;
        let dollars = value.as_f64().or_else(|| value.as_str()?.parse().ok())?;
        // A negative price means that it depends on the model that answers.
        (dollars >= 0.0).then_some(dollars * 1_000_000.0)
    };
    Some(Price::flat(Rates {
        input: price("prompt")?,
        output: price("completion")?,
        cache_read: price("input_cache_read"),
        cache_write: price("input_cache_write"),
    }))
}

/// Fields of OpenAI, Anthropic, vLLM, llama.cpp and the routers in front of them, each with names of its own.
fn read_other(model: &Value, info: &mut ModelInfo) {
    let number = |pointers: &[&str]| {
        pointers.iter().find_map(|pointer| model.pointer(pointer).and_then(Value::as_u64))
    };
    info.max_prompt_tokens = number(&["/max_input_tokens", "/max_prompt_tokens"]);
    info.max_output_tokens = number(&[
        "/max_output_tokens",
        "/top_provider/max_completion_tokens",
        "/max_completion_tokens",
        "/max_tokens",
    ]);
    info.max_context_tokens = number(&[
        "/loaded_context_length",
        "/context_length",
        "/context_window",
        "/max_model_len",
        "/max_context_length",
        "/meta/n_ctx",
    ]);
    let inputs = strings(model.pointer("/architecture/input_modalities"));
    info.vision = model
        .pointer("/capabilities/image_input/supported")
        .or_else(|| model.pointer("/capabilities/vision"))
        .and_then(Value::as_bool)
        .or_else(|| inputs.map(|inputs| inputs.iter().any(|input| input == "image")));
    info.efforts =
        anthropic_efforts(model).or_else(|| strings(model.pointer("/reasoning/supported_efforts")));
    info.adaptive_thinking =
        model.pointer("/capabilities/thinking/types/adaptive/supported").and_then(Value::as_bool);
    info.price = model.get("pricing").and_then(router_price);
    let parameters = strings(model.get("supported_parameters"));
    info.tools = parameters.map(|parameters| parameters.iter().any(|parameter| parameter == "tools"));
}

/// Anthropic lists for each effort whether it is supported.
fn anthropic_efforts(model: &Value) -> Option<Vec<String>> {
    let levels = model.pointer("/capabilities/effort")?.as_object()?;
    let supported = |level: &&String| levels[*level].get("supported").and_then(Value::as_bool) == Some(true);
    Some(levels.keys().filter(supported).cloned().collect())
}

fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    let list = value?.as_array()?;
    Some(list.iter().filter_map(Value::as_str).map(str::to_owned).collect())
}
