//! Access control for the calls of the current answer.

use std::path::PathBuf;

use hangar_protocol::data::{self, Mode};
use hangar_protocol::permission::{PermissionOutcome, PermissionRequest};

use super::tools::CallStage;
use super::{Context, Session, Step};
use crate::permissions::{Grant, SessionApproval, Verdict, ask_without_limits, texts};
use crate::prompt::notices;
use crate::tool::{AccessRequest, ToolOutcome, ToolStatus};

impl Session {
    /// Decides about a call's access: by the mode, hooks, rules and the user.
    pub(super) fn decide_access(
        &mut self,
        id: &str,
        access: AccessRequest,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if let Some(refused) = self.refused_by_mode(&access) {
            return self.complete(id, refused, step);
        }
        // A rule's denial holds whatever a hook says.
        let forbidden = matches!(self.config.policy.decide(&access), Verdict::Deny { .. });
        if !forbidden && self.running(id).is_some_and(|running| running.allowed) {
            return self.allow_access(id, access, step);
        }
        if !forbidden && let Some(fields) = self.about_permission(&access.request) {
            return self.ask_permission_hooks(id, access, fields, step, context);
        }
        self.decide_by_policy(id, access, step, context);
    }

    pub(super) fn decide_by_policy(
        &mut self,
        id: &str,
        access: AccessRequest,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        match self.config.policy.decide(&access) {
            Verdict::Allow => {
                let grant = self.config.policy.grant(&access);
                if let (Grant::Limited(_), Some(running)) = (&grant, self.running(id)) {
                    running.limited = Some(Box::new(access.request.clone()));
                }
                self.run_tool(id, touched(access), grant, step);
            }
            Verdict::Deny { rules } => {
                let denied = ToolOutcome::of(ToolStatus::Denied, texts::denied_by_rules(&rules));
                self.complete(id, denied, step);
            }
            Verdict::Ask { .. } if self.config.clients.permissions => {
                self.notify_of_question(&access.request, step, context);
                let request_id = context.entropy.uuid();
                let permission_request = access.request.clone();
                if let Some(running) = self.running(id) {
                    let request = Box::new(access.request.clone());
                    running.stage = CallStage::AskingPermission { request_id: request_id.clone(), request };
                    running.touched = touched(access);
                }
                self.ask_permission(request_id, permission_request, step);
            }
            Verdict::Ask { .. } => {
                self.notify_of_question(&access.request, step, context);
                let denied = ToolOutcome::of(ToolStatus::Denied, texts::NO_USER);
                self.complete(id, denied, step);
            }
        }
    }

    /// Asks the user for permission.
    pub(super) fn ask_permission(&mut self, request_id: String, request: PermissionRequest, step: &mut Step) {
        let agent_mode = Some(self.mode());
        self.emit(
            step,
            data::PermissionRequested { agent_mode, ..data::PermissionRequested::new(request_id, request) },
        );
    }

    /// Asks the open permission questions again, for clients that were not there when they were asked.
    pub(super) fn ask_again(&mut self, step: &mut Step) {
        for pending in self.pending_permissions() {
            self.ask_permission(pending.request_id, pending.request, step);
        }
    }

    /// Runs a call that was approved.
    pub(super) fn allow_access(&mut self, id: &str, access: AccessRequest, step: &mut Step) {
        self.run_tool(id, touched(access), Grant::Full, step);
    }

    /// Handles a call that its limits blocked: the user is asked if that is possible, and it runs again without limits
    /// or is refused. `None` while the question is open.
    pub(super) fn reconsider(
        &mut self,
        id: &str,
        mut outcome: ToolOutcome,
        step: &mut Step,
        context: &mut Context<'_>,
    ) -> Option<ToolOutcome> {
        let Some(blocked) = outcome.blocked.take() else { return Some(outcome) };
        let Some(mut request) = self.running(id).and_then(|running| running.limited.take()) else {
            return Some(outcome);
        };
        if !self.config.clients.permissions {
            let text = texts::kept_from(&blocked.from, &outcome.text);
            return Some(ToolOutcome { status: ToolStatus::Denied, text, ..outcome });
        }
        ask_without_limits(&mut request, &blocked.from);
        self.notify_of_question(&request, step, context);
        let request_id = context.entropy.uuid();
        if let Some(running) = self.running(id) {
            running.stage =
                CallStage::AskingPermission { request_id: request_id.clone(), request: request.clone() };
        }
        self.ask_permission(request_id, *request, step);
        None
    }

