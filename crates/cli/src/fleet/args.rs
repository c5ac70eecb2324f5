//! Flags of `hangar worker`, `hangar workers` and `hangar run --fleet`.

use clap::{Args, Subcommand};

/// The fleet that a command is about.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct FleetArgs {
    /// NATS servers of the fleet, such as nats://a:4222,nats://b:4222 (default: `url` in [fleet] of config.toml)
    // The id of its own: `fleet` is a flag of `hangar -p`, and values of global flags are found by id.
    #[arg(id = "fleet_url", long = "fleet", value_name = "URL", global = true)]
    pub(crate) fleet: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerArgs {
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    /// Sessions that it works on at once (default: the number of cores)
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) slots: Option<u32>,
    /// Label of this machine, which orders may ask for; repeatable
    #[arg(long, value_name = "LABEL")]
    pub(crate) label: Vec<String>,
    /// Name in lists (default: the name of the machine)
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WorkersArgs {
    #[command(subcommand)]
    pub(crate) command: Option<WorkersCommand>,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
    /// Print JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkersCommand {
    /// Let a worker take no more orders
    Cordon { name: String },
    /// Let it take orders again
    Uncordon { name: String },
    /// Let it take no more orders, and end when it has none
    Drain { name: String },
}

/// Machine on which a run is carried out.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Fleet")]
pub(crate) struct PlacementArgs {
    /// Run it on a worker of this fleet; without URL, of the one in config.toml
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    pub(crate) fleet: Option<String>,
    /// Label that the worker must have; repeatable
    #[arg(long, value_name = "LABEL", requires = "fleet")]
    pub(crate) label: Vec<String>,
    /// Git remote to work on (default: `origin` of the working directory)
    #[arg(long, value_name = "URL", requires = "fleet")]
    pub(crate) remote: Option<String>,
    /// Branch or commit of the remote to begin at
    #[arg(long = "ref", value_name = "REF", requires = "fleet")]
    pub(crate) reference: Option<String>,
}
