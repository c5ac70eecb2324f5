//! Claude Code.

use super::{has_files, is_json, levels, mcp_servers, uuid_of};
use crate::adapter::{Adapter, AgentProfile, TurnContext};
use crate::capabilities::Capabilities;
use crate::invocation::{AgentCommandLine, Argument};
use crate::login::{ConfigFile, LoginFile, LoginQuestion, LoginSources};
use crate::options::AgentOption;
use crate::probe::{ModelListing, OptionalFlag, Probe};
use crate::runtime::{AgentCard, AgentOrder, RehearsalStage, ShellTool};
use crate::translate::Translator;
use crate::usage::Counting;

/// Variables of a surrounding Claude Code, which would make this one think that it is part of it.
const SURROUNDING: [&str; 3] = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"];
/// Tools that are allowed by name where nothing is restricted and the agent refuses to run without rules, as it does
/// for root.
const ALL_TOOLS: &str =
    "Bash,Read,Write,Edit,MultiEdit,NotebookEdit,Glob,Grep,WebFetch,WebSearch,Task,Agent,Skill";
/// Settings that allow the tools of MCP servers which it is configured with itself. Its rules have no word for all servers,
/// but a hook is asked about each tool. What was denied stays so.
const ALLOW_OWN_SERVERS: &str = r#"{"hooks":{"PreToolUse":[{"matcher":"mcp__.*","hooks":[{"type":"command","command":"echo '{\"hookSpecificOutput\":{\"hookEventName\":\"PreToolUse\",\"permissionDecision\":\"allow\"}}'"}]}]}}"#;
/// Takes instructions from a file, as the help names it.
const SYSTEM_FILE: &str = "--append-system-prompt[-file]";
/// The command about logins, as the help names it. Older versions would take the question for a prompt.
const AUTH_COMMAND: &str = "Manage authentication";

pub(crate) const LOGIN: LoginSources = LoginSources {
    provider: None,
    variables: &[
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
        "CLAUDE_CODE_OAUTH_TOKEN",
        "CLAUDE_CODE_USE_BEDROCK",
        "CLAUDE_CODE_USE_VERTEX",
    ],
    ignored: None,
    file: Some(LoginFile {
        file: ConfigFile { variable: "CLAUDE_CONFIG_DIR", directory: ".claude", name: ".credentials.json" },
        members: &[],
        label: "~/.claude/.credentials.json",
    }),
    own_providers: None,
    provider_args: &[],
    question: Some(LoginQuestion { program: None, args: &["auth", "status"], in_help: Some(AUTH_COMMAND) }),
    advice: "run `claude auth login`, or set ANTHROPIC_API_KEY",
};

pub fn profile() -> AgentProfile {
    AgentProfile {
        card: AgentCard {
            name: "claude".into(),
            label: "Claude Code".into(),
            runtime: None,
            capabilities: Capabilities {
                streaming: true,
                session_id_given: true,
                cost: true,
                effort_levels: levels(&["low", "medium", "high", "xhigh", "max"]),
                budget_cap: true,
                system_prompt: true,
                mcp_config: true,
                tool_rules: true,
                options: vec![AgentOption::Bare, AgentOption::Stream, AgentOption::Persona],
                ..Capabilities::in_a_process()
            },
            install: "npm install -g @anthropic-ai/claude-code".into(),
            shell_tool: Some(ShellTool::new("Bash", "command")),
        },
        probe: Probe {
            program: "claude",
            help: &["--help"],
            required: &[],
            optional: &[OptionalFlag { name: SYSTEM_FILE, without: |_| {} }],
            stand_in: None,
            models: ModelListing::Nobody,
            login: LOGIN,
        },
        counting: Counting::PerTurn,
        echoes_prompt: false,
        speaks_at_start: true,
        foreign_models: None,
    }
}

pub struct Claude;

