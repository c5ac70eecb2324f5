//! Outcome of an agent's turn. One table decides for all agents, so that the same failure has the same name everywhere.

use hangar_process::signal_name;
use serde::Serialize;
use serde_with::skip_serializing_none;

use crate::host::NO_WORKSPACE;
use crate::program_query::NO_CONNECTION;
use crate::usage::AgentUsage;

/// Outcome of a turn, with its usage.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnOutcome {
    pub end: TurnResult,
    /// Usage of this turn.
    pub usage: AgentUsage,
    /// Usage of the session so far.
    pub total: AgentUsage,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "end")]
pub enum TurnResult {
    Completed,
    Failed(TurnFailure),
}

/// Failure of a turn, with its evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TurnFailure {
    pub kind: ErrorKind,
    /// One sentence.
    pub message: String,
    pub evidence: Evidence,
}

impl TurnFailure {
    /// Whether ssh could not reach the host of the agent, or lost it.
    pub fn is_lost_connection(&self) -> bool {
        self.kind == ErrorKind::PortExit && self.evidence.exit_code == Some(NO_CONNECTION)
    }

    /// Whether a cap that was set for the turn or the session is used up, rather than a quota of the account.
    pub fn is_own_cap(&self) -> bool {
        let code = self.evidence.code.as_deref();
        self.kind == ErrorKind::BudgetExceeded && code.is_some_and(|code| OWN_CAPS.contains(&code))
    }
}

/// Codes of caps that were set for a turn or a session: ours, and that of `--max-budget-usd` of Claude Code.
const OWN_CAPS: [&str; 2] = ["budget", "error_max_budget_usd"];

/// Source of a failure, by descending trust.
#[skip_serializing_none]
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Evidence {
    pub status_code: Option<u16>,
    /// The agent's own word for it.
    pub code: Option<String>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    /// The end of what it wrote on stderr.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub stderr: String,
}

macro_rules! kinds {
    ($( $(#[$doc:meta])* $variant:ident = $name:literal $retry:ident; )*) => {
        /// Kinds of failure, with the names that orchestrators know.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum ErrorKind { $( $(#[$doc])* $variant, )* }

        impl ErrorKind {
            pub const ALL: &'static [ErrorKind] = &[$( ErrorKind::$variant, )*];

            pub fn as_str(self) -> &'static str {
                match self { $( ErrorKind::$variant => $name, )* }
            }

            /// Whether a retry of the turn may succeed.
            pub fn is_retryable(self) -> bool {
                match self { $( ErrorKind::$variant => kinds!(@$retry), )* }
            }
        }
    };
    (@retry) => { true };
    (@never) => { false };
}

kinds! {
    /// The program is not there or does not run.
    AgentNotFound = "agent_not_found" never;
    InvalidWorkspace = "invalid_workspace_cwd" never;
    /// The request names something that does not exist or contradicts itself: a setting, a session, a file.
    InvalidRequest = "invalid_request" never;
    TurnCancelled = "turn_cancelled" never;
    /// The agent asked a question that cannot be answered.
    InputRequired = "turn_input_required" never;
    Auth = "auth_failed" never;
    /// No model provider is set up. The name is that of the reference.
    NoProvider = "authentication" never;
    UnknownModel = "unknown_model" never;
    ContextLimit = "context_limit" never;
    /// The provider takes no such request, and would not another time.
    BadRequest = "bad_request" never;
    BudgetExceeded = "budget_exceeded" never;
    RateLimited = "rate_limited" retry;
    Overloaded = "model_overloaded" retry;
    /// Silence for too long.
    Stalled = "turn_stalled" retry;
    TurnTimeout = "turn_timeout" retry;
    /// A command or other tool call took too long.
    ToolTimeout = "tool_timeout" retry;
    /// The agent works and gets nowhere. Another attempt would do the same.
    NoProgress = "no_progress" never;
    /// It did not answer at the start.
    ResponseTimeout = "response_timeout" retry;
    /// The model's answer could not be parsed.
    ResponseError = "response_error" retry;
    /// The process or the line to it ended.
    PortExit = "port_exit" retry;
    TurnFailed = "turn_failed" retry;
    /// It stopped without an error and without having done anything.
    TurnIncomplete = "turn_incomplete" retry;
}

impl Serialize for ErrorKind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// Error as an agent reported it, before it is classified.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportedError {
    pub message: String,
    pub status_code: Option<u16>,
    pub code: Option<String>,
}

