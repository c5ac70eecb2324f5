//! Just-in-time instructions, as `config.toml` has them.
//!
//! ```toml
//! [budget]
//! minutes = 30
//! turns = 40
//!
//! [[just_in_time]]
//! at = 75               # percent
//! of = "time"           # of which budget: "time" or "turns"
//! unchanged = true      # only where nothing has changed since the commit that the session began with
//! text = "Three quarters of the time are gone and nothing has changed yet. Start with the smallest step that works."
//! ```

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use hangar_agent::session::{Due, JustInTime};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::budget::BudgetTable;
use crate::config::located;
use crate::settings::{Settings, parse_toml};

/// Instructions that a session may have.
const MAX_INSTRUCTIONS: usize = 32;

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    budget: BudgetTable,
    just_in_time: Vec<Table>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "JustInTimeTable")]
pub(crate) struct Table {
    /// Percent of the budget.
    #[schemars(range(min = 0, max = 100))]
    at: f64,
    /// Budget that it is a share of.
    of: Of,
    /// Whether it appears only if nothing has changed since the session began.
    #[serde(default)]
    unchanged: bool,
    /// The instruction.
    text: String,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Of {
    Time,
    Turns,
}

pub(crate) fn load(settings: &Settings) -> Result<Vec<JustInTime>> {
    let text = settings.config_text()?;
    parse(&text).map_err(|error| located(settings, &text, &error))
}

/// Checks the tables of a text of `config.toml`.
pub(crate) fn check(text: &str) -> Result<()> {
    parse(text).map(drop)
}

fn parse(text: &str) -> Result<Vec<JustInTime>> {
    if !text.contains("just_in_time") {
        return Ok(Vec::new());
    }
    let file: File = parse_toml(text)?;
    if file.just_in_time.len() > MAX_INSTRUCTIONS {
        bail!("there are more than {MAX_INSTRUCTIONS} [[just_in_time]] tables");
    }
    file.just_in_time.into_iter().map(|table| table.resolve(&file.budget)).collect()
}

impl Table {
    fn resolve(self, budget: &BudgetTable) -> Result<JustInTime> {
        if !(0.0..=100.0).contains(&self.at) {
            bail!("`at` of [[just_in_time]] is {}, which is not a percentage", self.at);
        }
        let share = self.at / 100.0;
        let due = match self.of {
            Of::Time => {
                let minutes =
                    budget.minutes.context("[[just_in_time]] of \"time\" needs [budget] minutes")?;
                let after = Duration::try_from_secs_f64(minutes * 60.0 * share);
                Due::After(after.context("[budget] minutes is not a duration")?)
            }
            Of::Turns => {
                let turns = budget.turns.context("[[just_in_time]] of \"turns\" needs [budget] turns")?;
                // At the first turn that is not below the share.
                let after = (f64::from(turns) * share).ceil();
                Due::AfterTurns(after as u32)
            }
        };
        Ok(JustInTime { text: self.text, due, only_unchanged: self.unchanged })
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn check(text: &str, expected: Expect) {
        expected.assert_eq(&match parse(text) {
            Ok(instructions) => format!("{instructions:?}"),
            Err(error) => format!("{error:#}"),
        });
    }

    #[test]
    fn a_share_of_a_budget_becomes_a_time_or_a_number_of_turns() {
        check(
            "budget = { minutes = 30, turns = 41 }\n[[just_in_time]]\nat = 50\nof = \"time\"\ntext = \"a\"\n\
             [[just_in_time]]\nat = 50\nof = \"turns\"\nunchanged = true\ntext = \"b\"",
            expect![[
                r#"[JustInTime { text: "a", due: After(900s), only_unchanged: false }, JustInTime { text: "b", due: AfterTurns(21), only_unchanged: true }]"#
            ]],
        );
    }

    #[test]
    fn a_share_of_no_budget_is_refused_by_name() {
        check(
            "[[just_in_time]]\nat = 50\nof = \"time\"\ntext = \"a\"",
            expect![[r#"[[just_in_time]] of "time" needs [budget] minutes"#]],
        );
    }

    #[test]
    fn a_file_about_something_else_has_none() {
        check("model = \"m\"", expect!["[]"]);
    }
}
