//! `hangar config` and what it changes: errors with lines, edits that keep comments, secrets that are never shown, live reload.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::path::PathBuf;

use hangar_test_support::{Finished, ModelServer, Scratch};
use serde_json::Value;

use crate::hangar;

struct Machine {
    scratch: Scratch,
    model: ModelServer,
}

impl Machine {
    fn new(config: &str) -> Self {
        let (scratch, model) = (Scratch::new(), ModelServer::start());
        std::fs::create_dir_all(scratch.state()).unwrap();
        let machine = Self { scratch, model };
        std::fs::write(machine.file(), config).unwrap();
        machine
    }

    fn file(&self) -> PathBuf {
        self.scratch.state().join("config.toml")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.file()).unwrap()
    }

    fn config(&self, args: &[&str]) -> Finished {
        hangar(&self.scratch, &self.model).arg("config").args(args).finish()
    }
}

#[track_caller]
fn check_problem(config: &str, expected: &str) {
    let found = Machine::new(config).config(&["check"]).expect_exit(1).stdout;
    assert!(found.contains(expected), "{found}");
}

#[test]
fn every_error_has_its_line_and_what_is_allowed() {
    check_problem(
        "\nmodle = \"a\"\n",
        "config.toml:2: the file has no key `modle`; did you mean `model`? allowed: model, ",
    );
    check_problem(
        "[limits]\nglobal = 0\n",
        "config.toml:2: `limits.global` is 0; it must be a whole number from 1 to 100000",
    );
    check_problem(
        "[limits]\nper_runtime = { codex = -1 }\n",
        "config.toml:2: `limits.per_runtime.codex` is -1; it must be a whole number from 1 to 100000",
    );
    check_problem(
        "[limits]\nglobal = \"many\"\n",
        "config.toml:2: `limits.global` is a text; it must be a whole number",
    );
    check_problem(
        "[agents.a]\nruntime = \"native\"\neffort = \"huge\"\n",
        "config.toml:3: `agents.a.effort` is \"huge\"; allowed: none, minimal, low",
    );
    check_problem(
        "[providers.x]\nbase_url = \"http://x\"\nwire_api = \"both\"\n",
        "config.toml:3: `providers.x.wire_api` is \"both\"; allowed: completions, responses",
    );
    check_problem(
        "[providers.x]\ntype = \"foo\"\n",
        "config.toml:2: `providers.x.type` is \"foo\"; allowed: ",
    );
    check_problem(
        "[runtimes.codex]\nmodle = \"x\"\n",
        "config.toml:2: [runtimes.codex] has no key `modle`; did you mean `model`?",
    );
    check_problem(
        "[runtimes]\ndefault = \"nobody\"\n",
        "config.toml:2: `default` of [runtimes]: there is no agent `nobody`; there are native",
    );
    check_problem(
        "[agents.a]\nruntime = \"nothing\"\n",
        "config.toml:2: [agents.a] has the runtime `nothing`; there are native",
    );
    check_problem("\n[agents.explore]\nhosts = [\"a\"]\n", "config.toml:3: `hosts` needs a named agent");
    check_problem(
        "[retry]\nfirst = 9\nlongest = 5\n",
        "config.toml:2: `first` in [retry] is longer than `longest`",
    );
    check_problem(
        "[[schedules]]\nname = \"a\"\ncron = \"0 25 * * *\"\nprompt = \"x\"\n",
        "config.toml:3: schedule `a`: the hour `25` is not valid; it must be from 0 to 23",
    );
    check_problem(
        "\n[budgets]\nper_run = 1\nper_day = -1\n",
        "config.toml:4: `per_day` in [budgets] is -1; it must be a number of US dollars above 0",
    );
    check_problem(
        "[[notifications]]\nbell = true\n[[notifications]]\non = [\"questoin\"]\nbell = true\n",
        "config.toml:4: `notifications.1.on.0` is \"questoin\"; allowed: question, failure, budget, finish",
    );
    check_problem(
        "[[notifications]]\nbell = true\n[[notifications]]\nbell = true\nquiet = { from = \"25:00\", to = \"07:00\" }\n",
        "config.toml:5: [[notifications]] number 2: `from` in `quiet` is `25:00`",
    );
    check_problem(
        "[appearance]\ntheme = \"blue\"\n",
        "config.toml:2: `appearance.theme` is \"blue\"; allowed: system, light, dark",
    );
    check_problem("a = = 1", "config.toml:1: ");
}

#[test]
fn a_setting_is_changed_and_comments_stay() {
    let machine = Machine::new("# mine\n[limits] # how much\nglobal = 3 # few\n");
    let said = machine.config(&["set", "limits.global", "5"]).expect_exit(0);
    assert!(said.stderr.contains("sessions under way keep what they began with"), "{}", said.stderr);
    assert_eq!(machine.text(), "# mine\n[limits] # how much\nglobal = 5 # few\n");
    machine.config(&["set", "agents.fast.runtime", "native"]).expect_exit(0);
    machine.config(&["set", "agents.fast.model", "small"]).expect_exit(0);
    assert_eq!(machine.config(&["get", "agents.fast.model"]).expect_exit(0).stdout, "small\n");
    machine.config(&["unset", "agents.fast"]).expect_exit(0);
    let missing = machine.config(&["get", "agents.fast.model"]).expect_exit(1);
    assert!(missing.stderr.contains("`agents.fast.model` is not set"), "{}", missing.stderr);
}

