//! Tool calls of a turn: start, permission, run, result. All calls of one answer run concurrently.

use std::path::PathBuf;
use std::time::Duration;

use hangar_protocol::Body;
use hangar_protocol::data::{self, Mode, NotificationKind};
use hangar_protocol::permission::{PermissionOutcome, PermissionRequest};
use jiff::Timestamp;
use serde_json::json;

use super::call::parse_arguments;
use super::own_tools::OwnTool;
use super::repetition::CallPrint;
use super::run::{Ending, Phase, Run, millis_between};
use super::{Context, Inspection, Reminder, Session, SessionEffect, Step};
use crate::hook::HookKind;
use crate::model::{Part, ToolCall};
use crate::permissions::Grant;
use crate::prompt::notices;
use crate::tool::{Access, AccessRequest, InvokedSkill, ToolInput, ToolOutcome, ToolStatus};

/// One call of the current answer.
pub(super) struct RunningCall {
    call: ToolCall,
    arguments: serde_json::Value,
    /// Files that the call reads or writes, for instructions about them.
    pub(super) touched: Vec<PathBuf>,
    /// Whether the start of the call is logged.
    started: bool,
    /// Whether a hook has allowed its access.
    pub(super) allowed: bool,
    pub(super) stage: CallStage,
    /// Id of the request by which a client makes the call.
    asked_of_client: Option<String>,
    /// Access that it has within limits. The user may be asked whether it may do more.
    pub(super) limited: Option<Box<PermissionRequest>>,
    /// The call with its result, once it has one.
    print: Option<CallPrint>,
}

pub(super) enum CallStage {
    Checking,
    /// `preToolUse` is running.
    BeforeHooks {
        hook: String,
        inspection: Option<Box<Inspection>>,
    },
    AskingPermission {
        request_id: String,
        request: Box<PermissionRequest>,
    },
    /// The user is asked to confirm the call, because a hook decided so. Its access is checked afterwards.
    AskingConfirmation {
        request_id: String,
        request: Box<PermissionRequest>,
        inspection: Option<Box<Inspection>>,
    },
    /// `permissionRequest` is running.
    PermissionHooks {
        hook: String,
        access: Box<AccessRequest>,
    },
    AskingUser {
        request_id: String,
    },
    /// A client makes the call since before the session was resumed.
    AwaitingClient {
        request_id: String,
    },
    /// The user is asked about the plan. Without an id it is still being read.
    ReviewingPlan {
        request_id: Option<String>,
    },
    Running,
    /// Hooks about the result are running.
    AfterHooks {
        hook: String,
        outcome: Box<ToolOutcome>,
    },
    Done,
}

impl RunningCall {
    /// A call that is continued after the session was resumed.
    pub(super) fn resumed(arguments: serde_json::Value, call: ToolCall, stage: CallStage) -> Self {
        Self {
            call,
            arguments,
            touched: Vec::new(),
            started: true,
            allowed: false,
            stage,
            asked_of_client: None,
            limited: None,
            print: None,
        }
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.stage, CallStage::Done)
    }

    /// Event that withdraws the open question about the call.
    pub(super) fn question_withdrawn(&self) -> Option<Body> {
        let external =
            |request_id: &String| Body::from(data::ExternalToolCompleted { request_id: request_id.clone() });
        match &self.stage {
            CallStage::AskingPermission { request_id, .. }
            | CallStage::AskingConfirmation { request_id, .. } => {
                let reason = Some("Session aborted".to_owned());
                Some(Body::from(data::PermissionCompleted {
                    request_id: request_id.clone(),
                    tool_call_id: Some(self.call.id.clone()),
                    result: PermissionOutcome::Cancelled { reason },
                }))
            }
            CallStage::AwaitingClient { request_id } => Some(external(request_id)),
            CallStage::Running => self.asked_of_client.as_ref().map(external),
            CallStage::Checking
            | CallStage::BeforeHooks { .. }
            | CallStage::PermissionHooks { .. }
            | CallStage::AskingUser { .. }
            | CallStage::ReviewingPlan { .. }
            | CallStage::AfterHooks { .. }
            | CallStage::Done => None,
        }
    }

    pub(super) fn id(&self) -> &str {
        &self.call.id
    }

    pub(super) fn name(&self) -> &str {
        &self.call.name
    }

    pub(super) fn arguments(&self) -> &serde_json::Value {
        &self.arguments
    }

    pub(super) fn set_arguments(&mut self, arguments: serde_json::Value) {
        self.arguments = arguments;
    }

    pub(super) fn input(&self) -> ToolInput {
        ToolInput { call_id: self.call.id.clone(), kind: self.call.kind, arguments: self.arguments.clone() }
    }
}

