//! Work that clients do elsewhere and list with a session's tasks. The client that registered a task owns it: it says how
//! far the task is, and is asked when somebody wants it stopped.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::client::ClientId;
use crate::methods::Failure;

/// Maximum number of tasks per session, finished ones included.
const MAX_TASKS: usize = 256;
/// Maximum number of recent activity lines of a task.
const MAX_ACTIVITY: usize = 50;
/// Maximum size of a task's texts and of its result, in bytes.
const MAX_TEXT: usize = 16 << 10;
const MAX_RESULT: usize = 1 << 20;

/// Errors that clients tell apart.
const NOT_FOUND: i64 = -32010;
const NOT_OWNED: i64 = -32011;
const CONFLICT: i64 = -32012;
const UNSUPPORTED: i64 = -32013;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum ClientTaskStatus {
    Running,
    Idle,
    Completed,
    Failed,
    Cancelled,
    /// Its owner has disconnected.
    Orphaned,
}

impl ClientTaskStatus {
    fn is_over(self) -> bool {
        match self {
            ClientTaskStatus::Completed | ClientTaskStatus::Failed | ClientTaskStatus::Cancelled => true,
            ClientTaskStatus::Running | ClientTaskStatus::Idle | ClientTaskStatus::Orphaned => false,
        }
    }
}

