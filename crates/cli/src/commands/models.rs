//! `hangar models`: what the configured providers really offer.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use hangar_models::catalogue::{Cache, ModelInfo};
use hangar_runtimes::runtime::Lookup;
use serde_json::json;

use super::print_line;
use crate::args::ModelsArgs;
use crate::exit::Exit;
use crate::output::remark;
use crate::providers::{self, SCRIPTED};
use crate::settings::Settings;

/// Catalogues change by the week, not by the minute.
const TIME_TO_LIVE: Duration = Duration::from_secs(3600);

pub(crate) fn run(settings: &Settings, args: &ModelsArgs) -> Result<Exit> {
    if let Some(name) = &args.runtime {
        let lookup = if args.refresh { Lookup::Fresh } else { Lookup::Cached };
        return crate::runtimes::commands::models(settings, name, lookup, args.json);
    }
    let configured = providers::configured(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let cache = Cache { dir: settings.home.join("cache"), ttl: TIME_TO_LIVE };
    let now = SystemTime::now();
    let mut models: Vec<ModelInfo> = Vec::new();
    let mut failed = 0;
    for provider in &configured {
        let asked = async {
            if args.refresh {
                cache.refresh(provider, now).await
            } else {
                cache.list_models(provider, now).await
            }
        };
        match runtime.block_on(asked) {
            Ok(found) => models.extend(found),
            Err(error) => {
                failed += 1;
                remark(&format!("{}: {error}", provider.name));
            }
        }
    }
    if args.json {
        print_line(&serde_json::to_string_pretty(&json!(models))?)?;
    } else {
        for model in &models {
            let limit = model
                .max_prompt_tokens
                .or(model.max_context_tokens)
                .map_or_else(String::new, |tokens| format!("  {}k", tokens / 1000));
            print_line(&format!("{}/{}{limit}", model.provider, model.id))?;
        }
        print_line(&format!("{SCRIPTED}  (built in: answers from a script, for rehearsals)"))?;
    }
    if configured.is_empty() {
        bail!(
            "no provider is configured, so only the scripted model is available; `hangar doctor` says what is missing"
        );
    }
    Ok(if failed > 0 { Exit::Failed } else { Exit::Done })
}
