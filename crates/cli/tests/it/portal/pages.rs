//! The pages in a real browser: `e2e/portal` against this program, on the scripted model. `cargo xtask test` installs what
//! these tests need.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_test_support::Scratch;

use crate::HANGAR;

/// All of them, on a loaded machine.
const LIMIT: Duration = Duration::from_secs(600);
/// Each file has a browser and a server of its own; more at once only wait for each other.
const AT_ONCE: &str = "--test-concurrency=2";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

#[test]
fn the_pages_do_what_they_promise_in_a_browser() {
    let (tests, hint) = (root().join("e2e"), "run `cargo xtask test` once");
    assert!(tests.join("node_modules/playwright-core").exists(), "playwright-core is not installed; {hint}");
    let found = std::process::Command::new("chromium").arg("--version").output();
    assert!(found.is_ok_and(|found| found.status.success()), "Chromium is not installed; {hint}");
    let scratch = Scratch::new();
    let run = scratch
        .run("node")
        .env("HANGAR_E2E_PROGRAM", HANGAR)
        .args(["--test", AT_ONCE])
        .arg(tests.join("portal"))
        .within(LIMIT)
        .finish();
    assert!(run.exit == 0, "{}\n{}", run.stdout, run.stderr);
}
