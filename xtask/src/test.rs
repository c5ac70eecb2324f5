//! `cargo xtask test`: all that CI checks, in one run that starts from nothing but Rust, npm and Python.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use crate::{clients, shell, tidy, web};

pub(crate) fn run() -> Result<()> {
    let mut totals = Totals::default();
    let mut steps = Steps::default();
    steps.run("web", web::check);
    steps.run("web tests", web::test);
    steps.run("format", || shell::run(shell::program("cargo").args(["fmt", "--all", "--check"])));
    steps.run("lints", || {
        let clippy = ["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"];
        shell::run(shell::program("cargo").args(clippy))
    });
    steps.run("Node SDK", clients::install_node);
    steps.run("agents", clients::install_agents);
    steps.run("sshd", clients::install_sshd);
    steps.run("tmux", clients::install_tmux);
    steps.run("Chromium", clients::install_chromium);
    steps.run("Python SDK", clients::install_python);
    steps.run("NATS servers", clients::install_nats);
    steps.run("iproute2", clients::install_iproute);
    steps.run("Rust SDK", clients::build_rust);
    steps.run("tests", || run_tests(&mut totals));
    steps.run("doc tests", || {
        let doc = ["test", "--locked", "--workspace", "--doc"];
        shell::watch(shell::program("cargo").args(doc), |line| totals.note(line))
    });
    steps.run("advisories", check_advisories);
    steps.run("tidy", tidy::run);
    steps.report(&totals)
}

/// nextest runs each test in a process of its own and is faster; cargo's own runner finds the same failures.
fn run_tests(totals: &mut Totals) -> Result<()> {
    let mut command = shell::program("cargo");
    if shell::is_installed("cargo", &["nextest", "--version"]) {
        command.args(["nextest", "run", "--locked", "--workspace", "--no-fail-fast", "--color", "never"]);
    } else {
        println!("cargo-nextest is not installed; using `cargo test`");
        command.args(["test", "--locked", "--workspace", "--all-targets", "--no-fail-fast"]);
    }
    shell::watch(&mut command, |line| totals.note(line))
}

/// Known faults of dependencies, by whichever tool is installed. Licences and sources are checked by `tidy`.
fn check_advisories() -> Result<()> {
    if shell::is_installed("cargo", &["deny", "--version"]) {
        return shell::run(shell::program("cargo").args(["deny", "check", "advisories"]));
    }
    if shell::is_installed("cargo", &["audit", "--version"]) {
        return shell::run(shell::program("cargo").arg("audit"));
    }
    println!("neither cargo-deny nor cargo-audit is installed; advisories are not checked");
    Ok(())
}

#[derive(Default)]
struct Steps(Vec<(&'static str, Duration, Option<String>)>);

impl Steps {
    /// A failing step does not keep the others from running: one run tells all that is wrong.
    fn run(&mut self, name: &'static str, step: impl FnOnce() -> Result<()>) {
        println!("\n==> {name}");
        let start = Instant::now();
        let failure = step().err().map(|error| format!("{error:#}"));
        if let Some(failure) = &failure {
            println!("{name}: {failure}");
        }
        self.0.push((name, start.elapsed(), failure));
    }

    fn report(&self, totals: &Totals) -> Result<()> {
        println!();
        for (name, took, failure) in &self.0 {
            let outcome = failure.as_ref().map_or("ok".to_owned(), |failure| format!("FAILED: {failure}"));
            println!("{name:<14} {:>7.1} s  {outcome}", took.as_secs_f64());
        }
        let failed: Vec<&str> = self.0.iter().filter(|step| step.2.is_some()).map(|step| step.0).collect();
        println!("{totals}");
        if !failed.is_empty() {
            bail!("failed: {}", failed.join(", "));
        }
        Ok(())
    }
}

/// What the test runners say of themselves.
#[derive(Default)]
struct Totals {
    /// nextest's summary.
    nextest: Option<String>,
    /// Of cargo's runner: the sum over all binaries.
    passed: u64,
    failed: u64,
    ignored: u64,
}

impl Totals {
    fn note(&mut self, line: &str) {
        if let Some(summary) = line.trim().strip_prefix("Summary [") {
            self.nextest = summary.split_once(']').map(|(_, totals)| totals.trim().to_owned());
        }
        // nextest shows what a failed test printed, moved in; that is no run of cargo's.
        if line.starts_with("test result:") {
            self.passed += count(line, "passed");
            self.failed += count(line, "failed");
            self.ignored += count(line, "ignored");
        }
    }
}

/// The number before a word: `3` of `3 passed`.
fn count(line: &str, word: &str) -> u64 {
    let words: Vec<&str> = line.split([' ', ';', '.']).filter(|word| !word.is_empty()).collect();
    let pair = words.windows(2).find(|pair| pair[1] == word);
    pair.and_then(|pair| pair[0].parse().ok()).unwrap_or(0)
}

impl std::fmt::Display for Totals {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Totals { passed, failed, ignored, .. } = self;
        match &self.nextest {
            Some(summary) => write!(f, "{summary}; doc tests: {passed} passed, {failed} failed"),
            None => write!(f, "test result: {passed} passed, {failed} failed, {ignored} ignored"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lines: &[&str], expected: &str) {
        let mut totals = Totals::default();
        lines.iter().for_each(|line| totals.note(line));
        assert_eq!(totals.to_string(), expected);
    }

    #[test]
    fn the_totals_of_nextest_are_its_summary() {
        check(
            &[
                "    test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 41 filtered out",
                "     Summary [   1.205s] 42 tests run: 41 passed, 1 failed, 0 skipped",
                "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            ],
            "42 tests run: 41 passed, 1 failed, 0 skipped; doc tests: 2 passed, 0 failed",
        );
    }

    #[test]
    fn the_totals_of_cargo_are_summed_up() {
        check(
            &[
                "test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
                "test result: FAILED. 3 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s",
            ],
            "test result: 5 passed, 1 failed, 0 ignored",
        );
    }
}
