//! Interning of tool specifications, so that each is in memory once. They are constants in all but name, and a server
//! may have a thousand sessions.

use parking_lot::Mutex;
use std::sync::{Arc, Weak};

use crate::tool::ToolSpec;

/// Number of specifications, and of lists, that are interned. Beyond it each session has its own.
const MOST: usize = 256;

static SPECS: Mutex<Vec<Weak<ToolSpec>>> = Mutex::new(Vec::new());
static LISTS: Mutex<Vec<Weak<[Arc<ToolSpec>]>>> = Mutex::new(Vec::new());

/// Interns a specification.
pub fn spec(spec: ToolSpec) -> Arc<ToolSpec> {
    find(&SPECS, |known| *known == spec).unwrap_or_else(|| keep(&SPECS, Arc::new(spec)))
}

/// Interns the list of these specifications.
pub fn list<'a>(specs: impl Iterator<Item = &'a Arc<ToolSpec>>) -> Arc<[Arc<ToolSpec>]> {
    let specs: Vec<&Arc<ToolSpec>> = specs.collect();
    find(&LISTS, |known| known.iter().eq(specs.iter().copied()))
        .unwrap_or_else(|| keep(&LISTS, specs.into_iter().cloned().collect()))
}

type Pool<T> = Mutex<Vec<Weak<T>>>;

fn find<T: ?Sized>(pool: &Pool<T>, is_it: impl Fn(&T) -> bool) -> Option<Arc<T>> {
    let pool = pool.lock();
    pool.iter().filter_map(Weak::upgrade).find(|known| is_it(known))
}

fn keep<T: ?Sized>(pool: &Pool<T>, value: Arc<T>) -> Arc<T> {
    let mut pool = pool.lock();
    if pool.len() >= MOST {
        pool.retain(|known| known.strong_count() > 0);
    }
    if pool.len() < MOST {
        pool.push(Arc::downgrade(&value));
    }
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::ToolSchema;

    fn tool(name: &str) -> ToolSpec {
        let input = ToolSchema::function(json!({ "type": "object" }));
        ToolSpec { name: name.to_owned(), title: None, description: String::new(), input }
    }

    #[test]
    fn what_is_the_same_is_shared_and_what_is_not_is_not() {
        let (one, same, other) = (spec(tool("a")), spec(tool("a")), spec(tool("b")));
        assert!(Arc::ptr_eq(&one, &same) && !Arc::ptr_eq(&one, &other));
        let lists = [&[&one, &other][..], &[&one, &other], &[&other, &one], &[&one]]
            .map(|specs| list(specs.iter().copied()));
        assert!(Arc::ptr_eq(&lists[0], &lists[1]));
        assert!(!Arc::ptr_eq(&lists[0], &lists[2]) && !Arc::ptr_eq(&lists[0], &lists[3]));
    }

    #[test]
    fn what_nobody_has_any_more_makes_room() {
        for n in 0..2 * MOST {
            spec(tool(&format!("passing {n}")));
        }
        let kept = spec(tool("kept"));
        assert!(Arc::ptr_eq(&kept, &spec(tool("kept"))));
    }
}
