// Requests that `public/first.js` started before this code was loaded. Each answer is used once.

declare global {
  interface Window {
    hangarFirst?: Record<string, Promise<Response>>;
  }
}

/** An answer that is older than this is not used. */
const FRESH_MS = 10_000;

const TOKEN = "hangar.token";

/** The answer to an early request, or null. A refusal is not used: the user may have logged in since. */
export async function takeFirst(path: string): Promise<Response | null> {
  const begun = window.hangarFirst?.[path];
  if (begun === undefined) return null;
  delete window.hangarFirst?.[path];
  if (performance.now() > FRESH_MS) return null;
  const answer = await begun.catch(() => null);
  return answer?.ok === true ? answer : null;
}

/** Tells `first.js` on the next visit whether requests need a token. */
export function rememberToken(isNeeded: boolean): void {
  try {
    if (isNeeded) localStorage.setItem(TOKEN, "needed");
    else localStorage.removeItem(TOKEN);
  } catch {
    // Without storage, the early request is refused and the login page appears anyway.
  }
}
