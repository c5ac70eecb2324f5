//! The model of a session and its provider.

use std::collections::BTreeMap;

use hangar_protocol::data::{ContextTier, ReasoningSummary, Verbosity};
use serde::Deserialize;

group! {
    /// The model of a session, and the providers that the client brings for it.
    pub struct ModelOptions {
        name: String = "model",
        effort: String = "reasoningEffort",
        summary: ReasoningSummary = "reasoningSummary",
        verbosity: Verbosity = "verbosity",
        tier: ContextTier = "contextTier",
        /// The only models that the session may have.
        allowed: Vec<String> = "allowedModels",
        capabilities: CapabilityOverrides = "modelCapabilities" | "modelCapabilitiesOverrides",
        provider: ProviderSpec = "provider",
        providers: Vec<ProviderSpec> = "providers",
        /// The models of those providers.
        models: Vec<ModelSpec> = "models",
        citations: bool = "enableCitations",
    }
}

impl ModelOptions {
    /// Whether the model is to be shown images.
    pub fn has_vision(&self) -> bool {
        let supports = self.capabilities.as_ref().and_then(|overrides| overrides.supports.as_ref());
        supports.and_then(|supports| supports.vision).unwrap_or(true)
    }
}

/// A model provider of the client's own.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ProviderSpec {
    /// Absent for the one provider of a session; the name that models refer to otherwise.
    pub name: Option<String>,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub wire_api: Option<String>,
    /// `websockets` where the model shall be spoken to on a socket.
    pub transport: Option<String>,
    pub base_url: String,
    pub api_key: Option<String>,
    pub bearer_token: Option<String>,
    /// The client is asked for a token before each call.
    pub has_bearer_token_provider: Option<bool>,
    pub azure: Option<AzureSpec>,
    pub headers: Option<BTreeMap<String, String>>,
    pub model_id: Option<String>,
    pub wire_model: Option<String>,
    pub max_prompt_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AzureSpec {
    pub api_version: Option<String>,
}

/// A model of one of several providers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelSpec {
    pub id: String,
    pub name: Option<String>,
    pub provider: String,
    pub model_id: Option<String>,
    pub wire_model: Option<String>,
    pub max_prompt_tokens: Option<u64>,
    pub max_output_tokens: Option<u64>,
    pub max_context_window_tokens: Option<u64>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CapabilityOverrides {
    pub supports: Option<ModelSupports>,
    pub limits: Option<ModelLimits>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelSupports {
    pub vision: Option<bool>,
    pub reasoning_effort: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct ModelLimits {
    pub max_prompt_tokens: Option<u64>,
    pub max_context_window_tokens: Option<u64>,
}
