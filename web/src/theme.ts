// The look of the pages: colours and density. A browser that has chosen no theme has the one of the machine, `[appearance]` in
// config.toml. `public/first.js` applies both before the first paint.

import { computed, effect, signal } from "@preact/signals";
import type { Meta } from "./api/resources";

/** The choice of this browser. */
export type Theme = "configured" | "system" | "light" | "dark";
export type Appearance = Meta["appearance"];

const KEY = "hangar.theme";
const MACHINE = "hangar.appearance";
const USUAL: Appearance = { theme: "system", density: "comfortable" };

function read(key: string): string {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

function keep(key: string, value: string | null): void {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // A browser that keeps nothing still shows what was chosen.
  }
}

function chosen(): Theme {
  const value = read(KEY);
  return value === "system" || value === "light" || value === "dark" ? value : "configured";
}

/** What the machine said last, until it says it again. */
function remembered(): Appearance {
  const [theme, density] = read(MACHINE).split(" ");
  return {
    theme: theme === "light" || theme === "dark" ? theme : USUAL.theme,
    density: density === "compact" ? density : USUAL.density,
  };
}

export const theme = signal<Theme>(chosen());
export const appearance = signal<Appearance>(remembered());
/** The theme that is shown. */
export const shownTheme = computed(() => (theme.value === "configured" ? appearance.value.theme : theme.value));

effect(() => {
  const root = document.documentElement.dataset;
  if (shownTheme.value === "system") delete root["theme"];
  else root["theme"] = shownTheme.value;
  if (appearance.value.density === "compact") root["density"] = "compact";
  else delete root["density"];
  keep(KEY, theme.value === "configured" ? null : theme.value);
  keep(MACHINE, `${appearance.value.theme} ${appearance.value.density}`);
});

export function nextTheme(): void {
  const order: Theme[] = ["configured", "light", "dark"];
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length] ?? "configured";
}
