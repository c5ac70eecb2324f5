//! Discovery without a session: skills, agents and instructions, and where they belong.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use expect_test::{Expect, expect};
use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use crate::sdk::{Client, ID, stage};

const FILES: &[(&str, &str)] = &[
    ("p/.git/HEAD", "ref: refs/heads/main\n"),
    ("p/.github/skills/a/SKILL.md", "---\nname: a\ndescription: in p\nargument-hint: x\n---\nA"),
    ("p/.github/skills/broken/SKILL.md", "---\nname: two/words\n---\n"),
    ("p/.github/agents/r.agent.md", "---\nname: Rev\ndescription: reviews\ntools: [view]\n---\nReview."),
    ("p/.github/copilot-instructions.md", "of p"),
    ("p/.github/instructions/z.instructions.md", "---\napplyTo: '**/*.rs'\n---\nof a part"),
    ("p/AGENTS.md", "of agents"),
    ("p/sub/.github/agents/s.md", "---\ndescription: of sub\n---\nSub."),
    ("q/.claude/skills/a/SKILL.md", "---\nname: a\ndescription: in q\n---\nA"),
    ("x/e/SKILL.md", "---\nname: e\ndescription: extra\n---\nE"),
    ("../home/state/skills/h/SKILL.md", "---\nname: h\ndescription: host\n---\nH"),
    ("../home/state/agents/u.md", "---\ndescription: mine\n---\nDo."),
    ("../home/state/copilot-instructions.md", "of the user"),
];

fn server() -> (Scratch, ModelServer, Client) {
    let (scratch, model) = stage();
    for (path, text) in FILES {
        scratch.file(path, text);
    }
    let client = Client::start(&scratch, &model);
    (scratch, model, client)
}

/// Asks, and shows some members of every thing in the answer. `$` is the directory of the projects.
fn check(method: &str, params: &Value, members: &[&str], expected: &Expect) {
    let (scratch, _model, mut client) = server();
    let work = scratch.work().display().to_string();
    let params: Value = serde_json::from_str(&params.to_string().replace('$', &work)).unwrap();
    let answer = client.call(method, params);
    let things = answer.as_object().unwrap().iter().find(|(name, _)| *name != "errors").unwrap().1;
    let shown: Vec<String> = things.as_array().unwrap().iter().map(|thing| show(thing, members)).collect();
    let (state, home) = (scratch.state().display().to_string(), scratch.home().display().to_string());
    expected.assert_eq(&shown.concat().replace(&state, "~").replace(&home, "HOME").replace(&work, "$"));
    client.finish();
}

fn show(thing: &Value, members: &[&str]) -> String {
    let shown: Vec<String> = members
        .iter()
        .map(|name| match &thing[*name] {
            Value::String(text) => text.clone(),
            Value::Null => "-".to_owned(),
            other => other.to_string(),
        })
        .collect();
    format!("{}\n", shown.join(" | "))
}

const SKILL: &[&str] = &["name", "source", "path", "projectPath", "argumentHint", "enabled"];

