//! Drift of an agent: capabilities that a probe verified for a version, and unknown output since then.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use hangar_runtimes::runtime::Preflight;
use serde::{Deserialize, Serialize};

/// Types of output that are remembered per agent.
const MAX_UNKNOWN: usize = 64;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct ProbeRecord {
    pub(super) version: Option<String>,
    /// Hash of its help.
    pub(super) help_hash: Option<String>,
    pub(super) probed_at: Option<String>,
    pub(super) proofs: BTreeMap<String, Proof>,
    pub(super) unknown: BTreeSet<String>,
}

/// Result of probing one capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Proof {
    /// Seen, as claimed.
    Proved,
    /// Not there, as claimed.
    Absent,
    /// Claimed, and not seen.
    Missing,
    /// Seen, and not claimed.
    Unclaimed,
}

impl Proof {
    pub(super) fn of(claimed: bool, seen: bool) -> Self {
        match (claimed, seen) {
            (true, true) => Proof::Proved,
            (false, false) => Proof::Absent,
            (true, false) => Proof::Missing,
            (false, true) => Proof::Unclaimed,
        }
    }

    pub(super) fn is_as_claimed(self) -> bool {
        matches!(self, Proof::Proved | Proof::Absent)
    }
}

impl ProbeRecord {
    /// Loads the record; empty if there is none or it cannot be read, because the next probe writes it again.
    pub(super) fn load(home: &Path, runtime: &str) -> Self {
        let read = std::fs::read(file(home, runtime)).ok();
        read.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    pub(super) fn save(&self, home: &Path, runtime: &str) -> Result<()> {
        let file = file(home, runtime);
        hangar_disk::keep(&file, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("cannot write {}", file.display()))
    }

    /// Differences to the probed agent, one sentence each.
    pub(super) fn drift(&self, now: &Preflight) -> Vec<String> {
        let mut drift = Vec::new();
        match (&self.version, &now.version) {
            (Some(before), Some(now)) if before != now => {
                drift.push(format!("version {now} is installed, {before} was probed"));
            }
            (Some(_), Some(_))
                if self.help_hash.is_some() && now.help_hash.is_some() && self.help_hash != now.help_hash =>
            {
                drift.push("its --help has changed since it was probed".to_owned());
            }
            _ => {}
        }
        if !self.unknown.is_empty() {
            let types: Vec<&str> = self.unknown.iter().map(String::as_str).collect();
            drift.push(format!("it says things that are not known: {}", types.join(", ")));
        }
        for (name, proof) in &self.proofs {
            match proof {
                Proof::Missing => drift.push(format!("{name} is claimed and was not seen")),
                Proof::Unclaimed => drift.push(format!("{name} was seen and is not claimed")),
                Proof::Proved | Proof::Absent => {}
            }
        }
        drift
    }
}

fn file(home: &Path, runtime: &str) -> PathBuf {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    home.join("runtimes").join(format!("{}.json", runtime.chars().map(safe).collect::<String>()))
}

/// Stores types of output that no adapter knows. A failure to store them does not fail the run.
pub(super) fn note_unknown(home: &Path, runtime: &str, types: &BTreeSet<String>) {
    let mut known = ProbeRecord::load(home, runtime);
    let room = MAX_UNKNOWN.saturating_sub(known.unknown.len());
    let new: Vec<String> = types.difference(&known.unknown).take(room).cloned().collect();
    if new.is_empty() {
        return;
    }
    known.unknown.extend(new);
    if let Err(error) = known.save(home, runtime) {
        tracing::debug!(%error, "drift was not remembered");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(known: ProbeRecord, version: &str, help: &str, expected: &[&str]) {
        let now = Preflight {
            version: Some(version.to_owned()),
            help_hash: Some(help.to_owned()),
            ..Preflight::default()
        };
        assert_eq!(known.drift(&now), expected);
    }

    fn probed() -> ProbeRecord {
        ProbeRecord {
            version: Some("1.0".to_owned()),
            help_hash: Some("a".to_owned()),
            ..ProbeRecord::default()
        }
    }

    #[test]
    fn an_agent_as_it_was_probed_has_not_drifted() {
        check(probed(), "1.0", "a", &[]);
    }

    #[test]
    fn another_version_is_drift() {
        check(probed(), "1.1", "b", &["version 1.1 is installed, 1.0 was probed"]);
    }

    #[test]
    fn other_help_of_the_same_version_is_drift() {
        check(probed(), "1.0", "b", &["its --help has changed since it was probed"]);
    }

    #[test]
    fn words_that_nobody_knows_are_drift() {
        let known = ProbeRecord { unknown: BTreeSet::from(["moon.phase".to_owned()]), ..probed() };
        check(known, "1.0", "a", &["it says things that are not known: moon.phase"]);
    }

    #[test]
    fn an_agent_that_was_never_probed_has_nothing_to_drift_from() {
        check(ProbeRecord::default(), "1.0", "a", &[]);
    }
}
