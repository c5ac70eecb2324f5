//! The exchanges of a simulator, for tests, benchmarks and people.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;

use serde::Serialize;
use serde_json::{Value, json};

use crate::refusal::Refusal;
use crate::request::Request;
use crate::usage::Usage;

/// Number of exchanges that are kept with their bodies. Totals count the older ones too.
const MAX_EXCHANGES: usize = 2000;
/// Parts of header names whose values are credentials.
const SECRET: [&str; 5] = ["authorization", "cookie", "key", "secret", "token"];
/// Number of sentences in a report.
const MAX_PROBLEMS: usize = 200;

/// One request for an answer.
#[derive(Debug, Clone)]
pub struct Exchange {
    /// Counted from 1.
    pub number: usize,
    pub path: String,
    /// Without secret ones.
    pub headers: Value,
    pub body: Value,
    pub outcome: RequestOutcome,
}

impl Exchange {
    /// Everything but headers and body, as JSON.
    fn told(&self) -> Value {
        let mut told = json!({"number": self.number, "path": self.path, "model": self.body["model"]});
        match &self.outcome {
            RequestOutcome::Answered { usage, cost, foreign, .. } => {
                told["usage"] = json!(usage);
                told["cost"] = json!(cost);
                told["foreign"] = json!(foreign);
            }
            RequestOutcome::Failed { status } => told["failed"] = json!(status),
            RequestOutcome::Refused { refusal, .. } => told["refused"] = json!(refusal.to_string()),
        }
        told
    }
}

/// Outcome of a request.
#[derive(Debug, Clone)]
pub enum RequestOutcome {
    Answered {
        model: String,
        usage: Usage,
        /// USD.
        cost: f64,
        /// Unknown fields that were ignored because the simulator is lenient.
        foreign: Vec<String>,
    },
    /// The scenario demanded it.
    Failed { status: u16 },
    /// By a rule of the vendor.
    Refused { refusal: Refusal, expected: bool },
}

/// Sums over all answers.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct UsageTotals {
    pub requests: usize,
    pub answers: usize,
    pub refusals: usize,
    pub usage: Usage,
    /// USD.
    pub cost: f64,
}

/// The reason why a test with a simulator fails.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Failures(pub Vec<String>);

#[derive(Debug, Default)]
pub(crate) struct ExchangeRecord {
    exchanges: VecDeque<Exchange>,
    pub(crate) totals: UsageTotals,
    problems: Vec<String>,
    log: Option<File>,
}

impl ExchangeRecord {
    /// Appends each further exchange to a file, as a line of JSON.
    pub(crate) fn log_to(&mut self, file: File) {
        self.log = Some(file);
    }

    pub(crate) fn push(&mut self, request: &Request, outcome: RequestOutcome) {
        self.totals.requests += 1;
        let number = self.totals.requests;
        match &outcome {
            RequestOutcome::Answered { usage, cost, .. } => {
                self.totals.answers += 1;
                self.totals.usage += *usage;
                self.totals.cost += cost;
            }
            RequestOutcome::Failed { .. } | RequestOutcome::Refused { expected: true, .. } => {}
            RequestOutcome::Refused { refusal, expected: false } => {
                self.totals.refusals += 1;
                self.problem(format!("request {number} to {} was refused: {refusal}", request.path));
            }
        }
        if self.exchanges.len() == MAX_EXCHANGES {
            self.exchanges.pop_front();
        }
        let (path, headers, body) = (request.path.clone(), shown(request), request.body.clone());
        let exchange = Exchange { number, path, headers, body, outcome };
        if let Some(log) = &mut self.log {
            let mut told = exchange.told();
            told["headers"] = exchange.headers.clone();
            told["body"] = exchange.body.clone();
            // The log is a by-product; a full disk must not fail the request.
            let _ = writeln!(log, "{told}");
        }
        self.exchanges.push_back(exchange);
    }

    pub(crate) fn problem(&mut self, problem: String) {
        if self.problems.len() < MAX_PROBLEMS {
            self.problems.push(problem);
        }
    }

    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }

    pub(crate) fn exchanges(&self) -> Vec<Exchange> {
        self.exchanges.iter().cloned().collect()
    }

    /// Usage over the kept answers from the `first`-th on, counted from 1.
    pub(crate) fn usage_from(&self, first: usize) -> Usage {
        let answers = self.exchanges.iter().filter_map(|exchange| match &exchange.outcome {
            RequestOutcome::Answered { usage, .. } => Some(*usage),
            RequestOutcome::Failed { .. } | RequestOutcome::Refused { .. } => None,
        });
        let mut sum = Usage::default();
        answers.skip(first.saturating_sub(1)).for_each(|usage| sum += usage);
        sum
    }

    /// The content of `GET /__stats`.
    pub(crate) fn stats(&self) -> Value {
        let exchanges: Vec<_> = self.exchanges.iter().map(Exchange::told).collect();
        json!({"totals": self.totals, "exchanges": exchanges, "problems": self.problems})
    }
}

fn shown(request: &Request) -> Value {
    let shown = request.headers.iter().map(|(name, value)| {
        let name = name.as_str();
        let secret = SECRET.iter().any(|part| name.contains(part));
        let value = if secret { "***".into() } else { String::from_utf8_lossy(value.as_bytes()) };
        (name.to_owned(), json!(value))
    });
    Value::Object(shown.collect())
}
