//! Agents on another machine, which is this one behind a real `sshd` of our own: its key, its configuration, its port.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use hangar_test_support::process::Witness;
use hangar_test_support::{Finished, Invocation, ModelServer, Scratch, Signal};
use serde_json::{Value, json};

use super::{CODEX_PONG, configure, stand_in};
use crate::HANGAR;

const SSHD: &str = "/usr/sbin/sshd";
const PATIENCE: Duration = Duration::from_secs(60);

/// A machine that can be reached by ssh.
struct Host {
    scratch: Scratch,
    sshd: Child,
    port: u16,
}

impl Host {
    fn start() -> Self {
        assert!(Path::new(SSHD).exists(), "{SSHD} is not installed; run `cargo xtask test` once");
        let scratch = Scratch::new();
        let dir = scratch.root().join("ssh");
        std::fs::create_dir(&dir).expect("a directory");
        let key = |name: &str| {
            let made = Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-f"])
                .arg(dir.join(name))
                .status();
            assert!(made.expect("ssh-keygen").success());
        };
        key("host_key");
        key("user_key");
        std::fs::copy(dir.join("user_key.pub"), dir.join("authorized_keys")).expect("a key");
        // The directory that it insists on when it is started by the superuser.
        let _ = std::fs::create_dir_all("/run/sshd");
        // The port is free when it is chosen; if somebody takes it before sshd does, another one is.
        let (sshd, port) = (0..5).find_map(|_| serve(&dir, free_port()?)).expect("sshd listens");
        Self { scratch, sshd, port }
    }

    /// `config.toml` for an agent over there.
    fn configure(&self, runtime: &str, program: &str) {
        self.configure_with(runtime, &format!("program = {}", json!(program)));
    }

    fn configure_with(&self, runtime: &str, setting: &str) {
        let ssh = self.settings();
        configure(&self.scratch, &format!("[runtimes.{runtime}]\n{setting}\nssh = \"127.0.0.1\"\n{ssh}"));
    }

    /// How the host is reached, for the table of a runtime.
    fn settings(&self) -> String {
        let dir = self.scratch.root().join("ssh");
        let options = [
            format!("IdentityFile={}", dir.join("user_key").display()),
            format!("UserKnownHostsFile={}", dir.join("known_hosts").display()),
            "IdentitiesOnly=yes".to_owned(),
        ];
        format!("ssh_port = {}\nssh_options = {}\n", self.port, json!(options))
    }

    fn run(&self, runtime: &str, workspace: &Path, prompt: &str) -> Invocation {
        let run =
            self.scratch.run(HANGAR).args(["run", "--runtime", runtime, "--output-format", "json", "-C"]);
        run.arg(workspace).args(["-p", prompt]).within(PATIENCE)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = self.sshd.kill();
        let _ = self.sshd.wait();
    }
}

fn free_port() -> Option<u16> {
    TcpListener::bind(("127.0.0.1", 0)).ok()?.local_addr().ok().map(|address| address.port())
}

fn serve(dir: &Path, port: u16) -> Option<(Child, u16)> {
    Some((serve_at(dir, "127.0.0.1", port)?, port))
}

