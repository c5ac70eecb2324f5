//! The marker language: the syntax of scripts, and the part of one that a model turn plays. Pure: no wire, no clock.
//!
//! | marker | the model |
//! |---|---|
//! | `SAY:text` | says `text` in one piece; `\n` in it is a line break |
//! | `STREAM:n[:ms]` | says `tok0 ` … in n pieces, waiting `ms` before each but the first |
//! | `THINK:text` | reasons |
//! | `TOOL:name:{json}` | calls the tool and ends the turn; the script goes on when the result is there |
//! | `PTOOL:name:{json}` | calls the tool in the same turn as what follows: `PTOOL* TOOL` are parallel calls |
//! | `REPEAT:n:marker` | does that n times |
//! | `DELAY:ms` | waits |
//! | `FAIL:status[:times[:retry_after_s]]` | answers with that HTTP status, the first `times` requests or always |
//! | `DROP:` | breaks off here |
//! | `STOP:reason` | gives that reason for ending the turn: `length`, `content_filter`, … |
//!
//! A script keeps no state: the position of a request in it follows from the tool results in the request.

use std::fmt;
use std::time::Duration;

use hangar_agent::model::Finish;

/// Characters of a tool result that `done: …` quotes.
const QUOTED_RESULT: usize = 200;
/// Limit of the steps that one prompt, or one turn of a file, expands to; `REPEAT` could ask for any number.
const MAX_STEPS: usize = 10_000;
const MAX_PIECES: u32 = 1_000_000;
const MAX_DELAY: Duration = Duration::from_secs(60 * 60);

const DEFAULT_ANSWER: &str = "pong";

#[derive(Debug, Clone, PartialEq)]
pub enum ScriptStep {
    Say(String),
    Stream {
        pieces: u32,
        every: Duration,
    },
    Think(String),
    /// Ends the turn.
    Call {
        tool: String,
        input: String,
    },
    /// Leaves the turn open for more.
    ParallelCall {
        tool: String,
        input: String,
    },
    Delay(Duration),
    Fail(ScriptedFailure),
    Drop,
    Stop(Finish),
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ScriptedFailure {
    pub status: u16,
    /// Number of requests that fail; all if `None`.
    pub times: Option<u32>,
    pub retry_after: Option<Duration>,
}

impl ScriptStep {
    fn is_call(&self) -> bool {
        matches!(self, Self::Call { .. } | Self::ParallelCall { .. })
    }

    fn is_text(&self) -> bool {
        matches!(self, Self::Say(_) | Self::Stream { .. })
    }

    /// Whether the step produces an answer, so that no default one is needed.
    fn is_outcome(&self) -> bool {
        self.is_text() || matches!(self, Self::Drop | Self::Fail(_))
    }
}

/// Answers of the model to each prompt, and its default answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Script {
    /// Turn k answers the k-th prompt of a conversation.
    turns: Vec<Vec<ScriptStep>>,
    default: String,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    #[error("line {line} of the script is not a marker: `{text}`")]
    NotAMarker { line: usize, text: String },
    #[error("line {line} of the script makes a turn of more than {MAX_STEPS} steps")]
    TooLong { line: usize },
}

impl Default for Script {
    /// Prompts contain their own answers.
    fn default() -> Self {
        Self { turns: Vec::new(), default: DEFAULT_ANSWER.to_owned() }
    }
}

impl Script {
    /// Reads a script file: one marker per line, `#` before comments, a line `---` between turns.
    ///
    /// Other lines are errors here, unlike in a prompt, where they are ordinary text.
    pub fn parse(text: &str) -> Result<Self, ScriptError> {
        let mut turns = vec![Vec::new()];
        for (index, line) in text.lines().enumerate() {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with('#') {
                continue;
            }
            if trimmed == "---" {
                turns.push(Vec::new());
                continue;
            }
            let Some(steps) = marker(line) else {
                return Err(ScriptError::NotAMarker { line: index + 1, text: trimmed.to_owned() });
            };
            if let Some(turn) = turns.last_mut()
                && !append(turn, steps)
            {
                return Err(ScriptError::TooLong { line: index + 1 });
            }
        }
        Ok(Self { turns, ..Self::default() })
    }

    /// Replaces `pong`, the answer to a prompt that nothing else answers.
    #[must_use]
    pub fn with_default(mut self, answer: impl Into<String>) -> Self {
        self.default = answer.into();
        self
    }

