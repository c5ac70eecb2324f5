//! A picker in plain lines, for terminals that only print and those that are read aloud: a numbered list, and a line that answers it.

use super::{OverlayEnd, Pick, PickItem, Picker};
use crate::composer::TextField;
use crate::gate;

/// Items that are listed; a text finds the others.
const LISTED: usize = 30;

impl Picker {
    /// The list, once its items are there.
    pub fn lines(&self) -> Option<Vec<String>> {
        if self.is_loading {
            return None;
        }
        let mut lines = vec![gate::visible(self.title()).into_owned()];
        let numbered = self.matches.iter().filter_map(|at| self.items.get(*at)).enumerate();
        for (at, item) in numbered.take(LISTED) {
            let mut line = match item.is_note {
                true => gate::visible(&item.label).into_owned(),
                false => format!("{}. {}", at + 1, gate::visible(item.label.trim())),
            };
            if let Some(variant) = item.variants.get(item.variant) {
                let all = item.variants.join(", ");
                line.push_str(&format!(", {} (of {})", gate::visible(variant), gate::visible(&all)));
            }
            if !item.detail.is_empty() {
                line.push_str(&format!(", {}", gate::visible(&item.detail)));
            }
            lines.push(line.replace('\n', " "));
        }
        if let Some(more) = self.matches.len().checked_sub(LISTED + 1) {
            lines.push(format!("… {} more", more + 1));
        }
        if self.matches.is_empty() {
            let told = if self.items.is_empty() { self.message.as_str() } else { "nothing fits" };
            lines.push(gate::visible(told).into_owned());
        }
        lines.push(self.hint());
        Some(lines)
    }

    fn hint(&self) -> String {
        let mut hint = "A number picks".to_owned();
        if self.items.iter().any(|item| !item.variants.is_empty()) {
            hint.push_str(", with a word after it for its other values");
        }
        for (key, does) in &self.keys {
            hint.push_str(&format!(", {key} and a number {does}"));
        }
        hint.push_str(", other text searches, an empty line closes.");
        hint
    }

    /// Takes a line as the answer to the list.
    pub fn line(&mut self, line: &str) -> OverlayEnd {
        let mut words = line.split_whitespace();
        let Some(first) = words.next() else { return OverlayEnd::Closed };
        let second = words.next();
        let key = self.keys.iter().map(|(key, _)| *key).find(|key| first == key.encode_utf8(&mut [0; 4]));
        let number = if key.is_some() { second } else { Some(first) };
        if let Some(item) = number.and_then(|number| self.numbered(number)) {
            let named =
                second.and_then(|name| item.variants.iter().find(|known| known.eq_ignore_ascii_case(name)));
            let variant = named.or_else(|| item.variants.get(item.variant)).cloned();
            return OverlayEnd::Picked(Pick { id: item.id.clone(), variant, key });
        }
        self.filter = TextField::default();
        self.filter.insert(line.trim());
        self.refresh();
        OverlayEnd::Open
    }

    /// The item that the list gives a number.
    fn numbered(&self, number: &str) -> Option<&PickItem> {
        let at = number.trim_end_matches('.').parse::<usize>().ok()?.checked_sub(1)?;
        let item = self.items.get(*self.matches.get(at).filter(|_| at < LISTED)?)?;
        (!item.is_note).then_some(item)
    }
}
