//! The wording of a refusal, and the refusal made from it.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use super::rulebook::Rulebook;
use super::template::{TemplateJson, Vars};
use crate::{FailureKind, Refusal, VendorFailure};

/// A host's wording of one refusal.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wording {
    #[serde(default = "bad_request")]
    status: u16,
    #[serde(default)]
    message: String,
    #[serde(rename = "type")]
    kind: Option<String>,
    param: Option<String>,
    code: Option<Value>,
    /// The host's additions to the error, such as Google's `RetryInfo`.
    details: Option<TemplateJson>,
    /// A body in another format than the host's other errors.
    body: Option<TemplateJson>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

fn bad_request() -> u16 {
    400
}

impl Wording {
    /// The refusal in the wording of `host`.
    pub(crate) fn refusal(&self, book: &Rulebook, vars: Vars) -> Refusal {
        let vars = self.filled(book, vars);
        let form = self.body.as_ref().unwrap_or(&book.error.body);
        let headers = self.headers.iter().map(|(name, value)| (name.clone(), vars.text(value)));
        Refusal {
            status: self.status,
            headers: headers.collect(),
            body: vars.json(&form.0),
            message: vars.text("{message}"),
        }
    }

    /// The same as a chunk of a stream that had begun.
    pub(crate) fn chunk(&self, book: &Rulebook, vars: Vars) -> Value {
        let form = book.error.chunk.as_ref().unwrap_or(&book.error.body);
        self.filled(book, vars).json(&form.0)
    }

    fn filled(&self, book: &Rulebook, mut vars: Vars) -> Vars {
        vars.set("status", self.status);
        vars.set("message", vars.text(&self.message));
        let kind = self.kind.as_ref().or(book.error.kind.as_ref());
        vars.set("type", kind.map(|kind| vars.text(kind)));
        vars.set("param", self.param.as_ref().map(|param| vars.text(param)));
        vars.set("code", self.code.as_ref().map_or(Value::Null, |code| vars.json(code)));
        vars.set("details", self.details.as_ref().map_or(Value::Null, |details| vars.json(&details.0)));
        vars
    }
}

/// A failure of a scenario, as the host reports it before any output.
pub(crate) fn failure(book: &Rulebook, failure: &VendorFailure, model: &str) -> Refusal {
    let wording = worded(book, failure);
    let mut refusal = wording.refusal(book, failure_vars(failure, model));
    if let Some(seconds) = failure.retry_after {
        refusal.headers.retain(|(name, _)| name != "retry-after");
        refusal = refusal.with_header("retry-after", seconds.to_string());
    }
    refusal
}

/// The same inside a stream.
pub(crate) fn failure_chunk(book: &Rulebook, failure: &VendorFailure, model: &str, mut vars: Vars) -> Value {
    vars.join(failure_vars(failure, model));
    worded(book, failure).chunk(book, vars)
}

/// The host's wording of this failure, or the scenario's.
fn worded(book: &Rulebook, failure: &VendorFailure) -> Wording {
    let mut wording = book.failures.get(name(failure.kind)).cloned().unwrap_or_else(|| Wording {
        status: 500,
        message: "The server had an error while processing your request.".to_owned(),
        ..Wording::default()
    });
    wording.status = failure.status.unwrap_or(wording.status);
    if let Some(code) = &failure.code {
        wording.code = Some(Value::String(code.clone()));
    }
    if let Some(message) = &failure.message {
        wording.message.clone_from(message);
    }
    wording
}

fn failure_vars(failure: &VendorFailure, model: &str) -> Vars {
    let seconds = failure.retry_after.unwrap_or(1.0);
    Vars::default().with("model", model).with("seconds", format!("{seconds}"))
}

fn name(kind: FailureKind) -> &'static str {
    match kind {
        FailureKind::RateLimited => "rate_limited",
        FailureKind::SlowDown => "slow_down",
        FailureKind::Quota => "quota",
        FailureKind::Overloaded => "overloaded",
        FailureKind::ServerError => "server_error",
        FailureKind::Unauthorized => "unauthorized",
        FailureKind::ContextLength => "context_length",
        FailureKind::TooLarge => "too_large",
        FailureKind::Policy => "policy",
        FailureKind::Other => "other",
    }
}
