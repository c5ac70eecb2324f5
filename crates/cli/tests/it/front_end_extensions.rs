//! Extensions, plugins and memory in every front end beside the SDK server: `-p` and `run`, with the rules of trust and
//! permission.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::{Finished, Invocation, ModelServer, Scratch};
use serde_json::{Value, json};

use crate::hangar;

/// The two ways to give our own agent one prompt.
const WAYS: [&[&str]; 2] = [&[], &["run", "--runtime", "native"]];

/// Folders of extensions, below the working directory.
const PROJECT: &str = ".github/extensions";
const USER: &str = "../home/state/extensions";

/// Has a tool and a command, and leaves its process id behind.
const GREETER: &str = r#"
import { writeFileSync } from "node:fs";
import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession({
    tools: [{
        name: "greet",
        description: "Greets",
        parameters: { type: "object", properties: { who: { type: "string" } } },
        handler: async ({ who }) => `Hello, ${who}!`,
    }],
    commands: [{ name: "hail", description: "Hails", handler: async ({ args }) => session.log(`Hail ${args}!`) }],
});
writeFileSync("greeter.pid", String(process.pid));
"#;

/// Refuses every call of a tool.
const GUARD: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({
    hooks: { onPreToolUse: async () => ({ permissionDecision: "deny", permissionDecisionReason: "the guard says no" }) },
});
"#;

const GREET: &str = "TOOL:greet:{\"who\":\"Ada\"}\nSAY:done";

fn stage() -> (Scratch, ModelServer) {
    (Scratch::new(), ModelServer::start())
}

fn prompt(scratch: &Scratch, model: &ModelServer, way: &[&str], text: &str) -> Invocation {
    let run = hangar(scratch, model).env("HANGAR_FEATURES", "extensions").args(way).args(["-p", text]);
    run.args(["--output-format", "json"])
}

/// Contents of the results of tools.
fn results(events: &[Value]) -> Vec<String> {
    let ended = Finished::of_type(events, "tool.execution_complete").into_iter().map(|event| &event["data"]);
    let told = ended.map(|data| match &data["result"]["content"] {
        Value::String(content) => content.clone(),
        _ => data["error"]["message"].as_str().unwrap_or_default().to_owned(),
    });
    told.collect()
}

/// Ids of the extensions with their states, as they were told last.
fn loaded(events: &[Value]) -> Vec<String> {
    let told = Finished::of_type(events, "session.extensions_loaded");
    let Some(last) = told.last() else { return Vec::new() };
    let all = last["data"]["extensions"].as_array().unwrap().iter();
    all.map(|each| format!("{} {}", each["id"].as_str().unwrap(), each["status"].as_str().unwrap())).collect()
}

#[test]
fn a_prompt_has_the_tools_of_extensions_and_they_end_with_it() {
    for way in WAYS {
        let (scratch, model) = stage();
        scratch.file(&format!("{USER}/greeter/extension.mjs"), GREETER);
        let run = prompt(&scratch, &model, way, GREET).args(["--allow-all-tools", "--all-events"]);
        let events = run.finish().expect_exit(0).events();
        assert_eq!(loaded(&events), ["user:greeter running"], "{way:?}");
        assert_eq!(results(&events), ["Hello, Ada!"], "{way:?}");
        let pid = std::fs::read_to_string(scratch.work().join("greeter.pid")).unwrap();
        assert!(
            !std::path::Path::new(&format!("/proc/{pid}")).exists(),
            "{way:?}: it ended with the session"
        );
    }
}

#[test]
fn a_prompt_loads_none_without_the_feature() {
    let (scratch, model) = stage();
    scratch.file(&format!("{USER}/greeter/extension.mjs"), GREETER);
    let run = prompt(&scratch, &model, &[], GREET).without_env("HANGAR_FEATURES").args(["--allow-all-tools"]);
    let events = run.finish().expect_exit(0).events();
    assert!(results(&events)[0].contains("Tool 'greet' does not exist"), "{:?}", results(&events));
    assert!(!scratch.work().join("greeter.pid").exists());
}

#[test]
fn a_projects_extensions_need_trust() {
    let (scratch, model) = stage();
    scratch.file(&format!("{PROJECT}/greeter/extension.mjs"), GREETER);
    let run = || prompt(&scratch, &model, &[], GREET).args(["--allow-tool", "greet", "--all-events"]);
    let events = run().finish().expect_exit(0).events();
    assert_eq!(loaded(&events), Vec::<String>::new());
    assert!(!scratch.work().join("greeter.pid").exists(), "nothing of the project ran");
    let events = run().env("GITHUB_COPILOT_PROMPT_MODE_EXTENSIONS", "true").finish().expect_exit(0).events();
    assert_eq!(
        (loaded(&events), results(&events)),
        (vec!["project:greeter running".to_owned()], vec!["Hello, Ada!".to_owned()])
    );
}

