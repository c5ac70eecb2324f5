//! The system prompt as a client wants it: extended, replaced, or changed section by section.

use std::collections::BTreeMap;

use hangar_agent::prompt::SystemPrompt;

use hangar_spec::{SectionAction, SystemMessageSpec};

/// The sections that a client wants to see and rewrite.
pub(crate) fn to_transform(
    spec: Option<&SystemMessageSpec>,
    prompt: &SystemPrompt,
) -> BTreeMap<String, String> {
    let Some(SystemMessageSpec::Customize { sections, .. }) = spec else { return BTreeMap::new() };
    sections
        .iter()
        .filter(|(_, section)| section.action == SectionAction::Transform)
        .map(|(name, _)| (name.clone(), prompt.section(name).to_owned()))
        .collect()
}

/// The whole prompt. `transformed` holds what the client made of the sections it wanted to see.
pub(crate) fn render(
    spec: Option<&SystemMessageSpec>,
    mut prompt: SystemPrompt,
    transformed: &BTreeMap<String, String>,
) -> String {
    let appended = match spec {
        None => None,
        Some(SystemMessageSpec::Append { content }) => content.as_deref(),
        Some(SystemMessageSpec::Replace { content }) => return content.clone(),
        Some(SystemMessageSpec::Customize { content, sections }) => {
            for (name, section) in sections {
                let now = prompt.section(name);
                let given = section.content.as_deref().unwrap_or_default();
                let text = match section.action {
                    SectionAction::Preserve => continue,
                    SectionAction::Replace => given.to_owned(),
                    SectionAction::Remove => String::new(),
                    SectionAction::Append => join(now, given),
                    SectionAction::Prepend => join(given, now),
                    SectionAction::Transform => match transformed.get(name) {
                        Some(text) => text.clone(),
                        None => continue,
                    },
                };
                // A section that this prompt does not have is added where it does no harm.
                if prompt.set_section(name, text.clone()).is_err() {
                    let last = join(prompt.section("last_instructions"), &text);
                    let _ = prompt.set_section("last_instructions", last);
                }
            }
            content.as_deref()
        }
    };
    join(&prompt.render(), appended.unwrap_or_default())
}

fn join(first: &str, second: &str) -> String {
    match (first.is_empty(), second.is_empty()) {
        (true, _) => second.to_owned(),
        (_, true) => first.to_owned(),
        _ => format!("{first}\n\n{second}"),
    }
}

#[cfg(test)]
mod tests {
    use hangar_agent::prompt::PromptEnvironment;
    use serde_json::json;

    use super::*;

    fn check(spec: serde_json::Value, transformed: &[(&str, &str)], holds: impl Fn(&str) -> bool) {
        let environment = PromptEnvironment {
            cwd: "/repo".to_owned(),
            git_root: None,
            os: "linux".to_owned(),
            version: "0".to_owned(),
            tools: Vec::new(),
        };
        let spec: SystemMessageSpec = serde_json::from_value(spec).unwrap();
        let transformed =
            transformed.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let text = render(Some(&spec), SystemPrompt::new(&environment, ""), &transformed);
        assert!(holds(&text), "{text}");
    }

    #[test]
    fn a_prompt_is_extended_replaced_or_changed_by_section() {
        check(json!({"mode":"append","content":"AT THE END"}), &[], |text| text.ends_with("\n\nAT THE END"));
        check(json!({"content":"AT THE END"}), &[], |text| text.ends_with("\n\nAT THE END"));
        check(json!({"mode":"replace","content":"ALL"}), &[], |text| text == "ALL");
        let sections = |action: &str| json!({"mode":"customize","sections":{"environment_context":{"action":action,"content":"X"}}});
        check(sections("remove"), &[], |text| !text.contains("/repo"));
        check(sections("replace"), &[], |text| !text.contains("/repo") && text.contains('X'));
        check(sections("append"), &[], |text| text.contains("</environment>\n\nX"));
        check(sections("prepend"), &[], |text| text.contains("X\n\n<environment>"));
        check(sections("transform"), &[("environment_context", "T")], |text| !text.contains("/repo"));
        check(sections("transform"), &[], |text| text.contains("/repo"));
    }

    #[test]
    fn a_section_that_is_not_there_is_put_at_the_end() {
        let spec = json!({"mode":"customize","sections":{"moon":{"action":"append","content":"PHASE"}}});
        check(spec, &[], |text| text.ends_with("PHASE"));
    }
}
