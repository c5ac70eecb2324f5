//! Figures that are summed up over all spans.

use std::collections::BTreeMap;

use serde_json::json;

use crate::span::{Attributes, Span, SpanWork};

const SECONDS: &[f64] =
    &[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92];
const LONG_SECONDS: &[f64] = &[0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6];
const TOKENS: &[f64] = &[
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];
const COUNTS: &[f64] = &[0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0];
/// Series that are kept. Names of tools come from models, which may invent many.
const MAX_SERIES: usize = 1000;

/// A thing that is measured: its name, unit and, for a distribution, the bounds of its buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Instrument {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
}

#[derive(Debug, Clone)]
pub(crate) enum Value {
    Sum(u64),
    Distribution(Distribution),
}

#[derive(Debug, Clone)]
pub(crate) struct Distribution {
    pub(crate) bounds: &'static [f64],
    pub(crate) counts: Vec<u64>,
    pub(crate) count: u64,
    pub(crate) sum: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

#[derive(Debug, Clone)]
pub(crate) struct Series {
    pub(crate) instrument: Instrument,
    pub(crate) attributes: Attributes,
    pub(crate) value: Value,
}

#[derive(Default)]
pub(crate) struct Metrics(BTreeMap<(Instrument, String), Series>);

impl Metrics {
    pub(crate) fn series(&self) -> impl Iterator<Item = &Series> {
        self.0.values()
    }

    pub(crate) fn add(&mut self, span: &Span) {
        let pick = |keys: &[&str]| -> Attributes {
            let known =
                keys.iter().filter_map(|key| Some(((*key).to_owned(), span.attributes.get(*key)?.clone())));
            known.collect()
        };
        let model = [
            "gen_ai.operation.name",
            "gen_ai.provider.name",
            "gen_ai.request.model",
            "gen_ai.response.model",
        ];
        let common = pick(&[&model[..], &["server.address", "server.port", "error.type"]].concat());
        let seconds = span.seconds();
        match &span.work {
            SpanWork::Chat(figures) => {
                self.time("gen_ai.client.inference.duration", &common, seconds);
                for (instrument, tokens) in CHAT_SIZES.iter().zip([figures.input, figures.output]) {
                    self.record(*instrument, &common, TOKENS, tokens as f64);
                }
                let mut used = common.clone();
                used.insert("gen_ai.token.modality".to_owned(), json!("unknown"));
                let amounts = [
                    figures.input,
                    figures.output,
                    figures.cache_read,
                    figures.cache_write,
                    figures.reasoning,
                ];
                for (instrument, amount) in CHAT_USAGE.iter().zip(amounts) {
                    self.count(*instrument, &used, amount);
                }
                if let Some(first) = figures.first_chunk_ms {
                    self.time("gen_ai.client.inference.time_to_first_chunk", &common, first / 1000.0);
                }
            }
            SpanWork::Tool { name } => {
                self.time("gen_ai.client.operation.duration", &common, seconds);
                let tool = pick(&["gen_ai.tool.name", "gen_ai.tool.type", "error.type"]);
                self.time("gen_ai.execute_tool.duration", &tool, seconds);
                let mut called = Attributes::new();
                called.insert("gen_ai.tool.name".to_owned(), json!(name));
                self.time("github.copilot.tool.call.duration", &called, seconds);
                called.insert("success".to_owned(), json!(span.error.is_none()));
                self.count(Instrument { name: "github.copilot.tool.call.count", unit: "{call}" }, &called, 1);
            }
            // The portal has metrics of its queue.
            SpanWork::Queued => {}
            SpanWork::Invocation { calls, tools } => {
                self.time("gen_ai.client.operation.duration", &common, seconds);
                let none = Attributes::new();
                let whole = Instrument { name: "gen_ai.invoke_agent.duration", unit: "s" };
                self.record(whole, &none, LONG_SECONDS, seconds);
                let inference =
                    Instrument { name: "gen_ai.invoke_agent.inference_calls", unit: "{inference_call}" };
                self.record(inference, &none, COUNTS, *calls as f64);
                let called = Instrument { name: "gen_ai.invoke_agent.tool_calls", unit: "{tool_call}" };
                self.record(called, &none, COUNTS, *tools as f64);
                let turns = Instrument { name: "github.copilot.agent.turn.count", unit: "{turn}" };
                self.record(turns, &pick(&["gen_ai.operation.name"]), COUNTS, *calls as f64);
            }
        }
    }

    fn time(&mut self, name: &'static str, attributes: &Attributes, seconds: f64) {
        self.record(Instrument { name, unit: "s" }, attributes, SECONDS, seconds);
    }

    fn count(&mut self, instrument: Instrument, attributes: &Attributes, amount: u64) {
        if let Some(Value::Sum(sum)) = self.entry(instrument, attributes, || Value::Sum(0)) {
            *sum += amount;
        }
    }

    fn record(
        &mut self,
        instrument: Instrument,
        attributes: &Attributes,
        bounds: &'static [f64],
        value: f64,
    ) {
        let empty = || {
            Value::Distribution(Distribution {
                bounds,
                counts: vec![0; bounds.len() + 1],
                count: 0,
                sum: 0.0,
                min: value,
                max: value,
            })
        };
        if let Some(Value::Distribution(distribution)) = self.entry(instrument, attributes, empty) {
            let bucket = distribution.bounds.iter().position(|bound| value <= *bound);
            let bucket = bucket.unwrap_or(distribution.bounds.len());
            distribution.counts[bucket] += 1;
            distribution.count += 1;
            distribution.sum += value;
            distribution.min = distribution.min.min(value);
            distribution.max = distribution.max.max(value);
        }
    }

    fn entry(
        &mut self,
        instrument: Instrument,
        attributes: &Attributes,
        empty: impl FnOnce() -> Value,
    ) -> Option<&mut Value> {
        let key = (instrument, serde_json::Value::Object(attributes.clone()).to_string());
        if self.0.len() >= MAX_SERIES && !self.0.contains_key(&key) {
            return None;
        }
        let series = self.0.entry(key).or_insert_with(|| Series {
            instrument,
            attributes: attributes.clone(),
            value: empty(),
        });
        Some(&mut series.value)
    }
}

const CHAT_SIZES: [Instrument; 2] = [
    Instrument { name: "gen_ai.client.inference.operation.input_tokens", unit: "{token}" },
    Instrument { name: "gen_ai.client.inference.operation.output_tokens", unit: "{token}" },
];

const CHAT_USAGE: [Instrument; 5] = [
    Instrument { name: "gen_ai.client.inference.usage.input_tokens", unit: "{token}" },
    Instrument { name: "gen_ai.client.inference.usage.output_tokens", unit: "{token}" },
    Instrument { name: "gen_ai.client.inference.usage.cache_read.input_tokens", unit: "{token}" },
    Instrument { name: "gen_ai.client.inference.usage.cache_write.input_tokens", unit: "{token}" },
    Instrument { name: "gen_ai.client.inference.usage.reasoning.output_tokens", unit: "{token}" },
];
