// The JSON Schema of the settings, as forms read it.

import { type Fields, fields, list, text } from "../json";

export type FieldKind = "text" | "choice" | "switch" | "number" | "words" | "numbers" | "other";

/** One setting of a table. */
export interface FieldShape {
  readonly key: string;
  readonly kind: FieldKind;
  readonly hint: string;
  /** Allowed values of a choice. */
  readonly choices: readonly string[];
  readonly whole: boolean;
}

/** A node without references; of an optional one, what it is when it is there. */
function resolved(schema: Fields, node: Fields): Fields {
  const reference = text(node["$ref"]);
  if (reference !== "") return resolved(schema, fields(fields(schema["$defs"])[reference.split("/").at(-1) ?? ""]));
  const any = list(node["anyOf"]).map(fields);
  const some = any.find((one) => one["type"] !== "null");
  return some === undefined ? node : resolved(schema, some);
}

function types(node: Fields): readonly string[] {
  const kind = node["type"];
  return (Array.isArray(kind) ? kind : [kind]).filter((one): one is string => typeof one === "string" && one !== "null");
}

function kindOf(schema: Fields, node: Fields, choices: readonly string[]): FieldKind {
  const [kind] = types(node);
  if (choices.length > 0) return "choice";
  if (kind === "string") return "text";
  if (kind === "boolean") return "switch";
  if (kind === "integer" || kind === "number") return "number";
  if (kind === "array" && types(resolved(schema, fields(node["items"])))[0] === "string") return "words";
  const isNumber = (one: unknown) => ["integer", "number"].includes(types(resolved(schema, fields(one)))[0] ?? "");
  const known = Object.values(fields(node["properties"]));
  if (kind === "object" && (known.length > 0 ? known.every(isNumber) : isNumber(node["additionalProperties"]))) return "numbers";
  return "other";
}

/** The description of a setting; of a table of numbers with the names that it may have. */
function hintOf(own: Fields, shape: Fields, kind: FieldKind): string {
  const hint = text(own["description"] ?? shape["description"]).replaceAll("\n", " ");
  const names = kind === "numbers" ? Object.keys(fields(shape["properties"])) : [];
  return names.length === 0 ? hint : `${hint} One on a line: ${names.map((name) => `${name} = number`).join(", ")}.`;
}

/** The settings of the table at a path; `*` stands for a name that the user chooses, and for an item of a list. */
export function shapesAt(schema: unknown, path: readonly string[]): readonly FieldShape[] {
  const root = fields(schema);
  let node = root;
  for (const key of path) {
    const named = fields(node["properties"])[key];
    node = resolved(root, fields(named ?? (key === "*" ? (node["items"] ?? node["additionalProperties"]) : undefined)));
  }
  return Object.entries(fields(node["properties"])).map(([key, value]) => {
    const own = fields(value);
    const shape = resolved(root, own);
    const choices = list(own["enum"] ?? shape["enum"]).filter((one): one is string => typeof one === "string");
    const kind = kindOf(root, shape, choices);
    return {
      key,
      kind,
      hint: hintOf(own, shape, kind),
      choices,
      whole: types(shape)[0] === "integer",
    };
  });
}

/** A value as it stands in a field. */
export function shown(shape: FieldShape, value: unknown): string {
  if (value === undefined || value === null) return "";
  if (shape.kind === "words") return list(value).join(", ");
  if (shape.kind === "numbers") {
    return Object.entries(fields(value))
      .map(([name, number]) => `${name} = ${String(number)}`)
      .join("\n");
  }
  return String(value);
}

/** The value of what stands in a field; `null` removes the setting. */
export function typed(shape: FieldShape, words: string): unknown {
  const plain = words.trim();
  if (plain === "") return null;
  switch (shape.kind) {
    case "number": {
      const number = Number(plain);
      return Number.isFinite(number) ? number : plain;
    }
    case "switch":
      return plain === "true";
    case "words":
      return plain
        .split(",")
        .map((word) => word.trim())
        .filter((word) => word !== "");
    case "numbers": {
      const lines = plain.split("\n").filter((line) => line.trim() !== "");
      const entries = lines.map((line): [string, number] => {
        const at = line.lastIndexOf("=");
        const number = line.slice(at + 1).trim();
        return [line.slice(0, Math.max(0, at)).trim(), number === "" ? Number.NaN : Number(number)];
      });
      // A line that is none is refused with the whole text: nothing is dropped silently.
      return entries.every(([name, number]) => name !== "" && Number.isFinite(number)) ? Object.fromEntries(entries) : plain;
    }
    default:
      return plain;
  }
}
