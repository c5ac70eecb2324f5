//! `hangar doctor --probe`: one tiny question with a tool to each configured provider, and what works.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use futures_util::StreamExt;
use hangar_agent::model::{
    Initiator, Message, ModelError, ModelEvent, ModelRequest, Part, Reply, ToolChoice,
};
use hangar_agent::tool::{ToolSchema, ToolSpec};
use hangar_models::Ways;
use hangar_models::catalogue;
use hangar_models::config::{self, ProviderConfig};
use hangar_models::facts::{self, ResolvedModel};
use hangar_models::tokens::Counter;
use serde_json::json;

use super::doctor::{Finding, Health, PROVIDER_PATIENCE};
use crate::output::remark;
use crate::providers;
use crate::settings::Settings;

/// Time limit of a provider's answer.
const PATIENCE: Duration = Duration::from_secs(90);
/// Tokens of the longest answer. A model that reasons needs some for that.
const ANSWER: u64 = 1024;
const TOOL: &str = "report_word";
const QUESTION: &str = "This is a test of the connection. Say `ready`, then call the tool `report_word` once with the word `blue`.";

/// Asks every configured provider, one after the other. The maximum cost of each question is printed before it.
pub(super) fn run(settings: &Settings) -> Result<Vec<Finding>> {
    let Ok(configured) = providers::configured(settings) else { return Ok(Vec::new()) };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let mut findings = Vec::new();
    for provider in &configured {
        let subject = format!("probe {}", provider.name);
        let chosen = match configured_model(settings, &configured, provider)? {
            Some(model) => Some(model),
            None => runtime.block_on(cheap_model(provider)),
        };
        findings.push(match chosen {
            Some(model) => runtime.block_on(ask(provider, &model, subject)),
            None => {
                let name = &provider.name;
                let says = format!("not asked, for want of a model: set `model` in [providers.{name}]");
                Finding::new(Health::Bad, subject, says)
            }
        });
    }
    Ok(findings)
}

/// The model to ask: the provider's own one, or the one that is used without a flag if it is this provider's.
fn configured_model(
    settings: &Settings,
    all: &[ProviderConfig],
    provider: &ProviderConfig,
) -> Result<Option<String>> {
    if let Some(model) = &provider.model {
        return Ok(Some(provider.bare(model).to_owned()));
    }
    let usual = providers::preferred(settings, None)?;
    let found = usual.as_deref().and_then(|model| config::find(all, model));
    Ok(found.filter(|(owner, _)| owner.name == provider.name).map(|(_, name)| name.to_owned()))
}

/// A cheap model of the provider's list, which it is asked for now, else of the tables.
async fn cheap_model(provider: &ProviderConfig) -> Option<String> {
    let mut provider = provider.clone();
    let listed = tokio::time::timeout(PROVIDER_PATIENCE, catalogue::list_models(&provider)).await;
    if let Ok(Ok(listed)) = listed {
        provider.learnt.listed = Some(listed.into());
    }
    facts::cheapest_model(&provider)
}

async fn ask(provider: &ProviderConfig, model: &str, subject: String) -> Finding {
    let probe = Probe::new(provider, model);
    remark(&probe.told());
    let (works, says) = probe.ask().await;
    Finding::new(if works { Health::Good } else { Health::Bad }, subject, says)
}

/// One tiny question to a model.
pub(crate) struct Probe {
    model: String,
    provider: String,
    config: ProviderConfig,
    resolved: ResolvedModel,
    request: ModelRequest,
}

impl Probe {
    pub(crate) fn new(provider: &ProviderConfig, model: &str) -> Self {
        let mut config = provider.clone();
        config.model = Some(model.to_owned());
        config.wire_model.clone_from(&provider.wire_model.clone().filter(|_| provider.model.is_some()));
        config.max_output_tokens = Some(ANSWER);
        let resolved = facts::resolve(&config, model);
        let request = request(model, &resolved);
        Self { model: model.to_owned(), provider: provider.name.clone(), config, resolved, request }
    }

    /// Says what is asked, and its maximum cost.
    pub(crate) fn told(&self) -> String {
        let tokens = Counter::new(&self.model).request(&self.request);
        let bound = self.resolved.facts.price.as_ref().map(|price| price.at_most(tokens, ANSWER));
        let bound = bound
            .map_or_else(|| "an unknown price".to_owned(), |dollars| format!("{} at most", shown(dollars)));
        format!(
            "asking {} at {}: about {tokens} tokens, an answer of up to {ANSWER}, {bound}",
            self.model, self.provider
        )
    }

