// Questions that are answered by yes or no: may this be done, is this plan good.

import type { ComponentChildren } from "preact";
import { useRef } from "preact/hooks";
import { fields, text, textOrNull } from "../json";
import { DiffView } from "../text/diffView";
import { Markdown } from "../text/markdownView";
import { Output } from "../text/output";
import { Key } from "../ui/parts";
import type { AskProps } from "./card";
import { Head } from "./head";

interface Words {
  readonly yes: string;
  readonly no: string;
  /** Placeholder and accessible label of the field for a refusal. */
  readonly instead: string;
  readonly insteadLabel: string;
}

interface DecisionProps extends AskProps {
  readonly title: string;
  readonly detail: string;
  readonly words: Words;
  /** Whether "allow for this session" is offered. */
  readonly forSession: boolean;
  readonly children: ComponentChildren;
}

function Decision({ approval, title, detail, words, forSession, reply, keys, children }: DecisionProps) {
  const feedback = useRef<HTMLInputElement>(null);
  const deny = () => {
    const written = feedback.current?.value.trim() ?? "";
    reply(written === "" ? { decision: "deny" } : { decision: "deny", feedback: written });
  };
  return (
    <>
      <Head approval={approval} title={title} detail={detail} />
      {children}
      <div class="ask-actions">
        <button type="button" class="button primary" data-answer="approve" onClick={() => reply({ decision: "approve" })}>
          {words.yes} {keys && <Key keys="a" />}
        </button>
        {forSession && (
          <button type="button" class="button" data-answer="session" onClick={() => reply({ decision: "approve-for-session" })}>
            Allow for this session {keys && <Key keys="s" />}
          </button>
        )}
        <span class="ask-words">
          <input
            ref={feedback}
            class="field"
            aria-label={words.insteadLabel}
            placeholder={words.instead}
            onKeyDown={(event) => {
              if (event.key === "Enter" && !event.isComposing) deny();
            }}
          />
          <button type="button" class="button danger" data-answer="deny" onClick={deny}>
            {words.no} {keys && <Key keys="d" />}
          </button>
        </span>
      </div>
    </>
  );
}

const PERMISSION: Words = {
  yes: "Allow",
  no: "Deny",
  instead: "What to do instead?",
  insteadLabel: "What the agent should do instead, if you deny",
};

const TITLES: { readonly [kind: string]: string } = {
  shell: "Wants to run a command",
  write: "Wants to change a file",
  read: "Wants to read outside its folder",
  url: "Wants to reach the network",
  mcp: "Wants to use a tool of an MCP server",
  memory: "Wants to remember something",
  "custom-tool": "Wants to use a tool",
  hook: "A hook wants to know whether this may go on",
};

export function PermissionAsk(props: AskProps) {
  const request = fields(props.data["permissionRequest"]);
  const intention = text(request["intention"]) || text(request["toolDescription"]) || text(request["hookMessage"]);
  const warning = textOrNull(request["warning"]);
  return (
    <Decision
      {...props}
      title={TITLES[text(request["kind"])] ?? "Asks for a permission"}
      detail={intention}
      words={PERMISSION}
      forSession={request["canOfferSessionApproval"] === true}
    >
      <Subject request={request} />
      {warning !== null && <p class="ask-warning">{warning}</p>}
    </Decision>
  );
}

function Subject({ request }: { request: ReturnType<typeof fields> }) {
  switch (request["kind"]) {
    case "shell":
      return <Output text={text(request["fullCommandText"])} label="The command" />;
    case "write": {
      const diff = text(request["diff"]);
      const name = text(request["fileName"]);
      return diff === "" ? <code class="subject">{name}</code> : <DiffView diff={withHeading(diff, name)} />;
    }
    case "read":
      return <code class="subject">{text(request["path"])}</code>;
    case "url":
      return <code class="subject">{text(request["url"])}</code>;
    case "memory":
      return <p class="subject">{text(request["fact"])}</p>;
    default: {
      const name = [text(request["serverName"]), text(request["toolName"])].filter((part) => part !== "").join(" · ");
      const args = request["args"] ?? request["toolArgs"];
      return (
        <>
          <code class="subject">{name}</code>
          {Object.keys(fields(args)).length > 0 && <Output text={JSON.stringify(args, null, 2)} label="The arguments" />}
        </>
      );
    }
  }
}

/** A request's diff may be hunks alone. */
function withHeading(diff: string, path: string): string {
  return diff.trimStart().startsWith("@@") ? `--- a/${path}\n+++ b/${path}\n${diff.trimStart()}` : diff;
}

const PLAN: Words = {
  yes: "Begin",
  no: "Keep planning",
  instead: "What should be different?",
  insteadLabel: "What should be different about the plan, if it is not good yet",
};

export function PlanAsk(props: AskProps) {
  const plan = text(props.data["planContent"]);
  return (
    <Decision {...props} title="Hands in a plan" detail={text(props.data["summary"])} words={PLAN} forSession={false}>
      {plan.trim() !== "" && (
        <div class="ask-plan" tabIndex={0} role="group" aria-label="The plan">
          <Markdown text={plan} />
        </div>
      )}
    </Decision>
  );
}
