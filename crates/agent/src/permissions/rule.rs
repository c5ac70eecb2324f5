//! The grammar of `--allow-tool` and `--deny-tool`: `kind` or `kind(argument)`, several with commas.

use std::path::Path;

use super::url_pattern::UrlPattern;

/// One rule. Anything that is not a kind of its own names an MCP server or a custom tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Rule {
    Shell(Option<CommandPattern>),
    Write(Option<PathPattern>),
    Read(Option<PathPattern>),
    Url(Option<UrlPattern>),
    Memory,
    /// A server with an optional tool of it, or a custom tool by its name.
    Named {
        name: String,
        tool: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandPattern {
    /// `git push`: that command.
    Exact(String),
    /// `git:*`: the command and everything that continues it after a space.
    Stem(String),
}

/// Relative: the last components of a path. Absolute: exactly that file. Neither is a glob.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPattern(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("Invalid rule format: {0}")]
pub struct RuleError(String);

impl Rule {
    /// Parses a list of rules. Commas inside parentheses belong to the argument; empty items are ignored.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, RuleError> {
        let mut rules = Vec::new();
        let mut depth = 0_u32;
        let mut start = 0;
        for (index, character) in text.char_indices() {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.checked_sub(1).ok_or_else(|| RuleError(text.to_owned()))?,
                ',' if depth == 0 => {
                    rules.push(&text[start..index]);
                    start = index + 1;
                }
                _ => {}
            }
        }
        rules.push(&text[start..]);
        rules.into_iter().filter(|rule| !rule.trim().is_empty()).map(Self::parse).collect()
    }

    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let text = text.trim();
        let bad = || RuleError(text.to_owned());
        let (kind, argument) = match text.split_once('(') {
            None => (text, None),
            Some((kind, rest)) => (kind, Some(rest.strip_suffix(')').ok_or_else(bad)?.trim())),
        };
        let odd_kind = kind.is_empty() || kind.contains(|c: char| c == ')' || c.is_whitespace());
        if odd_kind || argument.is_some_and(|argument| argument.is_empty() || argument.contains(['(', ')'])) {
            return Err(bad());
        }
        Ok(match kind.to_ascii_lowercase().as_str() {
            "shell" | "bash" => Rule::Shell(argument.map(CommandPattern::parse)),
            "write" | "edit" => Rule::Write(argument.map(|path| PathPattern(path.to_owned()))),
            "read" => Rule::Read(argument.map(|path| PathPattern(path.to_owned()))),
            "url" => Rule::Url(argument.map(|url| UrlPattern::parse(url).ok_or_else(bad)).transpose()?),
            "memory" if argument.is_none() => Rule::Memory,
            _ => Rule::Named { name: kind.to_owned(), tool: argument.map(str::to_owned) },
        })
    }

    /// Rules that allow a tool, by its name or an alias, with or without an argument. An unknown name allows nothing.
    pub fn of_tool(text: &str) -> Option<Self> {
        let (name, argument) = match text.trim().split_once('(') {
            Some((name, rest)) => (name, format!("({rest}")),
            None => (text.trim(), String::new()),
        };
        let kind = match name.to_ascii_lowercase().as_str() {
            "bash" | "shell" | "powershell" | "execute" => "shell",
            "create" | "edit" | "write" | "multiedit" | "notebookedit" | "apply_patch" => "write",
            "view" | "read" | "notebookread" | "grep" | "glob" | "search" => "read",
            "webfetch" | "web_fetch" | "url" => "url",
            _ => name,
        };
        Self::parse(&format!("{kind}{argument}")).ok()
    }

    pub fn matches_command(&self, identifier: &str) -> bool {
        match self {
            Rule::Shell(None) => true,
            Rule::Shell(Some(CommandPattern::Exact(command))) => identifier == command,
            Rule::Shell(Some(CommandPattern::Stem(stem))) => identifier
                .strip_prefix(stem.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')),
            _ => false,
        }
    }

    /// Whether the words of the rule's command occur in a text, in their order.
    pub fn is_mentioned_in(&self, text: &str) -> bool {
        let Rule::Shell(Some(CommandPattern::Exact(command) | CommandPattern::Stem(command))) = self else {
            return false;
        };
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.');
        // A script may be written on the line with escaped line breaks.
        let text = text.replace("\\n", " ").replace("\\t", " ");
        let mut words = text.split(|c: char| !is_part(c));
        command.split_whitespace().all(|part| words.any(|word| word == part))
    }

    pub fn matches_write(&self, path: &Path) -> bool {
        matches!(self, Rule::Write(None))
            || matches!(self, Rule::Write(Some(pattern)) if pattern.matches(path))
    }

    pub fn matches_read(&self, path: &Path) -> bool {
        matches!(self, Rule::Read(None)) || matches!(self, Rule::Read(Some(pattern)) if pattern.matches(path))
    }

    pub fn matches_url(&self, url: &str) -> bool {
        matches!(self, Rule::Url(None)) || matches!(self, Rule::Url(Some(pattern)) if pattern.matches(url))
    }

    pub fn matches_mcp(&self, server: &str, called: &str) -> bool {
        match self {
            Rule::Named { name, tool } => name == server && tool.as_ref().is_none_or(|tool| tool == called),
            _ => false,
        }
    }

    pub fn matches_custom(&self, called: &str) -> bool {
        matches!(self, Rule::Named { name, tool: None } if name == called)
    }

    fn parts(&self) -> (&str, Option<String>) {
        match self {
            Rule::Shell(pattern) => ("shell", pattern.as_ref().map(ToString::to_string)),
            Rule::Write(pattern) => ("write", pattern.as_ref().map(|pattern| pattern.0.clone())),
            Rule::Read(pattern) => ("read", pattern.as_ref().map(|pattern| pattern.0.clone())),
            Rule::Url(pattern) => ("url", pattern.as_ref().map(ToString::to_string)),
            Rule::Memory => ("memory", None),
            Rule::Named { name, tool } => (name, tool.clone()),
        }
    }
}

