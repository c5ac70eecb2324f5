//! The published SDKs as clients: their own programs in `e2e/sdk-*` against the real binary and the scripted model.
//!
//! Each server that they start is wrapped so that all it writes is kept, and every event in it is checked against the
//! published schema, whatever the SDK itself makes of it. `cargo xtask test` installs what they need.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use hangar_protocol::rpc::FrameDecoder;
use hangar_test_support::{ModelServer, Scratch};
use serde_json::Value;

use crate::HANGAR;
use crate::schema::Schema;

/// All tests of one SDK, on a loaded machine.
const LIMIT: Duration = Duration::from_secs(400);
/// Fewer events than that and the recording did not work.
const FEWEST_EVENTS: usize = 200;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// A program that does as `hangar` does and keeps what it writes in `directory`. The shell becomes the server, so that
/// signals and `kill -9` meet it alone.
fn recorder(scratch: &Scratch, directory: &Path) -> PathBuf {
    std::fs::create_dir_all(directory).expect("a directory for the recordings");
    let program = scratch.root().join("hangar-recorded");
    let text = format!(
        "#!/usr/bin/env bash\n\
         [ -z \"$HANGAR_E2E_PID_FILE\" ] || echo $$ > \"$HANGAR_E2E_PID_FILE\"\n\
         exec '{HANGAR}' \"$@\" > >(exec tee '{}'/$$)\n",
        directory.display()
    );
    std::fs::write(&program, text).expect("the wrapper");
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).expect("a program");
    program
}

/// The events that one server has sent.
fn recorded_events(file: &Path) -> Vec<Value> {
    let bytes = std::fs::read(file).expect("a recording");
    if bytes.starts_with(b"CLI server listening") {
        // A server on TCP; the log of its sessions is looked at instead.
        return Vec::new();
    }
    let mut decoder = FrameDecoder::default();
    decoder.feed(&bytes);
    let mut events = Vec::new();
    // A server that was killed may have left half a frame behind.
    while let Ok(Some(body)) = decoder.next_frame() {
        let mut message: Value = serde_json::from_slice(&body).expect("a frame is JSON");
        if message["method"] == "session.event" {
            events.push(message["params"]["event"].take());
        }
    }
    events
}

