// A question in words, with choices, a free answer, or both.

import { useState } from "preact/hooks";
import { list, text } from "../json";
import { Markdown } from "../text/markdownView";
import type { AskProps } from "./card";
import { Head } from "./head";

export function QuestionAsk({ approval, data, reply }: AskProps) {
  const [words, setWords] = useState("");
  const choices = list(data["choices"]).filter((choice) => typeof choice === "string");
  const free = data["allowFreeform"] !== false || choices.length === 0;
  const send = () => {
    if (words.trim() !== "") reply({ answer: words });
  };
  return (
    <>
      <Head approval={approval} title="Has a question" detail="" />
      <Markdown text={text(data["question"])} />
      <div class="ask-actions">
        {choices.map((choice) => (
          <button type="button" class="button choice-button" onClick={() => reply({ answer: choice })}>
            {choice}
          </button>
        ))}
        {free && (
          <span class="ask-words">
            <input
              class="field"
              aria-label="Your answer"
              placeholder={choices.length > 0 ? "Or something else" : "Your answer"}
              value={words}
              onInput={(event) => setWords(event.currentTarget.value)}
              onKeyDown={(event) => {
                if (event.key === "Enter" && !event.isComposing) send();
              }}
            />
            <button type="button" class="button primary" onClick={send} disabled={words.trim() === ""}>
              Answer
            </button>
          </span>
        )}
      </div>
    </>
  );
}
