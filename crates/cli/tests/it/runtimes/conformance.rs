//! The same claims of every agent, with the real programs on a scripted model. What an agent's record says that it cannot
//! do is not asked of it; nothing else is left out.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hangar_test_support::process::Witness;
use hangar_test_support::{Finished, Invocation, ModelServer, Scratch, Signal};
use serde_json::{Value, json};

use super::configure;
use crate::HANGAR;
use crate::schema::Schema;

/// Some agents need twenty seconds to start, and tests share the machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(240);

const AGENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../e2e/agents/node_modules");

/// An agent under test.
pub(super) struct Subject {
    pub(super) name: &'static str,
    /// Its program, if it is not ours.
    program: Option<&'static str>,
    /// Arguments that make it speak the Agent Client Protocol.
    acp: Option<&'static [&'static str]>,
    /// How many of it are started at once. One that takes ten seconds of a processor to start gets less company.
    at_once: usize,
}

const COPILOT: &str = "@github/copilot-linux-x64/copilot";

const SUBJECTS: [Subject; 7] = [
    Subject { name: "native", program: None, acp: None, at_once: 8 },
    Subject { name: "copilot", program: Some(COPILOT), acp: None, at_once: 8 },
    Subject {
        name: "claude",
        program: Some("@anthropic-ai/claude-code-linux-x64/claude"),
        acp: None,
        at_once: 8,
    },
    Subject {
        name: "codex",
        program: Some("@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"),
        acp: None,
        at_once: 8,
    },
    Subject { name: "opencode", program: Some("opencode-linux-x64/bin/opencode"), acp: None, at_once: 2 },
    Subject { name: "hangar-acp", program: None, acp: Some(&["--acp"]), at_once: 8 },
    Subject { name: "copilot-acp", program: Some(COPILOT), acp: Some(&["--acp"]), at_once: 8 },
];

/// A machine with one agent and a scripted model.
pub(super) struct Bench {
    pub(super) subject: &'static Subject,
    pub(super) scratch: Scratch,
    pub(super) model: ModelServer,
    pub(super) record: Value,
}

impl Bench {
    pub(super) fn of(name: &str) -> Self {
        let subject = SUBJECTS.iter().find(|subject| subject.name == name).expect("a subject");
        let program = match subject.program {
            Some(path) => Path::new(AGENTS).join(path),
            None => PathBuf::from(HANGAR),
        };
        assert!(program.exists(), "{} is not installed; run `cargo xtask test` once", program.display());
        let scratch = Scratch::new();
        let program = program.display().to_string();
        let other_home = scratch.root().join("other-home").display().to_string();
        let setting = match subject.acp {
            Some(args) => {
                let command: Vec<&str> =
                    std::iter::once(program.as_str()).chain(args.iter().copied()).collect();
                // Its sessions are its own.
                format!("acp = {}\nenv = {{ HANGAR_HOME = {} }}", json!(command), json!(other_home))
            }
            None if subject.program.is_some() => format!("program = {}", json!(program)),
            None => String::new(),
        };
        configure(&scratch, &format!("[runtimes.{name}]\n{setting}\n"));
        let explained =
            scratch.run(HANGAR).args(["run", "--runtime", name, "--explain", "--output-format", "json"]);
        let record = serde_json::from_str::<Value>(&explained.finish().expect_exit(0).stdout).expect("JSON");
        Self { subject, scratch, model: ModelServer::start(), record: record["agent"].clone() }
    }

    pub(super) fn can(&self, ability: &str) -> bool {
        self.record["capabilities"][ability].as_bool().expect("a capability")
    }

    fn run(&self, prompt: &str) -> Invocation {
        self.scratch
            .run(HANGAR)
            .args([
                "run",
                "--runtime",
                self.subject.name,
                "--output-format",
                "json",
                "--all-events",
                "--max-steps",
                "0",
            ])
            .arg(format!("--rehearse={}", self.model.url()))
            .env("HANGAR_RETRY_SCALE", "0.01")
            .args(["-p", prompt])
            .within(PATIENCE)
    }

    /// A prompt that makes the model run a command.
    pub(super) fn command(&self, command: &str) -> String {
        let tool = &self.record["shellTool"];
        let name = tool["name"].as_str().unwrap_or("bash");
        let argument = tool["argument"].as_str().unwrap_or("command");
        format!("TOOL:{name}:{}", json!({ argument: command, "description": "a command" }))
    }

