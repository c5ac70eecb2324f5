//! The ledger: what every model call of every agent used and cost.
//!
//! Logs of sessions are the truth; the ledger is a durable fold over them. [`fold`] reads the calls of a session from any
//! position of its log on, [`book`] is the file that they are appended to, with the positions up to which each log was read,
//! and [`view`] is what command line, API and page show. A line of the book has the calls between two positions of one log,
//! and is appended under a lock together with the new position: a call is counted once, whichever processes are killed.

mod book;
mod figures;
mod fold;
mod view;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use hangar_jobs::record::RunId;
use hangar_jobs::store::FileStore;
use hangar_scheduler::budget::{BudgetKind, BudgetScope, Budgets};
use hangar_scheduler::record::QueueFact;
use hangar_store::{SessionId, Store};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use parking_lot::Mutex;

pub use book::LedgerError;
pub use figures::Figures;
pub use view::{CostRow, Costs, CostsBy, CostsQuery};

use book::Book;

/// Configuration of the ledger.
pub struct LedgerConfig {
    pub dir: PathBuf,
    pub store: Store,
    pub runs: FileStore,
    /// Names of all agents. A log of any other program is one of Hangar's own agent.
    pub agents: Vec<String>,
    /// Name of Hangar's own agent.
    pub own: String,
    /// Time zone in which a day begins.
    pub zone: TimeZone,
}

#[derive(Clone)]
pub struct Ledger(Arc<Inner>);

struct Inner {
    config: LedgerConfig,
    book: Mutex<Book>,
}

impl Ledger {
    pub fn open(config: LedgerConfig) -> Result<Self, LedgerError> {
        let book = Book::open(config.dir.clone(), config.zone.clone())?;
        Ok(Self(Arc::new(Inner { config, book: Mutex::new(book) })))
    }

    /// Takes in the calls of all sessions that are not in the book yet.
    pub fn collect(&self) -> Result<(), LedgerError> {
        let ids = self.0.config.store.ids().map_err(|error| LedgerError::Store(error.to_string()))?;
        self.take_in(ids)
    }

    /// Takes in new calls of some sessions.
    pub fn take_in(&self, ids: impl IntoIterator<Item = SessionId>) -> Result<(), LedgerError> {
        let Inner { config, book } = &*self.0;
        let mut book = book.lock();
        let behind: Vec<SessionId> = {
            // Calls that another process has recorded are not read again.
            book.refresh()?;
            ids.into_iter().filter(|id| book.is_behind(id, config.store.log_bytes(id))).collect()
        };
        if behind.is_empty() {
            return Ok(());
        }
        book.take_in(&behind, |id, start| {
            fold::read(&config.store, id, start, &|name| self.agent(name), &|run| self.project_of(run))
        })
    }

    fn agent(&self, name: Option<&str>) -> String {
        let known = name.filter(|name| self.0.config.agents.iter().any(|agent| agent == name));
        known.unwrap_or(&self.0.config.own).to_owned()
    }

    /// Directory that a run was started in. Its sessions may work in copies of it.
    fn project_of(&self, run: &str) -> Option<String> {
        let summary = self.0.config.runs.look(&RunId(run.to_owned()))?;
        Some(summary.working_directory.display().to_string())
    }

    /// Costs of a period, grouped as requested.
    pub fn costs(&self, query: &CostsQuery) -> Costs {
        view::costs(self.0.book.lock().sums(), query)
    }

    /// All figures since the ledger began.
    pub fn total(&self) -> Vec<(String, String, Figures)> {
        self.0.book.lock().sums().by_agent_and_model()
    }

    /// The figures of all configured budgets, as facts for the queue. `runs` are those whose budgets may have changed.
    pub fn spent(&self, budgets: &Budgets, runs: &BTreeSet<String>, now: Timestamp) -> Vec<QueueFact> {
        let book = self.0.book.lock();
        let (sums, today) = (book.sums(), budgets.day_of(now));
        let fact = |kind: BudgetKind, name: &str, figures: &Figures| {
            let budget = BudgetScope::new(kind, name);
            budgets.limit(&budget)?;
            let day = kind.is_daily().then_some(today);
            Some(QueueFact::Spent { budget, day, usd: figures.cost, unpriced: figures.unpriced })
        };
        let mut facts = Vec::new();
        let day = sums.day(today.0);
        facts.extend(fact(BudgetKind::Day, "", &day.all));
        facts.extend(day.agents.iter().filter_map(|(name, figures)| fact(BudgetKind::Agent, name, figures)));
        facts.extend(
            day.projects.iter().filter_map(|(name, figures)| fact(BudgetKind::Project, name, figures)),
        );
        let runs = runs.iter().filter_map(|run| Some((run, sums.run(run)?)));
        facts.extend(runs.filter_map(|(run, figures)| fact(BudgetKind::Run, run, figures)));
        facts
    }

    /// The run that a session worked for, as far as the book knows it.
    pub fn run_of(&self, id: &SessionId) -> Option<String> {
        self.0.book.lock().sums().run_of(id)
    }
}
