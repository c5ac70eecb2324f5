//! The few lines at the head of an instruction file that say what it is about.

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Frontmatter {
    /// Patterns of files; empty if the instructions are about everything.
    pub(super) globs: Vec<String>,
    pub(super) description: Option<String>,
    /// Whether they are for other programs than agents that write code.
    pub(super) for_others: bool,
}

/// What agents that write code are called where instructions are kept from them.
const CODING_AGENTS: [&str; 2] = ["coding-agent", "cloud-agent"];

/// Splits a file into its head and the instructions proper.
pub(super) fn split(text: &str) -> (Frontmatter, &str) {
    let text = text.trim_start_matches('\u{feff}');
    let Some((head, body)) = head_and_body(text) else { return (Frontmatter::default(), text) };
    let mut front = Frontmatter::default();
    let mut lines = head.lines().peekable();
    while let Some(line) = lines.next() {
        let Some((name, value)) = line.split_once(':') else { continue };
        let value = value.trim();
        match name.trim_end() {
            "applyTo" if value.is_empty() => {
                while let Some(item) = lines.peek().and_then(|line| line.trim().strip_prefix("- ")) {
                    add_globs(&mut front.globs, item);
                    lines.next();
                }
            }
            "applyTo" => add_globs(&mut front.globs, value),
            "excludeAgent" => {
                let names = value.trim_matches(['[', ']']);
                let mut names = names.split(',').map(|name| unquoted(name.trim()));
                front.for_others = names.any(|name| CODING_AGENTS.contains(&name));
            }
            "description" => {
                front.description = Some(unquoted(value).to_owned()).filter(|text| !text.is_empty());
            }
            _ => {}
        }
    }
    // A pattern that takes in everything says no more than no pattern.
    if front.globs.iter().any(|glob| matches!(glob.as_str(), "*" | "**" | "**/*")) {
        front.globs.clear();
    }
    (front, body)
}

fn head_and_body(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---")?;
    let rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'))?;
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            return Some((&rest[..end], &rest[end + line.len()..]));
        }
        end += line.len();
    }
    None
}

fn unquoted(value: &str) -> &str {
    let inner = |quote| value.strip_prefix(quote)?.strip_suffix(quote);
    inner('"').or_else(|| inner('\'')).unwrap_or(value)
}

/// One pattern, several with commas between, or a list in brackets.
fn add_globs(globs: &mut Vec<String>, value: &str) {
    let list = value.strip_prefix('[').and_then(|value| value.strip_suffix(']'));
    for item in split_commas(list.unwrap_or_else(|| unquoted(value))) {
        for glob in split_commas(unquoted(item.trim())) {
            let glob = glob.trim();
            if !glob.is_empty() {
                globs.push(glob.to_owned());
            }
        }
    }
}

/// Splits at commas that are neither in quotes nor in braces, where they mean something else.
fn split_commas(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut depth, mut quote) = (0, 0_usize, None);
    for (at, c) in text.char_indices() {
        match (c, quote) {
            ('"' | '\'', None) => quote = Some(c),
            (c, Some(open)) if c == open => quote = None,
            ('{', None) => depth += 1,
            ('}', None) => depth = depth.saturating_sub(1),
            (',', None) if depth == 0 => {
                parts.push(&text[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, globs: &[&str], description: Option<&str>, body: &str) {
        let (front, rest) = split(text);
        assert_eq!(front.globs, globs, "{text:?}");
        assert_eq!(front.description.as_deref(), description);
        assert_eq!(rest, body);
    }

    #[test]
    fn patterns_come_in_many_forms() {
        check(
            "---\napplyTo: \"**/*.py,src/**\"\ndescription: 'a: b'\n---\nx\n",
            &["**/*.py", "src/**"],
            Some("a: b"),
            "x\n",
        );
        check("---\napplyTo: [\"a/*.py\", 'b/{c,d}/*']\n---\nx", &["a/*.py", "b/{c,d}/*"], None, "x");
        check("---\napplyTo: [\"a/*.py\",\"b/**\"]\n---\nx", &["a/*.py", "b/**"], None, "x");
        check(
            "---\napplyTo:\n  - a/*.py\n  - \"b,c\"\ndescription: d\n---\n",
            &["a/*.py", "b", "c"],
            Some("d"),
            "",
        );
        check("---\r\napplyTo: src/{a,b}.rs\r\n---\r\nx", &["src/{a,b}.rs"], None, "x");
    }

    #[test]
    fn patterns_for_everything_are_no_patterns() {
        for glob in ["**", "*", "'**/*'", "\"**/*.py, **\""] {
            check(&format!("---\napplyTo: {glob}\n---\nx"), &[], None, "x");
        }
    }

    #[test]
    fn some_instructions_are_for_others() {
        let check = |value: &str, expected: bool| {
            let text = format!("---\napplyTo: '**'\nexcludeAgent: {value}\n---\nx");
            assert_eq!(split(&text).0.for_others, expected, "{value}");
        };
        check("\"coding-agent\"", true);
        check("cloud-agent", true);
        check("[\"code-review\", 'coding-agent']", true);
        check("code-review", false);
    }

    #[test]
    fn text_without_a_head_is_all_body() {
        check("x\n---\ny", &[], None, "x\n---\ny");
        check("---\nnever ends", &[], None, "---\nnever ends");
        check("", &[], None, "");
    }
}
