// A form that an MCP server wants filled in, or an address that it wants visited.

import { useId, useMemo, useRef, useState } from "preact/hooks";
import { text, textOrNull } from "../json";
import type { AskProps } from "./card";
import { Head } from "./head";
import { type Entry, type Item, complaint, contentOf, itemsOf } from "./schema";

export function FormAsk({ approval, data, reply }: AskProps) {
  const items = useMemo(() => itemsOf(data["requestedSchema"]), [approval.id]);
  const [entries, setEntries] = useState<{ readonly [name: string]: Entry }>(() => Object.fromEntries(items.map((item) => [item.name, item.initial])));
  // Validation errors appear only after the first attempt to submit.
  const [tried, setTried] = useState(false);
  const form = useRef<HTMLDivElement>(null);
  const address = textOrNull(data["url"]);
  const source = text(data["elicitationSource"]);
  const complaintOf = (item: Item) => complaint(item, entries[item.name] ?? item.initial);
  const send = () => {
    const wrong = items.findIndex((item) => complaintOf(item) !== null);
    if (wrong === -1) return reply(address === null ? { action: "accept", content: contentOf(items, entries) } : { action: "accept" });
    setTried(true);
    form.current?.querySelectorAll<HTMLElement>("[data-item]")[wrong]?.querySelector<HTMLElement>("input, select")?.focus();
  };
  return (
    <>
      <Head approval={approval} title={address === null ? "Needs some facts from you" : "Needs you to visit a page"} detail={text(data["message"])} />
      {address !== null && <Address address={address} />}
      <div class="form ask-form" ref={form}>
        {items.map((item) => (
          <Field
            item={item}
            entry={entries[item.name] ?? item.initial}
            complaint={tried ? complaintOf(item) : null}
            set={(entry) => setEntries((old) => ({ ...old, [item.name]: entry }))}
            send={send}
          />
        ))}
      </div>
      <div class="ask-actions">
        <button type="button" class="button primary" onClick={send}>
          {address === null ? "Send" : "I have done it"}
        </button>
        <button type="button" class="button" onClick={() => reply({ action: "decline" })} title="Tell it that you will not say">
          Decline
        </button>
        <button type="button" class="button quiet" onClick={() => reply({ action: "cancel" })} title="Answer nothing at all">
          Cancel
        </button>
        {source !== "" && <span class="ask-source">asked by {source}</span>}
      </div>
    </>
  );
}

/** Shows the URL before the user follows it. Only http and https links are offered. */
function Address({ address }: { address: string }) {
  const isWeb = /^https?:\/\//i.test(address);
  return (
    <p class="subject">
      {isWeb ? (
        <a href={address} target="_blank" rel="noopener noreferrer nofollow">
          {address}
        </a>
      ) : (
        <code>{address}</code>
      )}
    </p>
  );
}

interface FieldProps {
  readonly item: Item;
  readonly entry: Entry;
  readonly complaint: string | null;
  readonly set: (entry: Entry) => void;
  readonly send: () => void;
}

function Field({ item, entry, complaint, set, send }: FieldProps) {
  const about = useId();
  const described = { "aria-describedby": about, "aria-invalid": complaint !== null };
  const below = (
    <span class={`hint${complaint === null ? "" : " bad"}`} id={about}>
      {complaint ?? item.hint}
    </span>
  );
  if (item.kind === "switch") {
    return (
      <div data-item={item.name}>
        <label class="check">
          <input type="checkbox" checked={entry === true} {...described} onChange={(event) => set(event.currentTarget.checked)} />
          {item.label}
        </label>
        {below}
      </div>
    );
  }
  if (item.kind === "some") {
    const chosen = Array.isArray(entry) ? entry : [];
    return (
      <fieldset class="form-field" data-item={item.name} {...described}>
        <legend>
          <Label item={item} />
        </legend>
        {item.choices.map((choice) => (
          <label class="check">
            <input
              type="checkbox"
              checked={chosen.includes(choice.value)}
              onChange={(event) => set(event.currentTarget.checked ? [...chosen, choice.value] : chosen.filter((value) => value !== choice.value))}
            />
            {choice.label}
          </label>
        ))}
        {below}
      </fieldset>
    );
  }
  return (
    <label class="form-field" data-item={item.name}>
      <span>
        <Label item={item} />
      </span>
      {item.kind === "one" ? (
        <select class="field" value={String(entry)} {...described} onChange={(event) => set(event.currentTarget.value)}>
          <option value="">Choose…</option>
          {item.choices.map((choice) => (
            <option value={choice.value}>{choice.label}</option>
          ))}
        </select>
      ) : (
        <input
          class="field"
          // Any of the types of `TextFormat`, of which JSX wants to be told at compile time which one.
          type={(item.kind === "text" ? item.format : "text") as "text"}
          inputMode={item.kind === "number" ? (item.whole ? "numeric" : "decimal") : "text"}
          value={String(entry)}
          {...described}
          onInput={(event) => set(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.isComposing) send();
          }}
        />
      )}
      {below}
    </label>
  );
}

function Label({ item }: { item: Item }) {
  return (
    <>
      {item.label}
      {item.required && <span class="required"> required</span>}
    </>
  );
}