/// Arguments of a call as they came, if they are not an object.
fn unreadable<'a>(call: &ToolCall, arguments: &'a serde_json::Value) -> Option<&'a str> {
    arguments.as_str().filter(|_| call.kind == data::ToolType::Function)
}

/// Built-in tools whose purpose is to change files.
pub(super) fn is_file_edit(name: &str) -> bool {
    matches!(name, "create" | "edit" | "apply_patch")
}

impl Session {
    /// Inspects all calls. None is started before all are inspected.
    pub(super) fn begin_tools(&mut self, calls: Vec<ToolCall>, step: &mut Step, context: &mut Context<'_>) {
        calls.iter().for_each(|call| self.load_called(&call.name, step));
        let calls: Vec<RunningCall> = calls
            .into_iter()
            .map(|call| RunningCall {
                arguments: parse_arguments(&call),
                call,
                stage: CallStage::Checking,
                touched: Vec::new(),
                started: false,
                allowed: false,
                asked_of_client: None,
                limited: None,
                print: None,
            })
            .collect();
        let inspect = calls
            .iter()
            .filter(|running| {
                self.refusal(&running.call, &running.arguments).is_none() && self.is_tool(&running.call.name)
            })
            .map(|running| (running.call.name.clone(), running.input()))
            .collect();
        if let Some(run) = &mut self.run {
            run.phase = Phase::Tools { calls, since: context.now };
        }
        step.effects.push(SessionEffect::Inspect(inspect));
    }

    /// Whether a tool of this name exists outside the session's own.
    fn is_tool(&self, name: &str) -> bool {
        OwnTool::named(name).is_none() || self.config.tools.iter().any(|tool| tool.name == name)
    }

    /// Result of a call that no tool can take.
    fn refusal(&self, call: &ToolCall, arguments: &serde_json::Value) -> Option<ToolOutcome> {
        let name = &call.name;
        let tools = self.visible_tools();
        let withdrawn = self.is_withdrawn(name);
        if withdrawn || !tools.iter().any(|spec| spec.name == *name) {
            let names = tools.iter().map(|spec| spec.name.as_str());
            let names: Vec<&str> = names.filter(|name| !self.is_withdrawn(name)).collect();
            let short = match withdrawn {
                true => format!("Tool '{name}' is no longer available."),
                false => format!("Tool '{name}' does not exist."),
            };
            let text = format!("{short} Available tools that can be called are {}.", names.join(", "));
            return Some(ToolOutcome { error: Some(short), ..ToolOutcome::failure(text) });
        }
        let text = unreadable(call, arguments)?;
        let why = match serde_json::from_str::<serde_json::Value>(text) {
            Ok(_) => String::new(),
            Err(error) => format!(" ({error})"),
        };
        Some(ToolOutcome::failure(format!("The arguments of '{name}' are not a JSON object{why}.")))
    }

    pub(super) fn inspected(
        &mut self,
        inspections: Vec<Inspection>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(Run { phase, turn, .. }) = &mut self.run else { return };
        let turn_id = turn.to_string();
        let Phase::Tools { mut calls, since } = std::mem::replace(phase, Phase::Between) else { return };
        if calls.iter().all(|running| running.started) {
            // A hook changed the arguments of some.
            self.set_tools(calls, since);
            for inspection in inspections {
                let id = inspection.call_id.clone();
                self.admit(&id, Some(inspection), step, context);
            }
            return self.finish_tools(step, context);
        }
        for running in &mut calls {
            running.started = true;
            let inspection = inspections.iter().find(|inspection| inspection.call_id == running.call.id);
            let mcp = inspection.and_then(mcp_info);
            let start = data::ToolStart {
                tool_call_id: running.call.id.clone(),
                tool_name: running.call.name.clone(),
                arguments: running.arguments.clone(),
                turn_id: Some(turn_id.clone()),
                model: Some(self.state.model.clone()),
                shell_tool_info: inspection.and_then(shell_info),
                mcp_server_name: mcp.as_ref().map(|(server, _)| server.clone()),
                mcp_tool_name: mcp.map(|(_, tool)| tool),
                parent_tool_call_id: None,
            };
            self.emit(step, start);
        }
        self.final_result("success".to_owned(), step);
        let ids: Vec<String> = calls.iter().map(|running| running.call.id.clone()).collect();
        self.set_tools(calls, since);
        let mut inspections = inspections;
        for id in ids {
            let inspection = inspections
                .iter()
                .position(|inspection| inspection.call_id == id)
                .map(|index| inspections.swap_remove(index));
            self.decide(&id, inspection, step, context);
        }
        self.finish_tools(step, context);
    }

