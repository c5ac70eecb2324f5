//! Rules that hold for every sequence of inputs.

use std::collections::BTreeMap;

use hangar_scheduler::item::{ItemId, OwnerId, WorkItem};
use hangar_scheduler::limits::{Limits, ScopeKind};
use hangar_scheduler::queue::Queue;
use hangar_scheduler::record::{QueueFact, QueueRecord};
use hangar_scheduler::retry::AttemptFailureKind;
use hangar_scheduler::state::{ItemStatus, SchedulerMode};
use proptest::prelude::*;

use crate::stage::{Stage, item};

#[derive(Debug, Clone)]
enum Input {
    Enqueue { id: u8, project: u8, runtime: u8, account: u8, priority: i32, owner: u8 },
    Finish(usize),
    Fail(usize, AttemptFailureKind),
    Withdraw(u8),
    Park(u8),
    OwnerGone(u8),
    Mode(u8),
    Count(u8),
    Pass(u64),
}

fn kind() -> impl Strategy<Value = AttemptFailureKind> {
    prop::sample::select(vec![
        AttemptFailureKind::Login,
        AttemptFailureKind::BadRequest,
        AttemptFailureKind::RateLimited,
        AttemptFailureKind::Overloaded,
        AttemptFailureKind::Interrupted,
        AttemptFailureKind::Transient,
    ])
}

fn input() -> impl Strategy<Value = Input> {
    prop_oneof![
        8 => (0..40u8, 0..4u8, 0..3u8, 0..3u8, -1..2i32, 0..3u8).prop_map(
            |(id, project, runtime, account, priority, owner)| Input::Enqueue {
                id, project, runtime, account, priority, owner
            }
        ),
        5 => any::<usize>().prop_map(Input::Finish),
        3 => (any::<usize>(), kind()).prop_map(|(at, kind)| Input::Fail(at, kind)),
        1 => (0..40u8).prop_map(Input::Withdraw),
        1 => (0..40u8).prop_map(Input::Park),
        1 => (0..3u8).prop_map(Input::OwnerGone),
        1 => (0..6u8).prop_map(Input::Mode),
        1 => (40..44u8).prop_map(Input::Count),
        3 => (0..400u64).prop_map(Input::Pass),
    ]
}

fn limits() -> impl Strategy<Value = Limits> {
    (1..6u32, 1..4u32, 1..4u32, 1..4u32).prop_map(|(global, runtime, account, project)| {
        Limits::global(global)
            .with(ScopeKind::Runtime, "r0", runtime)
            .with(ScopeKind::Provider, "*", account)
            .with(ScopeKind::Project, "p1", project)
    })
}

fn owner(number: u8) -> OwnerId {
    OwnerId(format!("o{number}"))
}

fn id(number: u8) -> ItemId {
    ItemId(format!("i{number}"))
}

impl Stage {
    fn running(&self) -> Vec<ItemId> {
        let entries = self.queue.state().items.values();
        let running = entries.filter(|entry| matches!(entry.status, ItemStatus::Running { .. }));
        running.map(|entry| entry.item.id.clone()).collect()
    }

    fn is_running(&self, id: &ItemId) -> bool {
        self.running().contains(id)
    }

    fn take(&mut self, input: &Input) {
        match input {
            Input::Enqueue { id: number, project, runtime, account, priority, owner: by } => {
                if self.is_running(&id(*number)) {
                    return;
                }
                let text = format!("i{number} project=p{project} runtime=r{runtime} account=a{account}");
                let item = WorkItem { enqueued: self.now, priority: *priority, ..item(&text) };
                self.note(QueueFact::Enqueued { item, owner: owner(*by) });
            }
            Input::Finish(at) | Input::Fail(at, _) => {
                let running = self.running();
                let Some(id) = running.get(at % running.len().max(1)) else { return };
                match input {
                    Input::Fail(_, kind) => self.fail(&id.0, *kind),
                    _ => self.finish(&id.0),
                }
            }
            Input::Withdraw(number) => self.note(QueueFact::Withdrawn { item: id(*number) }),
            Input::Park(number) => self.note(QueueFact::Parked { item: id(*number) }),
            Input::OwnerGone(number) => self.note(QueueFact::OwnerGone { owner: owner(*number) }),
            Input::Mode(0) => self.note(QueueFact::Paused),
            Input::Mode(1) => self.note(QueueFact::Drained),
            Input::Mode(_) => self.note(QueueFact::Resumed),
            Input::Count(number) => {
                let item = item(&format!("i{number} runtime=r0 account=a0 project=p1"));
                self.note(QueueFact::Counted { item, owner: owner(0) });
            }
            Input::Pass(seconds) => self.pass(*seconds),
        }
        self.next();
    }

    /// Slots that queued and other work takes, counted anew from the state.
    fn used(&self) -> BTreeMap<String, (u32, bool)> {
        let mut used = BTreeMap::new();
        for entry in self.queue.state().items.values() {
            let ItemStatus::Running { queued, .. } = entry.status else { continue };
            let scopes = self.queue.limits().scopes(&entry.item);
            let names = scopes.iter().map(ToString::to_string).chain(["all".to_owned()]);
            for name in names {
                let (count, counted) = used.entry(name).or_insert((0, false));
                *count += 1;
                *counted |= !queued;
            }
        }
        used
    }

