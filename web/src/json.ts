// Reading untrusted JSON: a value of the wrong type is treated as absent.

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

export type Fields = { readonly [key: string]: unknown };

export function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

export function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}

export function textOrNull(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

export function count(value: unknown): number | null {
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

export function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