    fn set_tools(&mut self, calls: Vec<RunningCall>, since: Timestamp) {
        if let Some(run) = &mut self.run {
            run.phase = Phase::Tools { calls, since };
        }
    }

    pub(super) fn running(&mut self, id: &str) -> Option<&mut RunningCall> {
        match &mut self.run {
            Some(Run { phase: Phase::Tools { calls, .. }, .. }) => {
                calls.iter_mut().find(|running| running.call.id == id && !running.is_done())
            }
            _ => None,
        }
    }

    /// Starts a call: it runs, waits for an answer, or is completed at once.
    fn decide(
        &mut self,
        id: &str,
        inspection: Option<Inspection>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        // Arguments that cannot be parsed cannot be checked, and the call does not run.
        let readable = |running: &mut RunningCall| unreadable(&running.call, &running.arguments).is_none();
        if self.asks(HookKind::PreToolUse) && self.running(id).is_some_and(readable) {
            return self.before_tool(id, inspection, step, context);
        }
        self.admit(id, inspection, step, context);
    }

    /// Continues a call that hooks have let pass: it runs, waits for an answer, or is completed at once.
    pub(super) fn admit(
        &mut self,
        id: &str,
        inspection: Option<Inspection>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(running) = self.running(id) else { return };
        let (call, arguments) = (running.call.clone(), running.arguments.clone());
        if let Some(outcome) = self.refusal(&call, &arguments) {
            return self.not_run(id, outcome, step, context);
        }
        let name = call.name;
        let own = OwnTool::named(&name).filter(|_| self.config.tools.iter().all(|tool| tool.name != name));
        match own {
            Some(OwnTool::TaskComplete) => return self.task_complete(id, &arguments, step),
            Some(OwnTool::AskUser) => return self.ask_user(id, &arguments, step, context),
            Some(OwnTool::Agents(tool)) => match tool.parse(&arguments) {
                Ok(call) => return self.start_agent_call(id, call, step),
                Err(outcome) => return self.not_run(id, outcome, step, context),
            },
            Some(OwnTool::ExitPlanMode) => return self.hand_in_plan(id, &arguments, step),
            Some(OwnTool::ToolSearch) => return self.search_tools(id, &arguments, step),
            None => {}
        }
        let access = match inspection.map(|inspection| inspection.access) {
            Some(Ok(access)) => access,
            Some(Err(outcome)) => return self.not_run(id, outcome, step, context),
            None => {
                let outcome = ToolOutcome::failure(format!("Tool '{name}' is not there."));
                return self.not_run(id, outcome, step, context);
            }
        };
        match access {
            Access::None => self.run_tool(id, Vec::new(), Grant::Full, step),
            Access::Needs(request) => self.decide_access(id, *request, step, context),
        }
    }

    /// Completes a call that failed before it ran. For hooks that is a failure like any other.
    fn not_run(&mut self, id: &str, outcome: ToolOutcome, step: &mut Step, context: &mut Context<'_>) {
        let asked = outcome.status == ToolStatus::Failure;
        let outcome = if asked { self.after_tool(id, outcome, step, context) } else { Some(outcome) };
        if let Some(outcome) = outcome {
            self.complete(id, outcome, step);
        }
    }

    pub(super) fn run_tool(&mut self, id: &str, touched: Vec<PathBuf>, grant: Grant, step: &mut Step) {
        let Some(running) = self.running(id) else { return };
        running.stage = CallStage::Running;
        running.touched.extend(touched);
        let effect = SessionEffect::RunTool(running.call.name.clone(), running.input(), grant);
        step.effects.push(effect);
    }