    /// The steps that answer the `number`-th prompt of a conversation, counted from 1.
    ///
    /// Markers in the prompt take precedence over the file. A script that starts a sub-agent writes its prompt and must
    /// be able to determine its answer: by the file alone the sub-agent, whose prompt is also a first one, would start
    /// itself.
    pub(super) fn steps(&self, prompt: &str, number: usize) -> Vec<ScriptStep> {
        let own = markers(prompt);
        if !own.is_empty() {
            return own;
        }
        number.checked_sub(1).and_then(|index| self.turns.get(index)).cloned().unwrap_or_default()
    }

    pub(super) fn default_answer(&self) -> &str {
        &self.default
    }
}

/// The markers among the lines of a prompt. A line that is not one, or has an invalid number, is ordinary text.
pub(super) fn markers(text: &str) -> Vec<ScriptStep> {
    let mut steps = Vec::new();
    for found in text.lines().filter_map(marker) {
        append(&mut steps, found);
    }
    steps
}

fn append(turn: &mut Vec<ScriptStep>, steps: Vec<ScriptStep>) -> bool {
    let fits = turn.len() + steps.len() <= MAX_STEPS;
    if fits {
        turn.extend(steps);
    }
    fits
}

fn marker(line: &str) -> Option<Vec<ScriptStep>> {
    let mut times: usize = 1;
    let (mut kind, mut rest) = line.trim_start().trim_end_matches('\r').split_once(':')?;
    // A loop, because a prompt of 200 KB can nest more repeats than the stack allows.
    while kind == "REPEAT" {
        let (count, inner) = rest.split_once(':')?;
        times = times.checked_mul(number(count)?)?;
        (kind, rest) = inner.trim_start().split_once(':')?;
    }
    let step = match kind {
        "SAY" => ScriptStep::Say(line_breaks(rest)),
        "THINK" => ScriptStep::Think(line_breaks(rest)),
        "STREAM" => {
            let (pieces, every) = rest.split_once(':').unwrap_or((rest, "0"));
            let pieces = number(pieces).filter(|pieces| *pieces <= MAX_PIECES)?;
            ScriptStep::Stream { pieces, every: delay_or_zero(every)? }
        }
        "TOOL" => {
            let (tool, input) = call(rest)?;
            ScriptStep::Call { tool, input }
        }
        "PTOOL" => {
            let (tool, input) = call(rest)?;
            ScriptStep::ParallelCall { tool, input }
        }
        "DELAY" => ScriptStep::Delay(delay(rest, Duration::from_millis(1))?),
        "FAIL" => ScriptStep::Fail(failure(rest)?),
        "DROP" => ScriptStep::Drop,
        "STOP" => ScriptStep::Stop(finish(rest.trim())?),
        _ => return None,
    };
    (times <= MAX_STEPS).then(|| vec![step; times])
}

fn number<T: std::str::FromStr>(text: &str) -> Option<T> {
    text.trim().parse().ok()
}

fn delay(text: &str, unit: Duration) -> Option<Duration> {
    let seconds = number::<f64>(text)? * unit.as_secs_f64();
    Duration::try_from_secs_f64(seconds).ok().filter(|delay| *delay <= MAX_DELAY)
}

fn delay_or_zero(text: &str) -> Option<Duration> {
    if text.trim().is_empty() { Some(Duration::ZERO) } else { delay(text, Duration::from_millis(1)) }
}

fn line_breaks(text: &str) -> String {
    text.replace("\\n", "\n")
}

fn call(text: &str) -> Option<(String, String)> {
    let (tool, input) = text.split_once(':').unwrap_or((text, ""));
    let (tool, input) = (tool.trim(), input.trim());
    let input = if input.is_empty() { "{}" } else { input };
    (!tool.is_empty()).then(|| (tool.to_owned(), input.to_owned()))
}

fn failure(text: &str) -> Option<ScriptedFailure> {
    let mut fields = text.split(':').map(str::trim);
    let status = fields.next().and_then(number).filter(|status| (200..=599).contains(status))?;
    let times = match fields.next() {
        None | Some("") => None,
        Some(times) => Some(number(times)?),
    };
    let retry_after = match fields.next() {
        None | Some("") => None,
        Some(seconds) => Some(delay(seconds, Duration::from_secs(1))?),
    };
    Some(ScriptedFailure { status, times, retry_after })
}

