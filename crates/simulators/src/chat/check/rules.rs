//! Refusals that are only conditions of the profile.

use super::Checked;
use crate::Refusal;
use crate::chat::condition;
use crate::chat::template::Vars;

impl Checked<'_> {
    pub(super) fn rules(&self) -> Result<(), Refusal> {
        let about = self.book.refuse.iter().filter(|rule| rule.is_about(&self.model.id));
        for rule in about {
            if let Some(found) = condition::all(&rule.when, self.body) {
                let mut vars = Vars::default();
                if let Some(found) = found.into_iter().next() {
                    vars =
                        vars.with("path", found.path).with("index", found.index).with("value", found.value);
                }
                return Err(self.refusal(&rule.refusal, vars));
            }
        }
        Ok(())
    }
}
