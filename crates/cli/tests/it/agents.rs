//! Agents of the real binary: what they are shown, that they are waited for, and what a signal or a crash does to them.

use std::time::Duration;

use hangar_test_support::process::Witness;
use hangar_test_support::{Finished, ModelServer, Scratch, Signal};
use serde_json::{Value, json};

use crate::hangar;

const JSON: [&str; 3] = ["--output-format", "json", "--allow-all-tools"];

/// A line of the script that starts an agent.
fn task(agent_type: &str, prompt: &str, mode: &str) -> String {
    let call = json!({ "description": "d", "agent_type": agent_type, "name": "helper", "prompt": prompt, "mode": mode });
    format!("TOOL:task:{call}")
}

fn tools(request: &Value) -> Vec<&str> {
    let tools = request["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
    tools.iter().filter_map(|tool| tool["function"]["name"].as_str()).collect()
}

#[test]
fn an_explorer_is_shown_what_it_needs_to_look_around() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let prompt = task("explore", "SAY:found", "sync");
    hangar(&scratch, &model).args(["-p", &prompt]).args(JSON).finish().expect_exit(0);
    let requests = model.requests();
    let mut shown = tools(&requests[1].body);
    shown.sort_unstable();
    assert_eq!(shown, ["bash", "glob", "grep", "list_bash", "read_bash", "stop_bash", "view"]);
    let main = tools(&requests[0].body);
    assert!(
        ["task", "read_agent", "list_agents", "write_agent"].iter().all(|tool| main.contains(tool)),
        "{main:?}"
    );
}

#[test]
fn a_role_is_played_by_its_name_and_an_unknown_one_is_refused() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let run = hangar(&scratch, &model)
        .args(["-p", "SAY:hi", "--agent", "explore", "--all-events"])
        .args(JSON)
        .finish()
        .expect_exit(0);
    assert!(!tools(&model.last_request()).contains(&"edit"));
    assert_eq!(Finished::of_type(&run.events(), "subagent.selected").len(), 1);
    let refused = hangar(&scratch, &model)
        .args(["-p", "SAY:hi", "--agent", "wizard"])
        .args(JSON)
        .finish()
        .expect_exit(1);
    assert!(refused.stderr.contains("there is no agent `wizard`"), "{}", refused.stderr);
}

#[test]
fn tools_that_are_not_wanted_are_not_wanted_of_agents_either() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let args = ["-p", "SAY:hi", "--excluded-tools", "task,write_agent"];
    hangar(&scratch, &model).args(args).args(JSON).finish().expect_exit(0);
    let request = model.last_request();
    let shown = tools(&request);
    assert!(
        shown.contains(&"read_agent") && !shown.contains(&"task") && !shown.contains(&"write_agent"),
        "{shown:?}"
    );
}

#[test]
fn the_depth_of_agents_is_limited_by_a_variable() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let prompt = task("general-purpose", &task("general-purpose", "SAY:deep", "sync"), "sync");
    let run = hangar(&scratch, &model)
        .env("COPILOT_SUBAGENT_MAX_DEPTH", "1")
        .args(["-p", &prompt])
        .args(JSON)
        .finish()
        .expect_exit(0);
    assert_eq!(Finished::of_type(&run.events(), "subagent.started").len(), 1);
    let offered: Vec<bool> =
        model.requests().iter().map(|request| tools(&request.body).contains(&"task")).collect();
    assert_eq!(offered, [true, false, false, true], "nobody is offered what would be refused");
    let refused = model.requests()[2].body["messages"].to_string();
    assert!(refused.contains("Tool 'task' does not exist."), "{refused}");
    let run = hangar(&scratch, &model)
        .env("COPILOT_SUBAGENT_MAX_DEPTH", "0")
        .args(["-p", "SAY:x"])
        .args(JSON)
        .finish();
    run.expect_exit(1);
}

#[test]
fn the_number_of_agents_is_limited_by_a_variable() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let slow = task("explore", "DELAY:500\nSAY:found", "background");
    let prompt = format!("P{slow}\n{slow}\nSAY:ok");
    let run = hangar(&scratch, &model)
        .env("COPILOT_SUBAGENT_MAX_CONCURRENT", "1")
        .args(["-p", &prompt])
        .args(JSON)
        .finish()
        .expect_exit(0);
    assert_eq!(Finished::of_type(&run.events(), "subagent.started").len(), 1);
    assert!(model.requests().iter().any(|request| request.body.to_string().contains("which is the limit")));
}

#[test]
fn a_prompt_is_over_when_its_agents_are_and_what_they_found_is_read() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let prompt = format!("{}\nSAY:waiting", task("explore", "DELAY:300\nSAY:a pineapple", "background"));
    let run = hangar(&scratch, &model).args(["-p", &prompt]).args(JSON).finish().expect_exit(0);
    let events = run.events();
    let at =
        |kind: &str| events.iter().position(|event| event["type"] == kind).expect("an event of that type");
    assert!(
        at("assistant.idle") < at("subagent.completed")
            && at("subagent.completed") < at("system.notification")
    );
    let told = model.last_request()["messages"].to_string();
    assert!(told.contains("is now idle") && told.contains("[Turn 0]\\na pineapple"), "{told}");
}

