//! The guard against ghost pull requests: a Copilot with a name of its own does not start its own GitHub server, with which it could
//! open pull requests that nobody asked for, unless its table allows it.

use hangar_test_support::{ModelServer, Scratch};
use serde_json::json;

use super::{configure, stand_in};
use crate::{HANGAR, hangar};

const FLAG: &str = "--disable-builtin-mcps";

/// A machine with the agents `builder`, guarded, and `trusted`, which may use the server.
fn machine() -> (Scratch, ModelServer) {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    // It notes its flags, and is ours in a home of its own otherwise: that understands the same ones.
    let root = scratch.root().display();
    let script = format!(
        "echo \"$*\" >> {root}/started\nexport HANGAR_HOME={root}/other COPILOT_HOME={root}/other\nexec {HANGAR} \"$@\""
    );
    let program = stand_in(&scratch, "copilot", &script);
    let env = json!({
        "COPILOT_PROVIDER_BASE_URL": format!("{}/v1", model.url()), "COPILOT_PROVIDER_TYPE": "openai",
        "COPILOT_PROVIDER_API_KEY": "dummy", "COPILOT_MODEL": "mock-model", "COPILOT_OFFLINE": "true",
    });
    let env: Vec<String> =
        env.as_object().expect("variables").iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let env = env.join(", ");
    configure(
        &scratch,
        &format!(
            "[runtimes.copilot]\nprogram = {}\nenv = {{ {env} }}\n\
             [agents.builder]\nruntime = \"copilot\"\n\
             [agents.trusted]\nruntime = \"copilot\"\nbuiltin_mcp = true\n",
            json!(program.display().to_string())
        ),
    );
    scratch.file(
        "jobs.yaml",
        "models: { driving: mock-model }\n\
         tasks:\n  build: { agent: builder, prompt: 'SAY:built', requireUserInput: false }\n\
         \x20 trust: { agent: trusted, prompt: 'SAY:built', requireUserInput: false }\n\
         jobs:\n  build: { work: { kind: Ref, taskId: build } }\n  trust: { work: { kind: Ref, taskId: trust } }\n",
    );
    (scratch, model)
}

/// Whether each of the turns since the start was guarded, in order.
fn guarded(scratch: &Scratch) -> Vec<bool> {
    let started = std::fs::read_to_string(scratch.root().join("started")).expect("an agent was started");
    // Other starts only ask for the version or the flags.
    let turns = started.lines().filter(|flags| flags.contains("--output-format"));
    turns.map(|flags| flags.split(' ').any(|flag| flag == FLAG)).collect()
}

#[test]
fn a_copilot_with_a_name_opens_no_pull_requests_unless_its_table_allows_it() {
    let (scratch, model) = machine();
    let run = |args: &[&str]| hangar(&scratch, &model).args(args).finish().expect_exit(0);
    run(&["run", "--agent", "builder", "-p", "SAY:hello"]);
    run(&["run", "--agent", "trusted", "-p", "SAY:hello"]);
    assert_eq!(guarded(&scratch), [true, false], "of prompts");
    run(&["job", "run", "jobs.yaml", "build"]);
    run(&["job", "run", "jobs.yaml", "trust"]);
    assert_eq!(guarded(&scratch)[2..], [true, false], "of jobs");
    let explained = run(&["run", "--agent", "builder", "--explain", "-p", "x"]);
    let line =
        explained.stdout.lines().find(|line| line.contains("builtin mcp")).unwrap_or_default().to_owned();
    assert!(line.contains("false"), "{}", explained.stdout);
}
