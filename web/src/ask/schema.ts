// The fields that the JSON Schema of an elicitation asks for, and validation of the input. Pure; `form.tsx` renders it.
//
// The schemas are flat: strings, numbers, booleans, one of several, some of several. Anything else is asked for as a string, so
// that a server with a new kind of field gets an answer at all.

import { count, fields, list, text, textOrNull } from "../json";

/** A value as entered, before it is converted to the type of the schema. */
export type Entry = string | boolean | readonly string[];

export interface Choice {
  readonly value: string;
  readonly label: string;
}

interface Named {
  readonly name: string;
  readonly label: string;
  readonly hint: string;
  readonly required: boolean;
}

export type TextFormat = "text" | "email" | "url" | "date" | "datetime-local";

export type Item =
  | (Named & { kind: "text"; format: TextFormat; least: number | null; most: number | null; initial: string })
  | (Named & { kind: "number"; whole: boolean; least: number | null; most: number | null; initial: string })
  | (Named & { kind: "switch"; initial: boolean })
  | (Named & { kind: "one"; choices: readonly Choice[]; initial: string })
  | (Named & { kind: "some"; choices: readonly Choice[]; least: number | null; most: number | null; initial: readonly string[] });

const FORMATS: { readonly [format: string]: TextFormat } = {
  email: "email",
  uri: "url",
  date: "date",
  "date-time": "datetime-local",
};

/** `enum` with or without `enumNames`, or a list of `{const, title}`. */
function choicesOf(schema: ReturnType<typeof fields>): Choice[] {
  const titled = [...list(schema["oneOf"]), ...list(schema["anyOf"])].map(fields).filter((option) => typeof option["const"] === "string");
  if (titled.length > 0) return titled.map((option) => ({ value: text(option["const"]), label: text(option["title"]) || text(option["const"]) }));
  const names = list(schema["enumNames"]);
  return list(schema["enum"]).flatMap((value, at) => (typeof value === "string" ? [{ value, label: textOrNull(names[at]) ?? value }] : []));
}

function item(name: string, property: unknown, required: boolean): Item {
  const schema = fields(property);
  const named: Named = { name, label: text(schema["title"]) || name, hint: text(schema["description"]), required };
  const given = schema["default"];
  switch (schema["type"]) {
    case "boolean":
      return { ...named, kind: "switch", initial: given === true };
    case "number":
    case "integer": {
      const initial = count(given) === null ? "" : String(given);
      return { ...named, kind: "number", whole: schema["type"] === "integer", least: count(schema["minimum"]), most: count(schema["maximum"]), initial };
    }
    case "array": {
      const initial = list(given).filter((value) => typeof value === "string");
      return { ...named, kind: "some", choices: choicesOf(fields(schema["items"])), least: count(schema["minItems"]), most: count(schema["maxItems"]), initial };
    }
    default: {
      const choices = choicesOf(schema);
      if (choices.length > 0) return { ...named, kind: "one", choices, initial: text(given) };
      const format = FORMATS[text(schema["format"])] ?? "text";
      return { ...named, kind: "text", format, least: count(schema["minLength"]), most: count(schema["maxLength"]), initial: text(given) };
    }
  }
}

export function itemsOf(requestedSchema: unknown): Item[] {
  const schema = fields(requestedSchema);
  const required = new Set(list(schema["required"]));
  return Object.entries(fields(schema["properties"])).map(([name, property]) => item(name, property, required.has(name)));
}

function isEmpty(entry: Entry): boolean {
  return typeof entry === "string" ? entry.trim() === "" : typeof entry !== "boolean" && entry.length === 0;
}

/** Why a value is invalid, or `null`. */
export function complaint(asked: Item, entry: Entry): string | null {
  if (isEmpty(entry)) return asked.required ? "This is needed." : null;
  switch (asked.kind) {
    case "switch":
    case "one":
      return null;
    case "number": {
      const number = Number(entry);
      if (!Number.isFinite(number)) return "This has to be a number.";
      if (asked.whole && !Number.isInteger(number)) return "This has to be a whole number.";
      if (asked.least !== null && number < asked.least) return `At least ${asked.least}.`;
      if (asked.most !== null && number > asked.most) return `At most ${asked.most}.`;
      return null;
    }
    case "text": {
      const words = String(entry);
      if (asked.least !== null && words.length < asked.least) return `At least ${asked.least} characters.`;
      if (asked.most !== null && words.length > asked.most) return `At most ${asked.most} characters.`;
      if (asked.format === "email" && !/^\S+@\S+$/.test(words)) return "This has to be an address like name@example.org.";
      if (asked.format === "url" && !URL.canParse(words)) return "This has to be an address like https://example.org.";
      return null;
    }
    case "some": {
      const chosen = Array.isArray(entry) ? entry.length : 0;
      if (asked.least !== null && chosen < asked.least) return `Choose at least ${asked.least}.`;
      if (asked.most !== null && chosen > asked.most) return `Choose at most ${asked.most}.`;
      return null;
    }
  }
}

/** The answer to send: values in the types of the schema, without empty ones. */
export function contentOf(items: readonly Item[], entries: { readonly [name: string]: Entry }): Record<string, unknown> {
  const content: Record<string, unknown> = {};
  for (const asked of items) {
    const entry = entries[asked.name] ?? asked.initial;
    if (isEmpty(entry)) continue;
    if (asked.kind === "number") content[asked.name] = Number(entry);
    else if (asked.kind === "text" && asked.format === "datetime-local") content[asked.name] = moment(String(entry));
    else content[asked.name] = entry;
  }
  return content;
}

/** The browser's field knows no time zones; the schema wants one. */
function moment(local: string): string {
  const time = new Date(local);
  return Number.isNaN(time.getTime()) ? local : time.toISOString();
}
