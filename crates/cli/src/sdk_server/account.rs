//! Login of the server or of a session.

use anyhow::{Context, Result, bail};
use hangar_agent::model::{ModelError, ModelErrorKind};
use hangar_models::Secret;
use hangar_models::account::copilot_user;
use hangar_models::base_url::BaseUrl;
use hangar_server::AuthStatus;
use serde_json::{Value, json};

use crate::providers::github_login;
use crate::settings::{GitHubLogin, LoginSource, Settings};

const GITHUB_API: &str = "https://api.github.com";
const GITHUB_HOST: &str = "https://github.com";

fn github(settings: &Settings) -> Result<BaseUrl> {
    let url = settings.var("COPILOT_DEBUG_GITHUB_API_URL").unwrap_or(GITHUB_API);
    BaseUrl::parse(url).with_context(|| format!("COPILOT_DEBUG_GITHUB_API_URL is `{url}`"))
}

/// Remaining quota of the server's token, or of another one.
pub(super) async fn quota(settings: &Settings, token: Option<String>) -> Result<Value> {
    let Some(token) = token.or_else(|| Some(github_login(settings, true)?.token)) else {
        bail!("Not authenticated: a quota needs a login");
    };
    let user = copilot_user(github(settings)?, Secret::new(token)).await?;
    let snapshots = user.quota_snapshots.iter().map(|(name, quota)| {
        let used = quota.entitlement * (100.0 - quota.percent_remaining) / 100.0;
        let mut snapshot = json!({
            "isUnlimitedEntitlement": quota.unlimited,
            "entitlementRequests": quota.entitlement.round() as i64,
            "usedRequests": used.round() as i64,
            "usageAllowedWithExhaustedQuota": quota.overage_permitted,
            "remainingPercentage": quota.percent_remaining,
            "overage": quota.overage_count,
            "overageAllowedWithExhaustedQuota": quota.overage_permitted,
        });
        if let Some(date) = quota.timestamp_utc.as_ref().or(user.quota_reset_date.as_ref()) {
            snapshot["resetDate"] = json!(date);
        }
        (name.clone(), snapshot)
    });
    Ok(Value::Object(snapshots.collect()))
}

/// Whether GitHub answered that the token is not valid.
fn is_refusal(error: &ModelError) -> bool {
    matches!(error.kind, ModelErrorKind::Authentication | ModelErrorKind::AccessDenied)
}

/// The login behind the server's token, or behind another one.
pub(super) async fn status(settings: &Settings, token: Option<String>) -> Result<AuthStatus> {
    let asked = token.is_some();
    let given = token.map(|token| GitHubLogin { token, from: LoginSource::Given });
    let Some(GitHubLogin { token, from }) = given.or_else(|| github_login(settings, true)) else {
        return Ok(AuthStatus {
            status_message: Some("Not authenticated".to_owned()),
            ..AuthStatus::default()
        });
    };
    let user = match copilot_user(github(settings)?, Secret::new(token)).await {
        Ok(user) => user,
        // A token that is asked about and refused is an error of the caller.
        Err(error) if is_refusal(&error) && asked => return Err(error.into()),
        Err(error) if is_refusal(&error) => {
            return Ok(AuthStatus {
                status_message: Some(format!(
                    "Not authenticated: GitHub refuses the token ({})",
                    error.message
                )),
                ..AuthStatus::default()
            });
        }
        // A token cannot be judged while GitHub is out of reach. It may not even be needed.
        Err(error) => {
            tracing::debug!(%error, "the owner of the token is not known");
            Default::default()
        }
    };
    let (kind, by) = match from {
        LoginSource::Given => ("token", String::new()),
        LoginSource::Account => ("user", String::new()),
        LoginSource::Variable(name) => ("env", format!(" by {name}")),
        LoginSource::GhCli => ("gh-cli", " by the GitHub CLI".to_owned()),
    };
    let message = match &user.login {
        Some(login) => format!("Authenticated as {login}{by}"),
        None => format!("Authenticated{by}"),
    };
    Ok(AuthStatus {
        is_authenticated: true,
        auth_type: Some(kind.to_owned()),
        host: Some(GITHUB_HOST.to_owned()),
        login: user.login,
        status_message: Some(message),
        copilot_plan: user.copilot_plan,
    })
}
