//! Limits on the length of a request and its answer.

use serde_json::Value;

use super::Checked;
use crate::chat::prompt::Reading;
use crate::chat::rules::Overflow;
use crate::chat::template::Vars;
use crate::{ModelInput, Refusal};

impl Checked<'_> {
    /// The model's input, and the rules of the simulator that its length breaks.
    pub(super) fn limits(&self) -> Result<(ModelInput, Vec<String>), Refusal> {
        let output = self.output()?;
        let mut reading = Reading::of(self.model, self.body);
        let input = reading.tokens();
        let limit = self.model.rules.max_input.unwrap_or(self.model.window);
        let asked = if self.book.context.with_output { input + output.unwrap_or(0) } else { input };
        let vars = Vars::default()
            .with("tokens", asked)
            .with("input", input)
            .with("output", output.unwrap_or(0))
            .with("limit", limit)
            .with("tpm", self.model.rules.tpm);
        let mut violations = Vec::new();
        match self.book.context.overflow {
            _ if asked <= limit => {}
            Overflow::Refuse => self.refuse(self.book.context.refusal.as_ref(), vars.clone())?,
            Overflow::Accept => {
                violations.push(format!(
                    "{input} tokens were sent to a window of {limit}, which the host does not say"
                ));
            }
            Overflow::Truncate => {
                let fixed = reading.fixed_tokens();
                if fixed > limit {
                    violations.push(format!(
                        "system and tools alone have {fixed} tokens and the window {limit}: the host cuts them"
                    ));
                }
                let dropped = reading.truncate(limit);
                violations.push(format!(
                    "{input} tokens were sent to a window of {limit}: the host dropped the {dropped} oldest messages"
                ));
            }
        }
        if self.model.rules.tpm.is_some_and(|tpm| input + output.unwrap_or(0) > tpm) {
            let requested = vars.with("requested", input + output.unwrap_or(0));
            self.refuse(self.book.tokens_per_minute.as_ref(), requested)?;
        }
        Ok((reading.into_prompt(), violations))
    }

    /// Output limit, if the request has one.
    fn output(&self) -> Result<Option<u64>, Refusal> {
        let rules = &self.book.output;
        let asked = rules.at.iter().find_map(|at| Some((at, self.body.pointer(at).and_then(Value::as_u64)?)));
        let Some((at, tokens)) = asked else { return Ok(None) };
        if tokens > self.model.output {
            let vars = Vars::default()
                .with("field", at.trim_start_matches('/'))
                .with("value", tokens)
                .with("limit", self.model.output);
            self.refuse(rules.refusal.as_ref(), vars)?;
        }
        Ok(Some(tokens))
    }
}
