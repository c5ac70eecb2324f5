//! Lines that a grammar makes up, run without any flag: nothing inside may change, and nothing outside may change or be read.
//!
//! `HANGAR_FUZZ_SEED` tries other lines and `HANGAR_FUZZ_LINES` more of them.

use hangar_test_support::attacks::{Harm, Watch, as_line};
use parking_lot::Mutex;

use super::batch::{bash, each};
use super::grammar::{Dice, Parts, line, text};
use super::machine::{Ground, User};

/// The seed, unless the environment has another: the same lines in every run.
const SEED: u64 = 13;
/// How many lines are tried, unless the environment wants more.
const LINES: usize = 1200;
/// Lines that share a session.
const BATCH: usize = 40;
/// Escapes that are made smaller and shown.
const SHOWN: usize = 20;

/// Names that lines may trip over, and links that lead out.
const SETUP: &str = "ln -s ../secret.txt link; ln -s ../secret.txt -- -link; ln -s .. up; ln -s ../secret.txt a\n\
                     printf x > 'x;touch P'; ln -s ../../secret.txt d1/y";

const WATCH: &[Watch] = &[Watch::Inside, Watch::Outside, Watch::Reads, Watch::Network, Watch::Processes];

fn number(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")),
        Err(_) => default,
    }
}

fn harm(ground: &Ground, lines: &[&Parts]) -> Vec<String> {
    let mut machine = ground.machine(SETUP);
    let calls: Vec<String> = lines.iter().map(|parts| bash(&machine.fill_in(&text(parts)))).collect();
    let run = machine.session(&calls, &[], &[]);
    machine.harm(&run, WATCH)
}

/// The line without the parts that its harm does not need.
fn minimise(ground: &Ground, mut parts: Parts) -> (Parts, Vec<String>) {
    let mut found = harm(ground, &[&parts]);
    let mut index = 0;
    while index < parts.len() && parts.len() > 1 {
        let mut fewer = parts.clone();
        fewer.remove(index);
        let still = harm(ground, &[&fewer]);
        if still.is_empty() {
            index += 1;
        } else {
            (parts, found) = (fewer, still);
        }
    }
    (parts, found)
}

fn kind(harm: &[String]) -> Harm {
    let begins = |word: &str| harm.iter().any(|what| what.starts_with(word));
    if begins("changed ") {
        Harm::Creates
    } else if begins("reached ") {
        Harm::Reaches
    } else if begins("ended ") {
        Harm::Signals
    } else if begins("left ") {
        Harm::Outlives
    } else {
        Harm::Reads
    }
}

#[test]
fn no_line_of_the_grammar_does_harm() {
    let seed = number("HANGAR_FUZZ_SEED", SEED);
    let count = usize::try_from(number("HANGAR_FUZZ_LINES", LINES as u64)).expect("a number of lines");
    println!("seed {seed}, {count} lines");
    let mut dice = Dice::new(seed);
    let lines: Vec<Parts> = (0..count).map(|_| line(&mut dice)).collect();
    let batches: Vec<&[Parts]> = lines.chunks(BATCH).collect();
    let ground = Ground::new(User::Current);
    let escapes = Mutex::new(Vec::new());
    each(&batches, |batch| {
        let together = harm(&ground, &batch.iter().collect::<Vec<_>>());
        if together.is_empty() {
            return;
        }
        let alone: Vec<&Parts> = batch.iter().filter(|parts| !harm(&ground, &[parts]).is_empty()).collect();
        let mut escapes = escapes.lock();
        if alone.is_empty() {
            let lines: Vec<String> = batch.iter().map(|parts| text(parts)).collect();
            escapes.push((lines.join("\n"), together));
        }
        for parts in alone {
            let (parts, found) = if escapes.len() < SHOWN {
                minimise(&ground, parts.clone())
            } else {
                (parts.clone(), Vec::new())
            };
            escapes.push((as_line(kind(&found), &text(&parts)), found));
        }
    });
    let escapes = escapes.into_inner();
    let shown: Vec<String> =
        escapes.iter().take(SHOWN).map(|(line, found)| format!("{line}\n  # {}", found.join(", "))).collect();
    assert!(
        escapes.is_empty(),
        "seed {seed}: {} of {count} lines did harm; add to the corpus:\n{}",
        escapes.len(),
        shown.join("\n")
    );
}
