//! The steps of the gate, as each agent is driven through them: prompts, flags, and what the simulated vendor answers.

use std::path::Path;

use serde_json::{Value, json};

use super::contender::Kind;

/// An image of one pixel.
pub(super) const PNG: &[u8] = &[
    0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0,
    0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, b'I', b'D', b'A', b'T', 0x08, 0xd7, 0x63,
    0xf8, 0xcf, 0xc0, 0, 0, 3, 1, 1, 0, 0x18, 0xdd, 0x8d, 0xb0, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae,
    0x42, 0x60, 0x82,
];
/// An MCP server with a few tools.
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/cli/tests/servers/odd.mjs");
/// Tools that Claude Code may use without asking.
const CLAUDE_TOOLS: &str = "Bash,Read,Edit,Task,Agent";

/// A prompt in a process of its own.
pub(super) struct Step {
    pub(super) name: &'static str,
    /// The words by which the vendor knows its requests.
    word: &'static str,
    /// Answers of the vendor, or none if the agent has no way to do the step.
    pub(super) turns: fn(Kind, &Path) -> Option<Vec<String>>,
    /// Whether the session begins here.
    begins: bool,
    /// Whether another model answers.
    pub(super) switches: bool,
    /// Whether the process is killed when its command runs.
    pub(super) killed: bool,
    /// Whether an MCP server is there that was not before.
    late_server: bool,
}

const STEP: Step = Step {
    name: "",
    word: "",
    turns: |_, _| None,
    begins: false,
    switches: false,
    killed: false,
    late_server: false,
};

pub(super) const STEPS: [Step; 9] = [
    Step { name: "edit, three calls at once", word: "STEP-ONE", turns: edit, begins: true, ..STEP },
    Step { name: "image result", word: "STEP-TWO", turns: image, ..STEP },
    Step { name: "cut call", word: "STEP-THREE", turns: cut, ..STEP },
    Step { name: "sub-agent", word: "STEP-FOUR", turns: sub_agent, ..STEP },
    Step { name: "model switch", word: "STEP-FIVE", turns: switch, switches: true, ..STEP },
    Step { name: "killed", word: "STEP-SIX", turns: sleep, killed: true, ..STEP },
    Step { name: "resume after the kill", word: "STEP-SEVEN", turns: resume, ..STEP },
    Step { name: "late MCP server", word: "STEP-EIGHT", turns: late, late_server: true, ..STEP },
    Step { name: "compaction", word: "/compact", turns: compact, ..STEP },
];

impl Step {
    pub(super) fn prompt(&self) -> String {
        if self.word.starts_with('/') {
            self.word.to_owned()
        } else {
            format!("{}: go on with the work.", self.word)
        }
    }

    /// The flags of a process that goes on with the session, from those of one that begins it. The prompt is the last.
    pub(super) fn args(&self, kind: Kind, model: &str, mut args: Vec<String>) -> Vec<String> {
        if let Some(tools) = args.iter_mut().find(|word| *word == "Bash") {
            *tools = CLAUDE_TOOLS.to_owned();
        }
        let prompt = args.pop().unwrap_or_default();
        let servers = json!({ "mcpServers": { "late": { "command": "node", "args": [SERVER, "plain", "/dev/null"] } } });
        let mut flags: Vec<String> = match kind {
            _ if !self.late_server => Vec::new(),
            Kind::Hangar | Kind::Copilot => vec!["--additional-mcp-config".to_owned(), servers.to_string()],
            Kind::Claude => vec!["--mcp-config".to_owned(), servers.to_string()],
            Kind::Codex => {
                let server = format!(
                    "mcp_servers.late={{command=\"node\",args=[\"{SERVER}\",\"plain\",\"/dev/null\"]}}"
                );
                vec!["-c".to_owned(), server]
            }
        };
        // Some agents go on with the model of the session, some with that of the environment. A flag is obeyed by all, so that each
        // step is done by the same model, at the same price.
        if kind != Kind::Codex {
            flags.extend(["--model".to_owned(), model.to_owned()]);
        }
        let goes_on: &[&str] = match kind {
            _ if self.begins => &[],
            Kind::Hangar | Kind::Copilot | Kind::Claude => &["--continue"],
            Kind::Codex => &["resume", "--last"],
        };
        let goes_on = goes_on.iter().map(|word| (*word).to_owned());
        match kind {
            // `-p` is the last word before the prompt.
            Kind::Hangar | Kind::Copilot | Kind::Claude => {
                let ask = args.pop();
                args.into_iter().chain(flags).chain(goes_on).chain(ask).chain([prompt]).collect()
            }
            Kind::Codex => args.into_iter().chain(flags).chain(goes_on).chain([prompt]).collect(),
        }
    }
}

