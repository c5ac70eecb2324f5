//! One piece of work at every simulated vendor: what the vendor refuses, the test fails with.
//!
//! The work has everything that vendors are strict about: reasoning between calls, parallel calls, an image, a call that the
//! output limit cut, a sub-agent, a summary, another model and back, a process that was killed, and a tool that comes late.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use hangar_test_support::simulators::{Exchange, Profile, RequestOutcome};
use hangar_test_support::{Invocation, Scratch, Signal, VendorServer};
use serde_json::{Value, json};

use crate::HANGAR;

const ODD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/odd.mjs");
const SESSION: &str = "5e5510a0-0000-4000-8000-00000000a11e";
/// Share of the input that comes from the cache from the third request on, where the vendor caches.
const CACHED: f64 = 0.8;
/// How far what Hangar counts may be from what the vendor reports, of every request.
const MISCOUNT: f64 = 0.1;

/// How a vendor is configured, and what it can do.
struct Case {
    /// Name of the simulator.
    vendor: &'static str,
    /// The lines of its table in `config.toml` beside address and key.
    table: &'static str,
    caches: bool,
}

const CASES: &[Case] = &[
    Case { vendor: "anthropic", table: "type = \"anthropic\"", caches: true },
    Case { vendor: "openai-responses", table: "host = \"openai\"", caches: true },
    Case { vendor: "openai", table: "host = \"openai\"", caches: true },
    Case { vendor: "azure", table: "type = \"azure\"", caches: true },
    Case { vendor: "gemini", table: "type = \"gemini\"", caches: true },
    Case { vendor: "xai", table: "type = \"xai\"", caches: true },
    Case { vendor: "mistral", table: "type = \"mistral\"", caches: true },
    Case { vendor: "groq", table: "type = \"groq\"", caches: true },
    Case { vendor: "deepseek", table: "type = \"deepseek\"", caches: true },
    Case { vendor: "kimi", table: "type = \"kimi\"", caches: true },
    Case { vendor: "qwen", table: "type = \"qwen\"", caches: true },
    Case { vendor: "glm", table: "type = \"glm\"", caches: true },
    Case { vendor: "openrouter", table: "type = \"openrouter\"", caches: true },
    Case { vendor: "litellm", table: "type = \"openai\"", caches: true },
    Case { vendor: "copilot", table: "type = \"copilot\"", caches: true },
    Case { vendor: "ollama", table: "type = \"ollama\"", caches: false },
    Case { vendor: "llama-cpp", table: "type = \"llamacpp\"", caches: true },
    Case { vendor: "vllm", table: "type = \"vllm\"", caches: true },
    Case { vendor: "lm-studio", table: "type = \"lmstudio\"", caches: true },
];

/// A vendor, a machine with Hangar on it, and the work so far.
struct Stage {
    scratch: Scratch,
    vendor: VendorServer,
    models: [&'static str; 2],
    /// Requests whose tokens Hangar counted otherwise than the vendor.
    miscounts: Mutex<Vec<String>>,
}

impl Stage {
    fn new(case: &Case) -> Self {
        Self::with_settings(case, "")
    }

    /// The same with more lines in the provider's table.
    fn with_settings(case: &Case, more: &str) -> Self {
        let scratch = Scratch::new();
        let vendor = VendorServer::start(case.vendor);
        let config = format!(
            "[providers.v]\nbase_url = \"{}\"\napi_key = \"key-of-this-test-1\"\n{}\n{more}\n",
            vendor.base_url(),
            case.table
        );
        std::fs::create_dir_all(scratch.state()).unwrap();
        std::fs::write(scratch.state().join("config.toml"), config).unwrap();
        for (file, text) in [("a.txt", "alpha\n"), ("b.txt", "beta\n"), ("c.txt", "gamma\n")] {
            scratch.file(file, text);
        }
        std::fs::write(scratch.work().join("dot.png"), png()).unwrap();
        let models = vendor.profile().models;
        Self { scratch, vendor, models, miscounts: Mutex::default() }
    }

