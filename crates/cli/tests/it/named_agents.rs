//! Named agents: `[agents.NAME]` with a runtime, chosen by `run`, jobs and tasks.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::{Finished, ModelServer, Scratch};

use crate::hangar;

const AGENTS: &str = r#"
[agents.fast]
runtime = "native"
model = "small-one"
effort = "low"
system_prompt_file = "fast.md"

[agents.deep]
runtime = "native"
model = "large-one"
description = "thinks"
fallback_models = ["spare-one"]
max_running = 1

[agents.explore]
model = "for-exploring"
"#;

/// A machine with two agents on one runtime.
struct Machine {
    scratch: Scratch,
    model: ModelServer,
}

impl Machine {
    fn new(config: &str) -> Self {
        let (scratch, model) = (Scratch::new(), ModelServer::start());
        std::fs::create_dir_all(scratch.state()).unwrap();
        std::fs::write(scratch.state().join("config.toml"), config).unwrap();
        std::fs::write(scratch.state().join("fast.md"), "Be quick about it.").unwrap();
        Self { scratch, model }
    }

    fn run(&self, args: &[&str]) -> Finished {
        hangar(&self.scratch, &self.model).args(args).finish()
    }

    /// Models of all requests so far.
    fn asked(&self) -> Vec<String> {
        let requests = self.model.requests();
        requests.iter().map(|request| request.body["model"].as_str().unwrap_or_default().to_owned()).collect()
    }
}

#[test]
fn two_agents_on_one_runtime_have_different_models() {
    let machine = Machine::new(AGENTS);
    for agent in ["fast", "deep"] {
        let run = machine.run(&[
            "run",
            "--agent",
            agent,
            "-p",
            "SAY:hi",
            "--output-format",
            "json",
            "--all-events",
        ]);
        let run = run.expect_exit(0);
        let assigned = Finished::of_type(&run.events(), "hangar.agent_assigned")[0]["data"].clone();
        assert_eq!((&assigned["agent"], &assigned["runtime"]), (&agent.into(), &"native".into()));
    }
    assert_eq!(machine.asked(), ["small-one", "large-one"]);
    let first = machine.model.requests()[0].body.to_string();
    assert!(first.contains("Be quick about it."), "{first}");
}

#[test]
fn a_session_of_an_agent_is_resumed_with_it() {
    let machine = Machine::new(AGENTS);
    let run =
        machine.run(&["run", "--agent", "fast", "-p", "SAY:hi", "--output-format", "json"]).expect_exit(0);
    let id = run.session_id();
    machine.run(&["run", "--resume", &id, "-p", "SAY:again"]).expect_exit(0);
    let explained = machine.run(&["run", "--resume", &id, "--explain"]).expect_exit(0).stdout;
    assert!(explained.contains("agent            fast                     the session"), "{explained}");
    assert_eq!(machine.asked(), ["small-one", "small-one"]);
    // Without its table the runtime is left.
    std::fs::write(machine.scratch.state().join("config.toml"), "").unwrap();
    machine.run(&["run", "--resume", &id, "-p", "SAY:more"]).expect_exit(0);
}

#[test]
fn a_fallback_model_takes_over_when_one_is_overloaded() {
    let machine = Machine::new(AGENTS);
    // The script fails for each model, so that the last one fails too.
    let prompt = "FAIL:529";
    let run =
        machine.run(&["run", "--agent", "deep", "-p", prompt, "--output-format", "json", "--all-events"]);
    let run = run.expect_exit(1);
    let mut asked = machine.asked();
    asked.dedup();
    assert_eq!(asked, ["large-one", "spare-one"]);
    let log = machine.scratch.log(&run.session_id());
    assert!(log.contains("the session goes on with spare-one"), "{log}");
}

#[test]
fn the_origin_of_each_setting_is_explained() {
    let machine = Machine::new(AGENTS);
    let told = machine.run(&["run", "--agent", "fast", "--explain"]).expect_exit(0).stdout;
    assert!(
        told.contains("model            small-one                [agents.fast] of config.toml"),
        "{told}"
    );
    assert!(
        told.contains("builtin mcp      false                    [agents.fast] of config.toml"),
        "{told}"
    );
    let told = machine.run(&["runtimes"]).expect_exit(0).stdout;
    assert!(told.contains("deep") && told.contains("native"), "{told}");
}

#[test]
fn a_name_that_is_no_agent_of_the_configuration_means_a_custom_agent() {
    let machine = Machine::new(AGENTS);
    let told = machine.run(&["run", "--agent", "explore", "--explain"]).expect_exit(0).stdout;
    assert!(told.contains("persona          explore                  --persona"), "{told}");
    let refused = machine.run(&["run", "--agent", "fast", "--runtime", "copilot", "-p", "x"]).expect_exit(1);
    assert!(refused.stderr.contains("runs on native, not on copilot"), "{}", refused.stderr);
}

#[test]
fn an_agent_on_the_own_runtime_is_a_role_of_p_and_others_are_named() {
    let machine = Machine::new(&format!("{AGENTS}\n[agents.other]\nruntime = \"claude\"\n"));
    machine.run(&["-p", "SAY:hi", "--agent", "fast"]).expect_exit(0);
    // As with all roles, its model is used only where a provider lists it; its instructions always are.
    let asked = machine.model.last_request().to_string();
    assert!(asked.contains("Be quick about it."), "{asked}");
    let refused = machine.run(&["-p", "SAY:hi", "--agent", "other"]).expect_exit(1);
    assert!(
        refused.stderr.contains("agent `other` runs on claude; `hangar run --agent other`"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_task_names_its_agent_and_has_limits() {
    let machine = Machine::new(AGENTS);
    machine.scratch.file(
        "jobs.yaml",
        "models: { driving: mock-model }\n\
         tasks:\n\
         \x20 a: { agent: fast, prompt: 'SAY:one', requireUserInput: false }\n\
         \x20 b: { model: { category: driving }, prompt: 'SAY:two', requireUserInput: false }\n\
         \x20 c: { agent: fast, limits: { turns: 1 }, prompt: 'SAY:three', requireUserInput: false,\n\
         \x20      criteria: { files: [never], failureAction: { retryTimes: 3 } } }\n\
         jobs:\n\
         \x20 both: { work: { kind: Seq, works: [ { kind: Ref, taskId: a }, { kind: Ref, taskId: b } ] } }\n\
         \x20 one: { work: { kind: Ref, taskId: c } }\n",
    );
    machine.run(&["job", "run", "jobs.yaml", "both", "--agent", "deep"]).expect_exit(0);
    assert_eq!(machine.asked(), ["small-one", "mock-model"]);
    let failed = machine.run(&["job", "run", "jobs.yaml", "one"]).expect_exit(1);
    assert!(failed.stderr.contains("has used its 1 turns"), "{} {}", failed.stdout, failed.stderr);
}
