//! Budgets: work is held before it is placed, and begins again when a person raises the budget or a day begins.

use hangar_scheduler::budget::{BudgetKind, BudgetScope, Budgets, Day};
use hangar_scheduler::limits::Limits;
use hangar_scheduler::queue::Queue;
use hangar_scheduler::record::QueueFact;
use hangar_scheduler::state::QueueState;
use jiff::tz::TimeZone;

use crate::stage::Stage;

fn stage(budgets: Budgets) -> Stage {
    Stage::new(Limits { budgets, ..Limits::global(100) })
}

fn scope(kind: BudgetKind, name: &str) -> BudgetScope {
    BudgetScope::new(kind, name)
}

impl Stage {
    fn spend(&mut self, kind: BudgetKind, name: &str, usd: f64) {
        let budgets = &self.queue.limits().budgets;
        let day = kind.is_daily().then(|| budgets.day_of(self.now));
        self.note(QueueFact::Spent { budget: scope(kind, name), day, usd, unpriced: 0 });
    }

    fn raise(&mut self, kind: BudgetKind, name: &str, usd: f64) {
        let fact = self.queue.raise(&scope(kind, name), usd, self.now).expect("there is such a budget");
        self.note(fact);
    }
}

#[test]
fn what_is_reserved_counts_before_anything_is_spent() {
    let mut stage = stage(Budgets { day: Some(1.0), reserve: Some(0.4), ..Budgets::default() });
    for item in ["a", "b", "c"] {
        stage.enqueue(item);
    }
    assert_eq!(stage.next(), "a b");
    let reason = "today's budget has no room for $0.40: $0.00 of $1.00 are spent, $0.80 are reserved; \
                  `hangar budget raise day USD` raises it";
    assert_eq!(stage.reason("c"), reason);
    stage.finish("a");
    assert_eq!(stage.next(), "c", "what was reserved and not spent is free again");
}

#[test]
fn at_the_limit_work_waits_until_somebody_raises_it() {
    let mut stage = stage(Budgets { run: Some(2.0), ..Budgets::default() });
    stage.spend(BudgetKind::Run, "r", 2.0);
    stage.enqueue("a run=r");
    stage.enqueue("b run=s");
    assert_eq!(stage.next(), "b", "another run has a budget of its own");
    let reason = "the budget of run r has no room for $0.20: $2.00 of $2.00 are spent; \
                  `hangar budget raise run r USD` raises it";
    assert_eq!(stage.reason("a"), reason);
    stage.raise(BudgetKind::Run, "r", 0.5);
    assert_eq!(stage.next(), "a");
}

#[test]
fn runs_with_budgets_of_their_own_are_still_one_line() {
    let mut stage =
        Stage::new(Limits { budgets: Budgets { run: Some(1.0), ..Budgets::default() }, ..Limits::global(1) });
    for item in ["a", "b", "c"] {
        stage.enqueue(item);
    }
    assert_eq!(stage.next(), "a");
    assert_eq!(stage.reason("b"), "1 of 1 slots are taken; first in line");
    assert_eq!(stage.reason("c"), "1 of 1 slots are taken; next after run b");
}

#[test]
fn figures_are_absolute_so_telling_them_again_changes_nothing() {
    let mut stage = stage(Budgets { day: Some(1.0), ..Budgets::default() });
    stage.spend(BudgetKind::Day, "", 0.5);
    let day = Some(stage.queue.limits().budgets.day_of(stage.now));
    let told = [QueueFact::Spent { budget: scope(BudgetKind::Day, ""), day, usd: 0.5, unpriced: 0 }];
    assert!(stage.queue.spent(&told).is_empty());
    let yesterday = day.map(|day| Day(day.0.yesterday().expect("a day")));
    let late =
        [QueueFact::Spent { budget: scope(BudgetKind::Day, ""), day: yesterday, usd: 9.0, unpriced: 0 }];
    assert!(stage.queue.spent(&late).is_empty(), "a figure of yesterday does not replace that of today");
    stage.spend(BudgetKind::Day, "", 0.5);
    assert!((stage.queue.budgets(stage.now)[0].spent - 0.5).abs() < 1e-9);
}

#[test]
fn a_new_day_begins_with_the_whole_budget() {
    let zone = TimeZone::fixed(jiff::tz::offset(2));
    let agents = [("claude".to_owned(), 1.0)].into();
    let mut stage = stage(Budgets { agents, zone, ..Budgets::default() });
    stage.spend(BudgetKind::Agent, "claude", 1.0);
    stage.enqueue("a");
    stage.enqueue("b runtime=codex");
    assert_eq!(stage.next(), "b", "another agent has none");
    let wake = stage.queue.next_wake().expect("a day begins");
    assert_eq!(wake.to_string(), "2027-01-15T22:00:00Z", "midnight in the zone of the budgets");
    stage.now = wake;
    assert_eq!(stage.next(), "a");
}

#[test]
fn a_log_and_its_compaction_have_the_same_budgets() {
    let budgets = Budgets { day: Some(1.0), run: Some(1.0), ..Budgets::default() };
    let mut stage = stage(budgets);
    stage.spend(BudgetKind::Day, "", 1.0);
    stage.raise(BudgetKind::Day, "", 0.05);
    stage.enqueue("a");
    stage.raise(BudgetKind::Run, "a", 1.0);
    assert_eq!(stage.next(), "");
    let limits = stage.queue.limits().clone();
    let folded = Queue::fold(limits.clone(), &stage.log);
    assert_eq!(folded.state(), stage.queue.state());
    let text = serde_json::to_string(&stage.queue.compacted()).expect("JSON");
    let mut compacted = Stage { queue: Queue::new(limits), log: Vec::new(), ..stage };
    compacted.note(QueueFact::Compacted { state: serde_json::from_str(&text).expect("the same") });
    assert_eq!(compacted.next(), "");
    compacted.raise(BudgetKind::Day, "", 0.05);
    assert_eq!(compacted.next(), "a");
}

#[test]
fn a_budget_is_raised_beyond_all_bounds_and_can_still_be_written_down() {
    let mut stage = stage(Budgets { day: Some(1.0), ..Budgets::default() });
    for _ in 0..2 {
        stage.raise(BudgetKind::Day, "", f64::MAX);
    }
    let text = serde_json::to_string(&stage.queue.compacted()).expect("JSON");
    let read: QueueState = serde_json::from_str(&text).expect("the same");
    assert_eq!(&read, stage.queue.state());
}
