// Light, dark, or as the system is. `public/first.js` applies the choice before the first paint.

import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const KEY = "hangar.theme";

function stored(): Theme {
  try {
    const value = localStorage.getItem(KEY);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system";
  }
}

export const theme = signal<Theme>(stored());

effect(() => {
  const chosen = theme.value;
  if (chosen === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
  try {
    if (chosen === "system") localStorage.removeItem(KEY);
    else localStorage.setItem(KEY, chosen);
  } catch {
    // A browser that keeps nothing still shows the theme that was chosen.
  }
});

export function nextTheme(): void {
  const order: Theme[] = ["system", "light", "dark"];
  theme.value = order[(order.indexOf(theme.value) + 1) % order.length] ?? "system";
}
