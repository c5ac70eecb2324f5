//! Random faults while orders come and go, then the checker. The same seed gives the same faults in the same order.
//!
//! `cargo xtask soak --minutes N --seed S` runs it for longer; the test alone ends after [`FAULTS`] faults.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use hangar_fleet::fold::SessionFold;
use hangar_fleet::record::OrderEnd;
use hangar_test_support::{NatsServers, Running, Signal};

use super::machines::{Fleet, Worker};

/// Faults of the short run.
const FAULTS: usize = 30;
const WORKERS: usize = 3;
/// Orders under way at once.
const ORDERS: usize = 3;
/// Tool calls of an order.
const STEPS: usize = 4;
/// Lease of its machines, in seconds: a worker on a machine that does much else must keep it.
const LEASE: u64 = 6;
/// Calls that agents make between two faults, at most: the faults fall into all stages of the work, however fast the machine is.
const CALLS: u64 = 4;
/// Time that agents get for these calls. Where workers are lost, it is the faults that go on.
const PATIENCE: Duration = Duration::from_secs(2 * LEASE);

/// Numbers that depend on the seed alone.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    fn index(&mut self, limit: usize) -> usize {
        usize::try_from(self.below(limit as u64)).unwrap()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    /// `kill -9` of a worker, which is started again.
    KillWorker(usize),
    /// A worker sleeps for longer than its lease.
    StopWorker(usize),
    /// A worker is told to end, and started again.
    EndWorker(usize),
    /// `kill -9` of a server, which is started again.
    KillServer(usize),
    /// The process that placed an order is killed. The order stays.
    KillClient(usize),
}

impl Fault {
    fn choose(random: &mut Random) -> Self {
        match random.below(8) {
            0..=2 => Fault::KillWorker(random.index(WORKERS)),
            3 => Fault::StopWorker(random.index(WORKERS)),
            4 => Fault::EndWorker(random.index(WORKERS)),
            5 | 6 => Fault::KillServer(random.index(3)),
            _ => Fault::KillClient(random.index(ORDERS)),
        }
    }
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

struct Soak {
    fleet: Fleet,
    workers: Vec<Option<Worker>>,
    /// Orders under way, after their sessions.
    orders: Vec<(String, Running)>,
    /// All sessions.
    sessions: Vec<String>,
    /// Sessions whose client was killed or failed, perhaps before its order was accepted.
    abandoned: BTreeSet<String>,
}

impl Soak {
    fn name(n: usize) -> String {
        format!("w{n}")
    }

    fn order(&mut self) {
        let id = uuid::Uuid::new_v4().to_string();
        let effects = self.fleet.here.root().join("effects").display().to_string();
        let mut prompt = String::new();
        for step in 0..STEPS {
            let command = format!("echo {id}-{step} >> {effects}; echo {step} >> work.txt; sleep 0.2");
            prompt.push_str(&format!("TOOL:bash:{{\"command\":\"{command}\"}}\n"));
        }
        prompt.push_str("SAY:done");
        let client =
            self.fleet.place(&prompt, &["--session-id", &id]).within(Duration::from_secs(1200)).start();
        self.orders.push((id.clone(), client));
        self.sessions.push(id);
    }

    fn restart(&mut self, n: usize) {
        let worker = self.workers[n].take().expect("a worker");
        let scratch = worker.scratch;
        drop(worker.running);
        self.workers[n] = Some(self.fleet.worker_in(scratch, &Self::name(n), &["--slots", "2"]));
    }

    fn strike(&mut self, fault: Fault) {
        match fault {
            Fault::KillWorker(n) => self.restart(n),
            Fault::EndWorker(n) => {
                let worker = self.workers[n].take().expect("a worker");
                worker.running.signal(Signal::TERM);
                worker.running.finish().expect_exit(0);
                self.workers[n] =
                    Some(self.fleet.worker_in(worker.scratch, &Self::name(n), &["--slots", "2"]));
            }
            Fault::StopWorker(n) => {
                let worker = self.workers[n].as_ref().expect("a worker");
                worker.running.signal(Signal::STOP);
                std::thread::sleep(Duration::from_secs(LEASE) + Duration::from_millis(500));
                worker.running.signal(Signal::CONT);
            }
            Fault::KillServer(n) => {
                self.fleet.servers.kill(n);
                self.fleet.servers.restart(n);
            }
            Fault::KillClient(n) => {
                let (session, client) = self.orders.remove(n % self.orders.len());
                client.try_signal(Signal::KILL);
                drop(client);
                self.abandoned.insert(session);
                self.order();
            }
        }
    }

