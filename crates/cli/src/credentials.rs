//! Environment of child processes, and the values that are redacted.
//!
//! The table of credentials is [`hangar_process::credentials`]; what configuration and flags add to it is added here.

use std::ffi::OsString;

use hangar_git::Git;
use hangar_models::config::ProviderConfig;
use hangar_process::credentials::{Child, is_credential, is_withheld};

use crate::providers;
use crate::settings::{LoginPlaces, Settings};

/// Variables that hold secrets of this process beside the known credentials: those that providers' configuration and flags
/// name.
pub(crate) fn ours(settings: &Settings) -> Vec<String> {
    let configured = settings.config_text().map(|text| hangar_models::config::table::key_variables(&text));
    let named = settings.secret_variables().map(str::to_owned);
    named.chain(configured.unwrap_or_default()).collect()
}

/// Environment of a child, without credentials that it does not need and without variables that were named as secrets.
pub(crate) fn environment(
    settings: &Settings,
    child: Child<'_>,
    secrets: &[String],
) -> Vec<(OsString, OsString)> {
    let mut ours = ours(settings);
    ours.extend(secrets.iter().cloned());
    let seen = |name: &OsString| match name.to_str() {
        Some(name) => !is_withheld(name, child, &ours) && !secrets.iter().any(|secret| secret == name),
        None => true,
    };
    std::env::vars_os().filter(|(name, _)| seen(name)).collect()
}

/// The names of the variables that commands do not see.
pub(crate) fn withheld_from_commands(settings: &Settings, secrets: &[String]) -> Vec<String> {
    let ours = ours(settings);
    let known = settings.vars().keys().filter(|name| is_withheld(name, Child::Command, &ours));
    known.cloned().chain(secrets.iter().cloned()).collect()
}

/// Git for ourselves.
pub(crate) fn git() -> Git {
    Git::new(hangar_git::Environment::of(std::env::vars_os()))
}

/// Secrets of this process, for any model: credentials in the environment, keys of all configured providers, and named
/// secrets.
pub(crate) fn values(settings: &Settings) -> Vec<String> {
    let ours = ours(settings);
    let held = |name: &str| is_credential(name) || ours.iter().any(|known| known == name);
    let variables = settings.vars().iter().filter(|(name, _)| held(name)).map(|(_, value)| value.clone());
    // No program is started to find a login.
    let mut quiet = settings.clone();
    if quiet.logins == LoginPlaces::Any {
        quiet.logins = LoginPlaces::Variables;
    }
    let providers = providers::configured(&quiet).unwrap_or_default();
    let keys = providers.iter().flat_map(ProviderConfig::secrets);
    let login = settings.login.iter().map(|login| login.token.clone());
    variables.chain(keys).chain(login).chain(settings.secret_values().map(str::to_owned)).collect()
}

/// Whether the name of a variable or header says that it holds a secret.
pub(crate) fn is_secret_name(name: &str) -> bool {
    const PARTS: [&str; 11] = [
        "TOKEN",
        "SECRET",
        "PASSWORD",
        "PASSWD",
        "API_KEY",
        "API-KEY",
        "APIKEY",
        "ACCESS_KEY",
        "PRIVATE_KEY",
        "CREDENTIAL",
        "AUTHORIZATION",
    ];
    let name = name.to_ascii_uppercase();
    is_credential(&name) || name == "COOKIE" || PARTS.iter().any(|part| name.contains(part))
}
