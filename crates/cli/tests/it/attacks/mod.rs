//! Nothing does harm unasked: the corpus of attacks in `tests/attacks`, run with the real binary, as the current user and as
//! `nobody`, and on a kernel that refuses namespaces; lines that a grammar makes up; and a control group that must go on working.

mod batch;
mod controls;
mod fuzz;
mod grammar;
mod machine;

use parking_lot::Mutex;
use std::collections::BTreeSet;

use hangar_test_support::attacks::{Attack, Corpus, Harm};

use self::batch::{Way, each, escapes};
use self::machine::{Ground, User, may_become_nobody};

/// Fewer lines than this would not be the corpus.
const LINES: usize = 400;

fn check(user: User, env: &[(&str, &str)]) {
    check_these(&Corpus::read(), user, env);
}

fn check_these(corpus: &Corpus, user: User, env: &[(&str, &str)]) {
    let ground = Ground::new(user);
    let escapes = escapes(corpus, Way { ground: &ground, env });
    let listed: Vec<&str> = escapes.iter().map(|escape| escape.text.as_str()).collect();
    assert!(
        escapes.is_empty(),
        "{} of {} lines did harm:\n{}",
        escapes.len(),
        corpus.attacks.len(),
        listed.join("\n")
    );
}

#[test]
fn no_attack_does_harm() {
    check(User::Current, &[]);
}

#[test]
fn no_attack_of_an_ordinary_user_does_harm() {
    // Without the right to become somebody else, the current user is an ordinary one.
    if may_become_nobody() {
        check(User::Nobody, &[]);
    }
}

#[test]
fn no_attack_does_harm_where_namespaces_are_refused() {
    let mut corpus = Corpus::read();
    corpus.attacks.retain(|attack| !attack.by_mounts);
    check_these(&corpus, User::Current, &[("HANGAR_SANDBOX_WITHOUT", "namespaces")]);
}

#[test]
fn there_are_enough_attacks_of_every_kind_and_each_is_its_own() {
    let corpus = Corpus::read();
    let all: BTreeSet<_> = corpus.attacks.iter().map(|attack| (attack.section, &attack.command)).collect();
    assert!(
        all.len() >= LINES && all.len() == corpus.attacks.len(),
        "{} of {}",
        all.len(),
        corpus.attacks.len()
    );
    for harm in Harm::ALL {
        let count = corpus.attacks.iter().filter(|attack| attack.harm == harm).count();
        assert!(count >= 10, "{count} lines that try `{}`", harm.word());
    }
}

/// An attack that would not work anyway proves nothing.
#[test]
fn every_attack_does_harm_where_nothing_stops_it() {
    let (corpus, ground) = (Corpus::read(), Ground::new(User::Current));
    let attacks: Vec<&Attack> =
        corpus.attacks.iter().filter(|attack| !attack.perhaps && attack.then.is_empty()).collect();
    let harmless = Mutex::new(Vec::new());
    each(&attacks, |attack| {
        let section = corpus.section(attack.section);
        let mut machine = ground.machine(&section.setup);
        let env: Vec<(&str, &str)> =
            section.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let run = machine.free(&machine.fill_in(&attack.command), &env);
        if machine.harm_without_limits(&run, &section.watch).is_empty() {
            let place = corpus.place(attack.section, attack.line);
            let text = format!("{place}: {:?}: {}", attack.command, machine.printed());
            harmless.lock().push(text);
        }
    });
    let mut harmless = harmless.into_inner();
    harmless.sort();
    assert!(harmless.is_empty(), "{} attacks do no harm:\n{}", harmless.len(), harmless.join("\n"));
}
