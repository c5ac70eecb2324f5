//! `hangar models`: the models that the configured providers offer, with facts about each.

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use hangar_agent::model::Price;
use hangar_models::catalogue::{Cache, ModelInfo};
use hangar_models::config::ProviderConfig;
use hangar_models::facts::{self, FactSource, Level, ResolvedModel};
use hangar_runtimes::runtime::Lookup;
use serde_json::{Value, json};

use super::print_line;
use crate::args::ModelsArgs;
use crate::exit::Exit;
use crate::output::remark;
use crate::providers::{self, SCRIPTED, SmallModel};
use crate::settings::Settings;

/// Catalogues change by the week, not by the minute.
const TIME_TO_LIVE: Duration = Duration::from_secs(3600);

/// Model of a provider, with the facts that apply there.
struct Row {
    info: ModelInfo,
    resolved: ResolvedModel,
    small: Option<SmallModel>,
}

pub(crate) fn run(settings: &Settings, args: &ModelsArgs) -> Result<Exit> {
    if let Some(name) = &args.runtime {
        let lookup = if args.refresh { Lookup::Fresh } else { Lookup::Cached };
        return crate::runtimes::commands::models(settings, name, lookup, args.json);
    }
    let mut configured = providers::configured(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let cache = Cache { dir: settings.home.join("cache"), ttl: TIME_TO_LIVE };
    let now = SystemTime::now();
    let mut rows: Vec<Row> = Vec::new();
    let mut failed = 0;
    for provider in &mut configured {
        let asked = async {
            if args.refresh {
                cache.refresh(provider, now).await
            } else {
                cache.list_models(provider, now).await
            }
        };
        match runtime.block_on(asked) {
            Ok(found) => {
                provider.learnt.listed = Some(found.clone().into());
                for info in found {
                    rows.push(Row::of(settings, provider, info)?);
                }
            }
            Err(error) => {
                failed += 1;
                remark(&format!("{}: {error}", provider.name));
            }
        }
    }
    if args.json {
        let rows: Vec<Value> = rows.iter().map(Row::json).collect::<Result<_>>()?;
        print_line(&serde_json::to_string_pretty(&rows)?)?;
    } else {
        for row in &rows {
            print_line(&row.line())?;
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

impl Row {
    fn of(settings: &Settings, provider: &ProviderConfig, info: ModelInfo) -> Result<Self> {
        let resolved = facts::resolve(provider, &info.id);
        let small = providers::small_model(settings, std::slice::from_ref(provider), &info.id, None)?;
        Ok(Self { info, resolved, small })
    }

    /// One line, with the source of each fact.
    fn line(&self) -> String {
        let ResolvedModel { facts, sources, prompt_limit, full_prompt_limit, .. } = &self.resolved;
        let mut parts = vec![format!("{}/{}", self.info.provider, self.info.id)];
        let mut add = |what: String, source: FactSource| parts.push(format!("{what} ({})", source.name()));
        if let Some(window) = facts.window {
            add(format!("window {}", thousands(window)), sources.window);
        }
        add(format!("prompt {}", thousands(*prompt_limit)), sources.prompt);
        if let Some(output) = facts.max_output {
            add(format!("answer {}", thousands(output)), sources.output);
        }
        if let Some(price) = &facts.price {
            add(price_line(price), sources.price);
        }
        let efforts = facts.accepted_efforts();
        if !efforts.is_empty() {
            let mark = |level: &Level| if Some(*level) == facts.default_effort { "*" } else { "" };
            let names: Vec<String> =
                efforts.iter().map(|level| format!("{}{}", level.name(), mark(level))).collect();
            add(format!("efforts {}", names.join(" ")), sources.efforts);
        }
        if let Some(small) = &self.small {
            add(format!("small model {}", small.id), small.source);
        }
        if let Some(full) = full_prompt_limit {
            parts.push(format!("{} with use_full_window", thousands(*full)));
        }
        parts.join("  ")
    }

    /// The provider's own entry, and the resolved facts.
    fn json(&self) -> Result<Value> {
        let ResolvedModel { facts, sources, prompt_limit, full_prompt_limit, .. } = &self.resolved;
        let mut value = serde_json::to_value(&self.info)?;
        value["resolved"] = json!({
            "window": facts.window,
            "promptLimit": prompt_limit,
            "fullPromptLimit": full_prompt_limit,
            "maxOutput": facts.max_output,
            "price": facts.price,
            "efforts": facts.accepted_efforts(),
            "defaultEffort": facts.default_effort,
            "vision": facts.vision,
            "smallModel": self.small.as_ref().map(|small| &small.id),
            "smallModelSource": self.small.as_ref().map(|small| small.source),
            "sources": sources,
        });
        Ok(value)
    }
}

pub(crate) fn thousands(tokens: u64) -> String {
    if tokens < 10_000 { tokens.to_string() } else { format!("{}k", tokens / 1000) }
}

/// `$5.00 in, $25.00 out, $0.50 cached per million`.
pub(crate) fn price_line(price: &Price) -> String {
    let cached =
        price.rates.cache_read.map_or_else(String::new, |rate| format!(", {} cached", dollars(rate)));
    format!("{} in, {} out{cached} per million", dollars(price.rates.input), dollars(price.rates.output))
}

/// US dollars with their cents, and with smaller parts as far as there are any.
fn dollars(rate: f64) -> String {
    const CENTS: usize = 2;
    const DECIMALS: usize = 6;
    let exact = format!("{rate:.DECIMALS$}");
    let zeros = exact.len() - exact.trim_end_matches('0').len();
    format!("${}", &exact[..exact.len() - zeros.min(DECIMALS - CENTS)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_have_cents_and_no_rounding_errors() {
        for (rate, shown) in [
            (5.0, "$5.00"),
            (0.5, "$0.50"),
            (0.075, "$0.075"),
            (0.1 + 0.2, "$0.30"),
            (0.0036, "$0.0036"),
            (100.0, "$100.00"),
            (0.0, "$0.00"),
        ] {
            assert_eq!(dollars(rate), shown);
        }
    }
}