fn serve_at(dir: &Path, address: &str, port: u16) -> Option<Child> {
    let config = format!(
        "Port {port}\nListenAddress {address}\nHostKey {0}/host_key\nAuthorizedKeysFile {0}/authorized_keys\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nPermitRootLogin yes\nPidFile none\n",
        dir.display()
    );
    let file = dir.join(format!("sshd_config.{address}"));
    std::fs::write(&file, config).ok()?;
    let log = std::fs::File::create(dir.join(format!("sshd.{address}.log"))).ok()?;
    let mut sshd = Command::new(SSHD)
        .args(["-D", "-e", "-f"])
        .arg(&file)
        .stdin(Stdio::null())
        .stderr(log)
        .spawn()
        .ok()?;
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if std::net::TcpStream::connect((address, port)).is_ok() {
            return Some(sshd);
        }
        if sshd.try_wait().is_ok_and(|ended| ended.is_some()) {
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let _ = sshd.kill();
    let _ = sshd.wait();
    None
}

fn error_types(run: &Finished) -> Vec<String> {
    let events = run.events();
    let errors = Finished::of_type(&events, "session.error");
    errors.iter().map(|event| event["data"]["errorType"].as_str().expect("a type").to_owned()).collect()
}

#[test]
fn hostile_names_and_prompts_arrive_as_they_are() {
    let host = Host::start();
    let program = stand_in(&host.scratch, "agent", &format!("cat > prompt\npwd > where\n{CODEX_PONG}"));
    host.configure("codex", &program.display().to_string());
    let workspace = host.scratch.root().join("we'ird $(touch x) `touch y` \"dir\"\nwith lines");
    std::fs::create_dir(&workspace).expect("a workspace");
    let prompt = "say 'hi' $(touch z) \"`touch z`\" \\ $HOME\nand more; exit 3 #";
    let run = host.run("codex", &workspace, prompt).finish().expect_exit(0);
    assert!(run.stdout.contains("pong"), "{}", run.stdout);
    assert_eq!(std::fs::read_to_string(workspace.join("prompt")).expect("the prompt"), prompt);
    let mut left: Vec<PathBuf> =
        std::fs::read_dir(&workspace).expect("files").map(|file| file.expect("a file").path()).collect();
    left.sort();
    assert_eq!(
        left,
        [workspace.join("prompt"), workspace.join("where")],
        "something was run that should not be"
    );
    let log = host.scratch.log(&run.session_id());
    assert!(log.contains("\"sourceType\":\"remote\""), "{log}");
}

#[test]
fn an_agent_of_copilots_kind_works_over_there() {
    let (host, model) = (Host::start(), ModelServer::start());
    host.configure("copilot", HANGAR);
    let work = host.scratch.work();
    let prompt =
        format!("TOOL:bash:{}", json!({ "command": "echo 'over there' > made", "description": "d" }));
    let run = host
        .run("copilot", &work, &prompt)
        .arg(format!("--rehearse={}", model.url()))
        .args(["--max-steps", "0"]);
    let run = run.finish().expect_exit(0);
    assert_eq!(std::fs::read_to_string(work.join("made")).expect("a file"), "over there\n");
    assert!(!Finished::of_type(&run.events(), "tool.execution_complete").is_empty());
}

#[test]
fn a_program_that_is_not_over_there_is_not_found() {
    let host = Host::start();
    host.configure("codex", "no-such-agent-program");
    let run = host.run("codex", &host.scratch.work(), "x").finish().expect_exit(1);
    assert_eq!(error_types(&run), ["agent_not_found"]);
}

#[test]
fn a_directory_that_is_not_over_there_is_named() {
    let host = Host::start();
    host.configure("codex", "true");
    let run = host.run("codex", &host.scratch.root().join("missing"), "x").finish().expect_exit(1);
    assert_eq!(error_types(&run), ["invalid_workspace_cwd"]);
    configure_acp(&host, HANGAR);
    let run = host.run("mine", &host.scratch.root().join("missing"), "x").finish().expect_exit(1);
    assert!(run.stderr.contains("directory is not there on the remote host"), "{}", run.stderr);
}

#[test]
fn a_machine_without_ssh_says_so() {
    let scratch = Scratch::new();
    configure(&scratch, "[runtimes.codex]\nssh = \"elsewhere\"\n");
    let run = scratch.run(HANGAR).args(["run", "--runtime", "codex", "--output-format", "json", "-p", "x"]);
    let run = run.env("PATH", "/nowhere").finish().expect_exit(1);
    assert_eq!(error_types(&run), ["agent_not_found"]);
    assert!(run.stdout.contains("`ssh` could not be started"), "{}", run.stdout);
}

#[test]
fn mcp_servers_of_a_file_here_are_known_over_there() {
    let host = Host::start();
    let program =
        stand_in(&host.scratch, "agent", &format!("echo \"$@\" > asked\ncat >/dev/null\n{CODEX_PONG}"));
    host.configure("codex", &program.display().to_string());
    host.scratch.file("servers.json", r#"{"mcpServers":{"far":{"url":"http://127.0.0.1:1/it's"}}}"#);
    let elsewhere = host.scratch.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a workspace");
    host.run("codex", &elsewhere, "x").args(["--mcp-config", "@servers.json"]).finish().expect_exit(0);
    let asked = std::fs::read_to_string(elsewhere.join("asked")).expect("the arguments");
    assert!(asked.contains(r#"mcp_servers.far={"url"="http://127.0.0.1:1/it's"}"#), "{asked}");
}

#[test]
fn variables_and_servers_are_on_no_command_line_over_there() {
    let host = Host::start();
    let script = format!(
        "cat >/dev/null; cat /proc/[0-9]*/cmdline | tr '\\0' ' ' > lines; echo \"$TOKEN\" > token\n{CODEX_PONG}"
    );
    let program = stand_in(&host.scratch, "agent", &script);
    let env = r#"env = { TOKEN = "hid'den-value" }"#;
    host.configure_with("codex", &format!("program = {}\n{env}", json!(program)));
    let work = host.scratch.work();
    host.run("codex", &work, "x").finish().expect_exit(0);
    let read = |name: &str| std::fs::read_to_string(work.join(name)).expect("a file");
    assert_eq!(read("token"), "hid'den-value\n");
    assert!(!read("lines").contains("den-value"), "a command line holds the variable");

    // The same for an agent that stays, and for one that takes its servers from a file.
    let acp = "while read -r line; do cat /proc/[0-9]*/cmdline | tr '\\0' ' ' > lines; echo \"$TOKEN\" > token; exit 1; done".to_owned();
    let program = stand_in(&host.scratch, "acp-agent", &acp);
    host.configure_with("mine", &format!("acp = [{}]\n{env}", json!(program)));
    host.run("mine", &work, "x").finish().expect_exit(1);
    assert_eq!(read("token"), "hid'den-value\n");
    assert!(!read("lines").contains("den-value"), "a command line holds the variable");
    let claude = "for word; do [ \"$last\" = --mcp-config ] && cat \"$word\" > servers; last=$word; done; cat /proc/[0-9]*/cmdline > lines; exit 1";
    let program = stand_in(&host.scratch, "claude-agent", claude);
    host.configure_with("claude", &format!("program = {}", json!(program)));
    let servers = r#"{"mcpServers":{"far":{"url":"http://h","headers":{"Authorization":"hid'den-value"}}}}"#;
    host.scratch.file("servers.json", servers);
    host.run("claude", &work, "x").args(["--mcp-config", "@servers.json"]).finish().expect_exit(1);
    assert_eq!(read("servers"), servers);
    assert!(!read("lines").contains("den-value"), "a command line holds the header");
}

#[test]
fn copilot_counts_its_tokens_over_there_too() {
    let (host, model) = (Host::start(), ModelServer::start());
    let program = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../e2e/agents/node_modules/@github/copilot-linux-x64/copilot"
    );
    let home = host.scratch.root().join("home");
    let setting = format!("program = {}\nenv = {{ HOME = {} }}", json!(program), json!(home));
    host.configure_with("copilot", &setting);
    let work = host.scratch.work();
    let run = |prompt: &str, more: &[&str]| {
        let run = host.run("copilot", &work, prompt).arg(format!("--rehearse={}", model.url()));
        run.args(["--max-steps", "0"]).args(more).finish().expect_exit(0)
    };
    let tokens = |run: &Finished| {
        let usage = run.result()["usage"].clone();
        ["inputTokens", "outputTokens"].map(|name| usage[name].as_u64().unwrap_or_else(|| panic!("{run:#?}")))
    };
    let first = run("SAY:one", &[]);
    let second = run("SAY:two", &[&format!("--resume={}", first.session_id())]);
    let (first, second) = (tokens(&first), tokens(&second));
    assert!(second[0] > first[0] && second[1] > first[1], "{first:?} then {second:?}");
}

/// The row of an agent in the list of all.
fn row(host: &Host, name: &str) -> Value {
    let shown =
        host.scratch.run(HANGAR).args(["runtimes", "--json"]).within(PATIENCE).finish().expect_exit(0);
    let rows: Vec<Value> = serde_json::from_str(&shown.stdout).expect("JSON");
    rows.into_iter().find(|row| row["name"] == name).expect("the agent")
}

#[test]
fn an_agent_over_there_is_looked_at_over_there_with_its_variables() {
    let mut host = Host::start();
    let script = "case \"$*\" in --version) echo \"codex-cli $THEIR_VERSION\";; *--help) echo help;; 'login status') exit 1;; esac";
    stand_in(&host.scratch, "codex", script);
    let bin = format!("{}:/usr/bin:/bin", host.scratch.root().display());
    let home = host.scratch.root().join("their-home");
    std::fs::create_dir_all(home.join(".codex")).expect("a home");
    host.configure_with(
        "codex",
        &format!("env = {{ PATH = {}, THEIR_VERSION = \"7.8.9\", HOME = {} }}", json!(bin), json!(home)),
    );
    let found = row(&host, "codex");
    assert_eq!((&found["host"], &found["version"]), (&json!("127.0.0.1"), &json!("7.8.9")), "{found}");
    assert_eq!(found["auth"], json!({ "state": "missing" }), "{found}");
    std::fs::write(home.join(".codex/auth.json"), "{}").expect("a login");
    assert_eq!(row(&host, "codex")["auth"], json!({ "state": "found", "source": "auth.json" }));
    host.configure("codex", "no-such-agent-program");
    let found = row(&host, "codex");
    assert_eq!(found["installed"], false, "{found}");
    assert_eq!(found["problems"], json!(["`no-such-agent-program` is not installed on 127.0.0.1"]));
    let doctor = host.scratch.run(HANGAR).arg("doctor").within(PATIENCE).finish();
    assert!(
        doctor.stdout.contains("agent codex: `no-such-agent-program` is not installed on 127.0.0.1"),
        "{}",
        doctor.stdout
    );
    host.sshd.kill().expect("sshd runs");
    host.sshd.wait().expect("sshd ends");
    let problems = row(&host, "codex")["problems"].to_string();
    assert!(problems.contains("127.0.0.1 cannot be reached: "), "{problems}");
}

#[test]
fn a_host_that_does_not_answer_is_a_broken_port() {
    let mut host = Host::start();
    host.configure("codex", "true");
    host.sshd.kill().expect("sshd runs");
    host.sshd.wait().expect("sshd ends");
    let run = host.run("codex", &host.scratch.work(), "x").finish().expect_exit(1);
    assert_eq!(error_types(&run), ["port_exit"]);
}

#[test]
fn an_agent_over_there_ends_when_the_link_drops() {
    let host = Host::start();
    let script = "cat >/dev/null; sleep 1000 & echo $! > child; echo $$ > agent; echo '{\"type\":\"turn.started\"}'; wait";
    let program = stand_in(&host.scratch, "agent", script);
    host.configure("codex", &program.display().to_string());
    let mut run = host.run("codex", &host.scratch.work(), "x").start();
    run.wait_for_event("assistant.turn_start");
    let witness = |name: &str| {
        let pid = std::fs::read_to_string(host.scratch.work().join(name)).expect("a process id");
        Witness::of(pid.trim().parse().expect("a process id"))
    };
    let (agent, child) = (witness("agent"), witness("child"));
    // Nobody can say goodbye: the link is simply gone.
    run.signal(Signal::KILL);
    run.finish();
    assert!(agent.is_gone_within(PATIENCE), "the agent outlived the link");
    assert!(child.is_gone_within(PATIENCE), "what the agent started outlived the link");
}

/// An agent of the Agent Client Protocol over there: ours, with a home of its own.
fn configure_acp(host: &Host, program: &str) {
    let home = host.scratch.root().join("over-there");
    host.configure_with(
        "mine",
        &format!("acp = [{}, \"--acp\"]\nenv = {{ HANGAR_HOME = {} }}", json!(program), json!(home)),
    );
}

#[test]
fn an_agent_of_the_agent_client_protocol_works_over_there_and_goes_on() {
    let (host, model) = (Host::start(), ModelServer::start());
    configure_acp(&host, HANGAR);
    let work = host.scratch.work();
    let rehearse = format!("--rehearse={}", model.url());
    let prompt = format!("TOOL:bash:{}", json!({ "command": "echo 'it is' > made", "description": "d" }));
    let first = host.run("mine", &work, &prompt).arg(&rehearse).finish().expect_exit(0);
    assert_eq!(std::fs::read_to_string(work.join("made")).expect("a file"), "it is\n");
    let id = first.session_id();
    let again = host.run("mine", &work, "SAY:again").arg(&rehearse).arg(format!("--resume={id}"));
    assert!(again.finish().expect_exit(0).stdout.contains("again"));
    assert!(host.scratch.log(&id).contains("\"sourceType\":\"remote\""));
}

#[test]
fn a_program_of_the_agent_client_protocol_that_is_not_over_there_is_named() {
    let host = Host::start();
    configure_acp(&host, "no-such-agent-program");
    let run = host.run("mine", &host.scratch.work(), "x").finish().expect_exit(1);
    assert!(run.stderr.contains("program was not found"), "{}", run.stderr);
}

#[test]
fn our_own_agent_says_how_it_is_had_over_there() {
    let host = Host::start();
    host.configure_with("native", "");
    let run = host.run("native", &host.scratch.work(), "x").finish().expect_exit(1);
    assert!(run.stderr.contains("use the runtime `copilot`"), "{}", run.stderr);
}

/// Two machines, at two addresses of this one, in the pool of the agent `builder`.
struct Pool {
    first: Host,
    second: Child,
}

/// Addresses of the machines.
const POOL: [&str; 2] = ["127.0.0.1", "127.0.0.2"];
/// Tasks of the job `all`, which work at the same time.
const TASKS: usize = 4;

impl Pool {
    fn start() -> Self {
        let first = Host::start();
        let dir = first.scratch.root().join("ssh");
        let second = serve_at(&dir, POOL[1], first.port).expect("the second sshd listens");
        // An agent that notes where it works, and works until all do. Other questions than prompts have no answer.
        let script = format!(
            "case \"$2\" in --json) ;; *) exit 0 ;; esac; cat >/dev/null; set -- $SSH_CONNECTION; echo \"$3\" > seen.tmp.$$; mv seen.tmp.$$ seen.$$\n\
             until [ \"$(ls seen.[0-9]* | wc -l)\" -ge {TASKS} ]; do sleep 0.02; done\n{CODEX_PONG}"
        );
        let program = stand_in(&first.scratch, "agent", &script);
        let ssh = first.settings();
        configure(
            &first.scratch,
            &format!(
                "[limits]\nglobal = {TASKS}\n[runtimes.codex]\nprogram = {}\n{ssh}\
                 [agents.builder]\nruntime = \"codex\"\nhosts = {}\n",
                json!(program.display().to_string()),
                json!(POOL)
            ),
        );
        let works = "{ kind: Ref, taskId: build }, ".repeat(TASKS);
        first.scratch.file(
            "jobs.yaml",
            &format!(
                "models: {{ driving: any }}\n\
                 tasks:\n  build: {{ agent: builder, prompt: build, requireUserInput: false }}\n\
                 jobs:\n  all: {{ work: {{ kind: Par, works: [{works}] }} }}\n"
            ),
        );
        Self { first, second }
    }

    fn hangar(&self, args: &[&str]) -> Invocation {
        let run = self.first.scratch.run(HANGAR).env("HANGAR_RETRY_SCALE", "0.01");
        run.args(args).within(PATIENCE)
    }

    /// Addresses at which agents have worked, sorted.
    fn seen(&self) -> Vec<String> {
        let files = std::fs::read_dir(self.first.scratch.work()).expect("files");
        let files = files.map(|file| file.expect("a file").path());
        let seen = files
            .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("seen.")));
        let mut seen: Vec<String> =
            seen.map(|path| std::fs::read_to_string(path).expect("an address").trim().to_owned()).collect();
        seen.sort();
        seen
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        let _ = self.second.kill();
        let _ = self.second.wait();
    }
}

#[test]
fn a_pool_of_hosts_shares_the_work_and_a_session_stays_where_it_is() {
    let pool = Pool::start();
    let job = pool.hangar(&["job", "run", "jobs.yaml", "all", "--output-format", "json"]).finish();
    let job = job.expect_exit(0);
    assert_eq!(pool.seen(), [POOL[0], POOL[0], POOL[1], POOL[1]]);
    // The conversation of a session is on its host.
    let lines: Vec<Value> = job.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let on_second = lines.iter().find(|line| {
        line["event"]["type"] == "hangar.agent_assigned" && line["event"]["data"]["host"] == POOL[1]
    });
    let session = on_second.expect("a session on the second host")["session"].as_str().expect("an id");
    let again = pool.hangar(&["run", "--agent", "builder", "--resume", session, "-p", "more"]);
    again.finish().expect_exit(0);
    assert_eq!(pool.seen(), [POOL[0], POOL[0], POOL[1], POOL[1], POOL[1]]);
    // The hosts are reached as the agent reaches them, by its port and its key.
    let doctor = pool.hangar(&["doctor"]).finish();
    for host in POOL {
        assert!(doctor.stdout.contains(host), "{}", doctor.stdout);
    }
    assert!(!doctor.stdout.contains("cannot be reached"), "{}", doctor.stdout);
}

#[test]
fn work_of_a_host_that_is_down_goes_to_another_one_of_its_pool() {
    let mut pool = Pool::start();
    pool.first.sshd.kill().expect("sshd runs");
    pool.first.sshd.wait().expect("sshd ends");
    pool.hangar(&["job", "run", "jobs.yaml", "all"]).finish().expect_exit(0);
    assert_eq!(pool.seen(), [POOL[1]; TASKS]);
}
