//! Requests of a setup step to providers: which local servers answer, which models there are, whether one works.

use std::time::Duration;

use futures_util::future::join_all;
use hangar_agent::model::ModelError;
use hangar_models::catalogue::{ModelInfo, list_models};
use hangar_models::config::ProviderConfig;
use hangar_models::facts::{self, is_same};

use super::draft::{Draft, KeyKind};
use super::offers::{LOCAL, preset};
use crate::commands::models::{price_line, thousands};
use crate::commands::probe::Probe;
use crate::settings::Settings;

/// Time that a server on this machine gets to answer, and any other one.
const LOCAL_TIME: Duration = Duration::from_secs(2);
const LIST_TIME: Duration = Duration::from_secs(15);
/// Models that are offered. OpenRouter has some hundreds.
const MAX_MODELS: usize = 2_000;

/// Work for a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Work {
    FindLocal,
    List(Draft),
    Probe(Draft, String),
}

/// Result of the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum WorkDone {
    Local(Vec<FoundServer>),
    Listed(Result<Vec<ListedModel>, ListProblem>),
    Probed { works: bool, says: String },
}

/// A server of this machine that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FoundServer {
    pub(super) preset: &'static str,
    pub(super) models: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedModel {
    pub(super) id: String,
    /// Price and window, for people.
    pub(super) detail: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListProblem {
    pub(super) message: String,
    /// Whether the key is refused.
    pub(super) is_refused: bool,
    /// Models that the tables know of this provider.
    pub(super) known: Vec<ListedModel>,
}

impl Work {
    pub(crate) async fn run(self, settings: &Settings) -> WorkDone {
        match self {
            Self::FindLocal => WorkDone::Local(find_local(settings).await),
            Self::List(draft) => WorkDone::Listed(list(settings, &draft).await),
            Self::Probe(draft, model) => match draft.provider(settings) {
                Ok(provider) => {
                    let (works, says) = Probe::new(&provider, &model).ask().await;
                    WorkDone::Probed { works, says }
                }
                Err(error) => WorkDone::Probed { works: false, says: format!("{error:#}") },
            },
        }
    }

    /// The work in words, for people.
    pub(crate) fn told(&self, settings: &Settings) -> String {
        match self {
            Self::FindLocal => "Asking the usual ports of this machine …".to_owned(),
            Self::List(draft) => format!("Asking {} for its models …", draft.label),
            Self::Probe(draft, model) => match draft.provider(settings) {
                Ok(provider) => format!("{} …", Probe::new(&provider, model).told()),
                Err(_) => format!("Asking {model} …"),
            },
        }
    }
}

/// Asks the usual ports of this machine, all at once.
async fn find_local(settings: &Settings) -> Vec<FoundServer> {
    let asked = LOCAL.iter().filter_map(|(name, label)| {
        let preset = preset(name)?;
        let draft = Draft {
            name: (*name).to_owned(),
            label: (*label).to_owned(),
            preset: Some(preset.name),
            base_url: None,
            key: KeyKind::Usual,
            is_built_in: false,
        };
        let provider = draft.usual_provider(settings).ok()?;
        Some(async move {
            let listed = tokio::time::timeout(LOCAL_TIME, list_models(&provider)).await.ok()?.ok()?;
            Some(FoundServer { preset: preset.name, models: listed.len() })
        })
    });
    join_all(asked).await.into_iter().flatten().collect()
}

async fn list(settings: &Settings, draft: &Draft) -> Result<Vec<ListedModel>, ListProblem> {
    let mut provider = match draft.provider(settings) {
        Ok(provider) => provider,
        Err(error) => {
            return Err(ListProblem { message: format!("{error:#}"), is_refused: true, known: Vec::new() });
        }
    };
    let problem =
        |message: String, is_refused| ListProblem { message, is_refused, known: known(&provider, draft) };
    // The list is not kept on disk: nothing is written before the last step.
    let listed = tokio::time::timeout(LIST_TIME, list_models(&provider)).await;
    let listed = match listed {
        Ok(Ok(listed)) => listed,
        Ok(Err(error)) => return Err(problem(error.to_string(), is_refused(&error))),
        Err(_) => {
            let message = format!("{} gave no answer within {} s", draft.label, LIST_TIME.as_secs());
            return Err(problem(message, false));
        }
    };
    provider.learnt.listed = Some(listed.clone().into());
    Ok(sorted(&provider, &listed))
}

fn is_refused(error: &ModelError) -> bool {
    matches!(error.status, Some(401 | 403))
}

/// Models for a list: the current ones of the tables first, those that call no tools last.
fn sorted(provider: &ProviderConfig, listed: &[ModelInfo]) -> Vec<ListedModel> {
    let rank = |info: &ModelInfo| {
        let known = facts::ids().iter().position(|id| is_same(id, &info.id));
        (info.tools == Some(false), known.unwrap_or(usize::MAX))
    };
    let mut listed: Vec<&ModelInfo> = listed.iter().take(MAX_MODELS).collect();
    listed.sort_by_key(|info| rank(info));
    listed.into_iter().map(|info| described(provider, &info.id)).collect()
}

/// Current models of the vendor behind a preset.
fn known(provider: &ProviderConfig, draft: &Draft) -> Vec<ListedModel> {
    let vendor = match draft.preset {
        Some("azure") => "openai",
        Some("bedrock") => "anthropic",
        Some("gemini" | "vertex") => "google",
        Some("kimi") => "moonshotai",
        Some("qwen") => "alibaba",
        Some("glm") => "zai",
        Some(preset) => preset,
        None => return Vec::new(),
    };
    let is_its = |id: &&&str| facts::of(id).vendor.as_deref() == Some(vendor);
    facts::ids().iter().filter(is_its).map(|id| described(provider, id)).collect()
}

/// A model with its price and its window.
fn described(provider: &ProviderConfig, id: &str) -> ListedModel {
    let facts = facts::resolve(provider, id).facts;
    let price = facts.price.as_ref().map(price_line);
    let window = facts.window.map(|window| format!("window {}", thousands(window)));
    let detail: Vec<String> = price.into_iter().chain(window).collect();
    ListedModel { id: id.to_owned(), detail: detail.join(" · ") }
}
