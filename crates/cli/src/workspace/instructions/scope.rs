//! Front matter of an instruction file: the files and programs that it applies to.

use hangar_front_matter::{Head, comma_list};

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct InstructionScope {
    /// Patterns of files; empty if the instructions apply everywhere.
    pub(super) globs: Vec<String>,
    pub(super) description: Option<String>,
    /// Whether they apply to other programs than coding agents.
    pub(super) for_others: bool,
}

/// Names of coding agents in `excludeAgent`.
const CODING_AGENTS: [&str; 2] = ["coding-agent", "cloud-agent"];

/// Splits a file into its scope and its instructions. Invalid front matter is ignored.
pub(super) fn split(text: &str) -> (InstructionScope, &str) {
    let (head, body) =
        hangar_front_matter::split(text).map_or((None, text), |parts| (parts.yaml, parts.body));
    let head = head.and_then(|head| Head::parse(head).ok()).unwrap_or_default();
    let list = |name: &str| head.list(name).into_iter().flatten().flat_map(|item| comma_list(&item));
    let mut globs: Vec<String> = list("applyTo").collect();
    // A pattern that matches everything is the same as no pattern.
    if globs.iter().any(|glob| matches!(glob.as_str(), "*" | "**" | "**/*")) {
        globs.clear();
    }
    let for_others = list("excludeAgent").any(|name| CODING_AGENTS.contains(&name.as_str()));
    (InstructionScope { globs, description: head.text("description"), for_others }, body)
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
