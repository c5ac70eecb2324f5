//! Search for tools whose descriptions the model is not shown, because together they would fill its context.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::tool::ToolSpec;

/// Tokens of descriptions above which they are not shown, unless configured.
pub const DEFAULT_TOKENS: u64 = 20_000;

/// Share of the context window above which they are not shown, as its divisor.
const WINDOW_SHARE: u64 = 10;

/// Bytes per token of descriptions and schemas.
const BYTES_PER_TOKEN: u64 = 4;

/// Tools that one search finds, unless it asks for another number, and at most.
const FOUND: usize = 5;
const MOST_FOUND: usize = 20;

/// Characters of a description in a result.
const DESCRIPTION_CHARS: usize = 300;

/// Bytes of the names that a message lists.
const NAMES_BYTES: usize = 8_000;

/// Tools that may be hidden behind a search, and from when on they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferral {
    /// Names of the tools: those of MCP servers.
    pub names: Arc<BTreeSet<String>>,
    /// Tokens of their descriptions.
    pub tokens: u64,
    /// Number of all tools, if a client sets one.
    pub count: Option<usize>,
}

impl Default for Deferral {
    fn default() -> Self {
        Self { names: Arc::default(), tokens: DEFAULT_TOKENS, count: None }
    }
}

impl Deferral {
    /// Whether the tools are too many to be shown.
    pub(crate) fn applies(&self, tools: &[Arc<ToolSpec>], window: u64) -> bool {
        if self.names.is_empty() {
            return false;
        }
        if let Some(count) = self.count {
            return tools.len() > count;
        }
        let deferrable = tools.iter().filter(|tool| self.names.contains(&tool.name));
        let tokens = deferrable.map(|tool| size(tool)).sum::<u64>() / BYTES_PER_TOKEN;
        let share = if window == 0 { u64::MAX } else { window / WINDOW_SHARE };
        tokens > self.tokens.min(share)
    }
}

fn size(tool: &ToolSpec) -> u64 {
    (tool.name.len() + tool.description.len() + tool.input.size()) as u64
}

/// Finds tools by names (`select:a,b`) or by words, the best first.
pub(crate) fn search<'a>(
    tools: impl Iterator<Item = &'a Arc<ToolSpec>>,
    query: &str,
    limit: Option<u64>,
) -> Vec<&'a Arc<ToolSpec>> {
    if let Some(names) = query.strip_prefix("select:") {
        let names: Vec<&str> = names.split(',').map(str::trim).collect();
        return tools.filter(|tool| names.contains(&tool.name.as_str())).take(MOST_FOUND).collect();
    }
    let limit =
        limit.map_or(FOUND, |limit| usize::try_from(limit).unwrap_or(MOST_FOUND)).clamp(1, MOST_FOUND);
    let terms = words(query);
    let mut scored: Vec<(usize, &Arc<ToolSpec>)> =
        tools.map(|tool| (score(tool, &terms), tool)).filter(|(score, _)| *score > 0).collect();
    scored.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.name.cmp(&b.1.name)));
    scored.into_iter().take(limit).map(|(_, tool)| tool).collect()
}

/// Score of a tool: a word of the query counts more in its name than in its description.
fn score(tool: &ToolSpec, terms: &BTreeSet<String>) -> usize {
    let (name, description) = (words(&tool.name), words(&tool.description));
    terms
        .iter()
        .map(|term| {
            let begins = |words: &BTreeSet<String>| words.iter().any(|word| word.starts_with(term.as_str()));
            let in_name = match (name.contains(term), begins(&name)) {
                (true, _) => 8,
                (false, true) => 4,
                (false, false) => 0,
            };
            in_name + if description.contains(term) { 2 } else { usize::from(begins(&description)) }
        })
        .sum()
}

/// Words in lower case; `listPullRequests` has three.
fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut word = String::new();
    let mut was_lower = false;
    for c in text.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && was_lower) {
            words.insert(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        was_lower = c.is_lowercase() || c.is_numeric();
    }
    words.insert(word);
    words.remove("");
    words
}

