//! Hooks: user-defined code that runs at fixed points of a session. This module has the points, and merges the answers
//! of several hooks. The session decides when they run and what an answer changes.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

use crate::driver::Hooks;

macro_rules! kinds {
    ($( $variant:ident = $name:literal; )*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum HookKind {
            $( $variant, )*
        }

        impl HookKind {
            pub const ALL: &'static [HookKind] = &[$( HookKind::$variant, )*];

            pub fn as_str(self) -> &'static str {
                match self {
                    $( HookKind::$variant => $name, )*
                }
            }
        }
    };
}

kinds! {
    SessionStart = "sessionStart";
    SessionEnd = "sessionEnd";
    UserPromptSubmitted = "userPromptSubmitted";
    UserPromptTransformed = "userPromptTransformed";
    PreToolUse = "preToolUse";
    PreMcpToolCall = "preMcpToolCall";
    PostToolUse = "postToolUse";
    PostToolUseFailure = "postToolUseFailure";
    PermissionRequest = "permissionRequest";
    AgentStop = "agentStop";
    SubagentStart = "subagentStart";
    SubagentStop = "subagentStop";
    PreCompact = "preCompact";
    ErrorOccurred = "errorOccurred";
    Notification = "notification";
}

impl HookKind {
    /// Whether clients have this hook. They have handlers of their own for permissions, and see events instead of
    /// notifications; the SDKs know neither hook.
    pub fn is_for_clients(self) -> bool {
        !matches!(self, HookKind::PermissionRequest | HookKind::Notification)
    }
}

/// The kinds of hooks that are configured. Others are not run, because even running none would be logged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HookSet(u16);

impl HookSet {
    pub const NONE: HookSet = HookSet(0);
    pub const ALL: HookSet = HookSet(u16::MAX);

    pub fn contains(self, kind: HookKind) -> bool {
        self.0 & (1 << kind as u16) != 0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<HookKind> for HookSet {
    fn from_iter<I: IntoIterator<Item = HookKind>>(kinds: I) -> Self {
        Self(kinds.into_iter().fold(0, |set, kind| set | 1 << kind as u16))
    }
}

/// One invocation of the hooks.
#[derive(Debug, Clone)]
pub struct HookRequest {
    pub id: String,
    pub kind: HookKind,
    pub input: Value,
}

impl HookRequest {
    /// Updates the input for the next hook with the call or result as the last answer left it.
    pub fn follow(&mut self, answer: &HookAnswer) {
        let Ok(Some(said)) = answer else { return };
        match self.kind {
            HookKind::PreToolUse => {
                if let Some(arguments) = changed_arguments(&said["modifiedArgs"]) {
                    self.input["toolArgs"] = arguments;
                }
            }
            HookKind::PostToolUse => {
                let result = self.input.get_mut("toolResult").and_then(Value::as_object_mut);
                if let (Some(result), Some(changed)) = (result, said["modifiedResult"].as_object()) {
                    result.extend(changed.clone());
                }
            }
            _ => {}
        }
    }
}

/// Arguments that a hook returns in place of the model's: an object, or an object as text.
pub(crate) fn changed_arguments(given: &Value) -> Option<Value> {
    match given {
        Value::Object(_) => Some(given.clone()),
        Value::String(text) => serde_json::from_str(text).ok().filter(Value::is_object),
        _ => None,
    }
}

/// Text of a hook's member, if it is not empty.
pub(crate) fn said_text<'a>(answer: &'a Value, key: &str) -> Option<&'a str> {
    answer[key].as_str().filter(|text| !text.is_empty())
}

/// Reason of a hook that blocks. One without a reason does not.
pub(crate) fn blocked(answer: &Value) -> Option<&str> {
    let reason = answer["reason"].as_str().filter(|reason| !reason.is_empty())?;
    (answer["decision"] == "block").then_some(reason)
}

/// Failure of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFailure {
    pub message: String,
    /// File that configures the hook, if there is one.
    pub file: Option<String>,
}

impl From<String> for HookFailure {
    fn from(message: String) -> Self {
        Self { message, file: None }
    }
}

/// Answer of a hook; `None` is "no opinion".
pub type HookAnswer = Result<Option<Value>, HookFailure>;

/// Several sources of hooks, run one after the other.
pub struct Chain(pub Vec<Arc<dyn Hooks>>);

impl Hooks for Chain {
    fn ask(&self, request: &HookRequest) -> BoxFuture<'static, HookAnswer> {
        let sources = self.0.clone();
        let mut request = request.clone();
        Box::pin(async move {
            let mut answers = MergedAnswers::default();
            for source in sources {
                if answers.settled(request.kind) {
                    break;
                }
                let answer = source.ask(&request).await;
                request.follow(&answer);
                answers.add(answer);
            }
            answers.into_answer(request.kind)
        })
    }
}

/// Answers of several hooks, merged so far.
#[derive(Debug, Default)]
pub struct MergedAnswers {
    said: Option<Value>,
    failure: Option<HookFailure>,
}

impl MergedAnswers {
    pub fn add(&mut self, answer: HookAnswer) {
        match answer {
            Ok(said) => self.said = merge(self.said.take(), said),
            Err(failure) => self.failure = self.failure.take().or(Some(failure)),
        }
    }

