//! One engine behind every front end: the same slash commands, the same waiting, the same ends, by `-p` and by `run`.

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use hangar_test_support::{Finished, Invocation, ModelServer, Scratch};
use serde_json::Value;

use crate::{HANGAR, hangar};

/// The two ways to give our own agent one prompt.
const WAYS: [&[&str]; 2] = [&[], &["run", "--runtime", "native"]];

fn run(scratch: &Scratch, model: &ModelServer, way: &[&str], prompt: &str) -> Invocation {
    hangar(scratch, model).args(way).args(["-p", prompt])
}

fn messages(events: &[Value], kind: &str) -> Vec<String> {
    let found = Finished::of_type(events, kind).into_iter();
    found.map(|event| event["data"]["message"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn slash_commands_are_answered_without_a_model() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let work = scratch.work().display().to_string();
    for way in WAYS {
        for (prompt, answer) in [
            ("/model", "Model: mock-model".to_owned()),
            ("/cwd", format!("The session works in {work}.")),
            ("/skills", "There are no skills.".to_owned()),
            ("/session files", "The session has changed no files.".to_owned()),
            ("/session plan", "The session has no plan.".to_owned()),
            ("/rename Its name", "The session is called Its name now.".to_owned()),
        ] {
            let json = run(&scratch, &model, way, prompt).args(["--output-format", "json"]);
            let done = json.finish().expect_exit(0);
            assert_eq!(messages(&done.events(), "session.info").join("|"), answer, "{way:?} {prompt}");
            let text = run(&scratch, &model, way, prompt).arg("--silent").finish().expect_exit(0);
            assert_eq!(text.stdout.trim_end(), answer, "{way:?} {prompt}");
        }
        let refused = run(&scratch, &model, way, "/rename").finish().expect_exit(1);
        assert!(refused.stderr.contains("Usage: /rename <name>"), "{}", refused.stderr);
        let refused = run(&scratch, &model, way, "/compact").finish().expect_exit(1);
        assert!(refused.stderr.contains("Nothing to compact."), "{}", refused.stderr);
    }
    assert_eq!(model.requests().len(), 0, "no model was asked");
}

/// The footer of a run, with a `#` for each number.
fn footer(run: &Finished) -> Vec<String> {
    let lines =
        run.stderr.lines().filter(|line| line.split("  ").next().is_some_and(|name| !name.is_empty()));
    let known = ["Changes", "Duration", "Tokens", "Cost", "Resume"];
    let lines = lines.filter(|line| known.iter().any(|name| line.starts_with(&format!("{name}  "))));
    lines.map(|line| if line.starts_with("Resume") { "Resume".to_owned() } else { numbers(line) }).collect()
}

fn numbers(line: &str) -> String {
    let mut shape = String::new();
    for letter in line.chars() {
        match letter.is_ascii_digit() {
            true if shape.ends_with('#') => {}
            true => shape.push('#'),
            false => shape.push(letter),
        }
    }
    shape
}

#[test]
fn a_run_ends_with_the_same_figures() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let create = |file: &str| format!(r#"TOOL:create:{{"path":"{file}","file_text":"one\ntwo\n"}}"#);
    for (way, file) in WAYS.into_iter().zip(["a.txt", "b.txt"]) {
        let text =
            run(&scratch, &model, way, &create(file)).arg("--allow-tool=write").finish().expect_exit(0);
        let lines = [
            "Changes    +# -#",
            "Duration   #s",
            "Tokens     \u{2191} #.#k \u{2022} \u{2193} #",
            "Cost       unknown (the prices of # calls are not known)",
            "Resume",
        ];
        assert_eq!(footer(&text), lines, "{way:?}: {}", text.stderr);
        assert!(text.stderr.contains("Changes    +2 -0"), "{way:?}: {}", text.stderr);
        let json =
            run(&scratch, &model, way, "SAY:x").args(["--output-format", "json"]).finish().expect_exit(0);
        let usage = Finished::of_type(&json.events(), "result")[0]["usage"].clone();
        assert_eq!(usage["unpricedCalls"], 1, "{way:?}: {usage}");
    }
}

#[test]
fn a_file_goes_with_the_prompt() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    scratch.file("note.txt", "the note");
    for way in WAYS {
        let args = ["--attachment", "note.txt", "--output-format", "json"];
        let events = run(&scratch, &model, way, "SAY:x").args(args).finish().expect_exit(0).events();
        let attached = Finished::of_type(&events, "user.message")[0]["data"]["attachments"].clone();
        assert_eq!(attached[0]["displayName"], "note.txt", "{way:?}: {attached}");
        let missing = run(&scratch, &model, way, "SAY:x").args(["--attachment", "gone"]).finish();
        assert!(missing.expect_exit(1).stderr.contains("attachment not found: "), "{way:?}");
    }
}

#[test]
fn all_tools_are_allowed_by_one_flag() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let config = "[runtimes.native]\nallow_tools = [\"write\"]\n";
    std::fs::create_dir_all(scratch.state()).expect("a home");
    std::fs::write(scratch.state().join("config.toml"), config).expect("a file");
    let command = r#"TOOL:bash:{"command":"mkdir made; rmdir made; echo done","description":"makes"}"#;
    let refused = |way: &[&str], flags: &[&str]| {
        let run = run(&scratch, &model, way, command).args(["--output-format", "json"]).args(flags);
        let events = run.finish().expect_exit(0).events();
        Finished::of_type(&events, "tool.execution_complete")[0]["data"]["success"] == false
    };
    for way in WAYS {
        assert!(refused(way, &[]), "{way:?}");
        assert!(!refused(way, &["--allow-all-tools"]), "{way:?}");
        assert!(refused(way, &["--allow-all-tools", "--deny-tool=shell(mkdir)"]), "{way:?}");
    }
}

