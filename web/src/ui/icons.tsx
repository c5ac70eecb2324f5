// Icons of our own, drawn on a grid of 16 in the colour of the text around them.

const PATHS = {
  sessions: "M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z",
  approvals: "M8 1.8l5 1.9v4c0 3-2.1 5.2-5 6.5-2.9-1.3-5-3.5-5-6.5v-4zM5.8 8l1.6 1.6 2.9-3.1",
  jobs: "M2.5 2.5h4v4h-4zM9.5 2.5h4v4h-4zM2.5 9.5h4v4h-4zM9.5 9.5h4v4h-4z",
  runs: "M4 3a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3zM12 10a1.5 1.5 0 1 1 0 3 1.5 1.5 0 0 1 0-3zM4 6v3.5a2 2 0 0 0 2 2h4.5",
  runtimes: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.01M5 11h.01",
  settings: "M2.5 4.5h6M12 4.5h1.5M2.5 11.5h1.5M7.5 11.5h6M10.2 2.8a1.7 1.7 0 1 1 0 3.4 1.7 1.7 0 0 1 0-3.4zM5.7 9.8a1.7 1.7 0 1 1 0 3.4 1.7 1.7 0 0 1 0-3.4z",
  plus: "M8 3v10M3 8h10",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9zM10.3 10.3l3.2 3.2",
  chevron: "M6 4l4 4-4 4",
  check: "M3 8.5l3.2 3.2L13 5",
  cross: "M4 4l8 8M12 4l-8 8",
  stop: "M4.5 4.5h7v7h-7z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  play: "M5 3.2l7.5 4.8L5 12.8z",
  retry: "M13 8a5 5 0 1 1-1.6-3.7M13 2v3h-3",
  send: "M8 13V3M3.8 7.2L8 3l4.2 4.2",
  bolt: "M9 1.8L3.5 9H8l-1 5.2L12.5 7H8z",
  down: "M8 3v10M3.8 8.8L8 13l4.2-4.2",
  file: "M4 1.8h5l3.2 3.2v9.2H4zM9 1.8V5h3.2",
  terminal: "M2.5 3h11v10h-11zM5 6l2 2-2 2M8.5 10h2.5",
  pencil: "M3 13l.8-3L10.5 3.3l2.2 2.2L6 12.2z",
  globe: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM2 8h12M8 2c2 2 2.5 4 2.5 6S10 12 8 14c-2-2-2.5-4-2.5-6S6 4 8 2",
  agent: "M4 5.5h8v7H4zM8 5.5V3M6.3 8.5h.01M9.7 8.5h.01M2 8v2.5M14 8v2.5",
  tool: "M10.5 2.5a3 3 0 0 0-2.8 4.1L2.6 11.7l1.7 1.7 5.1-5.1a3 3 0 0 0 4-3.6l-1.8 1.8-1.7-.4-.4-1.7 1.8-1.8a3 3 0 0 0-.8-.1z",
  thought: "M8 2.5a4 4 0 0 1 2.3 7.3v1.7H5.7V9.8A4 4 0 0 1 8 2.5zM6.3 13.5h3.4",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9",
  warning: "M8 2.2l6 11H2zM8 6.5v3M8 11.4h.01",
  info: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM8 7.3v3.5M8 5.2h.01",
  question: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2zM6.3 6.4a1.8 1.8 0 1 1 2.6 1.6c-.6.3-.9.7-.9 1.3M8 11.3h.01",
  form: "M3 2.5h10v11H3zM5.5 5.5h5M5.5 8h5M5.5 10.5h2.5",
  plan: "M5.5 4h8M5.5 8h8M5.5 12h8M2.5 4h.01M2.5 8h.01M2.5 12h.01",
  copy: "M5.5 5.5h8v8h-8zM3.5 10.5h-1v-8h8v1",
  sun: "M8 5a3 3 0 1 1 0 6 3 3 0 0 1 0-6zM8 1.5v1.3M8 13.2v1.3M1.5 8h1.3M13.2 8h1.3M3.4 3.4l.9.9M11.7 11.7l.9.9M12.6 3.4l-.9.9M4.3 11.7l-.9.9",
  moon: "M13 9.6A5.5 5.5 0 0 1 6.4 3a5.5 5.5 0 1 0 6.6 6.6z",
  screen: "M2 3h12v8H2zM6 13.5h4",
  keyboard: "M1.8 4h12.4v8H1.8zM4.5 6.5h.01M7 6.5h.01M9.5 6.5h.01M12 6.5h.01M5 9.5h6",
  folder: "M2 4h4.2l1.3 1.5H14v7H2z",
  exit: "M6.5 2.5h-4v11h4M10 5l3 3-3 3M13 8H6",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} fill="none" stroke="currentColor" stroke-width="1.4" stroke-linecap="round" stroke-linejoin="round" />
    </svg>
  );
}
