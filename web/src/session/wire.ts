// Parses events of the server into facts of the transcript. Events come from models, agents and old logs, so every field is
// checked before it is used; an event that a reader does not need to see is `null`.

import type { Event } from "../api/openapi";
import { tokens } from "../format";
import { type Fields, type Json, count, fields, list, text, textOrNull } from "../json";

/** An event as it is in the log, in the vocabulary of Copilot CLI. */
export type WireEvent = Event;

export interface ToolRequest {
  readonly call: string;
  readonly name: string;
  readonly args: Json;
  readonly title: string | null;
}

export interface Picture {
  readonly mimeType: string;
  readonly base64: string;
}

export type AskKind = "permission" | "question" | "elicitation" | "plan";

export type Outcome = "approved" | "denied" | "answered" | "cancelled";

export type NoticeLevel = "info" | "good" | "warning" | "error";

export type Fact =
  | { is: "userSaid"; text: string; delivery: string | null; attachments: string[]; source: string | null }
  | { is: "turnStarted" }
  | { is: "turnEnded" }
  | { is: "messageDelta"; message: string; piece: string }
  | { is: "messageDone"; message: string; text: string; reasoning: string; requests: ToolRequest[] }
  | { is: "answerCut"; message: string; text: string; reasoning: string; recovered: boolean }
  | { is: "reasoningDelta"; reasoning: string; piece: string }
  | { is: "reasoningDone"; reasoning: string; text: string }
  | { is: "toolWriting"; call: string; name: string | null; piece: string }
  | { is: "toolStarted"; request: ToolRequest }
  | { is: "toolOutput"; call: string; text: string }
  | { is: "toolProgress"; call: string; message: string }
  | {
      is: "toolDone";
      call: string;
      success: boolean;
      output: string;
      diff: string | null;
      error: string | null;
      exitCode: number | null;
      pictures: Picture[];
    }
  | { is: "asked"; request: string; kind: AskKind; call: string | null }
  | { is: "answered"; request: string; outcome: Outcome; detail: string | null }
  | { is: "agentStarted"; call: string; name: string; description: string; background: boolean; model: string | null }
  | { is: "agentEnded"; call: string; error: string | null; tools: number | null; tokens: number | null; ms: number | null }
  /** `instead`: of an earlier notice with that text, which was about the beginning of the same. */
  | { is: "notice"; level: NoticeLevel; text: string; detail: string | null; instead: string | null }
  | { is: "rewound"; upTo: string }
  | { is: "modelIs"; model: string; effort: string | null; changed: boolean }
  | { is: "context"; tokens: number; limit: number };

function toolRequest(value: unknown): ToolRequest {
  const data = fields(value);
  return {
    call: text(data["toolCallId"]),
    name: text(data["name"]) || text(data["toolName"]) || "tool",
    args: (data["arguments"] ?? null) as Json,
    title: textOrNull(data["intentionSummary"]) ?? textOrNull(data["toolTitle"]),
  };
}

/** A unified diff, if that is what a tool's detailed output is. */
export function diffIn(detailed: string): string | null {
  const start = detailed.trimStart();
  const isDiff = start.startsWith("diff --git ") || /^--- .*\n\+\+\+ .*\n@@ /.test(start);
  return isDiff ? start : null;
}

function toolDone(data: Fields): Fact {
  const result = fields(data["result"]);
  const error = fields(data["error"]);
  const detailed = text(result["detailedContent"]);
  const diff = diffIn(detailed);
  const pictures: Picture[] = [];
  for (const item of list(result["binaryResultsForLlm"])) {
    const binary = fields(item);
    const mimeType = text(binary["mimeType"]);
    // Raster formats only: an SVG is a document that could carry scripts.
    if (/^image\/(png|jpeg|gif|webp)$/.test(mimeType)) pictures.push({ mimeType, base64: text(binary["data"]) });
  }
  return {
    is: "toolDone",
    call: text(data["toolCallId"]),
    success: data["success"] === true,
    output: diff === null ? text(result["content"]) || detailed : text(result["content"]),
    diff,
    error: textOrNull(error["message"]),
    exitCode: count(fields(data["shellExecution"])["exitCode"]),
    pictures,
  };
}

