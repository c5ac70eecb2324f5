//! The hash that thinking is bound to: everything before it, without cache marks.

use serde_json::{Map, Value, json};

use super::messages::list;
use crate::signature::digest;

/// A hash that grows block by block.
#[derive(Debug, Clone)]
pub(super) struct PrefixHash {
    hash: String,
    role: String,
}

impl PrefixHash {
    /// The system prompt. Tools have a separate hash, because a header allows changing them.
    pub(super) fn new(system: &Value) -> Self {
        let blocks: Vec<_> = content(system).iter().map(canonical).collect();
        Self { hash: digest(&["system", &blocks.join("\n")]), role: String::new() }
    }

    /// Messages of one role in a row are one message.
    pub(super) fn role(&mut self, role: &str) {
        if self.role != role {
            self.hash = digest(&[&self.hash, "role", role]);
            role.clone_into(&mut self.role);
        }
    }

    pub(super) fn block(&mut self, block: &Value) {
        self.hash = digest(&[&self.hash, &canonical(block)]);
    }

    pub(super) fn hash(&self) -> &str {
        &self.hash
    }

    /// Continues where another process or an earlier step stopped.
    pub(super) fn resume(hash: &str, role: &str) -> Self {
        Self { hash: hash.to_owned(), role: role.to_owned() }
    }

    pub(super) fn last_role(&self) -> &str {
        &self.role
    }
}

pub(super) fn tools_hash(body: &Value) -> String {
    let tools: Vec<_> = list(&body["tools"]).iter().map(canonical).collect();
    digest(&["tools", &tools.join("\n")])
}

/// Plain text is one block of text.
pub(super) fn content(content: &Value) -> Vec<Value> {
    match content {
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        Value::Array(blocks) => blocks.clone(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

/// JSON in a canonical form, independent of marks and the order of fields.
pub(super) fn canonical(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().filter(|(name, _)| *name != "cache_control").collect();
                fields.sort_by_key(|(name, _)| *name);
                let fields = fields.into_iter().map(|(name, value)| (name.clone(), sorted(value)));
                Value::Object(fields.collect::<Map<_, _>>())
            }
            Value::Array(items) => items.iter().map(sorted).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
        }
    }
    let mut value = value.clone();
    if value["type"] == "tool_result" {
        value["content"] = Value::Array(content(&value["content"]));
    }
    sorted(&value).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_and_the_order_of_fields_do_not_change_a_block() {
        let one = json!({"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}});
        assert_eq!(canonical(&one), canonical(&json!({"text": "a", "type": "text"})));
        let result = |content: Value| json!({"type": "tool_result", "tool_use_id": "x", "content": content});
        assert_eq!(
            canonical(&result(json!("a"))),
            canonical(&result(json!([{"type": "text", "text": "a"}])))
        );
        assert_ne!(canonical(&result(json!("a"))), canonical(&result(json!("b"))));
    }

    #[test]
    fn messages_of_one_role_are_one() {
        let hash = |roles: &[&str]| {
            let mut prefix = PrefixHash::new(&json!("s"));
            for role in roles {
                prefix.role(role);
                prefix.block(&json!({"type": "text", "text": "t"}));
            }
            prefix.hash().to_owned()
        };
        let mut joined = PrefixHash::new(&json!([{"type": "text", "text": "s"}]));
        joined.role("user");
        joined.block(&json!({"type": "text", "text": "t"}));
        joined.block(&json!({"type": "text", "text": "t"}));
        assert_eq!(hash(&["user", "user"]), joined.hash());
        assert_ne!(hash(&["user", "assistant"]), hash(&["user", "user"]));
    }
}
