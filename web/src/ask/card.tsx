// A question of an agent, with all that is needed to answer it, in the session and in the inbox alike.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Answer, Approval } from "../api/resources";
import { takeApproval } from "../live/store";
import { DiffView } from "../text/diffView";
import { Output } from "../text/output";
import { markdown } from "../text/markdown";
import { Icon } from "../ui/icons";
import { Age, Key, Trouble } from "../ui/parts";
import { count, fields, list, text, textOrNull } from "./wire";

type Reply = (answer: Answer) => void;

interface Props {
  readonly approval: Approval;
  /** Whether `a`, `s` and `d` mean this card, so that the buttons say so. */
  readonly keys: boolean;
}

/** A key that was pressed for something else must not answer a question that has just come up. */
const READABLE_MS = 800;

export function AskCard({ approval, keys }: Props) {
  const [busy, setBusy] = useState(false);
  const [readable, setReadable] = useState(false);
  useEffect(() => {
    const timer = setTimeout(() => setReadable(true), READABLE_MS);
    return () => clearTimeout(timer);
  }, []);
  const [problem, setProblem] = useState<Problem | null>(null);
  const reply: Reply = async (answer) => {
    if (busy) return;
    setBusy(true);
    setProblem(null);
    try {
      takeApproval(await api.answer(approval.id, answer));
    } catch (error) {
      const failed = asProblem(error);
      // Somebody else was faster: there is nothing left to answer.
      if (failed.status === 409 || failed.status === 404) takeApproval({ ...approval, state: "answered" });
      setProblem(failed);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="ask" data-approval={approval.id} data-readable={readable} aria-label="A question that waits for an answer" tabIndex={-1}>
      <fieldset disabled={busy}>
        <AskBody approval={approval} reply={reply} keys={keys} />
      </fieldset>
      {problem && <Trouble problem={problem} />}
    </section>
  );
}

function AskBody({ approval, reply, keys }: Props & { reply: Reply }) {
  const data = fields(approval.event.data);
  switch (approval.kind) {
    case "permission":
      return <Permission request={fields(data["permissionRequest"])} approval={approval} reply={reply} keys={keys} />;
    case "question":
      return <Question data={data} approval={approval} reply={reply} />;
    case "elicitation":
      return <Form data={data} approval={approval} reply={reply} />;
    case "plan":
      return (
        <Decision
          approval={approval}
          title="Wants to leave planning and begin"
          detail={text(data["summary"])}
          session={false}
          reply={reply}
          keys={keys}
        >
          {/* Sanitised by `markdown`. */}
          <div class="markdown" dangerouslySetInnerHTML={{ __html: markdown(text(data["planContent"])) }} />
        </Decision>
      );
  }
}

function Head({ approval, title, detail }: { approval: Approval; title: string; detail: string }) {
  return (
    <header class="ask-head">
      <Icon name="approvals" />
      <div>
        <h3>{title}</h3>
        {detail !== "" && <p>{detail}</p>}
      </div>
      <Age at={approval.since} />
    </header>
  );
}

type RequestFields = ReturnType<typeof fields>;

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

function subject(request: RequestFields): ComponentChildren {
  switch (request["kind"]) {
    case "shell":
      return <Output text={text(request["fullCommandText"])} label="The command" />;
    case "write": {
      const diff = text(request["diff"]);
      return diff === "" ? <code class="subject">{text(request["fileName"])}</code> : <DiffView diff={withHeading(diff, text(request["fileName"]))} />;
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
          {args !== undefined && <Output text={JSON.stringify(args, null, 2)} label="The arguments" />}
        </>
      );
    }
  }
}

/** A request's diff may be hunks alone. */
function withHeading(diff: string, path: string): string {
  return diff.trimStart().startsWith("@@") ? `--- a/${path}\n+++ b/${path}\n${diff.trimStart()}` : diff;
}

function Permission({ request, approval, reply, keys }: { request: RequestFields; reply: Reply } & Props) {
  const kind = text(request["kind"]);
  const intention = text(request["intention"]) || text(request["toolDescription"]) || text(request["hookMessage"]);
  const warning = textOrNull(request["warning"]);
  return (
    <Decision
      approval={approval}
      title={TITLES[kind] ?? "Asks for a permission"}
      detail={intention}
      session={request["canOfferSessionApproval"] === true}
      reply={reply}
      keys={keys}
    >
      {subject(request)}
      {warning !== null && <p class="ask-warning">{warning}</p>}
    </Decision>
  );
}

interface DecisionProps extends Props {
  readonly title: string;
  readonly detail: string;
  readonly session: boolean;
  readonly reply: Reply;
  readonly children: ComponentChildren;
}

function Decision({ approval, title, detail, session, reply, keys, children }: DecisionProps) {
  const feedback = useRef<HTMLInputElement>(null);
  const deny = () => {
    const words = feedback.current?.value.trim() ?? "";
    reply(words === "" ? { decision: "deny" } : { decision: "deny", feedback: words });
  };
  return (
    <>
      <Head approval={approval} title={title} detail={detail} />
      {children}
      <div class="ask-actions">
        <button type="button" class="button primary" data-answer="approve" onClick={() => reply({ decision: "approve" })}>
          Allow {keys && <Key keys="a" />}
        </button>
        {session && (
          <button type="button" class="button" data-answer="session" onClick={() => reply({ decision: "approve-for-session" })}>
            Allow for this session {keys && <Key keys="s" />}
          </button>
        )}
        <span class="ask-deny">
          <input
            ref={feedback}
            class="field"
            aria-label="What the agent should do instead, if you deny"
            placeholder="What to do instead?"
            onKeyDown={(event) => {
              if (event.key === "Enter") deny();
            }}
          />
          <button type="button" class="button danger" data-answer="deny" onClick={deny}>
            Deny {keys && <Key keys="d" />}
          </button>
        </span>
      </div>
    </>
  );
}

