//! The order of messages: results after their calls, and which messages may be adjacent.

use serde_json::Value;

use super::{Checked, calls, role};
use crate::Refusal;
use crate::chat::rules::OrderRule;
use crate::chat::template::Vars;

impl Checked<'_> {
    pub(super) fn order(&self) -> Result<(), Refusal> {
        let mut open: Vec<&str> = Vec::new();
        let mut before = "";
        for (index, message) in self.messages.iter().enumerate() {
            let role = role(message);
            let place = Vars::default().with("index", index).with("role", role).with("before", before);
            if role == "tool" {
                let id = message["tool_call_id"].as_str().unwrap_or_default();
                match open.iter().position(|call| *call == id) {
                    Some(at) => drop(open.remove(at)),
                    None => self.demand(OrderRule::OrphanResult, place.with("id", id))?,
                }
            } else {
                self.answered(&open, &place)?;
                self.neighbours(message, index, before, place.clone())?;
                open = calls(message).iter().filter_map(|call| call["id"].as_str()).collect();
                if let Some(id) = repeated(&open) {
                    self.demand(OrderRule::RepeatedCall, place.with("id", id))?;
                }
            }
            before = role;
        }
        let last = self.messages.len() - 1;
        let place = Vars::default().with("index", last).with("role", before);
        self.answered(&open, &place)?;
        if before == "assistant" && self.messages[last]["prefix"] != true {
            self.demand(OrderRule::LastAssistant, place)?;
        }
        Ok(())
    }

    fn answered(&self, open: &[&str], place: &Vars) -> Result<(), Refusal> {
        if open.is_empty() {
            return Ok(());
        }
        let calls = open.len();
        self.demand(
            OrderRule::UnansweredCall,
            place.clone().with("ids", open.join(", ")).with("calls", calls),
        )
    }

    fn neighbours(&self, message: &Value, index: usize, before: &str, place: Vars) -> Result<(), Refusal> {
        match role(message) {
            "user" if before == "tool" => self.demand(OrderRule::UserAfterResult, place),
            "system" | "developer" if index > 0 && !matches!(before, "system" | "developer") => {
                self.demand(OrderRule::LateSystem, place)
            }
            "assistant" if says_nothing(message) => self.demand(OrderRule::EmptyAssistant, place),
            _ => Ok(()),
        }
    }

    fn demand(&self, rule: OrderRule, vars: Vars) -> Result<(), Refusal> {
        self.refuse(self.book.order.get(&rule), vars)
    }
}

/// The first id that is there twice.
fn repeated<'a>(ids: &[&'a str]) -> Option<&'a str> {
    ids.iter().enumerate().find(|(at, id)| ids[..*at].contains(id)).map(|(_, id)| *id)
}

fn says_nothing(message: &Value) -> bool {
    let silent = match &message["content"] {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(parts) => parts.is_empty(),
        _ => false,
    };
    silent && calls(message).is_empty() && message["refusal"].is_null()
}
