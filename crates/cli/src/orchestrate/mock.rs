//! The agent `mock`: it answers at once and does nothing, so that a workflow can be tried without a model.

use std::collections::BTreeSet;

use futures_util::FutureExt;
use hangar_runtimes::outcome::{ErrorKind, Evidence, TurnFailure, TurnOutcome, TurnResult};
use hangar_runtimes::runtime::{AgentSession, SessionCommand, SessionNews, TurnEnded};
use hangar_runtimes::usage::{AgentUsage, Figure};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

/// Name of the agent in a workflow.
pub(super) const KIND: &str = "mock";
const QUEUE: usize = 16;
/// Tokens of a turn, where the workflow says nothing else.
const INPUT_TOKENS: u64 = 100;
const OUTPUT_TOKENS: u64 = 50;

/// Opens a session whose turns end as `turn_outcomes` of the block `mock` lists, the last of them for ever.
pub(super) fn open(settings: &Map<String, Value>) -> AgentSession {
    let (commands, mut orders) = mpsc::channel(QUEUE);
    let (outbox, news) = mpsc::channel(QUEUE);
    let settings = settings.clone();
    let task = tokio::spawn(FutureExt::boxed(async move {
        let mut turn = 0;
        while let Some(order) = orders.recv().await {
            match order {
                SessionCommand::Send(_) | SessionCommand::Steer(_) => {
                    let delay = settings.get("turn_delay_ms").and_then(Value::as_u64).unwrap_or(0);
                    tokio::time::sleep(std::time::Duration::from_millis(delay)).await;
                    let ended = TurnEnded {
                        outcome: outcome(&settings, turn),
                        model: None,
                        unknown: BTreeSet::new(),
                    };
                    turn += 1;
                    if outbox.send(SessionNews::TurnEnded(Box::new(ended))).await.is_err() {
                        return;
                    }
                }
                SessionCommand::Stop => return,
                SessionCommand::Abort | SessionCommand::Answer { .. } | SessionCommand::Rename(_) => {}
            }
        }
    }));
    AgentSession::new(commands, news, task.abort_handle())
}

fn outcome(settings: &Map<String, Value>, turn: usize) -> TurnOutcome {
    let outcomes = settings.get("turn_outcomes").and_then(Value::as_array);
    let named = outcomes.and_then(|all| all.get(turn).or(all.last())).and_then(Value::as_str);
    let kind = ErrorKind::ALL.iter().copied().find(|kind| Some(kind.as_str()) == named);
    let end = match kind {
        None => TurnResult::Completed,
        Some(kind) => {
            let message = "the workflow makes this turn fail".to_owned();
            TurnResult::Failed(TurnFailure { kind, message, evidence: Evidence::default() })
        }
    };
    let tokens = |name: &str, default: u64| {
        Figure::reported(Some(settings.get(name).and_then(Value::as_u64).unwrap_or(default)))
    };
    let usage = AgentUsage {
        input_tokens: tokens("input_tokens_per_turn", INPUT_TOKENS),
        output_tokens: tokens("output_tokens_per_turn", OUTPUT_TOKENS),
        ..AgentUsage::default()
    };
    TurnOutcome { end, usage, total: usage }
}
