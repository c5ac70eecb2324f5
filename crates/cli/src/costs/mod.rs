//! `hangar costs` and `hangar budget`: what all agents used and cost, and how much they may.

mod table;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use hangar_registry::ledger::{CostsBy, CostsQuery, Ledger, LedgerConfig};
use hangar_registry::queue::BudgetShown;
use hangar_scheduler::budget::{BudgetKind, BudgetScope};
use hangar_store::Store;

use crate::budget::parse_cost;
use crate::commands::print_line;
use crate::exit::Exit;
use crate::jobs;
use crate::queue;
use crate::runtimes::{AgentRuntimes, choice};
use crate::settings::Settings;

#[derive(Debug, Args)]
pub(crate) struct CostsArgs {
    /// Sum up by agent, model, project, day, run or session
    #[arg(long, value_name = "WHAT", default_value = "day")]
    by: CostsBy,
    /// First day, such as 2026-11-01
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    since: Option<String>,
    /// Last day
    #[arg(long, value_name = "DAY", value_parser = parse_day)]
    until: Option<String>,
    /// Print CSV
    #[arg(long, conflicts_with = "json")]
    csv: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct BudgetCommandArgs {
    #[command(subcommand)]
    command: Option<BudgetCommand>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Subcommand)]
enum BudgetCommand {
    /// Raise a budget of today or of a run: `raise day 5`, `raise agent codex 5`, `raise run ID 2.50`
    Raise {
        /// `day USD`, or `run`, `agent` or `project` with a name and USD
        #[arg(required = true, num_args = 2..=3, value_names = ["WHAT", "NAME", "USD"])]
        words: Vec<String>,
    },
}

fn parse_day(text: &str) -> Result<String, String> {
    let day: Result<jiff::civil::Date, _> = text.parse();
    day.map(|day| day.to_string()).map_err(|_| format!("`{text}` is not a day such as 2026-11-01"))
}

/// The ledger of the home.
pub(crate) fn ledger(settings: &Settings) -> Result<Ledger> {
    let runtimes = AgentRuntimes::assemble(settings)?;
    let agents = runtimes.iter().map(|runtime| runtime.card().name.to_string()).collect();
    Ok(Ledger::open(LedgerConfig {
        dir: settings.home.join("ledger"),
        store: Store::new(&settings.home),
        runs: jobs::store(settings),
        agents,
        own: choice::NATIVE.to_owned(),
        zone: queue::budgets::load(settings)?.zone,
    })?)
}

pub(crate) fn show(settings: &Settings, args: &CostsArgs) -> Result<Exit> {
    let ledger = ledger(settings)?;
    ledger.collect()?;
    let query = CostsQuery { by: args.by, since: args.since.clone(), until: args.until.clone() };
    let costs = ledger.costs(&query);
    if args.json {
        print_line(&serde_json::to_string_pretty(&costs)?)?;
        return Ok(Exit::Done);
    }
    let lines = if args.csv { table::csv(&costs) } else { table::text(&costs) };
    lines.iter().try_for_each(|line| print_line(line))?;
    Ok(Exit::Done)
}

pub(crate) fn budget(settings: &Settings, args: &BudgetCommandArgs) -> Result<Exit> {
    let scheduler = queue::scheduler(settings)?;
    if let Some(BudgetCommand::Raise { words }) = &args.command {
        let (scope, usd) = raise(words)?;
        if !scheduler.raise(&scope, usd)? {
            bail!("there is no budget for {}; [budgets] in config.toml sets one", wanted(&scope));
        }
    }
    // Spending from before the first queued item counts too.
    let ledger = ledger(settings)?;
    ledger.collect()?;
    let figures = ledger.spent(&scheduler.budgets(), &scheduler.runs(), jiff::Timestamp::now());
    scheduler.spent(&figures)?;
    let budgets = scheduler.view_of(0)?.budgets;
    if args.json {
        print_line(&serde_json::to_string_pretty(&budgets)?)?;
        return Ok(Exit::Done);
    }
    if budgets.is_empty() {
        print_line("No budget is in use. [budgets] in config.toml sets some.")?;
    }
    budgets.iter().try_for_each(|budget| print_line(&line(budget)))?;
    Ok(Exit::Done)
}

fn raise(words: &[String]) -> Result<(BudgetScope, f64)> {
    let (kind, name, usd) = match words {
        [kind, usd] => (kind, "", usd),
        [kind, name, usd] => (kind, name.as_str(), usd),
        _ => bail!("say what to raise and by how much: `budget raise day 5`"),
    };
    let kind: BudgetKind = kind.parse().map_err(anyhow::Error::msg)?;
    if (kind == BudgetKind::Day) != name.is_empty() {
        bail!(
            "`budget raise {}` takes {}",
            kind.as_str(),
            if name.is_empty() { "a name and a sum" } else { "a sum only" }
        );
    }
    let usd = parse_cost(usd).map_err(anyhow::Error::msg)?;
    Ok((BudgetScope::new(kind, name), usd))
}

fn wanted(scope: &BudgetScope) -> String {
    match scope.kind {
        BudgetKind::Day => "the day".to_owned(),
        kind => format!("{} {}", kind.as_str(), scope.name),
    }
}

fn line(budget: &BudgetShown) -> String {
    let name = if budget.name.is_empty() { String::new() } else { format!(" {}", budget.name) };
    let mut line =
        format!("{}{name}: ${:.2} of ${:.2} spent", budget.kind, budget.spent_usd, budget.limit_usd);
    if budget.reserved_usd > 0.0 {
        line.push_str(&format!(", ${:.2} reserved", budget.reserved_usd));
    }
    if budget.unpriced_calls > 0 {
        line.push_str(&format!(", {} calls of unknown cost", budget.unpriced_calls));
    }
    if budget.held.is_some() {
        line.push_str("; work is held");
    }
    line
}
