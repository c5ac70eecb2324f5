// The rows of a transcript.

import { Component, type ComponentChildren } from "preact";
import { between, clock, duration, tokens } from "../format";
import type { Json } from "../json";
import { now } from "../live/store";
import { DiffView } from "../text/diffView";
import { Markdown, OpenMarkdown } from "../text/markdownView";
import { Output } from "../text/output";
import { Icon, type IconName } from "../ui/icons";
import type { AskBlock, NoticeBlock, ReasoningBlock, TextBlock, ToolBlock, UserBlock } from "./block";
import type { TranscriptRow } from "./rows";
import { toolWords } from "./toolWords";

interface RowProps {
  readonly row: TranscriptRow;
  /** Whether the block matches the search. */
  readonly found: boolean;
  /** Author of the prompts. */
  readonly speaker: string;
  /** Whether the session works; otherwise a call that was started and not ended was interrupted. */
  readonly alive: boolean;
  readonly toggle: (key: string, open: boolean) => void;
}

const DEPTH_CLASSES = ["", "depth-1", "depth-2", "depth-3"];

/** Drawn again only if its block is another one: blocks are values. */
export class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const { row, alive, found } = this.props;
    if (found !== next.found) return true;
    return row.block !== next.row.block || row.open !== next.row.open || row.depth !== next.row.depth || alive !== next.alive;
  }

  override render({ row, alive, found, speaker, toggle }: RowProps) {
    const { block, open } = row;
    const flip = () => toggle(row.key, !open);
    const classes = ["row", `row-${block.kind}`, DEPTH_CLASSES[Math.min(row.depth, 3)], block.rewound ? "rewound" : "", found ? "found" : ""];
    return (
      <div class={classes.filter((name) => name !== "").join(" ")}>
        {block.kind === "user" && <User block={block} speaker={row.depth > 0 ? "Task" : speaker} />}
        {block.kind === "text" && <Text block={block} alive={alive} />}
        {block.kind === "reasoning" && <Reasoning block={block} open={open} alive={alive} flip={flip} />}
        {block.kind === "tool" && <Tool block={block} open={open} alive={alive} flip={flip} />}
        {block.kind === "ask" && <Ask block={block} alive={alive} />}
        {block.kind === "notice" && <Notice block={block} open={open} flip={flip} />}
      </div>
    );
  }
}

function User({ block, speaker }: { block: UserBlock; speaker: string }) {
  // An agent's prompt has the id of the one that started it as its source, which tells a reader nothing.
  const named = block.source !== null && block.source !== "user" && !block.source.startsWith("agent-");
  const who = named ? block.source : speaker;
  return (
    <article class="user" data-focus tabIndex={-1} aria-label={`${who} said`}>
      <header class="said">
        <strong>{who}</strong>
        {block.delivery === "steering" && <span class="chip">steering</span>}
        <time dateTime={block.at}>{clock(block.at)}</time>
      </header>
      <div class="user-text">{block.text}</div>
      {block.attachments.length > 0 && (
        <ul class="attachments">
          {block.attachments.map((name) => (
            <li class="chip">{name}</li>
          ))}
        </ul>
      )}
    </article>
  );
}

function Text({ block, alive }: { block: TextBlock; alive: boolean }) {
  const writing = block.open && alive;
  return (
    <article class={`text${writing ? " writing" : ""}`} data-focus tabIndex={-1} aria-label="The agent said">
      {writing ? <OpenMarkdown text={block.text} /> : <Markdown text={block.text} />}
    </article>
  );
}

interface FoldHeadProps {
  readonly open: boolean;
  readonly flip: () => void;
  readonly icon: IconName;
  readonly children: ComponentChildren;
}

function FoldHead({ open, flip, icon, children }: FoldHeadProps) {
  return (
    <button type="button" class="fold" data-focus aria-expanded={open} onClick={flip}>
      <span class={`fold-arrow${open ? " open" : ""}`}>
        <Icon name="chevron" />
      </span>
      <span class="fold-icon">
        <Icon name={icon} />
      </span>
      {children}
    </button>
  );
}

