//! Commands that are a prompt.

use super::{CommandOutcome, Proposal};

const INIT: &str = "\
Write instructions for agents that will work in this repository, in .github/copilot-instructions.md. Look around first: \
the README, what builds and tests the project, how the code is laid out, and instructions that are there for other tools \
(AGENTS.md, CLAUDE.md, .cursor/rules and the like).

Say what cannot be seen at a glance: the commands that build, check and test it, with the one for a single test; how its \
parts fit together; conventions that the code follows and a newcomer would break. Leave out what holds for any project, \
lists of files, and anything that you have not found in the repository. Keep it under a hundred lines.

If the file is there already, correct and complete it and keep what is still true. Say at the end, in a few sentences, what \
you wrote.";

const REVIEW: &str = "\
Review the changes that are not committed yet; if there are none, those of this branch. Hand the review to the agent \
`code-review` by the `task` tool, and tell me what it found.";

const SECURITY_REVIEW: &str = "\
Look for security holes in the changes that are not committed yet, staged or not; if there are none, in those of this \
branch. Hand the search to the agent `code-review` by the `task` tool and have it look for nothing else: input that is \
trusted and should not be, injection, missing checks of who may do something, secrets in code or logs, unsafe use of \
files, processes and cryptography. Report only what you are sure of, the worst first: the file and lines, what an attacker \
gains and how, and how to mend it. Change nothing.";

pub(super) fn init() -> CommandOutcome {
    propose(INIT.to_owned(), "/init".to_owned())
}

pub(super) fn review(input: &str) -> CommandOutcome {
    about(REVIEW, "Review", input)
}

pub(super) fn security_review(input: &str) -> CommandOutcome {
    about(SECURITY_REVIEW, "Security review", input)
}

/// A prompt, and what it is to be about if that is said.
fn about(prompt: &str, shown: &str, input: &str) -> CommandOutcome {
    match input {
        "" => propose(prompt.to_owned(), format!("{shown}: my changes")),
        input => {
            propose(format!("{prompt}\n\nAbout this in particular: {input}"), format!("{shown}: {input}"))
        }
    }
}

fn propose(prompt: String, shown: String) -> CommandOutcome {
    CommandOutcome::Propose(Proposal { prompt: Some(prompt), shown, mode: None })
}