    /// Whether nothing that could start is left waiting.
    fn check_work_conserving(&self) {
        let state = self.queue.state();
        if state.mode != SchedulerMode::Open || self.queue.running() >= self.queue.limits().global {
            return;
        }
        let used: BTreeMap<_, _> = self.queue.used().into_iter().collect();
        for entry in state.items.values() {
            let ItemStatus::Waiting { delay } = &entry.status else { continue };
            let delayed = delay.as_ref().is_some_and(|delay| delay.due > self.now);
            let breaker = state.breakers.get(&entry.item.account);
            let held = breaker.is_some_and(|breaker| !breaker.admits_probe(self.now));
            let scopes = self.queue.limits().scopes(&entry.item);
            let full = scopes.iter().any(|scope| {
                let limit = self.queue.limits().limit(scope).unwrap();
                used.get(scope).copied().unwrap_or_default() >= limit
            });
            assert!(
                delayed || held || full,
                "{} could start: {}",
                entry.item.id,
                self.reason(&entry.item.id.0)
            );
        }
    }

    fn check_limits(&self, limits: &Limits) {
        let named: BTreeMap<String, u32> = self
            .queue
            .used()
            .iter()
            .map(|(scope, _)| (scope.to_string(), limits.limit(scope).unwrap()))
            .collect();
        for (name, (used, counted)) in self.used() {
            let limit = if name == "all" { limits.global } else { named[&name] };
            // Sessions of people are not held back.
            assert!(used <= limit || counted, "{used} of {limit} {name}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_limit_is_passed_and_no_slot_is_left_unused(
        limits in limits(),
        inputs in prop::collection::vec(input(), 1..120),
    ) {
        let mut stage = Stage::new(limits.clone());
        for input in &inputs {
            stage.take(input);
            stage.check_limits(&limits);
            stage.check_work_conserving();
            for entry in stage.queue.state().items.values() {
                let runs = matches!(entry.status, ItemStatus::Running { .. });
                prop_assert_eq!(stage.reason(&entry.item.id.0).is_empty(), runs);
            }
        }
    }

    #[test]
    fn the_fold_of_the_log_is_the_live_state_at_every_cut(
        limits in limits(),
        inputs in prop::collection::vec(input(), 1..60),
    ) {
        let mut stage = Stage::new(limits.clone());
        let mut cuts = Vec::new();
        for input in &inputs {
            stage.take(input);
            cuts.push((stage.log.len(), stage.queue.state().clone()));
        }
        // What is written is what is read.
        let lines: Vec<String> = stage.log.iter().map(|record| serde_json::to_string(record).unwrap()).collect();
        let log: Vec<QueueRecord> = lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        prop_assert_eq!(&log, &stage.log);
        for (length, state) in cuts {
            let folded = Queue::fold(limits.clone(), &log[..length]);
            prop_assert_eq!(folded.state(), &state);
        }
        // A compaction changes no decision.
        let fact = QueueFact::Compacted { state: Box::new(stage.queue.compacted()) };
        let line = serde_json::to_string(&QueueRecord { at: stage.now, fact }).unwrap();
        let compacted: QueueRecord = serde_json::from_str(&line).unwrap();
        let mut again = Queue::fold(limits, &[compacted]);
        let later = stage.now + std::time::Duration::from_secs(3600);
        let (ours, theirs) = (stage.queue.next(later), again.next(later));
        prop_assert_eq!(ours, theirs);
    }

    #[test]
    fn nothing_starves(
        limits in limits(),
        inputs in prop::collection::vec(input(), 1..80),
    ) {
        let mut stage = Stage::new(limits);
        inputs.iter().for_each(|input| stage.take(input));
        for fact in stage.queue.resumed() {
            stage.note(fact);
        }
        (40..44).for_each(|number| stage.note(QueueFact::Withdrawn { item: id(number) }));
        let waiting = |stage: &Stage| {
            let mut entries = stage.queue.state().items.values();
            entries.any(|entry| matches!(entry.status, ItemStatus::Waiting { .. }))
        };
        // Everything that waits is served after as many ends as there are items.
        for _ in 0..100 {
            stage.pass(600);
            stage.next();
            let running = stage.running();
            running.iter().for_each(|id| stage.finish(&id.0));
        }
        prop_assert!(!waiting(&stage));
    }

    #[test]
    fn an_item_of_another_project_waits_for_at_most_one_slot(
        global in 1..9u32,
        many in 1..60usize,
        ends in prop::collection::vec(any::<usize>(), 0..30),
    ) {
        let mut stage = Stage::new(Limits::global(global));
        (0..many).for_each(|n| stage.enqueue(&format!("a{n} priority={}", n % 3)));
        stage.next();
        for end in ends {
            let running = stage.running();
            let Some(id) = running.get(end % running.len().max(1)) else { break };
            stage.finish(&id.0);
            stage.next();
        }
        let full = stage.queue.running() >= global;
        stage.enqueue("b project=q priority=-5");
        if full {
            prop_assert_eq!(stage.next(), "");
            let first = stage.running()[0].clone();
            stage.finish(&first.0);
        }
        prop_assert_eq!(stage.next(), "b");
    }
}
