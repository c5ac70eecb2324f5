//! The sandbox of a session: what is in it besides commands, and that nothing of ours leads out of it.

use hangar_test_support::{Invocation, ModelServer, Scratch};
use serde_json::json;

use crate::{HANGAR, hangar};

const ODD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/odd.mjs");

/// A session on a machine with a directory outside.
struct Stage {
    scratch: Scratch,
    model: ModelServer,
}

impl Stage {
    fn new() -> Self {
        let scratch = Scratch::new();
        std::fs::create_dir(scratch.root().join("outside")).expect("the scratch machine works");
        Self { scratch, model: ModelServer::start() }
    }

    fn configure(&self, text: &str) {
        std::fs::create_dir_all(self.scratch.state()).expect("the scratch machine works");
        std::fs::write(self.scratch.state().join("config.toml"), text).expect("the scratch machine works");
    }

    fn run(&self, script: &str) -> Invocation {
        hangar(&self.scratch, &self.model)
            .args(["--allow-all", "--output-format", "json", "-p", script])
            .env("OUT", self.scratch.root().join("outside"))
    }

    fn is_untouched(&self) -> bool {
        std::fs::read_dir(self.scratch.root().join("outside")).expect("the scratch machine works").count()
            == 0
    }
}

fn bash(command: &str) -> String {
    format!("TOOL:bash:{}", json!({ "command": command, "description": "Try" }))
}

#[test]
fn the_servers_of_a_session_are_in_its_sandbox() {
    let stage = Stage::new();
    // Only what is below the working directory can it write, so its own notes have to be there too.
    let starts = stage.scratch.work().join("starts");
    let config = json!({ "mcpServers": { "s": { "command": "node", "args": [ODD, "fine", starts] } } });
    let write = |path: &str| format!("TOOL:s-write:{}", json!({ "path": path }));
    let outside = stage.scratch.root().join("outside/planted");
    let script = format!("{}\n{}\nSAY:done", write("made"), write(&outside.display().to_string()));
    let run = |more: &[&str]| {
        stage.run(&script).args(["--additional-mcp-config", &config.to_string()]).args(more).finish()
    };
    let confined = run(&["--sandbox"]);
    assert!(stage.scratch.work().join("made").exists(), "{confined:#?}");
    assert!(stage.is_untouched(), "{confined:#?}");
    run(&[]).expect_exit(0);
    assert!(!stage.is_untouched(), "the attempt proves nothing");
}

#[test]
fn what_the_kernel_refuses_is_told_with_its_path() {
    let stage = Stage::new();
    stage.scratch.file("a.txt", "x");
    let told = |command: &str| {
        let args = ["--output-format", "json", "-p", &bash(command)];
        let run = hangar(&stage.scratch, &stage.model).args(args).finish();
        assert!(!stage.scratch.work().join("-out").exists(), "{run:#?}");
        run.stdout
    };
    let path = stage.scratch.work().join("-out").display().to_string();
    let denied = told("uniq -- a.txt -out");
    assert!(
        denied.contains(&format!("kept from changing {path}")) && denied.contains("\"denied\""),
        "{denied}"
    );
    let survived = told("uniq -- a.txt -out; true");
    assert!(survived.contains(&format!("kept from changing {path}")), "{survived}");
    assert!(survived.contains("exited with exit code 0"), "{survived}");
}

#[test]
fn a_setting_confines_the_servers_of_a_project_alone() {
    let stage = Stage::new();
    let starts = stage.scratch.work().join("starts");
    let server = json!({ "mcpServers": { "s": { "command": "node", "args": [ODD, "fine", starts] } } });
    stage.scratch.file(".mcp.json", &server.to_string());
    let write = |path: &str| format!("TOOL:s-write:{}", json!({ "path": path }));
    let outside = stage.scratch.root().join("outside/planted");
    let script = format!("{}\n{}\nSAY:done", write("made"), write(&outside.display().to_string()));
    let run = || stage.run(&script).env("GITHUB_COPILOT_PROMPT_MODE_WORKSPACE_MCP", "true").finish();
    stage.configure("[sandbox]\nenabled = false\nsandboxProjectMcpServers = true\n");
    let confined = run();
    assert!(stage.scratch.work().join("made").exists(), "{confined:#?}");
    assert!(stage.is_untouched(), "{confined:#?}");
    stage.configure("");
    run().expect_exit(0);
    assert!(!stage.is_untouched(), "the attempt proves nothing");
}