#[test]
fn a_session_moves_and_reads_its_servers_again_by_slash_commands() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    scratch.file("below/here.txt", "here");
    let below = scratch.work().join("below").display().to_string();
    for (way, id) in
        WAYS.into_iter().zip(["0cb916ba-26aa-40f2-86b5-1ba81b225fd2", "0cb916ba-26aa-40f2-86b5-1ba81b225fd3"])
    {
        let go = |prompt: &str| {
            let args = ["--session-id", id, "--output-format", "json"];
            run(&scratch, &model, way, prompt).args(args).finish().expect_exit(0).events()
        };
        go("SAY:one");
        assert_eq!(messages(&go("/mcp reload"), "session.info"), ["No MCP servers are configured."]);
        let moved = format!("The session works in {below} now.");
        assert_eq!(messages(&go("/cwd below"), "session.info"), [moved]);
        assert_eq!(
            messages(&go("/cwd"), "session.info"),
            [format!("The session works in {below}.")],
            "{way:?}"
        );
    }
}

#[test]
fn skills_are_called_by_their_names() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    scratch
        .file(".github/skills/paint/SKILL.md", "---\nname: paint\ndescription: d\n---\nUse three coats.\n");
    for way in WAYS {
        run(&scratch, &model, way, "/paint SAY:painted").finish().expect_exit(0);
        assert!(model.last_request().to_string().contains("Use three coats."), "{way:?}");
    }
}

#[test]
fn background_work_is_waited_for_no_longer_than_asked() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let command = serde_json::json!({ "command": "sleep 1000", "description": "d", "mode": "async" });
    let prompt = format!("TOOL:bash:{command}\nSAY:left it");
    for way in WAYS {
        let run = run(&scratch, &model, way, &prompt).env("COPILOT_TASK_WAIT_TIMEOUT_SECONDS", "1");
        let done = run.args(["--allow-tool", "shell", "--output-format", "json"]).finish().expect_exit(0);
        assert_eq!(done.result()["exitCode"], 0, "{way:?}");
    }
}

#[test]
fn a_name_and_instructions_of_the_host_reach_our_own_agent() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let native = WAYS[1];
    let named =
        run(&scratch, &model, native, "SAY:one").args(["--name", "A given name", "--system", "first-words"]);
    named.finish().expect_exit(0);
    assert!(model.last_request().to_string().contains("first-words"));
    let listed = hangar(&scratch, &model).args(["sessions", "list"]).finish().expect_exit(0);
    assert!(listed.stdout.contains("A given name"), "{}", listed.stdout);
    let resumed = run(&scratch, &model, native, "SAY:two").args([
        "--resume",
        "A given name",
        "--system",
        "later-words",
    ]);
    resumed.finish().expect_exit(0);
    assert!(model.last_request().to_string().contains("later-words"));
}

#[test]
fn a_name_for_a_session_that_exists_is_refused() {
    const ID: &str = "11111111-2222-4333-8444-555555555555";
    for way in WAYS {
        let (scratch, model) = (Scratch::new(), ModelServer::start());
        let named = |name| run(&scratch, &model, way, "SAY:one").args(["--session-id", ID, "--name", name]);
        named("first").finish().expect_exit(0);
        let refused = named("second").finish().expect_exit(1);
        let says = format!("--name is for a new session, and session {ID} exists already");
        assert!(refused.stderr.contains(&says), "{way:?}: {}", refused.stderr);
        let listed = hangar(&scratch, &model).args(["sessions", "list"]).finish().expect_exit(0);
        assert!(listed.stdout.contains("first") && !listed.stdout.contains("second"), "{}", listed.stdout);
        assert_eq!(model.requests().len(), 1, "{way:?}: the refused run asked no model");
    }
}

#[test]
fn output_that_cannot_be_written_is_a_failure_that_is_said() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    for way in WAYS {
        for format in ["text", "json"] {
            let mut command = command(&scratch, &model);
            command.args(way).args(["-p", "SAY:pong", "--output-format", format]);
            let full = File::options().write(true).open("/dev/full").expect("/dev/full");
            let done = command.stdout(full).stderr(Stdio::piped()).output().expect("a run");
            let stderr = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(1), "{way:?} {format}: {stderr}");
            assert!(
                stderr.contains("standard output cannot be written: No space left"),
                "{way:?} {format}: {stderr}"
            );
        }
    }
}

#[test]
fn remarks_that_nobody_reads_change_nothing() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    for way in WAYS {
        let mut command = command(&scratch, &model);
        let mut child = command
            .args(way)
            .args(["-p", "FAIL:400", "--output-format", "text"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a run");
        drop(child.stderr.take());
        let mut said = String::new();
        child.stdout.take().expect("stdout").read_to_string(&mut said).expect("text");
        assert_eq!(child.wait().expect("an end").code(), Some(1), "{way:?}: {said}");
    }
}

/// The program without the watch of its output.
fn command(scratch: &Scratch, model: &ModelServer) -> Command {
    let mut command = Command::new(HANGAR);
    command
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", scratch.home())
        .env("HANGAR_HOME", scratch.state())
        .env("HANGAR_RETRY_SCALE", "0.01")
        .env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", model.url()))
        .env("COPILOT_PROVIDER_TYPE", "openai")
        .env("COPILOT_PROVIDER_API_KEY", "dummy")
        .env("COPILOT_MODEL", "mock-model")
        .env("COPILOT_OFFLINE", "true")
        .current_dir(scratch.work())
        .stdin(Stdio::null());
    command
}
