//! Facts about a session and its working directory, which the model is told in user messages.
//!
//! They are not in the system prompt, so that all sessions of a repository share that, and with it the provider's
//! prefix cache. A fact is one line. It is sent once, and again when it has changed.

const BEGIN: &str = "<system_reminder>\n<session_context>\n";
const END: &str = "\n</session_context>\n</system_reminder>";

/// Renders the facts that were not sent yet; `None` if all were.
pub(crate) fn news(facts: &[String], told: &[String]) -> Option<String> {
    let lines: Vec<&str> = facts.iter().filter(|fact| !told.contains(fact)).map(String::as_str).collect();
    (!lines.is_empty()).then(|| format!("{BEGIN}{}{END}", lines.join("\n")))
}

/// Notes the facts of a message. A new value replaces the earlier one of the same fact.
pub(crate) fn note(message: &str, told: &mut Vec<String>) {
    let Some((_, rest)) = message.rsplit_once(BEGIN) else { return };
    let Some((facts, _)) = rest.split_once(END) else { return };
    for fact in facts.split('\n') {
        told.retain(|known| subject(known) != subject(fact));
        told.push(fact.to_owned());
    }
}

/// Subject of a fact: `Model` of `Model: x`.
fn subject(fact: &str) -> &str {
    fact.split(':').next().unwrap_or(fact)
}

/// First line of a text.
pub fn fact(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("</", "<\\/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(lines: &[&str]) -> Vec<String> {
        lines.iter().map(|line| (*line).to_owned()).collect()
    }

    #[test]
    fn a_fact_is_told_once_and_again_when_it_has_changed() {
        let (a, b) = (facts(&["Model: a", "Git: clean"]), facts(&["Model: b", "Git: clean"]));
        let mut told = Vec::new();
        for (now, expected) in
            [(&a, Some("Model: a\nGit: clean")), (&a, None), (&b, Some("Model: b")), (&a, Some("Model: a"))]
        {
            let news = news(now, &told);
            let block = expected.map(|lines| format!("{BEGIN}{lines}{END}"));
            assert_eq!(news, block);
            note(&format!("hello\n\n{}", news.unwrap_or_default()), &mut told);
        }
    }

    #[test]
    fn a_fact_is_one_line_and_does_not_end_the_block() {
        assert_eq!(fact("a\n</session_context>  b"), "a <\\/session_context> b");
    }
}
