//! The command line. Flags keep the names and forms of Copilot CLI, so that programs that drive it can drive Hangar.

mod compatible;
mod run;
mod values;

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};
use hangar_simulators::Profile;

use crate::portal::args::ListenArgs;
pub(crate) use run::{BudgetArgs, RunArgs};
pub(crate) use values::{ContinueLimit, EffortArg, LogLevel, ModeArg, OutputFormat, Switch};

const EXIT_CODES: &str = "\
Exit codes:
  0  the run ended: with an answer, by a signal, at the autopilot limit, or with tools refused
  1  no run or no answer: bad usage, no provider or model, unknown session, a model that kept failing, or a budget
     that is used up
  2  hangar doctor found a problem, or hangar runtimes probe an unexpected result

Environment: HANGAR_HOME, COPILOT_MODEL, COPILOT_PROVIDER_BASE_URL, COPILOT_PROVIDER_TYPE, COPILOT_PROVIDER_API_KEY,
COPILOT_OFFLINE, COPILOT_ALLOW_ALL and the other provider variables of Copilot CLI.";

#[derive(Debug, Parser)]
#[command(
    name = "hangar",
    about = "A coding agent for any model. Alone it opens a session in the terminal; -p or standard input give it one prompt.",
    after_help = EXIT_CODES,
    disable_version_flag = true,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Subcommands>,

    #[command(flatten)]
    pub(crate) flags: Flags,
}

/// The flags without a subcommand.
#[derive(Debug, Args)]
pub(crate) struct Flags {
    /// Show the version
    #[arg(short = 'v', short_alias = 'V', long)]
    pub(crate) version: bool,

    #[command(flatten)]
    pub(crate) run: RunArgs,

    #[command(flatten)]
    pub(crate) server: ServerArgs,
}

impl Cli {
    /// The command line of this process. Most have no subcommand, and describing all of those takes half a megabyte, so it is
    /// parsed without them first. Words, help and mistakes are left to the whole description.
    pub(crate) fn from_process() -> Result<Self, clap::Error> {
        let lean = Flags::augment_args(clap::Command::new("hangar").disable_version_flag(true));
        match lean.try_get_matches().and_then(|matches| Flags::from_arg_matches(&matches)) {
            Ok(flags) if flags.run.compatible.named.words.is_empty() => Ok(Self { command: None, flags }),
            _ => Self::try_parse(),
        }
    }
}

