//! Invalid requests for a session are refused before anything is created: no session is left behind, none is changed, and
//! `--continue` resumes the last session with a prompt.

use hangar_test_support::{Finished, ModelServer, Scratch};
use serde_json::{Value, json};

use crate::sdk::{Client, ID};
use crate::sdk_models::Stage;
use crate::{HANGAR, acp, hangar};

const JSON: [&str; 2] = ["--output-format", "json"];
const NOWHERE: &str = "/no/such/directory";

/// All files and directories of sessions, with their content.
fn kept(scratch: &Scratch) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut open = vec![scratch.state().join("session-state")];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            let path = entry.path();
            found.push((path.display().to_string(), std::fs::read(&path).unwrap_or_default()));
            if path.is_dir() {
                open.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Checks that a run is refused with one sentence that names the cause, without a request to the model and without a change
/// below `session-state`, for a new session and for a resumed one.
#[track_caller]
fn check_refused(prepare: impl Fn(&Scratch), args: &[&str], env: &[(&str, &str)], names: &str) {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    hangar(&scratch, &model).args(["-p", "SAY:before"]).args(JSON).finish().expect_exit(0);
    prepare(&scratch);
    let (before, asked) = (kept(&scratch), model.requests().len());
    for which in [&[][..], &["--continue"]] {
        let run = hangar(&scratch, &model).args(["-p", "SAY:x"]).args(JSON).args(args).args(which);
        let run = env.iter().fold(run, |run, (name, value)| run.env(name, value)).finish().expect_exit(1);
        assert!(run.stderr.contains(names), "{which:?}: stderr does not name `{names}`: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{which:?}: not one sentence: {}", run.stderr);
        let after = kept(&scratch);
        let paths =
            |kept: &[(String, Vec<u8>)]| kept.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
        assert_eq!(paths(&after), paths(&before), "{which:?}: something was left behind");
        assert!(after == before, "{which:?}: what was kept has changed");
        assert_eq!(model.requests().len(), asked, "{which:?}: the model was asked");
    }
}

#[track_caller]
fn check_flags(args: &[&str], names: &str) {
    check_refused(|_| {}, args, &[], names);
}

/// A run with this in `config.toml`.
#[track_caller]
fn check_config(text: &str, names: &str) {
    let write = |scratch: &Scratch| {
        let text = text.replace("$WORK", &scratch.work().display().to_string());
        std::fs::write(scratch.state().join("config.toml"), text).expect("the home is there");
    };
    check_refused(write, &[], &[], names);
}

#[test]
fn a_directory_that_is_not_there_is_refused() {
    check_flags(&["--add-dir", NOWHERE], "--add-dir /no/such/directory is not a directory that can be read");
    check_flags(&["-C", NOWHERE], NOWHERE);
    check_flags(&["-C", "/dev/null"], "/dev/null");
}

#[test]
fn a_file_is_no_directory() {
    let file = |scratch: &Scratch| drop(scratch.file("note.txt", "x"));
    check_refused(file, &["--add-dir", "note.txt"], &[], "note.txt is not a directory that can be read");
}

#[test]
fn an_attachment_that_is_not_there_is_refused() {
    check_flags(&["--attachment", "nothing.png"], "attachment not found: ");
}

#[test]
fn an_attachment_that_is_no_file_is_refused() {
    let directory =
        |scratch: &Scratch| std::fs::create_dir(scratch.work().join("notes")).expect("a directory");
    check_refused(directory, &["--attachment", "notes"], &[], "notes is not a regular file");
}

#[test]
fn a_plugin_that_is_not_there_is_refused() {
    check_flags(
        &["--plugin-dir", NOWHERE],
        "--plugin-dir /no/such/directory is not a directory that can be read",
    );
    let file = |scratch: &Scratch| drop(scratch.file("note.txt", "x"));
    check_refused(file, &["--plugin-dir", "note.txt"], &[], "note.txt is not a directory that can be read");
}

#[test]
fn a_file_that_could_not_be_written_afterwards_is_refused() {
    let file = |scratch: &Scratch| drop(scratch.file("note.txt", "x"));
    let directory =
        |scratch: &Scratch| std::fs::create_dir(scratch.work().join("notes")).expect("a directory");
    for flag in ["--usage-output-file", "--share"] {
        let given = |path: &str| format!("{flag}={path}");
        check_refused(file, &[&given("note.txt/x")], &[], &format!("{flag}: "));
        check_refused(directory, &[&given("notes")], &[], "notes is a directory");
    }
}

#[test]
fn an_attachment_that_is_too_large_is_refused() {
    let large = |scratch: &Scratch| {
        let file = std::fs::File::create(scratch.work().join("large.bin")).expect("a file");
        file.set_len(21 << 20).expect("a large file");
    };
    check_refused(large, &["--attachment", "large.bin"], &[], "large.bin is larger than 20 MB");
}

#[test]
fn an_agent_that_is_not_there_is_refused() {
    check_flags(&["--agent", "wizard"], "there is no agent `wizard`");
}

#[test]
fn a_level_of_effort_that_is_not_there_is_refused() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let run = hangar(&scratch, &model).args(["-p", "x", "--effort", "extreme"]).finish().expect_exit(1);
    assert!(run.stderr.contains("extreme"), "{}", run.stderr);
    assert_eq!(kept(&scratch), []);
}