#[test]
fn the_rules_decide_about_an_extensions_hooks_and_tools() {
    let (scratch, model) = stage();
    scratch.file(&format!("{USER}/greeter/extension.mjs"), GREETER);
    let events = prompt(&scratch, &model, &[], GREET).finish().expect_exit(0).events();
    assert!(results(&events)[0].starts_with("Permission denied"), "{:?}", results(&events));
    scratch.file(&format!("{USER}/guard/extension.mjs"), GUARD);
    let run = || prompt(&scratch, &model, &[], GREET).args(["--allow-tool", "greet", "--all-events"]);
    let events = run().finish().expect_exit(0).events();
    assert_eq!(loaded(&events), ["user:greeter running", "user:guard failed"], "nobody could be asked");
    assert_eq!(results(&events), ["Hello, Ada!"]);
    let events = run().arg("--allow-all-tools").finish().expect_exit(0).events();
    assert_eq!(loaded(&events), ["user:greeter running", "user:guard running"]);
    assert!(results(&events)[0].contains("the guard says no"), "{:?}", results(&events));
}

#[test]
fn a_command_of_an_extension_is_carried_out_without_a_model() {
    for way in WAYS {
        let (scratch, model) = stage();
        scratch.file(&format!("{USER}/greeter/extension.mjs"), GREETER);
        let events = prompt(&scratch, &model, way, "/hail Ada").finish().expect_exit(0).events();
        let told = Finished::of_type(&events, "session.info")
            .into_iter()
            .map(|event| event["data"]["message"].clone());
        assert_eq!(told.collect::<Vec<_>>(), [json!("Hail Ada!")], "{way:?}");
        assert_eq!(model.requests().len(), 0, "{way:?}");
    }
}

#[test]
fn an_extension_that_fails_is_told_and_stops_nothing() {
    let (scratch, model) = stage();
    scratch
        .file(&format!("{USER}/broken/extension.mjs"), r#"console.error("no such thing"); process.exit(3);"#);
    let run = prompt(&scratch, &model, &[], "SAY:all the same").arg("--all-events").finish().expect_exit(0);
    let warned = Finished::of_type(&run.events(), "session.warning")
        .into_iter()
        .map(|event| event["data"]["message"].clone())
        .collect::<Vec<_>>();
    let told = "The extension user:broken failed, because its process ended with exit code 3: no such thing.";
    assert_eq!(warned, [json!(told)]);
    assert!(run.stdout.contains("all the same"));
}

/// A plugin with a skill, a command, an agent, a hook and an MCP server.
fn plugin(scratch: &Scratch) -> String {
    let skill = "---\nname: sweep\ndescription: Sweeps the floor.\n---\nSweep.\n";
    scratch.file("tidy/skills/sweep/SKILL.md", skill);
    scratch.file("tidy/commands/polish.md", "Polish $ARGUMENTS.\n");
    scratch
        .file("tidy/agents/janitor.agent.md", "---\nname: janitor\ndescription: Cleans up.\n---\nClean.\n");
    let hooks =
        json!({ "version": 1, "hooks": { "sessionStart": [{ "bash": "echo $PLUGIN_ROOT >> hook.log" }] } });
    scratch.file("tidy/hooks.json", &hooks.to_string());
    let server = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/odd.mjs");
    let starts = scratch.work().join("starts");
    let servers = json!({ "mcpServers": { "broom": { "command": "node", "args": [server, "fine", starts], "tools": ["*"] } } });
    let path = scratch.file("tidy/.mcp.json", &servers.to_string());
    path.parent().unwrap().display().to_string()
}

#[test]
fn a_prompt_has_every_part_of_an_installed_plugin() {
    for way in WAYS {
        let (scratch, model) = stage();
        let plugin = plugin(&scratch);
        hangar(&scratch, &model).args(["plugin", "install", &plugin]).finish().expect_exit(0);
        let run = |text: &str| {
            let run = hangar(&scratch, &model).args(way).args(["-p", text]).arg("--allow-all-tools").finish();
            run.expect_exit(0)
        };
        run("SAY:hello");
        let request = model.last_request().to_string();
        for part in ["Sweeps the floor.", "janitor", "broom-"] {
            assert!(request.contains(part), "{way:?}: {part} is missing in {request}");
        }
        assert!(scratch.work().join("hook.log").exists(), "{way:?}: its hook ran");
        run("/polish the brass");
        assert!(model.last_request().to_string().contains("Polish the brass."), "{way:?}");
        hangar(&scratch, &model).args(["plugin", "disable", "tidy"]).finish().expect_exit(0);
        run("SAY:hello");
        let request = model.last_request().to_string();
        assert!(!request.contains("Sweeps the floor.") && !request.contains("broom-"), "{way:?}");
    }
}

#[test]
fn a_prompt_keeps_notes_with_permission_and_reads_them_later() {
    for way in WAYS {
        let (scratch, model) = stage();
        let store = "TOOL:store_memory:{\"subject\":\"build\",\"fact\":\"make all builds it\"}\nSAY:done";
        let run = |text: &str| {
            let run = hangar(&scratch, &model).env("HANGAR_FEATURES", "memory").args(way).args(["-p", text]);
            run.args(["--output-format", "json"])
        };
        let events = run(store).args(["--deny-tool", "memory"]).finish().expect_exit(0).events();
        assert_eq!(
            Finished::of_type(&events, "tool.execution_complete")[0]["data"]["success"],
            false,
            "{way:?}"
        );
        run(store).arg("--allow-all-tools").finish().expect_exit(0);
        run("SAY:later").finish().expect_exit(0);
        assert!(model.last_request().to_string().contains("make all builds it"), "{way:?}");
    }
}