function Reasoning({ block, open, alive, flip }: { block: ReasoningBlock; open: boolean; alive: boolean; flip: () => void }) {
  const writing = block.open && alive;
  const preview = writing ? block.text.slice(-160) : block.text.slice(0, 160);
  return (
    <div class="reasoning">
      <FoldHead open={open} flip={flip} icon="thought">
        <span class={`fold-verb${writing ? " busy" : ""}`}>{writing ? "Thinking" : "Thought"}</span>
        {!open && <span class="fold-object plain">{preview.replace(/\s+/g, " ")}</span>}
      </FoldHead>
      {open && <div class="fold-body reasoning-text">{block.text}</div>}
    </div>
  );
}

type Progress = "busy" | "ok" | "failed" | "interrupted" | "waiting" | "asking";

function progressOf(block: ToolBlock, alive: boolean): Progress {
  if (block.agent?.background === true && block.agent.state === "running") return alive ? "busy" : "interrupted";
  switch (block.state) {
    case "ok":
      return "ok";
    case "failed":
      return "failed";
    case "running":
    case "writing":
      return !alive ? "interrupted" : block.asking ? "asking" : "busy";
    case "queued":
      return !alive ? "interrupted" : block.asking ? "asking" : "waiting";
  }
}

const PROGRESS_WORDS: { readonly [progress in Progress]: string } = {
  busy: "running",
  ok: "done",
  failed: "failed",
  interrupted: "interrupted",
  waiting: "waiting",
  asking: "waits for you",
};

function Tool({ block, open, alive, flip }: { block: ToolBlock; open: boolean; alive: boolean; flip: () => void }) {
  const words = toolWords(block.name, block.args);
  const progress = progressOf(block, alive);
  const object = block.agent === null ? words.object : block.agent.description || words.object;
  const verb = block.agent === null ? words.verb : block.agent.name;
  return (
    <div class={`tool ${progress}`} data-call={block.call} data-progress={progress}>
      <FoldHead open={open} flip={flip} icon={block.agent === null ? words.icon : "agent"}>
        <span class="fold-verb">{verb}</span>
        <span class={`fold-object${words.code && block.agent === null ? " code" : ""}`} title={block.title ?? undefined}>
          {object || block.draft.slice(0, 160)}
        </span>
        <span class="fold-end">
          {block.verdict?.outcome === "approved" && <span class="mark-allowed">allowed</span>}
          {block.verdict?.outcome === "denied" && <span class="mark-denied">denied</span>}
          {block.exitCode !== null && block.exitCode !== 0 && <span class="mark-denied">exit {block.exitCode}</span>}
          <Took block={block} progress={progress} />
          <ProgressMark progress={progress} />
        </span>
      </FoldHead>
      {progress === "busy" && !open && block.progress !== null && <div class="fold-body tool-progress">{block.progress}</div>}
      {open && (block.agent === null ? <ToolBody block={block} /> : <AgentBody block={block} />)}
    </div>
  );
}

function Took({ block, progress }: { block: ToolBlock; progress: Progress }) {
  if (block.endedAt !== null) return <span class="took">{between(block.at, block.endedAt)}</span>;
  if (progress === "busy" && block.state === "running") return <span class="took">{between(block.at, Math.max(now.value, Date.parse(block.at)))}</span>;
  return null;
}

function ProgressMark({ progress }: { progress: Progress }) {
  return (
    <span class={`progress-mark ${progress}`}>
      <span class={progress === "asking" ? undefined : "sr-only"}>{PROGRESS_WORDS[progress]}</span>
      {progress === "ok" && <Icon name="check" />}
      {progress === "failed" && <Icon name="cross" />}
      {progress === "interrupted" && <Icon name="pause" />}
      {(progress === "busy" || progress === "waiting") && <span class="spinner" aria-hidden="true" />}
    </span>
  );
}

/** Arguments that the line above, or the diff below, does not show already. */
function remainingArgs(block: ToolBlock): [string, Json][] {
  const told = toolWords(block.name, block.args).object;
  if (typeof block.args !== "object" || block.args === null || Array.isArray(block.args)) return [];
  const shown = new Set(["description"]);
  if (block.diff !== null) for (const name of ["old_str", "new_str", "file_text", "content", "patch", "input"]) shown.add(name);
  return Object.entries(block.args).filter(([name, value]) => !shown.has(name) && (name === "command" || value !== told));
}