    fn task_complete(&mut self, id: &str, arguments: &serde_json::Value, step: &mut Step) {
        let summary = arguments["summary"].as_str().unwrap_or_default().to_owned();
        let mut outcome = ToolOutcome::success(summary.clone());
        outcome.detailed = Some(format!("\u{2713} Task completed: {summary}"));
        self.complete(id, outcome, step);
        if let Some(run) = &mut self.run {
            run.completed = true;
        }
        self.emit(step, data::TaskComplete { summary: Some(summary), success: Some(true) });
    }

    fn ask_user(
        &mut self,
        id: &str,
        arguments: &serde_json::Value,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(question) = arguments["question"].as_str() else {
            return self.complete(id, ToolOutcome::failure("\"question\": Required"), step);
        };
        if self.mode() == Mode::Autopilot || !self.config.clients.questions {
            let answer = format!("User responded: {}", notices::NOBODY_TO_ASK);
            return self.complete(id, ToolOutcome::success(answer), step);
        }
        let choices = arguments["choices"]
            .as_array()
            .map(|choices| choices.iter().filter_map(serde_json::Value::as_str).map(str::to_owned).collect());
        let request_id = context.entropy.uuid();
        if let Some(running) = self.running(id) {
            running.stage = CallStage::AskingUser { request_id: request_id.clone() };
        }
        let requested = data::UserInputRequested {
            request_id,
            question: question.to_owned(),
            choices,
            allow_freeform: Some(true),
            tool_call_id: Some(id.to_owned()),
        };
        self.emit(step, requested);
    }

    pub(super) fn question_answered(
        &mut self,
        request_id: &str,
        answer: String,
        was_freeform: bool,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let asked =
            |stage: &CallStage| matches!(stage, CallStage::AskingUser { request_id: id } if id == request_id);
        let Some(id) = self.waiting_call(asked) else { return };
        let completed = data::UserInputCompleted {
            request_id: request_id.to_owned(),
            answer: Some(answer.clone()),
            was_freeform: Some(was_freeform),
        };
        self.emit(step, completed);
        let verb = if was_freeform { "responded" } else { "selected" };
        self.complete(&id, ToolOutcome::success(format!("User {verb}: {answer}")), step);
        self.finish_tools(step, context);
    }

    /// Emits an event once all calls of the turn have their results.
    pub(super) fn after_tools(&mut self, body: Body) {
        if let Some(run) = &mut self.run {
            run.afterwards.push(body);
        }
    }

    pub(super) fn waiting_call(&self, waits: impl Fn(&CallStage) -> bool) -> Option<String> {
        match &self.run {
            Some(Run { phase: Phase::Tools { calls, .. }, .. }) => {
                calls.iter().find(|running| waits(&running.stage)).map(|running| running.call.id.clone())
            }
            _ => None,
        }
    }

    pub(super) fn progress(&mut self, body: Body, step: &mut Step) {
        // Output of a cancelled call that arrives after the end of its run is dropped.
        let cwd = &self.state.cwd;
        let Some(Run { phase: Phase::Tools { calls, .. }, call_options, .. }) = &mut self.run else { return };
        let body = match body {
            Body::ExternalToolRequested(mut requested) => {
                let header = |name: &str| call_options.headers.iter().find(|(known, _)| known == name);
                // A call to a client belongs to the trace of the prompt that led to it.
                requested.traceparent = header("traceparent").map(|(_, value)| value.clone());
                requested.tracestate = header("tracestate").map(|(_, value)| value.clone());
                requested.working_directory = Some(cwd.clone());
                if let Some(call) = calls.iter_mut().find(|call| call.id() == requested.tool_call_id) {
                    call.asked_of_client = Some(requested.request_id.clone());
                }
                requested.into()
            }
            Body::ExternalToolCompleted(completed) => {
                for call in calls {
                    call.asked_of_client.take_if(|asked| *asked == completed.request_id);
                }
                completed.into()
            }
            other => other,
        };
        self.emit(step, body);
    }

