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

const RESEARCH: &str = "\
Research the question below and write a report. Split it into parts that can be looked into separately, and hand them to agents by the \
`task` tool, in parallel where they do not depend on each other: the code of this repository, its history, its dependencies, and the web \
as far as it can be reached. Check what they report against its source before you use it.

The report begins with the answer in a few sentences. Then come the findings, each with its source: a file and line, a commit, or an \
address. Say what could not be found out, and where sources contradict each other. Change no files.";

const RUBBER_DUCK: &str = "\
Get a second opinion on the current work before it goes on. Write down in a few sentences what is to be achieved, what was decided and \
why, and what is done so far; hand that to an agent by the `task` tool (`general-purpose`), which has not seen this conversation, and \
have it read the code and the changes itself. It is to look for wrong assumptions, cases that were not thought of, simpler ways, and \
tests that are missing, and to say for each how sure it is. It changes nothing.

Then tell me which of its points hold, which do not and why, and what you would do differently. Change nothing yet.";

pub(super) fn init() -> CommandOutcome {
    propose(INIT.to_owned(), "/init".to_owned())
}

pub(super) fn review(input: &str) -> CommandOutcome {
    about(REVIEW, "Review", input)
}

pub(super) fn security_review(input: &str) -> CommandOutcome {
    about(SECURITY_REVIEW, "Security review", input)
}

pub(super) fn rubber_duck(input: &str) -> CommandOutcome {
    about(RUBBER_DUCK, "Second opinion", input)
}

pub(super) fn research(question: &str) -> CommandOutcome {
    propose(format!("{RESEARCH}\n\nThe question: {question}"), format!("Research: {question}"))
}

/// Prompt with its subject, if one is given.
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
