// All questions of all sessions that wait for somebody, oldest first.

import { useEffect } from "preact/hooks";
import type { Approval } from "../api/resources";
import { sessionTitle } from "../format";
import { moveFocus, useShortcuts } from "../keyboard";
import { askToNotify, notifyPermission } from "../live/notify";
import { loadApprovals, openApprovals } from "../live/store";
import { paths } from "../router";
import { AskCard, pressAnswer } from "../ask/card";
import { Empty, PageHead } from "../ui/parts";

function titleOf({ sessionId, sessionName }: Approval): string {
  return sessionTitle({ id: sessionId, ...(sessionName === undefined ? {} : { name: sessionName }) });
}

/** The card that has the focus, or the first one. */
function current(): HTMLElement | null {
  return document.activeElement?.closest<HTMLElement>(".ask") ?? document.querySelector<HTMLElement>(".ask");
}

export function ApprovalsPage() {
  useEffect(() => void loadApprovals(), []);
  useShortcuts("Approvals", [
    { keys: "j", does: "Next question", run: () => moveFocus(".ask", 1) },
    { keys: "k", does: "Previous question", run: () => moveFocus(".ask", -1) },
    { keys: "a", does: "Allow", run: () => pressAnswer(current(), "approve") },
    { keys: "s", does: "Allow for the session", run: () => pressAnswer(current(), "session") },
    { keys: "d", does: "Deny", run: () => pressAnswer(current(), "deny") },
  ]);
  const open = [...openApprovals.value].sort((one, other) => one.since.localeCompare(other.since));
  return (
    <div class="page narrow">
      <PageHead title="Approvals" sub={open.length === 0 ? undefined : `${open.length} waiting`}>
        {notifyPermission.value === "default" && (
          <button type="button" class="button" onClick={() => void askToNotify()}>
            Notify me in this browser
          </button>
        )}
      </PageHead>
      {open.length === 0 ? (
        <Empty icon="approvals" title="Nothing waits for you">
          <p>When an agent asks for a permission or has a question, it shows up here, and as a number in the navigation.</p>
          <a class="button" href="/sessions">
            See the sessions
          </a>
        </Empty>
      ) : (
        <ul class="inbox">
          {open.map((approval, index) => (
            <li key={approval.id}>
              <a class="inbox-session" href={paths.session(approval.sessionId)}>
                {titleOf(approval)}
              </a>
              <AskCard approval={approval} keys={index === 0} />
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
