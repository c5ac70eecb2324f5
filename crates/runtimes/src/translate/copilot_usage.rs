//! The file that `--usage-output-file` leaves: what a session of Copilot CLI has used so far, by model. Its output on stdout has no count
//! of what went in.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::usage::{AgentUsage, Figure};

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Document {
    model_metrics: BTreeMap<String, Metric>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metric {
    requests: Requests,
    usage: Tokens,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Requests {
    count: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    cache_read_tokens: Option<u64>,
    cache_write_tokens: Option<u64>,
    reasoning_tokens: Option<u64>,
}

/// Adds the usage in the file. A turn that was interrupted leaves no file, and its usage stays unknown.
pub(super) fn add(text: &str, usage: &mut AgentUsage) -> bool {
    match serde_json::from_str::<Document>(text) {
        Ok(document) => {
            sum_up(&document, usage);
            true
        }
        Err(_) => false,
    }
}

fn sum_up(document: &Document, usage: &mut AgentUsage) {
    let metrics = || document.model_metrics.values();
    let set = |figure: &mut Figure, of: fn(&Metric) -> Option<u64>| {
        // A model that does not say leaves the sum unknown.
        if let Some(sum) = metrics().map(of).sum::<Option<u64>>().filter(|_| metrics().next().is_some()) {
            *figure = Figure::Reported(sum as f64);
        }
    };
    set(&mut usage.input_tokens, |metric| metric.usage.input_tokens);
    set(&mut usage.output_tokens, |metric| metric.usage.output_tokens);
    set(&mut usage.cache_read_tokens, |metric| metric.usage.cache_read_tokens);
    set(&mut usage.cache_write_tokens, |metric| metric.usage.cache_write_tokens);
    set(&mut usage.reasoning_tokens, |metric| metric.usage.reasoning_tokens);
    set(&mut usage.model_calls, |metric| metric.requests.count);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, input: Figure, calls: Figure) {
        let mut usage = AgentUsage::default();
        add(file, &mut usage);
        assert_eq!((usage.input_tokens, usage.model_calls), (input, calls));
    }

    #[test]
    fn models_are_summed_up() {
        check(
            r#"{"modelMetrics":{"a":{"requests":{"count":2},"usage":{"inputTokens":10}},"b":{"requests":{"count":1},"usage":{"inputTokens":5}}}}"#,
            Figure::Reported(15.0),
            Figure::Reported(3.0),
        );
    }

    #[test]
    fn a_file_without_models_tells_nothing() {
        check(r#"{"modelMetrics":{}}"#, Figure::Unknown, Figure::Unknown);
        check("{", Figure::Unknown, Figure::Unknown);
    }
}