#[test]
fn a_change_that_would_make_the_file_invalid_is_not_written() {
    let machine = Machine::new("[limits]\nglobal = 3\n");
    let before = machine.text();
    for (key, value, says) in [
        ("limits.global", "0", "config.toml:2: `limits.global` is 0"),
        ("agents.x.runtime", "nobody", "has the runtime `nobody`"),
        ("limits.globl", "3", "has no key `globl`"),
        ("providers.x.api_key", "sk-1234", "would be a secret in plain text"),
    ] {
        let refused = machine.config(&["set", key, value]).expect_exit(1);
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
        assert_eq!(machine.text(), before);
    }
}

#[test]
fn secrets_are_never_shown() {
    let machine = Machine::new(
        "[providers.x]\nbase_url = \"http://127.0.0.1:9/v1\"\napi_key = \"sk-very-secret\"\napi_key_env = \"A\"\n",
    );
    let addresses = Machine::new(
        "[[notifications]]\nslack = \"https://hooks.test/sk-very-secret\"\nwebhook = \"env:HOOK\"\nbell = true\n",
    );
    let shown = addresses.config(&["get"]).expect_exit(0).stdout;
    assert!(!shown.contains("sk-very-secret") && shown.contains("env:HOOK"), "{shown}");
    for args in [
        &["get"][..],
        &["get", "providers.x", "--json"],
        &["explain", "providers.x.api_key"],
        &["get", "providers.x.api_key"],
    ] {
        let shown = machine.config(args).expect_exit(0);
        assert!(!shown.stdout.contains("sk-very-secret"), "{}", shown.stdout);
    }
}

#[test]
fn settings_are_explained_and_have_a_schema() {
    let machine = Machine::new("[limits]\nglobal = 3\n");
    let told = machine.config(&["explain", "limits.global"]).expect_exit(0).stdout;
    assert!(told.contains("a whole number from 1 to 100000") && told.contains("now: 3"), "{told}");
    let told = machine.config(&["explain", "agents"]).expect_exit(0).stdout;
    assert!(told.contains("agents.NAME.fallback_models"), "{told}");
    let schema: Value = serde_json::from_str(&machine.config(&["schema"]).expect_exit(0).stdout).unwrap();
    let valid = jsonschema::validator_for(&schema).unwrap();
    let file: Value =
        serde_json::json!({ "limits": { "global": 3 }, "agents": { "a": { "runtime": "native" } } });
    assert!(valid.is_valid(&file));
    assert!(!valid.is_valid(&serde_json::json!({ "limits": { "global": 0 } })));
    assert!(!valid.is_valid(&serde_json::json!({ "limit": {} })));
}

#[test]
fn an_edited_file_takes_effect_only_if_it_is_valid() {
    let machine = Machine::new("[limits]\nglobal = 3\n");
    let edit = |sed: &str| {
        hangar(&machine.scratch, &machine.model)
            .env("EDITOR", format!("sed -i {sed}"))
            .args(["config", "edit"])
            .finish()
    };
    edit("s/3/4/").expect_exit(0);
    assert_eq!(machine.text(), "[limits]\nglobal = 4\n");
    let refused = edit("s/4/0/").expect_exit(1);
    assert!(refused.stderr.contains("config.toml:2: `limits.global` is 0"), "{}", refused.stderr);
    assert_eq!(machine.text(), "[limits]\nglobal = 4\n");
}

#[test]
fn doctor_says_what_keeps_agents_schedules_hooks_and_notices_from_working() {
    let machine = Machine::new(
        "[agents.a]\nruntime = \"native\"\nsystem_prompt_file = \"a.md\"\n\
         [agents.b]\nruntime = \"native\"\nmcp_config = \"b.json\"\n\
         [[schedules]]\nname = \"s\"\ncron = \"@daily\"\nprompt = \"x\"\nagent = \"nobody\"\n\
         [[schedules]]\nname = \"t\"\ncron = \"@daily\"\nprompt = \"x\"\nworkspace = \"/not/there\"\n\
         [hooks.h]\nsecret_env = \"NOT_SET\"\nprompt = \"x\"\n\
         [[notifications]]\nslack = \"env:NO_ADDRESS\"\n",
    );
    machine.config(&["check"]).expect_exit(0);
    let found = hangar(&machine.scratch, &machine.model).arg("doctor").finish().expect_exit(2).stdout;
    for expected in [
        "BAD agent a: its `system_prompt_file` ",
        "BAD agent b: its `mcp_config` ",
        "BAD schedule s: there is no agent `nobody`",
        "BAD schedule t: the workspace /not/there is not a directory",
        "BAD hook h: the variable NOT_SET is not set",
        "BAD notifications: `slack`: the variable NO_ADDRESS is not set",
    ] {
        assert!(found.contains(expected), "{expected}\n{found}");
    }
}