#[test]
fn skills_of_the_user_come_first_and_then_those_of_each_project() {
    check(
        "skills.discover",
        &json!({ "projectPaths": ["$/p", "$/q"], "skillDirectories": ["$/x"] }),
        SKILL,
        &expect![[r#"
            h | personal-copilot | ~/skills/h/SKILL.md | - | - | true
            e | custom | $/x/e/SKILL.md | - | - | true
            a | project | $/p/.github/skills/a/SKILL.md | $/p | x | true
            a | project | $/q/.claude/skills/a/SKILL.md | $/q | - | true
        "#]],
    );
}

#[test]
fn a_client_that_leaves_the_host_out_hears_of_the_project_alone() {
    check(
        "skills.discover",
        &json!({ "projectPaths": ["$/p/sub"], "excludeHostSkills": true }),
        SKILL,
        &expect![[r#"
            a | inherited | $/p/.github/skills/a/SKILL.md | $/p/sub | x | true
        "#]],
    );
    check(
        "agents.discover",
        &json!({ "projectPaths": ["$/p/sub"], "excludeHostAgents": true }),
        &["id", "source"],
        &expect![[r#"
            s | project
            r | inherited
        "#]],
    );
    check(
        "instructions.discover",
        &json!({ "projectPaths": ["$/p"], "excludeHostInstructions": true }),
        &["sourcePath", "type", "location", "projectPath", "applyTo"],
        &expect![[r#"
            .github/copilot-instructions.md | repo | repository | $/p | -
            AGENTS.md | model | repository | $/p | -
            .github/instructions/z.instructions.md | vscode | repository | $/p | ["**/*.rs"]
        "#]],
    );
}

#[test]
fn skills_that_cannot_be_read_are_named_but_not_to_strangers() {
    let (scratch, _model, mut client) = server();
    let mut errors = |exclude: bool| {
        let params = json!({ "projectPaths": [scratch.work().join("p")], "excludeHostSkills": exclude });
        client.call("skills.discover", params)["errors"].as_array().unwrap().len()
    };
    assert_eq!((errors(false), errors(true)), (1, 0));
    client.finish();
}

#[test]
fn new_skills_agents_and_instructions_have_a_place_each() {
    let projects = json!({ "projectPaths": ["$/p/sub", "$/new"] });
    check(
        "skills.getDiscoveryPaths",
        &projects,
        &["path", "scope", "preferredForCreation", "projectPath"],
        &expect![[r#"
            $/p/.github/skills | project | true | $/p/sub
            $/p/.agents/skills | project | false | $/p/sub
            $/p/.claude/skills | project | false | $/p/sub
            $/new/.github/skills | project | true | $/new
            $/new/.agents/skills | project | false | $/new
            $/new/.claude/skills | project | false | $/new
            ~/skills | personal-copilot | true | -
            HOME/.agents/skills | personal-agents | false | -
        "#]],
    );
    check(
        "agents.getDiscoveryPaths",
        &projects,
        &["path", "scope", "preferredForCreation", "projectPath"],
        &expect![[r#"
            ~/agents | user | true | -
            $/p/.github/agents | project | true | $/p/sub
            $/p/.claude/agents | project | false | $/p/sub
            $/new/.github/agents | project | true | $/new
            $/new/.claude/agents | project | false | $/new
        "#]],
    );
    check(
        "instructions.getDiscoveryPaths",
        &json!({ "projectPaths": ["$/p/sub"] }),
        &["path", "location", "kind", "preferredForCreation", "projectPath"],
        &expect![[r#"
            ~/copilot-instructions.md | user | file | true | -
            ~/instructions | user | directory | false | -
            $/p/.github/copilot-instructions.md | repository | file | true | $/p/sub
            $/p/AGENTS.md | repository | file | false | $/p/sub
            $/p/CLAUDE.md | repository | file | false | $/p/sub
            $/p/.claude/CLAUDE.md | repository | file | false | $/p/sub
            $/p/GEMINI.md | repository | file | false | $/p/sub
            $/p/.github/instructions | repository | directory | false | $/p/sub
        "#]],
    );
}

#[test]
fn what_is_the_users_is_told_without_a_project() {
    let nowhere = json!({});
    check(
        "agents.discover",
        &nowhere,
        &["id", "source"],
        &expect![[r#"
        u | user
    "#]],
    );
    check(
        "instructions.discover",
        &nowhere,
        &["content", "type", "projectPath"],
        &expect![[r#"
        of the user | home | -
    "#]],
    );
}

#[test]
fn a_skill_that_is_switched_off_stays_so_in_settings_that_keep_the_rest() {
    let (scratch, _model, mut client) = server();
    let settings = scratch.state().join("settings.json");
    std::fs::write(&settings, "{\n  // mine\n  \"deniedUrls\": [\"x.com\"],\n}\n").unwrap();
    client.call("skills.config.setDisabledSkills", json!({ "disabledSkills": ["e", "zz"] }));
    client.call("skills.config.setSkillDisabled", json!({ "name": "h", "disabled": true }));
    client.call("skills.config.setSkillDisabled", json!({ "name": "e", "disabled": false }));
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&settings).unwrap()).unwrap();
    assert_eq!(kept, json!({ "deniedUrls": ["x.com"], "disabledSkills": ["zz", "h"] }));
    assert_eq!(client.call("skills.discover", json!({}))["skills"][0]["enabled"], false);
    client.create(json!({ "enableConfigDiscovery": true }));
    let skills = client.call("session.skills.list", json!({ "sessionId": ID }));
    assert_eq!((&skills["skills"][0]["name"], &skills["skills"][0]["enabled"]), (&json!("h"), &json!(false)));
    client.finish();
}

#[test]
fn settings_that_are_not_understood_are_not_written_over() {
    let (scratch, _model, mut client) = server();
    let settings = scratch.state().join("settings.json");
    std::fs::write(&settings, "{ \"model\": ").unwrap();
    let answer = client.answer("skills.config.setDisabledSkills", json!({ "disabledSkills": ["e"] }));
    assert!(answer["error"]["message"].as_str().unwrap().contains("settings.json"), "{answer}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), "{ \"model\": ");
    client.finish();
}

#[test]
fn there_are_no_extensions_and_commands_that_nobody_waits_for_are_no_failure() {
    let (_scratch, _model, mut client) = server();
    client.create(json!({}));
    assert_eq!(
        client.call("session.extensions.list", json!({ "sessionId": ID })),
        json!({ "extensions": [] })
    );
    for method in ["enable", "disable", "reload"] {
        let answer = client
            .answer(&format!("session.extensions.{method}"), json!({ "sessionId": ID, "id": "user:x" }));
        assert!(
            answer["error"]["message"].as_str().unwrap().contains("Extensions not available"),
            "{answer}"
        );
    }
    let late = json!({ "sessionId": ID, "requestId": "gone", "error": "too late" });
    assert_eq!(client.call("session.commands.handlePendingCommand", late), json!({ "success": true }));
    client.finish();
}

#[test]
fn hooks_are_listed_with_whom_they_come_from() {
    let (scratch, _model, mut client) = server();
    let project = scratch.work().join("p");
    scratch.file("../home/state/config.json", &json!({ "trustedFolders": [project] }).to_string());
    let twice = r#"{"version":1,"hooks":{"preToolUse":[{"bash":"true"},{"bash":"true"}],"nonsense":[]}}"#;
    scratch.file("../home/state/hooks/u.json", twice);
    scratch.file("p/.github/hooks/p.json", r#"{"version":1,"hooks":{"agentStop":[{"bash":"true"}]}}"#);
    let mut listed = |params: Value| {
        let found = client.call("hooks.discover", params);
        let rows = found["hooks"].as_array().unwrap().clone();
        let ids: std::collections::BTreeSet<String> = rows.iter().map(|row| row["id"].to_string()).collect();
        assert_eq!(ids.len(), rows.len(), "each has an id of its own");
        let shown = rows.iter().map(|row| show(row, &["hookType", "origin", "enabled"])).collect::<String>();
        (shown, found["errors"].as_array().unwrap().len(), ids)
    };
    let users = "preToolUse | user | true\n".repeat(2);
    let (shown, errors, ids) = listed(json!({}));
    assert_eq!((shown.as_str(), errors), (users.as_str(), 1), "an event that nothing asks is told of");
    assert_eq!(listed(json!({})).2, ids, "they keep their ids");
    let of_project = "agentStop | repository | true\n";
    assert_eq!(listed(json!({ "projectPaths": [project] })).0, format!("{users}{of_project}"));
    let strangers = json!({ "projectPaths": [project, "/not/there"], "excludeHostHooks": true });
    let (shown, errors, _) = listed(strangers);
    assert_eq!((shown.as_str(), errors), (of_project, 1), "only the directory that is none");
    client.finish();
}

/// The agents of a session in the project `p`, each with its description and its source.
fn session_agents(options: Value) -> String {
    let (scratch, _model, mut client) = server();
    let mut options = options;
    options["workingDirectory"] = json!(scratch.work().join("p"));
    if let Some(dirs) = options["pluginDirectories"].as_array_mut() {
        scratch.file("tidy/agents/janitor.agent.md", "---\ndescription: cleans\n---\nClean.");
        *dirs = vec![json!(scratch.work().join("tidy"))];
    }
    client.create(options);
    let agents = client.call("session.agent.list", json!({ "sessionId": ID }));
    client.finish();
    let agents = agents["agents"].as_array().unwrap();
    agents.iter().map(|agent| show(agent, &["name", "displayName", "description", "source"])).collect()
}

#[test]
fn a_session_has_agents_of_the_user_and_the_project_only_if_its_client_wants_them() {
    let own = json!([
        { "name": "own", "displayName": "Own", "description": "of the client", "prompt": "x" },
        { "name": "u", "displayName": "U", "description": "of the client, too", "prompt": "x" },
    ]);
    expect![[""]].assert_eq(&session_agents(json!({})));
    // Those of the client come first, and take the place of others of their names.
    expect![[r#"
        own | Own | of the client | -
        u | U | of the client, too | -
        Rev | Rev | reviews | project
        tidy:janitor | janitor | cleans | plugin
    "#]]
    .assert_eq(&session_agents(
        json!({ "customAgents": own, "enableConfigDiscovery": true, "pluginDirectories": [true] }),
    ));
    expect![[r#"
        own | Own | of the client | -
        u | U | of the client, too | -
        tidy:janitor | janitor | cleans | plugin
    "#]]
    .assert_eq(&session_agents(json!({ "customAgents": own, "pluginDirectories": [true] })));
}