    /// Whether the remaining hooks can be skipped: a call that is refused stays so, and so do a call whose hook failed
    /// and a result that is withheld.
    pub fn settled(&self, kind: HookKind) -> bool {
        let said = self.said.as_ref();
        match kind {
            HookKind::PreToolUse => {
                self.failure.is_some() || said.is_some_and(|said| said["permissionDecision"] == "deny")
            }
            HookKind::PermissionRequest => self.failure.is_some(),
            HookKind::PostToolUse => said.and_then(blocked).is_some(),
            _ => false,
        }
    }

    /// Final answer. Where a call may be refused, a failure refuses it; elsewhere a failure counts only if no hook had
    /// an answer.
    pub fn into_answer(self, kind: HookKind) -> HookAnswer {
        let refused = self.said.as_ref().is_some_and(|said| said["permissionDecision"] == "deny");
        match self.failure {
            Some(failure) if kind == HookKind::PreToolUse && !refused => Err(failure),
            Some(failure) if kind == HookKind::PermissionRequest => Err(failure),
            Some(failure) if self.said.is_none() => Err(failure),
            _ => Ok(self.said),
        }
    }
}

/// Adds an answer. Later answers override earlier ones, but the strictest decision about a call stands.
fn merge(before: Option<Value>, after: Option<Value>) -> Option<Value> {
    match (before, after) {
        (Some(Value::Object(mut before)), Some(Value::Object(after))) => {
            let keeps_decision = strictness(&before) > strictness(&after);
            for (key, value) in after {
                if keeps_decision && key.starts_with("permissionDecision") {
                    continue;
                }
                let joined = match (key.as_str(), before.get(&key), &value) {
                    ("additionalContext", Some(Value::String(first)), Value::String(second)) => {
                        Some(format!("{first}\n\n{second}").into())
                    }
                    _ => None,
                };
                before.insert(key, joined.unwrap_or(value));
            }
            Some(Value::Object(before))
        }
        (before, None | Some(Value::Null)) => before,
        (_, after) => after,
    }
}

fn strictness(answer: &Map<String, Value>) -> u8 {
    match answer.get("permissionDecision").and_then(Value::as_str) {
        Some("deny") => 3,
        Some("ask") => 2,
        Some(_) => 1,
        None => 0,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(answers: &[Value], expected: Value) {
        let mut all = MergedAnswers::default();
        for answer in answers {
            all.add(Ok(Some(answer.clone())));
        }
        assert_eq!(all.into_answer(HookKind::PreToolUse), Ok(Some(expected)));
    }

    #[test]
    fn a_refusal_stands_whatever_others_say() {
        let deny = json!({ "permissionDecision": "deny", "permissionDecisionReason": "no" });
        check(&[deny.clone(), json!({ "permissionDecision": "allow" })], deny.clone());
        check(&[json!({ "permissionDecision": "ask" }), deny.clone()], deny);
    }

    #[test]
    fn the_last_word_about_a_permission_counts() {
        check(
            &[json!({ "behavior": "allow" }), json!({ "behavior": "deny" })],
            json!({ "behavior": "deny" }),
        );
        check(
            &[json!({ "behavior": "deny" }), json!({ "behavior": "allow" })],
            json!({ "behavior": "allow" }),
        );
    }

    #[test]
    fn contexts_are_joined_by_a_blank_line() {
        check(
            &[json!({ "additionalContext": "a" }), json!({ "additionalContext": "b", "x": 1 })],
            json!({ "additionalContext": "a\n\nb", "x": 1 }),
        );
    }

    fn check_followed(kind: HookKind, input: Value, answer: Value, expected: Value) {
        let mut request = HookRequest { id: "h".to_owned(), kind, input };
        request.follow(&Ok(Some(answer)));
        assert_eq!(request.input, expected);
    }

    #[test]
    fn the_next_hook_is_told_what_the_last_one_made_of_it() {
        let call = |command: &str| json!({ "toolArgs": { "command": command } });
        let changed = json!({ "modifiedArgs": { "command": "b" } });
        check_followed(HookKind::PreToolUse, call("a"), changed.clone(), call("b"));
        check_followed(HookKind::PreToolUse, call("a"), json!({ "modifiedArgs": "nonsense" }), call("a"));
        check_followed(HookKind::PostToolUse, call("a"), changed, call("a"));
        let result =
            |text: &str| json!({ "toolResult": { "resultType": "success", "textResultForLlm": text } });
        let changed = json!({ "modifiedResult": { "textResultForLlm": "b" } });
        check_followed(HookKind::PostToolUse, result("a"), changed, result("b"));
    }

    #[test]
    fn a_failed_hook_about_a_permission_refuses_whatever_others_say() {
        let failure = HookFailure::from("broke".to_owned());
        for order in [[0, 1], [1, 0]] {
            let mut answers = MergedAnswers::default();
            for which in order {
                answers.add(if which == 0 {
                    Ok(Some(json!({ "behavior": "allow" })))
                } else {
                    Err(failure.clone())
                });
            }
            assert_eq!(answers.into_answer(HookKind::PermissionRequest), Err(failure.clone()));
        }
    }

    #[test]
    fn a_set_knows_its_kinds() {
        let set: HookSet = [HookKind::AgentStop, HookKind::Notification].into_iter().collect();
        let known: Vec<_> = HookKind::ALL.iter().filter(|kind| set.contains(**kind)).collect();
        assert_eq!(known, [&HookKind::AgentStop, &HookKind::Notification]);
        assert!(HookKind::ALL.iter().all(|kind| HookSet::ALL.contains(*kind)));
    }
}