    /// Waits until agents have made so many more calls.
    fn await_calls(&mut self, calls: u64) {
        let effects = self.fleet.here.root().join("effects");
        let count = || std::fs::read_to_string(&effects).map_or(0, |text| text.lines().count() as u64);
        let (wanted, deadline) = (count() + calls, Instant::now() + PATIENCE);
        while count() < wanted && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(20));
            self.refill();
        }
    }

    /// Places orders in place of those that have ended.
    fn refill(&mut self) {
        let ended: Vec<usize> = (0..self.orders.len()).filter(|n| self.orders[*n].1.has_ended()).collect();
        for n in ended.into_iter().rev() {
            self.settle(n);
            self.order();
        }
    }

    /// Takes an order out whose client has ended or will. One that failed may not have got its order accepted.
    fn settle(&mut self, n: usize) {
        let (session, client) = self.orders.remove(n);
        if client.finish().exit != 0 {
            self.abandoned.insert(session);
        }
    }
}

#[test]
fn random_faults_lose_nothing_and_repeat_nothing() {
    let (minutes, seed) = (number("HANGAR_SOAK_MINUTES", 0), number("HANGAR_SOAK_SEED", 1));
    let mut random = Random(seed);
    let fleet = Fleet::with_lease(NatsServers::three(), LEASE);
    let workers = (0..WORKERS).map(|n| Some(fleet.worker(&Soak::name(n), &["--slots", "2"]))).collect();
    let mut soak =
        Soak { fleet, workers, orders: Vec::new(), sessions: Vec::new(), abandoned: BTreeSet::new() };
    (0..ORDERS).for_each(|_| soak.order());
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let mut faults: BTreeMap<Fault, u32> = BTreeMap::new();
    while faults.values().sum::<u32>() < FAULTS as u32 || Instant::now() < end {
        let fault = Fault::choose(&mut random);
        *faults.entry(fault).or_default() += 1;
        soak.strike(fault);
        soak.await_calls(random.below(CALLS));
        soak.refill();
    }
    while !soak.orders.is_empty() {
        soak.settle(0);
    }
    // Everything that was accepted comes to its end.
    let (mut parked, mut takeovers) = (0, 0);
    let (unsure, accepted): (Vec<_>, Vec<_>) =
        soak.sessions.iter().partition(|session| soak.abandoned.contains(*session));
    for session in accepted.into_iter().chain(unsure) {
        if soak.abandoned.contains(session) && soak.fleet.was_never_accepted(session) {
            continue;
        }
        super::machines::until_log(&soak.fleet, session, "the order has ended", |fold| {
            !fold.over.is_empty() && fold.owner.is_none()
        });
        let claims = soak.fleet.check(session);
        takeovers += claims.len() - 1;
        let fold = SessionFold::of(&soak.fleet.log(session));
        parked += usize::from(fold.over.values().any(|end| matches!(end, OrderEnd::Parked { .. })));
    }
    let effects = std::fs::read_to_string(soak.fleet.here.root().join("effects")).unwrap();
    let mut times: BTreeMap<&str, u32> = BTreeMap::new();
    effects.lines().for_each(|line| *times.entry(line).or_default() += 1);
    let twice: Vec<_> = times.iter().filter(|(_, times)| **times > 1).collect();
    assert!(twice.is_empty(), "done twice: {twice:?}");
    println!(
        "seed {seed}: {faults:?}; {} sessions, {takeovers} takeovers, {parked} parked",
        soak.sessions.len()
    );
}
