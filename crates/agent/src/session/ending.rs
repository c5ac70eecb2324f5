//! How an answer ended, and the consequence: its calls run, the model continues, the call is made again, or the run
//! ends.

use hangar_protocol::data;

use super::call::parse_arguments;
use super::run::{Ending, Run};
use super::{Context, Session, Step};
use crate::model::{Finish, Reply, ToolCall};
use crate::prompt::notices;

/// Source of the message that asks the model to continue an answer that a limit cut.
pub const OUTPUT_LIMIT: &str = "output-limit";
/// Source of the message that asks the model for a missing answer.
const EMPTY_ANSWER: &str = "empty-answer";

/// Number of times in a row that a cut answer is continued.
const MAX_CUT_ANSWERS: u32 = 3;
/// Number of times in a row that a paused answer is sent back.
const MAX_PAUSES: u32 = 5;
/// Number of times that a turn is retried because its answer was not usable.
const MAX_UNUSABLE: u32 = 1;
/// Number of times that a run without any effect or answer is asked for an answer.
const MAX_NUDGES: u32 = 1;

/// Consequence of an answer.
pub(super) enum AnswerEnd {
    /// Its calls run. The notice follows their results.
    Calls { notice: Option<data::UserMessage> },
    /// It is the final answer and ends the run.
    Answer,
    /// The model continues, after a notice if there is one.
    GoOn { notice: Option<data::UserMessage> },
    /// As `GoOn`, once the context window has room again.
    MakeRoom { notice: Option<data::UserMessage> },
    /// The call is made again, for this reason.
    Retry(&'static str),
    /// Nothing of it may be used. The run fails with this message.
    Withheld(String),
    /// There is no answer. The run fails with this message.
    Failed(String),
}

/// How the answers of a run ended so far.
#[derive(Debug, Default)]
pub(super) struct Endings {
    /// Answers in a row that a limit cut.
    cut: u32,
    /// Answers in a row that the provider paused.
    paused: u32,
    /// Answers of this turn that were not usable.
    unusable: u32,
    /// Number of times the model was asked for a missing answer.
    nudges: u32,
    /// Whether the output limit cut the last answer inside a call, or before it said anything.
    cramped: bool,
    /// Whether the last answer continues the one before it.
    goes_on: bool,
    /// Whether tools were called.
    called: bool,
    /// Whether a tool changed something; then an empty answer is a valid end.
    worked: bool,
}

impl Endings {
    pub(super) fn goes_on(&self) -> bool {
        self.goes_on
    }

    /// Whether the next answer needs a higher output limit, if there is one.
    pub(super) fn needs_room(&self) -> bool {
        self.cramped
    }

    /// A tool changed something.
    pub(super) fn changed(&mut self) {
        self.worked = true;
    }

    pub(super) fn turn_ended(&mut self) {
        self.unusable = 0;
    }

    /// Classifies an answer, and removes the unusable parts: a call that a limit cut, and everything that was withheld.
    pub(super) fn judge(&mut self, reply: &mut Reply) -> AnswerEnd {
        self.goes_on = self.cut > 0 || self.paused > 0;
        let withheld = match &reply.finish {
            Finish::ContentFilter => Some(notices::FILTERED.to_owned()),
            Finish::Refusal(explanation) => Some(notices::refused(explanation.as_deref())),
            _ => None,
        };
        if let Some(message) = withheld {
            reply.turn = Default::default();
            return AnswerEnd::Withheld(message);
        }
        let half = match reply.finish {
            Finish::Length | Finish::ContextFull => reply.turn.tool_calls.pop_if(|call| !is_whole(call)),
            _ => None,
        };
        let empty = reply.turn.text.is_empty() && reply.turn.tool_calls.is_empty();
        self.cramped = half.is_some() || (empty && reply.finish == Finish::Length);
        let unusable = match &reply.finish {
            Finish::Broken(_) => true,
            // Servers have names of their own for an ordinary end; only one without an answer is suspicious.
            Finish::Other(_) => empty,
            // A first answer with reasoning only was lost on its way. After calls, an empty answer may be intended, and
            // an answer without reasoning is the model's own choice.
            Finish::Stop | Finish::ToolCalls => {
                empty && reply.turn.reasoning.is_some() && !self.called && !self.goes_on
            }
            _ => false,
        };
        if unusable && self.unusable < MAX_UNUSABLE {
            self.unusable += 1;
            return AnswerEnd::Retry("unusable_answer");
        }
        let verdict = self.judge_usable(reply, half.as_ref(), empty);
        let paused = reply.finish == Finish::Paused && !matches!(verdict, AnswerEnd::Calls { .. });
        let cut = matches!(reply.finish, Finish::Length | Finish::ContextFull);
        // Alternating pauses and cuts are counted as one series.
        let goes_on = paused || cut && !matches!(verdict, AnswerEnd::Calls { .. });
        self.paused = if goes_on { self.paused + u32::from(paused) } else { 0 };
        self.cut = if goes_on || cut { self.cut + u32::from(cut) } else { 0 };
        self.called |= !reply.turn.tool_calls.is_empty();
        verdict
    }

