// Runs before an extension: tells Node where the SDK is. RESOLVER and SDK are put in by the host.
import { register } from "node:module";
import { pathToFileURL } from "node:url";

const path = process.env.COPILOT_SDK_PATH;
const folder = path ? pathToFileURL(path.endsWith("/") ? path : `${path}/`).href : null;
register("RESOLVER", { parentURL: import.meta.url, data: { folder, own: "SDK" } });
