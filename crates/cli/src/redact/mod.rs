//! Keeps secrets out of what tools say, and so out of the log, the output and the model's context.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_agent::tool::{Access, Tool, ToolContext, ToolInput, ToolOutcome, ToolSpec};
use hangar_protocol::Body;

/// A shorter value is not a secret that could be told from ordinary text.
const MIN_SECRET: usize = 8;
const MASK: &str = "[redacted]";
/// Pieces of output that may wait between a tool and the loop.
const RELAY_BUFFER: usize = 16;

#[derive(Debug, Clone, Default)]
pub(crate) struct Redactor(Arc<[String]>);

impl Redactor {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        let mut secrets: Vec<String> =
            secrets.into_iter().filter(|secret| secret.len() >= MIN_SECRET).collect();
        // Where one secret contains another, the longer one goes first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.dedup();
        Self(secrets.into())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn text(&self, text: String) -> String {
        self.0.iter().fold(text, |text, secret| {
            if text.contains(secret.as_str()) { text.replace(secret.as_str(), MASK) } else { text }
        })
    }

    fn outcome(&self, mut outcome: ToolOutcome) -> ToolOutcome {
        outcome.text = self.text(outcome.text);
        outcome.detailed = outcome.detailed.map(|text| self.text(text));
        outcome.error = outcome.error.map(|text| self.text(text));
        outcome
    }

    fn body(&self, body: Body) -> Body {
        match body {
            Body::ToolShellOutput(mut output) => {
                output.text = self.text(output.text);
                output.into()
            }
            Body::ToolPartialResult(mut partial) => {
                partial.partial_output = self.text(partial.partial_output);
                partial.into()
            }
            other => other,
        }
    }

    /// The tool with everything it says passed through this redactor.
    pub(crate) fn guard(&self, tool: Arc<dyn Tool>) -> Arc<dyn Tool> {
        if self.is_empty() { tool } else { Arc::new(Guarded { tool, redactor: self.clone() }) }
    }
}

struct Guarded {
    tool: Arc<dyn Tool>,
    redactor: Redactor,
}

impl Tool for Guarded {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        self.tool.inspect(call).map_err(|outcome| self.redactor.outcome(outcome))
    }

    fn run(&self, call: ToolInput, context: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let (relay, mut relayed) = tokio::sync::mpsc::channel(RELAY_BUFFER);
        let run = self.tool.run(call, ToolContext { cancel: context.cancel, progress: relay });
        let redactor = self.redactor.clone();
        Box::pin(async move {
            let forward = async {
                while let Some(body) = relayed.recv().await {
                    // The loop is gone only when the session is; nobody is left to tell.
                    let _ = context.progress.send(redactor.body(body)).await;
                }
            };
            let (outcome, ()) = tokio::join!(run, forward);
            redactor.outcome(outcome)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_stand_and_short_values_are_not() {
        let redactor =
            Redactor::new(["hunter2-hunter2".to_owned(), "hunter2-hunter2-long".to_owned(), "1".to_owned()]);
        assert_eq!(
            redactor.text("a=hunter2-hunter2 b=hunter2-hunter2-long 1".to_owned()),
            "a=[redacted] b=[redacted] 1"
        );
    }
}
