//! The environment that programs started by Hangar see, and the parts of Hangar that others can see.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use hangar_test_support::{Invocation, ModelServer, Scratch};
use serde_json::json;

use crate::{HANGAR, hangar};

/// Variables with credentials, all of which Hangar has. The value names the variable.
const CREDENTIALS: [&str; 11] = [
    "COPILOT_CONNECTION_TOKEN",
    "COPILOT_PROVIDER_API_KEY",
    "COPILOT_GITHUB_TOKEN",
    "GITHUB_TOKEN",
    "GH_TOKEN",
    "ANTHROPIC_API_KEY",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "CONFIGURED_KEY",
    "SSH_AUTH_SOCK",
];

struct Stage {
    scratch: Scratch,
    model: ModelServer,
}

impl Stage {
    fn new() -> Self {
        Self { scratch: Scratch::new(), model: ModelServer::start() }
    }

    fn configure(&self, more: &str) {
        std::fs::create_dir_all(self.scratch.state()).expect("a home");
        let own = "[providers.own]\ntype = \"openai\"\nbase_url = \"http://127.0.0.1:1\"\napi_key_env = \"CONFIGURED_KEY\"\n";
        std::fs::write(self.scratch.state().join("config.toml"), format!("{more}\n{own}")).expect("a file");
    }

    /// A program that writes down its environment, and then runs a script.
    fn program(&self, name: &str, then: &str) -> PathBuf {
        let dump = self.dump().display().to_string();
        let text = self.scratch.file("program.txt", &format!("#!/bin/sh\nenv >> {dump}\n{then}\n"));
        let bin = self.scratch.root().join("bin");
        std::fs::create_dir_all(&bin).expect("a directory");
        let program = bin.join(name);
        // By another process: a file that this one has open for writing cannot be run.
        let installed =
            std::process::Command::new("install").args(["-m", "755"]).args([&text, &program]).status();
        assert!(installed.expect("install").success());
        program
    }

    fn dump(&self) -> PathBuf {
        self.scratch.root().join("environment")
    }

    fn hangar(&self) -> Invocation {
        let path = format!(
            "{}:{}",
            self.scratch.root().join("bin").display(),
            std::env::var("PATH").expect("a path")
        );
        CREDENTIALS
            .iter()
            .fold(hangar(&self.scratch, &self.model), |run, name| run.env(name, format!("value-of-{name}")))
            .env("PATH", path)
    }

    /// The credentials that were written down.
    #[track_caller]
    fn check(&self, who: &str, expected: &[&str]) {
        let text = std::fs::read_to_string(self.dump()).unwrap_or_else(|_| panic!("{who} did not run"));
        let seen: BTreeSet<&str> = CREDENTIALS
            .into_iter()
            .filter(|name| text.contains(&format!("value-of-{name}")))
            .filter(|name| *name != "SSH_AUTH_SOCK")
            .collect();
        assert_eq!(seen, expected.iter().copied().collect(), "{who}");
    }
}

#[test]
fn agents_see_their_own_credentials() {
    let github = ["COPILOT_PROVIDER_API_KEY", "COPILOT_GITHUB_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"];
    let of_models = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY"];
    for (agent, expected) in [
        ("copilot", github.to_vec()),
        ("claude", vec!["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"]),
        ("codex", [&of_models[..], &["CODEX_API_KEY"]].concat()),
        ("opencode", of_models.to_vec()),
        ("other", [&github[..], &of_models, &["CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY"]].concat()),
    ] {
        let stage = Stage::new();
        stage.program(agent, "exit 3");
        stage.configure("[runtimes.other]\nacp = [\"other\"]\n");
        stage.hangar().args(["run", "--runtime", agent, "-p", "x"]).finish();
        stage.check(agent, &expected);
    }
}

#[test]
fn commands_and_hooks_and_servers_see_what_is_for_commands() {
    let expected = ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GH_TOKEN"];
    let stage = Stage::new();
    stage.configure("");
    let program = stage.program("dumps", "");
    let bash = format!("TOOL:bash:{}", json!({"command": "dumps", "description": "x"}));
    stage.hangar().args(["--allow-all", "-p", &bash]).finish().expect_exit(0);
    stage.check("a shell command", &expected);

    let stage = Stage::new();
    stage.configure("");
    stage.program("dumps", "");
    let hooks = stage.scratch.state().join("hooks");
    std::fs::create_dir_all(&hooks).expect("a directory");
    let hook = json!({"version": 1, "hooks": {"sessionStart": [{"type": "command", "bash": "dumps"}]}});
    std::fs::write(hooks.join("h.json"), hook.to_string()).expect("a file");
    stage.hangar().args(["-p", "SAY:x"]).finish().expect_exit(0);
    stage.check("a hook", &expected);

    let stage = Stage::new();
    stage.configure("");
    stage.program("dumps", "");
    let servers = json!({"mcpServers": {"s": {"command": "dumps", "args": []}}}).to_string();
    stage.hangar().args(["--additional-mcp-config", &servers, "-p", "SAY:x"]).finish();
    stage.check("an MCP server", &expected);
    assert!(program.is_absolute());
}

