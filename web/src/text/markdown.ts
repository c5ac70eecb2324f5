// Renders Markdown of models and agents as safe HTML. The text is untrusted: HTML in it stays text, remote images become links
// (an image URL can exfiltrate data), and the result goes through an independent sanitiser.

import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";

/** Rendering more than this at once would freeze the page; `MarkdownView` shows the rest as plain text. */
export const RENDER_LIMIT = 200_000;
/** Characters of text and HTML that are kept. */
const CACHE_LIMIT = 4_000_000;

const parser = new MarkdownIt({ html: false, linkify: true, breaks: false, typographer: false });

parser.renderer.rules["image"] = (tokens, index) => {
  const token = tokens[index];
  const address = String(token?.attrGet("src") ?? "");
  const label = parser.utils.escapeHtml(token?.content || address);
  return `<a href="${parser.utils.escapeHtml(address)}">${label}</a>`;
};
for (const kind of ["fence", "code_block"]) {
  const plain = parser.renderer.rules[kind];
  parser.renderer.rules[kind] = (...given) => `<div class="code">${plain?.(...given) ?? ""}</div>`;
}
parser.renderer.rules["table_open"] = () => '<div class="table"><table>';
parser.renderer.rules["table_close"] = () => "</table></div>";

const ALLOWED_TAGS = [
  ...["p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "pre", "code", "em", "strong", "s", "a"],
  ...["ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td", "div"],
];

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node.tagName !== "A") return;
  const address = node.getAttribute("href") ?? "";
  if (!/^(https?:|mailto:)/i.test(address)) node.removeAttribute("href");
  node.setAttribute("target", "_blank");
  node.setAttribute("rel", "noopener noreferrer nofollow");
});

function render(text: string): string {
  return DOMPurify.sanitize(parser.render(text.slice(0, RENDER_LIMIT)), {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ["href", "start", "class"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
}

const cache = new Map<string, string>();
let cached = 0;

/** Safe HTML, cached because blocks scroll in and out of view. */
export function markdown(text: string): string {
  const known = cache.get(text);
  if (known !== undefined) return known;
  const html = render(text);
  cache.set(text, html);
  cached += text.length + html.length;
  for (const [oldest, its] of cache) {
    if (cached <= CACHE_LIMIT) break;
    cache.delete(oldest);
    cached -= oldest.length + its.length;
  }
  return html;
}

/** Without the cache, for text that changes with every piece. */
export function markdownOnce(text: string): string {
  return render(text);
}
