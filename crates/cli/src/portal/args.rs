//! What `hangar up` takes.

use std::path::PathBuf;

use clap::Args;

/// Where the portal is, and who may come in.
#[derive(Debug, Args)]
pub(crate) struct ListenArgs {
    /// The address to listen on; anything but this machine itself needs a token
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// The port to listen on; 0 picks a free one
    #[arg(long, default_value_t = 8888)]
    pub(crate) port: u16,
    /// The variable that holds the token which clients have to show
    #[arg(long, value_name = "NAME", conflicts_with = "token_file")]
    pub(crate) token_env: Option<String>,
    /// The file that holds the token which clients have to show
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct UpArgs {
    #[command(flatten)]
    pub(crate) listen: ListenArgs,
    /// A name by which the portal may be called beside its address
    #[arg(long, value_name = "NAME")]
    pub(crate) allow_host: Vec<String>,
    /// The file with the jobs to offer, YAML or JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) entry: Option<PathBuf>,
    /// Where sessions work if nobody says where, instead of the current directory
    #[arg(short = 'C', long, value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Let tests replace the jobs
    #[arg(long)]
    pub(crate) test: bool,
    /// Open the portal in a browser
    #[arg(long)]
    pub(crate) open: bool,
}
