//! `hangar features`: which parts are on.

use anyhow::Result;
use hangar_agent::features::FEATURES;
use serde_json::json;

use super::print_line;
use crate::args::FeaturesArgs;
use crate::exit::Exit;
use crate::settings::Settings;

pub(crate) fn run(settings: &Settings, args: &FeaturesArgs) -> Result<Exit> {
    let on = settings.features()?;
    if args.json {
        let list: Vec<_> = FEATURES
            .iter()
            .map(|feature| {
                json!({
                    "name": feature.name,
                    "stage": feature.stage.as_str(),
                    "enabled": on.is_on(feature.name),
                    "about": feature.about,
                })
            })
            .collect();
        print_line(&serde_json::to_string_pretty(&list)?)?;
        return Ok(Exit::Done);
    }
    for feature in FEATURES {
        let state = if on.is_on(feature.name) { "on" } else { "off" };
        let stage = feature.stage.as_str();
        print_line(&format!("{:<12} {state:<4} {stage:<13} {}", feature.name, feature.about))?;
    }
    Ok(Exit::Done)
}