    pub(super) fn log(&self, id: &str) -> Vec<Value> {
        self.scratch
            .log(id)
            .lines()
            .map(|line| serde_json::from_str(line).expect("a log holds JSON"))
            .collect()
    }
}

fn said(events: &[Value]) -> String {
    let messages = Finished::of_type(events, "assistant.message");
    messages.iter().filter_map(|event| event["data"]["content"].as_str()).collect::<Vec<_>>().join("\n")
}

fn a_prompt_is_answered(bench: &Bench) {
    let run = bench.run("SAY:the answer").finish().expect_exit(0);
    let events = run.events();
    assert!(said(&events).contains("the answer"), "{run:#?}");
    let result = run.result();
    assert_eq!(result["exitCode"], 0);
    assert_eq!(result["usage"]["inputTokens"].is_u64(), bench.can("inputTokens"), "{result}");
    let streamed = events.iter().any(|event| event["type"] == "assistant.message_delta");
    assert_eq!(streamed, bench.can("streaming"));

    let id = run.session_id();
    let log = bench.log(&id);
    assert_eq!(log[0]["type"], "session.start");
    assert_eq!(log[0]["data"]["sessionId"], id.as_str());
    for pair in log.windows(2) {
        assert_eq!(pair[1]["parentId"], pair[0]["id"], "each event follows the one before it: {}", pair[1]);
    }
    let schema = Schema::load();
    for event in events.iter().filter(|event| event["type"] != "result").chain(&log) {
        assert_eq!(schema.problems(event), Vec::<String>::new(), "{event}");
    }
    let shown = bench.scratch.run(HANGAR).args(["sessions", "show", &id]).finish().expect_exit(0);
    assert!(shown.stdout.contains("the answer"), "{}", shown.stdout);
}

fn a_tool_runs_and_is_told_of(bench: &Bench) {
    let run = bench.run(&bench.command("echo from-the-tool | tee made.txt")).finish().expect_exit(0);
    let made = std::fs::read_to_string(bench.scratch.work().join("made.txt"))
        .expect("the command ran in the workspace");
    assert_eq!(made, "from-the-tool\n");
    if !bench.can("toolEvents") {
        return;
    }
    let events = run.events();
    let calls = |kind: &str| -> Vec<String> {
        let events = Finished::of_type(&events, kind);
        events.iter().map(|event| event["data"]["toolCallId"].as_str().expect("an id").to_owned()).collect()
    };
    assert_eq!(calls("tool.execution_start"), calls("tool.execution_complete"), "{run:#?}");
    let complete = Finished::of_type(&events, "tool.execution_complete");
    let told = |event: &&Value| {
        event["data"]["success"] == true && event["data"]["result"].to_string().contains("from-the-tool")
    };
    assert!(complete.iter().any(told), "{run:#?}");
}

fn what_an_agent_changed_is_counted(bench: &Bench) {
    let work = bench.scratch.work();
    let git = |script: &str| {
        let done = std::process::Command::new("sh").args(["-ec", script]).current_dir(&work).status();
        assert!(done.expect("a shell").success(), "{script}");
    };
    let commit = "git -c user.name=t -c user.email=t@x commit -qm";
    git(&format!(
        "git init -q -b main .; printf '1\\n2\\n' > old; echo x > other; git add .; {commit} one; echo mine >> other"
    ));
    let file = |name: &str| work.canonicalize().expect("a directory").join(name).display().to_string();
    // Our own agent counts what its tools for files do.
    let own = bench.can("ownLog");
    let prompt = if own {
        format!(
            "TOOL:edit:{}\nTOOL:create:{}",
            json!({ "path": work.join("old"), "old_str": "2", "new_str": "two\nthree" }),
            json!({ "path": work.join("new"), "file_text": "n\n" })
        )
    } else {
        bench.command(&format!("printf '1\\ntwo\\nthree\\n' > old; git add old; {commit} two; echo n > new"))
    };
    let run = bench.run(&prompt).finish().expect_exit(0);
    let result = run.result();
    let changes = &result["usage"]["codeChanges"];
    assert_eq!((&changes["linesAdded"], &changes["linesRemoved"]), (&json!(3), &json!(1)), "{result}");
    let mut files: Vec<String> = serde_json::from_value(changes["filesModified"].clone()).expect("paths");
    files.sort();
    assert_eq!(files, [file("new"), file("old")]);
    let id = run.session_id();
    let closed = |log: &[Value]| log.last().expect("an event")["data"]["codeChanges"].clone();
    assert_eq!(closed(&bench.log(&id)), *changes);
    if own || !bench.can("resume") {
        return;
    }
    // The session as a whole is counted, as with tokens.
    let again = bench.run(&bench.command("echo more >> new")).arg(format!("--resume={id}"));
    let result = again.finish().expect_exit(0).result();
    assert_eq!(result["usage"]["codeChanges"]["linesAdded"], 4, "{result}");
    assert_eq!(closed(&bench.log(&id))["linesAdded"], 4);
}

