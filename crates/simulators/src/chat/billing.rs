//! Requests that are billed per prompt instead of per token: which of them are billed, and how many there were.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::{AnswerHistory, Request};

/// How a host distinguishes requests of the user from those that an agent makes for them.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Billing {
    /// The header with the initiator.
    header: String,
    /// The header value that is free.
    free: String,
    pub(super) quota_header: String,
    /// Quota of the account, in requests.
    entitlement: u64,
}

impl Billing {
    pub(super) fn is_billed(&self, request: &Request) -> bool {
        request.header(&self.header) != Some(&*self.free)
    }

    /// Reports a tool turn that is billed like a prompt. The host does so silently.
    pub(super) fn violation(&self, request: &Request) -> Option<String> {
        let Self { header, free, .. } = self;
        (self.is_billed(request) && continues(&request.body)).then(|| {
            format!("`{header}` is not `{free}` though the request has results of tools: it is billed")
        })
    }

    /// The billed requests so far, this one included.
    pub(super) fn count(&self, now: bool, history: &mut AnswerHistory) -> u64 {
        let before = history.recall("billed requests").and_then(Value::as_u64).unwrap_or(0);
        let used = before + u64::from(now);
        history.remember("billed requests", json!(used));
        used
    }

    /// The host's report about it.
    pub(super) fn quota(&self, used: u64) -> String {
        let left = self.entitlement.saturating_sub(used) as f64 * 100.0 / self.entitlement as f64;
        format!("ent={}&used={used}&ov=0.0&ovPerm=false&rem={left:.1}", self.entitlement)
    }
}

/// Whether the last message of a request, on any wire, is a result of a tool or an image of one.
fn continues(body: &Value) -> bool {
    let list = ["messages", "input"].iter().find_map(|name| body[*name].as_array());
    let Some((last, before)) = list.and_then(|list| list.split_last()) else { return false };
    is_result(last) || (is_image(last) && before.last().is_some_and(is_result))
}

fn is_result(item: &Value) -> bool {
    let parts = item["content"].as_array().into_iter().flatten();
    item["role"] == "tool"
        || item["type"].as_str().is_some_and(|kind| kind.ends_with("_output"))
        || parts.into_iter().any(|part| part["type"] == "tool_result")
}

fn is_image(item: &Value) -> bool {
    let mut parts = item["content"].as_array().into_iter().flatten();
    item["role"] == "user"
        && parts.any(|part| matches!(part["type"].as_str(), Some("image_url" | "input_image")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_tools_are_seen_on_every_wire() {
        let user = json!({"role": "user", "content": "hi"});
        let image = json!({"role": "user", "content": [{"type": "image_url"}]});
        let result = json!({"role": "tool"});
        for (body, expected) in [
            (json!({"messages": [user]}), false),
            (json!({"messages": [user, result]}), true),
            (json!({"messages": [result, image]}), true),
            (json!({"messages": [result, user]}), false),
            (json!({"messages": [image]}), false),
            (json!({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]}), true),
            (json!({"input": [{"type": "function_call"}, {"type": "function_call_output"}]}), true),
            (json!({"input": [{"type": "function_call_output"}, {"role": "user", "content": []}]}), false),
            (json!({"input": "hi"}), false),
        ] {
            assert_eq!(continues(&body), expected, "{body}");
        }
    }
}
