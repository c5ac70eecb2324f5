// Search over the transcripts of all sessions.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { TranscriptHits } from "../api/resources";
import { paths, refine, search } from "../router";
import { Age, Empty, PageHead, Trouble } from "../ui/parts";

const TYPING_MS = 250;

export function SearchPage() {
  const query = search.value.get("query") ?? "";
  const [found, setFound] = useState<TranscriptHits | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    if (query.trim() === "") {
      setFound(null);
      return;
    }
    let ended = false;
    const timer = setTimeout(() => {
      api.search(query).then(
        (hits) => {
          if (!ended) setFound(hits);
        },
        (error: unknown) => setProblem(asProblem(error)),
      );
    }, TYPING_MS);
    return () => {
      ended = true;
      clearTimeout(timer);
    };
  }, [query]);
  return (
    <div class="page">
      <PageHead title="Search" sub="What was said in all sessions." />
      <input class="field wide" type="search" aria-label="Search all transcripts" placeholder="Search all transcripts" value={query} autoFocus onInput={(event) => refine({ query: event.currentTarget.value })} />
      {problem && <Trouble problem={problem} />}
      {found !== null && found.hits.length === 0 && <Empty icon="search" title="Nothing was found" />}
      <ul class="rows">
        {found?.hits.map((hit) => (
          <li key={`${hit.session} ${hit.at}`}>
            <a class="list-row search-hit" href={paths.session(hit.session)}>
              <span class="cell-name">
                <span class="row-title">{hit.name ?? hit.session}</span>
                <span class="row-sub">
                  {hit.role}: {hit.excerpt}
                </span>
              </span>
              <Age at={hit.at} />
            </a>
          </li>
        ))}
      </ul>
      {found?.partial && <p class="hint">There may be more; only the newest sessions were read.</p>}
    </div>
  );
}