function outcomeOf(kind: string): Outcome {
  if (kind.startsWith("approved")) return "approved";
  if (kind.startsWith("denied")) return "denied";
  return "cancelled";
}

/** In words, for the few outcomes that a person did not choose. */
const DENIALS: { readonly [kind: string]: string } = {
  "denied-by-rules": "a rule forbids it",
  "denied-no-approval-rule-and-could-not-request-from-user": "nobody could be asked",
  "denied-by-content-exclusion-policy": "a policy excludes this content",
};

function notice(level: NoticeLevel, words: string, detail: string | null = null, instead: string | null = null): Fact {
  return { is: "notice", level, text: words, detail, instead };
}

const COMPACTING = "Compacting the conversation to make room";

function attachmentName(value: unknown): string {
  const data = fields(value);
  return text(data["displayName"]) || text(data["path"]) || text(data["filePath"]) || text(data["title"]) || "file";
}

export function read(event: WireEvent): Fact | null {
  const data = fields(event.data);
  const call = text(data["toolCallId"]);
  const request = text(data["requestId"]);
  switch (event.type) {
    case "user.message":
      return {
        is: "userSaid",
        text: text(data["content"]),
        delivery: textOrNull(data["delivery"]),
        attachments: list(data["attachments"]).map(attachmentName),
        source: textOrNull(data["source"]),
      };
    case "assistant.turn_start":
      return { is: "turnStarted" };
    case "assistant.turn_end":
      return { is: "turnEnded" };
    case "assistant.message_delta":
      return { is: "messageDelta", message: text(data["messageId"]), piece: text(data["deltaContent"]) };
    case "assistant.message":
      return {
        is: "messageDone",
        message: text(data["messageId"]),
        text: text(data["content"]),
        reasoning: text(data["reasoningText"]),
        requests: list(data["toolRequests"]).map(toolRequest),
      };
    case "hangar.answer_cut":
      return {
        is: "answerCut",
        message: text(data["messageId"]),
        text: text(data["content"]),
        reasoning: text(data["reasoningText"]),
        recovered: data["recovered"] === true,
      };
    case "assistant.reasoning_delta":
      return { is: "reasoningDelta", reasoning: text(data["reasoningId"]), piece: text(data["deltaContent"]) };
    case "assistant.reasoning":
      return { is: "reasoningDone", reasoning: text(data["reasoningId"]), text: text(data["content"]) };
    case "assistant.tool_call_delta":
      return { is: "toolWriting", call, name: textOrNull(data["toolName"]), piece: text(data["inputDelta"]) };
    case "tool.execution_start":
    case "tool.user_requested":
      return { is: "toolStarted", request: toolRequest(data) };
    case "tool.execution_partial_result":
      return { is: "toolOutput", call, text: text(data["partialOutput"]) };
    case "tool.execution_progress":
      return { is: "toolProgress", call, message: text(data["progressMessage"]) };
    case "tool.execution_complete":
      return toolDone(data);
    case "permission.requested":
      return { is: "asked", request, kind: "permission", call: textOrNull(fields(data["permissionRequest"])["toolCallId"]) };
    case "permission.completed": {
      const result = fields(data["result"]);
      const kind = text(result["kind"]);
      const detail = textOrNull(result["feedback"]) ?? DENIALS[kind] ?? null;
      return { is: "answered", request, outcome: outcomeOf(kind), detail };
    }
    case "user_input.requested":
      return { is: "asked", request, kind: "question", call: textOrNull(call) };
    case "user_input.completed": {
      const answer = textOrNull(data["answer"]);
      return { is: "answered", request, outcome: answer === null ? "cancelled" : "answered", detail: answer };
    }
    case "elicitation.requested":
      return { is: "asked", request, kind: "elicitation", call: textOrNull(call) };
    case "elicitation.completed": {
      const action = text(data["action"]);
      const outcome = action === "accept" ? "answered" : action === "decline" ? "denied" : "cancelled";
      return { is: "answered", request, outcome, detail: null };
    }
    case "exit_plan_mode.requested":
      return { is: "asked", request, kind: "plan", call: null };
    case "exit_plan_mode.completed":
      return {
        is: "answered",
        request,
        outcome: data["approved"] === true ? "approved" : "denied",
        detail: textOrNull(data["feedback"]),
      };
    case "subagent.started":
      return {
        is: "agentStarted",
        call,
        name: text(data["agentDisplayName"]) || text(data["agentName"]) || "agent",
        description: text(data["agentDescription"]),
        background: data["executionMode"] === "background",
        model: textOrNull(data["model"]),
      };
    case "subagent.completed":
    case "subagent.failed":
      return {
        is: "agentEnded",
        call,
        error: event.type === "subagent.failed" ? text(data["error"]) || "failed" : null,
        tools: count(data["totalToolCalls"]),
        tokens: count(data["totalTokens"]),
        ms: count(data["durationMs"]),
      };
    case "session.start":
    case "session.model_change": {
      const model = text(data["newModel"]) || text(data["selectedModel"]);
      if (model === "") return null;
      const effort = textOrNull(data["reasoningEffort"]);
      return { is: "modelIs", model, effort, changed: event.type === "session.model_change" };
    }
    case "session.resume":
      return notice("info", "Resumed");
    case "session.shutdown":
      return data["errorReason"] === undefined
        ? notice("info", "Session closed")
        : notice("error", "Session closed", textOrNull(data["errorReason"]));
    case "session.error":
      return notice("error", text(data["message"]) || "The session met an error");
    case "session.warning":
      return notice("warning", text(data["message"]));
    case "session.info":
      return notice("info", text(data["message"]));
    case "abort":
      return notice("warning", "Aborted", text(data["reason"]).replaceAll("_", " ") || null);
    case "assistant.turn_retry":
      return notice("warning", "Trying the model again", textOrNull(data["reason"]));
    case "session.mode_changed":
      return notice("info", `Mode: ${text(data["newMode"])}`);
    case "session.task_complete":
      return notice("good", "Task complete", textOrNull(data["summary"]));
    case "session.compaction_start":
      return notice("info", COMPACTING);
    case "session.compaction_complete": {
      if (data["success"] !== true) {
        return notice("warning", "The conversation could not be compacted", textOrNull(data["error"]), COMPACTING);
      }
      const before = count(data["preCompactionTokens"]);
      const after = count(data["postCompactionTokens"]);
      const change = before === null || after === null ? "" : `: ${tokens(before)} → ${tokens(after)} tokens`;
      return notice("info", `Conversation compacted${change}`, textOrNull(data["summaryContent"]), COMPACTING);
    }
    case "session.truncation":
      return notice("info", "Old messages left out of the model's view");
    case "session.handoff":
      return notice("info", "Handed over", textOrNull(data["context"]));
    case "system.notification":
      return notice("info", text(data["content"]));
    case "skill.invoked":
      return notice("info", `Skill: ${text(data["name"])}`);
    case "hook.end":
      return data["success"] === false
        ? notice("warning", `Hook ${text(data["hookType"])} failed`, textOrNull(fields(data["error"])["message"]))
        : null;
    case "hangar.history_truncated":
    case "session.snapshot_rewind":
      return { is: "rewound", upTo: text(data["upToEventId"]) };
    case "session.usage_info":
      return { is: "context", tokens: count(data["currentTokens"]) ?? 0, limit: count(data["tokenLimit"]) ?? 0 };
    default:
      return null;
  }
}