fn a_session_goes_on_by_our_id(bench: &Bench) {
    if !bench.can("resume") {
        return;
    }
    let begun = bench.run("the first question\nSAY:one").finish().expect_exit(0);
    let first = begun.session_id();
    let second = bench.run("SAY:two").arg(format!("--resume={}", &first[..8])).finish().expect_exit(0);
    assert_eq!(second.session_id(), first);
    assert!(said(&second.events()).contains("two"), "{second:#?}");
    let asked: Vec<String> = bench.model.requests().iter().map(|request| request.body.to_string()).collect();
    let knows = |request: &String| request.contains("SAY:two") && request.contains("the first question");
    assert!(asked.iter().any(knows), "the model was not told what came before");
    assert_eq!(bench.scratch.sessions(), std::slice::from_ref(&first));
    if bench.can("inputTokens") {
        // The second run tells what the session used, not what it used itself; and both are on record.
        let used = |run: &Finished| run.result()["usage"]["inputTokens"].as_u64().expect("a count");
        assert!(used(&second) > used(&begun), "{} then {}", used(&begun), used(&second));
        let third = bench.run("SAY:three").arg(format!("--resume={first}")).finish().expect_exit(0);
        let growth = used(&third) - used(&second);
        assert!(growth < 4 * (used(&second) - used(&begun)), "{growth} tokens more for one turn");
    }
    let log = bench.log(&first);
    assert!(!Finished::of_type(&log, "session.resume").is_empty());
    for pair in log.windows(2) {
        assert_eq!(pair[1]["parentId"], pair[0]["id"], "{}", pair[1]);
    }
}

fn a_failure_is_a_failure(bench: &Bench) {
    let run = bench.run("FAIL:400").finish().expect_exit(1);
    assert_eq!(run.result()["exitCode"], 1);
    let events = run.events();
    assert!(!Finished::of_type(&events, "session.error").is_empty(), "{run:#?}");
}

fn a_signal_cancels_and_nothing_stays(bench: &Bench) {
    let run = bench.run(&bench.command(ENDLESS)).start();
    let command = running_command(bench);
    run.signal(Signal::INT);
    let run = run.finish().expect_exit(0);
    assert_eq!(run.result()["exitCode"], 0);
    assert!(!Finished::of_type(&run.events(), "abort").is_empty(), "{run:#?}");
    assert!(command.is_gone_within(Duration::from_secs(20)), "the command outlived its run");
}

/// The process of a command that the agent runs, once it runs.
pub(super) fn running_command(bench: &Bench) -> Witness {
    let file = bench.scratch.work().join("pid");
    let begun = Instant::now();
    // The file is the only sign that all agents give at the right moment.
    loop {
        match std::fs::read_to_string(&file) {
            Ok(text) => return Witness::of(text.trim().parse().expect("a process id")),
            Err(_) if begun.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(50)),
            Err(_) => panic!("the command was never run"),
        }
    }
}

/// A command that runs until it is ended.
pub(super) const ENDLESS: &str = "echo $$ > pid.new; mv pid.new pid; exec sleep 1000";

fn a_killed_hangar_leaves_nothing(bench: &Bench) {
    let run = bench.run(&bench.command(ENDLESS)).start();
    let command = running_command(bench);
    let others = Witness::all_below(run.pid());
    assert!(!others.is_empty());
    run.signal(Signal::KILL);
    run.finish();
    assert!(command.is_gone_within(Duration::from_secs(20)), "the command outlived Hangar");
    for process in others {
        assert!(process.is_gone_within(Duration::from_secs(20)), "a process outlived Hangar");
    }
}

