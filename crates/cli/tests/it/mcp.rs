//! MCP servers of a run: real ones from npm, and small ones that hang, flood and die.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use hangar_test_support::process::Witness;
use hangar_test_support::{Finished, ModelServer, Scratch, Signal};
use serde_json::{Value, json};

use crate::hangar;

const ODD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/odd.mjs");
const PACKAGES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/node_modules/@modelcontextprotocol");

/// A machine with a model and one MCP server called `s`.
struct Stage {
    scratch: Scratch,
    model: ModelServer,
    config: Value,
}

impl Stage {
    fn new(config: impl FnOnce(&Scratch) -> Value) -> Self {
        let scratch = Scratch::new();
        let config = config(&scratch);
        Self { scratch, model: ModelServer::start(), config }
    }

    /// A small server that behaves as told. Its starts are counted in `starts`.
    fn odd(how: &str) -> Self {
        Self::new(|scratch| odd(how, scratch))
    }

    fn args(&self, prompt: &str, args: &[&str]) -> hangar_test_support::Invocation {
        let config = json!({ "mcpServers": { "s": self.config } }).to_string();
        hangar(&self.scratch, &self.model)
            .args(["-p", prompt, "--output-format", "json", "--additional-mcp-config", &config])
            .args(args)
    }

    fn run(&self, prompt: &str) -> Finished {
        self.args(prompt, &["--allow-all-tools"]).finish().expect_exit(0)
    }

    /// The last message to the model.
    fn told(&self) -> String {
        let request = self.model.last_request();
        let messages = request["messages"].as_array().cloned().unwrap_or_default();
        messages.last().map(|message| message["content"].to_string()).unwrap_or_default()
    }

    fn tools(&self) -> Vec<String> {
        let request = self.model.last_request();
        let tools = request["tools"].as_array().cloned().unwrap_or_default();
        let names = tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap_or_default().to_owned());
        names.filter(|name| name.starts_with("s-")).collect()
    }

    /// How often the server was asked for its tools.
    fn lists(&self) -> usize {
        std::fs::read_to_string(self.scratch.root().join("starts.lists")).unwrap_or_default().lines().count()
    }

    fn starts(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(self.scratch.root().join("starts")).unwrap_or_default();
        text.lines().map(|line| line.parse().expect("a process id")).collect()
    }
}

fn odd(how: &str, scratch: &Scratch) -> Value {
    json!({ "command": "node", "args": [ODD, how, scratch.root().join("starts")] })
}

/// Calls tools of the server `s` and checks what the model is told of the last call.
#[track_caller]
fn check(stage: &Stage, prompt: &str, told: &str) -> Vec<Value> {
    let finished = stage.run(prompt);
    let said = stage.told();
    assert!(said.contains(told), "the model was told {said}, not {told}");
    finished.events()
}

