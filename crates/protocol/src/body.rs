//! The table of event types. Types that are not in it are kept as they are.

use serde_json::value::{RawValue, to_raw_value};

use crate::data::*;

macro_rules! events {
    ($( $variant:ident ( $data:ident ) = $kind:literal $lifetime:ident; )*) => {
        /// Content of an event: its type with the data of that type. `Unknown` holds types that are not in the table, and
        /// data that does not fit its type.
        #[derive(Debug)]
        pub enum Body {
            $( $variant($data), )*
            Unknown { kind: String, data: Box<RawValue> },
        }

        // Not derived, since a derived one is inlined: every crate that clones an event would have a copy of its own, of 30 KB.
        impl Clone for Body {
            fn clone(&self) -> Self {
                match self {
                    $( Body::$variant(data) => Body::$variant(data.clone()), )*
                    Body::Unknown { kind, data } => Body::Unknown { kind: kind.clone(), data: data.clone() },
                }
            }
        }

        impl Body {
            /// Type of the event as the wire has it.
            pub fn kind(&self) -> &str {
                match self {
                    $( Body::$variant(_) => $kind, )*
                    Body::Unknown { kind, .. } => kind,
                }
            }

            /// Kind of the event, if its type is in the table. Data that could not be read does not change the kind.
            pub fn event_kind(&self) -> Option<EventKind> {
                match self {
                    $( Body::$variant(_) => Some(EventKind::$variant), )*
                    Body::Unknown { kind, .. } => EventKind::of_type(kind),
                }
            }

            /// Whether the event is published without being logged.
            pub(crate) fn is_ephemeral(&self) -> bool {
                match self {
                    $( Body::$variant(data) => events!(@ephemeral $lifetime data), )*
                    Body::Unknown { .. } => false,
                }
            }

            pub(crate) fn parse(kind: &str, data: &RawValue) -> Self {
                let known = match kind {
                    $( $kind => serde_json::from_str(data.get()).map(Body::$variant).ok(), )*
                    _ => None,
                };
                known.unwrap_or_else(|| Body::Unknown { kind: kind.to_owned(), data: data.to_owned() })
            }

            /// The `data` member as text. One serializer writes it, whatever the event is written to: the code of all types is
            /// too large to have it once for each.
            pub(crate) fn data_text(&self) -> Result<Box<RawValue>, serde_json::Error> {
                match self {
                    $( Body::$variant(data) => to_raw_value(data), )*
                    Body::Unknown { data, .. } => Ok(data.clone()),
                }
            }
        }

        /// Kind of an event: one variant for each type in the table. Types that are not in the table have none.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum EventKind {
            $( $variant, )*
        }

        impl EventKind {
            /// Every kind, in the order of the table.
            pub const ALL: &'static [EventKind] = &[$( EventKind::$variant, )*];

            /// The `type` on the wire.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $( EventKind::$variant => $kind, )*
                }
            }

            /// The kind whose `type` on the wire this is.
            pub fn of_type(name: &str) -> Option<Self> {
                match name {
                    $( $kind => Some(EventKind::$variant), )*
                    _ => None,
                }
            }
        }

        $( impl From<$data> for Body {
            fn from(data: $data) -> Self { Body::$variant(data) }
        } )*
    };
    (@ephemeral ephemeral $data:ident) => {{ let _ = $data; true }};
    (@ephemeral logged $data:ident) => {{ let _ = $data; false }};
    (@ephemeral either $data:ident) => { $data.is_ephemeral() };
}