    /// Result of a call that would change something in plan mode.
    pub fn refused_by_mode(&self, access: &AccessRequest) -> Option<ToolOutcome> {
        let only_plans = self.only_plans || self.mode() == Mode::Plan;
        let refused = only_plans && self.changes_something(access);
        refused.then(|| ToolOutcome::of(ToolStatus::Denied, notices::PLAN_REFUSAL))
    }

    /// Whether a call would change anything outside the session's folder.
    fn changes_something(&self, access: &AccessRequest) -> bool {
        match &access.request {
            PermissionRequest::Read { .. }
            | PermissionRequest::Url { .. }
            | PermissionRequest::ExtensionPermissionAccess { .. }
            | PermissionRequest::ExtensionEnvAccess { .. } => false,
            PermissionRequest::Write { .. } => {
                !access.writes.iter().all(|path| path.starts_with(&self.config.session_dir))
            }
            PermissionRequest::Shell(shell) => {
                shell.has_write_file_redirection || shell.commands.iter().any(|command| !command.read_only)
            }
            PermissionRequest::Mcp { read_only, .. } => !read_only,
            PermissionRequest::Memory { .. }
            | PermissionRequest::CustomTool { .. }
            | PermissionRequest::Hook { .. }
            | PermissionRequest::ExtensionManagement { .. } => true,
        }
    }

    pub(super) fn permission_answered(
        &mut self,
        request_id: &str,
        answer: PermissionOutcome,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let asked = |stage: &CallStage| match stage {
            CallStage::AskingPermission { request_id: id, .. }
            | CallStage::AskingConfirmation { request_id: id, .. } => id == request_id,
            _ => false,
        };
        let Some(id) = self.waiting_call(asked) else { return };
        let completed = data::PermissionCompleted {
            request_id: request_id.to_owned(),
            tool_call_id: Some(id.clone()),
            result: answer.clone(),
        };
        self.emit(step, completed);
        if let PermissionOutcome::ApprovedForSession { approval }
        | PermissionOutcome::ApprovedForLocation { approval, .. } = &answer
        {
            self.config.policy.approvals.extend(SessionApproval::parse(approval));
        }
        match answer {
            PermissionOutcome::Approved {}
            | PermissionOutcome::ApprovedForSession { .. }
            | PermissionOutcome::ApprovedForLocation { .. } => self.approved(&id, step, context),
            refusal => self.refuse_access(&id, refusal, step),
        }
        self.finish_tools(step, context);
    }

    fn approved(&mut self, id: &str, step: &mut Step, context: &mut Context<'_>) {
        let Some(running) = self.running(id) else { return };
        match std::mem::replace(&mut running.stage, CallStage::Checking) {
            // The hook allows the call; the access that it needs is decided separately.
            CallStage::AskingConfirmation { inspection, .. } => {
                self.admit(id, inspection.map(|inspection| *inspection), step, context);
            }
            _ => self.run_tool(id, Vec::new(), Grant::Full, step),
        }
    }

    pub(super) fn refuse_access(&mut self, id: &str, refusal: PermissionOutcome, step: &mut Step) {
        let outcome = refused(refusal);
        self.complete(id, outcome, step);
    }
}

/// Result of a call that was not allowed.
fn refused(refusal: PermissionOutcome) -> ToolOutcome {
    let ending = |ends: Option<bool>| {
        if ends == Some(true) { ToolStatus::Rejected } else { ToolStatus::Denied }
    };
    match refusal {
        PermissionOutcome::DeniedInteractivelyByUser { feedback, force_reject } => {
            ToolOutcome::of(ending(force_reject), texts::rejected_by_user(feedback.as_deref()))
        }
        PermissionOutcome::DeniedByPermissionRequestHook { message, interrupt } => {
            ToolOutcome::of(ending(interrupt), texts::denied_by_hook(message.as_deref()))
        }
        PermissionOutcome::DeniedByContentExclusionPolicy { message, .. } => {
            ToolOutcome::of(ToolStatus::Denied, message)
        }
        PermissionOutcome::Approved {}
        | PermissionOutcome::ApprovedForSession { .. }
        | PermissionOutcome::ApprovedForLocation { .. }
        | PermissionOutcome::Cancelled { .. }
        | PermissionOutcome::DeniedByRules { .. }
        | PermissionOutcome::DeniedNoApprovalRuleAndCouldNotRequestFromUser {} => {
            ToolOutcome::of(ToolStatus::Denied, texts::NO_USER)
        }
    }
}

fn touched(access: AccessRequest) -> Vec<PathBuf> {
    match access.request {
        PermissionRequest::Read { .. } => access.reads,
        PermissionRequest::Write { .. } => access.writes,
        _ => Vec::new(),
    }
}