fn statuses(events: &[Value]) -> Vec<String> {
    let changes = Finished::of_type(events, "session.mcp_server_status_changed");
    changes.iter().map(|event| event["data"]["status"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn a_call_is_named_reports_progress_and_is_answered() {
    let events = check(&Stage::odd("fine"), "TOOL:s-echo:{\"text\": \"hi there\"}", "hi there");
    assert_eq!(statuses(&events), ["pending", "connected"]);
    let start = &Finished::of_type(&events, "tool.execution_start")[0]["data"];
    assert_eq!((&start["mcpServerName"], &start["mcpToolName"]), (&json!("s"), &json!("echo")));
    let progress = &Finished::of_type(&events, "tool.execution_progress")[0]["data"];
    assert_eq!(progress["progressMessage"], "1.0/2.0 (50%): half");
}

#[test]
fn instructions_of_a_server_reach_the_model() {
    let stage = Stage::odd("fine");
    stage.run("SAY:hi");
    let system = stage.model.last_request()["messages"][0]["content"].to_string();
    assert!(system.contains("<mcp_server name=\\\"s\\\">\\nEcho before anything else."), "{system}");
}

#[test]
fn tools_that_are_too_many_are_searched_for() {
    let stage = Stage::odd("fine");
    let prompt = "TOOL:tool_search_tool:{\"query\": \"select:s-echo\"}\nTOOL:s-echo:{\"text\": \"hi there\"}";
    let run =
        stage.args(prompt, &["--allow-all-tools"]).env("HANGAR_MCP_TOOL_TOKENS", "1").finish().expect_exit(0);
    assert!(stage.told().contains("hi there"), "{}", stage.told());
    assert_eq!(stage.tools(), ["s-echo"]);
    let events = run.events();
    let found = &Finished::of_type(&events, "tool_search.activated")[0]["data"];
    assert_eq!(found["toolNames"], json!(["s-echo"]));
    let first = stage.model.requests()[0].body.clone();
    let told = first["messages"][1]["content"].to_string();
    assert!(told.contains("Tools that tool_search_tool finds:") && told.contains("s-echo"), "{told}");
    let shown = first["tools"].to_string();
    assert!(shown.contains("tool_search_tool") && !shown.contains("s-echo"), "{shown}");
}

#[test]
fn an_image_is_shown_to_the_model() {
    let events =
        check(&Stage::odd("fine"), "TOOL:s-picture:{}", "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg");
    let result = &Finished::of_type(&events, "tool.execution_complete")[0]["data"]["result"];
    assert_eq!(result["contents"][0]["type"], "image");
}

#[test]
fn a_large_answer_goes_to_a_file() {
    check(&Stage::odd("fine"), "TOOL:s-large:{\"bytes\": 100000}", "Output too large to read at once");
}

#[test]
fn what_is_no_message_on_standard_output_does_not_matter() {
    check(&Stage::odd("banner"), "TOOL:s-echo:{\"text\": \"hi\"}", "hi");
}

#[test]
fn servers_are_configured_by_a_file_that_a_flag_names() {
    let stage = Stage::odd("fine");
    let config = json!({ "mcpServers": { "s": stage.config } }).to_string();
    stage.scratch.file("servers.json", &config);
    let run = |flag: &str| {
        hangar(&stage.scratch, &stage.model).args(["-p", "SAY:ok", "--additional-mcp-config", flag]).finish()
    };
    run("@servers.json").expect_exit(0);
    assert!(stage.tools().contains(&"s-echo".to_owned()), "{:?}", stage.tools());
    let missing = run("@missing.json").expect_exit(1);
    assert!(missing.stderr.contains("cannot read --additional-mcp-config"), "{}", missing.stderr);
}

#[test]
fn servers_start_side_by_side() {
    let stage = Stage::odd("slow");
    let config = json!({ "mcpServers": { "s": stage.config, "t": stage.config } }).to_string();
    let args = ["-p", "SAY:ok", "--additional-mcp-config", &config];
    let run = hangar(&stage.scratch, &stage.model).args(args).start();
    // Neither answers before both are there.
    let begun = std::time::Instant::now();
    while stage.starts().len() < 2 && begun.elapsed() < Duration::from_secs(4) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::fs::write(stage.scratch.root().join("starts.go"), "").expect("the scratch machine works");
    run.finish().expect_exit(0);
    assert_eq!(stage.starts().len(), 2, "one waited for the other");
}

#[test]
fn a_server_that_never_answers_costs_only_its_tools() {
    let stage = Stage::odd("hang");
    let events = stage.run("SAY:done").events();
    assert_eq!(statuses(&events), ["pending"]);
    assert!(stage.tools().is_empty());
    let server = PathBuf::from(format!("/proc/{}", stage.starts()[0]));
    assert!(!server.exists(), "the server lives on");
}

#[test]
fn a_server_that_talks_all_the_time_can_still_be_used() {
    let stage = Stage::odd("flood");
    check(&stage, "TOOL:s-echo:{\"text\": \"through the noise\"}", "through the noise");
    assert!(stage.lists() < 60, "it was asked for its tools {} times", stage.lists());
}

#[test]
fn a_list_of_tools_without_an_end_is_cut() {
    let stage = Stage::odd("endless");
    check(&stage, "TOOL:s-echo:{\"text\": \"after all\"}", "after all");
    assert_eq!(stage.lists(), 64);
}

#[test]
fn a_server_that_dies_in_a_call_is_started_again_for_the_next() {
    let stage = Stage::odd("fine");
    let events = check(&stage, "TOOL:s-die:{}\nTOOL:s-die:{}", "alive again");
    assert_eq!(stage.starts().len(), 2);
    let first = &Finished::of_type(&events, "tool.execution_complete")[0]["data"];
    let message = first["error"]["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("MCP server 's': the connection was lost"), "{message}");
}

/// A server that died and cannot be started again: what a call after the failed attempt comes to.
#[track_caller]
fn check_restart(scale: &str, starts: usize, told: &str) {
    let stage = Stage::odd("mortal");
    let prompt = "TOOL:s-die:{}\nTOOL:s-echo:{\"text\": \"x\"}\nTOOL:s-echo:{\"text\": \"y\"}";
    let run = stage.args(prompt, &["--allow-all-tools"]).env("HANGAR_RETRY_SCALE", scale);
    run.finish().expect_exit(0);
    assert_eq!(stage.starts().len(), starts, "{}", stage.told());
    assert!(stage.told().contains(told), "{}", stage.told());
}

#[test]
fn a_server_that_cannot_be_started_again_is_left_alone_for_a_while_and_then_tried() {
    // Once at the beginning, once for the second call; the third is not worth a try yet.
    check_restart("1000", 2, "no will to live (it can be tried again in 1000 s)");
    check_restart("0", 3, "no will to live");
}

#[test]
fn servers_that_hang_do_not_keep_others_from_starting() {
    let stage = Stage::odd("fine");
    let hanging = odd("hang", &stage.scratch);
    let mut servers: serde_json::Map<String, Value> =
        (0..9).map(|n| (format!("a{n}"), hanging.clone())).collect();
    // By name the last, so that all others are before it.
    servers.insert("s".to_owned(), stage.config.clone());
    let config = json!({ "mcpServers": servers }).to_string();
    let args = [
        "-p",
        "TOOL:s-echo:{\"text\": \"made it\"}",
        "--allow-all-tools",
        "--additional-mcp-config",
        &config,
    ];
    hangar(&stage.scratch, &stage.model).args(args).finish().expect_exit(0);
    assert!(stage.told().contains("made it"), "{}", stage.told());
}

#[test]
fn a_server_that_dies_with_its_news_is_not_started_for_them() {
    let stage = Stage::odd("fickle");
    // Nothing is called, and a second is what passes between two looks at the tools of a server.
    stage.run("TOOL:bash:{\"command\": \"sleep 2.5\", \"description\": \"wait\"}\nSAY:ok");
    assert_eq!(stage.starts().len(), 1, "it was started again for nobody");
}

#[test]
fn a_message_that_is_too_large_ends_the_connection_and_is_said() {
    let told = "MCP server 's': the connection was lost: it sent a message of more than 16 MB";
    check(&Stage::odd("fine"), "TOOL:s-huge:{}", told);
}

#[test]
fn a_server_asks_the_model_so_often_at_once_and_no_more() {
    let events = Stage::odd("fine").run("TOOL:s-storm:{\"times\": 50}\nSAY:done").events();
    let complete = &Finished::of_type(&events, "tool.execution_complete")[0]["data"];
    let told = "refused 34: 16 questions of this server wait for an answer already";
    assert_eq!(complete["result"]["content"], told, "{complete}");
}

/// A server that sends every request on to another, which writes down what it is sent.
#[test]
fn a_server_cannot_send_its_headers_to_another() {
    let outside = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    outside.set_nonblocking(true).expect("a port");
    let elsewhere = outside.local_addr().expect("a port");
    let server = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/mcp", server.local_addr().expect("a port"));
    std::thread::spawn(move || {
        for mut stream in server.incoming().map_while(Result::ok) {
            let _ = stream.read(&mut [0; 4096]);
            let answer = format!(
                "HTTP/1.1 307 Temporary Redirect\r\nlocation: http://{elsewhere}/mcp\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
            );
            let _ = std::io::Write::write_all(&mut stream, answer.as_bytes());
        }
    });
    let stage = Stage::new(|_| json!({ "type": "http", "url": url, "headers": { "X-Api-Key": "hunter2" } }));
    let events = stage.run("SAY:ok").events();
    let last = Finished::of_type(&events, "session.mcp_server_status_changed").pop().expect("a status");
    assert_eq!(last["data"]["status"], "failed");
    assert!(outside.accept().is_err(), "the other host was asked");
}

#[test]
fn a_call_that_takes_too_long_is_given_up() {
    let stage = Stage::new(|scratch| {
        let mut config = odd("fine", scratch);
        config["timeout"] = json!(300);
        config
    });
    let events = check(&stage, "TOOL:s-sleep:{}", "no answer within 0.3 s");
    let complete = &Finished::of_type(&events, "tool.execution_complete")[0]["data"];
    assert_eq!(complete["error"]["code"], "timeout");
}

#[test]
fn new_tools_of_a_server_are_offered_in_the_same_run() {
    let stage = Stage::odd("fine");
    stage.run("TOOL:s-grow:{}\nTOOL:bash:{\"command\": \"sleep 1\", \"description\": \"wait\"}\nSAY:ok");
    assert!(stage.tools().contains(&"s-extra".to_owned()), "{:?}", stage.tools());
}

#[test]
fn a_server_may_ask_the_model_when_its_tools_may_run() {
    check(&Stage::odd("fine"), "TOOL:s-sample:{}", "sampled words");
}

#[test]
fn a_form_that_nobody_can_see_is_declined() {
    check(&Stage::odd("fine"), "TOOL:s-ask:{}", "decline");
}

#[test]
fn secrets_do_not_reach_a_server() {
    let stage = Stage::odd("fine");
    let prompt = "TOOL:s-env:{\"name\": \"COPILOT_PROVIDER_API_KEY\"}\nTOOL:s-env:{\"name\": \"GITHUB_TOKEN\"}\nTOOL:s-env:{\"name\": \"MINE\"}\nSAY:ok";
    let run = stage
        .args(prompt, &["--allow-all-tools", "--secret-env-vars=MINE"])
        .env("MINE", "hunter2hunter2")
        .env("GITHUB_TOKEN", "hunter3hunter3");
    let events = run.finish().expect_exit(0).events();
    for complete in Finished::of_type(&events, "tool.execution_complete") {
        assert_eq!(complete["data"]["result"]["content"], "unset");
    }
}

#[test]
fn a_server_that_was_asked_for_and_makes_no_sense_is_an_error() {
    let stage = Stage::new(|_| json!({ "type": "weird", "command": "x" }));
    let run = stage.args("SAY:ok", &[]).finish().expect_exit(1);
    assert!(run.stderr.contains("MCP server `s`: `weird` is not a type of server"), "{}", run.stderr);
}

#[test]
fn variables_of_the_configuration_are_expanded() {
    let stage = Stage::new(|scratch| {
        let mut config = odd("fine", scratch);
        config["env"] = json!({ "GIVEN": "${HOME}/x ${NOT_THERE:-else}" });
        config
    });
    let told = format!("{}/x else", stage.scratch.home().display());
    check(&stage, "TOOL:s-env:{\"name\": \"GIVEN\"}", &told);
}

#[test]
fn tools_are_remembered_and_an_unused_server_is_not_started() {
    let stage = Stage::odd("fine");
    stage.run("SAY:one");
    let offered = stage.tools();
    let events = stage.run("SAY:two").events();
    assert_eq!(stage.tools(), offered);
    assert!(offered.contains(&"s-echo".to_owned()), "{offered:?}");
    assert_eq!(stage.starts().len(), 1, "it was started again");
    assert_eq!(
        Finished::of_type(&events, "session.mcp_servers_loaded")[0]["data"]["servers"][0]["status"],
        "pending"
    );
    check(&stage, "TOOL:s-echo:{\"text\": \"now\"}", "now");
    assert_eq!(stage.starts().len(), 2);
}

#[test]
fn only_wanted_tools_are_offered() {
    let stage = Stage::new(|scratch| {
        let mut config = odd("fine", scratch);
        config["tools"] = json!(["echo", "env"]);
        config
    });
    stage.args("SAY:ok", &["--excluded-tools", "mcp:s-env"]).finish().expect_exit(0);
    assert_eq!(stage.tools(), ["s-echo"]);
}

#[test]
fn a_server_can_be_switched_off() {
    let stage = Stage::odd("fine");
    let events = stage.args("SAY:ok", &["--disable-mcp-server", "s"]).finish().expect_exit(0).events();
    assert_eq!(
        Finished::of_type(&events, "session.mcp_servers_loaded")[0]["data"]["servers"][0]["status"],
        "disabled"
    );
    assert!(stage.starts().is_empty() && stage.tools().is_empty());
}

#[test]
fn a_server_is_switched_off_by_its_own_configuration_unless_it_is_asked_for() {
    let off = || {
        Stage::new(|scratch| {
            let mut config = odd("fine", scratch);
            config["disabled"] = json!(true);
            config
        })
    };
    let stage = off();
    stage.args("SAY:ok", &[]).finish().expect_exit(0);
    assert!(stage.starts().is_empty() && stage.tools().is_empty());
    let stage = off();
    stage.args("SAY:ok", &["--enable-mcp-server", "s"]).finish().expect_exit(0);
    assert!(!stage.tools().is_empty());
}

#[test]
fn a_server_that_cannot_be_reached_is_named_by_its_address_and_not_by_parts_of_ours() {
    let stage = Stage::new(|_| json!({ "type": "http", "url": "http://127.0.0.1:9/mcp" }));
    let events = stage.args("SAY:ok", &[]).finish().expect_exit(0).events();
    let changes = Finished::of_type(&events, "session.mcp_server_status_changed");
    let error = changes.iter().find_map(|event| event["data"]["error"].as_str()).expect("a reason");
    assert!(error.contains("127.0.0.1:9") && !error.contains("rmcp"), "{error}");
}

#[test]
fn hooks_about_permissions_are_told_a_tool_with_its_server() {
    let stage = Stage::odd("fine");
    let hooks = stage.scratch.state().join("hooks");
    std::fs::create_dir_all(&hooks).expect("a folder for hooks");
    let note = json!({ "hooks": { "permissionRequest": [{ "bash": "cat > told", "matcher": "s/echo" }] } });
    std::fs::write(hooks.join("h.json"), note.to_string()).expect("hooks");
    stage.run("TOOL:s-echo:{\"text\": \"hi\"}\nSAY:ok");
    let told = std::fs::read_to_string(stage.scratch.work().join("told")).expect("the hook was asked");
    assert!(told.contains("\"toolName\":\"s/echo\""), "{told}");
}

/// Runs one call of `echo` under rules and says how it ended.
#[track_caller]
fn check_rules(rules: &[&str], ended: &str) {
    let stage = Stage::odd("fine");
    let events = stage.args("TOOL:s-echo:{\"text\": \"x\"}", rules).finish().expect_exit(0).events();
    let complete = &Finished::of_type(&events, "tool.execution_complete")[0]["data"];
    let code = complete["error"]["code"].as_str().unwrap_or("success");
    assert_eq!(code, ended, "{complete}");
}

#[test]
fn calls_need_a_permission_by_server_or_by_tool() {
    check_rules(&[], "denied");
    check_rules(&["--allow-tool", "s"], "success");
    check_rules(&["--allow-tool", "s(echo)"], "success");
    check_rules(&["--allow-tool", "s(other)"], "denied");
    check_rules(&["--allow-all-tools", "--deny-tool", "s(echo)"], "denied");
}

#[test]
fn a_projects_servers_start_only_where_it_is_trusted() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let config = json!({ "mcpServers": { "s": odd("fine", &scratch) } });
    scratch.file(".mcp.json", &config.to_string());
    let started = |args: &[&str]| {
        hangar(&scratch, &model).args(["-p", "SAY:ok"]).args(args).finish().expect_exit(0);
        std::fs::remove_file(scratch.root().join("starts")).is_ok()
    };
    assert!(!started(&[]), "without a word of trust");
    assert!(started(&["--trust-folder"]), "trusted for this run");
}

#[test]
fn a_users_servers_need_no_trust() {
    let stage = Stage::odd("fine");
    std::fs::create_dir_all(stage.scratch.state()).expect("a home");
    let config = json!({ "mcpServers": { "s": stage.config } }).to_string();
    std::fs::write(stage.scratch.state().join("mcp-config.json"), config).expect("a configuration");
    hangar(&stage.scratch, &stage.model).args(["-p", "SAY:ok"]).finish().expect_exit(0);
    assert!(stage.tools().contains(&"s-echo".to_owned()));
}

#[test]
fn a_server_ends_with_a_killed_run() {
    let stage = Stage::odd("fine");
    let mut run = stage.args("TOOL:s-sleep:{}", &["--allow-all-tools"]).start();
    run.wait_for_event("tool.execution_start");
    run.signal(Signal::KILL);
    let _ = run.finish();
    let server = Witness::of(stage.starts()[0]);
    assert!(server.is_gone_within(Duration::from_secs(30)), "the server of the killed run lives on");
}

#[test]
fn files_are_read_through_the_filesystem_server() {
    let stage = Stage::new(|scratch| {
        let program = format!("{PACKAGES}/server-filesystem/dist/index.js");
        json!({ "command": "node", "args": [program, scratch.work()] })
    });
    let path = stage.scratch.file("notes.txt", "the words in the file");
    let prompt = format!("TOOL:s-read_text_file:{}", json!({ "path": path }));
    check(&stage, &prompt, "the words in the file");
}

#[test]
fn the_reference_server_works_over_standard_streams() {
    check(&Stage::new(|_| everything_stdio()), "TOOL:s-echo:{\"message\": \"over stdio\"}", "over stdio");
}

#[test]
fn the_reference_server_works_over_http() {
    let server = Everything::start("streamableHttp");
    let stage =
        Stage::new(|_| json!({ "type": "http", "url": format!("http://127.0.0.1:{}/mcp", server.port) }));
    check(&stage, "TOOL:s-echo:{\"message\": \"over http\"}", "over http");
}

#[test]
fn the_reference_server_works_over_the_older_transport() {
    let server = Everything::start("sse");
    let stage =
        Stage::new(|_| json!({ "type": "sse", "url": format!("http://127.0.0.1:{}/sse", server.port) }));
    check(&stage, "TOOL:s-echo:{\"message\": \"over sse\"}", "over sse");
}

fn everything() -> PathBuf {
    PathBuf::from(format!("{PACKAGES}/server-everything/dist/index.js"))
}

fn everything_stdio() -> Value {
    json!({ "command": "node", "args": [everything(), "stdio"] })
}

/// The reference server on a port of this machine.
struct Everything {
    process: Child,
    port: u16,
    /// Open to the end: the server ends when it cannot print.
    _said: BufReader<ChildStderr>,
}

impl Everything {
    fn start(transport: &str) -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = free.local_addr().expect("an address").port();
        drop(free);
        let mut process = Command::new("node")
            .arg(everything())
            .arg(transport)
            .env("PORT", port.to_string())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("node is installed");
        let mut said = BufReader::new(process.stderr.take().expect("its standard error"));
        let listening =
            said.by_ref().lines().map_while(Result::ok).any(|line| line.contains(&port.to_string()));
        assert!(listening, "the reference server does not listen");
        Self { process, port, _said: said }
    }
}

impl Drop for Everything {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
