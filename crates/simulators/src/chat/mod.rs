//! Hosts of chat completions. A file of `profiles/` defines what each of them accepts, refuses and answers; the code
//! applies it. A [`Gateway`] also forwards requests to the simulators of other wires.

mod answer;
mod billing;
mod call;
mod check;
mod condition;
mod documents;
mod forms;
mod gateway;
mod model;
mod prompt;
mod rulebook;
mod rules;
mod template;
#[cfg(test)]
mod tests;
mod thought;
mod turn;
mod wording;

use std::collections::BTreeMap;

use hangar_models::scripted::markers::{Asked, ToolOffer};
use serde_json::{Value, json};

use crate::{
    Accepted, AnswerHistory, FactsError, InputKind, PlannedAnswer, Profile, Refusal, Request, Vendor,
    VendorFailure, VendorResponse,
};
use answer::HostAnswer;
use check::Passed;
pub use gateway::Gateway;
use rulebook::Rulebook;
use template::Vars;
use turn::Given;

/// The account of requests to servers that require no key.
const NOBODY: &str = "local";

/// A host that has only chat completions.
macro_rules! chat {
    ($name:literal, $base:literal, $models:expr) => {
        Profile {
            name: $name,
            base_path: $base,
            models: $models,
            vendor: || Chat::named($name).map(|chat| Box::new(chat) as Box<dyn Vendor>),
        }
    };
}

/// A host that has other wires too.
macro_rules! gateway {
    ($name:literal, $gateway:path, $base:literal, $models:expr) => {
        Profile {
            name: $name,
            base_path: $base,
            models: $models,
            vendor: || $gateway().map(|gateway| Box::new(gateway) as Box<dyn Vendor>),
        }
    };
}

/// All hosts of chat completions, each with the path of its base URL, a model to begin with and one to switch to.
pub const PROFILES: &[Profile] = &[
    gateway!("openai", Gateway::openai, "/v1", ["gpt-4.1", "gpt-5.2"]),
    gateway!("azure", Gateway::azure, "/openai/v1", ["gpt-4.1", "gpt-5.2"]),
    chat!("gemini", "/v1beta/openai", ["gemini-3.8-flash", "gemini-3.1-pro-preview"]),
    gateway!("xai", Gateway::xai, "/v1", ["grok-4.6", "grok-4.3"]),
    chat!("mistral", "/v1", ["mistral-medium-3-5", "devstral-2512"]),
    chat!("groq", "/openai/v1", ["openai/gpt-oss-120b", "llama-3.3-70b-versatile"]),
    chat!("deepseek", "", ["deepseek-v4-pro", "deepseek-flash"]),
    chat!("kimi", "/v1", ["kimi-k3", "kimi-k3.1-pro"]),
    chat!("qwen", "/compatible-mode/v1", ["qwen3.8-max", "qwen3.8-plus"]),
    chat!("glm", "/api/paas/v4", ["glm-5.3", "glm-4.6"]),
    gateway!(
        "openrouter",
        Gateway::openrouter,
        "/api/v1",
        ["anthropic/claude-sonnet-4.6", "google/gemini-3.8-flash"]
    ),
    gateway!("litellm", Gateway::litellm, "", ["gpt-4.1", "claude-sonnet-4-6"]),
    gateway!("copilot", Gateway::copilot, "", ["gpt-4.1", "gemini-3.1-pro-preview"]),
    chat!("ollama", "/v1", ["qwen3-coder:30b", "gpt-oss:20b"]),
    chat!("llama-cpp", "/v1", ["qwen3-coder-30b", "qwen3-coder-30b"]),
    chat!("vllm", "/v1", ["Qwen/Qwen3-Coder-30B-A3B-Instruct", "Qwen/Qwen3-Coder-30B-A3B-Instruct"]),
    chat!("lm-studio", "/v1", ["qwen/qwen3-coder-30b", "openai/gpt-oss-20b"]),
];

/// One host of chat completions.
pub struct Chat {
    book: Rulebook,
}

impl Chat {
    /// The host whose file has this name.
    pub fn named(name: &str) -> Result<Self, FactsError> {
        Ok(Self { book: Rulebook::named(name)? })
    }