function Question({ data, approval, reply }: { data: RequestFields; approval: Approval; reply: Reply }) {
  const [words, setWords] = useState("");
  const choices = list(data["choices"]).filter((choice) => typeof choice === "string");
  const freeform = data["allowFreeform"] !== false || choices.length === 0;
  const send = () => {
    if (words.trim() !== "") reply({ answer: words });
  };
  return (
    <>
      <Head approval={approval} title="Has a question" detail="" />
      <div class="markdown" dangerouslySetInnerHTML={{ __html: markdown(text(data["question"])) }} />
      <div class="ask-actions">
        {choices.map((choice) => (
          <button type="button" class="button" onClick={() => reply({ answer: choice })}>
            {choice}
          </button>
        ))}
        {freeform && (
          <span class="ask-deny">
            <input
              class="field"
              aria-label="Your answer"
              placeholder="Your answer"
              value={words}
              onInput={(event) => setWords(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === "Enter") send();
              }}
            />
            <button type="button" class="button primary" data-answer="answer" onClick={send} disabled={words.trim() === ""}>
              Answer
            </button>
          </span>
        )}
      </div>
    </>
  );
}

type FieldValue = string | number | boolean;

/** A form by the JSON Schema of an elicitation: flat, of texts, numbers, switches and choices. */
function Form({ data, approval, reply }: { data: RequestFields; approval: Approval; reply: Reply }) {
  const schema = fields(data["requestedSchema"]);
  const properties = Object.entries(fields(schema["properties"]));
  const required = new Set(list(schema["required"]));
  const [values, setValues] = useState<Record<string, FieldValue>>(() => {
    const start: Record<string, FieldValue> = {};
    for (const [name, property] of properties) {
      const given = fields(property)["default"];
      if (typeof given === "string" || typeof given === "number" || typeof given === "boolean") start[name] = given;
      else if (fields(property)["type"] === "boolean") start[name] = false;
    }
    return start;
  });
  const set = (name: string, value: FieldValue) => setValues((old) => ({ ...old, [name]: value }));
  const missing = properties.some(([name]) => required.has(name) && (values[name] === undefined || values[name] === ""));
  const url = textOrNull(data["url"]);
  return (
    <>
      <Head approval={approval} title="Needs some facts from you" detail={text(data["message"])} />
      {url !== null && <code class="subject">{url}</code>}
      <div class="form">
        {properties.map(([name, property]) => (
          <FormField name={name} property={fields(property)} required={required.has(name)} value={values[name]} set={(value) => set(name, value)} />
        ))}
      </div>
      <div class="ask-actions">
        <button type="button" class="button primary" data-answer="accept" disabled={missing} onClick={() => reply({ action: "accept", content: values })}>
          Send
        </button>
        <button type="button" class="button" onClick={() => reply({ action: "decline" })}>
          Decline
        </button>
      </div>
    </>
  );
}

interface FormFieldProps {
  readonly name: string;
  readonly property: RequestFields;
  readonly required: boolean;
  readonly value: FieldValue | undefined;
  readonly set: (value: FieldValue) => void;
}

function FormField({ name, property, required, value, set }: FormFieldProps) {
  const label = text(property["title"]) || name;
  const choices = list(property["enum"]).filter((choice) => typeof choice === "string");
  const type = text(property["type"]);
  if (type === "boolean") {
    return (
      <label class="check">
        <input type="checkbox" checked={value === true} onChange={(event) => set(event.currentTarget.checked)} />
        {label}
      </label>
    );
  }
  const hint = text(property["description"]);
  return (
    <label class="form-field">
      <span>
        {label}
        {required && <span class="required"> required</span>}
      </span>
      {choices.length > 0 ? (
        <select class="field" value={String(value ?? "")} onChange={(event) => set(event.currentTarget.value)}>
          <option value="">Choose…</option>
          {choices.map((choice) => (
            <option value={choice}>{choice}</option>
          ))}
        </select>
      ) : (
        <input
          class="field"
          inputMode={type === "number" || type === "integer" ? "decimal" : "text"}
          value={String(value ?? "")}
          onInput={(event) => {
            const words = event.currentTarget.value;
            const number = count(Number(words));
            set((type === "number" || type === "integer") && words !== "" && number !== null ? number : words);
          }}
        />
      )}
      {hint !== "" && <span class="hint">{hint}</span>}
    </label>
  );
}

/** Presses a button of a card, as a key does; not before somebody can have read it. */
export function pressAnswer(card: HTMLElement | null | undefined, answer: "approve" | "session" | "deny"): void {
  if (card?.dataset["readable"] === "true") card.querySelector<HTMLButtonElement>(`[data-answer="${answer}"]`)?.click();
}