#[test]
fn an_agent_with_an_empty_list_of_tools_has_none() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    scratch.file(".github/agents/mute.agent.md", "---\ndescription: d\ntools: []\n---\nYou only think.\n");
    let prompt = format!("{}\nSAY:end", task("mute", "SAY:thought", "sync"));
    hangar(&scratch, &model).args(["-p", &prompt]).args(JSON).finish().expect_exit(0);
    let requests = model.requests();
    assert!(requests[1].body["messages"][0].to_string().contains("You only think."));
    assert_eq!(tools(&requests[1].body), [""; 0]);
}

#[test]
fn of_agents_of_the_same_name_the_nearest_works_and_goes_before_what_is_built_in() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    scratch.file(".git/HEAD", "ref: refs/heads/main\n");
    let agent = |text: &str| format!("---\ndescription: d\n---\n{text}\n");
    let home = scratch.state().join("agents");
    std::fs::create_dir_all(&home).expect("a folder for agents");
    std::fs::write(home.join("explore.md"), agent("MARK-home")).expect("an agent");
    scratch.file(".claude/agents/explore.md", &agent("MARK-claude"));
    scratch.file(".github/agents/explore.agent.md", &agent("MARK-github"));
    scratch.file("sub/.claude/agents/explore.md", &agent("MARK-near"));
    let check = |cwd: &str, expected: &str| {
        let prompt = format!("{}\nSAY:end", task("explore", "SAY:found", "sync"));
        let before = model.requests().len();
        let run = hangar(&scratch, &model).args(["-p", &prompt]).args(JSON).cwd(scratch.work().join(cwd));
        run.finish().expect_exit(0);
        let role = model.requests()[before + 1].body["messages"][0].to_string();
        let marks: Vec<&str> =
            role.match_indices("MARK-").map(|(at, _)| &role[at..at + expected.len()]).collect();
        assert_eq!(marks, [expected]);
    };
    check("", "MARK-github");
    check("sub", "MARK-near");
}

#[test]
fn a_signal_ends_an_agent_and_its_commands() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let sleep = json!({ "command": "echo $$ > pid; sleep 600", "description": "s", "initial_wait": 500 });
    let prompt = task("general-purpose", &format!("TOOL:bash:{sleep}"), "sync");
    let mut run = hangar(&scratch, &model).args(["-p", &prompt]).args(JSON).start();
    while run.wait_for_event("tool.execution_start")["data"]["toolName"] != "bash" {}
    let command = Witness::of(wait_for_pid(&scratch));
    run.signal(Signal::INT);
    let run = run.finish();
    assert_eq!(Finished::of_type(&run.events(), "subagent.failed").len(), 1);
    assert!(command.is_gone_within(Duration::from_secs(10)), "the command of the agent lives on");
}

#[test]
fn an_agent_that_a_killed_process_left_is_closed_and_the_model_is_told() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let prompt = format!("{}\nSAY:waiting", task("general-purpose", "DELAY:60000\nSAY:never", "background"));
    let mut run = hangar(&scratch, &model).args(["-p", &prompt]).args(JSON).start();
    run.wait_for_event("assistant.idle");
    run.signal(Signal::KILL);
    run.finish();
    let resumed =
        hangar(&scratch, &model).args(["-p", "SAY:back", "--continue"]).args(JSON).finish().expect_exit(0);
    let failed = resumed.events();
    let failed = Finished::of_type(&failed, "subagent.failed");
    assert_eq!(failed.len(), 1);
    assert!(failed[0]["agentId"].is_string());
    let asked = model.last_request()["messages"].to_string();
    assert!(asked.contains("has failed") && asked.contains("SAY:back"), "{asked}");
    assert!(!asked.contains("never\""), "nothing of the agent is run again: {asked}");
}

const ODD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/odd.mjs");

/// An agent file with a server of its own, called `own`.
fn with_server(scratch: &Scratch) -> String {
    let starts = scratch.root().join("starts");
    format!(
        "---\ndescription: d\nskills: [greeting]\nmcp-servers:\n  own:\n    command: node\n    args: ['{ODD}', fine, '{}']\n\
         ---\nYou are dressed.\n",
        starts.display()
    )
}

