//! Proofs that an agent obeys its order: each capability is tested in a session of its own, by what its model is asked
//! or by what is on disk afterwards.

use std::path::PathBuf;
use std::time::Duration;

use hangar_runtimes::outcome::{ErrorKind, TurnResult};
use hangar_runtimes::runtime::{AgentOrder, Runtime, ShellTool};
use serde_json::{Value, json};

use super::probe::{ProbedTurn, turn};
use super::rehearsal::Rehearsal;

/// Timeout of a probe's turn. Some agents need twenty seconds to start.
const TURN_PATIENCE: Duration = Duration::from_secs(120);
/// Disables autonomous steps.
const STEPS: u32 = 0;
/// Effort level that is ordered, if the agent claims it.
const LEVEL: &str = "high";
/// Less than any call to a model costs.
const BUDGET_USD: f64 = 0.000_001;
/// Name of the MCP server's tool.
const TOOL: &str = "probe_tool";

/// A server with one tool, for machines that have a shell and nothing else.
const SERVER: &str = r#"while read -r line; do
  id=$(printf %s "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) answer='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"probe","version":"1"}}';;
  *'"tools/list"'*) answer='{"tools":[{"name":"probe_tool","description":"Does nothing.","inputSchema":{"type":"object","properties":{}}}]}';;
  *'"ping"'*) answer='{}';;
  *) continue;;
  esac
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$answer}"
done
"#;

/// Runs an agent with orders in a rehearsal.
#[derive(Clone, Copy)]
pub(super) struct Orders<'a> {
    pub(super) runtime: &'a dyn Runtime,
    pub(super) rehearsal: &'a Rehearsal,
}

impl Orders<'_> {
    /// Order without options.
    pub(super) fn plain(self) -> Result<AgentOrder, String> {
        let workspace = self.workspace();
        std::fs::create_dir_all(&workspace).map_err(|error| error.to_string())?;
        let mut order = AgentOrder::new(uuid::Uuid::new_v4().to_string(), workspace.clone());
        order.limits.turn = Some(TURN_PATIENCE);
        order.limits.steps = Some(STEPS);
        order.scratch = Some(workspace);
        self.runtime.rehearse(&mut order, &self.rehearsal.stage);
        Ok(order)
    }

    fn workspace(self) -> PathBuf {
        self.rehearsal.stage.home.join("work")
    }

    /// Claimed capabilities about orders, and whether each was observed.
    pub(super) async fn obeyed(self) -> Vec<(&'static str, bool)> {
        let card = self.runtime.card();
        let claimed = &card.capabilities;
        let mut seen = Vec::new();
        if let Some(strongest) = claimed.effort_levels.last() {
            let level = claimed.effort_levels.iter().find(|level| *level == LEVEL).unwrap_or(strongest);
            seen.push(("effort", self.effort(level).await));
        }
        if let Some(tool) = card.shell_tool.as_ref().filter(|_| claimed.tool_rules) {
            seen.push(("tool_rules", self.withheld(tool).await));
        }
        if claimed.mcp_config {
            seen.push(("mcp_config", self.servers().await));
        }
        if let Some(tool) = card.shell_tool.as_ref().filter(|_| claimed.budget_cap) {
            seen.push(("budget_cap", self.capped(tool).await));
        }
        seen
    }

    /// Whether the model request has the ordered reasoning effort.
    async fn effort(self, level: &str) -> bool {
        let asked = self.asked("SAY:done", |order| order.effort = Some(level.to_owned())).await;
        let places = ["/reasoning_effort", "/reasoning/effort", "/output_config/effort"];
        asked
            .iter()
            .any(|body| places.iter().any(|place| body.pointer(place).and_then(Value::as_str) == Some(level)))
    }

    /// Whether an excluded tool stays unused although the model calls it.
    async fn withheld(self, tool: &ShellTool) -> bool {
        let made = self.workspace().join("made");
        let script = tool.script(&format!("touch '{}'", made.display()));
        let heard = self.session(&script, |order| order.tools.excluded = vec![tool.name.to_string()]).await;
        heard.is_ok() && !made.exists()
    }

    /// Whether the model request lists the tool of a configured MCP server.
    async fn servers(self) -> bool {
        let script = self.rehearsal.stage.home.join("server.sh");
        if std::fs::write(&script, SERVER).is_err() {
            return false;
        }
        let server = json!({ "type": "stdio", "command": "sh", "args": [script], "tools": ["*"] });
        let config = json!({ "mcpServers": { "probe": server } }).to_string();
        let asked = self.asked("SAY:done", |order| order.mcp_config = Some(config)).await;
        asked.iter().any(|body| body["tools"].to_string().contains(TOOL))
    }

    /// Whether a turn ends when it exceeds its cost limit.
    async fn capped(self, tool: &ShellTool) -> bool {
        let script = format!("REPEAT:3:{}", tool.script("true"));
        let heard = self.session(&script, |order| order.limits.budget_usd = Some(BUDGET_USD)).await;
        heard.is_ok_and(|heard| {
            matches!(&heard.ended.outcome.end, TurnResult::Failed(failure) if failure.kind == ErrorKind::BudgetExceeded)
        })
    }

    /// Model requests of a session of its own.
    async fn asked(self, prompt: &str, wish: impl FnOnce(&mut AgentOrder)) -> Vec<Value> {
        let before = self.rehearsal.requests().len();
        // The requests of a failed turn count too.
        let _ = self.session(prompt, wish).await;
        self.rehearsal.requests().split_off(before)
    }

    async fn session(self, prompt: &str, wish: impl FnOnce(&mut AgentOrder)) -> Result<ProbedTurn, String> {
        let mut order = self.plain()?;
        wish(&mut order);
        let mut live = self.runtime.open(order).await.map_err(|failure| failure.message)?;
        turn(&mut live, prompt.to_owned()).await
    }
}
