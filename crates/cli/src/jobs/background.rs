//! `hangar run --background`: a prompt becomes a run that a process of its own carries out, once the queue has a slot for it.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use hangar_jobs::driver::{RunListener, RunNotice};
use hangar_jobs::prompt_run::{PromptWork, prompt_order};
use hangar_jobs::record::RunId;

use super::run::executor;
use crate::args::OutputFormat;
use crate::commands::print_line;
use crate::exit::Exit;
use crate::machine::{Machine, registry};
use crate::settings::Settings;

/// Nobody listens: the process that carries the run out tells of it.
struct Silent;

impl RunListener for Silent {
    fn hear(&self, _: &RunId, _: RunNotice<'_>) {}
}

/// Starts the run and returns at once.
pub(crate) fn start(settings: &Settings, mut work: PromptWork, format: OutputFormat) -> Result<Exit> {
    let here = format!("the working directory {}", work.directory.display());
    work.directory = std::path::absolute(&work.directory).with_context(|| here.clone())?;
    let mut order = prompt_order(work)?;
    let machine = Arc::new(Machine::new(settings)?);
    if machine.works_here(&order) {
        order.working_directory = std::fs::canonicalize(&order.working_directory).with_context(|| here)?;
        if !order.working_directory.is_dir() {
            bail!("the working directory {} is not a directory", order.working_directory.display());
        }
    }
    let hub = registry(settings, &machine, None)?;
    let executor = executor(settings, &hub, None)?;
    // Its record is all that is wanted here. It is let go before the other process takes it up.
    let run = executor.start(order, Arc::new(Silent))?.run().clone();
    let log = settings.home.join("logs").join("runs");
    carry_on(&log, &run).with_context(|| {
        format!("the run was not started; go on with it: {} job resume {run}", settings.program)
    })?;
    match format {
        OutputFormat::Json => print_line(&serde_json::json!({ "run": run }).to_string())?,
        OutputFormat::Text => {
            let program = &settings.program;
            print_line(&format!(
                "Run {run} is in the queue. `{program} queue` says what it waits for, `{program} job show {run}` \
                 how it went."
            ))?;
        }
    }
    Ok(Exit::Done)
}

/// Starts the process that carries the run out. It belongs to nobody: it ends with the run.
fn carry_on(log: &Path, run: &RunId) -> Result<()> {
    hangar_disk::ensure_dir(log).with_context(|| format!("cannot make {}", log.display()))?;
    let path = log.join(format!("{run}.out"));
    let output = File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    let program = std::env::current_exe().context("finding the program itself")?;
    let mut command = Command::new(program);
    command.args(["job", "resume", &run.0]);
    command.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output);
    // Not in the group of this terminal, whose signals it would get.
    command.process_group(0);
    command.spawn().context("cannot start the process of the run")?;
    Ok(())
}
