// The page that asks for the token, instead of every other page until it is given.

import { useState } from "preact/hooks";
import { api, loginNeeded } from "../api/client";
import { type Problem, asProblem } from "../api/problem";
import { loadMeta, startLive } from "../live/store";
import { Trouble } from "../ui/parts";

export function LoginPage() {
  const [token, setToken] = useState("");
  const [problem, setProblem] = useState<Problem | null>(null);
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    try {
      await api.login(token.trim());
      loginNeeded.value = false;
      await loadMeta();
      startLive();
    } catch (error) {
      setProblem(asProblem(error));
    } finally {
      setBusy(false);
    }
  };
  return (
    <main class="login">
      <form class="card" onSubmit={submit}>
        <img src="/favicon.svg" alt="" width="40" height="40" />
        <h1>Hangar</h1>
        <p>This portal needs a token: the one that <code>hangar up</code> was started with.</p>
        <label class="form-field">
          <span>Token</span>
          <input class="field code" type="password" autocomplete="current-password" autoFocus value={token} onInput={(event) => setToken(event.currentTarget.value)} />
        </label>
        {problem && <Trouble problem={problem} />}
        <button type="submit" class="button primary wide" disabled={busy || token.trim() === ""}>
          Log in
        </button>
      </form>
    </main>
  );
}
