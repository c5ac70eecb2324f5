// A tool call in one line: what is done, to what. For an unknown tool, the first meaningful argument.

import type { Json } from "../json";
import type { IconName } from "../ui/icons";

export interface ToolWords {
  readonly icon: IconName;
  readonly verb: string;
  readonly object: string;
  /** Whether the object is code: a command, a path, a pattern. */
  readonly code: boolean;
}

type Args = { readonly [key: string]: Json };

const OBJECT_LIMIT = 200;

function argsOf(args: Json): Args {
  return typeof args === "object" && args !== null && !Array.isArray(args) ? args : {};
}

function word(args: Args, ...names: string[]): string {
  for (const name of names) {
    const value = args[name];
    if (typeof value === "string" && value !== "") return value;
  }
  return "";
}

/** A patch is text without a path of its own. */
function patchPath(args: Json): string {
  const patch = typeof args === "string" ? args : word(argsOf(args), "input", "patch");
  return /^\*\*\* (?:Add|Update|Delete) File: (.+)$/m.exec(patch)?.[1] ?? "";
}

/** Some agents hand over a list of words. */
function command(args: Args): string {
  const words = args["command"];
  return Array.isArray(words) ? words.join(" ") : word(args, "command", "cmd");
}

function firstText(args: Args): string {
  const found = Object.values(args).find((value) => typeof value === "string" && value !== "");
  return typeof found === "string" ? found : "";
}

export function toolWords(name: string, args: Json): ToolWords {
  const known = argsOf(args);
  const path = word(known, "path", "file_path", "filePath", "filename", "file");
  const make = (icon: IconName, verb: string, object: string, code = true): ToolWords => ({
    icon,
    verb,
    object: object.length > OBJECT_LIMIT ? `${object.slice(0, OBJECT_LIMIT)}…` : object,
    code,
  });
  switch (name.toLowerCase()) {
    case "bash":
    case "shell":
    case "local_shell":
    case "exec_command":
    case "run_command":
    case "powershell":
      return make("terminal", "Run", command(known).split("\n")[0] ?? "");
    case "read_bash":
    case "write_bash":
    case "stop_bash":
      return make("terminal", name.replace("_bash", " shell"), word(known, "shellId", "sessionId"));
    case "view":
    case "read":
    case "read_file":
      return make("file", "Read", path);
    case "edit":
    case "str_replace_editor":
    case "multiedit":
      return make("pencil", "Edit", path);
    case "create":
    case "write":
    case "write_file":
      return make("pencil", "Write", path);
    case "apply_patch":
      return make("pencil", "Patch", patchPath(args));
    case "grep":
    case "rg":
    case "search":
      return make("search", "Search", word(known, "pattern", "query"));
    case "glob":
    case "ls":
    case "list_directory":
      return make("folder", "List", word(known, "pattern", "path"));
    case "web_fetch":
    case "fetch":
    case "webfetch":
    case "web_search":
    case "websearch":
      return make("globe", "Fetch", word(known, "url", "query"));
    case "task":
    case "agent":
      return make("agent", "Agent", word(known, "description", "name"), false);
    case "ask_user":
      return make("info", "Ask", word(known, "question", "message"), false);
    case "report_intent":
      return make("info", "Intends", word(known, "intent"), false);
    case "exit_plan_mode":
      return make("plan", "Plan", word(known, "summary"), false);
    case "task_complete":
      return make("check", "Done", word(known, "summary"), false);
    case "skill":
      return make("tool", "Skill", word(known, "skill", "name"), false);
    default:
      return make("tool", name, firstText(known));
  }
}
