//! Model providers: wire formats, facts about models, token counting, and the scripted model.
//!
//! [`config`] describes providers, [`build`] makes one that the loop can call, [`catalogue`] lists what it offers.
//! Nothing here retries: the loop does, so that every failure is an event.

pub mod account;
mod answer;
pub mod base_url;
pub mod catalogue;
pub mod config;
mod copilot;
mod credential;
mod error;
pub mod facts;
pub mod hosted;
mod http;
pub mod image;
mod learned;
pub mod local;
pub mod loopback;
mod provider;
pub mod scripted;
mod secret;
mod sse;
pub mod tokenizer;
pub mod tokens;
mod wire;

use std::sync::Arc;

use hangar_agent::model::ModelProvider;
use hangar_agent::request_proxy::{RequestProxy, TokenSource};

pub use copilot::HEADERS as COPILOT_HEADERS;
pub use secret::Secret;

use catalogue::ModelInfo;
use config::{ProviderConfig, ProviderKind};
use copilot::Routes;
use provider::Provider;

/// Creates a provider. It opens and reads nothing before its first call.
pub fn build(config: ProviderConfig) -> Arc<dyn ModelProvider> {
    Arc::new(Provider::new(config))
}

/// A provider's own transport and credential source; the defaults where absent.
#[derive(Clone, Default)]
pub struct Ways {
    pub request_proxy: Option<Arc<dyn RequestProxy>>,
    pub tokens: Option<Arc<dyn TokenSource>>,
}

/// Creates a provider with its own transport and credentials, and with the facts about one of its models.
pub fn build_for(config: ProviderConfig, model: &str, ways: Ways) -> Arc<dyn ModelProvider> {
    Arc::new(Provider::by(config, ways).about(model))
}

/// Creates a provider with a known list of models: their limits apply where the configuration sets none, and GitHub's
/// catalogue need not be requested first.
pub fn build_with_models(mut config: ProviderConfig, models: Vec<ModelInfo>) -> Arc<dyn ModelProvider> {
    config.learnt.listed = Some(models.clone().into());
    let routes = (config.kind == ProviderKind::Copilot).then(|| Routes::known(models));
    Arc::new(Provider::with_routes(config, routes))
}
