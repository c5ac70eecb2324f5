//! `[appearance]` of `config.toml`: the look of the portal and of the terminal.

use hangar_portal::settings::Appearance;
use serde::Deserialize;

use crate::settings::{Settings, parse_toml};

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    appearance: Appearance,
}

/// The configured look. A file that cannot be read has none, which those who use more of it tell.
pub(crate) fn load(settings: &Settings) -> Appearance {
    let file: File = settings.config_text().and_then(|text| parse_toml(&text)).unwrap_or_default();
    file.appearance
}
