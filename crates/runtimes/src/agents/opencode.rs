//! opencode, `run --format json`.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{levels, mcp_servers, with_system};
use crate::adapter::{Adapter, AgentProfile, TurnContext};
use crate::capabilities::Capabilities;
use crate::environment::RuntimeEnvironment;
use crate::invocation::AgentCommandLine;
use crate::login::{ConfigFile, LoginFile, LoginSources};
use crate::options::AgentOption;
use crate::probe::{ModelListing, Probe};
use crate::runtime::{AgentCard, AgentOrder, RehearsalStage, ShellTool};
use crate::translate::Translator;
use crate::usage::Counting;

/// Settings that it lays over those of its files.
const SETTINGS: &str = "OPENCODE_CONFIG_CONTENT";

/// Timeout of listing models: the program needs seconds to start and may query an online catalogue.
const MODELS_PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const LOGIN: LoginSources = LoginSources {
    provider: None,
    variables: &[],
    ignored: None,
    file: Some(LoginFile {
        file: ConfigFile { variable: "XDG_DATA_HOME", directory: ".local/share", name: "opencode/auth.json" },
        members: &[],
        label: "auth.json",
    }),
    own_providers: None,
    provider_args: &[],
    // Some of its models need none.
    question: None,
    advice: "run `opencode auth login`",
};

pub fn profile() -> AgentProfile {
    AgentProfile {
        card: AgentCard {
            name: "opencode".into(),
            label: "opencode".into(),
            runtime: None,
            capabilities: Capabilities {
                cost: true,
                // It has the variants that the model has, and passes over those that it has not.
                effort_levels: levels(&["minimal", "low", "medium", "high", "xhigh", "max"]),
                model_discovery: true,
                mcp_config: true,
                options: vec![
                    AgentOption::Bare,
                    AgentOption::AgentsMd,
                    AgentOption::Persona,
                    AgentOption::Experimental,
                ],
                ..Capabilities::in_a_process()
            },
            install: "npm install -g opencode-ai".into(),
            shell_tool: Some(ShellTool::new("bash", "command")),
        },
        probe: Probe {
            program: "opencode",
            help: &["run", "--help"],
            required: &[],
            optional: &[],
            stand_in: None,
            models: ModelListing::Program {
                args: &["models"],
                refresh: "--refresh",
                patience: MODELS_PATIENCE,
            },
            login: LOGIN,
        },
        counting: Counting::PerTurn,
        echoes_prompt: false,
        speaks_at_start: false,
        foreign_models: None,
    }
}

pub struct Opencode {
    /// Settings of the user's own.
    settings: Option<String>,
}

impl Opencode {
    pub fn new(runtime_env: &RuntimeEnvironment) -> Self {
        Self { settings: runtime_env.var(SETTINGS).map(str::to_owned) }
    }

    /// The settings of an order with its MCP servers among them.
    fn with_servers(&self, order: &AgentOrder) -> Option<String> {
        let servers = mcp_servers(order.mcp_config.as_deref());
        if servers.is_empty() {
            return None;
        }
        let ordered = order.env.iter().rev().find(|(name, _)| name == SETTINGS).map(|(_, value)| value);
        let before = ordered.or(self.settings.as_ref());
        let mut settings: Map<String, Value> =
            before.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let mut all = match settings.remove("mcp") {
            Some(Value::Object(all)) => all,
            _ => Map::new(),
        };
        all.extend(servers.into_iter().map(|(name, server)| (name, as_setting(&server))));
        settings.insert("mcp".to_owned(), Value::Object(all));
        Some(Value::Object(settings).to_string())
    }
}

/// A server of an MCP configuration as its own configuration has them.
fn as_setting(server: &Value) -> Value {
    match server.get("url") {
        Some(url) => json!({ "type": "remote", "url": url, "headers": members(server, "headers") }),
        None => {
            let command: Vec<&Value> =
                server.get("command").into_iter().chain(list(server, "args")).collect();
            json!({ "type": "local", "command": command, "environment": members(server, "env") })
        }
    }
}

fn members(server: &Value, name: &str) -> Value {
    server.get(name).filter(|members| members.is_object()).cloned().unwrap_or_else(|| json!({}))
}

