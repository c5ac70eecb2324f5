//! Plugins over the SDK's methods and by `hangar plugin`: installed from a marketplace or directly, and part of later sessions.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use crate::hangar;
use crate::sdk::{Client, ID, of_session, stage};

/// A marketplace with one plugin that has a skill, an agent and an MCP server.
fn marketplace(scratch: &Scratch) -> String {
    let list = json!({ "name": "yard", "plugins": [
        { "name": "tidy", "source": "./tidy", "description": "Tidies.", "version": "1.0.0" },
    ] });
    scratch.file("market/marketplace.json", &list.to_string());
    scratch.file(
        "market/tidy/skills/sweep/SKILL.md",
        "---\nname: sweep\ndescription: Sweeps the floor.\n---\nSweep.\n",
    );
    scratch.file(
        "market/tidy/agents/janitor.agent.md",
        "---\nname: janitor\ndescription: Cleans.\n---\nClean.\n",
    );
    let servers = json!({ "mcpServers": { "broom": { "command": "false", "args": [] } } });
    let path = scratch.file("market/tidy/.mcp.json", &servers.to_string());
    path.parent().unwrap().parent().unwrap().display().to_string()
}

/// Names of the plugins, each with whether it is enabled.
fn listed(client: &mut Client) -> Vec<(String, bool)> {
    let listed = client.call("plugins.list", json!({}));
    let plugins = listed["plugins"].as_array().unwrap().iter();
    plugins.map(|plugin| (plugin["name"].as_str().unwrap().to_owned(), plugin["enabled"] == true)).collect()
}

