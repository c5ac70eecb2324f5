//! Agents' own tools: they are ready before the agent begins, no other agent sees them, and they are paused when it is
//! done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::future::BoxFuture;
use hangar_agent::agents::AgentDefinition;
use hangar_agent::agents::toolset::{AgentToolProvider, AgentToolset, ToolServers};
use hangar_agent::session::Command;
use hangar_agent::tool::*;
use serde_json::json;

use crate::stage::{Line, Setting, Stage, agent_config};

/// Gives every agent a tool called `own`, after a while.
struct Tailor {
    takes: Duration,
    rests: Arc<AtomicUsize>,
}

struct Own(Arc<ToolSpec>);

impl Tool for Own {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn inspect(&self, _: &ToolInput) -> Result<Access, ToolOutcome> {
        Ok(Access::None)
    }

    fn run(&self, _: ToolInput, _: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        Box::pin(std::future::ready(ToolOutcome::success("from its own tool")))
    }
}

struct Rests(Arc<AtomicUsize>);

impl ToolServers for Rests {
    fn rest(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl AgentToolProvider for Tailor {
    fn toolset(&self, _: &AgentDefinition) -> Option<BoxFuture<'static, AgentToolset>> {
        let (takes, rests) = (self.takes, Arc::clone(&self.rests));
        Some(Box::pin(async move {
            tokio::time::sleep(takes).await;
            let spec = ToolSpec {
                name: "own".to_owned(),
                title: None,
                description: String::new(),
                input: ToolSchema::function(json!({ "type": "object" })),
            };
            AgentToolset { tools: vec![Arc::new(Own(Arc::new(spec)))], source: Box::new(Rests(rests)) }
        }))
    }
}

fn stage(takes: Duration) -> (Stage, Arc<AtomicUsize>) {
    let task = json!({ "description": "d", "agent_type": "general-purpose", "name": "a", "prompt": "DO:own", "mode": "sync" });
    let lines = vec![Line::Call(vec![("t", "task", task)]), Line::Say("thanks")];
    let mut stage = Stage::set(Setting { agent_config: Some(agent_config()), ..Default::default() }, lines);
    let rests = Arc::new(AtomicUsize::new(0));
    stage.driver.set_tool_provider(Some(Arc::new(Tailor { takes, rests: Arc::clone(&rests) })));
    (stage, rests)
}

#[tokio::test(start_paused = true)]
async fn an_agent_begins_with_what_is_its_own_and_nobody_else_has_it() {
    let (mut stage, rests) = stage(Duration::from_secs(3));
    stage.play("go").await;
    let shown: Vec<bool> =
        stage.requests().iter().map(|request| request.tools.iter().any(|tool| tool.name == "own")).collect();
    assert_eq!(shown, [false, true, true, false]);
    let told = format!("{:?}", stage.requests()[2].messages);
    assert!(told.contains("from its own tool"), "{told}");
    assert_eq!(rests.load(Ordering::Relaxed), 1);
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_still_being_equipped_is_stopped_with_its_caller() {
    let (mut stage, rests) = stage(Duration::from_secs(3600));
    stage.send("go");
    stage.until("subagent.started").await;
    stage.command(Command::Abort { reason: "user_initiated".to_owned() });
    stage.until_idle().await;
    stage.until_settled().await;
    assert_eq!(stage.count("subagent.failed"), 1);
    assert_eq!(stage.count("subagent.completed"), 0);
    assert_eq!(rests.load(Ordering::Relaxed), 0);
}
