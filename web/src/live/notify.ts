// Notifications of the browser, once a person has allowed them.

import { signal } from "@preact/signals";
import { paths } from "../router";

export interface Notice {
  readonly kind: string;
  readonly title: string;
  readonly text: string;
  readonly session?: string;
  readonly run?: string;
}

/** What the browser was told: `default` means that nobody was asked yet. */
export const notifyPermission = signal<NotificationPermission | "unsupported">(typeof Notification === "undefined" ? "unsupported" : Notification.permission);

export async function askToNotify(): Promise<void> {
  if (notifyPermission.value !== "unsupported") notifyPermission.value = await Notification.requestPermission();
}

/** A page that somebody looks at needs no notification. */
export function showNotice(notice: Notice): void {
  if (notifyPermission.value !== "granted" || document.visibilityState === "visible") return;
  const shown = new Notification(notice.title, { body: notice.text, tag: notice.session ?? notice.run ?? notice.kind });
  shown.onclick = () => {
    window.focus();
    if (notice.session !== undefined) location.assign(paths.session(notice.session));
    else if (notice.run !== undefined) location.assign(paths.run(notice.run));
  };
}