fn names(list: &Value) -> Vec<String> {
    list.as_array().unwrap().iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_plugin_of_a_marketplace_is_part_of_later_sessions() {
    let (scratch, model) = stage();
    let market = marketplace(&scratch);
    let mut client = Client::start(&scratch, &model);
    assert_eq!(client.call("plugins.marketplaces.add", json!({ "source": market }))["name"], "yard");
    let browsed = client.call("plugins.marketplaces.browse", json!({ "name": "yard" }));
    assert_eq!(browsed["plugins"], json!([{ "name": "tidy", "description": "Tidies." }]));
    let done = client.call("plugins.install", json!({ "source": "tidy@yard" }));
    assert_eq!(
        done,
        json!({
            "plugin": { "name": "tidy", "marketplace": "yard", "version": "1.0.0", "enabled": true },
            "skillsInstalled": 1,
        })
    );
    client.create(json!({ "enableConfigDiscovery": true }));
    let skills = client.call("session.skills.list", of_session(json!({})));
    assert!(names(&skills["skills"]).contains(&"sweep".to_owned()), "{skills}");
    let agents = client.call("session.agent.list", of_session(json!({})));
    assert!(names(&agents["agents"]).contains(&"tidy:janitor".to_owned()), "{agents}");
    let servers = client.call("session.mcp.list", of_session(json!({})));
    assert!(names(&servers["servers"]).contains(&"broom".to_owned()), "{servers}");
    let loaded = client.call("session.plugins.list", of_session(json!({})));
    assert_eq!(loaded["plugins"][0]["marketplace"], "yard");
    client.call("session.destroy", of_session(json!({})));
    client.call("plugins.disable", json!({ "names": ["tidy@yard", "unknown"] }));
    assert_eq!(listed(&mut client), [("tidy".to_owned(), false)]);
    client.call("session.create", json!({ "sessionId": ID, "enableConfigDiscovery": true }));
    let skills = client.call("session.skills.list", of_session(json!({})));
    assert!(!names(&skills["skills"]).contains(&"sweep".to_owned()), "{skills}");
    client.finish();
}

#[test]
fn plugins_are_updated_and_removed() {
    let (scratch, model) = stage();
    let market = marketplace(&scratch);
    let mut client = Client::start(&scratch, &model);
    client.call("plugins.marketplaces.add", json!({ "source": market }));
    client.call("plugins.install", json!({ "source": "tidy@yard" }));
    let one = client.call("plugins.update", json!({ "name": "tidy@yard" }));
    assert_eq!(one, json!({ "previousVersion": "1.0.0", "newVersion": "1.0.0", "skillsInstalled": 1 }));
    let all = client.call("plugins.updateAll", json!({}));
    assert_eq!(all["results"][0]["success"], true, "{all}");
    let refreshed = client.call("plugins.marketplaces.refresh", json!({ "name": "yard" }));
    assert_eq!(refreshed["results"], json!([{ "name": "yard", "success": true }]));
    client.call("plugins.uninstall", json!({ "name": "tidy" }));
    assert_eq!(listed(&mut client), []);
    assert_eq!(
        client.call("plugins.marketplaces.remove", json!({ "name": "yard" })),
        json!({ "removed": true })
    );
    let known = client.call("plugins.marketplaces.list", json!({}));
    assert_eq!(names(&known["marketplaces"]), ["awesome-copilot"]);
    assert_eq!(known["marketplaces"][0]["isDefault"], true);
    client.finish();
}

#[test]
fn a_direct_installation_warns_and_is_removed_by_its_source() {
    let (scratch, model) = stage();
    let manifest = scratch.file("alone/plugin.json", r#"{"name": "alone", "version": "2.0.0"}"#);
    scratch.file("alone/SKILL.md", "---\nname: one\ndescription: One.\n---\n");
    let mut client = Client::start(&scratch, &model);
    let done = client.call("plugins.install", json!({ "source": manifest.parent().unwrap() }));
    assert!(done["deprecationWarning"].as_str().unwrap().contains("deprecated"), "{done}");
    assert_eq!((&done["plugin"]["marketplace"], &done["skillsInstalled"]), (&json!(""), &json!(1)));
    let id = &done["plugin"]["directSourceId"];
    client.call("plugins.uninstall", json!({ "name": "alone", "directSourceId": id }));
    assert_eq!(listed(&mut client), []);
    let error = client.answer("plugins.install", json!({ "source": "nothing here" }));
    assert!(error["error"]["message"].as_str().unwrap().contains("`nothing here` is no source"), "{error}");
    client.finish();
}

#[test]
fn an_installed_plugin_is_in_a_session_only_if_its_client_wants_the_configuration() {
    let (scratch, model) = stage();
    let plugin = format!("{}/tidy", marketplace(&scratch));
    let hook = json!({ "hooks": { "sessionStart": [{ "bash": "touch hook-ran" }] } });
    scratch.file("market/tidy/hooks.json", &hook.to_string());
    let mut client = Client::start(&scratch, &model);
    client.call("plugins.install", json!({ "source": plugin }));
    let mut found = |config: Value| {
        client.create(config);
        client.send("SAY:hello");
        client.event("session.idle");
        let skills = client.call("session.skills.list", of_session(json!({})));
        let servers = client.call("session.mcp.list", of_session(json!({})));
        let plugins = client.call("session.plugins.list", of_session(json!({})));
        client.call("session.destroy", of_session(json!({})));
        client.call("session.delete", of_session(json!({})));
        assert_eq!(names(&plugins["plugins"]), ["tidy"], "it is listed all the same");
        let has = |list: &Value, name: &str| names(list).contains(&name.to_owned());
        let hook_ran = scratch.work().join("hook-ran").exists();
        (has(&skills["skills"], "sweep"), has(&servers["servers"], "broom"), hook_ran)
    };
    assert_eq!(found(json!({})), (false, false, false));
    assert_eq!(found(json!({ "enableConfigDiscovery": true })), (true, true, true));
    client.finish();
}

#[test]
fn clients_bring_plugins_to_all_later_sessions() {
    let (scratch, model) = stage();
    let market = marketplace(&scratch);
    let mut client = Client::start(&scratch, &model);
    client.call("plugins.builtin.set", json!({ "paths": [format!("{market}/tidy")] }));
    client.create(json!({}));
    let loaded = client.call("session.plugins.list", of_session(json!({})));
    assert_eq!(names(&loaded["plugins"]), ["tidy"]);
    client.finish();
}

/// Runs `hangar plugin` and returns what it printed.
fn plugin(scratch: &Scratch, model: &ModelServer, args: &[&str], exit: i32) -> String {
    let run = hangar(scratch, model).arg("plugin").args(args).finish().expect_exit(exit);
    format!("{}{}", run.stdout, run.stderr)
}

#[test]
fn the_command_has_the_words_of_copilot_cli() {
    let (scratch, model) = stage();
    let market = marketplace(&scratch);
    let say = |args: &[&str], exit: i32, expected: &str| {
        let said = plugin(&scratch, &model, args, exit);
        assert!(said.contains(expected), "{args:?}: {said}");
    };
    say(&[], 0, "Usage: hangar plugin [COMMAND]");
    say(&["marketplace"], 0, "Usage: hangar plugin marketplace [COMMAND]");
    say(&["list"], 0, "No plugins installed.");
    say(&["update", "--all"], 0, "No plugins installed.");
    say(&["update"], 1, "missing plugin name. Use --all to update all installed plugins.");
    say(&["marketplace", "list"], 0, "  ◆ awesome-copilot (GitHub: github/awesome-copilot)");
    say(&["marketplace", "add", &market], 0, "Marketplace \"yard\" added successfully.");
    say(&["marketplace", "add", &market], 1, "Marketplace \"yard\" already registered");
    say(&["marketplace", "list"], 0, "\n\nRegistered marketplaces:\n  • yard (Local: ");
    let listed = hangar(&scratch, &model).args(["plugin", "marketplace", "list", "--json"]).finish();
    let listed: Value = serde_json::from_str(&listed.expect_exit(0).stdout).unwrap();
    assert_eq!(
        listed[1],
        json!({ "name": "yard", "source": format!("Local: {market}"), "isDefault": false })
    );
    say(
        &["marketplace", "update", "yard"],
        0,
        "Updating marketplace \"yard\"...\nMarketplace \"yard\" updated",
    );
    say(&["marketplace", "remove", "none"], 1, "Marketplace \"none\" is not registered");
    say(&["marketplace", "remove", "awesome-copilot"], 1, "is a default marketplace and cannot be removed");
    say(&["marketplace", "add", "/no/such/place"], 1, "Local path does not exist: /no/such/place");
    say(&["marketplace", "browse", "yard"], 0, "• tidy - Tidies.");
    say(&["install", "tidy@yard"], 0, "Plugin \"tidy\" installed successfully. Installed 1 skill.");
    say(&["install", "broom@yard"], 1, "Plugin \"broom\" not found in marketplace \"yard\"");
    say(&["list"], 0, "• tidy@yard (v1.0.0) (enabled)\n      from ");
    say(&["disable", "tidy"], 0, "Disabled plugin \"tidy\".");
    say(&["list"], 0, "• tidy@yard (v1.0.0) (disabled)");
    say(&["disable", "none"], 0, "Warning: no plugin named \"none\" is currently configured");
    say(&["enable", "tidy@yard"], 0, "Enabled plugin \"tidy@yard\".");
    say(
        &["update", "--all"],
        0,
        "Updating 1 installed plugin...\nPlugin \"tidy@yard\" is always loaded live from ",
    );
    say(&["install", &format!("{market}/tidy")], 0, "Warning: Direct plugin installs");
    say(&["marketplace", "remove", "yard"], 0, "Marketplace \"yard\" removed successfully.");
    say(&["uninstall", "tidy"], 0, "Plugin \"tidy\" uninstalled successfully.");
    say(&["uninstall", "tidy"], 1, "Plugin \"tidy\" is not installed");
}

#[test]
fn plugins_of_one_name_are_told_apart_by_their_sources() {
    let (scratch, model) = stage();
    let market = marketplace(&scratch);
    let other =
        scratch.file("elsewhere/tidy/skills/mop/SKILL.md", "---\nname: mop\ndescription: Mops.\n---\nMop.\n");
    let other = other.ancestors().nth(3).unwrap().display().to_string();
    plugin(&scratch, &model, &["install", &format!("{market}/tidy")], 0);
    plugin(&scratch, &model, &["install", &other], 0);
    let said = plugin(&scratch, &model, &["uninstall", "tidy"], 1);
    let (_, named) = said.trim_end().split_once("Plugin \"tidy\" is ambiguous; name one of ").unwrap();
    let (first, rest) = named.split_once(' ').unwrap();
    assert!(rest.contains(&format!("(Local: {other})")), "{said}");
    plugin(&scratch, &model, &["uninstall", first], 0);
    plugin(&scratch, &model, &["uninstall", "tidy"], 0);
}

#[test]
fn a_prompt_has_the_skills_of_installed_plugins() {
    let (scratch, model) = stage();
    let market = marketplace(&scratch);
    plugin(&scratch, &model, &["marketplace", "add", &market], 0);
    plugin(&scratch, &model, &["install", "tidy@yard"], 0);
    hangar(&scratch, &model).args(["-p", "SAY:hi"]).finish().expect_exit(0);
    assert!(model.last_request().to_string().contains("Sweeps the floor."));
}

#[test]
fn a_client_with_a_session_installs_plugins_from_its_directory() {
    let (scratch, model) = stage();
    marketplace(&scratch);
    let mut client = Client::start(&scratch, &model);
    client.create(json!({}));
    let added = client.call("session.plugins.marketplaces.add", of_session(json!({ "source": "./market" })));
    let source = format!("tidy@{}", added["name"].as_str().unwrap());
    client.call("session.plugins.install", of_session(json!({ "source": source })));
    assert_eq!(listed(&mut client).len(), 1);
    client.call("session.plugins.disable", of_session(json!({ "names": ["tidy"] })));
    let list = client.call("plugins.list", json!({}));
    assert_eq!(list["plugins"][0]["enabled"], false, "{list}");
    client.call("session.plugins.uninstall", of_session(json!({ "name": "tidy" })));
    assert_eq!(listed(&mut client), []);
    let elsewhere = json!({ "sessionId": "nobody", "name": "tidy" });
    let error = client.answer("session.plugins.uninstall", elsewhere);
    assert!(error["error"]["message"].as_str().unwrap().contains("nobody"), "{error}");
    client.finish();
}

#[test]
fn the_user_s_skills_are_in_a_session_only_if_its_client_wants_the_configuration() {
    let (scratch, model) = stage();
    let skill = |dir: &std::path::Path, name: &str| {
        let dir = dir.join(name);
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("SKILL.md"), format!("---\nname: {name}\ndescription: d\n---\nDo it.\n"))
            .unwrap();
    };
    let (given, named) = (scratch.root().join("given"), scratch.root().join("named"));
    skill(&scratch.state().join("skills"), "mine");
    skill(&given, "given");
    skill(&named, "named");
    let server = crate::hangar(&scratch, &model).env("COPILOT_SKILLS_DIRS", &named);
    let mut client = Client::of(server);
    let mut found = |config: Value| {
        client.create(config);
        let skills = client.call("session.skills.list", of_session(json!({})));
        client.call("session.destroy", of_session(json!({})));
        client.call("session.delete", of_session(json!({})));
        names(&skills["skills"])
    };
    assert_eq!(found(json!({ "skillDirectories": [given] })), ["given"]);
    let all = found(json!({ "skillDirectories": [given], "enableConfigDiscovery": true }));
    assert!(["mine", "named", "given"].iter().all(|name| all.contains(&(*name).to_owned())), "{all:?}");
    client.finish();
}