/// Each dialect has its own name for a reason; a script may use any of them.
fn finish(reason: &str) -> Option<Finish> {
    Some(match reason {
        "" => return None,
        "stop" | "end_turn" => Finish::Stop,
        "tool_calls" | "tool_use" => Finish::ToolCalls,
        "length" | "max_tokens" | "max_output_tokens" => Finish::Length,
        "content_filter" => Finish::ContentFilter,
        "refusal" => Finish::Refusal(None),
        "pause_turn" => Finish::Paused,
        "model_context_window_exceeded" => Finish::ContextFull,
        other => Finish::Other(other.to_owned()),
    })
}

/// Writes a step as the marker that parses to it.
impl fmt::Display for ScriptStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Say(text) => write!(f, "SAY:{}", text.replace('\n', "\\n")),
            Self::Think(text) => write!(f, "THINK:{}", text.replace('\n', "\\n")),
            Self::Stream { pieces, every } if every.is_zero() => write!(f, "STREAM:{pieces}"),
            Self::Stream { pieces, every } => write!(f, "STREAM:{pieces}:{}", every.as_secs_f64() * 1e3),
            Self::Call { tool, input } => write!(f, "TOOL:{tool}:{input}"),
            Self::ParallelCall { tool, input } => write!(f, "PTOOL:{tool}:{input}"),
            Self::Delay(delay) => write!(f, "DELAY:{}", delay.as_secs_f64() * 1e3),
            Self::Fail(failure) => {
                write!(f, "FAIL:{}", failure.status)?;
                if failure.times.is_some() || failure.retry_after.is_some() {
                    f.write_str(":")?;
                }
                if let Some(times) = failure.times {
                    write!(f, "{times}")?;
                }
                if let Some(retry_after) = failure.retry_after {
                    write!(f, ":{}", retry_after.as_secs_f64())?;
                }
                Ok(())
            }
            Self::Drop => f.write_str("DROP:"),
            Self::Stop(finish) => write!(f, "STOP:{}", finish.name()),
        }
    }
}

/// Whether a request lets the model call tools. Title generation and the like do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolOffer {
    Tools,
    TextOnly,
}

/// Position of a request in a script: the results of the calls made since the prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ScriptPosition<'a> {
    pub(super) results: usize,
    pub(super) last_result: &'a str,
    pub(super) offer: ToolOffer,
}

/// The steps of the model turn that a request asks for.
pub(super) fn plan(script: &[ScriptStep], position: ScriptPosition<'_>, default: &str) -> Vec<ScriptStep> {
    if position.offer == ToolOffer::TextOnly {
        let mut steps: Vec<_> = script.iter().filter(|step| !step.is_call()).cloned().collect();
        if !steps.iter().any(ScriptStep::is_text) {
            steps.push(ScriptStep::Say(default.to_owned()));
        }
        return steps;
    }

    let mut turns: Vec<&[ScriptStep]> =
        script.split_inclusive(|step| matches!(step, ScriptStep::Call { .. })).collect();
    // The steps after the last call are a turn of their own, even if there are none.
    if turns.last().and_then(|turn| turn.last()).is_none_or(|step| matches!(step, ScriptStep::Call { .. })) {
        turns.push(&[]);
    }

    let mut answered = position.results;
    let (last, before) =
        turns.split_last().map_or((&[] as &[ScriptStep], &[] as &[&[ScriptStep]]), |(l, b)| (*l, b));
    for turn in before {
        let calls = turn.iter().filter(|step| step.is_call()).count();
        if answered < calls {
            return turn.to_vec();
        }
        answered -= calls;
    }

    let done = || ScriptStep::Say(format!("done: {}", head(position.last_result)));
    let open_calls = last.iter().filter(|step| step.is_call()).count();
    if open_calls > 0 {
        // Parallel calls at the very end have no turn after them; once all are answered, the script is over.
        return if answered < open_calls { last.to_vec() } else { vec![done()] };
    }
    let mut steps = last.to_vec();
    if !steps.iter().any(ScriptStep::is_outcome) {
        steps.push(if before.is_empty() { ScriptStep::Say(default.to_owned()) } else { done() });
    }
    steps
}

fn head(text: &str) -> &str {
    text.char_indices().nth(QUOTED_RESULT).map_or(text, |(end, _)| &text[..end])
}

#[cfg(test)]
mod tests;
