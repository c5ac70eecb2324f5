//! The queue of orders in a file of one machine, with the same rules as the one on the servers.
//!
//! ```text
//! <dir>/
//!     orders.jsonl    the records; replaced by the state when it has grown
//!     orders.lock     held by the process that reads and appends
//! ```
//!
//! A lease is a time in the file, so a process that was killed keeps nothing.

use std::collections::BTreeSet;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hangar_disk::{ensure_dir, private};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::FleetError;
use crate::order::{Order, OrderId};
use crate::queue::{OrderQueue, Settled, Ticket};

const RECORDS: &str = "orders.jsonl";
const LOCK: &str = "orders.lock";
/// Size from which on the file is replaced by its state, and the most that is read.
const COMPACT_BYTES: usize = 4 << 20;
const MAX_BYTES: u64 = 512 << 20;
/// Ids that are remembered after their orders are over.
const REMEMBERED: usize = 10_000;
/// Pause between two looks at an empty queue.
const LOOK: Duration = Duration::from_millis(50);

/// The queue of a directory. Clones share it.
#[derive(Debug, Clone)]
pub struct FileQueue(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    lease: Duration,
    now: fn() -> Timestamp,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase", tag = "do")]
enum Step {
    Put {
        order: Box<Order>,
    },
    Given {
        id: OrderId,
        #[serde(with = "crate::time")]
        until: Timestamp,
    },
    Extended {
        id: OrderId,
        delivery: u64,
        #[serde(with = "crate::time")]
        until: Timestamp,
    },
    Back {
        id: OrderId,
        delivery: u64,
        #[serde(with = "crate::time")]
        not_before: Timestamp,
    },
    Over {
        id: OrderId,
        delivery: u64,
    },
    /// An order as it was when the file was replaced.
    Kept {
        entry: Box<Entry>,
    },
    /// Order that is over, whose id is remembered.
    Known {
        id: OrderId,
    },
    Pool {
        name: String,
    },
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    order: Order,
    deliveries: u64,
    /// Time until which it is with a worker, or not given out.
    #[serde(with = "crate::time")]
    busy_until: Timestamp,
}

/// The queue as the file tells it.
#[derive(Debug, Default)]
struct Fold {
    /// In the order in which they were put.
    entries: Vec<Entry>,
    known: BTreeSet<OrderId>,
    over: Vec<OrderId>,
    pools: BTreeSet<String>,
}

impl Fold {
    fn entry(&mut self, id: &OrderId, delivery: u64) -> Option<&mut Entry> {
        // A worker whose order was given to another says nothing about it.
        self.entries.iter_mut().find(|entry| entry.order.id == *id && entry.deliveries == delivery)
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Put { order } => {
                self.pools.insert(order.labels.pool());
                if self.known.insert(order.id.clone()) {
                    let busy_until = Timestamp::UNIX_EPOCH;
                    self.entries.push(Entry { order: *order, deliveries: 0, busy_until });
                }
            }
            Step::Given { id, until } => {
                if let Some(entry) = self.entries.iter_mut().find(|entry| entry.order.id == id) {
                    entry.deliveries += 1;
                    entry.busy_until = until;
                }
            }
            Step::Extended { id, delivery, until } | Step::Back { id, delivery, not_before: until } => {
                if let Some(entry) = self.entry(&id, delivery) {
                    entry.busy_until = until;
                }
            }
            Step::Over { id, delivery } => {
                if self.entry(&id, delivery).is_some() {
                    self.entries.retain(|entry| entry.order.id != id);
                    self.over.push(id);
                }
            }
            Step::Kept { entry } => {
                self.pools.insert(entry.order.labels.pool());
                self.known.insert(entry.order.id.clone());
                self.entries.push(*entry);
            }
            Step::Known { id } => {
                self.known.insert(id.clone());
                self.over.push(id);
            }
            Step::Pool { name } => drop(self.pools.insert(name)),
        }
    }

    fn steps(self) -> Vec<Step> {
        let forgotten = self.over.len().saturating_sub(REMEMBERED);
        let pools = self.pools.into_iter().map(|name| Step::Pool { name });
        let known = self.over.into_iter().skip(forgotten).map(|id| Step::Known { id });
        let kept = self.entries.into_iter().map(|entry| Step::Kept { entry: Box::new(entry) });
        pools.chain(known).chain(kept).collect()
    }
}

impl FileQueue {
    pub fn open(dir: &Path, lease: Duration, now: fn() -> Timestamp) -> Result<Self, FleetError> {
        ensure_dir(dir).map_err(|error| failed(dir, &error))?;
        Ok(Self(Arc::new(Inner { dir: dir.to_owned(), lease, now })))
    }

    /// Reads the queue, decides, and appends the decision, while no other process does.
    async fn transact<T: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut Fold, Timestamp, Duration) -> (Vec<Step>, T) + Send + 'static,
    ) -> Result<T, FleetError> {
        let inner = Arc::clone(&self.0);
        let work = tokio::task::spawn_blocking(move || inner.transact(decide));
        work.await.map_err(|error| FleetError::failed("using the queue of orders", &error))?
    }
}

fn failed(path: &Path, error: &io::Error) -> FleetError {
    FleetError::Failed {
        doing: format!("using the queue of orders in {}", path.display()),
        why: error.to_string(),
    }
}

