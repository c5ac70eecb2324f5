//! Whose login the server or a session uses.

use anyhow::{Context, Result};
use hangar_models::Secret;
use hangar_models::account::copilot_user;
use hangar_models::base_url::BaseUrl;
use hangar_server::AuthStatus;

use crate::providers;
use crate::settings::Settings;

const GITHUB_API: &str = "https://api.github.com";
const GITHUB_HOST: &str = "https://github.com";

/// The login behind the server's token, or behind another one.
pub(super) async fn status(settings: &Settings, token: Option<String>) -> Result<AuthStatus> {
    let asked = token.is_some();
    let Some(token) = token.or_else(|| providers::github_token(settings, settings.gh_login)) else {
        return Ok(AuthStatus {
            status_message: Some("Not authenticated".to_owned()),
            ..AuthStatus::default()
        });
    };
    let url = settings.var("COPILOT_DEBUG_GITHUB_API_URL").unwrap_or(GITHUB_API);
    let url = BaseUrl::parse(url).with_context(|| format!("COPILOT_DEBUG_GITHUB_API_URL is `{url}`"))?;
    let user = copilot_user(url, Secret::new(token)).await;
    let user = if asked { user? } else { user.unwrap_or_default() };
    let message = match &user.login {
        Some(login) => format!("Authenticated as {login}"),
        None => "Authenticated".to_owned(),
    };
    Ok(AuthStatus {
        is_authenticated: true,
        auth_type: Some("token".to_owned()),
        host: Some(GITHUB_HOST.to_owned()),
        login: user.login,
        status_message: Some(message),
        copilot_plan: user.copilot_plan,
    })
}
