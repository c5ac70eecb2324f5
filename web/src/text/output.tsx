// Plain output of any size: its beginning and end at first, the whole when asked for.

import { useState } from "preact/hooks";
import { bytes } from "../format";
import { Copy } from "./copy";

const WHOLE = 12_000;
const HEAD = 4_000;
const TAIL = 6_000;

// Colours and cursor movements are meant for a terminal.
const CONTROL = /\u001b\[[0-9;?]*[A-Za-z]|\u001b\][^\u0007]*\u0007|\r(?=\n)/g;

export function Output({ text, label }: { text: string; label: string }) {
  const [all, setAll] = useState(false);
  const clean = text.replace(CONTROL, "").replace(/\n+$/, "");
  const whole = all || clean.length <= WHOLE;
  return (
    <div class="code">
      <pre class="output" tabIndex={0} aria-label={label}>
        {whole ? clean : `${clean.slice(0, HEAD)}\n⋯\n${clean.slice(-TAIL)}`}
      </pre>
      <Copy text={() => clean} />
      {!whole && (
        <button type="button" class="button small" onClick={() => setAll(true)}>
          Show all {bytes(clean.length)}
        </button>
      )}
    </div>
  );
}
