//! The account that a GitHub token belongs to.

use std::collections::BTreeMap;

use hangar_agent::model::ModelError;
use serde::Deserialize;

use crate::base_url::BaseUrl;
use crate::config::{Auth, ProviderConfig, ProviderKind};
use crate::error;
use crate::provider::Provider;
use crate::secret::Secret;

/// GitHub's answer about the owner of a token.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct CopilotUser {
    pub login: Option<String>,
    pub copilot_plan: Option<String>,
    pub endpoints: Endpoints,
    /// Remaining quota of the account, by its parts.
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
    /// Base URL of the models for this account.
    pub api: Option<String>,
}

/// Asks GitHub's API at `github` for the owner of the token.
pub async fn copilot_user(github: BaseUrl, token: Secret) -> Result<CopilotUser, ModelError> {
    let url = github.join(&["copilot_internal", "user"]);
    let mut config = ProviderConfig::new("github", ProviderKind::Copilot, github);
    config.auth = Auth::Bearer(token);
    let body = Provider::new(config).get(url).await?;
    serde_json::from_str(&body).map_err(|error| {
        error::protocol(format!("GitHub's answer about the account is not as expected: {error}"))
    })
}