fn check(program: &str, args: &[&str], missing: &str) {
    let scratch = Scratch::new();
    let model = ModelServer::start();
    let recordings = scratch.root().join("recordings");
    let wrapper = recorder(&scratch, &recordings);
    let home = std::env::var("HOME").unwrap_or_default();
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or(format!("{home}/{default}"));
    let found = std::process::Command::new(program).arg("--version").output().is_ok();
    assert!(found, "`{program}` is not there: {missing}");
    let run = scratch
        .run(program)
        .provider(model.url())
        .env("HANGAR_RETRY_SCALE", "0.01")
        .env("HANGAR_E2E_PROGRAM", &wrapper)
        .env("HANGAR_E2E_MODEL", model.url())
        .env("HANGAR_E2E_REQUESTS", model.log_path())
        // The tools of the languages, which live in the real home.
        .env("CARGO_HOME", variable("CARGO_HOME", ".cargo"))
        .env("RUSTUP_HOME", variable("RUSTUP_HOME", ".rustup"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(args)
        .within(LIMIT)
        .finish();
    assert!(run.exit == 0, "{program} {args:?}: {missing}\n{}\n{}", run.stdout, run.stderr);

    let schema = Schema::load();
    let mut events: Vec<Value> = Vec::new();
    for entry in std::fs::read_dir(&recordings).expect("the recordings").filter_map(Result::ok) {
        events.extend(recorded_events(&entry.path()));
    }
    assert!(events.len() > FEWEST_EVENTS, "only {} events were recorded", events.len());
    for session in scratch.sessions() {
        let log = scratch.log(&session);
        // The last line of a killed server may be half a line.
        events.extend(log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()));
    }
    let mut invalid: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for event in &events {
        for problem in schema.problems(event) {
            invalid.entry(event["type"].to_string()).or_default().insert(problem);
        }
    }
    assert!(invalid.is_empty(), "events that the schema does not know: {invalid:#?}");
}

#[test]
fn the_node_sdk_finds_everything_as_it_should_be() {
    let tests = root().join("e2e/sdk-node");
    let modules = root().join("e2e/node_modules/@github/copilot-sdk");
    assert!(modules.exists(), "the Node SDK is not installed; run `cargo xtask test` once");
    check("node", &["--test", &tests.to_string_lossy()], "these tests need Node 20 or later");
}

#[test]
fn the_python_sdk_finds_everything_as_it_should_be() {
    let tests = root().join("e2e/sdk-python");
    let python = tests.join(".venv/bin/python");
    let args = ["-m", "unittest", "discover", "-s", &tests.to_string_lossy()];
    check(&python.to_string_lossy(), &args, "the Python SDK is not installed; run `cargo xtask test` once");
}

#[test]
fn the_rust_sdk_finds_everything_as_it_should_be() {
    let manifest = root().join("e2e/sdk-rust/Cargo.toml");
    let target = root().join("target/sdk-rust");
    let args = [
        "--config",
        "env.COPILOT_SKIP_CLI_DOWNLOAD=\"1\"",
        "test",
        "--locked",
        "--manifest-path",
        &manifest.to_string_lossy(),
        "--target-dir",
        &target.to_string_lossy(),
    ];
    check("cargo", &args, "`cargo xtask test` builds these tests beforehand");
}

/// Runs a program of `docs/sdk.md`, which is a file here and there, and expects the model's answer as its output.
fn check_page(file: &str, program: &str, args: &[&str]) {
    let text = std::fs::read_to_string(root().join(file)).expect("the program");
    let page = std::fs::read_to_string(root().join("docs/sdk.md")).expect("the page");
    assert!(page.contains(text.trim_end()), "docs/sdk.md does not show {file} as it is");
    let lines = text.lines().filter(|line| !line.trim().is_empty()).count();
    assert!(lines <= 20, "{file} has {lines} lines");
    let scratch = Scratch::new();
    let model = ModelServer::start();
    let home = std::env::var("HOME").unwrap_or_default();
    let variable = |name: &str, default: &str| std::env::var(name).unwrap_or(format!("{home}/{default}"));
    let run = scratch
        .run(program)
        .provider(model.url())
        .env("HANGAR", HANGAR)
        .env("CARGO_HOME", variable("CARGO_HOME", ".cargo"))
        .env("RUSTUP_HOME", variable("RUSTUP_HOME", ".rustup"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .args(args)
        .arg("SAY:Oslo, of course")
        .within(LIMIT)
        .finish();
    assert_eq!((run.exit, run.stdout.as_str()), (0, "Oslo, of course\n"), "{file}: {}", run.stderr);
}

#[test]
fn the_node_program_of_the_documentation_runs() {
    let file = "e2e/sdk-node/hello.mjs";
    check_page(file, "node", &[&root().join(file).to_string_lossy()]);
}

#[test]
fn the_python_program_of_the_documentation_runs() {
    let file = "e2e/sdk-python/hello.py";
    let python = root().join("e2e/sdk-python/.venv/bin/python");
    check_page(file, &python.to_string_lossy(), &[&root().join(file).to_string_lossy()]);
}

#[test]
fn the_rust_program_of_the_documentation_runs() {
    let (manifest, target) = (root().join("e2e/sdk-rust/Cargo.toml"), root().join("target/sdk-rust"));
    let args = [
        "--config",
        "env.COPILOT_SKIP_CLI_DOWNLOAD=\"1\"",
        "run",
        "--quiet",
        "--locked",
        "--manifest-path",
        &manifest.to_string_lossy(),
        "--target-dir",
        &target.to_string_lossy(),
        "--example",
        "hello",
        "--",
    ];
    check_page("e2e/sdk-rust/examples/hello.rs", "cargo", &args);
}
