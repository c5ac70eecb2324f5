// A question of an agent, with all that is needed to answer it, in the session and in the inbox alike.

import { useEffect, useState } from "preact/hooks";
import { api } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import type { Answer, Approval } from "../api/resources";
import { fields } from "../json";
import { takeApproval } from "../live/store";
import { Trouble } from "../ui/parts";
import { PermissionAsk, PlanAsk } from "./decision";
import { FormAsk } from "./form";
import { QuestionAsk } from "./question";

export type Reply = (answer: Answer) => void;

export interface AskProps {
  readonly approval: Approval;
  /** The data of the event that asked. */
  readonly data: ReturnType<typeof fields>;
  readonly reply: Reply;
  /** Whether the keys `a`, `s` and `d` apply to this card, so that the buttons show them. */
  readonly keys: boolean;
}

/** For this long after a question appears, keys do not answer it: they were probably meant for something else. */
const READABLE_MS = 800;

export function AskCard({ approval, keys }: { approval: Approval; keys: boolean }) {
  const [busy, setBusy] = useState(false);
  const [readable, setReadable] = useState(false);
  const [problem, setProblem] = useState<Problem | null>(null);
  useEffect(() => {
    const timer = setTimeout(() => setReadable(true), READABLE_MS);
    return () => clearTimeout(timer);
  }, []);
  const reply = async (answer: Answer) => {
    if (busy) return;
    setBusy(true);
    setProblem(null);
    try {
      takeApproval(await api.answer(approval.id, answer));
    } catch (error) {
      const failed = asProblem(error);
      // Somebody else has answered already.
      if (failed.status === 409 || failed.status === 404) takeApproval({ ...approval, state: "answered" });
      setProblem(failed);
    } finally {
      setBusy(false);
    }
  };
  return (
    <section class="ask" data-approval={approval.id} data-readable={readable} aria-label="A question that waits for an answer" tabIndex={-1}>
      <fieldset disabled={busy}>
        <Body approval={approval} data={fields(approval.event.data)} reply={(answer) => void reply(answer)} keys={keys} />
      </fieldset>
      {problem && <Trouble problem={problem} />}
    </section>
  );
}

function Body(props: AskProps) {
  switch (props.approval.kind) {
    case "permission":
      return <PermissionAsk {...props} />;
    case "question":
      return <QuestionAsk {...props} />;
    case "elicitation":
      return <FormAsk {...props} />;
    case "plan":
      return <PlanAsk {...props} />;
  }
}

/** Clicks a button of a card for a keyboard shortcut, unless the card has just appeared. */
export function pressAnswer(card: HTMLElement | null | undefined, answer: "approve" | "session" | "deny"): void {
  if (card?.dataset["readable"] === "true") card.querySelector<HTMLButtonElement>(`[data-answer="${answer}"]`)?.click();
}