/// The name of an MCP server as its rules write it.
fn in_rules(server: &str) -> String {
    server.replace(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_')), "_")
}

impl Adapter for Claude {
    fn invocation(&self, order: &AgentOrder, turn: &TurnContext<'_>) -> AgentCommandLine {
        let mut args: Vec<Argument> =
            ["-p", "--output-format", "stream-json", "--verbose"].map(Argument::from).into();
        if !order.options.without_stream() {
            args.push("--include-partial-messages".into());
        }
        if order.options.is_bare() {
            args.push("--bare".into());
        }
        let mut flag = |name: &str, value: &str| args.extend([name, value].map(Argument::from));
        let mut session_id = None;
        match (turn.agent_session, uuid_of(order)) {
            (Some(id), _) => flag("--resume", id),
            (None, Some(id)) if turn.before == 0 => {
                flag("--session-id", id);
                session_id = Some(id.to_owned());
            }
            (None, _) => {}
        }
        if let Some(model) = &order.model {
            flag("--model", model);
        }
        if let Some(effort) = &order.effort {
            flag("--effort", effort);
        }
        if let Some(persona) = &order.options.persona {
            flag("--agent", persona);
        }
        if let Some(budget) = order.limits.budget_usd {
            flag("--max-budget-usd", &budget.to_string());
        }
        // It counts every call to the model, so that none would be no turn at all.
        if let Some(steps) = order.limits.steps.filter(|steps| *steps > 0) {
            flag("--max-turns", &steps.to_string());
        }
        for dir in &order.add_dirs {
            flag("--add-dir", &dir.display().to_string());
        }
        if !order.tools.available.is_empty() {
            flag("--tools", &order.tools.available.join(","));
        }
        let denied: Vec<&str> =
            order.tools.deny.iter().chain(&order.tools.excluded).map(String::as_str).collect();
        if !denied.is_empty() {
            flag("--disallowedTools", &denied.join(","));
        }
        if order.tools.allow.is_empty() {
            let servers = mcp_servers(order.mcp_config.as_deref());
            let of_servers = servers.keys().map(|name| format!(",mcp__{}", in_rules(name)));
            flag("--allowedTools", &format!("{ALL_TOOLS}{}", of_servers.collect::<String>()));
            flag("--settings", ALLOW_OWN_SERVERS);
        } else {
            flag("--allowedTools", &order.tools.allow.join(","));
        }
        let by_file = |text: &str| match has_files(order) {
            true => Argument::Input { before: String::new(), text: text.to_owned() },
            false => text.into(),
        };
        if let Some(system) = &order.system {
            // It may be longer than an argument may be.
            match has_files(order) && turn.has(SYSTEM_FILE) {
                true => args.extend(["--append-system-prompt-file".into(), by_file(system)]),
                false => args.extend(["--append-system-prompt", system].map(Argument::from)),
            }
        }
        if let Some(config) = &order.mcp_config {
            // It may hold secrets, and others can see command lines.
            let config = match is_json(config) {
                true => by_file(config),
                false => config.strip_prefix('@').unwrap_or(config).into(),
            };
            args.extend(["--mcp-config".into(), config]);
        }
        args.extend(order.extra.iter().map(Argument::from));
        AgentCommandLine {
            without: SURROUNDING.map(str::to_owned).into(),
            session_id,
            ..AgentCommandLine::new(args, turn.prompt.to_owned())
        }
    }

    fn rehearse(&self, order: &mut AgentOrder, stage: &RehearsalStage) {
        let settings = [
            ("HOME", stage.home.display().to_string()),
            ("ANTHROPIC_BASE_URL", stage.model_url.clone()),
            ("ANTHROPIC_API_KEY", "rehearsal".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("CLAUDE_CODE_MAX_RETRIES", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_ERROR_REPORTING", "1".to_owned()),
        ];
        order.env.extend(settings.map(|(name, value)| (name.to_owned(), value)));
    }

    fn translator(&self, _: &TurnContext<'_>) -> Box<dyn Translator> {
        Box::new(crate::translate::claude::ClaudeTranslator::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the value after a flag in the first turn of an order.
    #[track_caller]
    fn check(wish: impl FnOnce(&mut AgentOrder), name: &str, expected: Option<&str>) {
        let mut order = AgentOrder::new("0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001".to_owned(), "/work".into());
        wish(&mut order);
        let turn = TurnContext { prompt: "go", agent_session: None, before: 0, lacks: &Default::default() };
        let args = Claude.invocation(&order, &turn).args;
        let args: Vec<String> = args.iter().map(Argument::to_string).collect();
        let value = args.iter().position(|arg| arg == name).and_then(|at| args.get(at + 1));
        assert_eq!(value.map(String::as_str), expected);
    }

    #[test]
    fn without_any_rule_the_tools_of_given_servers_may_run_too() {
        check(|_| {}, "--allowedTools", Some(ALL_TOOLS));
        let servers = r#"{"mcpServers":{"my.server":{},"other":{}}}"#;
        let all = format!("{ALL_TOOLS},mcp__my_server,mcp__other");
        check(|order| order.mcp_config = Some(servers.to_owned()), "--allowedTools", Some(&all));
    }

    #[test]
    fn long_and_secret_texts_go_by_files_where_there_can_be_some() {
        let json = r#"{"mcpServers":{}}"#;
        let inline = |order: &mut AgentOrder| {
            order.system = Some("be brief".to_owned());
            order.mcp_config = Some(json.to_owned());
        };
        let by_file = |order: &mut AgentOrder| {
            inline(order);
            order.scratch = Some("/scratch".into());
        };
        check(inline, "--append-system-prompt", Some("be brief"));
        check(inline, "--mcp-config", Some(json));
        check(by_file, "--append-system-prompt", None);
        check(by_file, "--append-system-prompt-file", Some("<be brief>"));
        check(by_file, "--mcp-config", Some(&format!("<{json}>")));
    }

    #[test]
    fn rules_are_its_own() {
        let tools = || vec!["Bash(git:*)".to_owned(), "Read".to_owned()];
        check(|order| order.tools.allow = tools(), "--allowedTools", Some("Bash(git:*),Read"));
        check(|order| order.tools.deny = tools(), "--disallowedTools", Some("Bash(git:*),Read"));
        check(|order| order.tools.excluded = tools(), "--disallowedTools", Some("Bash(git:*),Read"));
        check(|order| order.tools.available = tools(), "--tools", Some("Bash(git:*),Read"));
    }

    #[test]
    fn no_steps_is_no_limit_and_a_budget_is_one() {
        check(|order| order.limits.steps = Some(0), "--max-turns", None);
        check(|order| order.limits.steps = Some(3), "--max-turns", Some("3"));
        check(|order| order.limits.budget_usd = Some(0.5), "--max-budget-usd", Some("0.5"));
        check(|order| order.mcp_config = Some("@/mcp.json".to_owned()), "--mcp-config", Some("/mcp.json"));
    }
}
