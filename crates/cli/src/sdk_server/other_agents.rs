//! Named agents on other runtimes as sessions of SDK clients: `agent` of `session.create` names one, and the sessions are run by the
//! code that runs them for the terminal.

use std::sync::Arc;

use anyhow::{Context, Result, bail};
use futures_util::future::BoxFuture;
use hangar_runtimes::runtime::Consent;
use hangar_server::{ForwardedRequest, OtherAgents};
use hangar_spec::{IdentityOptions, SessionSpec, SystemMessageSpec};
use hangar_store::{SessionId, Store};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::opener::Server;
use crate::args::{EffortArg, Switch};
use crate::runtimes::args::{AgentSwitchArgs, RunAgentArgs, RunPromptArgs, RunToolArgs, RunWithArgs};
use crate::runtimes::choice::NATIVE;
use crate::runtimes::config::RuntimesConfig;
use crate::selection::SessionSelection;
use crate::terminal::agent_server::{
    AgentContext, AgentFront, AgentOpening, AgentSessions, Asker, ViewRequest,
};
use crate::terminal::agents::Agents;

/// Sessions of clients with other agents.
pub(super) struct ClientAgents {
    server: Arc<Server>,
    sessions: Mutex<AgentSessions>,
}

/// Parameters that tell whom a request is for.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Addressed {
    session_id: Option<String>,
    agent: Option<String>,
    custom_agents: Option<Vec<AgentName>>,
    config_dir: Option<std::path::PathBuf>,
}

#[derive(Deserialize)]
struct AgentName {
    name: String,
}

impl ClientAgents {
    pub(super) fn new(server: Arc<Server>) -> Self {
        Self { server, sessions: Mutex::default() }
    }

    /// Runtime of a configured agent, if it is not our own. An agent that the client brings hides one of the same name.
    fn runtime_of(&self, request: &Addressed) -> Option<String> {
        let name = request.agent.as_ref()?;
        if request.custom_agents.iter().flatten().any(|own| own.name == *name) {
            return None;
        }
        // A configuration that cannot be used is told by whoever opens the session.
        let config = RuntimesConfig::load(&self.server.settings(&identity(request))).ok()?;
        config.named.get(name)?.runtime.clone().filter(|runtime| runtime != NATIVE)
    }

    /// Whether another agent wrote the log of a session.
    fn is_foreign(&self, request: &Addressed) -> bool {
        let Some(id) = request.session_id.as_ref().and_then(|id| id.parse::<SessionId>().ok()) else {
            return false;
        };
        let settings = self.server.settings(&identity(request));
        let found = Agents::new(&settings).of_session(&Store::new(&settings.home), &id);
        found.is_ok_and(|agent| agent.is_some())
    }

    fn open(&self, request: ViewRequest) {
        let ViewRequest { asker, method, params } = request;
        match self.opening(&method, params) {
            Ok((context, opening)) => self.sessions.lock().open(context, opening, asker),
            Err(error) => asker.answer(Err(format!("{error:#}"))),
        }
    }

    fn opening(&self, method: &str, params: Value) -> Result<(Arc<AgentContext>, AgentOpening)> {
        let addressed = Addressed::deserialize(&params).unwrap_or_default();
        let runtime = self.runtime_of(&addressed);
        let spec: SessionSpec = serde_json::from_value(params).context("the options of the session")?;
        let settings = self.server.settings(&spec.identity);
        let whose = match (&spec.agents.selected, &runtime) {
            (Some(name), Some(runtime)) => format!("agent `{name}` runs on {runtime}, which"),
            _ => "the agent of this session".to_owned(),
        };
        let id = match &spec.entry.session_id {
            Some(id) => id.parse()?,
            None => uuid::Uuid::new_v4().to_string().parse()?,
        };
        let args = args_of(spec, &whose)?;
        let store = Store::new(&settings.home);
        let is_stored = method == "session.resume" || store.contains(&id);
        let selection = SessionSelection::by_id(id, is_stored);
        let runtimes = Agents::new(&settings).runtimes()?;
        let context = AgentContext { settings, runtimes, store, presence: None };
        let opening = AgentOpening { args, selection, consent: Consent::Asked, front: AgentFront::Program };
        Ok((Arc::new(context), opening))
    }
}

fn identity(request: &Addressed) -> IdentityOptions {
    IdentityOptions { config_dir: request.config_dir.clone(), ..IdentityOptions::default() }
}

/// Flags of `hangar run` that mean the same as the options of a session. `whose` names the agent in errors.
fn args_of(spec: SessionSpec, whose: &str) -> Result<RunWithArgs> {
    refuse_own_parts(&spec, whose)?;
    let SessionSpec { model, tools, workspace, instructions, agents, servers, conversation, .. } = spec;
    let effort = model.effort.map(|level| {
        <EffortArg as clap::ValueEnum>::from_str(&level, true)
            .map_err(|_| anyhow::anyhow!("`{level}` is not a reasoning effort"))
    });
    let system = match instructions.system {
        None => None,
        Some(SystemMessageSpec::Append { content }) => content,
        Some(SystemMessageSpec::Replace { .. } | SystemMessageSpec::Customize { .. }) => {
            bail!("{whose} has a system prompt of its own, which can only be added to; use mode \"append\"")
        }
    };
    let mcp_config =
        servers.configs.filter(|configs| !configs.is_empty()).map(|configs| json!({ "mcpServers": configs }));
    Ok(RunWithArgs {
        agent: RunAgentArgs { model: model.name, effort: effort.transpose()?, ..RunAgentArgs::default() },
        switches: AgentSwitchArgs {
            agent: agents.selected,
            no_agents_md: instructions.skip.unwrap_or(false),
            stream: conversation.streaming.map(|on| if on { Switch::On } else { Switch::Off }),
            ..AgentSwitchArgs::default()
        },
        input: RunPromptArgs { system, directory: workspace.directory, ..RunPromptArgs::default() },
        tools: RunToolArgs {
            available_tools: tools.available.unwrap_or_default(),
            excluded_tools: tools.excluded.unwrap_or_default(),
            mcp_config: mcp_config.map(|config| config.to_string()),
            add_dir: workspace.additional.unwrap_or_default(),
            ..RunToolArgs::default()
        },
        ..RunWithArgs::default()
    })
}

