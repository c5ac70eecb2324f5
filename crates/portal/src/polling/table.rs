//! Sessions, tasks and jobs by the ids that these routes give them: `session-1`, `task-1`, `job-1`, counted from the start
//! of the server.
//!
//! Open entities stay. Ended ones stay until every reader has read their end, within a limit: the oldest is dropped
//! first.

use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Maximum number of open entities of a kind that clients may create. Those of a job are bounded by the job.
const MOST_OPEN: usize = 4096;
/// Number of ended entities of a kind that are kept, and their total size.
const MOST_ENDED: usize = 512;
const MOST_ENDED_BYTES: usize = 64 << 20;

/// Entity that can be polled.
pub(crate) trait Entity {
    const PREFIX: &'static str;

    fn is_open(&self) -> bool;

    /// Whether no client will read it again.
    fn is_done(&self) -> bool;

    fn bytes(&self) -> usize;
}

#[derive(Debug, thiserror::Error)]
#[error("{MOST_OPEN} of this kind are open; stop some first")]
pub(crate) struct Full;

pub(crate) struct EntityTable<E> {
    places: Mutex<Places<E>>,
}

/// An entity with its id.
pub(crate) struct Named<E> {
    pub(crate) id: String,
    pub(crate) entity: Arc<E>,
}

impl<E> Clone for Named<E> {
    fn clone(&self) -> Self {
        Self { id: self.id.clone(), entity: Arc::clone(&self.entity) }
    }
}

struct Places<E> {
    last: u64,
    all: BTreeMap<u64, Arc<E>>,
}

impl<E> Default for EntityTable<E> {
    fn default() -> Self {
        Self { places: Mutex::new(Places { last: 0, all: BTreeMap::new() }) }
    }
}

impl<E: Entity> EntityTable<E> {
    /// Checks that a client may open another one.
    pub(crate) fn check_room(&self) -> Result<(), Full> {
        let open = self.places.lock().all.values().filter(|entity| entity.is_open()).count();
        if open < MOST_OPEN { Ok(()) } else { Err(Full) }
    }

    /// Adds an entity and gives it the next id.
    pub(crate) fn put(&self, entity: E) -> Named<E> {
        let mut places = self.places.lock();
        places.tidy();
        places.last += 1;
        let number = places.last;
        let entity = Arc::new(entity);
        places.all.insert(number, Arc::clone(&entity));
        Named { id: format!("{}-{number}", E::PREFIX), entity }
    }

    pub(crate) fn find(&self, id: &str) -> Option<Arc<E>> {
        let number = id.strip_prefix(E::PREFIX)?.strip_prefix('-')?;
        // One way to write each id.
        let plain = number.bytes().all(|byte| byte.is_ascii_digit()) && !number.starts_with('0');
        let number = number.parse().ok().filter(|_| plain)?;
        let mut places = self.places.lock();
        let found = places.all.get(&number)?;
        if found.is_done() {
            places.all.remove(&number);
            return None;
        }
        Some(Arc::clone(found))
    }

    /// All of them, oldest first, with their ids.
    pub(crate) fn all(&self) -> Vec<Named<E>> {
        let places = self.places.lock();
        let present = places.all.iter().filter(|(_, entity)| !entity.is_done());
        present
            .map(|(number, entity)| Named {
                id: format!("{}-{number}", E::PREFIX),
                entity: Arc::clone(entity),
            })
            .collect()
    }

    pub(crate) fn any_open(&self) -> bool {
        self.places.lock().all.values().any(|entity| entity.is_open())
    }
}

impl<E: Entity> Places<E> {
    fn tidy(&mut self) {
        self.all.retain(|_, entity| !entity.is_done());
        let ended: Vec<(u64, usize)> = self
            .all
            .iter()
            .filter(|(_, entity)| !entity.is_open())
            .map(|(number, entity)| (*number, entity.bytes()))
            .collect();
        let mut left = ended.len();
        let mut bytes: usize = ended.iter().map(|(_, bytes)| bytes).sum();
        for (number, weight) in ended {
            if left <= MOST_ENDED && bytes <= MOST_ENDED_BYTES {
                break;
            }
            self.all.remove(&number);
            left -= 1;
            bytes -= weight;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::*;

    const OPEN: u8 = 0;
    const ENDED: u8 = 1;
    const DONE: u8 = 2;

    struct Thing(AtomicU8, usize);

    impl Entity for Thing {
        const PREFIX: &'static str = "thing";

        fn is_open(&self) -> bool {
            self.0.load(Ordering::Relaxed) == OPEN
        }

        fn is_done(&self) -> bool {
            self.0.load(Ordering::Relaxed) == DONE
        }

        fn bytes(&self) -> usize {
            self.1
        }
    }

    fn thing(state: u8, bytes: usize) -> Thing {
        Thing(AtomicU8::new(state), bytes)
    }

    #[test]
    fn ids_are_counted_and_never_given_again() {
        let table = EntityTable::default();
        let first = table.put(thing(OPEN, 0));
        first.entity.0.store(DONE, Ordering::Relaxed);
        let second = table.put(thing(OPEN, 0));
        assert_eq!((first.id.as_str(), second.id.as_str()), ("thing-1", "thing-2"));
        assert!(table.find("thing-1").is_none() && table.find("thing-2").is_some());
        for wrong in
            ["thing-02", "thing-+2", "thing-", "2", "job-2", "thing-2 ", "thing-99999999999999999999"]
        {
            assert!(table.find(wrong).is_none(), "{wrong}");
        }
    }

    #[test]
    fn there_is_room_for_so_many_that_have_ended_and_for_so_much() {
        let table = EntityTable::default();
        for _ in 0..MOST_ENDED + 5 {
            table.put(thing(ENDED, 1));
        }
        table.put(thing(OPEN, 0));
        assert!(table.find("thing-5").is_none() && table.find("thing-6").is_some());
        for _ in 0..3 {
            table.put(thing(ENDED, MOST_ENDED_BYTES / 2));
        }
        table.put(thing(OPEN, 0));
        let ended = table.all().into_iter().filter(|named| !named.entity.is_open());
        assert_eq!(ended.map(|named| named.entity.bytes()).sum::<usize>(), MOST_ENDED_BYTES);
        assert!(table.find(&format!("thing-{}", MOST_ENDED + 6)).is_some(), "what is open stays");
    }

    #[test]
    fn not_everything_can_be_open_at_once() {
        let table = EntityTable::default();
        for _ in 0..MOST_OPEN {
            table.put(thing(OPEN, 0));
        }
        assert!(table.check_room().is_err());
        table.find("thing-7").unwrap().0.store(ENDED, Ordering::Relaxed);
        assert!(table.check_room().is_ok());
    }
}
