//! Runs many lines of the corpus cheaply: a session for each batch, and for each line of a batch that did harm.

use parking_lot::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hangar_test_support::attacks::{Attack, Corpus, Section};
use serde_json::json;

use super::machine::{Ground, Machine};

/// Lines that share a session. They share its workspace too, so that harm is looked for again with each alone.
const BATCH: usize = 24;
/// Sessions at once, unless the machine has fewer processors.
const AT_ONCE: usize = 4;

/// How sessions are started.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub(super) ground: &'a Ground,
    /// Variables of the session besides those of the section.
    pub(super) env: &'a [(&'a str, &'a str)],
}

/// A line that did harm, with what it did.
#[derive(Debug, Clone)]
pub(super) struct Escape {
    /// Index in the corpus, for order.
    pub(super) number: usize,
    pub(super) text: String,
}

/// A call of the shell tool.
pub(super) fn bash(command: &str) -> String {
    format!("TOOL:bash:{}", json!({ "command": command, "description": "Try" }))
}

fn calls(machine: &Machine, attack: &Attack) -> Vec<String> {
    let mut calls = vec![bash(&machine.fill_in(&attack.command))];
    calls.extend(attack.then.iter().map(|marker| machine.fill_in(marker)));
    calls
}

/// Effects of the lines of one section on a machine of their own.
fn harm_of(section: &Section, attacks: &[&Attack], way: Way<'_>) -> Vec<String> {
    let mut machine = way.ground.machine(&section.setup);
    let calls: Vec<String> = attacks.iter().flat_map(|attack| calls(&machine, attack)).collect();
    let env: Vec<(&str, &str)> =
        section.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let run = machine.session(&calls, &section.flags, &[&env, way.env].concat());
    let mut harm = machine.harm(&run, &section.watch);
    if run.exit != 0 {
        harm.push(format!("the session ended with {}: {}", run.exit, run.stderr));
    }
    harm
}

/// Does something with each of many things, some at once.
pub(super) fn each<T: Sync>(things: &[T], act: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(AT_ONCE));
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(thing) = things.get(next.fetch_add(1, Ordering::Relaxed)) {
                    act(thing);
                }
            });
        }
    });
}

/// All lines that do harm.
pub(super) fn escapes(corpus: &Corpus, way: Way<'_>) -> Vec<Escape> {
    let numbered: Vec<(usize, &Attack)> = corpus.attacks.iter().enumerate().collect();
    let batches: Vec<&[(usize, &Attack)]> = numbered
        .chunk_by(|one, other| one.1.section == other.1.section)
        .flat_map(|section| section.chunks(BATCH))
        .collect();
    let found = Mutex::new(Vec::new());
    each(&batches, |batch| {
        let section = corpus.section(batch[0].1.section);
        let attacks: Vec<&Attack> = batch.iter().map(|(_, attack)| *attack).collect();
        let together = harm_of(section, &attacks, way);
        if together.is_empty() {
            return;
        }
        let mut escapes = Vec::new();
        for (number, attack) in *batch {
            let harm = harm_of(section, &[attack], way);
            if !harm.is_empty() {
                let place = corpus.place(attack.section, attack.line);
                let text = format!("{place}: {}: {:?}", harm.join(", "), attack.command);
                escapes.push(Escape { number: *number, text });
            }
        }
        if escapes.is_empty() {
            let (number, first) = batch[0];
            let place = corpus.place(first.section, first.line);
            let text = format!(
                "{place} and the {} lines behind it together: {}",
                batch.len() - 1,
                together.join(", ")
            );
            escapes.push(Escape { number, text });
        }
        found.lock().extend(escapes);
    });
    let mut found = found.into_inner();
    found.sort_by_key(|escape| escape.number);
    found
}
