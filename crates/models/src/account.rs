//! Whose login a GitHub token is.

use std::collections::BTreeMap;

use hangar_agent::model::ModelError;
use serde::Deserialize;

use crate::base_url::BaseUrl;
use crate::config::{Auth, ProviderConfig, ProviderKind};
use crate::error;
use crate::provider::Provider;
use crate::secret::Secret;

/// What GitHub says about the owner of a token.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CopilotUser {
    pub login: Option<String>,
    pub copilot_plan: Option<String>,
    pub endpoints: Endpoints,
    /// What is left of the account's allowance, by its parts.
    pub quota_snapshots: BTreeMap<String, Quota>,
    pub quota_reset_date: Option<String>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Quota {
    pub entitlement: f64,
    pub overage_count: f64,
    pub overage_permitted: bool,
    pub percent_remaining: f64,
    pub timestamp_utc: Option<String>,
    pub unlimited: bool,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct Endpoints {
    /// Where the models of this account are served.
    pub api: Option<String>,
}

/// Asks GitHub's API at `github` who the token belongs to.
pub async fn copilot_user(github: BaseUrl, token: Secret) -> Result<CopilotUser, ModelError> {
    let url = github.join(&["copilot_internal", "user"]);
    let mut config = ProviderConfig::new("github", ProviderKind::Copilot, github);
    config.auth = Auth::Bearer(token);
    let body = Provider::new(config).get(url).await?;
    serde_json::from_str(&body).map_err(|error| {
        error::protocol(format!("GitHub's answer about the account is not as expected: {error}"))
    })
}
