//! Turns for requests that no scenario answers: the marker language of the scripted model, as pieces.

use hangar_agent::model::Finish;
use hangar_models::scripted::markers::{ScriptStep, ScriptedTurn};

use crate::scenario::{Act, AnswerPiece, FailureKind, ScenarioEnd, VendorFailure};

/// Limit of the pieces of a turn. `STREAM` may ask for a million, which a simulator does not need.
const MAX_PIECES: usize = 20_000;

/// The turn that these markers describe.
pub(crate) fn act(turn: ScriptedTurn) -> Act {
    if let Some(failure) = turn.failure {
        let kind = match failure.status {
            401 | 403 => FailureKind::Unauthorized,
            413 => FailureKind::TooLarge,
            429 => FailureKind::RateLimited,
            503 | 529 => FailureKind::Overloaded,
            500 => FailureKind::ServerError,
            _ => FailureKind::Other,
        };
        let retry_after = failure.retry_after.map(|after| after.as_secs_f64());
        return Act::Fail(VendorFailure {
            status: Some(failure.status),
            retry_after,
            ..VendorFailure::new(kind)
        });
    }
    let mut pieces = Vec::new();
    let mut end = ScenarioEnd::Natural;
    for step in turn.steps {
        match step {
            ScriptStep::Say(text) => pieces.push(AnswerPiece::Text { text, phase: None }),
            ScriptStep::Think(text) => pieces.push(AnswerPiece::Thinking(text)),
            ScriptStep::Stream { pieces: count, every } => {
                for number in 0..count {
                    if pieces.len() >= MAX_PIECES {
                        break;
                    }
                    if number > 0 && !every.is_zero() {
                        pieces.push(AnswerPiece::Wait(every));
                    }
                    pieces.push(AnswerPiece::Text { text: format!("tok{number} "), phase: None });
                }
            }
            ScriptStep::Call { tool, input } | ScriptStep::ParallelCall { tool, input } => {
                pieces.push(AnswerPiece::Call { tool, arguments: input });
            }
            ScriptStep::Delay(delay) => pieces.push(AnswerPiece::Wait(delay)),
            ScriptStep::Drop => {
                end = ScenarioEnd::Cut;
                break;
            }
            ScriptStep::Stop(finish) => end = ended(finish),
            // A used-up failure.
            ScriptStep::Fail(_) => {}
        }
    }
    Act::Say { pieces: joined(pieces), end, faults: Vec::new() }
}

/// Adjacent texts are one block, as vendors send them.
fn joined(pieces: Vec<AnswerPiece>) -> Vec<AnswerPiece> {
    let mut together: Vec<AnswerPiece> = Vec::new();
    for piece in pieces {
        match (together.last_mut(), piece) {
            (Some(AnswerPiece::Text { text, .. }), AnswerPiece::Text { text: more, .. }) => {
                text.push_str(&more);
            }
            (_, piece) => together.push(piece),
        }
    }
    together
}

fn ended(finish: Finish) -> ScenarioEnd {
    match finish {
        Finish::Stop | Finish::ToolCalls => ScenarioEnd::Natural,
        Finish::Length => ScenarioEnd::Length,
        Finish::ContentFilter => ScenarioEnd::ContentFilter,
        Finish::Paused => ScenarioEnd::Pause,
        Finish::ContextFull => ScenarioEnd::ContextWindow,
        Finish::Refusal(_) => ScenarioEnd::Refusal,
        Finish::Broken(reason) | Finish::Other(reason) => ScenarioEnd::Other(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hangar_models::scripted::Script;
    use hangar_models::scripted::markers::{Asked, Playbook, ToolOffer};
    use serde_json::json;

    fn check(prompt: &str, expected: &Act) {
        let mut asked = Asked::new(ToolOffer::Tools);
        asked.user(prompt.to_owned());
        assert_eq!(act(Playbook::new(Script::default()).turn(&asked)), *expected, "{prompt}");
    }

    fn said(pieces: Vec<AnswerPiece>, end: ScenarioEnd) -> Act {
        Act::Say { pieces, end, faults: Vec::new() }
    }

    #[test]
    fn markers_are_turns() {
        check("hello", &said(vec![AnswerPiece::text("pong")], ScenarioEnd::Natural));
        check(
            "THINK:hm\nSAY:a\nSAY:b\nTOOL:t:{\"n\":1}",
            &said(
                vec![
                    AnswerPiece::thinking("hm"),
                    AnswerPiece::text("ab"),
                    AnswerPiece::call("t", &json!({"n": 1})),
                ],
                ScenarioEnd::Natural,
            ),
        );
        check("SAY:a\nSTOP:length", &said(vec![AnswerPiece::text("a")], ScenarioEnd::Length));
        check("SAY:a\nDROP:", &said(vec![AnswerPiece::text("a")], ScenarioEnd::Cut));
        let limited = VendorFailure {
            status: Some(429),
            retry_after: Some(2.0),
            ..VendorFailure::new(FailureKind::RateLimited)
        };
        check("FAIL:429:1:2", &Act::Fail(limited));
    }
}