impl ReportedError {
    /// Classifies the complaint: by its status, by its code, and only then by its words. The words are those of an
    /// error message, never of output: a line number 401 is not a status.
    pub fn kind(&self) -> Option<ErrorKind> {
        by_code(self.code.as_deref())
            .or_else(|| self.status_code.and_then(|status| by_status(status, &self.message)))
            .or_else(|| by_words(&self.message))
    }
}

fn by_code(code: Option<&str>) -> Option<ErrorKind> {
    let code = code?.to_ascii_lowercase();
    Some(match code.as_str() {
        "authentication"
        | "authentication_failed"
        | "authentication_error"
        | "permission_error"
        | "invalid_api_key"
        | "providerautherror"
        | "authentication_required"
        | "authorization" => ErrorKind::Auth,
        "rate_limit" | "rate_limit_error" | "rate_limit_exceeded" | "user_weekly_rate_limited" => {
            ErrorKind::RateLimited
        }
        "overloaded_error" | "server_overloaded" => ErrorKind::Overloaded,
        "model_not_found" | "unknown_model" | "model_not_supported" | "providermodelnotfounderror" => {
            ErrorKind::UnknownModel
        }
        "context_length_exceeded"
        | "context_limit"
        | "prompt_too_long"
        | "messageoutputlengtherror"
        | "contextoverflowerror" => ErrorKind::ContextLimit,
        "budget"
        | "quota"
        | "quota_exceeded"
        | "insufficient_quota"
        | "error_max_budget_usd"
        | "billing_error" => ErrorKind::BudgetExceeded,
        _ => return None,
    })
}

fn by_status(status: u16, message: &str) -> Option<ErrorKind> {
    Some(match status {
        401 | 403 => ErrorKind::Auth,
        402 => ErrorKind::BudgetExceeded,
        413 => ErrorKind::ContextLimit,
        429 => ErrorKind::RateLimited,
        503 | 529 => ErrorKind::Overloaded,
        // These say little by themselves.
        400 | 422 => return by_words(message).or(Some(ErrorKind::BadRequest)),
        404 => return by_words(message),
        _ => return None,
    })
}

/// Whole phrases only: each is one that a provider or an agent writes for this and for nothing else.
fn by_words(message: &str) -> Option<ErrorKind> {
    const PHRASES: &[(&str, ErrorKind)] = &[
        ("invalid api key", ErrorKind::Auth),
        ("failed to authenticate", ErrorKind::Auth),
        ("not authenticated", ErrorKind::Auth),
        ("not logged in", ErrorKind::Auth),
        ("authentication required", ErrorKind::Auth),
        ("no authentication information found", ErrorKind::Auth),
        ("unexpected status 401", ErrorKind::Auth),
        ("unexpected status 403", ErrorKind::Auth),
        ("unexpected status 429", ErrorKind::RateLimited),
        ("too many requests", ErrorKind::RateLimited),
        ("rate limit", ErrorKind::RateLimited),
        ("unexpected status 503", ErrorKind::Overloaded),
        ("model not found", ErrorKind::UnknownModel),
        ("unknown model", ErrorKind::UnknownModel),
        ("is not a valid model", ErrorKind::UnknownModel),
        ("model is not supported", ErrorKind::UnknownModel),
        ("no model configured", ErrorKind::UnknownModel),
        ("no model was specified", ErrorKind::UnknownModel),
        ("prompt is too long", ErrorKind::ContextLimit),
        ("context length", ErrorKind::ContextLimit),
        ("context window", ErrorKind::ContextLimit),
        ("budget exceeded", ErrorKind::BudgetExceeded),
        ("quota exceeded", ErrorKind::BudgetExceeded),
    ];
    let message = message.to_lowercase();
    PHRASES.iter().find(|(phrase, _)| message.contains(phrase)).map(|(_, kind)| *kind)
}