    fn run(&self, model: usize, prompt: &str) -> Invocation {
        let model = format!("v/{}", self.models[model]);
        self.scratch
            .run(HANGAR)
            .env("HANGAR_RETRY_SCALE", "0.01")
            .args(["-p", prompt, "--model", &model, "--allow-all-tools", "--output-format", "json"])
            .args(["--all-events", &format!("--session-id={SESSION}")])
    }

    /// Runs to the end. Panics with what the session says if that is a failure.
    #[track_caller]
    fn succeed(&self, run: Invocation, what: &str) {
        let finished = run.finish();
        let events = finished.events();
        let errors = events.iter().filter(|event| event["type"] == "session.error");
        let told: Vec<&str> = errors.filter_map(|event| event["data"]["message"].as_str()).collect();
        assert_eq!(finished.exit, 0, "`{what}` failed: {} {}", told.join("; "), finished.stderr);
        self.miscounts.lock().unwrap().extend(miscounts(&events, what));
    }

    /// The name of the tool with which the model edits files, and a call of it that adds a line to `a.txt`: `edit`, or
    /// `apply_patch` as the wire of the model has it. Known from the last request.
    fn edit(&self) -> (&'static str, String) {
        let path = self.scratch.work().join("a.txt");
        let exchange = self.vendor.exchanges().pop().unwrap();
        let tools = exchange.body["tools"].as_array().unwrap();
        let is_patch = |tool: &&Value| {
            ["/name", "/function/name", "/custom/name"]
                .iter()
                .any(|at| tool.pointer(at) == Some(&json!("apply_patch")))
        };
        let Some(patch) = tools.iter().find(is_patch) else {
            let change = json!({ "path": path, "old_str": "alpha\n", "new_str": "alpha\ndelta\n" });
            return ("edit", change.to_string());
        };
        let text = format!(
            "*** Begin Patch\n*** Update File: {}\n@@\n alpha\n+delta\n*** End Patch\n",
            path.display()
        );
        let input = match patch["type"].as_str() {
            Some("custom") => text,
            _ => json!({ "input": text }).to_string(),
        };
        ("apply_patch", input)
    }

    fn play(&self, turns: &[String]) {
        self.vendor.play(&turns.concat());
    }
}

/// An image of one pixel.
fn png() -> Vec<u8> {
    const DOT: &[u8] = &[
        0x89, b'P', b'N', b'G', 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0,
        0, 0, 1, 8, 2, 0, 0, 0, 0x90, 0x77, 0x53, 0xde, 0, 0, 0, 0x0c, b'I', b'D', b'A', b'T', 0x08, 0xd7,
        0x63, 0xf8, 0xcf, 0xc0, 0, 0, 3, 1, 1, 0, 0x18, 0xdd, 0x8d, 0xb0, 0, 0, 0, 0, b'I', b'E', b'N', b'D',
        0xae, 0x42, 0x60, 0x82,
    ];
    DOT.to_vec()
}

/// A turn of the vendor, in the words of scenarios.
struct Turn(String);

impl Turn {
    fn new() -> Self {
        Self("[[turn]]\nsay = [\n".to_owned())
    }

    fn think(mut self, text: &str) -> Self {
        writeln!(self.0, "{{ thinking = {} }},", json!(text)).unwrap();
        self
    }

    fn say(mut self, text: &str) -> Self {
        writeln!(self.0, "{{ text = {} }},", json!(text)).unwrap();
        self
    }

    fn call(self, tool: &str, arguments: &Value) -> Self {
        self.call_with(tool, &arguments.to_string())
    }

    /// A call whose arguments are this text.
    fn call_with(mut self, tool: &str, arguments: &str) -> Self {
        writeln!(self.0, "{{ call = {}, arguments = {} }},", json!(tool), json!(arguments)).unwrap();
        self
    }

    /// Silence of so many seconds.
    fn wait(mut self, seconds: f64) -> Self {
        writeln!(self.0, "{{ wait = {seconds} }},").unwrap();
        self
    }