/// How SDKs start the program as their server. They define the flags.
#[derive(Debug, Args)]
pub(crate) struct ServerArgs {
    /// Serve the Copilot SDKs instead of running a prompt
    #[arg(long, visible_alias = "headless", help_heading = "Server", conflicts_with = "attachment")]
    pub(crate) server: bool,
    /// Open the terminal and serve the Copilot SDKs beside it
    #[arg(long, help_heading = "Server", conflicts_with_all = ["server", "prompt"])]
    pub(crate) ui_server: bool,
    /// Serve one client on standard input and output
    #[arg(long, help_heading = "Server", conflicts_with = "port")]
    pub(crate) stdio: bool,
    /// Serve clients on this port of 127.0.0.1; 0 picks a free one
    #[arg(long, value_name = "PORT", help_heading = "Server")]
    pub(crate) port: Option<u16>,
    #[arg(long, hide = true)]
    pub(crate) host: Option<String>,
    /// Serve any client that can reach the port, without a token
    #[arg(long, help_heading = "Server")]
    pub(crate) no_token: bool,
    /// Environment variable that holds the GitHub token
    #[arg(long, value_name = "NAME", help_heading = "Server")]
    pub(crate) auth_token_env: Option<String>,
    /// Use only the login of --auth-token-env and those that clients provide
    #[arg(long, help_heading = "Server")]
    pub(crate) no_auto_login: bool,
    /// Close sessions after this many seconds without activity; they can be resumed
    #[arg(long, value_name = "SECONDS", help_heading = "Server")]
    pub(crate) session_idle_timeout: Option<u64>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Subcommands {
    /// List the models that the configured providers offer
    Models(ModelsArgs),
    /// Serve the scripted model, or simulated vendors, to other programs
    Model {
        #[command(subcommand)]
        command: ModelCommand,
    },
    /// List, show, export, fork, rewind and delete saved sessions
    Sessions {
        #[command(subcommand)]
        command: Option<SessionsCommand>,
    },
    /// Show and steer a session that runs elsewhere: in another terminal or in the portal
    Attach {
        /// Id of the session, the start of one, or its name
        session: String,
    },
    /// List and change the configured MCP servers
    Mcp {
        #[command(subcommand)]
        command: crate::commands::mcp::McpSubcommand,
    },
    /// List, show, change and delete the notes that the model keeps about repositories
    Memory {
        #[command(subcommand)]
        command: crate::commands::memory::MemorySubcommand,
    },
    /// Install, update, list and remove plugins, and the marketplaces that they come from
    Plugin {
        #[command(subcommand)]
        command: Option<crate::commands::plugin::PluginSubcommand>,
    },
    /// Run a prompt with any installed agent, such as Claude Code or Codex
    #[command(after_help = EXIT_CODES)]
    Run(Box<crate::runtimes::args::RunWithArgs>),
    /// List the agents that `run` can use, or test what they can do
    Runtimes(crate::runtimes::args::RuntimesArgs),
    /// Run jobs: trees of tasks for agents, defined in a file
    Job {
        #[command(subcommand)]
        command: crate::jobs::args::JobCommand,
    },
    /// Work on the issues of a tracker, as WORKFLOW.md says
    Orchestrate(crate::orchestrate::args::OrchestrateArgs),
    /// List the issues of a workflow, and why each is or is not worked on
    Issues(crate::orchestrate::args::IssuesArgs),
    /// Show, start, stop, park or retry one issue of a workflow
    Issue(crate::orchestrate::args::IssueArgs),
    /// Show, change and check the settings in config.toml
    Config {
        #[command(subcommand)]
        command: Option<crate::config::commands::ConfigCommand>,
    },
    /// Show the queue: what runs, what waits and why
    Queue(crate::queue::QueueArgs),
    /// Sum up what all agents used and cost
    Costs(crate::costs::CostsArgs),
    /// Show the budgets of `[budgets]`, or raise one
    Budget(crate::costs::BudgetCommandArgs),
    /// Start no more queued work; running work goes on
    Pause,
    /// Continue the queue after `pause` or `drain`, and try held accounts again
    Resume,
    /// Start no more queued work, and wait until nothing runs
    Drain,
    /// Stop all that runs, in all processes of the home folder
    StopAll,
    /// Serve the portal: sessions, jobs and agents in a browser, and an HTTP API
    Up(crate::portal::args::UpArgs),
    /// Work for a fleet: carry out the orders of other machines
    Worker(crate::fleet::args::WorkerArgs),
    /// List the workers of a fleet, or cordon, drain and uncordon one
    Workers(crate::fleet::args::WorkersArgs),
    /// Check models, credentials, the home folder and the tools of this machine
    Doctor(DoctorArgs),
    /// List the features and whether they are on
    Features(FeaturesArgs),
    /// Print the completion script of a shell
    Completions { shell: crate::commands::shell_files::Shell },
    /// Write the man pages into a directory
    Man { directory: PathBuf },
    /// Show the version
    Version,
}

#[derive(Debug, Args)]
pub(crate) struct ModelsArgs {
    /// List the models of this agent instead of those of the providers
    #[arg(long, value_name = "NAME")]
    pub(crate) runtime: Option<String>,
    /// Ask the providers again instead of using the cache
    #[arg(long)]
    pub(crate) refresh: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct FeaturesArgs {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    /// Ask each provider one tiny question with a tool, and report what works; costs a few hundred tokens each
    #[arg(long)]
    pub(crate) probe: bool,
    /// Check the fleet too: its servers, streams and workers; without URL, the one in config.toml
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    pub(crate) fleet: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) portal: ListenArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ModelCommand {
    /// Serve the scripted model on loopback as OpenAI chat completions, OpenAI responses and Anthropic messages, or simulate
    /// vendors strictly
    Serve(ModelServeArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ModelServeArgs {
    /// Port on 127.0.0.1; 0 picks a free one
    #[arg(long, default_value_t = 0)]
    pub(crate) port: u16,
    /// Answer every request from this script instead of from the markers in its prompt
    #[arg(long, value_name = "FILE")]
    pub(crate) script: Option<PathBuf>,
    /// Answer to a prompt without markers
    #[arg(long, default_value = "pong")]
    pub(crate) default: String,
    /// Append one JSON line per request
    #[arg(long, value_name = "FILE")]
    pub(crate) log: Option<PathBuf>,
    /// Simulate this vendor: refuse what it refuses, cache and count as it does; repeat it to serve several, each below its name
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(vendors()))]
    pub(crate) vendor: Vec<String>,
    /// Turns of the vendor and expectations of requests, as TOML
    #[arg(long, value_name = "FILE", requires = "vendor")]
    pub(crate) scenario: Option<PathBuf>,
    /// Record fields that the vendor does not know instead of refusing them
    #[arg(long, requires = "vendor")]
    pub(crate) lenient: bool,
}

fn vendors() -> Vec<&'static str> {
    Profile::all().iter().map(|profile| profile.name).collect()
}

#[derive(Debug, Subcommand)]
pub(crate) enum SessionsCommand {
    /// List sessions, newest first
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show one session's transcript
    Show { session: String },
    /// Write a session's transcript as Markdown
    Export {
        session: String,
        /// File to write to; standard output by default
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// Start a new session with the history of another
    Fork {
        session: String,
        /// First event to leave out; `sessions rewind` lists the prompts
        #[arg(long, value_name = "EVENT")]
        before: Option<String>,
        /// Name of the new session
        #[arg(long)]
        name: Option<String>,
    },
    /// Rewind a session to before a prompt; without --to, list the prompts
    Rewind {
        session: String,
        /// Prompt to go back to, by the id of its event
        #[arg(long, value_name = "EVENT")]
        to: Option<String>,
        /// Also restore files that tools have changed since, if the session saved them
        #[arg(long, requires = "to")]
        files: bool,
    },
    /// Delete a session and its files
    Delete { session: String },
}

/// The command that a mistyped word was probably meant to be.
pub(crate) fn similar_command(word: &str) -> Option<String> {
    const ALIKE: f64 = 0.8;
    let command = Cli::command();
    let names = command.get_subcommands().map(clap::Command::get_name);
    let scored = names.map(|name| (strsim::jaro_winkler(word, name), name));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > ALIKE)?;
    Some(best.1.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_is_resumed_keeps_its_name() {
        for command in [&["hangar", "-p", "hi"][..], &["hangar", "run", "-p", "hi"]] {
            for resumed in ["--resume=abc", "--continue"] {
                let line = command.iter().copied().chain(["--name", "x", resumed]);
                let told = Cli::try_parse_from(line).expect_err(resumed).to_string();
                assert!(told.contains("'--name <NAME>' cannot be used with '--"), "{told}");
            }
        }
    }

    #[test]
    fn the_defaults_are_those_of_the_command_line() {
        let parsed = Cli::parse_from(["hangar"]).flags.run;
        assert_eq!(format!("{:?}", RunArgs::default()), format!("{parsed:?}"));
        assert_eq!(parsed.conduct.max_autopilot_continues, ContinueLimit(5));
    }
}
