//! Costs as command line, API and page show them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Figures;
use super::book::Sums;

/// Grouping of costs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CostsBy {
    Agent,
    Model,
    Project,
    #[default]
    Day,
    Run,
    Session,
}

impl std::str::FromStr for CostsBy {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "agent" => Ok(CostsBy::Agent),
            "model" => Ok(CostsBy::Model),
            "project" => Ok(CostsBy::Project),
            "day" => Ok(CostsBy::Day),
            "run" => Ok(CostsBy::Run),
            "session" => Ok(CostsBy::Session),
            _ => Err(format!(
                "costs are summed up by agent, model, project, day, run or session, not `{text}`"
            )),
        }
    }
}

/// Query for costs. Days are like `2026-11-18`; for runs and sessions they are ignored.
#[derive(Debug, Clone, Default)]
pub struct CostsQuery {
    pub by: CostsBy,
    /// First and last day.
    pub since: Option<String>,
    pub until: Option<String>,
}

/// Costs of a period.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Costs {
    pub by: CostsBy,
    pub total: Figures,
    /// Days in order, all others by cost.
    pub rows: Vec<CostRow>,
}

#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct CostRow {
    /// Name of the agent, the model and so on.
    pub key: String,
    #[serde(flatten)]
    pub figures: Figures,
}

pub(super) fn costs(sums: &Sums, query: &CostsQuery) -> Costs {
    let within = |day: &str| {
        query.since.as_deref().is_none_or(|since| day >= since)
            && query.until.as_deref().is_none_or(|until| day <= until)
    };
    let mut rows: BTreeMap<&str, Figures> = BTreeMap::new();
    match query.by {
        CostsBy::Run => {
            for (run, sums) in sums.runs.iter().filter(|(_, run)| within(day(&run.last))) {
                rows.insert(run, sums.figures);
            }
        }
        CostsBy::Session => {
            for (id, session) in sums.sessions.iter().filter(|(_, session)| !session.figures.is_empty()) {
                rows.insert(id, session.figures);
            }
        }
        CostsBy::Agent | CostsBy::Model | CostsBy::Project | CostsBy::Day => {
            for (cell, figures) in sums.days.iter().filter(|(cell, _)| within(&cell.day)) {
                let key = match query.by {
                    CostsBy::Agent => &cell.agent,
                    CostsBy::Model => &cell.model,
                    CostsBy::Project => &cell.project,
                    CostsBy::Day | CostsBy::Run | CostsBy::Session => &cell.day,
                };
                rows.entry(key).or_default().add(figures);
            }
        }
    }
    let mut total = Figures::default();
    rows.values().for_each(|figures| total.add(figures));
    let mut rows: Vec<CostRow> =
        rows.into_iter().map(|(key, figures)| CostRow { key: key.to_owned(), figures }).collect();
    if query.by != CostsBy::Day {
        rows.sort_by(|a, b| b.figures.cost.total_cmp(&a.figures.cost).then_with(|| a.key.cmp(&b.key)));
    }
    Costs { by: query.by, total, rows }
}

/// The day of a time in a log.
fn day(at: &str) -> &str {
    at.get(..10).unwrap_or(at)
}
