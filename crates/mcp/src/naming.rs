//! Names of servers' tools for the model: `<server>-<tool>`, in the characters that every provider takes.

use std::collections::HashSet;

/// The longest name that every provider takes.
const MAX_NAME: usize = 64;

/// Gives each pair of server and tool a name that is its own.
#[derive(Default)]
pub(crate) struct ToolNames(HashSet<String>);

impl ToolNames {
    pub(crate) fn name(&mut self, server: &str, tool: &str) -> String {
        let plain: String = [server, "-", tool]
            .into_iter()
            .flat_map(str::chars)
            .map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '-' })
            .take(MAX_NAME)
            .collect();
        let mut name = plain.clone();
        let mut number = 1;
        while !self.0.insert(name.clone()) {
            number += 1;
            let suffix = format!("-{number}");
            name = plain.chars().take(MAX_NAME - suffix.len()).collect::<String>() + &suffix;
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_letters_become_dashes() {
        assert_eq!(ToolNames::default().name("my.srv", "say.it now"), "my-srv-say-it-now");
    }

    #[test]
    fn names_that_would_be_the_same_are_numbered() {
        let mut names = ToolNames::default();
        assert_eq!(names.name("a", "b.c"), "a-b-c");
        assert_eq!(names.name("a", "b c"), "a-b-c-2");
        let long = "x".repeat(80);
        assert_eq!(names.name("a", &long).len(), 64);
        let second = names.name("a", &long);
        assert!(second.len() == 64 && second.ends_with("-2"), "{second}");
    }
}