/// A repository with a job that works in a worktree and checks it with a command.
fn job(stage: &Stage, check: &str) {
    let entry = format!(
        "models: {{ driving: mock-model }}\n\
         tasks:\n  say:\n    model: {{ category: driving }}\n    prompt: \"SAY:hi\"\n    requireUserInput: false\n    \
         criteria: {{ commands: [{{ run: \"{check}\" }}], failureAction: {{ retryTimes: 0 }} }}\n\
         jobs:\n  j: {{ work: {{ kind: Seq, worktree: true, works: [{{ kind: Ref, taskId: say }}] }} }}\n"
    );
    stage.scratch.file("jobs.yaml", &entry);
    sh(
        &stage.scratch.work(),
        "git init -q -b main . && git add . && git -c user.name=t -c user.email=t@x commit -q -m one",
    );
}

fn sh(directory: &Path, script: &str) {
    let status = std::process::Command::new("sh").args(["-ec", script]).current_dir(directory).status();
    assert!(status.expect("sh").success(), "{script}");
}

#[test]
fn checks_of_a_job_see_what_is_for_commands_and_git_sees_nothing() {
    let stage = Stage::new();
    stage.configure("");
    job(&stage, "dumps");
    stage.program("dumps", "");
    stage.hangar().args(["job", "run", "jobs.yaml", "j", "--runtime", "native"]).finish().expect_exit(0);
    stage.check("a check", &["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GH_TOKEN"]);

    let stage = Stage::new();
    stage.configure("");
    job(&stage, "true");
    stage.program("git", "exit 1");
    stage.hangar().args(["job", "run", "jobs.yaml", "j", "--runtime", "native"]).finish();
    stage.check("git", &[]);
}

#[test]
fn a_worktree_of_a_hostile_repository_runs_nothing_of_it() {
    for trap in [
        "git config filter.evil.smudge $PROGRAM; echo '*.yaml filter=evil' > .gitattributes",
        "git config filter.evil.process $PROGRAM; echo '*.yaml filter=evil' > .gitattributes",
        // It holds in the new worktree and on its branch alone.
        "git config -f .git/more filter.evil.smudge $PROGRAM; git config includeIf.onbranch:hangar/**.path more; \
         echo '*.yaml filter=evil' > .gitattributes",
        "cp $PROGRAM .git/hooks/post-checkout",
        "cp $PROGRAM .git/hooks/reference-transaction",
        "git config core.fsmonitor $PROGRAM",
    ] {
        let stage = Stage::new();
        stage.configure("");
        job(&stage, "true");
        let canary = stage.scratch.root().join("canary");
        let program = stage.program("evil", &format!("touch {}; cat", canary.display()));
        let trap = trap.replace("$PROGRAM", &program.display().to_string());
        sh(&stage.scratch.work(), &trap);
        // Committed by a git that runs nothing either.
        let harmless = "git -c core.hooksPath=/dev/null -c filter.evil.process= -c core.fsmonitor=false";
        sh(
            &stage.scratch.work(),
            &format!("{harmless} add . && {harmless} -c user.name=t -c user.email=t@x commit -q -m two"),
        );
        let _ = std::fs::remove_file(&canary);
        stage.hangar().args(["job", "run", "jobs.yaml", "j", "--runtime", "native"]).finish().expect_exit(0);
        assert!(!canary.exists(), "{trap}");
    }
}

/// Starts Hangar and `sleep` with a key in their environment, and shows what a third process reads of each.
#[cfg(target_os = "linux")]
const LOOK: &str = r#"
SOME_KEY=value HOME=$1 "$1/hangar" model serve >"$1/out" & hangar=$!
until [ -s "$1/out" ]; do kill -0 $hangar || exit 9; done
cat /proc/$hangar/environ
SOME_KEY=value sleep 1000 & sleep=$!
until grep -q SOME_KEY /proc/$sleep/environ; do kill -0 $sleep || exit 8; done
echo the other is read
kill $hangar $sleep
"#;

#[cfg(target_os = "linux")]
#[test]
fn another_process_of_the_same_user_reads_nothing_of_hangar() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    // A directory that everybody may use: the superuser reads everything, so others have to look.
    let place = tempfile::tempdir().expect("a directory");
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o777)).expect("a mode");
    let installed =
        std::process::Command::new("install").args(["-m", "755", HANGAR]).arg(place.path()).status();
    assert!(installed.expect("install").success());
    let root = std::fs::metadata("/proc/self").expect("a process").uid() == 0;
    let as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];
    let words: Vec<&str> = as_nobody.into_iter().filter(|_| root).chain(["sh", "-c", LOOK, "sh"]).collect();
    let looked = std::process::Command::new(words[0]).args(&words[1..]).arg(place.path()).output();
    let looked = looked.expect("a shell");
    assert_eq!(String::from_utf8_lossy(&looked.stdout), "the other is read\n", "{looked:?}");
}
