//! The reasoning effort that a request asks for.

use super::Checked;
use crate::Refusal;
use crate::chat::template::Vars;

impl Checked<'_> {
    pub(super) fn effort(&self) -> Result<(), Refusal> {
        let rules = &self.book.effort;
        let asked = rules.at.iter().find_map(|at| Some((at, self.body.pointer(at)?.as_str()?)));
        let Some((at, value)) = asked else { return Ok(()) };
        let efforts = &self.model.efforts;
        let vars = Vars::default()
            .with("field", at.trim_start_matches('/').replace('/', "."))
            .with("value", value)
            .with("values", enumerated(efforts, '\'', "and"))
            .with("choices", enumerated(efforts, '`', "or"));
        if efforts.is_empty() {
            return self.refuse(rules.unsupported.as_ref(), vars);
        }
        let known = efforts.iter().chain(&rules.mapped).any(|effort| effort == value);
        if known { Ok(()) } else { self.refuse(rules.value.as_ref(), vars) }
    }
}

/// `'low', 'medium', and 'high'`.
fn enumerated(words: &[String], quote: char, last: &str) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("{quote}{word}{quote}")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [one, two] => format!("{one} {last} {two}"),
        [some @ .., end] => format!("{}, {last} {end}", some.join(", ")),
    }
}