/// Registration of a task by a client.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Registration {
    client_task_id: String,
    description: String,
    display_name: Option<String>,
    cancellable: bool,
    expected_sequence: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum ClientTaskUpdate {
    Progress {
        status: Option<ActiveStatus>,
        message: Option<String>,
        phase: Option<String>,
        percentage: Option<f64>,
    },
    Completed {
        message: Option<String>,
        result: Option<Value>,
    },
    Failed {
        message: Option<String>,
        error: String,
        code: Option<String>,
    },
    Cancelled {
        message: Option<String>,
        reason: Option<String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ActiveStatus {
    Running,
    Idle,
}

struct ClientTask {
    id: String,
    registration: Registration,
    owner: ClientId,
    /// Display name of the owner, without details of its connection.
    participant: String,
    join: String,
    status: ClientTaskStatus,
    sequence: u64,
    started: Timestamp,
    updated: Timestamp,
    ended: Option<Timestamp>,
    /// Since when it has been running, and for how long it was before.
    active_since: Option<Timestamp>,
    active_ms: i64,
    orphaned: Option<Timestamp>,
    phase: Option<String>,
    percentage: Option<f64>,
    activity: VecDeque<(String, Timestamp)>,
    last: Option<ClientTaskUpdate>,
}

impl ClientTask {
    fn set_status(&mut self, status: ClientTaskStatus, now: Timestamp) {
        if let Some(since) = self.active_since.take() {
            self.active_ms += now.as_millisecond() - since.as_millisecond();
        }
        self.active_since = (status == ClientTaskStatus::Running).then_some(now);
        self.ended = status.is_over().then_some(now);
        self.status = status;
        self.updated = now;
    }

    fn say(&mut self, message: Option<&String>, now: Timestamp) {
        let Some(message) = message.filter(|message| !message.is_empty()) else { return };
        if self.activity.len() >= MAX_ACTIVITY {
            self.activity.pop_front();
        }
        self.activity.push_back((message[..message.floor_char_boundary(MAX_TEXT)].to_owned(), now));
    }

    fn apply(&mut self, update: &ClientTaskUpdate, now: Timestamp) {
        match update {
            ClientTaskUpdate::Progress { status, message, phase, percentage } => {
                self.say(message.as_ref(), now);
                self.phase = phase.clone().or_else(|| self.phase.take());
                self.percentage = percentage.or(self.percentage);
                self.updated = now;
                match status {
                    Some(ActiveStatus::Idle) if self.status != ClientTaskStatus::Idle => {
                        self.set_status(ClientTaskStatus::Idle, now);
                    }
                    Some(ActiveStatus::Running) if self.status != ClientTaskStatus::Running => {
                        self.set_status(ClientTaskStatus::Running, now);
                    }
                    _ => {}
                }
            }
            ClientTaskUpdate::Completed { message, .. } => {
                self.say(message.as_ref(), now);
                self.set_status(ClientTaskStatus::Completed, now);
            }
            ClientTaskUpdate::Failed { message, .. } => {
                self.say(message.as_ref(), now);
                self.set_status(ClientTaskStatus::Failed, now);
            }
            ClientTaskUpdate::Cancelled { message, .. } => {
                self.say(message.as_ref(), now);
                self.set_status(ClientTaskStatus::Cancelled, now);
            }
        }
        self.last = Some(update.clone());
    }

    fn can_cancel(&self) -> bool {
        self.registration.cancellable
            && matches!(self.status, ClientTaskStatus::Running | ClientTaskStatus::Idle)
    }

    /// Serialises the task for clients.
    fn describe(&self) -> Value {
        let iso = hangar_agent::session::iso;
        let here = self.orphaned.is_none();
        let mut owner = json!({
            "participantId": self.participant,
            "joinId": self.join,
            "kind": "sdk",
            "presence": if here { "connected" } else { "disconnected" },
        });
        if let Some(orphaned) = self.orphaned {
            owner["disconnectedAt"] = json!(iso(orphaned));
        }
        let mut told = json!({
            "type": "client",
            "id": self.id,
            "clientTaskId": self.registration.client_task_id,
            "description": self.registration.description,
            "status": self.status,
            "executionMode": "background",
            "canCancel": self.can_cancel(),
            "sequence": self.sequence,
            "activeTimeMs": self.active_ms,
            "startedAt": iso(self.started),
            "updatedAt": iso(self.updated),
            "owner": owner,
        });
        let idle = (self.status == ClientTaskStatus::Idle).then_some(self.updated);
        for (name, time) in [
            ("completedAt", self.ended),
            ("activeStartedAt", self.active_since),
            ("orphanedAt", self.orphaned),
            ("idleSince", idle),
        ] {
            if let Some(time) = time {
                told[name] = json!(iso(time));
            }
        }
        if let Some(name) = &self.registration.display_name {
            told["displayName"] = json!(name);
        }
        match &self.last {
            Some(ClientTaskUpdate::Completed { result: Some(result), .. }) => told["result"] = result.clone(),
            Some(ClientTaskUpdate::Failed { error, code, .. }) => {
                told["error"] = json!(error);
                if let Some(code) = code {
                    told["errorCode"] = json!(code);
                }
            }
            Some(ClientTaskUpdate::Cancelled { reason: Some(reason), .. }) => {
                told["cancellationReason"] = json!(reason);
            }
            _ => {}
        }
        told
    }

    fn progress(&self) -> Value {
        let iso = hangar_agent::session::iso;
        let line = |(message, at): &(String, Timestamp)| json!({ "message": message, "timestamp": iso(*at) });
        let mut told = json!({
            "type": "client",
            "status": self.status,
            "sequence": self.sequence,
            "updatedAt": iso(self.updated),
            "recentActivity": self.activity.iter().map(line).collect::<Vec<_>>(),
        });
        if let Some(phase) = &self.phase {
            told["phase"] = json!(phase);
        }
        if let Some(percentage) = self.percentage {
            told["percentage"] = json!(percentage);
        }
        if let Some((message, _)) = self.activity.back() {
            told["lastMessage"] = json!(message);
        }
        told
    }
}

pub(crate) fn unsupported() -> Failure {
    Failure::coded(UNSUPPORTED, "TASK_UNSUPPORTED", None)
}

fn not_found(id: &str) -> Failure {
    Failure::coded(NOT_FOUND, "TASK_NOT_FOUND", Some(json!({ "taskId": id })))
}

fn conflict(data: Value) -> Failure {
    Failure::coded(CONFLICT, "TASK_CONFLICT", Some(data))
}

impl Registration {
    pub(crate) fn check(&self) -> Result<(), Failure> {
        for (name, text) in [("description", &self.description), ("clientTaskId", &self.client_task_id)] {
            if text.is_empty() {
                return Err(Failure::refused(format!("{name} must be a non-empty string")));
            }
            bounded(name, Some(text))?;
        }
        bounded("displayName", self.display_name.as_ref())
    }
}

fn bounded(name: &str, text: Option<&String>) -> Result<(), Failure> {
    match text {
        Some(text) if text.len() > MAX_TEXT => {
            Err(Failure::refused(format!("{name} must not be longer than {MAX_TEXT} bytes")))
        }
        _ => Ok(()),
    }
}

impl ClientTaskUpdate {
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self {
            ClientTaskUpdate::Progress { phase, percentage, .. } => {
                if percentage.is_some_and(|percentage| !(0.0..=100.0).contains(&percentage)) {
                    return Err(Failure::refused("percentage must be finite and between 0 and 100"));
                }
                bounded("phase", phase.as_ref())
            }
            ClientTaskUpdate::Completed { result, .. } => match result {
                Some(result) if result.to_string().len() > MAX_RESULT => {
                    Err(Failure::refused(format!("result must not be longer than {MAX_RESULT} bytes")))
                }
                _ => Ok(()),
            },
            ClientTaskUpdate::Failed { error, code, .. } => {
                bounded("error", Some(error))?;
                bounded("code", code.as_ref())
            }
            ClientTaskUpdate::Cancelled { reason, .. } => bounded("reason", reason.as_ref()),
        }
    }
}

/// Request to the client that can stop a task.
pub(crate) struct Cancellation {
    pub(crate) owner: ClientId,
    pub(crate) params: Value,
}

/// The tasks of a session's clients.
#[derive(Default)]
pub(crate) struct ClientTasks(Vec<ClientTask>);

impl ClientTasks {
    pub(crate) fn register(
        &mut self,
        registration: Registration,
        owner: ClientId,
        now: Timestamp,
    ) -> Result<Value, Failure> {
        let key = &registration.client_task_id;
        let known =
            self.0.iter().find(|task| task.owner == owner && task.registration.client_task_id == *key);
        if let Some(task) = known {
            if task.status.is_over() {
                return Err(conflict(json!({ "reason": "terminal", "taskId": task.id })));
            }
            if let Some(expected) =
                registration.expected_sequence.filter(|expected| *expected != task.sequence)
            {
                return Err(mismatch(task, expected, task.sequence));
            }
            return Ok(json!({ "task": task.describe(), "created": false, "reclaimed": false }));
        }
        if self.0.len() >= MAX_TASKS {
            // The oldest that is over makes room.
            match self.0.iter().position(|task| task.status.is_over()) {
                Some(old) => drop(self.0.remove(old)),
                None => {
                    return Err(Failure::new(format!("{MAX_TASKS} tasks of clients are under way already")));
                }
            }
        }
        let known = self.0.iter().find(|task| task.owner == owner);
        let fresh = || uuid::Uuid::new_v4().to_string();
        let (participant, join) =
            known.map_or_else(|| (fresh(), fresh()), |task| (task.participant.clone(), task.join.clone()));
        let task = ClientTask {
            id: fresh(),
            registration,
            owner,
            participant,
            join,
            status: ClientTaskStatus::Running,
            sequence: 0,
            started: now,
            updated: now,
            ended: None,
            active_since: Some(now),
            active_ms: 0,
            orphaned: None,
            phase: None,
            percentage: None,
            activity: VecDeque::new(),
            last: None,
        };
        let told = json!({ "task": task.describe(), "created": true, "reclaimed": false });
        self.0.push(task);
        Ok(told)
    }

    /// Applies an update by the owner of a task. Updates are idempotent.
    pub(crate) fn update(
        &mut self,
        id: &str,
        owner: ClientId,
        sequence: u64,
        update: &ClientTaskUpdate,
        now: Timestamp,
    ) -> Result<Value, Failure> {
        let task = self.0.iter_mut().find(|task| task.id == id).ok_or_else(|| not_found(id))?;
        if task.owner != owner {
            return Err(Failure::coded(NOT_OWNED, "TASK_NOT_OWNED", Some(json!({ "taskId": id }))));
        }
        if sequence == task.sequence && task.last.as_ref() == Some(update) {
            return Ok(json!({ "task": task.describe(), "applied": false, "duplicate": true }));
        }
        if task.status.is_over() {
            return Err(conflict(json!({ "reason": "terminal", "taskId": id })));
        }
        if sequence != task.sequence + 1 {
            return Err(mismatch(task, sequence, task.sequence + 1));
        }
        task.sequence = sequence;
        task.apply(update, now);
        Ok(json!({ "task": task.describe(), "applied": true, "duplicate": false }))
    }

    pub(crate) fn describe(&self) -> impl Iterator<Item = Value> {
        self.0.iter().map(ClientTask::describe)
    }

    pub(crate) fn progress(&self, id: &str) -> Option<Value> {
        self.0.iter().find(|task| task.id == id).map(ClientTask::progress)
    }

    /// Client that can stop a task. `None` if there is no such task; an empty answer if it cannot be stopped.
    pub(crate) fn cancellation(&self, id: &str, session_id: &str) -> Option<Option<Cancellation>> {
        let task = self.0.iter().find(|task| task.id == id)?;
        Some(task.can_cancel().then(|| Cancellation {
            owner: task.owner,
            params: json!({
                "sessionId": session_id,
                "id": task.id,
                "clientTaskId": task.registration.client_task_id,
                "cancellationId": uuid::Uuid::new_v4().to_string(),
                "reason": "cancel_requested",
            }),
        }))
    }

    /// The owner has stopped a task.
    pub(crate) fn cancelled(&mut self, id: &str, now: Timestamp) {
        if let Some(task) = self.0.iter_mut().find(|task| task.id == id && !task.status.is_over()) {
            task.set_status(ClientTaskStatus::Cancelled, now);
        }
    }

    /// Forgets a task that is over.
    pub(crate) fn remove(&mut self, id: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|task| task.id != id || !task.status.is_over());
        self.0.len() < before
    }

    /// Orphans the tasks of clients that have left, because no one can update them. True if there are new orphans.
    pub(crate) fn orphan(&mut self, is_here: impl Fn(ClientId) -> bool, now: Timestamp) -> bool {
        let mut any = false;
        for task in self
            .0
            .iter_mut()
            .filter(|task| matches!(task.status, ClientTaskStatus::Running | ClientTaskStatus::Idle))
        {
            if !is_here(task.owner) {
                task.set_status(ClientTaskStatus::Orphaned, now);
                task.orphaned = Some(now);
                any = true;
            }
        }
        any
    }
}

