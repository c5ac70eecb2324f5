//! `hangar features`: the enabled features.

use anyhow::Result;

use super::print_line;
use crate::args::FeaturesArgs;
use crate::exit::Exit;
use crate::settings::Settings;

pub(crate) fn run(settings: &Settings, args: &FeaturesArgs) -> Result<Exit> {
    let features = settings.features()?.states();
    if args.json {
        print_line(&serde_json::to_string_pretty(&features)?)?;
        return Ok(Exit::Done);
    }
    print_line(&format!("{:<12} {:<4} {:<13} what it is", "name", "now", "by default"))?;
    for feature in features {
        let now = if feature.enabled { "on" } else { "off" };
        let stage = feature.stage.as_str();
        print_line(&format!("{:<12} {now:<4} {stage:<13} {}", feature.name, feature.about))?;
    }
    Ok(Exit::Done)
}
