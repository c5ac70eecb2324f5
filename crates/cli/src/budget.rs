//! The budget of a session, from flags and from `config.toml`.
//!
//! ```toml
//! [budget]
//! max_cost = 2.50       # US dollars
//! max_turns = 100       # calls of the model
//! max_tokens = 2000000  # input and output
//! minutes = 30          # no caps: what shares of [[just_in_time]] are shares of
//! turns = 40
//! ```

use anyhow::{Result, bail};
use hangar_agent::budget::Budget;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::args::BudgetArgs;
use crate::config::located;
use crate::settings::{Settings, parse_toml};

/// `[budget]`.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct BudgetTable {
    /// Minutes that the shares of [[just_in_time]] are shares of.
    #[schemars(extend("exclusiveMinimum" = 0))]
    pub(crate) minutes: Option<f64>,
    /// Turns that the shares of [[just_in_time]] are shares of.
    pub(crate) turns: Option<u32>,
    /// Maximum cost of a session, in US dollars.
    #[schemars(extend("exclusiveMinimum" = 0))]
    max_cost: Option<f64>,
    /// Maximum number of model calls of a session.
    #[schemars(range(min = 1))]
    max_turns: Option<u64>,
    /// Maximum number of input and output tokens of a session.
    #[schemars(range(min = 1))]
    max_tokens: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    budget: BudgetTable,
}

/// The caps of a session. A flag replaces the same cap of the file.
pub(crate) fn load(settings: &Settings, flags: &BudgetArgs) -> Result<Budget> {
    let text = settings.config_text()?;
    let file = parse(&text).map_err(|error| located(settings, &text, &error))?;
    Ok(Budget {
        max_cost: flags.max_cost.or(file.max_cost),
        max_tokens: flags.max_tokens.or(file.max_tokens),
        max_turns: flags.max_turns.or(file.max_turns),
    })
}

/// Checks the table of a text of `config.toml`.
pub(crate) fn check(text: &str) -> Result<()> {
    parse(text).map(drop)
}

fn parse(text: &str) -> Result<Budget> {
    if !text.contains("budget") {
        return Ok(Budget::default());
    }
    let BudgetTable { max_cost, max_turns, max_tokens, .. } = parse_toml::<File>(text)?.budget;
    if let Some(cost) = max_cost
        && !is_cost(cost)
    {
        bail!("max_cost in [budget] is {cost}; it must be a number of US dollars above 0");
    }
    if max_turns == Some(0) || max_tokens == Some(0) {
        bail!("max_turns and max_tokens in [budget] must be above 0");
    }
    Ok(Budget { max_cost, max_tokens, max_turns })
}

fn is_cost(cost: f64) -> bool {
    cost.is_finite() && cost > 0.0
}

/// Reads the value of `--max-cost`.
pub(crate) fn parse_cost(text: &str) -> Result<f64, String> {
    let cost: f64 = text.trim_start_matches('$').parse().map_err(|_| format!("`{text}` is not a number"))?;
    if is_cost(cost) { Ok(cost) } else { Err("it must be a number of US dollars above 0".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let parsed =
            parse(text).map(|budget| format!("{budget:?}")).unwrap_or_else(|error| error.to_string());
        assert!(parsed.contains(expected), "{parsed}");
    }

    #[test]
    fn caps_are_read_beside_what_shares_are_shares_of() {
        check(
            "[budget]\nmax_cost = 2.5\nminutes = 3",
            "max_cost: Some(2.5), max_tokens: None, max_turns: None",
        );
        check("[budget]\nmax_turns = 3\nmax_tokens = 9", "max_tokens: Some(9), max_turns: Some(3)");
        check("", "max_cost: None");
    }

    #[test]
    fn a_cap_that_makes_no_sense_is_refused_by_name() {
        check("[budget]\nmax_cost = 0", "max_cost in [budget] is 0");
        check("[budget]\nmax_cost = -1.0", "max_cost in [budget] is -1");
        check("[budget]\nmax_turns = 0", "max_turns");
        check("[budget]\nmax_money = 1", "unknown field `max_money`");
    }

    #[test]
    fn a_cost_may_have_a_dollar_sign() {
        assert_eq!((parse_cost("0.5"), parse_cost("$2")), (Ok(0.5), Ok(2.0)));
        assert!(parse_cost("0").is_err() && parse_cost("inf").is_err() && parse_cost("much").is_err());
    }
}