/// The facts of a turn that decide how it ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TurnFacts {
    pub stopped: Option<Stopped>,
    /// Why there is no process, if there is none.
    pub unstarted: Option<Unstarted>,
    /// Why reading its output failed, if it did.
    pub unreadable: Option<String>,
    pub exit: Option<ProcessExit>,
    pub verdict: Option<AgentVerdict>,
    /// The last complaint that the agent did not recover from.
    pub reported_error: Option<ReportedError>,
    /// Whether the process wrote anything on stdout.
    pub spoke: bool,
    /// Whether the agent produced text or a tool call.
    pub worked: bool,
    /// Whether the agent reported that it was aborted.
    pub aborted: bool,
    /// Why it stopped in the middle of its work, if it did.
    pub halted: Option<Halt>,
    pub stderr: String,
    /// Whether the process ran on another host, where exit codes are those of ssh.
    pub remote: bool,
}

/// Reason why Hangar ended a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stopped {
    Cancelled,
    Stalled {
        seconds: u64,
    },
    /// It produced no output.
    Unanswered {
        seconds: u64,
    },
    TimedOut {
        seconds: u64,
    },
    /// One of its commands or other tool calls took too long.
    ToolTimedOut {
        seconds: u64,
    },
    /// It made no new commit, change or call.
    Unproductive {
        seconds: u64,
    },
}

/// Why an agent stopped in the middle of its work, with no error to show for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halt {
    /// It asked for input that was not available.
    Asked,
    /// It ran tools and did not continue with their results.
    Midway,
}

/// Why a process could not be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unstarted {
    pub kind: ErrorKind,
    pub message: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessExit {
    Code(i32),
    Signal(i32),
}

/// Result of the turn as the agent itself reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentVerdict {
    Success,
    Failure,
}

