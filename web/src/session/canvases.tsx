// Open canvases of a session: pages of its extensions and clients, each in a frame that cannot reach this page.

import type { Canvas, Session } from "../api/resources";

/** Pages of this machine are framed; all others are links. The server's policy for frames says the same. */
export function isFramed(url: string): boolean {
  return /^http:\/\/(127\.0\.0\.1|localhost)(:\d+)?(\/|$)/.test(url);
}

/** Addresses come from programs: only those of the web are links. */
export function isLink(url: string): boolean {
  return /^https?:\/\//.test(url);
}

export function Canvases({ session }: { session: Session }) {
  if (session.canvases === undefined) return null;
  return (
    <div class="canvases">
      {session.canvases.map((canvas) => (
        <CanvasView key={canvas.instanceId} canvas={canvas} />
      ))}
    </div>
  );
}

function CanvasView({ canvas }: { canvas: Canvas }) {
  const title = canvas.title ?? canvas.canvasId;
  const url = canvas.url;
  return (
    <details class="canvas" open>
      <summary>
        <strong>{title}</strong>
        <span class="hint">
          {canvas.provider}
          {canvas.status !== undefined && ` · ${canvas.status}`}
        </span>
      </summary>
      {url === undefined ? (
        <p class="hint">The program that shows this canvas is gone.</p>
      ) : (
        <>
          {isFramed(url) && <iframe title={title} src={url} sandbox="allow-scripts allow-forms" referrerpolicy="no-referrer" />}
          {isLink(url) ? (
            <a href={url} target="_blank" rel="noopener noreferrer">
              Open in a tab
            </a>
          ) : (
            <code>{url}</code>
          )}
        </>
      )}
    </details>
  );
}
