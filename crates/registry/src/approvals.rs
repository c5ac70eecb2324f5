//! Pending questions of agents. Each is answered once; the first answer counts.

use std::collections::{BTreeMap, VecDeque};

use hangar_protocol::data::ElicitationAction;
use hangar_protocol::{Body, Event};
use hangar_runtimes::runtime::{AgentAnswer, PermissionReply};
use hangar_store::SessionId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_with::skip_serializing_none;

/// Settled questions that are remembered, so that a late answer gets the reason of its refusal.
const REMEMBERED: usize = 1000;
/// Maximum number of open questions.
const MOST_OPEN: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ApprovalKind")]
pub enum ApprovalKind {
    Permission,
    Question,
    Elicitation,
    Plan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalState {
    Open,
    Answered,
}

/// A question of an agent.
#[skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    pub id: String,
    #[schemars(with = "String")]
    #[serde(serialize_with = "display")]
    pub session_id: SessionId,
    pub session_name: Option<String>,
    pub kind: ApprovalKind,
    /// The event that asked it.
    #[schemars(with = "crate::page::EventShape")]
    pub event: Box<RawValue>,
    pub since: String,
    pub state: ApprovalState,
}

fn display<S: serde::Serializer>(value: &SessionId, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(value)
}

/// Effect of an event on the questions of a session.
#[derive(Debug, PartialEq, Eq)]
pub enum QuestionChange<'a> {
    Asks(ApprovalKind, &'a str),
    Settles(&'a str),
}

/// Effect of an event on the questions of its session.
pub fn asking(event: &Event) -> Option<QuestionChange<'_>> {
    Some(match event.body() {
        Body::PermissionRequested(asked) => QuestionChange::Asks(ApprovalKind::Permission, &asked.request_id),
        Body::UserInputRequested(asked) => QuestionChange::Asks(ApprovalKind::Question, &asked.request_id),
        Body::ElicitationRequested(asked) => {
            QuestionChange::Asks(ApprovalKind::Elicitation, &asked.request_id)
        }
        Body::ExitPlanModeRequested(asked) => QuestionChange::Asks(ApprovalKind::Plan, &asked.request_id),
        Body::PermissionCompleted(done) => QuestionChange::Settles(&done.request_id),
        Body::UserInputCompleted(done) => QuestionChange::Settles(&done.request_id),
        Body::ElicitationCompleted(done) => QuestionChange::Settles(&done.request_id),
        Body::ExitPlanModeCompleted(done) => QuestionChange::Settles(&done.request_id),
        _ => return None,
    })
}

/// An answer to a question. Which members apply depends on the kind of the question.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Answer")]
pub struct ApprovalReply {
    /// For a permission or a plan.
    pub decision: Option<ApprovalDecision>,
    /// With `deny`: what to do instead.
    pub feedback: Option<String>,
    /// For a question.
    pub answer: Option<String>,
    /// For an elicitation.
    pub action: Option<ApprovalAction>,
    /// With `accept`: the values of the form.
    pub content: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "PermissionDecision")]
