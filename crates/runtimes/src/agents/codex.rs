//! OpenAI Codex, `exec --json`.

use super::{levels, with_system};
use crate::capabilities::Capabilities;
use crate::cli_runtime::{Adapter, Located, Turn};
use crate::runtime::{Auth, Card, Order, ShellTool, Stage};
use crate::surroundings::Surroundings;
use crate::translate::Translator;
use crate::turn::Invocation;
use crate::usage::Counting;

/// The variable that holds the key in a rehearsal.
const REHEARSAL_KEY: &str = "REHEARSAL_KEY";
const CREDENTIALS: [&str; 2] = ["CODEX_API_KEY", "OPENAI_API_KEY"];

pub struct Codex(Card);

impl Default for Codex {
    fn default() -> Self {
        Self(Card {
            name: "codex".into(),
            label: "OpenAI Codex".into(),
            capabilities: Capabilities {
                streaming: false,
                resume: true,
                session_id_given: false,
                session_id_early: true,
                cost: false,
                input_tokens: true,
                effort_levels: levels(&["minimal", "low", "medium", "high", "xhigh"]),
                budget_cap: false,
                system_prompt: false,
                model_discovery: false,
                permission_callbacks: false,
                steering: false,
                tool_events: true,
                prompt_by_stdin: true,
                mcp_config: true,
                tool_rules: false,
                shared_process: false,
                remote: true,
                own_log: false,
            },
            install: "npm install -g @openai/codex".into(),
            shell_tool: Some(ShellTool::new("exec_command", "cmd")),
        })
    }
}

impl Adapter for Codex {
    fn card(&self) -> &Card {
        &self.0
    }

    fn locate(&self, surroundings: &Surroundings) -> Option<Located> {
        let program = surroundings.program(&self.0.name, "codex")?;
        Some(Located { program: program.display().to_string(), leading: Vec::new(), doubt: None })
    }

    fn invocation(&self, order: &Order, turn: &Turn<'_>) -> Invocation {
        let mut args: Vec<String> = ["exec", "--json", "--skip-git-repo-check"].map(str::to_owned).into();
        let mut flag = |name: &str, value: &str| args.extend([name.to_owned(), value.to_owned()]);
        if let Some(model) = &order.model {
            flag("--model", model);
        }
        if let Some(effort) = order.effort.as_deref().and_then(|wanted| self.0.capabilities.effort(wanted)) {
            flag("-c", &format!("model_reasoning_effort={}", toml_string(effort)));
        }
        for (key, value) in mcp_servers(order.mcp_config.as_deref()) {
            flag("-c", &format!("{key}={value}"));
        }
        for dir in &order.add_dirs {
            flag("--add-dir", &dir.display().to_string());
        }
        // It has no rules for single tools: without any wish it may do all, else it stays in its own sandbox.
        if order.tools == Default::default() {
            args.push("--dangerously-bypass-approvals-and-sandbox".to_owned());
        } else {
            args.extend(["--sandbox", "workspace-write"].map(str::to_owned));
        }
        args.extend(order.extra.iter().cloned());
        if let Some(id) = turn.agent_session {
            args.extend(["resume".to_owned(), id.to_owned()]);
        }
        args.push("-".to_owned());
        Invocation {
            program: String::new(),
            args: args.into_iter().map(Into::into).collect(),
            env: Vec::new(),
            without: Vec::new(),
            stdin: Some(with_system(turn.prompt, order, turn.agent_session.is_some())),
        }
    }

    fn help(&self) -> &'static [&'static str] {
        &["exec", "--help"]
    }

    fn rehearse(&self, order: &mut Order, stage: &Stage) {
        let settings = [("HOME", &*stage.home), ("CODEX_HOME", &*stage.home)]
            .map(|(name, dir)| (name.to_owned(), dir.display().to_string()));
        order.env.extend(settings);
        order.env.push((REHEARSAL_KEY.to_owned(), "rehearsal".to_owned()));
        order.model.get_or_insert_with(|| "gpt-5".to_owned());
        let provider = format!(
            "model_providers.rehearsal={{name=\"rehearsal\",base_url={},env_key={},wire_api=\"responses\",request_max_retries=1,stream_max_retries=1}}",
            toml_string(&format!("{}/v1", stage.model_url)),
            toml_string(REHEARSAL_KEY),
        );
        order.extra.extend([
            "-c".to_owned(),
            provider,
            "-c".to_owned(),
            "model_provider=\"rehearsal\"".to_owned(),
        ]);
    }

    fn translator(&self) -> Box<dyn Translator> {
        Box::new(crate::translate::codex::Codex::default())
    }

    fn counting(&self) -> Counting {
        Counting::PerSession
    }

    fn auth(&self, surroundings: &Surroundings) -> (Auth, Vec<String>) {
        let home =
            surroundings.var("CODEX_HOME").map_or_else(|| surroundings.home.join(".codex"), Into::into);
        let auth = match surroundings.first_var(&CREDENTIALS) {
            Some((name, _)) => Auth::Found(name.to_owned()),
            None if home.join("auth.json").exists() => Auth::Found("auth.json".to_owned()),
            // Its configuration may name a provider with a key of its own.
            None => Auth::Unknown,
        };
        (auth, Vec::new())
    }
}

/// A string as TOML writes it. JSON's escapes are a subset of TOML's.
fn toml_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// MCP servers as settings of its configuration. It takes no file, so a file stays unread here.
fn mcp_servers(config: Option<&str>) -> Vec<(String, String)> {
    let Some(config) = config.and_then(|config| serde_json::from_str::<serde_json::Value>(config).ok())
    else {
        return Vec::new();
    };
    let servers = config.get("mcpServers").unwrap_or(&config).as_object().cloned().unwrap_or_default();
    let mut settings = Vec::new();
    for (name, server) in &servers {
        for member in ["command", "args", "env", "url", "cwd"] {
            if let Some(value) = server.get(member) {
                settings.push((format!("mcp_servers.{}.{member}", toml_string(name)), toml_value(value)));
            }
        }
    }
    settings
}

fn toml_value(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}={}", toml_string(name), toml_value(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        serde_json::Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}
