// Sessions of a run beside its chart: their transcripts and changes, live, with their questions.

import { useEffect, useMemo, useState } from "preact/hooks";
import { AskCard } from "../ask/card";
import { openApprovals } from "../live/store";
import { paths } from "../router";
import { ChangesView } from "../session/changes";
import { SessionFeed } from "../session/feed";
import { TranscriptView } from "../session/transcript";
import { Folder } from "../text/diffView";
import { Icon } from "../ui/icons";
import { Loading, StateMark, Trouble } from "../ui/parts";

/** One session, in a column. */
export function SessionBeside({ id, title, close }: { id: string; title: string; close: () => void }) {
  const feed = useMemo(() => new SessionFeed(id), [id]);
  const [tab, setTab] = useState<"transcript" | "changes">("transcript");
  useEffect(() => {
    void feed.start();
    return () => feed.close();
  }, [feed]);
  const session = feed.session.value;
  const problem = feed.problem.value;
  const asks = openApprovals.value.filter((approval) => approval.sessionId === id);
  return (
    <section class="beside" aria-label={title}>
      <header>
        <h2>{title}</h2>
        {session && <StateMark state={session.state} />}
        <div class="segments">
          <button type="button" class="button small" aria-pressed={tab === "transcript"} onClick={() => setTab("transcript")}>
            Transcript
          </button>
          <button type="button" class="button small" aria-pressed={tab === "changes"} onClick={() => setTab("changes")}>
            Changes
          </button>
        </div>
        <a class="button small" href={paths.session(id)}>
          Open
        </a>
        <button type="button" class="button icon-only" aria-label={`Close ${title}`} onClick={close}>
          <Icon name="cross" />
        </button>
      </header>
      {problem && <Trouble problem={problem} />}
      {session === null || !feed.ready.value ? (
        problem === null && <Loading what="the session" />
      ) : (
        <Folder.Provider value={session.workspace}>
          {tab === "transcript" ? <TranscriptView feed={feed} session={session} /> : <ChangesView session={session} />}
        </Folder.Provider>
      )}
      {asks.length > 0 && (
        <div class="asks">
          {asks.map((approval, index) => (
            <AskCard key={approval.id} approval={approval} keys={index === 0} />
          ))}
        </div>
      )}
    </section>
  );
}