events! {
    SessionStart(SessionStart) = "session.start" logged;
    SessionResume(SessionResume) = "session.resume" logged;
    SessionShutdown(SessionShutdown) = "session.shutdown" logged;
    Handoff(Handoff) = "session.handoff" logged;
    SessionError(SessionError) = "session.error" either;
    SessionWarning(SessionWarning) = "session.warning" either;
    SessionInfo(SessionInfo) = "session.info" either;
    SessionIdle(SessionIdle) = "session.idle" ephemeral;
    ModelChange(ModelChange) = "session.model_change" logged;
    TitleChanged(TitleChanged) = "session.title_changed" ephemeral;
    PlanChanged(PlanChanged) = "session.plan_changed" logged;
    WorkspaceFileChanged(WorkspaceFileChanged) = "session.workspace_file_changed" logged;
    ContextChanged(ContextChanged) = "session.context_changed" logged;
    HistoryTruncated(HistoryTruncated) = "hangar.history_truncated" logged;
    Forked(Forked) = "hangar.forked" logged;
    ContextCleared(ContextCleared) = "session.context_cleared" logged;
    SnapshotRewind(SnapshotRewind) = "session.snapshot_rewind" ephemeral;
    CapabilitiesChanged(CapabilitiesChanged) = "capabilities.changed" ephemeral;
    CommandQueued(CommandQueued) = "command.queued" ephemeral;
    CommandCompleted(CommandCompleted) = "command.completed" ephemeral;
    CommandExecute(CommandExecute) = "command.execute" ephemeral;
    CommandsChanged(CommandsChanged) = "commands.changed" ephemeral;
    ModeChanged(ModeChanged) = "session.mode_changed" logged;
    PermissionsChanged(PermissionsChanged) = "session.permissions_changed" logged;
    RunAssigned(RunAssigned) = "hangar.run_assigned" logged;
    AgentAssigned(AgentAssigned) = "hangar.agent_assigned" logged;
    ModeNoticeDelivered(ModeNoticeDelivered) = "session.mode_notice_delivered" logged;
    TaskComplete(TaskComplete) = "session.task_complete" logged;
    AutopilotStopped(AutopilotStopped) = "session.autopilot_stopped" ephemeral;
    CompactionStart(CompactionStart) = "session.compaction_start" logged;
    CompactionComplete(CompactionComplete) = "session.compaction_complete" logged;
    Truncation(Truncation) = "session.truncation" logged;
    PlanAndTodos(PlanAndTodos) = "hangar.commitments" logged;
    ImagesWithheld(ImagesWithheld) = "hangar.images_withheld" logged;
    ReasoningWithheld(ReasoningWithheld) = "hangar.reasoning_withheld" logged;
    ModelItems(ModelItems) = "hangar.model_items" logged;
    Reservation(Reservation) = "hangar.reservation" logged;
    ToolsOffered(ToolsOffered) = "hangar.tools_offered" logged;
    SkillInvoked(SkillInvoked) = "skill.invoked" logged;
    UsageInfo(UsageInfo) = "session.usage_info" ephemeral;
    UsageRecord(UsageRecord) = "session.usage_record" logged;
    TodosChanged(TodosChanged) = "session.todos_changed" ephemeral;
    BackgroundTasksChanged(BackgroundTasksChanged) = "session.background_tasks_changed" ephemeral;
    SkillsLoaded(SkillsLoaded) = "session.skills_loaded" ephemeral;
    McpServersLoaded(McpServersLoaded) = "session.mcp_servers_loaded" ephemeral;
    McpServerStatusChanged(McpServerStatusChanged) = "session.mcp_server_status_changed" ephemeral;
    McpOauthRequired(McpOauthRequired) = "mcp.oauth_required" ephemeral;
    McpOauthCompleted(McpOauthCompleted) = "mcp.oauth_completed" ephemeral;
    McpToolsListChanged(McpToolsListChanged) = "mcp.tools.list_changed" ephemeral;
    McpResourcesListChanged(McpResourcesListChanged) = "mcp.resources.list_changed" ephemeral;
    McpPromptsListChanged(McpPromptsListChanged) = "mcp.prompts.list_changed" ephemeral;
    ElicitationRequested(ElicitationRequested) = "elicitation.requested" ephemeral;
    ElicitationCompleted(ElicitationCompleted) = "elicitation.completed" ephemeral;
    SamplingRequested(SamplingRequested) = "sampling.requested" ephemeral;
    SamplingCompleted(SamplingCompleted) = "sampling.completed" ephemeral;
    ToolsUpdated(ToolsUpdated) = "session.tools_updated" ephemeral;
    PendingMessagesModified(PendingMessagesModified) = "pending_messages.modified" ephemeral;
    UserMessage(UserMessage) = "user.message" logged;
    SystemMessage(SystemMessage) = "system.message" logged;
    SystemNotification(SystemNotification) = "system.notification" logged;
    TurnStart(TurnStart) = "assistant.turn_start" logged;
    TurnEnd(TurnEnd) = "assistant.turn_end" logged;
    TurnRetry(TurnRetry) = "assistant.turn_retry" ephemeral;
    AssistantMessage(AssistantMessage) = "assistant.message" logged;
    AnswerCut(AnswerCut) = "hangar.answer_cut" logged;
    MessageStart(MessageStart) = "assistant.message_start" ephemeral;
    MessageDelta(MessageDelta) = "assistant.message_delta" ephemeral;
    Reasoning(AssistantReasoning) = "assistant.reasoning" ephemeral;
    ReasoningDelta(ReasoningDelta) = "assistant.reasoning_delta" ephemeral;
    ToolCallDelta(ToolCallDelta) = "assistant.tool_call_delta" ephemeral;
    AssistantUsage(AssistantUsage) = "assistant.usage" ephemeral;
    AssistantIdle(AssistantIdle) = "assistant.idle" ephemeral;
    ModelCallStart(ModelCallStart) = "model.call_start" ephemeral;
    ModelCallFinished(ModelCallFinished) = "model.call_finished" ephemeral;
    ModelCallFailure(ModelCallFailure) = "model.call_failure" ephemeral;
    ModelCallFinalResult(ModelCallFinalResult) = "model.call_final_result" ephemeral;
    ToolStart(ToolStart) = "tool.execution_start" logged;
    ToolPartialResult(ToolPartialResult) = "tool.execution_partial_result" ephemeral;
    ToolShellOutput(ToolShellOutput) = "tool.shell_output" ephemeral;
    ToolProgress(ToolProgress) = "tool.execution_progress" ephemeral;
    ToolComplete(ToolComplete) = "tool.execution_complete" logged;
    ToolSearchActivated(ToolSearchActivated) = "tool_search.activated" logged;
    PermissionRequested(PermissionRequested) = "permission.requested" logged;
    PermissionCompleted(PermissionCompleted) = "permission.completed" logged;
    ExternalToolRequested(ExternalToolRequested) = "external_tool.requested" logged;
    ExternalToolCompleted(ExternalToolCompleted) = "external_tool.completed" ephemeral;
    HookStart(HookStart) = "hook.start" logged;
    HookEnd(HookEnd) = "hook.end" logged;
    HookProgress(HookProgress) = "hook.progress" ephemeral;
    SkillContextDelivered(SkillContextDelivered) = "skill.context_delivered" logged;
    UserInputRequested(UserInputRequested) = "user_input.requested" ephemeral;
    UserInputCompleted(UserInputCompleted) = "user_input.completed" ephemeral;
    ExitPlanModeRequested(ExitPlanModeRequested) = "exit_plan_mode.requested" ephemeral;
    ExitPlanModeCompleted(ExitPlanModeCompleted) = "exit_plan_mode.completed" ephemeral;
    AutoModeSwitchRequested(AutoModeSwitchRequested) = "auto_mode_switch.requested" ephemeral;
    AutoModeSwitchCompleted(AutoModeSwitchCompleted) = "auto_mode_switch.completed" ephemeral;
    EphemeralQuery(EphemeralQuery) = "ui.ephemeral_query" ephemeral;
    SessionLimitsChanged(SessionLimitsChanged) = "session.session_limits_changed" logged;
    ToolUserRequested(ToolUserRequested) = "tool.user_requested" logged;
    Abort(Abort) = "abort" logged;
    AgentInterrupted(AgentInterrupted) = "agent.interrupted" ephemeral;
    SubagentStarted(SubagentStarted) = "subagent.started" logged;
    SubagentConfigured(SubagentConfigured) = "subagent.configured" logged;
    SubagentSelected(SubagentSelected) = "subagent.selected" logged;
    SubagentDeselected(SubagentDeselected) = "subagent.deselected" logged;
    SubagentCompleted(SubagentCompleted) = "subagent.completed" logged;
    SubagentFailed(SubagentFailed) = "subagent.failed" logged;
    AssistantIntent(AssistantIntent) = "assistant.intent" ephemeral;
    StreamingDelta(StreamingDelta) = "assistant.streaming_delta" ephemeral;
    RemoteSteerableChanged(RemoteSteerableChanged) = "session.remote_steerable_changed" logged;
    ScheduleCreated(ScheduleCreated) = "session.schedule_created" logged;
    ScheduleCancelled(ScheduleCancelled) = "session.schedule_cancelled" logged;
    CanvasOpened(CanvasOpened) = "session.canvas.opened" ephemeral;
    CanvasClosed(CanvasClosed) = "session.canvas.closed" ephemeral;
    CanvasUnavailable(CanvasUnavailable) = "session.canvas.unavailable" ephemeral;
    CanvasRegistryChanged(CanvasRegistryChanged) = "session.canvas.registry_changed" ephemeral;
    CanvasRecorded(CanvasRecorded) = "session.canvas.recorded" logged;
    CanvasRemoved(CanvasRemoved) = "session.canvas.removed" logged;
    ExtensionsLoaded(ExtensionsLoaded) = "session.extensions_loaded" ephemeral;
    AttachmentsPushed(AttachmentsPushed) = "session.extensions.attachments_pushed" ephemeral;
}

impl EventKind {
    /// Whether events of this kind are for resuming the session from its log, not for its listeners.
    pub fn is_internal(self) -> bool {
        matches!(
            self,
            Self::UsageRecord | Self::ModelItems | Self::Reservation | Self::ToolsOffered | Self::Forked
        )
    }
}

impl std::fmt::Display for EventKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Body {
    /// The `data` member alone, for consumers that want no envelope.
    pub fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::from_str(self.data_text()?.get())
    }
}