    /// Asks, and says whether the model works, and what it can do.
    pub(crate) async fn ask(self) -> (bool, String) {
        let Self { model, config, resolved, request, .. } = self;
        match tokio::time::timeout(PATIENCE, listen(config, request)).await {
            Err(_) => (false, format!("{model} gave no whole answer within {} s", PATIENCE.as_secs())),
            Ok(Err(error)) => (false, format!("{model}: {error}")),
            Ok(Ok(heard)) => (heard.calls_tool(), format!("{model}: {}", heard.tell(&resolved))),
        }
    }
}

fn request(model: &str, resolved: &ResolvedModel) -> ModelRequest {
    let schema = json!({
        "type": "object",
        "properties": { "word": { "type": "string", "description": "The word to report." } },
        "required": ["word"],
    });
    let tool = ToolSpec {
        name: TOOL.to_owned(),
        title: None,
        description: "Reports a word.".to_owned(),
        input: ToolSchema::Function(schema.into()),
    };
    let lowest = resolved.facts.efforts.first().map(|level| level.name().to_owned());
    ModelRequest {
        model: model.to_owned(),
        system: "You are being tested. Do what is asked and nothing else.".into(),
        messages: vec![Arc::new(Message::User(vec![Part::Text(QUESTION.to_owned())]))],
        tools: [Arc::new(tool)].into(),
        late_tools: Vec::new(),
        tool_choice: ToolChoice::Auto,
        effort: lowest,
        stream: true,
        initiator: Initiator::User,
        session_id: "doctor".to_owned(),
        headers: Vec::new(),
        answer: None,
        max_output_tokens: None,
    }
}

/// Result of a question.
struct Heard {
    pieces: usize,
    reasoned: bool,
    reply: Box<Reply>,
}

async fn listen(config: ProviderConfig, request: ModelRequest) -> Result<Heard, ModelError> {
    let model = request.model.clone();
    let mut events = hangar_models::build_for(config, &model, Ways::default()).stream(request);
    let (mut pieces, mut reasoned) = (0, false);
    let mut reply = None;
    while let Some(event) = events.next().await {
        match event? {
            ModelEvent::Text(_) | ModelEvent::ToolInput { .. } => pieces += 1,
            ModelEvent::Notice(_) => {}
            ModelEvent::Reasoning(_) => (pieces, reasoned) = (pieces + 1, true),
            ModelEvent::Finished(finished) => reply = Some(finished),
        }
    }
    // A stream without an error ends with a reply.
    let no_end = || ModelError::new(hangar_agent::model::ModelErrorKind::Cut, "the answer has no end");
    reply.map(|reply| Heard { pieces, reasoned, reply }).ok_or_else(no_end)
}

impl Heard {
    fn calls_tool(&self) -> bool {
        let calls = &self.reply.turn.tool_calls;
        calls.iter().any(|call| call.name == TOOL && call.input.contains("blue"))
    }

    fn tell(&self, resolved: &ResolvedModel) -> String {
        let usage = &self.reply.usage;
        let word = |has: bool| if has { "yes" } else { "no" };
        let reasoned = self.reasoned || usage.reasoning_tokens.is_some_and(|tokens| tokens > 0);
        let caches = usage.cache_read_tokens.is_some() || usage.cache_write_tokens.is_some();
        let count = |tokens: Option<u64>| tokens.map_or_else(|| "?".to_owned(), |tokens| tokens.to_string());
        let cost = resolved.facts.price.as_ref().and_then(|price| price.cost(usage));
        format!(
            "text {}, tool call {}, streaming {}, reasoning {}, cache usage {}; {} tokens in, {} out, {}",
            word(!self.reply.turn.text.is_empty()),
            word(self.calls_tool()),
            word(self.pieces > 0),
            word(reasoned),
            if caches { "reported" } else { "not reported" },
            count(usage.input_tokens),
            count(usage.output_tokens),
            cost.map_or_else(|| "cost unknown".to_owned(), shown),
        )
    }
}

fn shown(dollars: f64) -> String {
    format!("${dollars:.6}")
}
