//! Flags of `hangar up`.

use std::path::PathBuf;

use clap::Args;

/// Address of the portal, and the token that it requires.
#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    /// Address to listen on; anything but loopback requires a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// Port to listen on; 0 picks a free one
    #[arg(long, default_value_t = 8888)]
    pub(crate) port: u16,
    /// Environment variable that holds the token that clients must send
    #[arg(long, value_name = "NAME", conflicts_with = "token_file")]
    pub(crate) token_env: Option<String>,
    /// File that holds the token that clients must send
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// Further host name to accept, for use behind a proxy
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// File with the jobs to offer, YAML or JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) entry: Option<PathBuf>,
    /// Default working directory of sessions (default: the current directory)
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Show the sessions of this fleet, and let its workers run new ones; without URL, of the one in config.toml
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    pub(crate) fleet: Option<String>,
    /// Let tests replace the jobs
    #[arg(long)]
    pub(crate) test: bool,
    /// Open the portal in a browser
    #[arg(long)]
    pub(crate) open: bool,
}