pub enum ApprovalDecision {
    Approve,
    ApproveForSession,
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ElicitationAction")]
pub enum ApprovalAction {
    Accept,
    Decline,
    Cancel,
}

impl From<ApprovalAction> for ElicitationAction {
    fn from(action: ApprovalAction) -> Self {
        match action {
            ApprovalAction::Accept => ElicitationAction::Accept,
            ApprovalAction::Decline => ElicitationAction::Decline,
            ApprovalAction::Cancel => ElicitationAction::Cancel,
        }
    }
}

impl ApprovalReply {
    /// The answer to a question of this kind, or what is missing in it.
    pub fn to(self, kind: ApprovalKind) -> Result<AgentAnswer, &'static str> {
        match kind {
            ApprovalKind::Permission => match self.decision {
                Some(ApprovalDecision::Approve) => Ok(AgentAnswer::Permission(PermissionReply::Once)),
                Some(ApprovalDecision::ApproveForSession) => {
                    Ok(AgentAnswer::Permission(PermissionReply::ForSession))
                }
                Some(ApprovalDecision::Deny) => {
                    Ok(AgentAnswer::Permission(PermissionReply::Denied { feedback: self.feedback }))
                }
                None => Err("a permission needs a `decision`: approve, approve-for-session or deny"),
            },
            ApprovalKind::Plan => match self.decision {
                Some(decision) => Ok(AgentAnswer::Plan {
                    approved: decision != ApprovalDecision::Deny,
                    feedback: self.feedback,
                }),
                None => Err("a plan needs a `decision`: approve or deny"),
            },
            ApprovalKind::Question => match self.answer {
                Some(answer) => Ok(AgentAnswer::Question(answer)),
                None => Err("a question needs an `answer`"),
            },
            ApprovalKind::Elicitation => match self.action {
                Some(action) => Ok(AgentAnswer::Elicitation { action: action.into(), content: self.content }),
                None => Err("an elicitation needs an `action`: accept, decline or cancel"),
            },
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotOpen {
    Unknown,
    AlreadyAnswered,
}

/// All questions of all sessions.
#[derive(Debug, Default)]
pub(crate) struct Approvals {
    open: BTreeMap<String, Approval>,
    settled: VecDeque<String>,
}

impl Approvals {
    pub(crate) fn open(&mut self, approval: Approval) {
        if self.open.len() < MOST_OPEN {
            self.open.insert(approval.id.clone(), approval);
        }
    }

    pub(crate) fn get(&self, id: &str) -> Result<&Approval, NotOpen> {
        self.open.get(id).ok_or_else(|| match self.settled.iter().any(|settled| settled == id) {
            true => NotOpen::AlreadyAnswered,
            false => NotOpen::Unknown,
        })
    }

    /// Removes a question, because it was answered or withdrawn.
    pub(crate) fn settle(&mut self, id: &str) -> Result<Approval, NotOpen> {
        self.get(id)?;
        let Some(mut approval) = self.open.remove(id) else { return Err(NotOpen::Unknown) };
        approval.state = ApprovalState::Answered;
        self.settled.push_back(approval.id.clone());
        if self.settled.len() > REMEMBERED {
            self.settled.pop_front();
        }
        Ok(approval)
    }

    pub(crate) fn of(&self, session: &SessionId) -> impl Iterator<Item = &Approval> {
        self.open.values().filter(move |approval| approval.session_id == *session)
    }

    /// The one that waits longest first.
    pub(crate) fn list(&self) -> Vec<Approval> {
        let mut all: Vec<Approval> = self.open.values().cloned().collect();
        all.sort_by(|a, b| a.since.cmp(&b.since));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn approval(id: &str) -> Approval {
        Approval {
            id: id.to_owned(),
            session_id: "s".parse().unwrap(),
            session_name: None,
            kind: ApprovalKind::Permission,
            event: RawValue::from_string("{}".to_owned()).unwrap(),
            since: String::new(),
            state: ApprovalState::Open,
        }
    }

    #[test]
    fn a_question_is_answered_once() {
        let mut approvals = Approvals::default();
        approvals.open(approval("a"));
        assert!(approvals.settle("a").is_ok());
        assert_eq!(approvals.settle("a").unwrap_err(), NotOpen::AlreadyAnswered);
        assert_eq!(approvals.settle("b").unwrap_err(), NotOpen::Unknown);
    }

    #[track_caller]
    fn check(kind: ApprovalKind, reply: &str, expected: Result<AgentAnswer, &str>) {
        let reply: ApprovalReply = serde_json::from_str(reply).unwrap();
        assert_eq!(reply.to(kind).map_err(|error| error.split('`').nth(1).unwrap()), expected);
    }

    #[test]
    fn a_reply_has_to_fit_the_question() {
        check(
            ApprovalKind::Permission,
            r#"{"decision":"deny","feedback":"no"}"#,
            Ok(AgentAnswer::Permission(PermissionReply::Denied { feedback: Some("no".to_owned()) })),
        );
        check(
            ApprovalKind::Permission,
            r#"{"decision":"approve-for-session"}"#,
            Ok(AgentAnswer::Permission(PermissionReply::ForSession)),
        );
        check(ApprovalKind::Permission, r#"{"answer":"yes"}"#, Err("decision"));
        check(ApprovalKind::Question, r#"{"answer":"blue"}"#, Ok(AgentAnswer::Question("blue".to_owned())));
        check(ApprovalKind::Question, r#"{"decision":"approve"}"#, Err("answer"));
        check(ApprovalKind::Elicitation, "{}", Err("action"));
    }
}
