//! Hangar's own agent behind the interface of all agents: in this process, without a pipe. `-p` opens its session here
//! too.

mod engine;
mod task;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::Parser as _;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use hangar_agent::session::ConversationState;
use hangar_engine::supervise;
use hangar_runtimes::agents::copilot;
use hangar_runtimes::capabilities::{Capabilities, unmet};
use hangar_runtimes::host::Host;
use hangar_runtimes::options::{AgentOption, AgentOptions};
use hangar_runtimes::outcome::{ErrorKind, Evidence, TurnFailure};
use hangar_runtimes::runtime::{
    AgentCard, AgentOrder, AgentSession, Consent, LoginState, Lookup, OfferedModel, Preflight,
    RehearsalStage, Runtime, ShellTool, TurnLimits,
};
use hangar_runtimes::usage::{Counting, UsageMeter};
use hangar_runtimes::watch::TreeProbe;
use hangar_store::{SessionId, Store};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::choice::NATIVE;
use crate::args::{Cli, ContinueLimit, RunArgs};
use crate::credentials;
use crate::opening::{OpenedEngine, Questions, Resumed, SessionOrder};
use crate::providers;
use crate::selection::SessionSelection;
use crate::settings::Settings;
use engine::NativeEngine;
use task::{EventBuffer, FirstPrompt, NativeTask, TaskProgress, used};

/// Capacity of the queue of news; the session has to wait beyond it.
const NEWS_QUEUE: usize = 256;
const COMMAND_QUEUE: usize = 64;
/// Name by which a rehearsal asks for the scripted model.
const REHEARSED: &str = "gpt-5-mini";

pub(super) struct Native {
    settings: Settings,
    card: AgentCard,
}

impl Native {
    pub(super) fn new(settings: Settings) -> Self {
        let levels = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
        let capabilities = Capabilities {
            streaming: true,
            resume: true,
            session_id_given: true,
            session_id_early: true,
            cost: true,
            input_tokens: true,
            effort_levels: levels.map(str::to_owned).into(),
            budget_cap: true,
            system_prompt: true,
            model_discovery: true,
            permission_callbacks: true,
            steering: true,
            tool_events: true,
            prompt_by_stdin: false,
            mcp_config: true,
            attachments: true,
            tool_rules: true,
            shared_process: true,
            remote: false,
            options: AgentOption::ALL.into(),
            own_log: true,
        };
        let card = AgentCard {
            name: NATIVE.into(),
            label: "Hangar".into(),
            runtime: None,
            capabilities,
            install: "it is built in".into(),
            shell_tool: Some(ShellTool::new("bash", "command")),
        };
        Self { settings, card }
    }
}

impl Runtime for Native {
    fn card(&self) -> &AgentCard {
        &self.card
    }

    fn preflight(&self) -> BoxFuture<'static, Preflight> {
        let found = match providers::configured(&self.settings) {
            Ok(providers) => match providers.first() {
                Some(first) => (LoginState::Found(format!("provider {}", first.name)), Vec::new()),
                None if providers::prefers_script(&self.settings) => {
                    (LoginState::Found("the scripted model".to_owned()), Vec::new())
                }
                None => (
                    LoginState::Missing,
                    vec!["no model provider is configured; see `hangar doctor`".to_owned()],
                ),
            },
            Err(error) => (LoginState::Unknown, vec![format!("{error:#}")]),
        };
        let preflight = Preflight {
            program: std::env::current_exe().ok(),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            auth: found.0,
            problems: found.1,
            ..Preflight::default()
        };
        Box::pin(std::future::ready(preflight))
    }

    fn models(&self, lookup: Lookup) -> BoxFuture<'static, Option<Vec<OfferedModel>>> {
        // Where the scripted model is the usual one, it is among those that can be asked for.
        let scripted = providers::prefers_script(&self.settings).then(|| OfferedModel {
            id: providers::SCRIPTED.to_owned(),
            name: Some("Scripted model".to_owned()),
            provider: None,
            multiplier: Some(0.0),
        });
        let offered = super::commands::discover(self.settings.clone(), lookup, None);
        Box::pin(async move {
            let offered = offered.await;
            match scripted {
                Some(scripted) => Some(offered.into_iter().flatten().chain([scripted]).collect()),
                None => offered,
            }
        })
    }

    fn open(&self, order: AgentOrder) -> BoxFuture<'static, Result<AgentSession, TurnFailure>> {
        let settings = self.settings.clone();
        let warnings = unmet(&self.card, &order);
        Box::pin(async move {
            if order.host != Host::Local {
                return Err(refusal(
                    ErrorKind::AgentNotFound,
                    "Hangar's own agent works in this process; for one on another machine use the runtime `copilot` with the \
                     `hangar` over there as its program",
                ));
            }
            let env = order.env.iter();
            let settings = env.fold(settings, |settings, (name, value)| settings.with_var(name, value));
            let opened = NativeOrder::of(order, warnings).and_then(|wanted| open(settings, wanted));
            opened.map(|opened| opened.live).map_err(|error| {
                let kind = match error.is::<providers::NotSetUp>() {
                    true => ErrorKind::NoProvider,
                    false => ErrorKind::TurnFailed,
                };
                refusal(kind, format!("{error:#}"))
            })
        })
    }

    fn rehearse(&self, order: &mut AgentOrder, stage: &RehearsalStage) {
        order.env.extend(copilot::rehearsal(stage));
        // A model that has a price, so that budgets can be rehearsed.
        order.env.push(("COPILOT_MODEL".to_owned(), REHEARSED.to_owned()));
    }
}

