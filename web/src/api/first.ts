// Requests that `public/first.js` began before this code was there. Each is taken once; later ones ask anew.

declare global {
  interface Window {
    hangarFirst?: Record<string, Promise<Response>>;
  }
}

/** An answer that nobody took in this time is an old one. */
const FRESH_MS = 10_000;

const TOKEN = "hangar.token";

export function takeFirst(path: string): Promise<Response> | null {
  const begun = window.hangarFirst?.[path];
  if (begun === undefined) return null;
  delete window.hangarFirst?.[path];
  return performance.now() < FRESH_MS ? begun : null;
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
