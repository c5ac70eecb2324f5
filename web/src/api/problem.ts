// Everything that can go wrong with a request, as one value that a page can show: what is wrong and what to do.

export class Problem extends Error {
  /** 0 when the server could not be reached at all. */
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, detail: string) {
    super(detail);
    this.name = "Problem";
    this.status = status;
    this.code = code;
  }
}

export const UNREACHABLE = "Hangar does not answer. Is `hangar up` still running? This page tries again by itself.";

/** Default advice, if the server gives none. */
function advice(status: number): string {
  if (status === 401) return "This portal needs a token. Log in, then try again.";
  if (status === 404) return "There is nothing at this address. It may have been deleted; go back to the list.";
  if (status === 413) return "That is more than the server accepts. Make it shorter and send it again.";
  if (status >= 500) return "The server met an error of its own. Try again; `hangar up` prints the cause in its terminal.";
  return `The server refused this (status ${status}). Check what you entered and try again.`;
}

export async function problemOf(response: Response): Promise<Problem> {
  let code = `http_${response.status}`;
  let detail = "";
  try {
    const body: unknown = await response.json();
    if (typeof body === "object" && body !== null) {
      if ("detail" in body && typeof body.detail === "string") detail = body.detail;
      if ("code" in body && typeof body.code === "string") code = body.code;
    }
  } catch {
    // The answer may come from a proxy and not be JSON.
  }
  return new Problem(response.status, code, detail || advice(response.status));
}

export function asProblem(error: unknown): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof TypeError) return new Problem(0, "unreachable", UNREACHABLE);
  return new Problem(0, "unexpected", error instanceof Error ? error.message : String(error));
}