/// Result of a search.
pub(crate) fn told(found: &[&Arc<ToolSpec>], query: &str) -> String {
    if found.is_empty() {
        return format!("No tool matches \"{query}\". Try other words, or `select:` with names.");
    }
    let mut text = "These tools can be called from now on:".to_owned();
    for tool in found {
        let short = tool.description.char_indices().nth(DESCRIPTION_CHARS);
        let (description, mark) =
            short.map_or((tool.description.as_str(), ""), |(end, _)| (&tool.description[..end], "..."));
        text.push_str(&format!("\n- {}: {}{mark}", tool.name, description.trim()));
    }
    text
}

/// The names of the tools that a search can find.
pub(crate) fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    let mut bytes = 0;
    let listed: Vec<&str> = names
        .iter()
        .copied()
        .take_while(|name| {
            bytes += name.len() + 2;
            bytes <= NAMES_BYTES
        })
        .collect();
    let more = names.len() - listed.len();
    listed.join(", ") + &if more > 0 { format!(", and {more} more") } else { String::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tool::ToolSchema;

    fn tool(name: &str, description: &str) -> Arc<ToolSpec> {
        let input = ToolSchema::function(json!({ "type": "object" }));
        Arc::new(ToolSpec { name: name.to_owned(), title: None, description: description.to_owned(), input })
    }

    fn tools() -> Vec<Arc<ToolSpec>> {
        vec![
            tool("github-list_issues", "Lists issues of a repository."),
            tool("github-createPullRequest", "Opens a pull request."),
            tool("mail-send", "Sends a message about issues."),
        ]
    }

    fn check(query: &str, limit: Option<u64>, expected: &[&str]) {
        let tools = tools();
        let found: Vec<&str> =
            search(tools.iter(), query, limit).iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(found, expected, "{query}");
    }

    #[test]
    fn tools_are_found_by_words_and_by_names() {
        check("issues", None, &["github-list_issues", "mail-send"]);
        check("pull request", None, &["github-createPullRequest"]);
        check("send a message", None, &["mail-send", "github-createPullRequest", "github-list_issues"]);
        check("GITHUB", Some(1), &["github-createPullRequest"]);
        check("select:mail-send, github-list_issues", None, &["github-list_issues", "mail-send"]);
        check("weather", None, &[]);
        check("", None, &[]);
    }

    #[test]
    fn a_result_says_what_can_be_called() {
        let tools = tools();
        let text = told(&search(tools.iter(), "mail", None), "mail");
        assert_eq!(
            text,
            "These tools can be called from now on:\n- mail-send: Sends a message about issues."
        );
        assert!(told(&[], "weather").starts_with("No tool matches \"weather\""));
    }

    #[test]
    fn tools_are_deferred_by_their_size_or_their_number() {
        let long = "x".repeat(1_000);
        let many: Vec<Arc<ToolSpec>> = (0..100).map(|n| tool(&format!("s-{n}"), &long)).collect();
        let names: Arc<BTreeSet<String>> = Arc::new(many.iter().map(|tool| tool.name.clone()).collect());
        let deferral = |tokens, count| Deferral { names: Arc::clone(&names), tokens, count };
        assert!(deferral(20_000, None).applies(&many, 1_000_000));
        assert!(!deferral(30_000, None).applies(&many, 1_000_000));
        assert!(deferral(30_000, None).applies(&many, 200_000), "a tenth of the window");
        assert!(deferral(u64::MAX, Some(30)).applies(&many, 0));
        assert!(!deferral(0, Some(100)).applies(&many, 1_000));
        assert!(!Deferral::default().applies(&many, 1_000), "none of them may be");
    }

    #[test]
    fn listed_names_are_bounded() {
        let many: Vec<String> = (0..2_000).map(|n| format!("tool-{n:04}")).collect();
        let text = names(many.iter().map(String::as_str));
        assert!(text.len() < NAMES_BYTES + 30 && text.ends_with("more"), "{}", text.len());
    }
}
