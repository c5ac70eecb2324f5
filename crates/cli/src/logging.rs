//! Diagnostics in a log file, if a flag or variable enables them.

use anyhow::{Context, Result};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

use crate::args::{LogLevel, RunArgs};
use crate::redact;
use crate::run_log::RunLogs;
use crate::settings::Settings;

/// Starts the logs of runs, for a process that works on them.
pub(crate) fn start_run_logs(settings: &Settings) {
    let logs = RunLogs::new(settings.home.join("logs"), redact::of_machine(settings));
    // A process that has a log already keeps that one.
    let _ = tracing_subscriber::registry().with(logs).try_init();
}

pub(crate) fn start(settings: &Settings, args: &RunArgs) -> Result<()> {
    let level = match (args.diagnostics.log_level, &args.diagnostics.log_dir) {
        (None, None) | (Some(LogLevel::None), _) => return Ok(()),
        (Some(LogLevel::Error), _) => LevelFilter::ERROR,
        (Some(LogLevel::Warning), _) => LevelFilter::WARN,
        (Some(LogLevel::Info | LogLevel::Default) | None, _) => LevelFilter::INFO,
        (Some(LogLevel::Debug), _) => LevelFilter::DEBUG,
        (Some(LogLevel::All), _) => LevelFilter::TRACE,
    };
    let dir = args.diagnostics.log_dir.clone().unwrap_or_else(|| settings.home.join("logs"));
    let path =
        dir.join(format!("process-{}-{}.log", jiff::Timestamp::now().as_millisecond(), std::process::id()));
    std::fs::create_dir_all(&dir)
        .with_context(|| format!("cannot make the log directory {}", dir.display()))?;
    let file =
        std::fs::File::create(&path).with_context(|| format!("cannot write the log {}", path.display()))?;
    tracing_subscriber::fmt().with_max_level(level).with_ansi(false).with_writer(file).init();
    tracing::info!(version = env!("CARGO_PKG_VERSION"), "started");
    Ok(())
}
