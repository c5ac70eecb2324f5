//! Turns for requests that no scenario answers: the marker language of the scripted model, as pieces.

use hangar_agent::model::Finish;
use hangar_models::scripted::markers::{Step, Turn as MarkedTurn};

use crate::scenario::{Act, End, Failure, FailureKind, Piece};

/// Limit of the pieces of a turn. `STREAM` may ask for a million, which a simulator does not need.
const MAX_PIECES: usize = 20_000;

/// The turn that these markers describe.
pub(crate) fn act(turn: MarkedTurn) -> Act {
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
        return Act::Fail(Failure { status: Some(failure.status), retry_after, ..Failure::new(kind) });
    }
    let mut pieces = Vec::new();
    let mut end = End::Natural;
    for step in turn.steps {
        match step {
            Step::Say(text) => pieces.push(Piece::Text { text, phase: None }),
            Step::Think(text) => pieces.push(Piece::Thinking(text)),
            Step::Stream { pieces: count, every } => {
                for number in 0..count {
                    if pieces.len() >= MAX_PIECES {
                        break;
                    }
                    if number > 0 && !every.is_zero() {
                        pieces.push(Piece::Wait(every));
                    }
                    pieces.push(Piece::Text { text: format!("tok{number} "), phase: None });
                }
            }
            Step::Call { tool, input } | Step::ParallelCall { tool, input } => {
                pieces.push(Piece::Call { tool, arguments: input });
            }
            Step::Delay(delay) => pieces.push(Piece::Wait(delay)),
            Step::Drop => {
                end = End::Cut;
                break;
            }
            Step::Stop(finish) => end = ended(finish),
            // A used-up failure.
            Step::Fail(_) => {}
        }
    }
    Act::Say { pieces: joined(pieces), end, faults: Vec::new() }
}

/// Adjacent texts are one block, as vendors send them.
fn joined(pieces: Vec<Piece>) -> Vec<Piece> {
    let mut together: Vec<Piece> = Vec::new();
    for piece in pieces {
        match (together.last_mut(), piece) {
            (Some(Piece::Text { text, .. }), Piece::Text { text: more, .. }) => text.push_str(&more),
            (_, piece) => together.push(piece),
        }
    }
    together
}

fn ended(finish: Finish) -> End {
    match finish {
        Finish::Stop | Finish::ToolCalls => End::Natural,
        Finish::Length => End::Length,
        Finish::ContentFilter => End::ContentFilter,
        Finish::Paused => End::Pause,
        Finish::ContextFull => End::ContextWindow,
        Finish::Refusal(_) => End::Refusal,
        Finish::Broken(reason) | Finish::Other(reason) => End::Other(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hangar_models::scripted::Script;
    use hangar_models::scripted::markers::{Asked, Offer, Playbook};
    use serde_json::json;

    fn check(prompt: &str, expected: &Act) {
        let mut asked = Asked::new(Offer::Tools);
        asked.user(prompt.to_owned());
        assert_eq!(act(Playbook::new(Script::default()).turn(&asked)), *expected, "{prompt}");
    }

    fn said(pieces: Vec<Piece>, end: End) -> Act {
        Act::Say { pieces, end, faults: Vec::new() }
    }

    #[test]
    fn markers_are_turns() {
        check("hello", &said(vec![Piece::text("pong")], End::Natural));
        check(
            "THINK:hm\nSAY:a\nSAY:b\nTOOL:t:{\"n\":1}",
            &said(
                vec![Piece::thinking("hm"), Piece::text("ab"), Piece::call("t", &json!({"n": 1}))],
                End::Natural,
            ),
        );
        check("SAY:a\nSTOP:length", &said(vec![Piece::text("a")], End::Length));
        check("SAY:a\nDROP:", &said(vec![Piece::text("a")], End::Cut));
        let limited =
            Failure { status: Some(429), retry_after: Some(2.0), ..Failure::new(FailureKind::RateLimited) };
        check("FAIL:429:1:2", &Act::Fail(limited));
    }
}
