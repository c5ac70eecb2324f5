//! Extensions: Node programs that join a session, with the built-in module and with the published SDK.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::Scratch;
use serde_json::{Value, json};

use crate::hangar;
use crate::sdk::{Client, ID, of_session, stage};

/// The published SDK, which a client may name for its extensions.
const PUBLISHED: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/node_modules/@github/copilot-sdk/dist");

const GREETER: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession({
    tools: [{
        name: "greet",
        description: "Greets",
        parameters: { type: "object", properties: { who: { type: "string" } } },
        handler: async ({ who }) => `Hello, ${who}!`,
    }],
});
await session.log("greeter is ready");
"#;

/// Folders of extensions, below the working directory.
const PROJECT: &str = ".github/extensions";
const USER: &str = "../home/state/extensions";

fn extension(scratch: &Scratch, place: &str, name: &str, text: &str) {
    scratch.file(&format!("{place}/{name}/extension.mjs"), text);
}

/// A client of a session with extensions, which the project and the user may have.
fn extended(scratch: &Scratch, model: &hangar_test_support::ModelServer, config: Value) -> Client {
    let mut client = Client::start(scratch, model);
    let mut all = json!({ "requestExtensions": true, "requestPermission": true });
    all.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    client.create(all);
    client
}

/// Ids of the session's extensions with their states.
fn states(client: &mut Client) -> Vec<String> {
    let listed = client.call("session.extensions.list", of_session(json!({})));
    let extensions = listed["extensions"].as_array().unwrap().iter();
    extensions.map(|each| format!("{} {}", text(&each["id"]), text(&each["status"]))).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

/// Answers the next permission question, which is of this kind, and returns it.
fn decide(client: &mut Client, kind: &str, decision: &str) -> Value {
    let mut asked = client.event("permission.requested");
    assert_eq!(asked["permissionRequest"]["kind"], kind, "{asked}");
    let answer = json!({ "requestId": asked["requestId"], "result": { "kind": decision } });
    client.call("session.permissions.handlePendingPermissionRequest", of_session(answer));
    asked["permissionRequest"].take()
}

/// Runs the tool of the greeter and returns its result.
fn greet(client: &mut Client) -> Value {
    client.send("TOOL:greet:{\"who\":\"Ada\"}\nSAY:done");
    decide(client, "custom-tool", "approve-once");
    client.event("tool.execution_complete")
}

#[track_caller]
fn check_greeter(config: Value) {
    let (scratch, model) = stage();
    extension(&scratch, PROJECT, "greeter", GREETER);
    let mut client = extended(&scratch, &model, config);
    let loaded = client.event("session.extensions_loaded");
    assert_eq!(
        loaded["extensions"],
        json!([{ "id": "project:greeter", "name": "greeter", "source": "project", "status": "running" }])
    );
    assert_eq!(greet(&mut client)["result"]["content"], "Hello, Ada!");
    client.event("session.idle");
    let id = of_session(json!({ "id": "project:greeter" }));
    assert_eq!(client.call("session.extensions.disable", id.clone()), Value::Null);
    assert_eq!(states(&mut client), ["project:greeter disabled"]);
    // The definition of its tool stays, for the prompt cache, and calls of it fail.
    client.send("TOOL:greet:{\"who\":\"Ada\"}\nSAY:no tools");
    assert_eq!(client.event("tool.execution_complete")["success"], false, "its tool is gone");
    client.event("session.idle");
    assert_eq!(client.call("session.extensions.enable", id), Value::Null);
    assert_eq!(states(&mut client), ["project:greeter running"]);
    assert_eq!(greet(&mut client)["result"]["content"], "Hello, Ada!");
    client.event("session.idle");
    client.finish();
}

#[test]
fn an_extension_joins_and_its_tool_runs() {
    check_greeter(json!({}));
}

#[test]
fn an_extension_joins_with_the_published_sdk() {
    check_greeter(json!({ "extensionSdkPath": PUBLISHED }));
}

#[test]
fn a_session_has_no_extensions_unless_its_client_asks() {
    let (scratch, model) = stage();
    extension(&scratch, PROJECT, "greeter", GREETER);
    let mut client = Client::start(&scratch, &model);
    let created = client.create(json!({}));
    assert_eq!(created["capabilities"]["extensions"], false);
    assert_eq!(states(&mut client), Vec::<String>::new());
    let refused = client.answer("session.extensions.reload", of_session(json!({})));
    assert_eq!(
        refused["error"]["message"],
        "Request session.extensions.reload failed with message: Extensions not available"
    );
    client.finish();
}

#[test]
fn hooks_and_secrets_of_an_extension_need_permission() {
    const ASKING: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
const before = process.env.GITHUB_TOKEN ?? "nothing";
const session = await joinSession({
    hooks: { onUserPromptSubmitted: async () => ({ additionalContext: "from the hook" }) },
    requestedEnvironmentVariables: ["GITHUB_TOKEN", "NOT_SET_ANYWHERE"],
});
await session.log(`before ${before}, then ${process.env.GITHUB_TOKEN === "tok" ? "given" : "not given"}`);
"#;
    let (scratch, model) = stage();
    extension(&scratch, USER, "asker", ASKING);
    let start = || {
        let mut client = Client::of(hangar(&scratch, &model).env("GITHUB_TOKEN", "tok"));
        client.create(json!({ "requestExtensions": true, "requestPermission": true }));
        client
    };
    let mut client = start();
    let asked = decide(&mut client, "extension-permission-access", "approve-once");
    assert_eq!(
        (&asked["extensionName"], &asked["capabilities"]),
        (&json!("user:asker"), &json!(["register hooks"]))
    );
    let asked = decide(&mut client, "extension-env-access", "approve-once");
    assert_eq!(asked["environmentVariables"], json!(["GITHUB_TOKEN"]));
    assert_eq!(client.event("session.info")["message"], "before nothing, then given");
    client.send("SAY:hello");
    client.event("session.idle");
    assert!(model.last_request()["messages"].to_string().contains("from the hook"));
    client.finish();
    assert!(!scratch.log(ID).contains("tok\""), "the value of the secret is in no event");
}

#[test]
fn an_extension_that_is_refused_does_not_join() {
    const HOOKED: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({ hooks: { onUserPromptSubmitted: async () => ({ additionalContext: "from the hook" }) } });
"#;
    let (scratch, model) = stage();
    extension(&scratch, PROJECT, "hooked", HOOKED);
    let mut client = extended(&scratch, &model, json!({}));
    decide(&mut client, "extension-permission-access", "reject");
    assert_eq!(
        client.event("session.warning")["message"],
        "The extension project:hooked did not join: the extension project:hooked was not allowed to register hooks."
    );
    client.event("session.extensions_loaded");
    assert_eq!(states(&mut client), ["project:hooked failed"]);
    client.send("SAY:hello");
    client.event("session.idle");
    assert!(!model.last_request()["messages"].to_string().contains("from the hook"));
    client.finish();
}

#[test]
fn an_extension_permits_itself_nothing_and_works_with_its_session_alone() {
    const GREEDY: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession();
const attempts = {
    approve: () => session.rpc.permissions.setApproveAll({ enabled: true }),
    answer: () => session.rpc.permissions.handlePendingPermissionRequest({ requestId: "x", result: { kind: "approve-once" } }),
    other: () => session.rpc.mode.get({ sessionId: "11111111-1111-4111-8111-111111111111" }),
    reload: () => session.rpc.extensions.reload(),
    mode: () => session.rpc.mode.get(),
};
const outcomes = [];
for (const [name, attempt] of Object.entries(attempts)) {
    outcomes.push(await attempt().then(() => `${name} works`, () => `${name} refused`));
}
await session.log(outcomes.join(", "));
"#;
    let (scratch, model) = stage();
    extension(&scratch, PROJECT, "greedy", GREEDY);
    let mut client = extended(&scratch, &model, json!({}));
    let told = client.event("session.info");
    assert_eq!(told["message"], "approve refused, answer refused, other refused, reload refused, mode works");
    client.finish();
}

#[test]
fn an_extension_that_dies_fails_its_call_and_comes_back() {
    const MORTAL: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
await joinSession({
    tools: [{ name: "die", description: "Dies", handler: async () => process.exit(7) }],
});
"#;
    const BROKEN: &str = r#"console.error("no such module"); process.exit(3);"#;
    let (scratch, model) = stage();
    extension(&scratch, PROJECT, "broken", BROKEN);
    extension(&scratch, PROJECT, "mortal", MORTAL);
    let mut client = extended(&scratch, &model, json!({}));
    let warned = client.event("session.warning");
    assert_eq!(
        warned["message"],
        "The extension project:broken failed, because its process ended with exit code 3: no such module."
    );
    client.send("TOOL:die:{}\nSAY:done");
    decide(&mut client, "custom-tool", "approve-once");
    let ended = client.event("tool.execution_complete");
    assert_eq!(ended["success"], false);
    let said = "Extension disconnected before responding to tool call";
    assert!(ended.to_string().contains(said), "{ended}");
    client.until("its return", |message| {
        let event = &message["params"]["event"];
        event["type"] == "session.extensions_loaded" && event["data"]["extensions"][1]["status"] == "running"
    });
    assert_eq!(states(&mut client), ["project:broken failed", "project:mortal running"]);
    client.finish();
}

#[test]
fn the_model_creates_an_extension_and_uses_it_at_once() {
    let (scratch, model) = stage();
    let mut client = extended(&scratch, &model, json!({}));
    client.send(
        "TOOL:extensions_manage:{\"operation\":\"scaffold\",\"name\":\"made\"}\nTOOL:extensions_reload:{}\n\
         TOOL:made_hello:{\"who\":\"Bo\"}\nSAY:done",
    );
    let asked = decide(&mut client, "extension-management", "approve-once");
    assert_eq!((&asked["operation"], &asked["extensionName"]), (&json!("scaffold"), &json!("made")));
    assert!(text(&client.event("tool.execution_complete")["result"]["content"]).contains("was created at"));
    let asked = decide(&mut client, "extension-management", "approve-once");
    assert_eq!(asked["operation"], "reload");
    let reloaded = client.event("tool.execution_complete");
    assert!(text(&reloaded["result"]["content"]).contains("project:made — running"), "{reloaded}");
    decide(&mut client, "custom-tool", "approve-once");
    assert_eq!(client.event("tool.execution_complete")["result"]["content"], "Hello, Bo!");
    client.event("session.idle");
    client.finish();
}

#[test]
fn extensions_are_discovered_and_switched_for_later_sessions() {
    let (scratch, model) = stage();
    extension(&scratch, USER, "greeter", GREETER);
    let mut client = Client::start(&scratch, &model);
    let found = client.call("extensions.discover", json!({}));
    assert_eq!(found["mode"], "load_and_augment");
    let shown = &found["extensions"][0];
    assert_eq!((&shown["id"], &shown["enabled"]), (&json!("user:greeter"), &json!(true)));
    client.call("extensions.disable", json!({ "ids": ["user:greeter"] }));
    client.create(json!({ "requestExtensions": true }));
    client.event("session.extensions_loaded");
    assert_eq!(states(&mut client), ["user:greeter disabled"]);
    client.call("extensions.enable", json!({ "ids": ["user:greeter"] }));
    assert_eq!(client.call("extensions.discover", json!({}))["extensions"][0]["enabled"], true);
    client.finish();
}

#[test]
fn an_extension_pushes_attachments_for_the_next_message() {
    const PUSHER: &str = r#"
import { joinSession } from "@github/copilot-sdk/extension";
const session = await joinSession();
await session.rpc.extensions.sendAttachmentsToMessage({
    attachments: [{ type: "extension_context", title: "Findings", payload: { count: 3 } }],
});
"#;
    let (scratch, model) = stage();
    extension(&scratch, PROJECT, "pusher", PUSHER);
    let mut client = extended(&scratch, &model, json!({}));
    let pushed = client.event("session.extensions.attachments_pushed");
    assert_eq!(pushed["attachments"][0]["extensionId"], "project:pusher");
    let message = json!({ "prompt": "SAY:seen", "attachments": pushed["attachments"] });
    client.call("session.send", of_session(message));
    client.event("session.idle");
    let sent = model.last_request()["messages"].to_string();
    assert!(sent.contains("Findings (from the extension project:pusher)"), "{sent}");
    let refused = json!({ "attachments": [] });
    let refused = client.answer("session.extensions.sendAttachmentsToMessage", of_session(refused));
    assert!(text(&refused["error"]["message"]).contains("extension"), "{refused}");
    client.finish();
}

#[test]
fn a_client_says_how_extensions_are_started() {
    let (scratch, model) = stage();
    extension(&scratch, PROJECT, "greeter", GREETER);
    let mut client = Client::start(&scratch, &model);
    client.call("registerExtensionLaunchProvider", json!({}));
    client.create(json!({ "requestExtensions": true }));
    let asked =
        client.until("the question", |message| message["method"] == "extensionLaunchProvider.resolve");
    assert_eq!(asked["params"]["id"], "project:greeter");
    client.write(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": {} }));
    let warned = client.event("session.warning");
    assert_eq!(
        warned["message"],
        "The extension project:greeter failed, because the client does not support this kind of extension."
    );
    client.finish();
}
