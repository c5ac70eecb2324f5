//! `cargo xtask soak`: random faults on a fleet of real servers and workers, for as long as wanted, then the checker.

use anyhow::{Context, Result, bail};

use crate::{clients, root, shell};

/// Seed where none is given.
const SEED: u64 = 1;
const MINUTES: u64 = 10;

pub(crate) fn run(args: &[&str]) -> Result<()> {
    let (mut minutes, mut seed) = (MINUTES, SEED);
    let mut rest = args;
    while let [flag, value, more @ ..] = rest {
        let number = || value.parse::<u64>().with_context(|| format!("`{value}` is not a number"));
        match *flag {
            "--minutes" => minutes = number()?,
            "--seed" => seed = number()?,
            _ => bail!("`cargo xtask soak` has the flags --minutes N and --seed S"),
        }
        rest = more;
    }
    if !rest.is_empty() {
        bail!("`cargo xtask soak` has the flags --minutes N and --seed S");
    }
    clients::install_nats()?;
    println!("soaking for {minutes} min with seed {seed}");
    shell::run(
        shell::program("cargo")
            .args([
                "test",
                "--locked",
                "-p",
                "hangar-cli",
                "--test",
                "it",
                "fleet::soak",
                "--",
                "--nocapture",
            ])
            .env("HANGAR_SOAK_MINUTES", minutes.to_string())
            .env("HANGAR_SOAK_SEED", seed.to_string())
            .current_dir(root()),
    )
}