fn mismatch(task: &ClientTask, received: u64, expected: u64) -> Failure {
    conflict(json!({
        "reason": "sequence_mismatch",
        "taskId": task.id,
        "clientTaskId": task.registration.client_task_id,
        "currentSequence": task.sequence,
        "expectedSequence": expected,
        "receivedSequence": received,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWNER: ClientId = ClientId(1);
    const NOW: Timestamp = Timestamp::UNIX_EPOCH;

    fn registered() -> (ClientTasks, String) {
        let mut tasks = ClientTasks::default();
        let registration = json!({ "clientTaskId": "k", "description": "d", "cancellable": true });
        let told = tasks.register(serde_json::from_value(registration).unwrap(), OWNER, NOW).unwrap();
        let id = told["task"]["id"].as_str().unwrap().to_owned();
        (tasks, id)
    }

    fn said(kind: &str) -> ClientTaskUpdate {
        serde_json::from_value(json!({ "kind": kind, "message": "m", "error": "e" })).unwrap()
    }

    #[test]
    fn an_update_counts_once_and_in_its_order() {
        let (mut tasks, id) = registered();
        let mut update = |sequence, kind| match tasks.update(&id, OWNER, sequence, &said(kind), NOW) {
            Ok(told) => format!("{} {}", told["applied"], told["task"]["status"]),
            Err(failure) => format!("{:?}", failure.into_error("").data.unwrap()["reason"]),
        };
        assert_eq!(update(1, "progress"), "true \"running\"");
        assert_eq!(update(1, "progress"), "false \"running\"");
        assert_eq!(update(3, "progress"), "String(\"sequence_mismatch\")");
        assert_eq!(update(2, "failed"), "true \"failed\"");
        assert_eq!(update(3, "completed"), "String(\"terminal\")");
    }

    #[test]
    fn what_is_kept_of_a_task_has_its_bounds() {
        let check = |update: Value, expected: Option<&str>| {
            let update: ClientTaskUpdate = serde_json::from_value(update).unwrap();
            assert_eq!(update.check().err().map(|failure| failure.message().to_owned()).as_deref(), expected);
        };
        let long = "x".repeat(MAX_TEXT + 1);
        check(json!({ "kind": "progress", "percentage": 100, "phase": "p" }), None);
        check(
            json!({ "kind": "progress", "percentage": 250 }),
            Some("percentage must be finite and between 0 and 100"),
        );
        check(
            json!({ "kind": "progress", "phase": long }),
            Some("phase must not be longer than 16384 bytes"),
        );
        check(json!({ "kind": "failed", "error": long }), Some("error must not be longer than 16384 bytes"));
        check(
            json!({ "kind": "completed", "result": long.repeat(64) }),
            Some("result must not be longer than 1048576 bytes"),
        );
    }

    #[test]
    fn a_task_belongs_to_the_client_that_registered_it() {
        let (mut tasks, id) = registered();
        let other = tasks.update(&id, ClientId(2), 1, &said("progress"), NOW).unwrap_err();
        assert_eq!(other.message(), "TASK_NOT_OWNED");
        assert!(!tasks.remove(&id), "it is under way");
        assert!(tasks.orphan(|client| client != OWNER, NOW));
        assert!(tasks.cancellation(&id, "s").unwrap().is_none(), "nobody can stop it");
    }
}
