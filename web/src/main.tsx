import { render } from "preact";
import { App } from "./app";
import { startKeyboard } from "./keyboard";
import { loadMeta, startClock, startLive } from "./live/store";
import { startRouting } from "./router";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/pages.css";
import "./styles/issues.css";
import "./styles/transcript.css";
import "./styles/diff.css";
import "./styles/session.css";
import "./styles/chart.css";

const root = document.getElementById("app");
if (root === null) throw new Error("the page has no place for the application");

startRouting();
startKeyboard();
startClock();
render(<App />, root);
// The need for a token is known before any other request.
void loadMeta().then(startLive);
