//! OpenAI Codex, `exec --json`.

use serde_json::Value;

use super::{levels, mcp_servers, with_system};
use crate::adapter::{Adapter, AgentProfile, TurnContext};
use crate::capabilities::Capabilities;
use crate::invocation::AgentCommandLine;
use crate::login::{ConfigFile, LoginFile, LoginQuestion, LoginSources};
use crate::options::AgentOption;
use crate::probe::{ModelListing, Probe};
use crate::runtime::{AgentCard, AgentOrder, RehearsalStage, ShellTool};
use crate::translate::Translator;
use crate::usage::Counting;

/// The variable that holds the key in a rehearsal.
const REHEARSAL_KEY: &str = "REHEARSAL_KEY";

const fn config_file(name: &'static str) -> ConfigFile {
    ConfigFile { variable: "CODEX_HOME", directory: ".codex", name }
}

pub(crate) const LOGIN: LoginSources = LoginSources {
    provider: None,
    variables: &["CODEX_API_KEY", "OPENAI_API_KEY"],
    ignored: None,
    file: Some(LoginFile { file: config_file("auth.json"), members: &[], label: "auth.json" }),
    own_providers: Some((config_file("config.toml"), "model_provider")),
    provider_args: &["model_provider", "--oss"],
    question: Some(LoginQuestion { program: None, args: &["login", "status"], in_help: None }),
    advice: "run `codex login`, or set CODEX_API_KEY",
};

pub fn profile() -> AgentProfile {
    AgentProfile {
        card: AgentCard {
            name: "codex".into(),
            label: "OpenAI Codex".into(),
            runtime: None,
            capabilities: Capabilities {
                effort_levels: levels(&["minimal", "low", "medium", "high", "xhigh"]),
                mcp_config: true,
                options: vec![AgentOption::Bare, AgentOption::AgentsMd],
                ..Capabilities::in_a_process()
            },
            install: "npm install -g @openai/codex".into(),
            shell_tool: Some(ShellTool::new("exec_command", "cmd")),
        },
        probe: Probe {
            program: "codex",
            help: &["exec", "--help"],
            required: &[],
            optional: &[],
            stand_in: None,
            models: ModelListing::Nobody,
            login: LOGIN,
        },
        counting: Counting::SinceBegun,
        echoes_prompt: false,
        speaks_at_start: true,
        foreign_models: None,
    }
}

pub struct Codex;

impl Adapter for Codex {
    fn invocation(&self, order: &AgentOrder, turn: &TurnContext<'_>) -> AgentCommandLine {
        let mut args: Vec<String> = ["exec", "--json", "--skip-git-repo-check"].map(str::to_owned).into();
        let mut flag = |name: &str, value: &str| args.extend([name.to_owned(), value.to_owned()]);
        if let Some(model) = &order.model {
            flag("--model", model);
        }
        if let Some(effort) = &order.effort {
            flag("-c", &format!("model_reasoning_effort={}", toml_string(effort)));
        }
        if order.options.is_bare() || order.options.without_agents_md() {
            flag("-c", "project_doc_max_bytes=0");
        }
        for (key, value) in mcp_settings(order.mcp_config.as_deref()) {
            flag("-c", &format!("{key}={value}"));
        }
        for dir in &order.add_dirs {
            flag("--add-dir", &dir.display().to_string());
        }
        if order.options.is_bare() {
            args.extend(["--ignore-user-config", "--ignore-rules"].map(str::to_owned));
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
        AgentCommandLine::new(args, with_system(turn.prompt, order, turn.agent_session.is_some()))
    }

    fn rehearse(&self, order: &mut AgentOrder, stage: &RehearsalStage) {
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

    fn translator(&self, _: &TurnContext<'_>) -> Box<dyn Translator> {
        Box::new(crate::translate::codex::CodexTranslator::default())
    }
}

/// A string as TOML writes it. JSON's escapes are a subset of TOML's.
fn toml_string(text: &str) -> String {
    Value::from(text).to_string()
}

/// MCP servers as settings of its configuration.
fn mcp_settings(config: Option<&str>) -> Vec<(String, String)> {
    let setting = |(name, server): (String, Value)| {
        let members = [
            ("command", "command"),
            ("args", "args"),
            ("env", "env"),
            ("cwd", "cwd"),
            ("url", "url"),
            ("headers", "http_headers"),
        ];
        let members =
            members.iter().filter_map(|(member, its)| Some(((*its).to_owned(), server.get(member)?.clone())));
        // The name is a part of a path with dots, which knows no quotes.
        let name = name.replace(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')), "_");
        (format!("mcp_servers.{name}"), toml_value(&Value::Object(members.collect())))
    };
    mcp_servers(config).into_iter().map(setting).collect()
}

fn toml_value(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let members: Vec<String> = members
                .iter()
                .map(|(name, value)| format!("{}={}", toml_string(name), toml_value(value)))
                .collect();
            format!("{{{}}}", members.join(","))
        }
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml_value).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(config: &str, expected: &[(&str, &str)]) {
        let settings = mcp_settings(Some(config));
        let settings: Vec<(&str, &str)> =
            settings.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(settings, expected);
    }

    #[test]
    fn servers_become_settings_of_its_own_form() {
        check(
            r#"{"mcpServers":{"my.server":{"type":"stdio","args":["-c","true"],"tools":["*"]},"other":{"env":{"A":"b"}}}}"#,
            &[
                ("mcp_servers.my_server", r#"{"args"=["-c","true"]}"#),
                ("mcp_servers.other", r#"{"env"={"A"="b"}}"#),
            ],
        );
    }

    #[test]
    fn a_file_is_read() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let far = r#"{"mcpServers":{"far":{"url":"http://127.0.0.1:1/mcp","headers":{"A":"b"}}}}"#;
        std::fs::write(file.path(), far).unwrap();
        let path = file.path().display().to_string();
        for config in [format!("@{path}"), path] {
            let setting = r#"{"url"="http://127.0.0.1:1/mcp","http_headers"={"A"="b"}}"#;
            check(&config, &[("mcp_servers.far", setting)]);
        }
    }
}
