//! The binary `hangar`: parses the command line, assembles the parts, and exits with a documented code.

mod acp_agent;
mod appearance;
mod args;
mod automation;
mod budget;
mod commands;
mod compose;
mod config;
mod costs;
mod credentials;
mod custom;
mod endpoint;
mod exit;
mod flags;
mod fleet;
mod headless;
mod home;
mod jobs;
mod just_in_time;
mod logging;
mod machine;
mod mcp;
mod notify;
mod opening;
mod orchestrate;
mod output;
mod portal;
mod prose;
mod providers;
mod queue;
mod redact;
mod resumed;
mod run_log;
mod runtimes;
mod sandbox;
mod sdk_server;
mod selection;
mod settings;
mod setup;
mod telemetry;
mod terminal;
mod tracked;
mod usage;
mod work_state;
mod workspace;

use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::error::ErrorKind;

use args::{Cli, ModelCommand, OutputFormat, RunArgs, Subcommands};
use exit::Exit;
use output::remark;
use settings::Settings;

fn main() -> ExitCode {
    // A process that launches a confined command does only that.
    if let Some(code) = sandbox::launcher(std::env::args_os().skip(1)) {
        return code;
    }
    undumpable();
    let cli = match Cli::from_process() {
        Ok(cli) => cli,
        Err(error) => return usage_error(&error).into(),
    };
    let exit = dispatch(cli);
    telemetry::finish();
    match exit {
        Ok(exit) => exit.into(),
        Err(error) => {
            remark(&format!("error: {error:#}"));
            Exit::Failed.into()
        }
    }
}

/// Keeps other processes of the same user from reading our memory and environment, where keys are: by `/proc`, by a
/// debugger, and in a core file, which is not written either. Child processes are dumpable again once they run.
#[cfg(target_os = "linux")]
fn undumpable() {
    use rustix::process::{DumpableBehavior, set_dumpable_behavior};
    // There is no alternative if the kernel refuses.
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

#[cfg(not(target_os = "linux"))]
fn undumpable() {}

fn usage_error(error: &clap::Error) -> Exit {
    let wanted = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    // Nothing can be done if even stderr is gone.
    let _ = error.print();
    if wanted {
        return Exit::Done;
    }
    if output::typed_json(std::env::args_os().skip(1)) {
        output::result_of_nothing(Exit::Failed);
    }
    Exit::Failed
}

fn dispatch(cli: Cli) -> Result<Exit> {
    let Cli { command, flags } = cli;
    let mut settings = Settings::from_process()?;
    if let Some(home) = &flags.run.diagnostics.config_dir {
        settings = settings.in_home(home)?;
    }
    if flags.version {
        return commands::version(&settings);
    }
    match command {
        None if flags.server.server => sdk_server::run(&settings, &flags.server, flags.run),
        None if flags.server.ui_server => terminal::run_with_server(&settings, &flags.server, flags.run),
        None if flags.run.acp => acp_agent::run(&settings, &flags.server, flags.run),
        None if flags.run.wants_terminal() && terminal::is_possible() => terminal::run(&settings, flags.run),
        None => {
            let json = flags.run.output.output_format == OutputFormat::Json;
            run(&settings, flags.run).inspect_err(|_| {
                if json {
                    output::result_of_nothing(Exit::Failed);
                }
            })
        }
        Some(Subcommands::Version) => commands::version(&settings),
        Some(Subcommands::Models(args)) => commands::models::run(&settings, &args),
        Some(Subcommands::Model { command: ModelCommand::Serve(args) }) => commands::serve::run(args),
        Some(Subcommands::Run(args)) => runtimes::run::run(&settings, *args),
        Some(Subcommands::Runtimes(args)) => runtimes::commands::run(&settings, args),
        Some(Subcommands::Mcp { command }) => commands::mcp::run(&settings, command),
        Some(Subcommands::Memory { command }) => commands::memory::run(&settings, command),
        Some(Subcommands::Plugin { command }) => commands::plugin::run(&settings, command),
        Some(Subcommands::Sessions { command }) => commands::sessions::run(&settings, command),
        Some(Subcommands::Features(args)) => commands::features::run(&settings, &args),
        Some(Subcommands::Job { command }) => jobs::run(&settings, command),
        Some(Subcommands::Orchestrate(args)) => orchestrate::run(&settings, args),
        Some(Subcommands::Issues(args)) => orchestrate::issues(&settings, &args),
        Some(Subcommands::Issue(args)) => orchestrate::issue(&settings, args),
        Some(Subcommands::Config { command }) => config::commands::run(&settings, command),
        Some(Subcommands::Queue(args)) => queue::show(&settings, &args),
        Some(Subcommands::Costs(args)) => costs::show(&settings, &args),
        Some(Subcommands::Budget(args)) => costs::budget(&settings, &args),
        Some(Subcommands::Pause) => queue::pause(&settings),
        Some(Subcommands::Resume) => queue::resume(&settings),
        Some(Subcommands::Drain) => queue::drain(&settings),
        Some(Subcommands::StopAll) => queue::stop_all(&settings),
        Some(Subcommands::Attach { session }) => terminal::attach(&settings, &session),
        Some(Subcommands::Up(args)) => portal::run(&settings, args),
        Some(Subcommands::Worker(args)) => fleet::worker(&settings, &args),
        Some(Subcommands::Workers(args)) => fleet::workers(&settings, args),
        Some(Subcommands::Completions { shell }) => commands::shell_files::completions(&settings, shell),
        Some(Subcommands::Man { directory }) => commands::shell_files::man(&directory),
        Some(Subcommands::Doctor(args)) => commands::doctor::run(&settings, &args),
    }
}

fn run(settings: &Settings, args: RunArgs) -> Result<Exit> {
    let named = &args.compatible.named;
    if let Some(word) = named.words.first() {
        let program = &settings.program;
        match args::similar_command(word) {
            Some(command) => {
                bail!("`{word}` is not a command; `{program} {command}` is, and a prompt goes after -p")
            }
            None => {
                bail!("`{word}` is not a command or a flag; a prompt goes in quotes: {program} -p \"...\"")
            }
        }
    }
    logging::start(settings, &args)?;
    let ignored = named.given();
    let quiet = args.output.silent && args.output.output_format == OutputFormat::Text;
    if !ignored.is_empty() && !quiet {
        remark(&format!("note: accepted without effect: {}", ignored.join(", ")));
    }
    headless::run(settings, args)
}
