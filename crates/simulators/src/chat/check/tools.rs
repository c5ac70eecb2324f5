//! The tools of a request, and the ids of the calls that are sent back.

use serde_json::Value;

use super::schema::{Defect, defects};
use super::{Checked, calls};
use crate::Refusal;
use crate::chat::template::Vars;

impl Checked<'_> {
    pub(super) fn tools(&self) -> Result<(), Refusal> {
        let tools = self.body["tools"].as_array().map_or(&[][..], Vec::as_slice);
        if !tools.is_empty() && !self.model.rules.tools {
            self.refuse(self.book.tools.unsupported.as_ref(), Vars::default())?;
        }
        let mut names = Vec::with_capacity(tools.len());
        for (index, tool) in tools.iter().enumerate() {
            let function = if tool["function"].is_object() { &tool["function"] } else { &tool["custom"] };
            let name = function["name"].as_str().unwrap_or_default();
            let place = Vars::default().with("index", index).with("name", name);
            self.name(name, &place)?;
            if names.contains(&name) {
                self.refuse(self.book.tools.duplicate.as_ref(), place.clone())?;
            }
            names.push(name);
            if let Some(schema) = function.get("parameters") {
                self.schema(schema, &place)?;
            }
        }
        self.ids()
    }

    fn name(&self, name: &str, place: &Vars) -> Result<(), Refusal> {
        match &self.book.tools.name {
            Some(rule) if !rule.pattern.matches(name) => {
                Err(self.refusal(&rule.refusal, place.clone().with("length", name.chars().count())))
            }
            _ => Ok(()),
        }
    }

    fn schema(&self, schema: &Value, place: &Vars) -> Result<(), Refusal> {
        let rules = &self.book.tools.schema;
        let defect = defects(schema).into_iter().find_map(|defect| Some((rules.get(&defect.rule)?, defect)));
        let Some((wording, Defect { place: at, value, keyword, .. })) = defect else { return Ok(()) };
        let vars = place
            .clone()
            .with("path", at.dotted())
            .with("numbered", at.numbered())
            .with("keyed", at.keyed())
            .with("value", value)
            .with("keyword", keyword);
        Err(self.refusal(wording, vars))
    }

    /// Ids of calls and results must have the host's form, even those that another host made.
    fn ids(&self) -> Result<(), Refusal> {
        let Some(rule) = &self.book.tools.id else { return Ok(()) };
        for (index, message) in self.messages.iter().enumerate() {
            let of_calls = calls(message).iter().enumerate();
            let of_calls = of_calls.map(|(at, call)| (format!("tool_calls[{at}].id"), &call["id"]));
            let of_result = message.get("tool_call_id").map(|id| ("tool_call_id".to_owned(), id));
            for (field, id) in of_calls.chain(of_result) {
                let id = id.as_str().unwrap_or_default();
                if !rule.pattern.matches(id) {
                    let vars = Vars::default()
                        .with("path", format!("messages[{index}].{field}"))
                        .with("index", index)
                        .with("id", id)
                        .with("length", id.chars().count());
                    return Err(self.refusal(&rule.refusal, vars));
                }
            }
        }
        Ok(())
    }
}
