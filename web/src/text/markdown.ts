// Markdown of models and agents as HTML that is safe to show. What they write is hostile until shown otherwise:
// HTML in it stays text, pictures from elsewhere are links (a picture's address can carry what was read), and what is
// left goes through a sanitiser that knows nothing of how it came about.

import DOMPurify from "dompurify";
import MarkdownIt from "markdown-it";

/** Rendering more than that at once would stop the page; the rest is shown as it is. */
const RENDER_LIMIT = 200_000;
const CACHE_ENTRIES = 300;

const parser = new MarkdownIt({ html: false, linkify: true, breaks: false, typographer: false });

parser.renderer.rules["image"] = (tokens, index) => {
  const token = tokens[index];
  const address = String(token?.attrGet("src") ?? "");
  const label = parser.utils.escapeHtml(token?.content || address);
  return `<a href="${parser.utils.escapeHtml(address)}">${label}</a>`;
};
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
  const shown = text.length > RENDER_LIMIT ? text.slice(0, RENDER_LIMIT) : text;
  const html = parser.render(shown);
  return DOMPurify.sanitize(html, {
    ALLOWED_TAGS,
    ALLOWED_ATTR: ["href", "start", "class"],
    ALLOW_DATA_ATTR: false,
    ALLOW_ARIA_ATTR: false,
  });
}

const cache = new Map<string, string>();

/** Safe HTML. Blocks scroll in and out of view, so what was rendered lately is kept. */
export function markdown(text: string): string {
  const known = cache.get(text);
  if (known !== undefined) return known;
  const html = render(text);
  if (cache.size >= CACHE_ENTRIES) {
    const oldest = cache.keys().next();
    if (!oldest.done) cache.delete(oldest.value);
  }
  cache.set(text, html);
  return html;
}

/** For text that changes with every piece: it would only push others out. */
export function markdownOnce(text: string): string {
  return render(text);
}