impl Inner {
    fn transact<T>(
        &self,
        decide: impl FnOnce(&mut Fold, Timestamp, Duration) -> (Vec<Step>, T),
    ) -> Result<T, FleetError> {
        self.locked(decide).map_err(|error| failed(&self.dir, &error))
    }

    fn locked<T>(
        &self,
        decide: impl FnOnce(&mut Fold, Timestamp, Duration) -> (Vec<Step>, T),
    ) -> io::Result<T> {
        let lock = private().write(true).create(true).truncate(false).open(self.dir.join(LOCK))?;
        // Held for a few writes.
        lock.lock()?;
        let path = self.dir.join(RECORDS);
        let mut file = private().read(true).append(true).create(true).open(&path)?;
        let mut text = Vec::new();
        Read::take(&mut file, MAX_BYTES).read_to_end(&mut text)?;
        let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if whole < text.len() {
            // The end of a process that was killed.
            OpenOptions::new().write(true).open(&path)?.set_len(whole as u64)?;
            text.truncate(whole);
        }
        let mut fold = Fold::default();
        for line in text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            fold.apply(serde_json::from_slice(line)?);
        }
        let (steps, answer) = decide(&mut fold, (self.now)(), self.lease);
        append(&mut file, &steps)?;
        if text.len() > COMPACT_BYTES {
            steps.into_iter().for_each(|step| fold.apply(step));
            hangar_disk::replace(&path, &lines(&fold.steps())?)?;
        }
        Ok(answer)
    }
}

fn lines(steps: &[Step]) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for step in steps {
        serde_json::to_writer(&mut bytes, step)?;
        bytes.push(b'\n');
    }
    Ok(bytes)
}

fn append(file: &mut File, steps: &[Step]) -> io::Result<()> {
    if steps.is_empty() {
        return Ok(());
    }
    file.write_all(&lines(steps)?)?;
    file.sync_data()
}

fn after(now: Timestamp, delay: Duration) -> Timestamp {
    now.saturating_add(jiff::SignedDuration::try_from(delay).unwrap_or(jiff::SignedDuration::MAX))
        .unwrap_or(Timestamp::MAX)
}

#[async_trait]
impl OrderQueue for FileQueue {
    async fn put(&self, order: &Order) -> Result<bool, FleetError> {
        let order = Box::new(order.clone());
        self.transact(move |fold, _, _| match fold.known.contains(&order.id) {
            true => (Vec::new(), false),
            false => (vec![Step::Put { order }], true),
        })
        .await
    }

    async fn pools(&self) -> Result<Vec<String>, FleetError> {
        self.transact(|fold, _, _| (Vec::new(), fold.pools.iter().cloned().collect())).await
    }

    async fn pull(&self, pool: &str, wait: Duration) -> Result<Option<Box<dyn Ticket>>, FleetError> {
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let wanted = pool.to_owned();
            let given = self
                .transact(move |fold, now, lease| {
                    let free =
                        |entry: &&mut Entry| entry.busy_until <= now && entry.order.labels.pool() == wanted;
                    let Some(entry) = fold.entries.iter_mut().find(free) else { return (Vec::new(), None) };
                    let given = Step::Given { id: entry.order.id.clone(), until: after(now, lease) };
                    (vec![given], Some((entry.order.clone(), entry.deliveries + 1)))
                })
                .await?;
            if let Some((order, delivery)) = given {
                let payload = serde_json::to_vec(&order)
                    .map_err(|error| FleetError::failed("encoding an order", &error))?;
                return Ok(Some(Box::new(FileTicket {
                    queue: self.clone(),
                    id: order.id,
                    delivery,
                    payload,
                })));
            }
            if tokio::time::Instant::now() >= deadline {
                return Ok(None);
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn count(&self) -> Result<u64, FleetError> {
        self.transact(|fold, _, _| (Vec::new(), fold.entries.len() as u64)).await
    }
}

struct FileTicket {
    queue: FileQueue,
    id: OrderId,
    delivery: u64,
    payload: Vec<u8>,
}

#[async_trait]
impl Ticket for FileTicket {
    fn payload(&self) -> &[u8] {
        &self.payload
    }

    fn deliveries(&self) -> u64 {
        self.delivery
    }

    async fn extend(&self) -> Result<(), FleetError> {
        let (id, delivery) = (self.id.clone(), self.delivery);
        let kept = self
            .queue
            .transact(move |fold, now, lease| {
                let held = fold.entry(&id, delivery).is_some();
                let step = Step::Extended { id, delivery, until: after(now, lease) };
                (held.then_some(step).into_iter().collect(), held)
            })
            .await?;
        match kept {
            true => Ok(()),
            false => Err(FleetError::Invalid(format!("order {} is with another worker", self.id))),
        }
    }

    async fn settle(&self, how: Settled) -> Result<(), FleetError> {
        let (id, delivery) = (self.id.clone(), self.delivery);
        self.queue
            .transact(move |_, now, _| {
                let step = match how {
                    Settled::Done | Settled::Never => Step::Over { id, delivery },
                    Settled::GiveBack(delay) => Step::Back { id, delivery, not_before: after(now, delay) },
                };
                (vec![step], ())
            })
            .await
    }
}
