//! `cargo xtask bench fleet`: appends per second, orders per second and their growth, on three real servers.
//!
//! The measurement is a test of `crates/fleet` that does not run otherwise, so that it uses the code of workers.

use anyhow::{Context, Result, bail};

use crate::{clients, shell};

const WORKERS: u32 = 100;
const SESSIONS: u32 = 10_000;

/// `bench fleet [--workers N] [--sessions N]`
pub(crate) fn run(args: &[&str]) -> Result<()> {
    let (mut workers, mut sessions) = (WORKERS, SESSIONS);
    let mut rest = args;
    while let [flag, value, more @ ..] = rest {
        let number = || value.parse::<u32>().with_context(|| format!("`{value}` is not a number"));
        match *flag {
            "--workers" => workers = number()?,
            "--sessions" => sessions = number()?,
            other => bail!("`{other}` is not a flag of bench fleet; it has --workers N and --sessions N"),
        }
        rest = more;
    }
    if let [flag] = rest {
        bail!("`{flag}` is not a flag of bench fleet, or lacks its value");
    }
    clients::install_nats()?;
    let test = ["test", "--locked", "--release", "-p", "hangar-fleet", "--test", "it", "growth"];
    shell::run(
        shell::program("cargo")
            .args(test)
            .args(["--", "--nocapture"])
            .env("HANGAR_GROWTH_MILLIS", "3000")
            .env("HANGAR_GROWTH_WORKERS", workers.to_string())
            .env("HANGAR_GROWTH_SESSIONS", sessions.to_string()),
    )
}