fn list<'a>(server: &'a Value, name: &str) -> &'a [Value] {
    server.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

impl Adapter for Opencode {
    fn invocation(&self, order: &AgentOrder, turn: &TurnContext<'_>) -> AgentCommandLine {
        let mut args: Vec<String> = ["run", "--format", "json", "--thinking"].map(str::to_owned).into();
        let mut flag = |name: &str, value: &str| args.extend([name.to_owned(), value.to_owned()]);
        if let Some(model) = &order.model {
            flag("-m", model);
        }
        if let Some(effort) = &order.effort {
            flag("--variant", effort);
        }
        if let Some(id) = turn.agent_session {
            flag("-s", id);
        }
        if let Some(persona) = &order.options.persona {
            flag("--agent", persona);
        }
        if order.options.is_bare() {
            args.push("--pure".to_owned());
        }
        if order.tools == Default::default() {
            args.push("--auto".to_owned());
        }
        args.extend(order.extra.iter().cloned());
        // By stdin: opencode adds quotes to prompts among the arguments.
        let prompt = with_system(turn.prompt, order, turn.agent_session.is_some());
        let settings = self.with_servers(order).map(|settings| (SETTINGS.to_owned(), settings));
        let mut env: Vec<(String, String)> = settings.into_iter().collect();
        let mut switch = |name: &str| env.push((name.to_owned(), "1".to_owned()));
        if order.options.is_bare() || order.options.without_agents_md() {
            switch("OPENCODE_DISABLE_PROJECT_CONFIG");
        }
        if order.options.experimental == Some(true) {
            switch("OPENCODE_EXPERIMENTAL");
        }
        AgentCommandLine { env, ..AgentCommandLine::new(args, prompt) }
    }

    fn rehearse(&self, order: &mut AgentOrder, stage: &RehearsalStage) {
        let provider = json!({
            "share": "disabled",
            "autoupdate": false,
            "provider": { "rehearsal": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "rehearsal",
                "options": { "baseURL": format!("{}/v1", stage.model_url), "apiKey": "rehearsal" },
                "models": { "mock-model": { "name": "mock-model", "reasoning": true } },
            } },
        });
        let home = stage.home.display().to_string();
        let settings = [
            ("HOME", home.clone()),
            ("XDG_DATA_HOME", format!("{home}/.local/share")),
            ("XDG_CONFIG_HOME", format!("{home}/.config")),
            ("XDG_STATE_HOME", format!("{home}/.local/state")),
            ("XDG_CACHE_HOME", format!("{home}/.cache")),
            (SETTINGS, provider.to_string()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".to_owned()),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".to_owned()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".to_owned()),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".to_owned()),
        ];
        order.env.extend(settings.map(|(name, value)| (name.to_owned(), value)));
        order.model.get_or_insert_with(|| "rehearsal/mock-model".to_owned());
    }

    fn translator(&self, _: &TurnContext<'_>) -> Box<dyn Translator> {
        Box::new(crate::translate::opencode::OpencodeTranslator::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_added_to_the_settings_that_are_there() {
        let vars = std::collections::BTreeMap::from([(SETTINGS.to_owned(), r#"{"theme":"x"}"#.to_owned())]);
        let runtime_env = RuntimeEnvironment { vars, ..RuntimeEnvironment::bare("/".as_ref()) };
        let agent = Opencode::new(&runtime_env);
        let mut order = AgentOrder::new("s".to_owned(), "/".into());
        assert_eq!(agent.with_servers(&order), None);
        let servers = json!({
            "near": { "type": "stdio", "command": "sh", "args": ["-c", "true"], "env": { "A": "b" }, "tools": ["*"] },
            "far": { "url": "http://127.0.0.1:1/mcp" },
        });
        order.mcp_config = Some(json!({ "mcpServers": servers }).to_string());
        let settings: Value = serde_json::from_str(&agent.with_servers(&order).unwrap()).unwrap();
        let expected = json!({
            "near": { "type": "local", "command": ["sh", "-c", "true"], "environment": { "A": "b" } },
            "far": { "type": "remote", "url": "http://127.0.0.1:1/mcp", "headers": {} },
        });
        assert_eq!(settings, json!({ "theme": "x", "mcp": expected }));
    }
}