#[test]
fn a_setting_switches_it_on_and_the_network_is_off_unless_allowed() {
    let outside = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    outside.set_nonblocking(true).expect("a port");
    let port = outside.local_addr().expect("a port").port();
    let command = format!("echo x > $OUT/planted; echo x > /dev/tcp/127.0.0.1/{port}");
    let reached = |config: &str, flags: &[&str]| {
        let stage = Stage::new();
        stage.configure(config);
        let run = stage.run(&bash(&command)).args(flags).finish().expect_exit(0);
        assert_eq!(stage.is_untouched(), !flags.contains(&"--no-sandbox"), "{run:#?}");
        outside.accept().is_ok()
    };
    let on = "[sandbox]\nenabled = true\n";
    let open = "[sandbox]\nenabled = true\n[sandbox.userPolicy.network]\nallowOutbound = true\n";
    assert!(!reached(on, &[]));
    assert!(!reached("", &["--sandbox"]));
    assert!(reached(on, &["--sandbox-network"]));
    assert!(reached(open, &[]));
    assert!(reached(on, &["--no-sandbox"]));
}

#[test]
fn a_command_inherits_its_three_streams_and_nothing_else() {
    let stage = Stage::new();
    // The parent process may have left descriptors open.
    let kept = stage.scratch.root().join("outside/kept");
    std::fs::write(&kept, "kept").expect("the scratch machine works");
    let script = bash("echo x >&7; truncate -s 0 /proc/self/fd/7");
    let run = |sandbox: &str| {
        let shell =
            stage.scratch.run("/bin/sh").args(["-c", "exec 7>> \"$OUT/kept\"; exec \"$@\"", "sh", HANGAR]);
        shell
            .provider(stage.model.url())
            .env("OUT", stage.scratch.root().join("outside"))
            .args([sandbox, "--allow-all", "--output-format", "json", "-p", &script])
            .finish()
            .expect_exit(0)
    };
    let confined = run("--sandbox");
    assert_eq!(std::fs::read_to_string(&kept).expect("it is there"), "kept", "{confined:#?}");
    assert!(confined.stdout.contains("Bad file descriptor"), "{confined:#?}");
    run("--no-sandbox");
    assert_ne!(std::fs::read_to_string(&kept).expect("it is there"), "kept", "the attempt proves nothing");
}

/// Hangar asks Git whether anything has changed, and Git runs what the repository's settings say.
#[test]
fn what_a_command_leaves_in_the_settings_of_git_is_not_run_outside_by_us() {
    let plants = [
        "git config core.fsmonitor 'echo x > $OUT/planted; false'",
        "git config filter.c.clean 'echo x > $OUT/planted; cat'; echo '* filter=c' > .git/info/attributes; touch kept",
    ];
    for plant in plants {
        let stage = Stage::new();
        stage.configure(
            "[budget]\nturns = 4\n[[just_in_time]]\nat = 50\nof = \"turns\"\nunchanged = true\ntext = \"Nothing has changed.\"\n",
        );
        let made = stage
            .scratch
            .run("/bin/sh")
            .args(["-c", "git init -q . && echo x > kept && git add . && git -c user.name=n -c user.email=e commit -qm m"])
            .finish();
        made.expect_exit(0);
        let script = format!("{}\n{}\n{}\nSAY:done", bash(plant), bash("true"), bash("true"));
        let run = stage.run(&script).arg("--sandbox").finish().expect_exit(0);
        let told = stage
            .model
            .requests()
            .iter()
            .any(|request| request.body.to_string().contains("Nothing has changed."));
        assert!(stage.is_untouched(), "{plant}: {run:#?}");
        assert!(told, "Git was not asked after: {plant}");
    }
}
