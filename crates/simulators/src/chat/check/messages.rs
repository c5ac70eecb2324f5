//! The roles of messages and the parts of their content.

use serde_json::Value;

use super::{Checked, role};
use crate::Refusal;
use crate::chat::template::Vars;

impl Checked<'_> {
    pub(super) fn messages(&self) -> Result<(), Refusal> {
        let rules = &self.book.messages;
        for (index, message) in self.messages.iter().enumerate() {
            let role = role(message);
            let place = Vars::default().with("index", index).with("role", role);
            if !rules.fields.contains_key(role) {
                self.refuse(rules.unknown_role.as_ref(), place.clone())?;
            }
            for (at, part) in message["content"].as_array().into_iter().flatten().enumerate() {
                self.part(part, place.clone().with("part", at))?;
            }
        }
        Ok(())
    }

    fn part(&self, part: &Value, place: Vars) -> Result<(), Refusal> {
        let rules = &self.book.messages;
        let kind = part["type"].as_str().unwrap_or_default();
        let vars = place.with("type", kind);
        if !rules.parts.iter().any(|known| known == kind) {
            return self.refuse(rules.unknown_part.as_ref(), vars);
        }
        let url = part.pointer("/image_url/url").or_else(|| part.get("image_url")).and_then(Value::as_str);
        match (kind, url) {
            ("image_url", _) if !self.model.rules.vision => self.refuse(rules.no_vision.as_ref(), vars),
            ("image_url", Some(url)) if !url.starts_with("data:") => {
                self.refuse(rules.no_remote_image.as_ref(), vars)
            }
            _ => Ok(()),
        }
    }
}
