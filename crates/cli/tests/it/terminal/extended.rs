//! Extensions, plugins and the memory in the session of a terminal.

use super::*;

/// Has a tool that leaves a file behind.
const GREETER: &str = r#"
import { writeFileSync } from "node:fs";
import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({
    tools: [{
        name: "greet",
        description: "Greets",
        parameters: { type: "object", properties: { who: { type: "string" } } },
        handler: async ({ who }) => (writeFileSync("greeted.txt", who), `Hello, ${who}!`),
    }],
});
"#;

#[test]
fn a_terminals_session_has_extensions_plugins_and_notes() {
    let scratch = Scratch::new();
    scratch.file(".github/extensions/greeter/extension.mjs", GREETER);
    let skill = "---\nname: sweep\ndescription: Sweeps the floor.\n---\nSweep.\n";
    let plugin = scratch.file("tidy/skills/sweep/SKILL.md", skill);
    let plugin = plugin.ancestors().nth(3).expect("the plugin").to_owned();
    scratch.run(HANGAR).args(["plugin", "install"]).arg(plugin).finish().expect_exit(0);
    let run = hangar(&scratch).env("HANGAR_FEATURES", "extensions,memory").arg("--allow-all-tools");
    let mut terminal = Terminal::open(run);
    terminal.prompt("/skills");
    terminal.wait_for("Sweeps the floor.");
    terminal.prompt(
        "TOOL:greet:{\"who\":\"Ada\"}\nTOOL:store_memory:{\"subject\":\"build\",\"fact\":\"make all builds it\"}\n\
         SAY:Both **are** done.",
    );
    terminal.wait_for("Both are done.");
    terminal.leave();
    let greeted = std::fs::read_to_string(scratch.work().join("greeted.txt"));
    assert_eq!(greeted.expect("the extension's tool ran"), "Ada");
    let notes = scratch.run(HANGAR).args(["memory", "list"]).finish().expect_exit(0);
    assert!(notes.stdout.contains("make all builds it"), "{}", notes.stdout);
}
