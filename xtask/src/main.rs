//! The chores of this repository, as one program: `cargo xtask test`, `cargo xtask tidy`, `cargo xtask bench`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod bench;
mod clients;
mod npm;
mod shell;
mod supply;
mod test;
mod tidy;
mod types;
mod up;
mod web;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <task>

  up                   a first look without a key: builds the program and runs it on the scripted model
  web                  builds the pages of the portal into crates/portal/pages if web/ changed; needs Node 20
  types                writes docs/openapi.json and the TypeScript types of the API from the routes of the portal
  test                 everything that CI checks: format, lints, what tests need, all tests, tidy
  tidy                 the rules of the repository that no compiler knows
  bench [server]       time and memory against other agents, as a table: of a prompt, or of the server of the SDKs;
                       with --peers DIR it takes what npm installed in DIR instead of installing it again, with
                       --program FILE it measures that instead of building
  bench portal         the portal at rest, with a thousand sessions, and with two hundred readers
  bench harness        what hooks, unused MCP servers and many sub-agents cost
  bench runtimes       what Hangar costs beside the agents that it looks after; `bench runtimes debug` finds faults
                       without the long build, and its figures are no measure
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["up"] => up::run_demo(),
        ["test"] => test::run(),
        ["web"] => web::build(),
        ["types"] => types::write(),
        ["tidy"] => tidy::run(),
        ["bench", "runtimes"] => bench::runtimes::run(false),
        ["bench", "runtimes", "debug"] => bench::runtimes::run(true),
        ["bench", rest @ ..] => bench::run(rest),
        ["measure", rest @ ..] => bench::measure::run_inside(rest),
        [] | ["help" | "--help" | "-h"] => {
            print!("{HELP}");
            Ok(())
        }
        _ => Err(anyhow::anyhow!("there is no task `{}`\n\n{HELP}", args.join(" "))),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().map_or_else(PathBuf::new, Path::to_path_buf)
}
