// In place of the package `entities`, of which markdown-it uses this one function: its tables are a sixth of the whole
// program, and the browser has the same ones.

let scratch: HTMLTextAreaElement | null = null;

/** `&amp;` and its like as characters; what is none stays as it is. Within a `textarea` nothing else has a meaning. */
export function decodeHTMLStrict(reference: string): string {
  scratch ??= document.createElement("textarea");
  scratch.innerHTML = reference;
  const decoded = scratch.value;
  // Browsers also take `&not` out of `&notit;`, which leaves the semicolon.
  return decoded.length > 1 && decoded.endsWith(";") ? reference : decoded;
}
