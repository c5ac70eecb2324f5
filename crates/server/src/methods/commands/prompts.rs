//! Commands that are a prompt: the client is told what to send.

use hangar_protocol::data::Mode;

use super::Answer;
use crate::methods::{Call, Failure};

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

pub(super) async fn init() -> Result<Answer, Failure> {
    Ok(Answer::Prompt { prompt: INIT.to_owned(), shown: "/init".to_owned(), mode: None })
}

pub(super) async fn review(input: String) -> Result<Answer, Failure> {
    Ok(about(REVIEW, "Review", &input))
}

pub(super) async fn security_review(input: String) -> Result<Answer, Failure> {
    Ok(about(SECURITY_REVIEW, "Security review", &input))
}

/// A prompt, and what it is to be about if that is said.
fn about(prompt: &str, shown: &str, input: &str) -> Answer {
    match input {
        "" => Answer::Prompt { prompt: prompt.to_owned(), shown: format!("{shown}: my changes"), mode: None },
        input => Answer::Prompt {
            prompt: format!("{prompt}\n\nAbout this in particular: {input}"),
            shown: format!("{shown}: {input}"),
            mode: None,
        },
    }
}

/// The client changes the mode, with the prompt that it sends or without one.
pub(super) async fn plan(call: Call, input: String) -> Result<Answer, Failure> {
    call.hub.admits(Mode::Plan)?;
    Ok(match input.is_empty() {
        true => Answer::Mode(Mode::Plan),
        false => Answer::Prompt { prompt: input.clone(), shown: input, mode: Some(Mode::Plan) },
    })
}
