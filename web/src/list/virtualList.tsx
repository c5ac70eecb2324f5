// A virtual list: only rows near the view are rendered. The visible rows keep their position when rows above are loaded or
// grow; at the end of the list, the view follows the end.

import type { ComponentChildren, RefObject } from "preact";
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { type Anchor, Geometry, type Row } from "./geometry";

/** Rows this far out of view are drawn too, so that scrolling meets them ready. */
const BEYOND = 900;
/** This close to the end counts as the end. */
const END = 48;
/** Closer than this to an edge of the loaded rows, more are requested. */
const EDGE = 2_000;

export interface ListControl {
  toEnd(): void;
  toBeginning(): void;
  /** Brings a row into view and gives it the focus. */
  show(key: string): void;
  /** Brings a row into view, and leaves the focus where it is. */
  reveal(key: string): void;
  /** The row that has the focus, or the first one in view. */
  current(): string | null;
}

interface Props<R extends Row> {
  readonly rows: readonly R[];
  readonly render: (row: R) => ComponentChildren;
  readonly label: string;
  readonly control?: RefObject<ListControl | null>;
  /** The view is near the first or the last row. */
  readonly onEdge?: (edge: "first" | "last") => void;
  /** Whether the last row is the end of the log, which the view follows. */
  readonly ends?: boolean;
  readonly onFollow?: (follows: boolean) => void;
  readonly before?: ComponentChildren;
  /** Whether the view begins at the first row, and follows nothing. */
  readonly begins?: boolean;
}

export function VirtualList<R extends Row>({ rows, render, label, control, onEdge, ends = true, onFollow, before, begins = false }: Props<R>) {
  const scroller = useRef<HTMLDivElement>(null);
  const geometry = useRef(new Geometry());
  const known = useRef<readonly R[] | null>(null);
  const anchor = useRef<Anchor | null>(null);
  const following = useRef(!begins);
  const lastTop = useRef(0);
  const wanted = useRef<string | null>(null);
  const [, setTick] = useState(0);
  const redraw = useCallback(() => setTick((tick) => tick + 1), []);

  if (known.current !== rows) {
    known.current = rows;
    geometry.current.setRows(rows);
  }

  const observer = useRef<ResizeObserver | null>(null);
  if (observer.current === null) {
    observer.current = new ResizeObserver((entries) => {
      const measured: [string, number][] = [];
      let resized = false;
      for (const entry of entries) {
        const key = entry.target instanceof HTMLElement ? entry.target.dataset["row"] : undefined;
        if (key === undefined) resized = true;
        else measured.push([key, entry.borderBoxSize[0]?.blockSize ?? entry.contentRect.height]);
      }
      if (geometry.current.measure(measured) || resized) redraw();
    });
  }
  useEffect(() => () => observer.current?.disconnect(), []);

  const observed = useRef(new Map<string, Element>());
  const rowRef = useCallback((key: string, element: HTMLDivElement | null) => {
    const old = observed.current.get(key);
    if (old !== undefined && old !== element) {
      observer.current?.unobserve(old);
      observed.current.delete(key);
    }
    if (element !== null && old !== element) {
      observed.current.set(key, element);
      observer.current?.observe(element);
    }
  }, []);

  const setFollowing = (value: boolean) => {
    if (following.current === value) return;
    following.current = value;
    onFollow?.(value);
  };

  const onScroll = () => {
    const element = scroller.current;
    if (element === null) return;
    const top = element.scrollTop;
    const atEnd = element.scrollHeight - top - element.clientHeight < END;
    // Content that grew below is no reason to stop following; a reader who scrolled up is.
    if (atEnd && ends) setFollowing(true);
    else if (top < lastTop.current - 1) setFollowing(false);
    lastTop.current = top;
    anchor.current = geometry.current.anchor(top);
    redraw();
  };

  // After every render, restore the scroll position.
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element === null) return;
    let target: number | null = null;
    if (following.current) target = element.scrollHeight - element.clientHeight;
    else if (anchor.current !== null) target = geometry.current.scrollTo(anchor.current);
    if (target !== null && Math.abs(target - element.scrollTop) > 1) {
      element.scrollTop = target;
      lastTop.current = element.scrollTop;
    }
    if (wanted.current !== null) {
      const found = observed.current.get(wanted.current)?.querySelector<HTMLElement>("[data-focus]");
      if (found) {
        wanted.current = null;
        found.focus({ preventScroll: true });
        found.scrollIntoView({ block: "nearest" });
      }
    }
    if (element.scrollTop < EDGE) onEdge?.("first");
    if (element.scrollHeight - element.scrollTop - element.clientHeight < EDGE) onEdge?.("last");
  });

  useEffect(() => {
    const element = scroller.current;
    if (element !== null) observer.current?.observe(element);
  }, []);

  const reveal = (key: string) => {
    const at = geometry.current.indexOf(key);
    const element = scroller.current;
    if (at === null || element === null) return;
    const top = geometry.current.top(at);
    const bottom = geometry.current.top(at + 1);
    if (top < element.scrollTop || bottom > element.scrollTop + element.clientHeight) {
      setFollowing(false);
      anchor.current = { key, below: -element.clientHeight / 3 };
    }
    redraw();
  };

  if (control) {
    control.current = {
      reveal,
      toEnd: () => {
        setFollowing(true);
        redraw();
      },
      toBeginning: () => {
        setFollowing(false);
        anchor.current = rows[0] === undefined ? null : { key: rows[0].key, below: 0 };
        redraw();
      },
      show: (key) => {
        wanted.current = key;
        reveal(key);
      },
      current: () => {
        const focused = document.activeElement?.closest<HTMLElement>("[data-row]")?.dataset["row"];
        if (focused !== undefined) return focused;
        const element = scroller.current;
        return element === null ? null : (geometry.current.anchor(element.scrollTop)?.key ?? null);
      },
    };
  }

  const element = scroller.current;
  const viewport = element?.clientHeight ?? window.innerHeight;
  // Before the first layout the end is where the view will be.
  const viewTop = element === null || following.current ? Math.max(0, geometry.current.total - viewport) : element.scrollTop;
  const { from, to } = geometry.current.window(viewTop, viewport, BEYOND);

  return (
    <div class="vlist" ref={scroller} onScroll={onScroll} tabIndex={0} role="region" aria-label={label}>
      {before}
      <div class="vlist-space" style={{ height: `${geometry.current.total}px` }}>
        <div class="vlist-window" style={{ transform: `translateY(${geometry.current.top(from)}px)` }}>
          {rows.slice(from, to).map((row) => (
            <div key={row.key} data-row={row.key} ref={(node) => rowRef(row.key, node)}>
              {render(row)}
            </div>
          ))}
        </div>
      </div>
    </div>
  );
}