#[test]
fn a_recording_that_is_not_there_is_refused() {
    check_flags(&["--replay", "nothing.jsonl"], "cannot replay nothing.jsonl");
}

#[test]
fn a_server_that_is_not_described_is_refused() {
    check_flags(&["--additional-mcp-config", "{"], "cannot use --additional-mcp-config");
    check_flags(&["--additional-mcp-config", "@nothing.json"], "cannot read --additional-mcp-config");
}

#[test]
fn a_sandbox_that_contradicts_itself_is_refused() {
    let denied = "[sandbox]\nenabled = true\n[sandbox.userPolicy.filesystem]\ndeniedPaths = [\"$WORK/x\"]\n";
    check_config(denied, "the sandbox cannot deny ");
    let hosts = "[sandbox]\nenabled = true\n[sandbox.userPolicy.network]\nallowOutbound = true\n\
                 allowedHosts = [\"a.example\"]\n";
    check_config(hosts, "the sandbox cannot filter by host");
}

#[test]
fn a_sandbox_that_cannot_be_had_is_refused() {
    let without = [("HANGAR_SANDBOX_WITHOUT", "landlock")];
    check_refused(|_| {}, &["--sandbox"], &without, "the sandbox cannot be used");
}

#[test]
fn instructions_for_later_that_make_no_sense_are_refused() {
    check_config("[[just_in_time]]\nat = 75\nof = \"moon\"\ntext = \"x\"\n", "config.toml");
}

#[test]
fn variables_that_are_no_numbers_are_refused() {
    for name in [
        "COPILOT_LARGE_OUTPUT_THRESHOLD_BYTES",
        "COPILOT_SUBAGENT_MAX_CONCURRENT",
        "COPILOT_SUBAGENT_MAX_DEPTH",
        "HANGAR_RETRY_SCALE",
    ] {
        check_refused(|_| {}, &[], &[(name, "many")], name);
    }
}

/// Checks that `--continue` resumes the session with a prompt, and not one that `leave` creates later.
#[track_caller]
fn check_continued(leave: impl FnOnce(&Scratch, &ModelServer)) {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let first = hangar(&scratch, &model).args(["-p", "SAY:one"]).args(JSON).finish().expect_exit(0);
    leave(&scratch, &model);
    let next = hangar(&scratch, &model).args(["-p", "SAY:two", "--continue"]).args(JSON).finish();
    assert_eq!(next.expect_exit(0).session_id(), first.session_id());
    let asked = model.last_request()["messages"].to_string();
    assert!(asked.contains("SAY:one"), "{asked}");
}

#[test]
fn what_is_gone_on_with_is_not_a_run_that_was_refused() {
    check_continued(|scratch, model| {
        let flags = ["-p", "SAY:x", "--add-dir", NOWHERE];
        hangar(scratch, model).args(flags).finish().expect_exit(1);
    });
}

/// A session of a process that was killed before its first event.
fn leave_empty(scratch: &Scratch, log: &str) {
    let directory = scratch.state().join("session-state/0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad0ff");
    std::fs::create_dir_all(&directory).expect("the home is there");
    std::fs::write(directory.join("events.jsonl"), log).expect("the home is there");
    let meta = "id: 0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad0ff\ncreated_at: 2126-01-01T00:00:00.000Z\n\
                updated_at: 2126-01-01T00:00:00.000Z\n";
    std::fs::write(directory.join("workspace.yaml"), meta).expect("the home is there");
}

#[test]
fn what_is_gone_on_with_is_not_empty() {
    check_continued(|scratch, _| leave_empty(scratch, ""));
}