#[test]
fn an_agent_has_its_own_servers_and_skills_while_it_runs_and_nobody_else_does() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let agents = scratch.state().join("agents");
    std::fs::create_dir_all(&agents).expect("a folder for agents");
    std::fs::write(agents.join("dressed.agent.md"), with_server(&scratch)).expect("an agent");
    scratch
        .file(".github/skills/greeting/SKILL.md", "---\nname: greeting\ndescription: g\n---\nSay PINEAPPLE.");
    let inner = "TOOL:own-echo:{\"text\": \"heard it\"}\nSAY:told";
    let prompt = format!("{}\nSAY:end", task("dressed", inner, "sync"));
    let run = hangar(&scratch, &model).args(["-p", &prompt]).args(JSON).finish().expect_exit(0);
    let requests = model.requests();
    let own = |request: &Value| tools(request).contains(&"own-echo");
    assert!(!own(&requests[0].body) && own(&requests[1].body) && !own(&model.last_request()));
    assert!(requests[2].body["messages"].to_string().contains("heard it"));
    let role = requests[1].body["messages"][0].to_string();
    assert!(role.contains("You are dressed.") && role.contains("Say PINEAPPLE."), "{role}");
    assert!(!requests[0].body.to_string().contains("PINEAPPLE"));
    let events = run.events();
    let statuses: Vec<Value> = Finished::of_type(&events, "session.mcp_server_status_changed")
        .iter()
        .map(|event| event["data"]["status"].clone())
        .collect();
    assert_eq!(statuses, ["pending", "connected", "stopped"]);
    let started = std::fs::read_to_string(scratch.root().join("starts")).expect("it was started");
    assert!(!std::path::Path::new("/proc").join(started.trim()).exists(), "the server lives on");
}

#[test]
fn a_project_that_is_not_trusted_starts_no_server_for_its_agents() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    scratch.file(".github/agents/dressed.agent.md", &with_server(&scratch));
    let prompt = format!("{}\nSAY:end", task("dressed", "SAY:plain", "sync"));
    let run = hangar(&scratch, &model).args(["-p", &prompt]).args(JSON).finish().expect_exit(0);
    assert!(!scratch.root().join("starts").exists());
    let warnings = run.events();
    let warnings = Finished::of_type(&warnings, "session.warning");
    assert!(warnings.iter().any(|event| event.to_string().contains("is not trusted")), "{warnings:?}");
}

#[test]
fn the_session_has_the_servers_of_the_agent_whose_role_it_plays() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let agents = scratch.state().join("agents");
    std::fs::create_dir_all(&agents).expect("a folder for agents");
    std::fs::write(agents.join("dressed.agent.md"), with_server(&scratch)).expect("an agent");
    let agent = with_server(&scratch).replacen("own:\n", "own:\n    env:\n      GIVEN: ${WANTED}\n", 1);
    std::fs::write(agents.join("dressed.agent.md"), agent).expect("an agent");
    let args = ["-p", "TOOL:own-env:{\"name\": \"GIVEN\"}", "--agent", "dressed"];
    hangar(&scratch, &model).args(args).args(JSON).env("WANTED", "expanded").finish().expect_exit(0);
    assert!(tools(&model.last_request()).contains(&"own-echo"));
    assert!(model.last_request()["messages"].to_string().contains("expanded"));
}

fn wait_for_pid(scratch: &Scratch) -> i32 {
    let path = scratch.work().join("pid");
    loop {
        if let Some(pid) = std::fs::read_to_string(&path).ok().and_then(|text| text.trim().parse().ok()) {
            return pid;
        }
        std::thread::yield_now();
    }
}

#[test]
fn an_agent_is_called_by_the_name_that_its_file_gives_it_or_by_the_file() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    scratch.file(".github/agents/mine.agent.md", "---\nname: My Agent\ndescription: d\n---\nBe mine.");
    for called in ["My Agent", "mine"] {
        let prompt = format!("{}\nSAY:end", task(called, "SAY:inner", "sync"));
        let run = hangar(&scratch, &model).args(["-p", &prompt]).args(JSON).finish().expect_exit(0);
        let events = run.events();
        let started = &Finished::of_type(&events, "subagent.started")[0]["data"];
        assert_eq!(started["agentName"], "My Agent", "{called}");
        let args = ["-p", "SAY:ok", "--agent", called];
        let run = hangar(&scratch, &model).args(args).args(JSON).finish().expect_exit(0);
        assert!(model.last_request()["messages"][0].to_string().contains("Be mine."), "{called}");
        assert!(
            Finished::of_type(&run.events(), "subagent.selected").is_empty(),
            "chosen before anybody looks"
        );
    }
    let request = &model.requests()[0].body;
    let types = request["tools"].to_string();
    assert!(types.contains("\"My Agent\"") && !types.contains("\"mine\""), "{types}");
}

#[test]
fn whoever_names_a_model_goes_before_the_agent_whose_role_is_played() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    scratch.file(".github/agents/picky.agent.md", "---\ndescription: d\nmodel: somebody-elses\n---\nx");
    let asked = |args: &[&str]| {
        let args = [&["-p", "SAY:ok", "--agent", "picky"], args].concat();
        hangar(&scratch, &model).args(args).env("COPILOT_MODEL", "mine").args(JSON).finish().expect_exit(0);
        model.last_request()["model"].clone()
    };
    assert_eq!(asked(&[]), "mine");
    assert_eq!(asked(&["--model", "this-one"]), "this-one");
}
