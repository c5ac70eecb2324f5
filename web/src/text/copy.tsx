// A button that puts a text on the clipboard.

import { useEffect, useState } from "preact/hooks";
import { Icon } from "../ui/icons";

/** Time that the confirmation is shown. */
const DONE_MS = 1_500;

export function Copy({ text }: { text: () => string }) {
  const [done, setDone] = useState(false);
  useEffect(() => {
    if (!done) return;
    const timer = setTimeout(() => setDone(false), DONE_MS);
    return () => clearTimeout(timer);
  }, [done]);
  // Browsers keep the clipboard from pages that came over plain HTTP from another machine.
  if (!("clipboard" in navigator)) return null;
  const copy = () =>
    navigator.clipboard.writeText(text()).then(
      () => setDone(true),
      // Somebody forbade it to this page; selecting the text still works.
      () => setDone(false),
    );
  return (
    <button type="button" class="copy" aria-label={done ? "Copied" : "Copy"} title="Copy" onClick={() => void copy()}>
      <Icon name={done ? "check" : "copy"} />
    </button>
  );
}
