//! A model as a host offers it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::template::Vars;
use crate::Caching;

pub(crate) type ChatModel = crate::VendorModel<Traits>;

/// Facts of chat hosts about a model, and the differences between the models of one host.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(crate) struct Traits {
    #[serde(default)]
    pub(crate) vision: bool,
    #[serde(default = "yes")]
    pub(crate) tools: bool,
    /// Whether it reasons by default.
    #[serde(default)]
    pub(crate) reasons: bool,
    /// The longest prompt, if it differs from the window.
    pub(crate) max_input: Option<u64>,
    /// Tokens that the account may send per minute.
    pub(crate) tpm: Option<u64>,
    /// The endpoints that serve it, if not all of them.
    pub(crate) endpoints: Option<Vec<String>>,
    /// The id of the same model at its vendor, for hosts that forward requests.
    pub(crate) upstream: Option<String>,
    pub(crate) caching: Option<CachingForm>,
    /// Facts that only the catalogue has.
    #[serde(flatten)]
    pub(crate) more: BTreeMap<String, Value>,
}

fn yes() -> bool {
    true
}

/// Caching rule, as a profile defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum CachingForm {
    #[default]
    Never,
    Marked {
        look_back: usize,
    },
    Automatic {
        minimum: u64,
        step: u64,
        #[serde(default)]
        charges_writes: bool,
    },
}

impl CachingForm {
    /// The rule for a model that caches prompts of at least `minimum` tokens, where the model decides.
    pub(crate) fn of_model(self, minimum: u64) -> Caching {
        match self {
            Self::Never => Caching::Never,
            Self::Marked { look_back } => Caching::Marked { minimum, look_back },
            Self::Automatic { minimum, step, charges_writes } => {
                Caching::Automatic { minimum, step, charges_writes }
            }
        }
    }
}

/// Values that the documents of a host may use for a model.
pub(crate) fn vars(model: &ChatModel) -> Vars {
    let Traits { vision, tools, reasons, max_input, endpoints, more, .. } = &model.rules;
    let price = model.price;
    let mut vars = Vars::default()
        .with("id", model.id.clone())
        .with("window", model.window)
        .with("output", model.output)
        .with("max_input", max_input.unwrap_or(model.window))
        .with("efforts", model.efforts.clone())
        .with("default_effort", model.default_effort.clone())
        .with("vision", *vision)
        .with("tools", *tools)
        .with("reasons", *reasons)
        .with("endpoints", endpoints.clone());
    for (name, price) in
        [("input", price.input), ("output", price.output), ("cached", price.cached.unwrap_or(price.input))]
    {
        vars.set(&format!("{name}_price"), price);
        vars.set(&format!("{name}_each"), per_token(price));
        vars.set(&format!("{name}_each_number"), price / 1e6);
    }
    vars.extend(more.clone());
    vars
}

/// Dollars per token as text, in OpenRouter's format.
fn per_token(price: f64) -> String {
    let text = format!("{:.12}", price / 1e6);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_price_per_token_is_a_plain_decimal() {
        for (price, text) in [(3.0, "0.000003"), (0.3, "0.0000003"), (0.0, "0")] {
            assert_eq!(per_token(price), text);
        }
    }
}
