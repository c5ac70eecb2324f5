//! Tasks of this repository, as one program: `cargo xtask test`, `cargo xtask tidy`, `cargo xtask bench`.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program for people at a terminal")]

mod bench;
mod catalogue;
mod clients;
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod layout;
mod npm;
mod shell;
mod shots;
mod soak;
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

  up [FLAGS]           build Hangar and open a portal with example jobs on the scripted model, without a key;
                       FLAGS are passed to `hangar up`, such as --port 8899
  web                  build the pages of the portal into crates/portal/pages, if web/ changed; needs Node 20
  types                write docs/openapi.json and the TypeScript types of the API from the portal's routes
  shots                make the pictures of docs/terminal.md from the real screen; needs tmux
  catalogue FILE       write the embedded catalogue of models from FILE, an `api.json` of models.dev
  layout [PROGRAM]     write crates/cli/prompt.ld, the functions that a prompt runs, which a release is linked by; PROGRAM is
                       a release that is not stripped; needs Linux on x86-64 and nm
  test                 everything that CI checks: format, lints, all tests with what they need, tidy
  soak [--minutes N] [--seed S]
                       random faults on a fleet of real servers and workers, then a check of all logs
  tidy                 check the rules of the repository that no compiler knows
  bench [server]       time and memory compared with other agents: of a prompt, or of the SDK server;
                       --peers DIR uses the agents that npm installed in DIR, --program FILE measures that
                       program instead of building one
  bench portal         the portal when idle, with a thousand sessions, and with two hundred readers
  bench queue          decisions of the scheduler with 10,000 items in the queue, and their page
  bench orchestrator   the orchestrator with 10,000 issues and 500 agents at once: time of a tick, and memory
  bench harness        the cost of hooks, unused MCP servers and many sub-agents
  bench cost           tokens and simulated cost of the same work, beside other agents
  bench fleet          appends and orders per second on three NATS servers, and how they grow
  bench terminal       the interactive views of agents side by side, in a pty
  bench runtimes       the cost of Hangar beside the agents that it runs; `bench runtimes debug` skips the release
                       build to find faults, and its figures mean nothing
";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let done = match args.as_slice() {
        ["up", rest @ ..] => up::run_demo(rest),
        ["test"] => test::run(),
        ["web"] => web::build(),
        ["types"] => types::write(),
        ["shots"] => shots::run(),
        ["catalogue", file] => catalogue::write(Path::new(file)),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        ["layout"] => layout::write(),
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        ["layout", program] => layout::write_for(Path::new(program)),
        ["soak", rest @ ..] => soak::run(rest),
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
