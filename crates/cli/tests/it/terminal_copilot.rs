//! Commands of the real Copilot's interactive mode against ours: a new one has to get a row in the documentation, done or an honest no.

use std::collections::BTreeSet;

use hangar_test_support::Scratch;

const COPILOT: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/agents/node_modules/@github/copilot-linux-x64/copilot");
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/terminal-commands.md");

/// Names that lines begin with after a mark: `    /model  Select …`.
fn names<'a>(text: &'a str, mark: &str) -> BTreeSet<&'a str> {
    let begun = text.lines().filter_map(|line| line.trim_start().strip_prefix(mark));
    let end = |c: char| c.is_whitespace() || c == '`';
    begun.filter_map(|line| line.split(end).next()).filter(|name| !name.is_empty()).collect()
}

#[test]
fn every_command_that_copilot_helps_with_is_documented() {
    let scratch = Scratch::new();
    let help = scratch.run(COPILOT).args(["help", "commands"]).finish().expect_exit(0);
    let theirs = names(&help.stdout, "/");
    // Help of another form would compare nothing.
    assert!(theirs.len() >= 60 && theirs.contains("model") && theirs.contains("exit"), "{theirs:?}");
    let page = std::fs::read_to_string(PAGE).expect("the page of commands");
    let ours = names(&page, "| `/");
    let missing: Vec<&&str> = theirs.difference(&ours).collect();
    assert!(missing.is_empty(), "docs/terminal-commands.md and the terminal's tables lack {missing:?}");
}
