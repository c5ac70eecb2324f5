//! `hangar` in a terminal: the tty, the clock and the effects around the view of `hangar-terminal`.
//!
//! The view runs on this thread; sessions run on others (`host.rs`, those of other agents `agent_host.rs`) and are reached over
//! the SDK protocol (`link.rs`). A session of another process (`owner.rs`) is joined there instead. `app.rs` is the loop,
//! `effects.rs` does what the view asks for, `preferences.rs` keeps what a person chose, `surface.rs` is what it is shown on,
//! `tty.rs` owns the terminal.

mod abilities;
mod agent_answers;
mod agent_host;
pub(crate) mod agent_server;
mod agent_session;
mod agent_views;
pub(crate) mod agents;
mod app;
mod clipboard;
mod detach;
mod editor;
mod effects;
mod entering;
mod files;
mod following;
mod frames;
mod host;
mod hosts;
mod input;
pub(crate) mod link;
mod login;
mod opening;
mod owner;
mod portal_link;
mod preferences;
pub(crate) mod questions;
mod reader;
mod restart;
mod signals;
mod subcommand;
mod surface;
mod tty;
mod worktree;

#[cfg(test)]
mod documentation;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hangar_runtimes::host::Host;
use hangar_runtimes::runtime::{AgentOrder, Consent};
use hangar_store::Store;

use crate::args::{RunArgs, ServerArgs};
use crate::compose::working_dir;
use crate::exit::Exit;
use crate::logging;
use crate::runtimes::args::RunWithArgs;
use crate::runtimes::plan::SessionPlan;
use crate::runtimes::{AgentRuntimes, native};
use crate::selection::{self, SessionSelection};
use crate::settings::Settings;
use agents::Agents;
use host::Listening;
use opening::{Start, Wanted};
use owner::Owner;

/// Time that helper threads get when the program ends.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(100);

/// Whether a person sits at a terminal.
pub(crate) fn is_possible() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Everything that the view starts with.
struct Launch {
    settings: Settings,
    agents: Agents,
    /// Flags of our own sessions.
    own: RunArgs,
    /// Flags of the sessions of other agents.
    for_agents: RunWithArgs,
    directory: PathBuf,
    start: Start,
    /// Socket of `--ui-server`.
    listening: Option<Listening>,
}

impl Launch {
    /// A new session of our own agent, or a resumed one of any agent.
    fn of(settings: &Settings, own: RunArgs) -> Result<Self> {
        let agents = Agents::new(settings);
        let directory = working_dir(own.input.directory.as_deref())?;
        let start = Start::of(&Store::new(&settings.home), &agents, &own, directory.clone())?;
        let for_agents = RunWithArgs::like(&own, start.agent().map(str::to_owned));
        let settings = settings.clone();
        Ok(Self { settings, agents, own, for_agents, directory, start, listening: None })
    }
}

/// Opens a session of our own, or the one that is resumed.
pub(crate) fn run(settings: &Settings, args: RunArgs) -> Result<Exit> {
    logging::start(settings, &args)?;
    in_runtime(app::run(Launch::of(settings, args)?))
}

/// Opens a session of any agent, with the flags of `hangar run`.
pub(crate) fn run_agent(
    settings: &Settings,
    mut args: RunWithArgs,
    runtimes: AgentRuntimes,
    plan: SessionPlan,
) -> Result<Exit> {
    let store = Store::new(&settings.home);
    let mut order = plan.order(&runtimes, &store, &args, None)?;
    order.consent = args.terminal_consent();
    let is_own = plan.own_log();
    if is_own && order.system.is_some() {
        bail!("--system needs -p with Hangar's own agent; AGENTS.md takes instructions in a terminal");
    }
    if is_own && !order.attachments.is_empty() {
        bail!("--attachment needs -p with Hangar's own agent; name the files in the prompt instead");
    }
    let settings = match is_own {
        true => {
            order.env.iter().fold(settings.clone(), |settings, (name, value)| settings.with_var(name, value))
        }
        false => settings.clone(),
    };
    let directory = match order.host {
        Host::Local => order.workspace.clone(),
        // The view has no files of another machine.
        Host::Ssh(_) => working_dir(None)?,
    };
    // Sessions of our own can be opened from here too, with nothing that was said about another agent.
    let mut own = native::flags(&match is_own {
        true => order,
        false => {
            AgentOrder { consent: Consent::Asked, ..AgentOrder::new(order.session_id, directory.clone()) }
        }
    })?;
    own.budget.max_cost = own.budget.max_cost.or(plan.choice.budget_usd.value.filter(|_| is_own));
    let runtime = plan.runtime.card().name.to_string();
    let agent = (!is_own).then(|| runtime.clone());
    args.agent.runtime = Some(runtime);
    let wanted = Wanted {
        selection: plan.selection,
        directory: directory.clone(),
        owner: None,
        agent,
        typed: true,
        follows: false,
    };
    let start = Start::Session(Box::new(wanted));
    let agents = Agents::of(&settings, runtimes);
    logging::start(&settings, &own)?;
    in_runtime(app::run(Launch {
        settings,
        agents,
        own,
        for_agents: args,
        directory,
        start,
        listening: None,
    }))
}

/// `--ui-server`: the view, and the server for SDKs beside it.
pub(crate) fn run_with_server(settings: &Settings, server: &ServerArgs, args: RunArgs) -> Result<Exit> {
    if !is_possible() {
        bail!("--ui-server needs a terminal; --server serves without one");
    }
    if server.stdio {
        bail!("--ui-server and --stdio contradict each other: the terminal has the standard streams");
    }
    logging::start(settings, &args)?;
    let mut launch = Launch::of(settings, args)?;
    launch.listening = Some(Listening::for_clients(settings, server)?);
    in_runtime(app::run(launch))
}

/// `hangar attach`: the view of a session that another process runs.
pub(crate) fn attach(settings: &Settings, session: &str) -> Result<Exit> {
    let store = Store::new(&settings.home);
    let id = selection::resolve(&store, session)?;
    let args = RunArgs::default();
    logging::start(settings, &args)?;
    in_runtime(async {
        let owner = Owner::of(&settings.home, &store, &id).await.attachable(&id, &settings.program)?;
        if !is_possible() {
            bail!("attach needs a terminal");
        }
        let agents = Agents::new(settings);
        let directory = working_dir(None)?;
        let wanted = Wanted {
            agent: agents.of_session(&store, &id)?,
            selection: SessionSelection::Resume(id),
            directory: directory.clone(),
            owner: Some(owner),
            typed: true,
            follows: false,
        };
        let start = Start::Session(Box::new(wanted));
        let for_agents = RunWithArgs::like(&args, None);
        let settings = settings.clone();
        app::run(Launch { settings, agents, own: args, for_agents, directory, start, listening: None }).await
    })
}

fn in_runtime(work: impl Future<Output = Result<Exit>>) -> Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let exit = runtime.block_on(work);
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    exit
}