function argText(value: Json): string {
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

function Arguments({ block }: { block: ToolBlock }) {
  if (block.draft !== "") return <Output text={block.draft} label="Arguments that are being written" />;
  if (typeof block.args === "string" && block.diff === null) return <Output text={block.args} label="Arguments" />;
  const args = remainingArgs(block);
  const command = args.find(([name]) => name === "command");
  if (command !== undefined && args.length <= 2 && typeof command[1] === "string") {
    return <Output text={`$ ${command[1]}`} label="Command" />;
  }
  if (args.length === 0) return null;
  return (
    <dl class="args">
      {args.map(([name, value]) => (
        <div>
          <dt>{name}</dt>
          <dd>{argText(value).length > 2_000 ? <Output text={argText(value)} label={name} /> : argText(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function ToolBody({ block }: { block: ToolBlock }) {
  return (
    <div class="fold-body">
      <Arguments block={block} />
      {block.diff !== null && <DiffView diff={block.diff} />}
      {block.progress !== null && <p class="tool-progress">{block.progress}</p>}
      {block.error !== null && <p class="tool-error">{block.error}</p>}
      {block.output !== "" && block.diff === null && <Output text={block.output} label="Output" />}
      {block.pictures.map((picture) => (
        <img class="picture" src={`data:${picture.mimeType};base64,${picture.base64}`} alt="What the tool saw" />
      ))}
      {block.verdict?.detail != null && <p class="tool-verdict">“{block.verdict.detail}”</p>}
    </div>
  );
}

/** The agent's own rows follow below; here is what it was and what came of it. */
function AgentBody({ block }: { block: ToolBlock }) {
  const agent = block.agent;
  if (agent === null) return null;
  const facts = [
    agent.model,
    agent.background ? "in the background" : null,
    agent.tools === null ? null : `${agent.tools} tool call${agent.tools === 1 ? "" : "s"}`,
    agent.tokens === null ? null : `${tokens(agent.tokens)} tokens`,
    agent.ms === null ? null : duration(agent.ms),
  ].filter((fact) => fact !== null);
  return (
    <div class="fold-body agent-facts">
      {facts.join(" · ")}
      {agent.error !== null && <p class="tool-error">{agent.error}</p>}
    </div>
  );
}

const ASK_WORDS = { permission: "Permission", question: "Question", elicitation: "Form", plan: "Plan" } as const;
const OUTCOME_WORDS = { approved: "allowed", denied: "denied", answered: "answered", cancelled: "withdrawn" } as const;

function Ask({ block, alive }: { block: AskBlock; alive: boolean }) {
  const waiting = block.outcome === null;
  const state = block.outcome === null ? (alive ? "waits for an answer" : "was not answered") : OUTCOME_WORDS[block.outcome];
  return (
    <p class={`notice ${waiting && alive ? "warning" : "info"}`} data-focus tabIndex={-1}>
      <Icon name="approvals" />
      <span>
        {ASK_WORDS[block.ask]} {state}
        {block.detail !== null && <span class="quote">: “{block.detail}”</span>}
      </span>
    </p>
  );
}

const NOTICE_ICONS = { info: "info", good: "check", warning: "warning", error: "warning" } as const;

function Notice({ block, open, flip }: { block: NoticeBlock; open: boolean; flip: () => void }) {
  return (
    <div class={`notice ${block.level}`} data-focus tabIndex={-1}>
      <Icon name={NOTICE_ICONS[block.level]} />
      <span>
        {block.text}
        {block.detail !== null && block.detail.length <= 160 && <span class="quote"> · {block.detail}</span>}
        {block.detail !== null && block.detail.length > 160 && (
          <button type="button" class="link" aria-expanded={open} onClick={flip}>
            {open ? "less" : "more"}
          </button>
        )}
        {open && block.detail !== null && block.detail.length > 160 && <span class="notice-detail">{block.detail}</span>}
      </span>
    </div>
  );
}