/// Decides how a turn ended. The order of the questions is the contract: the first that has an answer wins.
pub fn decide(facts: &TurnFacts) -> TurnResult {
    use ErrorKind as Kind;
    match facts.stopped {
        Some(Stopped::Cancelled) => {
            return failed(facts, Kind::TurnCancelled, "the turn was cancelled".to_owned());
        }
        Some(Stopped::Stalled { seconds }) => {
            return failed(facts, Kind::Stalled, format!("the agent said nothing for {seconds} s"));
        }
        Some(Stopped::Unanswered { seconds }) => {
            let message = format!("the agent said nothing within {seconds} s of its start");
            return failed(facts, Kind::ResponseTimeout, message);
        }
        Some(Stopped::TimedOut { seconds }) => {
            return failed(facts, Kind::TurnTimeout, format!("the turn took longer than {seconds} s"));
        }
        Some(Stopped::ToolTimedOut { seconds }) => {
            let message = format!("a command of the agent took longer than {seconds} s");
            return failed(facts, Kind::ToolTimeout, message);
        }
        Some(Stopped::Unproductive { seconds }) => {
            let message = format!("the agent made no new commit, change or call for {seconds} s");
            return failed(facts, Kind::NoProgress, message);
        }
        None => {}
    }
    if let Some(unstarted) = &facts.unstarted {
        return failed(facts, unstarted.kind, unstarted.message.clone());
    }
    if let Some(why) = &facts.unreadable {
        return failed(facts, Kind::PortExit, format!("the agent's output could not be read: {why}"));
    }
    match facts.exit {
        Some(ProcessExit::Code(127)) => {
            let place = if facts.remote { "on the remote host" } else { "here" };
            return failed(facts, Kind::AgentNotFound, format!("the agent's program was not found {place}"));
        }
        Some(ProcessExit::Code(255)) if facts.remote && facts.verdict.is_none() => {
            let why = telling_line(&facts.stderr).map(|line| format!(": {}", excerpt(line)));
            let message = format!("the connection to the remote host failed{}", why.unwrap_or_default());
            return failed(facts, Kind::PortExit, message);
        }
        Some(ProcessExit::Code(NO_WORKSPACE)) if facts.remote && facts.verdict.is_none() && !facts.worked => {
            let message = "the working directory is not there on the remote host".to_owned();
            return failed(facts, Kind::InvalidWorkspace, message);
        }
        // The signal is not ours: the system was out of memory, or somebody else killed the process.
        Some(ProcessExit::Signal(signal)) if facts.verdict.is_none() => {
            let message = format!("the agent was killed by {}", signal_name(signal));
            return failed(facts, Kind::PortExit, message);
        }
        _ => {}
    }
    if facts.aborted {
        // Some leave with exit code 0 and a verdict to match.
        return failed(facts, Kind::TurnCancelled, "the agent was told to stop".to_owned());
    }
    match (facts.verdict, facts.exit) {
        (Some(AgentVerdict::Success), _) => TurnResult::Completed,
        (Some(AgentVerdict::Failure), _) => complained(facts, Kind::TurnFailed),
        (None, Some(ProcessExit::Code(0)) | None) => match (&facts.reported_error, facts.halted) {
            (Some(_), _) => complained(facts, Kind::TurnFailed),
            (None, Some(Halt::Asked)) => {
                let message =
                    "the agent asked for a permission that nobody could give, and stopped".to_owned();
                failed(facts, Kind::InputRequired, message)
            }
            (None, Some(Halt::Midway)) => {
                let message = "the agent stopped in the middle of its work, without an answer".to_owned();
                failed(facts, Kind::TurnIncomplete, message)
            }
            (None, None) if facts.worked => TurnResult::Completed,
            (None, None) => {
                let message = "the agent ended without an error and without having done anything".to_owned();
                failed(facts, Kind::TurnIncomplete, message)
            }
        },
        (None, Some(ProcessExit::Code(_) | ProcessExit::Signal(_))) => complained(facts, Kind::PortExit),
    }
}

/// Failure with the agent's own message, if it had one.
fn complained(facts: &TurnFacts, otherwise: ErrorKind) -> TurnResult {
    match &facts.reported_error {
        Some(reported_error) => {
            // A complaint is what the turn failed of, also where the process ended badly after it.
            let kind = reported_error.kind().unwrap_or(match otherwise {
                ErrorKind::PortExit => ErrorKind::TurnFailed,
                other => other,
            });
            failed(facts, kind, reported_error.message.clone())
        }
        None => {
            let last = telling_line(&facts.stderr);
            // Before an agent speaks, stderr is all there is to judge by.
            let kind = last.and_then(by_words).filter(|_| !facts.worked).unwrap_or(otherwise);
            let how = match facts.exit {
                Some(ProcessExit::Code(code)) => {
                    // Shells and ssh tell a signal by a code.
                    let signal = signal_of(code).map(|name| format!(" ({name})")).unwrap_or_default();
                    format!("the agent ended with exit code {code}{signal}")
                }
                Some(ProcessExit::Signal(signal)) => {
                    format!("the agent was killed by {}", signal_name(signal))
                }
                None => "the agent failed".to_owned(),
            };
            let message = last.map_or_else(|| how.clone(), |last| format!("{how}: {}", excerpt(last)));
            failed(facts, kind, message)
        }
    }
}

