// Markdown of an agent on the page.

import { render } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Copy } from "./copy";
import { RENDER_LIMIT, markdown, markdownOnce } from "./markdown";
import { Output } from "./output";
import { settledEnd } from "./settled";

export function Markdown({ text }: { text: string }) {
  return (
    <>
      <UsableHtml html={markdown(text)} />
      {text.length > RENDER_LIMIT && <Output text={text.slice(RENDER_LIMIT)} label="The rest, as it was written" />}
    </>
  );
}

/** Markdown that is being written: with every piece only its last paragraph is rendered again. */
export function OpenMarkdown({ text }: { text: string }) {
  const settled = useRef({ text: "", html: "" });
  // Of a text that is very long its beginning is left out, and it is another text then.
  if (!text.startsWith(settled.current.text)) settled.current = { text: "", html: "" };
  const before = settled.current.text.length;
  const end = settledEnd(text, before);
  if (end > before) settled.current = { text: text.slice(0, end), html: settled.current.html + markdownOnce(text.slice(before, end)) };
  return (
    <>
      {end > 0 && <Html html={settled.current.html} />}
      <Html html={markdownOnce(text.slice(end))} />
    </>
  );
}

/** Only ever given what `markdown` has sanitised. */
function Html({ html }: { html: string }) {
  return <div class="markdown" dangerouslySetInnerHTML={{ __html: html }} />;
}

/** The same, with what people need to use it: wide code and tables can be scrolled by keys, and code can be copied. */
function UsableHtml({ html }: { html: string }) {
  const place = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => {
    const wide = place.current?.querySelectorAll<HTMLElement>("pre, .table") ?? [];
    for (const element of wide) element.tabIndex = 0;
    const hosts = [...(place.current?.querySelectorAll<HTMLElement>(".code") ?? [])].map((code) => {
      const host = code.appendChild(document.createElement("div"));
      render(<Copy text={() => code.querySelector("pre")?.textContent ?? ""} />, host);
      return host;
    });
    return () => {
      for (const host of hosts) render(null, host);
    };
  }, [html]);
  return <div class="markdown" ref={place} dangerouslySetInnerHTML={{ __html: html }} />;
}
