//! Flags of Copilot CLI that are accepted without an effect.

use clap::{ArgAction, Args};

/// Flags of Copilot CLI that have no effect here.
#[derive(Debug, Default, Args)]
pub(crate) struct CompatibleArgs {
    #[command(flatten)]
    pub(crate) silent: SilentArgs,
    #[command(flatten)]
    pub(crate) named: NamedArgs,
}

/// Accepted silently: they ask for what Hangar does anyway.
#[derive(Debug, Default, Args)]
pub(crate) struct SilentArgs {
    #[arg(long, hide = true)]
    no_auto_update: bool,
    #[arg(long, hide = true)]
    no_color: bool,
    #[arg(long, hide = true)]
    plain_diff: bool,
    /// Print plain lines in the terminal, for screen readers: nothing is redrawn
    #[arg(long, help_heading = "Output")]
    pub(crate) screen_reader: bool,
    #[arg(long, hide = true)]
    banner: bool,
    #[arg(long, hide = true)]
    no_banner: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    mouse: Option<String>,
    #[arg(long, hide = true)]
    no_mouse: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    bash_env: Option<String>,
    #[arg(long, hide = true)]
    no_bash_env: bool,
    #[arg(long, hide = true)]
    experimental: bool,
    #[arg(long, hide = true)]
    no_experimental: bool,
    #[arg(long, hide = true)]
    disable_client_telemetry: bool,
    #[arg(long, hide = true)]
    enable_reasoning_summaries: bool,
    #[arg(long, hide = true)]
    no_remote: bool,
    #[arg(long, hide = true)]
    no_remote_export: bool,
    #[arg(long, hide = true)]
    no_eager_powershell_resolution: bool,
}

/// Accepted with a notice on stderr: the caller expects an effect that they do not have.
#[derive(Debug, Default, Args)]
pub(crate) struct NamedArgs {
    #[arg(long, hide = true)]
    context: Option<String>,
    #[arg(long, hide = true)]
    auto_tier: Option<String>,
    #[arg(long, hide = true)]
    assisted_approval: bool,
    #[arg(long, hide = true)]
    max_ai_credits: Option<String>,
    #[arg(long, hide = true)]
    enable_memory: bool,
    #[arg(long, hide = true)]
    share_gist: bool,
    #[arg(long, hide = true)]
    mcp_github_auth: Vec<String>,
    #[arg(long, hide = true)]
    allow_all_mcp_server_instructions: bool,
    #[arg(long, hide = true)]
    remote: bool,
    #[arg(long, hide = true)]
    remote_export: bool,
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    connect: Option<String>,
    #[arg(long, hide = true)]
    ahp_host: Option<String>,
    #[arg(long, hide = true)]
    environment_host: Option<String>,
    #[arg(long, hide = true)]
    environment_compute_id: Option<String>,
    #[arg(long, hide = true)]
    dynamic_retrieval: Vec<String>,
    #[arg(short = 'w', long, hide = true, num_args = 0..=1, require_equals = true, default_missing_value = "")]
    worktree: Option<String>,
    /// Remaining words: probably a prompt without quotes.
    #[arg(hide = true, action = ArgAction::Append)]
    pub(crate) words: Vec<String>,
}

impl NamedArgs {
    /// The given flags that have no effect, for one notice on stderr.
    pub(crate) fn given(&self) -> Vec<&'static str> {
        let table = [
            ("--context", self.context.is_some()),
            ("--auto-tier", self.auto_tier.is_some()),
            ("--assisted-approval", self.assisted_approval),
            ("--max-ai-credits", self.max_ai_credits.is_some()),
            ("--enable-memory", self.enable_memory),
            ("--share-gist", self.share_gist),
            ("--mcp-github-auth", !self.mcp_github_auth.is_empty()),
            ("--allow-all-mcp-server-instructions", self.allow_all_mcp_server_instructions),
            ("--remote", self.remote),
            ("--remote-export", self.remote_export),
            ("--connect", self.connect.is_some()),
            ("--ahp-host", self.ahp_host.is_some()),
            ("--environment-host", self.environment_host.is_some()),
            ("--environment-compute-id", self.environment_compute_id.is_some()),
            ("--dynamic-retrieval", !self.dynamic_retrieval.is_empty()),
            ("--worktree", self.worktree.is_some()),
        ];
        table.into_iter().filter_map(|(name, given)| given.then_some(name)).collect()
    }
}
