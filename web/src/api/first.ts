// Requests that `public/first.js` began before this code was there. Each is taken once; later ones ask anew.

declare global {
  interface Window {
    hangarFirst?: Record<string, Promise<Response>>;
  }
}

/** An answer that nobody took in this time is an old one. */
const FRESH_MS = 10_000;

const TOKEN = "hangar.token";

/** The answer to such a request, if there is one that is of use: who was refused may have logged in since. */
export async function takeFirst(path: string): Promise<Response | null> {
  const begun = window.hangarFirst?.[path];
  if (begun === undefined) return null;
  delete window.hangarFirst?.[path];
  if (performance.now() > FRESH_MS) return null;
  const answer = await begun.catch(() => null);
  return answer?.ok === true ? answer : null;
}

/** Tells `first.js` of the next visit whether it may ask for more than anybody may know. */
export function rememberToken(isNeeded: boolean): void {
  try {
    if (isNeeded) localStorage.setItem(TOKEN, "needed");
    else localStorage.removeItem(TOKEN);
  } catch {
    // Then it asks, is refused, and the login page comes up as it would anyway.
  }
}