/// Name of the signal that a shell's exit code stands for.
fn signal_of(code: i32) -> Option<String> {
    const OFFSET: i32 = 128;
    (OFFSET + 1..=OFFSET + 31).contains(&code).then(|| signal_name(code - OFFSET))
}

/// Characters of a line of an agent's output that an error quotes.
const QUOTED_CHARACTERS: usize = 500;

/// The beginning of a line, as errors quote it.
pub(crate) fn excerpt(line: &str) -> &str {
    let end = line.char_indices().nth(QUOTED_CHARACTERS).map_or(line.len(), |(end, _)| end);
    &line[..end]
}

/// Line of stderr that names the error: the first that calls itself an error, else the last.
pub(crate) fn telling_line(stderr: &str) -> Option<&str> {
    let lines = || stderr.lines().map(str::trim).filter(|line| !line.is_empty());
    lines()
        .find(|line| line.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error")))
        .or_else(|| lines().next_back())
}

fn failed(facts: &TurnFacts, kind: ErrorKind, message: String) -> TurnResult {
    let (exit_code, signal) = match facts.exit {
        Some(ProcessExit::Code(code)) => (Some(code), None),
        Some(ProcessExit::Signal(signal)) => (None, Some(signal)),
        None => (None, None),
    };
    let reported_error = facts.reported_error.as_ref();
    let evidence = Evidence {
        status_code: reported_error.and_then(|reported_error| reported_error.status_code),
        code: reported_error.and_then(|reported_error| reported_error.code.clone()),
        exit_code,
        signal,
        stderr: facts.stderr.clone(),
    };
    TurnResult::Failed(TurnFailure { kind, message, evidence })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `None` is a completed turn.
    #[track_caller]
    fn check(facts: TurnFacts, expected: Option<ErrorKind>) {
        let kind = match decide(&facts) {
            TurnResult::Completed => None,
            TurnResult::Failed(failure) => Some(failure.kind),
        };
        assert_eq!(kind, expected, "{facts:?}");
    }

    fn ended(code: i32) -> TurnFacts {
        TurnFacts { exit: Some(ProcessExit::Code(code)), worked: true, ..TurnFacts::default() }
    }

    fn reported_error(message: &str, status_code: Option<u16>) -> Option<ReportedError> {
        Some(ReportedError { message: message.to_owned(), status_code, code: None })
    }

    #[test]
    fn who_cancels_a_turn_cancels_it_whatever_it_said() {
        let facts =
            TurnFacts { stopped: Some(Stopped::Cancelled), verdict: Some(AgentVerdict::Success), ..ended(0) };
        check(facts, Some(ErrorKind::TurnCancelled));
    }

    #[test]
    fn a_verdict_of_success_stands_against_a_bad_exit_code() {
        check(TurnFacts { verdict: Some(AgentVerdict::Success), ..ended(1) }, None);
    }

    #[test]
    fn a_verdict_of_failure_stands_against_a_good_exit_code() {
        check(TurnFacts { verdict: Some(AgentVerdict::Failure), ..ended(0) }, Some(ErrorKind::TurnFailed));
    }

    #[test]
    fn a_program_that_is_not_there_is_named_so() {
        check(ended(127), Some(ErrorKind::AgentNotFound));
    }

    #[test]
    fn a_lost_link_is_not_the_agents_failure() {
        check(TurnFacts { remote: true, ..ended(255) }, Some(ErrorKind::PortExit));
    }

    #[test]
    fn a_directory_that_is_not_over_there_is_named_so() {
        let facts = TurnFacts { remote: true, worked: false, ..ended(NO_WORKSPACE) };
        check(facts, Some(ErrorKind::InvalidWorkspace));
        check(ended(NO_WORKSPACE), Some(ErrorKind::PortExit));
    }

    #[track_caller]
    fn check_message(facts: TurnFacts, expected: &str) {
        let TurnResult::Failed(failure) = decide(&facts) else { panic!("{facts:?}") };
        assert_eq!((failure.kind, failure.message.as_str()), (ErrorKind::PortExit, expected));
    }

    #[test]
    fn a_signal_from_outside_is_a_failure_with_its_name() {
        let killed = |signal| TurnFacts { exit: Some(ProcessExit::Signal(signal)), ..ended(0) };
        check_message(killed(9), "the agent was killed by SIGKILL");
        check_message(killed(15), "the agent was killed by SIGTERM");
        check_message(ended(137), "the agent ended with exit code 137 (SIGKILL)");
        check_message(ended(3), "the agent ended with exit code 3");
    }

    #[test]
    fn a_long_line_of_stderr_is_quoted_by_its_beginning() {
        let long = "ä".repeat(2_000);
        let quoted = "ä".repeat(QUOTED_CHARACTERS);
        let facts = TurnFacts { stderr: long.clone(), ..ended(3) };
        check_message(facts, &format!("the agent ended with exit code 3: {quoted}"));
        let facts = TurnFacts { stderr: long, remote: true, ..ended(255) };
        check_message(facts, &format!("the connection to the remote host failed: {quoted}"));
    }

    #[test]
    fn an_agent_that_says_it_was_stopped_was_stopped() {
        let facts = TurnFacts { aborted: true, verdict: Some(AgentVerdict::Success), ..ended(0) };
        check(facts, Some(ErrorKind::TurnCancelled));
    }

    #[test]
    fn an_agent_that_stopped_midway_has_not_completed_its_turn() {
        check(TurnFacts { halted: Some(Halt::Asked), ..ended(0) }, Some(ErrorKind::InputRequired));
        check(TurnFacts { halted: Some(Halt::Midway), ..ended(0) }, Some(ErrorKind::TurnIncomplete));
    }

    #[test]
    fn silence_and_exit_0_is_no_success() {
        check(TurnFacts { worked: false, ..ended(0) }, Some(ErrorKind::TurnIncomplete));
    }

    #[test]
    fn work_and_exit_0_is_success_without_a_verdict() {
        check(ended(0), None);
    }

    #[test]
    fn a_bad_exit_without_a_verdict_is_a_broken_port() {
        check(ended(1), Some(ErrorKind::PortExit));
    }

    #[test]
    fn a_status_decides_before_words() {
        let facts = TurnFacts {
            verdict: Some(AgentVerdict::Failure),
            reported_error: reported_error("rate limit of your login", Some(401)),
            ..ended(1)
        };
        check(facts, Some(ErrorKind::Auth));
    }

    #[test]
    fn a_bad_request_is_one_unless_its_words_say_more() {
        for (message, kind) in
            [("temperature: too hot", ErrorKind::BadRequest), ("prompt is too long", ErrorKind::ContextLimit)]
        {
            let reported_error = reported_error(message, Some(400));
            check(TurnFacts { verdict: Some(AgentVerdict::Failure), reported_error, ..ended(1) }, Some(kind));
        }
    }

    #[test]
    fn a_number_in_a_sentence_is_no_status() {
        let facts = TurnFacts {
            verdict: Some(AgentVerdict::Failure),
            reported_error: reported_error("line 401 of file could not be parsed, see 429.txt", None),
            ..ended(1)
        };
        check(facts, Some(ErrorKind::TurnFailed));
    }

    #[test]
    fn stderr_speaks_only_for_agents_that_did_not() {
        let stderr = "Error: Invalid API key\n".to_owned();
        check(TurnFacts { stderr: stderr.clone(), worked: false, ..ended(1) }, Some(ErrorKind::Auth));
        check(TurnFacts { stderr, ..ended(1) }, Some(ErrorKind::PortExit));
    }

    #[test]
    fn every_kind_has_a_name_of_its_own() {
        let mut names: Vec<_> = ErrorKind::ALL.iter().map(|kind| kind.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), ErrorKind::ALL.len());
    }
}