/// A turn of the vendor for the requests of a step that offer tools. Other requests, such as those for titles, get a pong.
fn turn(word: &str, pieces: &[String], end: &str) -> String {
    format!(
        "[[turn]]\nwhen = {{ prompt = {}, tools = true }}\nsay = [{}]\n{end}\n",
        json!(word),
        pieces.join(", ")
    )
}

fn think(text: &str) -> String {
    format!("{{ thinking = {} }}", json!(text))
}

fn say(text: &str) -> String {
    format!("{{ text = {} }}", json!(text))
}

fn call(tool: &str, arguments: &Value) -> String {
    let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    format!("{{ call = {}, arguments = {} }}", json!(tool), json!(arguments))
}

fn shell(kind: Kind, command: &str) -> String {
    match kind {
        Kind::Hangar | Kind::Copilot => call("bash", &json!({ "command": command, "description": "work" })),
        Kind::Claude => call("Bash", &json!({ "command": command, "description": "work" })),
        Kind::Codex => call("exec_command", &json!({ "cmd": command })),
    }
}

fn view(kind: Kind, project: &Path, file: &str) -> String {
    let path = project.join(file);
    match kind {
        Kind::Hangar | Kind::Copilot => call("view", &json!({ "path": path })),
        Kind::Claude => call("Read", &json!({ "file_path": path })),
        Kind::Codex if file.ends_with(".png") => call("view_image", &json!({ "path": path })),
        Kind::Codex => shell(kind, &format!("cat {file}")),
    }
}

/// A change by a command, since not all agents have the same tools for it, then three files at once.
fn edit(kind: Kind, project: &Path) -> Option<Vec<String>> {
    let word = "STEP-ONE";
    let views: Vec<String> =
        ["a.txt", "b.txt", "c.txt"].iter().map(|file| view(kind, project, file)).collect();
    Some(vec![
        turn(word, &[think("First the change."), shell(kind, "echo delta >> a.txt")], ""),
        turn(word, &[vec![think("Now all three.")], views].concat(), ""),
        turn(word, &[think("Much."), shell(kind, "seq 1 30000")], ""),
        turn(word, &[say("Done.")], ""),
    ])
}

/// The first image of a conversation loses the cache of its messages at Anthropic. Copilot does not pay for that there: it says
/// that the image was viewed, and sends none.
fn image(kind: Kind, project: &Path) -> Option<Vec<String>> {
    let word = "STEP-TWO";
    Some(vec![turn(word, &[view(kind, project, "dot.png")], ""), turn(word, &[say("A dot.")], "")])
}

fn cut(kind: Kind, _: &Path) -> Option<Vec<String>> {
    let word = "STEP-THREE";
    let (tool, half) = match kind {
        Kind::Hangar | Kind::Copilot => ("bash", "{\"command\": \"echo never"),
        Kind::Claude => ("Bash", "{\"command\": \"echo never"),
        Kind::Codex => ("exec_command", "{\"cmd\": \"echo never"),
    };
    let half = call(tool, &Value::String(half.to_owned()));
    Some(vec![turn(word, &[half], "end = \"length\""), turn(word, &[say("Then not.")], "")])
}

fn sub_agent(kind: Kind, project: &Path) -> Option<Vec<String>> {
    let word = "STEP-FOUR";
    let prompt = format!("{word}: look into b.txt.");
    let start = match kind {
        Kind::Hangar | Kind::Copilot => call(
            "task",
            &json!({ "agent_type": "explore", "prompt": prompt, "description": "look", "name": "looker", "mode": "sync" }),
        ),
        Kind::Claude => {
            call("Agent", &json!({ "description": "look", "prompt": prompt, "subagent_type": "Explore" }))
        }
        Kind::Codex => return None,
    };
    Some(vec![
        turn(word, &[start], ""),
        turn(word, &[view(kind, project, "b.txt")], ""),
        turn(word, &[say("There is beta.")], ""),
        turn(word, &[say("Done.")], ""),
    ])
}

fn switch(kind: Kind, project: &Path) -> Option<Vec<String>> {
    let word = "STEP-FIVE";
    Some(vec![turn(word, &[view(kind, project, "c.txt")], ""), turn(word, &[say("Gamma.")], "")])
}

fn sleep(kind: Kind, _: &Path) -> Option<Vec<String>> {
    Some(vec![turn("STEP-SIX", &[shell(kind, "touch started; sleep 60")], "")])
}

fn resume(_: Kind, _: &Path) -> Option<Vec<String>> {
    Some(vec![turn("STEP-SEVEN", &[say("It was interrupted.")], "")])
}

fn late(kind: Kind, project: &Path) -> Option<Vec<String>> {
    let word = "STEP-EIGHT";
    Some(vec![turn(word, &[view(kind, project, "a.txt")], ""), turn(word, &[say("Seen.")], "")])
}

/// The summary is asked for without words of the step. Codex has no such command outside of its terminal.
fn compact(kind: Kind, _: &Path) -> Option<Vec<String>> {
    (kind != Kind::Codex).then(Vec::new)
}
