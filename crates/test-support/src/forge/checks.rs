//! Checks of the simulated forges: a script runs on each commit that becomes the head of a pull request.

use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use super::{ForgeServer, Repository};

#[derive(Default)]
pub(super) struct Checks {
    /// Name and script of each check.
    scripts: Vec<(String, String)>,
    runs: BTreeMap<u64, Run>,
    /// Whether checks that were started do not begin.
    paused: bool,
}

pub(super) struct Run {
    pub(super) name: String,
    pub(super) commit: String,
    /// `queued`, `in_progress` or `completed`.
    pub(super) status: &'static str,
    /// `success` or `failure`.
    pub(super) conclusion: Option<&'static str>,
    log: String,
}

impl ForgeServer {
    /// Lets a script run on the files of each head of a pull request. Its exit code is the result.
    pub fn check(&self, name: &str, script: &str) {
        self.repository().checks.scripts.push((name.to_owned(), script.to_owned()));
    }

    /// Keeps new checks queued, or lets them go.
    pub fn pause_checks(&self, paused: bool) {
        let mut repository = self.repository();
        repository.checks.paused = paused;
        repository.start_checks(&self.state);
    }
}

impl Repository {
    /// Starts the checks of heads that have none.
    pub(super) fn start_checks(&mut self, state: &Arc<Mutex<Repository>>) {
        let heads: Vec<String> = self.pulls.values().filter_map(|pull| self.open_head(pull)).collect();
        for head in heads {
            if !self.checks.runs.values().any(|run| run.commit == head) {
                for (name, _) in self.checks.scripts.clone() {
                    let id = 5000 + self.checks.runs.len() as u64;
                    let run = Run {
                        name,
                        commit: head.clone(),
                        status: "queued",
                        conclusion: None,
                        log: String::new(),
                    };
                    self.checks.runs.insert(id, run);
                }
            }
        }
        if self.checks.paused {
            return;
        }
        let Some(bare) = self.git.as_ref().map(super::git::Bare::path) else { return };
        for (id, run) in self.checks.runs.iter_mut().filter(|(_, run)| run.status == "queued") {
            run.status = "in_progress";
            let script = self.checks.scripts.iter().find(|(name, _)| *name == run.name);
            let (_, script) = script.expect("a check has a script").clone();
            let (id, commit, bare, state) = (*id, run.commit.clone(), bare.clone(), Arc::clone(state));
            std::thread::spawn(move || {
                let (code, log) = outcome(&bare, &commit, &script);
                let mut repository = state.lock().expect("no test panicked with it");
                if let Some(run) = repository.checks.runs.get_mut(&id) {
                    run.status = "completed";
                    run.conclusion = Some(if code { "success" } else { "failure" });
                    run.log = log;
                    let event = format!("check {} {}", run.name, run.conclusion.unwrap_or_default());
                    repository.events.push(event);
                }
            });
        }
    }

    /// Runs of a commit, by their numbers.
    pub(super) fn runs(&self, commit: &str) -> impl Iterator<Item = (u64, &Run)> {
        self.checks.runs.iter().filter(move |(_, run)| run.commit == commit).map(|(id, run)| (*id, run))
    }

    pub(super) fn commit_of_run(&self, id: u64) -> Option<String> {
        self.checks.runs.get(&id).map(|run| run.commit.clone())
    }

    pub(super) fn check_log(&self, id: u64) -> Option<&str> {
        self.checks.runs.get(&id).filter(|run| run.status == "completed").map(|run| run.log.as_str())
    }
}

fn outcome(bare: &std::path::Path, commit: &str, script: &str) -> (bool, String) {
    let work = tempfile::tempdir().expect("a directory for a check");
    let prepared =
        format!("git --git-dir '{}' archive {commit} | tar -x && exec 2>&1\n{script}", bare.display());
    let output =
        Command::new("sh").arg("-c").arg(prepared).current_dir(work.path()).stdin(Stdio::null()).output();
    let output = output.expect("sh runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let stamped = text.lines().map(|line| format!("2026-01-01T00:00:00.0000000Z {line}\n"));
    (output.status.success(), stamped.collect())
}
