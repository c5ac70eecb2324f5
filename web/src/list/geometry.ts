// Positions of the rows of a long list, most of which have never been rendered. Pure: no elements, no scrolling.

export interface Row {
  readonly key: string;
  /** Estimated height until the row is measured. */
  readonly guess: number;
}

/** A place in the list that does not depend on what is above it. */
export interface Anchor {
  readonly key: string;
  /** Offset of the top of the view from the top of that row. */
  readonly below: number;
}

export interface Window {
  readonly from: number;
  /** One after the last. */
  readonly to: number;
}

/** Heights of rows that are not in the list and may be again. */
const SPARE_HEIGHTS = 1_000;

export class Geometry {
  private rows: readonly Row[] = [];
  private heights = new Map<string, number>();
  private index = new Map<string, number>();
  private tops = new Float64Array(1);

  setRows(rows: readonly Row[]): void {
    this.rows = rows;
    this.index = new Map(rows.map((row, at) => [row.key, at]));
    // Rows that are gone for good leave their heights behind; those that come back would only be measured again.
    if (this.heights.size > 2 * rows.length + SPARE_HEIGHTS) {
      for (const key of this.heights.keys()) if (!this.index.has(key)) this.heights.delete(key);
    }
    this.reckon();
  }

  /** Takes measured heights. True if anything moved. */
  measure(measured: Iterable<readonly [string, number]>): boolean {
    let moved = false;
    for (const [key, height] of measured) {
      if (Math.abs((this.heights.get(key) ?? -1) - height) < 0.5) continue;
      this.heights.set(key, height);
      moved = true;
    }
    if (moved) this.reckon();
    return moved;
  }

  get total(): number {
    return this.tops[this.rows.length] ?? 0;
  }

  top(at: number): number {
    return this.tops[Math.max(0, Math.min(at, this.rows.length))] ?? 0;
  }

  indexOf(key: string): number | null {
    return this.index.get(key) ?? null;
  }

  /** The row at a distance from the top. */
  rowAt(distance: number): number {
    let low = 0;
    let high = this.rows.length;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if ((this.tops[middle] ?? 0) <= distance) low = middle;
      else high = middle - 1;
    }
    return Math.min(low, Math.max(0, this.rows.length - 1));
  }

  window(scrollTop: number, viewport: number, beyond: number): Window {
    if (this.rows.length === 0) return { from: 0, to: 0 };
    const from = this.rowAt(Math.max(0, scrollTop - beyond));
    const to = this.rowAt(scrollTop + viewport + beyond) + 1;
    return { from, to };
  }

  anchor(scrollTop: number): Anchor | null {
    const at = this.rowAt(scrollTop);
    const row = this.rows[at];
    return row === undefined ? null : { key: row.key, below: scrollTop - this.top(at) };
  }

  /** Scroll position at which the anchor stays in place. `null` if its row was removed. */
  scrollTo(anchor: Anchor): number | null {
    const at = this.index.get(anchor.key);
    return at === undefined ? null : this.top(at) + anchor.below;
  }

  private reckon(): void {
    const tops = new Float64Array(this.rows.length + 1);
    let sum = 0;
    this.rows.forEach((row, at) => {
      tops[at] = sum;
      sum += this.heights.get(row.key) ?? row.guess;
    });
    tops[this.rows.length] = sum;
    this.tops = tops;
  }
}