fn what_the_host_says_reaches_the_model(bench: &Bench) {
    bench.run("SAY:ok").args(["--system", "always-be-brief-please"]).finish().expect_exit(0);
    let asked = bench.model.requests();
    assert!(asked.iter().any(|request| request.body.to_string().contains("always-be-brief-please")));
}

fn long_instructions_of_the_host_reach_the_model(bench: &Bench) {
    // Longer than an argument may be.
    let long = format!("{}the-end-of-it-all", "a line of many\n".repeat(20_000));
    let file = bench.scratch.file("instructions.md", &long);
    bench.run("SAY:ok").arg("--system-file").arg(file).finish().expect_exit(0);
    let asked = bench.model.requests();
    assert!(asked.iter().any(|request| request.body.to_string().contains("the-end-of-it-all")));
}

fn instruction_files_are_left_out_where_that_can_be_asked_for(bench: &Bench) {
    let options = bench.record["capabilities"]["options"].as_array().expect("options").clone();
    if !options.contains(&json!("agents_md")) {
        return;
    }
    for name in ["AGENTS.md", "CLAUDE.md"] {
        bench.scratch.file(name, "the-rule-of-the-workspace");
    }
    // Some look for them in repositories only.
    let made =
        std::process::Command::new("git").args(["init", "-q"]).current_dir(bench.scratch.work()).status();
    assert!(made.expect("git").success());
    let knows = |more: &[&str]| {
        let before = bench.model.requests().len();
        bench.run("SAY:ok").args(more).finish().expect_exit(0);
        let asked = bench.model.requests().split_off(before);
        asked.iter().any(|request| request.body.to_string().contains("the-rule-of-the-workspace"))
    };
    assert!(knows(&[]), "the model was not told of the file");
    assert!(!knows(&["--no-agents-md"]), "the model was told of the file");
}

fn silence_ends_the_turn(bench: &Bench) {
    let run = bench.run("DELAY:1000000\nSAY:too late").args(["--stall-timeout", "4"]).finish().expect_exit(1);
    let events = run.events();
    let errors = Finished::of_type(&events, "session.error");
    assert!(errors.iter().any(|event| event["data"]["errorType"] == "turn_stalled"), "{run:#?}");
}

fn many_at_once_keep_apart(bench: &Bench) {
    // Some agents set up a home with their first run, and cannot do that twice at once.
    bench.run("SAY:ready.").finish().expect_exit(0);
    let runs: Vec<_> =
        (0..bench.subject.at_once).map(|n| (n, bench.run(&format!("SAY:answer-{n}.")).start())).collect();
    let mut ids = std::collections::BTreeSet::new();
    for (n, run) in runs {
        let run = run.finish().expect_exit(0);
        let answer = said(&run.events());
        assert!(answer.contains(&format!("answer-{n}.")), "{answer}");
        assert!(
            (0..8).filter(|other| *other != n).all(|other| !answer.contains(&format!("answer-{other}.")))
        );
        ids.insert(run.session_id());
    }
    assert_eq!(ids.len(), bench.subject.at_once);
    assert_eq!(bench.scratch.sessions().len(), ids.len() + 1);
}

macro_rules! conform {
    ($( $module:ident = $name:literal; )*) => { $(
        mod $module {
            use super::Bench;
            conform!(@claims $name:
                a_prompt_is_answered, a_tool_runs_and_is_told_of, what_an_agent_changed_is_counted,
                a_session_goes_on_by_our_id, a_failure_is_a_failure,
                a_signal_cancels_and_nothing_stays, a_killed_hangar_leaves_nothing, what_the_host_says_reaches_the_model,
                long_instructions_of_the_host_reach_the_model,
                instruction_files_are_left_out_where_that_can_be_asked_for,
                silence_ends_the_turn, many_at_once_keep_apart);
        }
    )* };
    (@claims $name:literal: $($claim:ident),*) => { $(
        #[test]
        fn $claim() {
            super::$claim(&Bench::of($name));
        }
    )* };
}

conform! {
    native = "native";
    copilot = "copilot";
    claude = "claude";
    codex = "codex";
    opencode = "opencode";
    hangar_acp = "hangar-acp";
    copilot_acp = "copilot-acp";
}