    /// The model that the path names, where a host has a path per model.
    fn served(&self, request: &Request) -> Result<Option<String>, Refusal> {
        match self.book.path.captures(&request.path) {
            Some(model) if request.method == "POST" => Ok(model),
            _ => Err(self.no_such_path(request)),
        }
    }

    fn no_such_path(&self, request: &Request) -> Refusal {
        let vars = Vars::default().with("path", request.path.clone()).with("method", request.method.clone());
        self.book.unknown_path.refusal(&self.book, vars)
    }

    /// The account of a request. A missing credential or header is refused.
    fn account(&self, request: &Request) -> Result<String, Refusal> {
        let account = match &self.book.credential {
            None => NOBODY.to_owned(),
            Some(rule) => {
                let mut shown = rule.headers.iter().filter_map(|name| match name.as_str() {
                    "authorization" => request.bearer(),
                    name => request.header(name),
                });
                let credential = shown.find(|credential| !credential.is_empty());
                let missing = || rule.missing.refusal(&self.book, Vars::default());
                Request::account(credential.ok_or_else(missing)?)
            }
        };
        for rule in &self.book.header {
            let due = condition::all(&rule.when, &request.body).is_some();
            if due && request.header(&rule.name).is_none_or(str::is_empty) {
                return Err(rule.missing.refusal(&self.book, Vars::default()));
            }
        }
        Ok(account)
    }
}

impl Vendor for Chat {
    fn aside(&self, request: &Request) -> Option<VendorResponse> {
        documents::document(&self.book, request)
    }

    fn check(&self, request: &Request, history: &AnswerHistory) -> Result<Accepted, Refusal> {
        let named = self.served(request)?;
        let account = self.account(request)?;
        let mut body = request.body.clone();
        if let (Some(model), Value::Object(fields)) = (named, &mut body) {
            fields.insert("model".to_owned(), Value::String(model));
        }
        let Passed { model, prompt, reasons, foreign, violations } =
            check::check(&self.book, &body, history, request.strictness)?;
        let caching = model.rules.caching.unwrap_or(self.book.caching);
        Ok(Accepted {
            model: model.id.clone(),
            account,
            stream: body["stream"] == true,
            asked: asked(&body),
            prompt_text: prompt_text(&body),
            thinks: reasons,
            tools: tools(&body),
            prompt,
            caching: caching.of_model(model.cache_minimum),
            searches: false,
            dropped: Vec::new(),
            price: model.price,
            token_percent: model.token_percent,
            foreign,
            violations,
            context: json!({"usage": body["stream_options"]["include_usage"] == true}),
        })
    }

    fn fail(&self, accepted: &Accepted, failure: &VendorFailure) -> Refusal {
        wording::failure(&self.book, failure, &accepted.model)
    }

    fn encode(
        &self,
        accepted: &Accepted,
        reply: &PlannedAnswer,
        history: &mut AnswerHistory,
    ) -> VendorResponse {
        let spelling = HostAnswer { book: &self.book, accepted, reply };
        Given { model: accepted.model.clone(), message: spelling.message() }.remember(history);
        spelling.answer()
    }
}

fn asked(body: &Value) -> Asked {
    let mut asked = Asked::new(if tools(body).is_empty() { ToolOffer::TextOnly } else { ToolOffer::Tools });
    for message in body["messages"].as_array().into_iter().flatten() {
        match message["role"].as_str() {
            Some("user") => asked.user(text(&message["content"])),
            Some("assistant") => asked.assistant(),
            Some("tool") => asked.result(text(&message["content"])),
            _ => {}
        }
    }
    asked
}

fn prompt_text(body: &Value) -> String {
    let messages = body["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let newest = messages.iter().rfind(|message| message["role"] == "user");
    newest.map(|message| text(&message["content"])).unwrap_or_default()
}

/// The tools that may be called.
fn tools(body: &Value) -> BTreeMap<String, InputKind> {
    let tools = body["tools"].as_array().filter(|_| body["tool_choice"] != "none");
    let named = tools.into_iter().flatten().filter_map(|tool| {
        let name = |field: &str| tool[field]["name"].as_str().map(str::to_owned);
        let function = name("function").map(|name| (name, InputKind::Function));
        function.or_else(|| Some((name("custom")?, InputKind::Custom)))
    });
    named.collect()
}

/// A text, or the text parts of a list.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    }
}
