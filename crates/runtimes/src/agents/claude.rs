//! Claude Code.

use super::{levels, uuid_of};
use crate::capabilities::Capabilities;
use crate::cli_runtime::{Adapter, Located, Turn};
use crate::runtime::{Auth, Card, Order, ShellTool, Stage};
use crate::surroundings::Surroundings;
use crate::translate::Translator;
use crate::turn::Invocation;
use crate::usage::Counting;

/// Variables of a surrounding Claude Code, which would make this one think that it is part of it.
const SURROUNDING: [&str; 3] = ["CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"];
const CREDENTIALS: [&str; 5] = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
];
/// What it may use when nobody restricts it and it refuses to do without rules, as it does for the superuser.
const ALL_TOOLS: &str =
    "Bash,Read,Write,Edit,MultiEdit,NotebookEdit,Glob,Grep,WebFetch,WebSearch,Task,Agent,Skill";

pub struct Claude(Card);

impl Default for Claude {
    fn default() -> Self {
        Self(Card {
            name: "claude".into(),
            label: "Claude Code".into(),
            capabilities: capabilities(),
            install: "npm install -g @anthropic-ai/claude-code".into(),
            shell_tool: Some(ShellTool::new("Bash", "command")),
        })
    }
}

fn capabilities() -> Capabilities {
    Capabilities {
        streaming: true,
        session_id_given: true,
        cost: true,
        effort_levels: levels(&["low", "medium", "high", "xhigh", "max"]),
        budget_cap: true,
        system_prompt: true,
        mcp_config: true,
        tool_rules: true,
        ..Capabilities::in_a_process()
    }
}

impl Adapter for Claude {
    fn card(&self) -> &Card {
        &self.0
    }

    fn locate(&self, surroundings: &Surroundings) -> Option<Located> {
        surroundings.program(&self.0.name, "claude").as_deref().map(Located::program)
    }

    fn invocation(&self, order: &Order, turn: &Turn<'_>) -> Invocation {
        let mut args: Vec<String> =
            ["-p", "--output-format", "stream-json", "--verbose", "--include-partial-messages"]
                .map(str::to_owned)
                .into();
        let mut flag = |name: &str, value: &str| args.extend([name.to_owned(), value.to_owned()]);
        match (turn.agent_session, uuid_of(order)) {
            (Some(id), _) => flag("--resume", id),
            (None, Some(id)) if turn.before == 0 => flag("--session-id", id),
            (None, _) => {}
        }
        if let Some(model) = &order.model {
            flag("--model", model);
        }
        if let Some(effort) = &order.effort {
            flag("--effort", effort);
        }
        if let Some(system) = &order.system {
            flag("--append-system-prompt", system);
        }
        if let Some(budget) = order.limits.budget_usd {
            flag("--max-budget-usd", &budget.to_string());
        }
        // It counts every call to the model, so that none would be no turn at all.
        if let Some(steps) = order.limits.steps.filter(|steps| *steps > 0) {
            flag("--max-turns", &steps.to_string());
        }
        if let Some(config) = &order.mcp_config {
            flag("--mcp-config", config.strip_prefix('@').unwrap_or(config));
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
            flag("--allowedTools", ALL_TOOLS);
        } else {
            flag("--allowedTools", &order.tools.allow.join(","));
        }
        args.extend(order.extra.iter().cloned());
        Invocation {
            without: SURROUNDING.map(str::to_owned).into(),
            ..Invocation::new(args, turn.prompt.to_owned())
        }
    }

    fn rehearse(&self, order: &mut Order, stage: &Stage) {
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

    fn translator(&self) -> Box<dyn Translator> {
        Box::new(crate::translate::claude::Claude::default())
    }

    fn counting(&self) -> Counting {
        Counting::PerTurn
    }

    fn auth(&self, surroundings: &Surroundings) -> (Auth, Vec<String>) {
        let file = surroundings.home.join(".claude/.credentials.json");
        let auth = match surroundings.first_var(&CREDENTIALS) {
            Some((name, _)) => Auth::Found(name.to_owned()),
            None if file.exists() => Auth::Found("~/.claude/.credentials.json".to_owned()),
            None => Auth::Unknown,
        };
        (auth, Vec::new())
    }
}