    pub(super) fn tool_done(
        &mut self,
        id: &str,
        outcome: ToolOutcome,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if self.running(id).is_none() {
            return;
        }
        let Some(outcome) = self.reconsider(id, outcome, step, context) else { return };
        let Some(mut outcome) = self.after_tool(id, outcome, step, context) else { return };
        if let Some(Run { phase: Phase::Tools { since, .. }, .. }) = &self.run {
            let took = millis_between(*since, context.now);
            outcome
                .telemetry
                .get_or_insert_with(|| json!({ "properties": {}, "metrics": { "durationMs": took } }));
        }
        self.complete(id, outcome, step);
        self.finish_tools(step, context);
    }

    pub(super) fn complete(&mut self, id: &str, mut outcome: ToolOutcome, step: &mut Step) {
        let Some(run) = &mut self.run else { return };
        let (interaction_id, turn_id) = (run.interaction_id.clone(), run.turn.to_string());
        run.rejected |= outcome.status == ToolStatus::Rejected;
        run.ended |= outcome.ends_run && outcome.status == ToolStatus::Success;
        let succeeded = outcome.status == ToolStatus::Success;
        if let Some(invoked_skill) = outcome.skill.take() {
            self.invoke_skill(*invoked_skill, &mut outcome, step);
        }
        let Some(running) = self.running(id) else { return };
        let name = running.call.name.clone();
        let print = CallPrint::new(&name, &running.arguments, succeeded, &outcome.text);
        self.tell_repetition(&name, print, &mut outcome);
        let Some(running) = self.running(id) else { return };
        running.stage = CallStage::Done;
        running.print = Some(print);
        if !succeeded {
            running.touched.clear();
        }
        let (exit_code, changes, telemetry, sandboxed) =
            (outcome.exit_code, outcome.changes.clone(), outcome.telemetry.clone(), outcome.sandboxed);
        let (result, error) = result_of(outcome);
        let mut complete = data::ToolComplete {
            tool_call_id: id.to_owned(),
            model: Some(self.state.model.clone()),
            interaction_id: Some(interaction_id),
            turn_id: Some(turn_id),
            shell_execution: exit_code.map(|exit_code| data::ShellExecution { exit_code }),
            success: succeeded,
            result,
            error,
            tool_telemetry: Some(telemetry.unwrap_or_else(|| json!({ "properties": {}, "metrics": {} }))),
            sandboxed: sandboxed.then_some(true),
            parent_tool_call_id: None,
        };
        if changes != data::CodeChanges::default() {
            complete.set_code_changes(&changes);
            if let Some(run) = &mut self.run {
                run.endings.changed();
            }
        }
        self.emit(step, complete);
    }

    /// Invokes the skill of a call. A skill that this conversation has already is not added again.
    fn invoke_skill(&mut self, invoked_skill: InvokedSkill, outcome: &mut ToolOutcome, step: &mut Step) {
        let InvokedSkill { invoked, context } = invoked_skill;
        if self.state.skills.iter().any(|known| known.path == invoked.path) {
            outcome.text = notices::skill_is_loaded(&invoked.name);
            outcome.detailed = None;
            return;
        }
        self.trust_skill(&invoked);
        self.emit(step, invoked);
        self.after_tools(context.into());
    }

    /// Ends the turn when its last call is done: the next turn follows, or the end of the run.
    pub(super) fn finish_tools(&mut self, step: &mut Step, context: &mut Context<'_>) {
        let Some(Run { phase: Phase::Tools { calls, since }, completed, rejected, ended, .. }) = &self.run
        else {
            return;
        };
        if !calls.iter().all(RunningCall::is_done) {
            return;
        }
        let (completed, rejected, ended) = (*completed, *rejected, *ended);
        let touched: Vec<(PathBuf, String)> = calls
            .iter()
            .flat_map(|running| running.touched.iter().map(|path| (path.clone(), running.call.name.clone())))
            .collect();
        let prints = calls.iter().filter_map(|running| Some((running.call.name.clone(), running.print?)));
        let prints: Vec<(String, CallPrint)> = prints.collect();
        let took = Duration::from_millis(millis_between(*since, context.now));
        self.end_turn(step);
        let afterwards = self.run.as_mut().map(|run| std::mem::take(&mut run.afterwards)).unwrap_or_default();
        for body in afterwards {
            self.emit(step, body);
        }
        if completed {
            self.run_stop_hooks(Ending::TaskComplete, step, context);
        } else if rejected {
            self.end_run(Ending::Rejected, step, context);
        } else if ended {
            self.run_stop_hooks(Ending::Answered, step, context);
        } else if self.check_repetition(&prints, took, step, context) {
            // The run was stopped.
        } else if self.config.discovers_instructions && !touched.is_empty() {
            if let Some(run) = &mut self.run {
                run.phase = Phase::Discovering;
            }
            step.effects.push(SessionEffect::Discover(touched));
        } else {
            self.begin_turn(step, context);
        }
    }

