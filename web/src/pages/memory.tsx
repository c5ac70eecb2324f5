// Notes that models keep about repositories: people read, change and delete them.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Memory, MemoryNote } from "../api/resources";
import { shortPath } from "../format";
import { Action, Confirm, Empty, Loading, PageHead, Trouble } from "../ui/parts";

/** Longest note, as the server has it. */
const LONGEST = 1000;

export function MemoryPage() {
  const [memory, setMemory] = useState<Memory | null>(null);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    api.memory().then(setMemory, (error: unknown) => setProblem(asProblem(error)));
  }, []);
  const count = memory?.repositories.reduce((sum, repository) => sum + repository.notes.length, 0) ?? 0;
  return (
    <div class="page narrow">
      <PageHead title="Memory" sub={memory === null ? undefined : `${count} ${count === 1 ? "note" : "notes"} that agents keep for later sessions.`} />
      {problem && <Trouble problem={problem} />}
      {memory === null && problem === null && <Loading what="notes" />}
      {memory !== null && count === 0 && (
        <Empty icon="thought" title="No notes are kept">
          <p>
            With the feature <code>memory</code>, agents may keep facts about a repository, each with your permission.
          </p>
        </Empty>
      )}
      {memory?.repositories.map(({ repository, notes }) => (
        <section class="panel" key={repository} aria-label={repository}>
          <h2 title={repository}>{shortPath(repository)}</h2>
          <ul class="notes">
            {notes.map((note) => (
              <Note key={note.id} repository={repository} note={note} onChange={setMemory} onFail={setProblem} />
            ))}
          </ul>
        </section>
      ))}
    </div>
  );
}

interface NoteProps {
  readonly repository: string;
  readonly note: MemoryNote;
  readonly onChange: (memory: Memory) => void;
  readonly onFail: (problem: Problem | null) => void;
}

function Note({ repository, note, onChange, onFail }: NoteProps) {
  const [fact, setFact] = useState<string | null>(null);
  const [deleting, setDeleting] = useState(false);
  const save = async () => {
    onChange(await api.editNote({ repository, id: note.id, fact: fact ?? note.fact }));
    setFact(null);
  };
  return (
    <li class="note">
      <div class="note-head">
        <strong>{note.subject}</strong>
        {note.citations !== "" && <code>{note.citations}</code>}
      </div>
      {fact === null ? (
        <p>{note.fact}</p>
      ) : (
        <textarea
          class="field wide"
          aria-label={`Note about ${note.subject}`}
          rows={3}
          maxLength={LONGEST}
          value={fact}
          autoFocus
          onInput={(event) => setFact(event.currentTarget.value)}
        />
      )}
      <div class="note-actions">
        {fact === null ? (
          <>
            <button type="button" class="button small" aria-label={`Edit the note about ${note.subject}`} onClick={() => setFact(note.fact)}>
              Edit
            </button>
            <button type="button" class="button small" aria-label={`Delete the note about ${note.subject}`} onClick={() => setDeleting(true)}>
              Delete
            </button>
          </>
        ) : (
          <>
            <Action label="Save" small tone="primary" disabled={fact.trim() === ""} act={save} onFail={onFail} />
            <button type="button" class="button small" onClick={() => setFact(null)}>
              Cancel
            </button>
          </>
        )}
      </div>
      {deleting && (
        <Confirm
          title="Delete this note?"
          action="Delete"
          onClose={() => setDeleting(false)}
          onConfirm={() => {
            setDeleting(false);
            api.deleteNote(repository, note.id).then(onChange, (error: unknown) => onFail(asProblem(error)));
          }}
        >
          <p>Later sessions are not told of it any more.</p>
        </Confirm>
      )}
    </li>
  );
}