fn refusal(kind: ErrorKind, message: impl Into<String>) -> TurnFailure {
    TurnFailure { kind, message: message.into(), evidence: Evidence::default() }
}

/// A session that is driven by prompts, one after the other.
pub(crate) struct NativeOrder {
    pub(crate) session: SessionOrder,
    pub(crate) limits: TurnLimits,
    pub(crate) first: FirstMessage,
    /// Warnings for the user.
    pub(crate) warnings: Vec<String>,
}

/// First prompt, as it was typed.
#[derive(Debug, Default)]
pub(crate) struct FirstMessage {
    /// Whether the prompt starts a fleet of agents.
    pub(crate) fleet: bool,
    /// Whether the resulting plan is implemented at once.
    pub(crate) implements_plan: bool,
}

impl NativeOrder {
    /// Translates an order for any agent.
    fn of(order: AgentOrder, warnings: Vec<String>) -> Result<Self> {
        let args = flags(&order)?;
        let id: SessionId = order.session_id.parse()?;
        let session = SessionOrder {
            args: Arc::new(args),
            selection: match order.resume {
                Some(_) => SessionSelection::Resume(id),
                None => SessionSelection::New { id, name: order.name },
            },
            directory: Some(order.workspace),
            system: order.system,
            named_after: None,
            attachments: order.attachments,
            outputs: Vec::new(),
            resumed: Resumed::AsItWas,
            questions: match order.consent {
                Consent::Given | Consent::Confined => Questions::Listener,
                Consent::Asked => Questions::Person,
            },
            client: None,
            records: order.opening,
            notes_script: false,
            is_queued: order.consent == Consent::Confined,
        };
        Ok(Self { session, limits: order.limits, first: FirstMessage::default(), warnings })
    }
}

/// Settings of a run that an order asks for. Without tool rules everything may run, as with other agents, unless a person is
/// asked. Only the arguments that a person typed for this agent alone are parsed, as flags of `-p`; they win.
pub(crate) fn flags(order: &AgentOrder) -> Result<RunArgs> {
    let mut args = match order.extra.as_slice() {
        [] => RunArgs::default(),
        typed => parse(typed)?,
    };
    set_options(&mut args, &order.options);
    if let Some(effort) = &order.effort {
        args.models.reasoning_effort.get_or_insert_with(|| effort.clone());
    }
    if order.tools.allow.is_empty() && order.consent != Consent::Asked {
        args.permissions.allow_all = true;
    }
    match order.sandbox {
        Some(true) => args.confinement.sandbox = true,
        Some(false) => args.confinement.no_sandbox = true,
        None => {}
    }
    // Where the kernel cannot confine commands, they run with the rights of the user.
    if order.consent == Consent::Confined
        && hangar_sandbox::available().is_ok()
        && !args.confinement.no_sandbox
    {
        args.confinement.sandbox = true;
        args.confinement.sandbox_network = true;
    }
    args.models.model = args.models.model.or_else(|| order.model.clone());
    args.permissions.allow_tool.extend(order.tools.allow.iter().cloned());
    args.permissions.deny_tool.extend(order.tools.deny.iter().cloned());
    if !order.tools.available.is_empty() {
        args.permissions
            .available_tools
            .get_or_insert_default()
            .extend(order.tools.available.iter().cloned());
    }
    args.permissions.excluded_tools.extend(order.tools.excluded.iter().cloned());
    args.extensions.additional_mcp_config.extend(order.mcp_config.clone());
    args.permissions.add_dir.extend(order.add_dirs.iter().cloned());
    args.permissions.secret_env_vars.extend(order.secret_variables.iter().cloned());
    if let Some(steps) = order.limits.steps {
        args.conduct.max_autopilot_continues = ContinueLimit(steps);
        args.conduct.autopilot = true;
    }
    Ok(args)
}