    pub(super) fn discovered(
        &mut self,
        reminders: Vec<Reminder>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        if !matches!(&self.run, Some(Run { phase: Phase::Discovering, .. })) {
            return;
        }
        for reminder in reminders {
            let (dir, file) = reminder.source.rsplit_once('/').unwrap_or(("", &reminder.source));
            let description = Some(format!("{file} from {}/", if dir.is_empty() { "." } else { dir }));
            let notification = data::SystemNotification {
                content: format!("<system_reminder>\n{}\n</system_reminder>", reminder.text),
                kind: NotificationKind::InstructionDiscovered {
                    source_path: reminder.source,
                    trigger_file: reminder.trigger_file,
                    trigger_tool: reminder.trigger_tool,
                    description,
                },
            };
            self.emit(step, notification);
        }
        self.begin_turn(step, context);
    }
}

fn shell_info(inspection: &Inspection) -> Option<data::ShellToolInfo> {
    let Ok(Access::Needs(access)) = &inspection.access else { return None };
    let PermissionRequest::Shell(shell) = &access.request else { return None };
    Some(data::ShellToolInfo {
        possible_paths: shell.possible_paths.clone(),
        has_write_file_redirection: shell.has_write_file_redirection,
    })
}

/// Result and error of an outcome for its event.
pub(super) fn result_of(outcome: ToolOutcome) -> (Option<data::ToolResult>, Option<data::ToolError>) {
    let Some(code) = error_code(outcome.status) else {
        let content = outcome.content.map(|content| *content).unwrap_or_default();
        let result = data::ToolResult {
            detailed_content: Some(outcome.detailed.unwrap_or_else(|| outcome.text.clone())),
            content: outcome.text,
            contents: content.blocks,
            structured_content: content.structured,
            binary_results_for_llm: binaries(outcome.images),
        };
        return (Some(result), None);
    };
    let code = Some(code.to_owned());
    match outcome.error {
        None => {
            // Content that a server sent with a failure is kept.
            let result = outcome.content.map(|content| data::ToolResult {
                content: outcome.text.clone(),
                contents: content.blocks,
                structured_content: content.structured,
                ..Default::default()
            });
            (result, Some(data::ToolError { message: outcome.text, code }))
        }
        // People see the short form; the log keeps the model's text beside it.
        Some(message) => {
            let told = data::ToolResult { content: outcome.text, ..Default::default() };
            (Some(told), Some(data::ToolError { message, code }))
        }
    }
}

/// Server and tool of an MCP call.
fn mcp_info(inspection: &Inspection) -> Option<(String, String)> {
    let Ok(Access::Needs(access)) = &inspection.access else { return None };
    let PermissionRequest::Mcp { server_name, tool_name, .. } = &access.request else { return None };
    Some((server_name.clone(), tool_name.clone()))
}

fn error_code(status: ToolStatus) -> Option<&'static str> {
    match status {
        ToolStatus::Success => None,
        ToolStatus::Failure => Some("failure"),
        ToolStatus::Denied => Some("denied"),
        ToolStatus::Rejected => Some("rejected"),
        ToolStatus::Interrupted => Some("interrupted"),
        ToolStatus::Timeout => Some("timeout"),
    }
}

/// Images for the event, each with the text before it as its description.
fn binaries(parts: Vec<Part>) -> Vec<data::BinaryResult> {
    let mut description = None;
    let mut binaries = Vec::new();
    for part in parts {
        match part {
            Part::Text(text) => description = Some(text),
            // Tools return no documents.
            Part::Document { .. } => {}
            Part::Image { mime_type, data } => binaries.push(data::BinaryResult {
                data,
                mime_type,
                kind: "image".to_owned(),
                description: description.take(),
            }),
        }
    }
    binaries
}
