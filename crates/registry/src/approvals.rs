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

/// Questions that were settled and are remembered, so that who comes late learns why.
const REMEMBERED: usize = 1000;
/// Questions that may be open at once. More would be no use to anybody.
const MOST_OPEN: usize = 10_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ApprovalKind")]
pub enum Kind {
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
    pub kind: Kind,
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
pub(crate) enum Asking<'a> {
    Asks(Kind, &'a str),
    Settles(&'a str),
}

pub(crate) fn asking(event: &Event) -> Option<Asking<'_>> {
    Some(match event.body() {
        Body::PermissionRequested(asked) => Asking::Asks(Kind::Permission, &asked.request_id),
        Body::UserInputRequested(asked) => Asking::Asks(Kind::Question, &asked.request_id),
        Body::ElicitationRequested(asked) => Asking::Asks(Kind::Elicitation, &asked.request_id),
        Body::ExitPlanModeRequested(asked) => Asking::Asks(Kind::Plan, &asked.request_id),
        Body::PermissionCompleted(done) => Asking::Settles(&done.request_id),
        Body::UserInputCompleted(done) => Asking::Settles(&done.request_id),
        Body::ElicitationCompleted(done) => Asking::Settles(&done.request_id),
        Body::ExitPlanModeCompleted(done) => Asking::Settles(&done.request_id),
        _ => return None,
    })
}

/// An answer to a question. Which members apply depends on the kind of the question.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Answer")]
pub struct Reply {
    /// For a permission or a plan.
    pub decision: Option<Decision>,
    /// With `deny`: what to do instead.
    pub feedback: Option<String>,
    /// For a question.
    pub answer: Option<String>,
    /// For an elicitation.
    pub action: Option<Action>,
    /// With `accept`: the values of the form.
    pub content: Option<serde_json::Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "PermissionDecision")]
pub enum Decision {
    Approve,
    ApproveForSession,
    Deny,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "ElicitationAction")]
pub enum Action {
    Accept,
    Decline,
    Cancel,
}

impl From<Action> for ElicitationAction {
    fn from(action: Action) -> Self {
        match action {
            Action::Accept => ElicitationAction::Accept,
            Action::Decline => ElicitationAction::Decline,
            Action::Cancel => ElicitationAction::Cancel,
        }
    }
}

impl Reply {
    /// The answer to a question of this kind, or what is missing in it.
    pub fn to(self, kind: Kind) -> Result<AgentAnswer, &'static str> {
        match kind {
            Kind::Permission => match self.decision {
                Some(Decision::Approve) => Ok(AgentAnswer::Permission(PermissionReply::Once)),
                Some(Decision::ApproveForSession) => Ok(AgentAnswer::Permission(PermissionReply::ForSession)),
                Some(Decision::Deny) => {
                    Ok(AgentAnswer::Permission(PermissionReply::Denied { feedback: self.feedback }))
                }
                None => Err("a permission needs a `decision`: approve, approve-for-session or deny"),
            },
            Kind::Plan => match self.decision {
                Some(decision) => {
                    Ok(AgentAnswer::Plan { approved: decision != Decision::Deny, feedback: self.feedback })
                }
                None => Err("a plan needs a `decision`: approve or deny"),
            },
            Kind::Question => match self.answer {
                Some(answer) => Ok(AgentAnswer::Question(answer)),
                None => Err("a question needs an `answer`"),
            },
            Kind::Elicitation => match self.action {
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

    /// Takes a question away, because it was answered or because nobody waits for the answer any more.
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
            kind: Kind::Permission,
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
    fn check(kind: Kind, reply: &str, expected: Result<AgentAnswer, &str>) {
        let reply: Reply = serde_json::from_str(reply).unwrap();
        assert_eq!(reply.to(kind).map_err(|error| error.split('`').nth(1).unwrap()), expected);
    }

    #[test]
    fn a_reply_has_to_fit_the_question() {
        check(
            Kind::Permission,
            r#"{"decision":"deny","feedback":"no"}"#,
            Ok(AgentAnswer::Permission(PermissionReply::Denied { feedback: Some("no".to_owned()) })),
        );
        check(
            Kind::Permission,
            r#"{"decision":"approve-for-session"}"#,
            Ok(AgentAnswer::Permission(PermissionReply::ForSession)),
        );
        check(Kind::Permission, r#"{"answer":"yes"}"#, Err("decision"));
        check(Kind::Question, r#"{"answer":"blue"}"#, Ok(AgentAnswer::Question("blue".to_owned())));
        check(Kind::Question, r#"{"decision":"approve"}"#, Err("answer"));
        check(Kind::Elicitation, "{}", Err("action"));
    }
}