fn parse(typed: &[String]) -> Result<RunArgs> {
    let line = ["hangar"].into_iter().chain(typed.iter().map(String::as_str));
    let cli = Cli::try_parse_from(line)
        .map_err(|error| anyhow!("{}", error.to_string().lines().next().unwrap_or_default()))?;
    Ok(cli.flags.run)
}

/// `experimental` has no effect: nothing here is hidden behind it.
fn set_options(args: &mut RunArgs, options: &AgentOptions) {
    args.input.no_custom_instructions |= options.is_bare() || options.without_agents_md();
    args.extensions.disable_builtin_mcps |= options.is_bare() || options.builtin_mcp == Some(false);
    if let Some(stream) = options.stream {
        args.output.stream = stream.into();
    }
    args.agents.agent = args.agents.agent.take().or_else(|| options.persona.clone());
}

/// Session that runs in a task of its own.
pub(crate) struct NativeSession {
    pub(crate) live: AgentSession,
    pub(crate) id: SessionId,
    pub(crate) cwd: PathBuf,
    pub(crate) store: Store,
    /// Receives the final state.
    pub(crate) last: oneshot::Receiver<ConversationState>,
    /// Cancelled when the caller does not wait for the last event.
    pub(crate) hurry: CancellationToken,
}

/// Opens a session. Its task runs until it is stopped or dropped.
pub(crate) fn open(settings: Settings, wanted: NativeOrder) -> Result<NativeSession> {
    let NativeOrder { session, limits, first, warnings } = wanted;
    let is_new = matches!(session.selection, SessionSelection::New { .. });
    let events = EventBuffer::default();
    let heard = events.clone();
    let sink = Box::new(move || Box::new(heard.clone()) as _);
    let opened = NativeEngine::open(settings, session, sink)?;
    let OpenedEngine { engine, id, cwd, store, attachments } = opened;
    let before = (!is_new).then(|| used(engine.session()));
    let (commands, inbox) = mpsc::channel(COMMAND_QUEUE);
    let (outbox, news) = mpsc::channel(NEWS_QUEUE);
    let (sent, last) = oneshot::channel();
    let tree = TreeProbe::new(credentials::git(), cwd.clone());
    let mut task = NativeTask {
        engine,
        events,
        inbox,
        outbox,
        limits,
        tree,
        meter: UsageMeter::new(Counting::SinceBegun, before),
        first: FirstPrompt { attachments, fleet: first.fleet, implements_plan: first.implements_plan },
        warnings,
        last: sent,
        progress: TaskProgress::default(),
    };
    let hurry = CancellationToken::new();
    let hurried = hurry.clone();
    let owner = tokio::spawn(FutureExt::boxed(async move {
        supervise(&mut task, hurried.cancelled()).await;
        task.engine.stop_extensions().await;
        task.finish().await;
    }));
    Ok(NativeSession {
        live: AgentSession::new(commands, news, owner.abort_handle()),
        id,
        cwd,
        store,
        last,
        hurry,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instruction files, built-in MCP servers, streaming and agent of the run.
    #[track_caller]
    fn check(options: AgentOptions, extra: &[&str], expected: &str) {
        let mut order = AgentOrder::new("0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001".to_owned(), "/work".into());
        order.options = options;
        order.extra = extra.iter().map(|&word| word.to_owned()).collect();
        let args = flags(&order).expect("valid flags");
        let (bare, no_mcp) = (args.input.no_custom_instructions, args.extensions.disable_builtin_mcps);
        assert_eq!(format!("{bare} {no_mcp} {:?} {:?}", args.output.stream, args.agents.agent), expected);
    }

    #[test]
    fn options_set_the_fields_of_the_run() {
        let none = AgentOptions::default;
        check(none(), &[], "false false On None");
        check(AgentOptions { bare: Some(true), ..none() }, &[], "true true On None");
        check(AgentOptions { agents_md: Some(false), ..none() }, &[], "true false On None");
        check(AgentOptions { builtin_mcp: Some(false), ..none() }, &[], "false true On None");
        check(
            AgentOptions { stream: Some(false), experimental: Some(true), ..none() },
            &[],
            "false false Off None",
        );
        check(
            AgentOptions { persona: Some("a b".to_owned()), ..none() },
            &[],
            r#"false false On Some("a b")"#,
        );
    }

    #[test]
    fn typed_arguments_go_together_with_options() {
        let options = || AgentOptions {
            bare: Some(true),
            persona: Some("critic".to_owned()),
            ..AgentOptions::default()
        };
        check(options(), &["--agent=tester"], r#"true true On Some("tester")"#);
        check(options(), &["--no-custom-instructions"], r#"true true On Some("critic")"#);
    }
}