/// Refuses what only Hangar's own agent can do for a client, and a client that answers no questions.
fn refuse_own_parts(spec: &SessionSpec, whose: &str) -> Result<()> {
    let has = |list: Option<usize>| list.is_some_and(|count| count > 0);
    let parts = [
        ("tools", has(spec.client.tools.as_ref().map(Vec::len))),
        ("commands", has(spec.client.commands.as_ref().map(Vec::len))),
        ("canvases", has(spec.client.canvases.as_ref().map(Vec::len))),
        ("hooks", spec.client.hooks.unwrap_or(false)),
        ("provider", spec.model.provider.is_some()),
        ("providers", has(spec.model.providers.as_ref().map(Vec::len))),
        ("customAgents", has(spec.agents.custom.as_ref().map(Vec::len))),
    ];
    if let Some((part, _)) = parts.iter().find(|(_, given)| *given) {
        bail!(
            "{whose} cannot use `{part}` of a client; leave it out, or choose an agent whose runtime is native"
        );
    }
    if !spec.client.permissions.unwrap_or(false) {
        bail!("{whose} asks for permissions; set a permission handler (`requestPermission`)");
    }
    Ok(())
}

impl OtherAgents for ClientAgents {
    fn concerns(&self, method: &str, params: Option<&RawValue>) -> bool {
        let is_opening = matches!(method, "session.create" | "session.resume");
        if !method.starts_with("session.") {
            return false;
        }
        let mut sessions = self.sessions.lock();
        sessions.reap();
        if !is_opening && sessions.is_empty() {
            return false;
        }
        let Some(request) = params.and_then(|params| serde_json::from_str::<Addressed>(params.get()).ok())
        else {
            return false;
        };
        if request.session_id.as_ref().is_some_and(|id| sessions.contains(id)) {
            return true;
        }
        drop(sessions);
        match method {
            "session.create" => self.runtime_of(&request).is_some(),
            "session.resume" => self.is_foreign(&request),
            _ => false,
        }
    }

    fn take(&self, ForwardedRequest { peer, id, method, params }: ForwardedRequest) {
        let is_open = params["sessionId"].as_str().is_some_and(|id| self.sessions.lock().contains(id));
        let request = ViewRequest { asker: Asker::new(peer, id), method, params };
        match request.method.as_str() {
            "session.create" if is_open => {
                request.asker.answer(Err("the session is open already; resume it to join".to_owned()));
            }
            "session.create" | "session.resume" if !is_open => self.open(request),
            _ => self.sessions.lock().pass_on(request),
        }
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            let ended = self.sessions.lock().end_all();
            ended.await;
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(options: Value, says: &str) {
        let mut all = json!({ "requestPermission": true });
        all.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        let spec: SessionSpec = serde_json::from_value(all).unwrap();
        let error = args_of(spec, "agent `a` runs on claude, which").unwrap_err().to_string();
        assert_eq!(error, format!("agent `a` runs on claude, which {says}"));
    }

    #[test]
    fn parts_that_another_agent_cannot_use_are_refused() {
        let advice = "leave it out, or choose an agent whose runtime is native";
        check_refused(
            json!({ "tools": [{ "name": "t" }] }),
            &format!("cannot use `tools` of a client; {advice}"),
        );
        check_refused(json!({ "hooks": true }), &format!("cannot use `hooks` of a client; {advice}"));
        check_refused(
            json!({ "systemMessage": { "mode": "replace", "content": "x" } }),
            "has a system prompt of its own, which can only be added to; use mode \"append\"",
        );
        check_refused(
            json!({ "requestPermission": false }),
            "asks for permissions; set a permission handler (`requestPermission`)",
        );
    }

    #[test]
    fn options_of_a_session_are_flags_of_a_run() {
        let spec: SessionSpec = serde_json::from_value(json!({
            "agent": "reviewer", "model": "opus", "reasoningEffort": "high", "workingDirectory": "/w",
            "systemMessage": { "content": "Be brief." }, "excludedTools": ["bash"], "streaming": true,
            "mcpServers": { "s": { "command": "x" } }, "requestPermission": true,
        }))
        .unwrap();
        let args = args_of(spec, "").unwrap();
        assert_eq!(args.switches.agent.as_deref(), Some("reviewer"));
        assert_eq!(args.agent.model.as_deref(), Some("opus"));
        assert_eq!(args.input.system.as_deref(), Some("Be brief."));
        assert_eq!(args.input.directory.as_deref(), Some(std::path::Path::new("/w")));
        assert_eq!(args.tools.excluded_tools, ["bash"]);
        assert_eq!(args.tools.mcp_config.as_deref(), Some(r#"{"mcpServers":{"s":{"command":"x"}}}"#));
    }
}