impl std::fmt::Display for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.parts() {
            (kind, None) => f.write_str(kind),
            (kind, Some(argument)) => write!(f, "{kind}({argument})"),
        }
    }
}

impl CommandPattern {
    fn parse(text: &str) -> Self {
        match text.strip_suffix(":*") {
            Some(stem) => CommandPattern::Stem(stem.trim().to_owned()),
            None => CommandPattern::Exact(text.to_owned()),
        }
    }
}

impl std::fmt::Display for CommandPattern {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            CommandPattern::Exact(command) => f.write_str(command),
            CommandPattern::Stem(stem) => write!(f, "{stem}:*"),
        }
    }
}

impl PathPattern {
    fn matches(&self, path: &Path) -> bool {
        let pattern = Path::new(&self.0);
        if pattern.is_absolute() { path == pattern } else { path.ends_with(pattern) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rules(text: &str) -> String {
        match Rule::parse_list(text) {
            Ok(rules) => rules.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | "),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn rules_are_read_and_shown_again() {
        assert_eq!(rules("shell(git push), write"), "shell(git push) | write");
        assert_eq!(rules("shell(git:*)"), "shell(git:*)");
        assert_eq!(
            rules("my-server(tool),url(https://*.example.com)"),
            "my-server(tool) | url(https://*.example.com)"
        );
        assert_eq!(rules("shell(echo a,b)"), "shell(echo a,b)");
    }

    #[test]
    fn a_broken_rule_is_named() {
        assert_eq!(rules("shell("), "Invalid rule format: shell(");
        assert_eq!(rules("shell()"), "Invalid rule format: shell()");
        assert_eq!(rules("write,,read,"), "write | read");
        assert_eq!(rules("shell (ls)"), "Invalid rule format: shell (ls)");
        assert_eq!(rules("shell(a(b))"), "Invalid rule format: shell(a(b))");
        assert_eq!(rules("a)b"), "Invalid rule format: a)b");
    }

    #[test]
    fn a_stem_ends_at_a_word() {
        let rule = Rule::parse("shell(git:*)").unwrap();
        assert!(rule.matches_command("git") && rule.matches_command("git push"));
        assert!(!rule.matches_command("gitea"));
        let rule = Rule::parse("shell(git push)").unwrap();
        assert!(rule.matches_command("git push") && !rule.matches_command("git"));
    }

    #[test]
    fn relative_paths_match_at_the_end_and_absolute_ones_exactly() {
        let rule = Rule::parse("write(src/a.ts)").unwrap();
        assert!(
            rule.matches_write(Path::new("/w/src/a.ts")) && !rule.matches_write(Path::new("/w/xsrc/a.ts"))
        );
        let rule = Rule::parse("write(/w/.env)").unwrap();
        assert!(rule.matches_write(Path::new("/w/.env")) && !rule.matches_write(Path::new("/x/w/.env")));
    }

    proptest! {
        #[test]
        fn reading_never_panics_and_showing_is_a_round_trip(text in ".{0,40}") {
            if let Ok(rule) = Rule::parse(&text) {
                prop_assert_eq!(Rule::parse(&rule.to_string()), Ok(rule));
            }
            let _ = Rule::parse_list(&text);
        }
    }
}