#[test]
fn with_nothing_but_an_empty_session_there_is_a_new_one() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    leave_empty(&scratch, "");
    let run = hangar(&scratch, &model).args(["-p", "SAY:x", "--continue"]).args(JSON).finish();
    let run = run.expect_exit(0);
    assert_eq!(Finished::of_type(&run.events(), "session.start").len(), 0, "as for any run");
    assert_ne!(run.session_id(), "0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad0ff");
}

#[test]
fn a_client_s_directory_that_is_not_there_is_refused() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let mut client = Client::start(&scratch, &model);
    let denied = json!({ "filesystem": { "deniedPaths": [scratch.work().join("x")] } });
    for (config, names) in [
        (json!({ "additionalDirectories": [NOWHERE] }), "is not a directory that can be read"),
        (json!({ "agent": "wizard" }), "there is no agent `wizard`"),
        (json!({ "sandboxConfig": { "enabled": true, "userPolicy": denied } }), "the sandbox cannot deny"),
    ] {
        let answer = client.answer("session.create", config);
        let message = answer["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(names), "{answer}");
        assert_eq!(kept(&scratch), [], "{names}: something was left behind");
    }
    client.finish();
}

/// A request that must be refused: as a flag, as members of `session.create` if those can say it, and the word that the refusal
/// has to name.
struct Nonsense {
    flag: &'static str,
    member: Option<Value>,
    names: &'static str,
}

fn nonsense() -> [Nonsense; 4] {
    [
        Nonsense {
            flag: "--add-dir=/no/such/directory",
            member: Some(json!({ "additionalDirectories": [NOWHERE] })),
            names: NOWHERE,
        },
        Nonsense {
            flag: "--model=v/gpt-5.6-tera",
            member: Some(json!({ "model": "v/gpt-5.6-tera" })),
            names: "the nearest models are gpt-5.6-terra",
        },
        Nonsense {
            flag: "--effort=extreme",
            member: Some(json!({ "reasoningEffort": "extreme" })),
            names: "extreme",
        },
        // Clients send files with a prompt, to a session that exists.
        Nonsense { flag: "--attachment=nothing.png", member: None, names: "attachment" },
    ]
}

/// Refusals of a request by `-p`, `run`, the agent of editors and the SDK server, each by its name.
fn refusals(stage: &Stage, nonsense: &Nonsense) -> Vec<(&'static str, String)> {
    let program = || stage.scratch.run(HANGAR).env("COPILOT_OFFLINE", "true");
    let exits = |args: &[&str]| program().args(args).arg(nonsense.flag).finish().expect_exit(1).stderr;
    let mut told =
        vec![("-p", exits(&["-p", "SAY:x"])), ("run", exits(&["run", "--runtime", "native", "-p", "SAY:x"]))];
    let message = |answer: &Value| answer["error"]["message"].as_str().unwrap_or_default().to_owned();
    match &nonsense.member {
        None => told.extend([("ACP", exits(&["--acp"])), ("server", exits(&["--headless", "--stdio"]))]),
        Some(member) => {
            let mut editor = acp::Client::of(program().arg(nonsense.flag), &stage.scratch);
            let params = json!({ "cwd": stage.scratch.work(), "mcpServers": [] });
            told.push(("ACP", message(&editor.answer("session/new", &params))));
            editor.finish();
            let mut client = Client::of(program());
            let mut config = json!({ "sessionId": ID, "workingDirectory": stage.scratch.work() });
            for (name, value) in member.as_object().into_iter().flatten() {
                config[name] = value.clone();
            }
            told.push(("server", message(&client.answer("session.create", config))));
            client.finish();
        }
    }
    told
}

#[test]
fn every_front_end_refuses_nonsense_before_a_session_exists() {
    let stage = Stage::new();
    let program = || stage.scratch.run(HANGAR).env("COPILOT_OFFLINE", "true");
    program().arg("models").finish().expect_exit(0);
    let first = program().args(["-p", "SAY:one"]).args(JSON).finish().expect_exit(0);
    let before = kept(&stage.scratch);
    for nonsense in nonsense() {
        for (front_end, told) in refusals(&stage, &nonsense) {
            let flag = nonsense.flag;
            // The usage may follow behind the sentence.
            let sentence = told.lines().next().unwrap_or_default();
            assert!(sentence.contains(nonsense.names), "{front_end} {flag}: {told}");
        }
        assert!(kept(&stage.scratch) == before, "{}: sessions have changed", nonsense.flag);
    }
    let next = program().args(["-p", "SAY:two", "--continue"]).args(JSON).finish().expect_exit(0);
    assert_eq!(next.session_id(), first.session_id());
}