    /// A call that the output limit cuts.
    fn cut(self, tool: &str, arguments: &str) -> String {
        format!("{}]\nend = \"length\"\n\n", self.call_with(tool, arguments).0)
    }

    fn end(self) -> String {
        format!("{}]\n\n", self.0)
    }

    /// The same, for the next request whose prompt has these words.
    fn when(self, prompt: &str) -> String {
        format!("{}]\nwhen = {{ prompt = {} }}\n\n", self.0, json!(prompt))
    }
}

fn bash(command: &str) -> Value {
    json!({ "command": command, "description": "work" })
}

/// The work, from the first prompt to the last.
fn work(stage: &Stage) {
    let view = |file: &str| json!({ "path": stage.scratch.work().join(file) });
    stage.play(&[Turn::new().think("A greeting.").say("Hello.").end()]);
    stage.succeed(stage.run(0, "hello"), "hello");
    let (editor, change) = stage.edit();
    stage.play(&[
        Turn::new().think("The change comes first.").say("I change it.").call_with(editor, &change).end(),
        Turn::new()
            .think("Now all three.")
            .call("view", &view("a.txt"))
            .call("view", &view("b.txt"))
            .call("view", &view("c.txt"))
            .end(),
        Turn::new().think("And the picture.").call("view", &view("dot.png")).end(),
        Turn::new().think("One more thing.").cut("bash", "{\"command\": \"echo never"),
        Turn::new()
            .think("Somebody else may look.")
            .call("task", &json!({ "agent_type": "explore", "prompt": "LOOK AROUND", "description": "look", "name": "looker", "mode": "sync" }))
            .end(),
        Turn::new().think("I look.").call("view", &view("b.txt")).when("LOOK AROUND"),
        Turn::new().say("There is beta.").end(),
        Turn::new().think("That is all.").say("Done.").end(),
    ]);
    stage.succeed(stage.run(0, "change a.txt"), "change");
    assert_eq!(std::fs::read_to_string(stage.scratch.work().join("a.txt")).unwrap(), "alpha\ndelta\n");

    // Another model reads what the first one left, and the first one reads both.
    stage.play(&[
        Turn::new().think("I am new here.").call("view", &view("c.txt")).end(),
        Turn::new().say("Gamma.").end(),
    ]);
    stage.succeed(stage.run(1, "and c.txt?"), "another model");
    stage.play(&[Turn::new()
        .think("Back again.")
        .say("Sure.")
        .call("bash", &bash("touch started; sleep 60"))
        .end()]);
    let mut running = stage.run(0, "wait a while").start();
    running.wait_for_event("tool.execution_start");
    running.signal(Signal::KILL);
    running.finish();
    stage.play(&[Turn::new().think("It was interrupted.").say("Then not.").end()]);
    stage.succeed(stage.run(0, "what happened?"), "resume");

    // A tool that was not there before.
    let servers = json!({ "mcpServers": { "late": { "command": "node", "args": [ODD, "plain", stage.scratch.root().join("starts")] } } });
    stage.play(&[
        Turn::new().think("A new tool.").call("view", &view("a.txt")).end(),
        Turn::new().say("Seen.").end(),
    ]);
    let late = stage.run(0, "anything new?").args(["--additional-mcp-config", &servers.to_string()]);
    stage.succeed(late, "a late tool");

    stage.play(&[Turn::new().say("<overview>All of it.</overview>").end()]);
    stage.succeed(stage.run(0, "/compact"), "compact");
    stage.play(&[
        Turn::new().think("After the summary.").call("view", &view("a.txt")).end(),
        Turn::new().say("Alpha.").end(),
    ]);
    stage.succeed(stage.run(0, "and now?"), "after the summary");
}

/// Share of the input that came from the cache, from the third request of the first process on, without its sub-agent.
fn cached(exchanges: &[Exchange]) -> f64 {
    let is_first = |exchange: &&Exchange| {
        let body = exchange.body.to_string();
        body.contains("change a.txt") && !body.contains("and c.txt?")
    };
    let (mut read, mut input) = (0, 0);
    for exchange in exchanges.iter().filter(is_first).skip(2) {
        if let RequestOutcome::Answered { usage, .. } = &exchange.outcome {
            read += usage.cache_read;
            input += usage.input;
        }
    }
    read as f64 / input.max(1) as f64
}

#[test]
fn the_same_work_passes_at_every_vendor() {
    let mut failures = Vec::new();
    let covered: Vec<&str> = CASES.iter().map(|case| case.vendor).collect();
    let missing =
        Profile::all().into_iter().map(|profile| profile.name).filter(|name| !covered.contains(name));
    failures.extend(missing.map(|name| format!("{name} is not tried")));
    let chosen = std::env::var("HANGAR_GATE").ok();
    std::thread::scope(|scope| {
        let cases = CASES.iter().filter(|case| chosen.as_ref().is_none_or(|name| name == case.vendor));
        let runs: Vec<_> = cases.map(|case| (case, scope.spawn(|| check(case)))).collect();
        for (case, run) in runs {
            match run.join() {
                Ok(problems) => {
                    failures
                        .extend(problems.into_iter().map(|problem| format!("{}: {problem}", case.vendor)));
                }
                Err(panic) => {
                    let said =
                        panic.downcast_ref::<String>().cloned().unwrap_or_else(|| "a panic".to_owned());
                    failures.push(format!("{}: {said}", case.vendor));
                }
            }
        }
    });
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn check(case: &Case) -> Vec<String> {
    let stage = Stage::new(case);
    work(&stage);
    let mut problems = Vec::new();
    if let Err(told) = stage.vendor.simulator().finish() {
        problems.push(told.to_string());
    }
    let exchanges = stage.vendor.exchanges();
    let ratio = cached(&exchanges);
    if case.caches && ratio < CACHED {
        problems.push(format!("only {:.0} % of the input came from the cache", ratio * 100.0));
    }
    problems.append(&mut stage.miscounts.lock().unwrap());
    problems
}

/// Requests of the main agent and of sub-agents in the events of a process, whose tokens were counted otherwise before than they
/// were reported behind.
fn miscounts(events: &[Value], what: &str) -> Vec<String> {
    let mut counted: BTreeMap<String, f64> = BTreeMap::new();
    let mut miscounts = Vec::new();
    for event in events {
        let agent = event["agentId"].to_string();
        let number = |name: &str| event["data"][name].as_f64();
        match event["type"].as_str() {
            Some("session.usage_info") => {
                counted.extend(number("currentTokens").map(|tokens| (agent, tokens)));
            }
            Some("assistant.usage") => {
                let (counted, reported) = (counted.remove(&agent), number("inputTokens"));
                // The context of a sub-agent is not shown to people, so it is not always counted.
                if counted.is_none() && !event["agentId"].is_null() {
                    continue;
                }
                let (Some(counted), Some(reported)) = (counted, reported) else {
                    miscounts.push(format!("`{what}`: a request of {agent} was not counted or not reported"));
                    continue;
                };
                if (counted - reported).abs() > reported * MISCOUNT {
                    miscounts.push(format!(
                        "`{what}`: {counted} tokens of {agent} were counted and {reported} reported"
                    ));
                }
            }
            _ => {}
        }
    }
    miscounts
}

#[test]
fn a_summary_in_the_middle_of_calls_passes_where_reasoning_is_signed() {
    for vendor in ["anthropic", "openrouter", "openai-responses", "gemini", "deepseek"] {
        let case = CASES.iter().find(|case| case.vendor == vendor).unwrap();
        let stage = Stage::with_settings(case, "max_prompt_tokens = 9000");
        let long = |n: u32| bash(&format!("seq {n} {}", n + 3000));
        stage.play(&[
            Turn::new().think("First.").call("bash", &bash("echo one")).end(),
            Turn::new().think("Much.").call("bash", &long(1000)).end(),
            Turn::new().say("<overview>Numbers.</overview>").end(),
            Turn::new().think("Enough.").say("Counted.").end(),
        ]);
        stage.succeed(stage.run(0, "count"), vendor);
        let log = stage.scratch.log(SESSION);
        let summaries =
            log.lines().filter(|line| line.contains("session.compaction_complete")).collect::<Vec<_>>();
        assert!(summaries.iter().any(|line| line.contains(r#""success":true"#)), "{vendor}: {summaries:?}");
        let refusals = stage.vendor.simulator().refusals();
        assert!(refusals.is_empty(), "{vendor}: {refusals:?}");
    }
}

/// Where a summary in the background is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ready {
    /// While the next answer is in flight.
    DuringAnAnswer,
    /// While the call of the next answer runs.
    DuringACall,
}

#[test]
fn a_summary_is_made_when_it_can_be_used() {
    std::thread::scope(|scope| {
        for (vendor, model) in [
            ("anthropic", "claude-opus-5-5"),
            ("anthropic", "claude-sonnet-4-5"),
            ("openai-responses", "gpt-5.6-terra"),
            ("copilot", "claude-sonnet-4.6"),
            ("copilot", "gpt-5.6-terra"),
            ("copilot", "gemini-3.1-pro-preview"),
            ("deepseek", Profile::find("deepseek").unwrap().models[0]),
            ("openrouter", Profile::find("openrouter").unwrap().models[0]),
        ] {
            for ready in [Ready::DuringAnAnswer, Ready::DuringACall] {
                scope.spawn(move || summarize_beside(vendor, model, ready));
            }
        }
    });
}

fn summarize_beside(vendor: &str, model: &'static str, ready: Ready) {
    let case = CASES.iter().find(|case| case.vendor == vendor).unwrap();
    // Vendors count differently, so the window is made of what a request and a number have at this one.
    let numbers = |count: u64| bash(&format!("seq 10000 {}", 9999 + count));
    let measured = Stage { models: [model; 2], ..Stage::new(case) };
    let sample = 300;
    measured.play(&[Turn::new().call("bash", &numbers(sample)).end(), Turn::new().say("Hello.").end()]);
    measured.succeed(measured.run(0, "count"), vendor);
    let exchanges = measured.vendor.exchanges();
    let tokens: Vec<u64> = exchanges
        .iter()
        .filter_map(|exchange| match &exchange.outcome {
            RequestOutcome::Answered { usage, .. } => Some(usage.input),
            _ => None,
        })
        .collect();
    let binds = exchanges.iter().all(|exchange| exchange.path.ends_with("/messages"));
    let window = tokens[0] * 3;
    let fill = (window as f64 * 0.86) as u64 - tokens[0];
    let half = fill * sample / (tokens[1] - tokens[0]) / 2;
    let limited = Stage::with_settings(case, &format!("max_prompt_tokens = {window}"));
    let stage = Stage { models: [model; 2], ..limited };
    let (answers_in, calls_in) = match ready {
        Ready::DuringAnAnswer => (1.0, "true"),
        Ready::DuringACall => (0.0, "sleep 1"),
    };
    let summary = || Turn::new().say("<overview>Numbers.</overview>").when("create a detailed summary");
    // A cycle that is bound to what came before it is not summarised; the next one begins with a summary.
    let (during, before): (Vec<String>, Vec<String>) =
        if binds { (Vec::new(), vec![summary()]) } else { (vec![summary()], Vec::new()) };
    let turns = [
        Turn::new().think("First.").call("bash", &bash("echo one")).end(),
        Turn::new().think("Much.").call("bash", &numbers(half)).end(),
        Turn::new().think("More.").call("bash", &numbers(half)).end(),
        Turn::new().think("Slowly.").wait(answers_in).call("bash", &bash(calls_in)).end(),
        Turn::new().think("Again.").call("bash", &bash("echo two")).end(),
        Turn::new().think("Enough.").say("Counted.").end(),
    ];
    stage.play(&[during, turns.to_vec()].concat());
    stage.succeed(stage.run(0, "count"), vendor);
    let turns = [
        Turn::new().think("Afterwards.").call("bash", &bash("echo three")).end(),
        Turn::new().say("Done.").end(),
    ];
    stage.play(&[before, turns.to_vec()].concat());
    stage.succeed(stage.run(0, "and now?"), vendor);
    let what = format!("{model} of {vendor}, {ready:?}");
    if let Err(told) = stage.vendor.simulator().finish() {
        panic!("{what}: {told}");
    }
    let log = stage.scratch.log(SESSION);
    let order: Vec<&str> = log
        .lines()
        .filter_map(|line| {
            let event: Value = serde_json::from_str(line).unwrap();
            match event["type"].as_str()? {
                "session.compaction_start" => Some("begins"),
                "session.compaction_complete" if event["data"]["success"] == true => Some("applies"),
                "assistant.message" if event["data"]["toolRequests"] != json!([]) => Some("calls"),
                "assistant.message" => Some("answer"),
                _ => None,
            }
        })
        .collect();
    let expected = match binds {
        true => "calls calls calls calls calls answer begins applies calls answer",
        // An answer in flight is waited for, a cycle is not.
        false => "calls calls calls begins calls applies calls answer calls answer",
    };
    assert_eq!(order.join(" "), expected, "{what}");
}

/// Messages of the `session.info` events of a type.
fn infos(events: &[Value], kind: &str) -> Vec<String> {
    let told = events.iter().filter(|event| event["type"] == "session.info");
    let told = told.filter(|event| event["data"]["infoType"] == kind);
    told.filter_map(|event| event["data"]["message"].as_str().map(str::to_owned)).collect()
}

/// A stage of the vendor that binds thinking to what came before it, with a model that does.
fn binding() -> Stage {
    let case = CASES.iter().find(|case| case.vendor == "anthropic").unwrap();
    Stage { models: ["claude-opus-5-5"; 2], ..Stage::new(case) }
}

/// Number of thinking blocks of the last request.
fn thoughts(stage: &Stage) -> usize {
    let body = stage.vendor.exchanges().pop().unwrap().body.to_string();
    body.matches(r#""signature":"#).count()
}

#[test]
fn a_secret_that_the_log_does_not_have_costs_the_reasoning_behind_it_and_that_is_told() {
    let stage = binding();
    stage.play(&[
        Turn::new().think("The key is key-of-this-test-1.").call("bash", &bash("echo one")).end(),
        Turn::new().think("And on.").call("bash", &bash("echo two")).end(),
        Turn::new().think("Enough.").say("Done.").end(),
    ]);
    stage.succeed(stage.run(0, "count"), "count");
    assert!(!stage.scratch.log(SESSION).contains("key-of-this-test-1"));
    stage.play(&[Turn::new().say("Still done.").end()]);
    let events = stage.run(0, "and now?").finish().expect_exit(0).events();
    let told = infos(&events, "model_adapted");
    assert!(told.len() == 1 && told[0].contains("The reasoning behind 2 answer(s) is left out"), "{told:?}");
    assert_eq!(thoughts(&stage), 0, "nothing is left for the vendor to drop");
    stage.vendor.simulator().finish().unwrap();
}

#[test]
fn other_tools_cost_earlier_reasoning_and_that_is_told_once() {
    let stage = binding();
    stage.play(&[Turn::new().think("Hm.").say("Hello.").end()]);
    stage.succeed(stage.run(0, "hello"), "hello");
    stage.play(&[
        Turn::new().think("Fewer.").call("bash", &bash("echo one")).end(),
        Turn::new().say("Done.").end(),
    ]);
    let run = stage.run(0, "go on").args(["--excluded-tools", "grep"]);
    let events = run.finish().expect_exit(0).events();
    let told = infos(&events, "model_adapted");
    assert!(told.len() == 1 && told[0].contains("behind 1 answer(s)"), "{told:?}");
    assert_eq!(thoughts(&stage), 1, "that of the second prompt");
    stage.play(&[Turn::new().say("As before.").end()]);
    let run = stage.run(0, "and on").args(["--excluded-tools", "grep"]);
    let events = run.finish().expect_exit(0).events();
    assert_eq!(thoughts(&stage), 1, "it is bound to the tools that there are");
    assert_eq!(infos(&events, "model_adapted").len(), 1, "each process tells it once");
    stage.vendor.simulator().finish().unwrap();
}

#[test]
fn another_mode_and_a_late_tool_cost_no_reasoning_and_no_cache() {
    let stage = binding();
    stage.play(&[Turn::new().think("Hm.").say("Hello.").end()]);
    stage.succeed(stage.run(0, "hello"), "hello");
    let servers = json!({ "mcpServers": { "late": { "command": "node", "args": [ODD, "plain", stage.scratch.root().join("starts")] } } });
    for (what, flags) in [
        ("plan", ["--mode", "plan"].map(str::to_owned)),
        ("interactive again", ["--mode", "interactive"].map(str::to_owned)),
        ("a late tool", ["--additional-mcp-config".to_owned(), servers.to_string()]),
    ] {
        stage.play(&[Turn::new().think("Now this.").say("Done.").end()]);
        let events = stage.run(0, what).args(&flags).finish().expect_exit(0).events();
        let told = [infos(&events, "model_adapted"), infos(&events, "reasoning_dropped")].concat();
        assert_eq!(told, Vec::<String>::new(), "{what}");
        let RequestOutcome::Answered { usage, .. } = stage.vendor.exchanges().pop().unwrap().outcome else {
            panic!("{what} was not answered")
        };
        assert!(usage.cache_read as f64 > usage.input as f64 * CACHED, "{what}: {usage:?}");
    }
    assert_eq!(thoughts(&stage), 3, "all before the last");
    stage.vendor.simulator().finish().unwrap();
}

#[test]
fn a_call_during_which_the_process_was_killed_is_paid_for_after_a_resume() {
    let stage = binding();
    stage.play(&[Turn::new().think("Slowly.").wait(60.0).say("Never.").end()]);
    let mut running = stage.run(0, "hello").args(["--max-cost", "1"]).start();
    running.wait_for_event("assistant.reasoning_delta");
    running.signal(Signal::KILL);
    running.finish();
    stage.play(&[Turn::new().say("Hello.").end()]);
    // What the killed call could have cost leaves nothing for another one.
    let finished = stage.run(0, "again").args(["--max-cost", "0.3"]).finish();
    let events = finished.expect_exit(1).events();
    let error = events.iter().find(|event| event["type"] == "session.error").unwrap();
    assert_eq!(error["data"]["errorType"], "budget", "{error}");
    let log = stage.scratch.log(SESSION);
    let cut: Vec<&str> = log.lines().filter(|line| line.contains(r#""finishReason":"cut""#)).collect();
    assert_eq!(cut.len(), 1, "{cut:?}");
}

#[test]
fn a_call_during_which_the_process_was_killed_is_estimated_without_a_cap_too() {
    let stage = binding();
    // Nothing of the second answer arrives, and its input is paid for all the same.
    for (turn, prompt) in [
        (Turn::new().think("Slowly.").wait(60.0).say("Never."), "hello"),
        (Turn::new().wait(60.0).say("Never."), "hello again"),
    ] {
        stage.play(&[turn.end()]);
        let mut running = stage.run(0, prompt).start();
        let unfinished = stage.scratch.state().join("session-state").join(SESSION).join("unfinished.jsonl");
        running.wait_for_event("assistant.turn_start");
        let stored =
            || std::fs::read_to_string(&unfinished).is_ok_and(|text| text.contains("session.usage_record"));
        let deadline = Instant::now() + Duration::from_secs(60);
        while !stored() {
            assert!(Instant::now() < deadline, "nothing was stored");
            std::thread::yield_now();
        }
        running.signal(Signal::KILL);
        running.finish();
    }
    stage.play(&[Turn::new().say("Hello.").end()]);
    stage.succeed(stage.run(0, "and now?"), "and now?");
    let log = stage.scratch.log(SESSION);
    let cut: Vec<Value> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|event| event["data"]["usage"]["finishReason"] == "cut")
        .collect();
    assert_eq!(cut.len(), 2, "{log}");
    for call in &cut {
        let (tokens, cost) = (&call["data"]["usage"]["inputTokens"], &call["data"]["usage"]["cost"]);
        assert!(tokens.as_u64() > Some(1000) && cost.as_f64() > Some(0.001), "{call}");
        assert_eq!(call["data"]["computed"], true, "an estimate: {call}");
    }
}

#[test]
fn github_s_own_limits_hold_for_the_first_request_of_a_home() {
    let case = CASES.iter().find(|case| case.vendor == "copilot").unwrap();
    let stage = Stage { models: ["claude-sonnet-4.6"; 2], ..Stage::new(case) };
    stage.play(&[Turn::new().say("Hello.").end()]);
    let events = stage.run(0, "hello").finish().expect_exit(0).events();
    let sent = stage.vendor.exchanges().pop().unwrap();
    assert_eq!(sent.body["max_tokens"], 16_000);
    let usage = events.iter().find(|event| event["type"] == "assistant.usage").unwrap();
    assert!(usage["data"]["cost"].as_f64() > Some(0.0), "the price is on the list: {usage}");
    let told = events.iter().find(|event| event["type"] == "session.usage_info").unwrap();
    assert_eq!(told["data"]["tokenLimit"], 200_000, "{told}");
    stage.vendor.simulator().finish().unwrap();
}

#[test]
fn a_gateway_is_asked_which_small_model_it_has_before_the_first_session() {
    let case = CASES.iter().find(|case| case.vendor == "litellm").unwrap();
    let stage = Stage { models: ["claude-sonnet-4-6"; 2], ..Stage::new(case) };
    stage.play(&[
        Turn::new()
            .call("task", &json!({ "agent_type": "explore", "prompt": "LOOK AROUND", "description": "look", "name": "looker", "mode": "sync" }))
            .end(),
        Turn::new().say("There is beta.").when("LOOK AROUND"),
        Turn::new().say("Done.").end(),
    ]);
    stage.succeed(stage.run(0, "go"), "go");
    let models: Vec<String> =
        stage.vendor.exchanges().iter().map(|exchange| exchange.body["model"].to_string()).collect();
    assert!(models.iter().any(|model| model.contains("haiku")), "{models:?}");
}

#[test]
fn a_model_of_a_provider_that_there_is_not_is_refused() {
    let stage = binding();
    let run = stage.scratch.run(HANGAR).args(["-p", "hi", "--model", "nosuch/claude-opus-5-5"]).finish();
    let told = run.expect_exit(1).stderr;
    assert!(told.contains("no provider is called `nosuch`; the configured ones are v"), "{told}");
    assert_eq!(stage.vendor.exchanges().len(), 0);
}

#[test]
fn sessions_of_a_repository_share_the_cache_of_their_beginning() {
    for vendor in ["anthropic", "openai-responses", "openai", "azure", "mistral"] {
        let case = CASES.iter().find(|case| case.vendor == vendor).unwrap();
        let stage = Stage::new(case);
        let model = format!("v/{}", stage.models[0]);
        for prompt in ["hello", "good morning"] {
            stage.play(&[Turn::new().say("Hello.").end()]);
            stage.scratch.run(HANGAR).args(["-p", prompt, "--model", &model]).finish().expect_exit(0);
        }
        let read: Vec<u64> = stage
            .vendor
            .exchanges()
            .iter()
            .filter_map(|exchange| match &exchange.outcome {
                RequestOutcome::Answered { usage, .. } => Some(usage.cache_read),
                _ => None,
            })
            .collect();
        assert!(read.len() == 2 && read[0] == 0 && read[1] > 2000, "{vendor}: {read:?}");
    }
}