    fn judge_usable(&mut self, reply: &Reply, half: Option<&ToolCall>, empty: bool) -> AnswerEnd {
        let may_go_on = self.cut < MAX_CUT_ANSWERS;
        let cut_notice = cut_notice(&reply.finish, half, empty);
        if !reply.turn.tool_calls.is_empty() {
            return AnswerEnd::Calls { notice: half.and(cut_notice) };
        }
        if let Some(call) = half.filter(|_| !may_go_on && reply.finish == Finish::Length) {
            return AnswerEnd::Failed(notices::calls_stay_cut(&call.name));
        }
        match &reply.finish {
            Finish::ContextFull if may_go_on => AnswerEnd::MakeRoom { notice: cut_notice },
            Finish::ContextFull if empty && half.is_none() => {
                AnswerEnd::Failed(notices::CONTEXT_FULL.to_owned())
            }
            Finish::ContextFull => AnswerEnd::Failed(notices::WINDOW_STAYS_FULL.to_owned()),
            Finish::Length if may_go_on => AnswerEnd::GoOn { notice: cut_notice },
            Finish::Length if empty => AnswerEnd::Failed(notices::ONLY_THOUGHT.to_owned()),
            Finish::Length => AnswerEnd::Failed(notices::STAYS_CUT.to_owned()),
            Finish::Paused if self.paused < MAX_PAUSES => AnswerEnd::GoOn { notice: None },
            Finish::Paused => AnswerEnd::Failed(notices::STAYS_PAUSED.to_owned()),
            Finish::Broken(reason) | Finish::Other(reason) if empty => {
                AnswerEnd::Failed(notices::unusable(reason))
            }
            _ if !empty || (self.called && self.worked) => AnswerEnd::Answer,
            _ if self.called && self.nudges < MAX_NUDGES => {
                self.nudges += 1;
                AnswerEnd::GoOn { notice: Some(message(EMPTY_ANSWER, notices::SAY_SOMETHING.to_owned())) }
            }
            _ => AnswerEnd::Failed(notices::EMPTY.to_owned()),
        }
    }
}

/// The message to the model after an answer that a limit cut.
fn cut_notice(finish: &Finish, half: Option<&ToolCall>, empty: bool) -> Option<data::UserMessage> {
    let by_window = *finish == Finish::ContextFull;
    let text = match (half, by_window) {
        (Some(call), true) => notices::call_cut_by_window(&call.name),
        (Some(call), false) => notices::cut_call(&call.name),
        (None, true) if empty => return None,
        (None, false) if empty => notices::CUT_THOUGHT.to_owned(),
        (None, true) => notices::CUT_BY_WINDOW.to_owned(),
        (None, false) => notices::CUT_SHORT.to_owned(),
    };
    Some(message(OUTPUT_LIMIT, text))
}

/// Whether a call of a cut answer is complete. An object that parses ends with its brace; free text has no visible end.
fn is_whole(call: &ToolCall) -> bool {
    call.kind == data::ToolType::Function && !call.input.is_empty() && parse_arguments(call).is_object()
}

/// A message to the model without a human author.
fn message(source: &str, text: String) -> data::UserMessage {
    data::UserMessage {
        content: String::new(),
        transformed_content: Some(text),
        source: Some(source.to_owned()),
        ..Default::default()
    }
}

impl Session {
    /// Carries out the consequence of an answer without calls.
    pub(super) fn conclude(&mut self, verdict: AnswerEnd, step: &mut Step, context: &mut Context<'_>) {
        match verdict {
            AnswerEnd::Calls { .. } | AnswerEnd::Retry(_) => {}
            AnswerEnd::Answer => self.run_stop_hooks(Ending::Answered, step, context),
            AnswerEnd::GoOn { notice } => self.go_on(notice, step, context),
            AnswerEnd::MakeRoom { notice } => {
                if let Some(run) = &mut self.run {
                    run.context_full = true;
                }
                self.go_on(notice, step, context);
            }
            AnswerEnd::Withheld(message) | AnswerEnd::Failed(message) => {
                self.announce_error(&message, step, context);
                self.fail_run(data::SessionError::new("query", message), step, context);
            }
        }
    }

    fn go_on(&mut self, notice: Option<data::UserMessage>, step: &mut Step, context: &mut Context<'_>) {
        if let Some(notice) = notice {
            self.emit(step, notice);
        }
        self.begin_turn(step, context);
    }

    /// Makes the call again, because its answer was not usable.
    pub(super) fn retry_answer(
        &mut self,
        reason: &str,
        retries: u32,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(Run { turn, .. }) = &self.run else { return };
        let retry = data::TurnRetry {
            turn_id: turn.to_string(),
            model: Some(self.state.model.clone()),
            reason: Some(reason.to_owned()),
        };
        self.emit(step, retry);
        let message = "The answer was not usable; trying again.".to_owned();
        self.emit(step, data::SessionInfo::new("model_retry", message));
        self.call_model(retries + 1, step, context);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AssistantTurn, ReasoningText, TokenUsage};

    fn judged(endings: &mut Endings, text: &str, thought: &str) -> &'static str {
        let reasoning = ReasoningText { text: thought.to_owned(), ..ReasoningText::default() };
        let turn = AssistantTurn {
            text: text.to_owned(),
            reasoning: Some(reasoning).filter(|_| !thought.is_empty()),
            ..AssistantTurn::default()
        };
        let mut reply = Reply::new(turn, Finish::Stop, TokenUsage::default());
        match endings.judge(&mut reply) {
            AnswerEnd::Retry(_) => "retry",
            AnswerEnd::Answer => "answer",
            AnswerEnd::Failed(_) => "failed",
            AnswerEnd::Calls { .. }
            | AnswerEnd::GoOn { .. }
            | AnswerEnd::MakeRoom { .. }
            | AnswerEnd::Withheld(_) => "other",
        }
    }

    #[test]
    fn a_first_answer_of_thoughts_alone_is_asked_for_once_more() {
        let mut endings = Endings::default();
        assert_eq!(judged(&mut endings, "", "hm"), "retry");
        assert_eq!(judged(&mut endings, "", "hm"), "failed");
        assert_eq!(judged(&mut Endings::default(), "", ""), "failed");
        assert_eq!(judged(&mut Endings::default(), "Here.", "hm"), "answer");
    }
}
