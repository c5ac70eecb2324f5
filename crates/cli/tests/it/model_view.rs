//! The model's view: instructions, tools, tool results, history.

use hangar_test_support::{Finished, ModelServer, Scratch};
use serde_json::{Value, json};

use crate::hangar;

struct Shown {
    scratch: Scratch,
    model: ModelServer,
}

impl Shown {
    fn new() -> Self {
        Self { scratch: Scratch::new(), model: ModelServer::start() }
    }

    fn run(&self, prompt: &str, args: &[&str]) -> Finished {
        let run =
            hangar(&self.scratch, &self.model).args(["-p", prompt, "--output-format", "json"]).args(args);
        run.finish().expect_exit(0)
    }

    fn bodies(&self) -> Vec<Value> {
        let asked =
            self.model.requests().into_iter().filter(|request| request.path.ends_with("/chat/completions"));
        asked.map(|request| request.body).collect()
    }

    /// The system prompt of the first request.
    fn system(&self) -> String {
        text(&self.bodies()[0]["messages"][0])
    }

    fn tools(&self) -> Vec<String> {
        let bodies = self.bodies();
        let tools = bodies[0]["tools"].as_array().cloned().unwrap_or_default();
        tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap_or_default().to_owned()).collect()
    }

    /// The last message of the last request.
    fn last(&self) -> String {
        let bodies = self.bodies();
        text(bodies.last().and_then(|body| body["messages"].as_array()?.last()).unwrap_or(&Value::Null))
    }
}

fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        parts => parts.to_string(),
    }
}

#[test]
fn instruction_files_come_in_the_documented_order_and_once() {
    let shown = Shown::new();
    shown.scratch.file(".git/HEAD", "ref: refs/heads/main\n");
    std::fs::create_dir_all(shown.scratch.state()).expect("a home");
    std::fs::write(shown.scratch.state().join("copilot-instructions.md"), "MARK-user").expect("instructions");
    shown.scratch.file(".github/copilot-instructions.md", "MARK-repo");
    shown.scratch.file("AGENTS.md", "MARK-agents");
    shown.scratch.file("CLAUDE.md", "MARK-claude");
    shown.scratch.file("GEMINI.md", "MARK-agents");
    shown.scratch.file(".github/instructions/all.instructions.md", "---\napplyTo: \"**\"\n---\nMARK-modular");
    shown.run("hi", &[]);
    let system = shown.system();
    let places: Vec<usize> = ["MARK-user", "MARK-repo", "MARK-agents", "MARK-claude", "MARK-modular"]
        .iter()
        .map(|mark| system.find(mark).unwrap_or_else(|| panic!("{mark} is missing:\n{system}")))
        .collect();
    assert!(places.is_sorted(), "{places:?}\n{system}");
    assert_eq!(system.matches("MARK-agents").count(), 1, "the same text twice:\n{system}");
}

#[test]
fn without_custom_instructions_none_are_shown() {
    let shown = Shown::new();
    shown.scratch.file("AGENTS.md", "MARK-agents");
    shown.scratch.file(".github/instructions/all.instructions.md", "MARK-modular");
    shown
        .scratch
        .file(".github/instructions/txt.instructions.md", "---\napplyTo: \"*.txt\"\n---\nMARK-scoped");
    shown.scratch.file("a.txt", "a");
    shown.scratch.file(".github/skills/greet/SKILL.md", "---\ndescription: MARK-skill\n---\nHello.");
    shown.run("TOOL:view:{\"path\":\"a.txt\"}", &["--no-custom-instructions"]);
    for body in shown.bodies() {
        let asked = body.to_string();
        for mark in ["MARK-agents", "MARK-modular", "MARK-scoped", "txt.instructions.md"] {
            assert!(!asked.contains(mark), "{mark} is shown:\n{asked}");
        }
        assert!(asked.contains("MARK-skill"), "skills are no instructions");
    }
}

#[test]
fn instructions_of_an_area_come_after_the_first_look_into_it_and_only_then() {
    let shown = Shown::new();
    shown.scratch.file(".git/HEAD", "ref: refs/heads/main\n");
    shown.scratch.file("lib/AGENTS.md", "MARK-nested");
    shown.scratch.file("lib/a.txt", "a");
    shown.scratch.file("lib/b.txt", "b");
    let run = shown.run("TOOL:view:{\"path\":\"lib/a.txt\"}", &[]);
    assert!(!shown.system().contains("MARK-nested"), "told before it mattered");
    assert!(shown.system().contains("lib/AGENTS.md |"), "listed in a table:\n{}", shown.system());
    let reminder = shown.last();
    assert!(reminder.contains("<system_reminder>") && reminder.contains("MARK-nested"), "{reminder}");
    let events = run.events();
    assert_eq!(Finished::of_type(&events, "system.notification").len(), 1);
    let id = run.session_id();
    shown.run("TOOL:view:{\"path\":\"lib/b.txt\"}", &[&format!("--resume={id}")]);
    let told = shown.bodies().last().map(|body| body.to_string().matches("MARK-nested").count());
    assert_eq!(told, Some(1), "told again after a resume");
}

#[test]
fn an_agent_is_told_the_instructions_of_an_area_and_the_session_is_not() {
    let shown = Shown::new();
    shown.scratch.file(".git/HEAD", "ref: refs/heads/main\n");
    shown.scratch.file("lib/AGENTS.md", "MARK-nested");
    shown.scratch.file("lib/a.txt", "a");
    let view = "TOOL:view:{\"path\":\"lib/a.txt\"}";
    let task =
        json!({ "description": "d", "agent_type": "explore", "name": "n", "prompt": view, "mode": "sync" });
    let run = shown.run(&format!("TOOL:task:{task}\nSAY:ok"), &[]);
    let told: Vec<usize> =
        shown.bodies().iter().map(|body| body.to_string().matches("MARK-nested").count()).collect();
    assert_eq!(told, [0, 0, 1, 0], "what the agent was told in its second request is its own");
    // The next access there tells the model again, also after a resume.
    shown.run(view, &[&format!("--resume={}", run.session_id())]);
    assert!(shown.last().contains("MARK-nested"), "{}", shown.last());
}

#[test]
fn instructions_for_a_kind_of_file_are_told_when_one_is_made_or_changed() {
    for (name, prompt) in [
        ("made", json!({ "path": "new.py", "file_text": "x" })),
        ("changed", json!({ "path": "old.py", "old_str": "a", "new_str": "b" })),
    ] {
        let shown = Shown::new();
        shown
            .scratch
            .file(".github/instructions/py.instructions.md", "---\napplyTo: \"*.py\"\n---\nMARK-python");
        shown.scratch.file("old.py", "a");
        let tool = if name == "made" { "create" } else { "edit" };
        shown.run(&format!("TOOL:{tool}:{prompt}\nSAY:done"), &["--allow-all-tools"]);
        let bodies = shown.bodies();
        assert!(!bodies[0].to_string().contains("MARK-python"), "{name}: told before anything was touched");
        let told = bodies[1]["messages"].to_string();
        assert_eq!(told.matches("MARK-python").count(), 1, "{name}: {told}");
    }
}

#[test]
fn requests_share_their_prefix_byte_for_byte_also_after_a_resume() {
    let shown = Shown::new();
    let run = shown.run("TOOL:view:{\"path\":\".\"}\nSAY:done", &[]);
    shown.run("SAY:more", &[&format!("--resume={}", run.session_id())]);
    let bodies = shown.bodies();
    assert_eq!(bodies.len(), 3);
    for pair in bodies.windows(2) {
        assert_eq!(pair[0]["tools"].to_string(), pair[1]["tools"].to_string());
        let before = pair[0]["messages"].as_array().expect("messages");
        let after = pair[1]["messages"].as_array().expect("messages");
        for (one, other) in before.iter().zip(after) {
            assert_eq!(one.to_string(), other.to_string());
        }
    }
}

#[test]
fn only_the_available_tools_are_shown() {
    let shown = Shown::new();
    let run = shown.run("hi", &["--available-tools", "view,grep"]);
    assert_eq!(shown.tools(), ["view", "grep"]);
    let events = run.events();
    let said = Finished::of_type(&events, "session.info");
    assert!(said[0]["data"]["message"].as_str().is_some_and(|text| text.contains("bash")), "{said:?}");
}

#[test]
fn excluded_tools_are_not_shown() {
    let shown = Shown::new();
    shown.run("hi", &["--excluded-tools", "bash,web_fetch"]);
    let tools = shown.tools();
    assert!(!tools.iter().any(|tool| tool == "bash") && tools.iter().any(|tool| tool == "view"), "{tools:?}");
}

#[test]
fn models_that_patch_get_a_patch_tool() {
    let shown = Shown::new();
    shown.run("hi", &["--model", "gpt-5.4"]);
    let body = shown.bodies()[0]["tools"].to_string();
    assert!(body.contains("apply_patch") && body.contains("\"rg\"") && !body.contains("\"edit\""), "{body}");
}

#[test]
fn sessions_of_one_repository_share_their_system_prompt_and_tools() {
    let shown = Shown::new();
    shown.scratch.file(".git/HEAD", "ref: refs/heads/main\n");
    shown.scratch.file("AGENTS.md", "Be kind.");
    let ids: Vec<String> = ["hi", "hello"].iter().map(|prompt| shown.run(prompt, &[]).session_id()).collect();
    let bodies = shown.bodies();
    assert_eq!(text(&bodies[0]["messages"][0]), text(&bodies[1]["messages"][0]));
    assert_eq!(bodies[0]["tools"].to_string(), bodies[1]["tools"].to_string());
    for (id, body) in ids.iter().zip(&bodies) {
        assert!(!shown.system().contains(id.as_str()), "the session is named in the system prompt");
        let told = text(&body["messages"][1]);
        for fact in [
            id.as_str(),
            "Git branch: main",
            "In the working directory: AGENTS.md",
            "Model: ",
            "Permissions: ",
        ] {
            assert!(told.contains(fact), "{fact} is not in {told}");
        }
    }
}

#[test]
fn the_state_of_git_is_told_and_the_system_prompt_does_not_know_it() {
    let shown = Shown::new();
    let git = |args: &[&str]| {
        let work = shown.scratch.work();
        let made = std::process::Command::new("git").args(args).current_dir(work).output().expect("git");
        assert!(made.status.success(), "{made:?}");
    };
    git(&["init", "-q"]);
    shown.run("hi", &[]);
    shown.scratch.file("new.txt", "x");
    shown.run("hi", &[]);
    let bodies = shown.bodies();
    let told = |body: &Value| text(&body["messages"][1]);
    assert!(told(&bodies[0]).contains("Git state: clean"), "{}", told(&bodies[0]));
    assert!(told(&bodies[1]).contains("Git state: 1 untracked"), "{}", told(&bodies[1]));
    assert_eq!(text(&bodies[0]["messages"][0]), text(&bodies[1]["messages"][0]));
}

#[test]
fn agents_that_only_read_are_not_told_how_to_change_code() {
    let shown = Shown::new();
    let task = json!({ "description": "d", "agent_type": "explore", "name": "a", "prompt": "SAY:found", "mode": "sync" });
    shown.run(&format!("TOOL:task:{task}\nSAY:done"), &["--allow-all-tools"]);
    let systems: Vec<String> = shown.bodies().iter().map(|body| text(&body["messages"][0])).collect();
    assert!(systems[0].contains("<code_changes>"), "{}", systems[0]);
    assert!(systems[1].contains("explorer") && !systems[1].contains("<code_changes>"), "{}", systems[1]);
}

#[test]
fn a_large_output_is_spilled_and_shown_by_its_ends() {
    let shown = Shown::new();
    let run =
        shown.run("TOOL:bash:{\"command\":\"seq 1 20000\",\"description\":\"d\"}", &["--allow-all-tools"]);
    let seen = shown.last();
    assert!(seen.starts_with("Output too large to read at once (106.3 KB). Saved to: "), "{seen}");
    assert!(seen.contains("Preview (first 2000 chars):\n1\n2\n3\n"), "{seen}");
    assert!(seen.contains("\n19999\n20000\n<exited with exit code 0>"), "{seen}");
    let path = seen.split("Saved to: ").nth(1).and_then(|rest| rest.lines().next()).unwrap_or_default();
    let saved = std::fs::read_to_string(path).expect("the whole output is in the file");
    assert!(saved.starts_with("1\n2\n") && saved.contains("\n20000\n"));
    assert!(path.contains(&run.session_id()), "{path} does not belong to the session");
}

#[test]
fn the_threshold_of_large_outputs_can_be_set() {
    let shown = Shown::new();
    let prompt = "TOOL:bash:{\"command\":\"seq 1 100\",\"description\":\"d\"}";
    hangar(&shown.scratch, &shown.model)
        .args(["-p", prompt, "--allow-all-tools"])
        .env("COPILOT_LARGE_OUTPUT_THRESHOLD_BYTES", "100")
        .finish()
        .expect_exit(0);
    assert!(shown.last().starts_with("Output too large"), "{}", shown.last());
}

#[test]
fn denying_wins_and_reading_needs_no_rule() {
    let shown = Shown::new();
    let prompt = "PTOOL:bash:{\"command\":\"echo free\",\"description\":\"d\"}\n\
                  PTOOL:bash:{\"command\":\"git push\",\"description\":\"d\"}\n\
                  TOOL:bash:{\"command\":\"touch made\",\"description\":\"d\"}\nSAY:done";
    shown.run(prompt, &["--allow-tool=shell(git:*)", "--deny-tool=shell(git push)"]);
    let bodies = shown.bodies();
    let results: Vec<String> = bodies[1]["messages"]
        .as_array()
        .expect("messages")
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(text)
        .collect();
    assert!(results[0].starts_with("free\n"), "{results:?}");
    assert!(results[1].contains("denied due to the following rules: `shell(git push)`"), "{results:?}");
    assert!(results[2].starts_with("Permission denied"), "{results:?}");
    assert!(!shown.scratch.work().join("made").exists());
}

#[test]
fn a_link_does_not_lead_out_of_the_workspace() {
    let shown = Shown::new();
    let secret = shown.scratch.home().join("secret.txt");
    std::fs::write(&secret, "MARK-secret").expect("a file outside");
    std::os::unix::fs::symlink(&secret, shown.scratch.work().join("inside.txt")).expect("a link");
    shown.run("TOOL:view:{\"path\":\"inside.txt\"}", &["--allow-all-tools", "--disallow-temp-dir"]);
    assert!(!shown.last().contains("MARK-secret"), "{}", shown.last());
    shown.run("TOOL:view:{\"path\":\"inside.txt\"}", &["--allow-all"]);
    assert!(shown.last().contains("MARK-secret"), "{}", shown.last());
}

#[test]
fn secrets_reach_neither_the_model_nor_the_output_nor_the_log() {
    let shown = Shown::new();
    let run = hangar(&shown.scratch, &shown.model)
        .args([
            "-p",
            "TOOL:bash:{\"command\":\"env; echo hunter2-hunter2; cat s.txt\",\"description\":\"d\"}",
        ])
        .args(["--allow-all-tools", "--secret-env-vars=MY_TOKEN", "--output-format", "json"])
        .env("MY_TOKEN", "tok-3n-secret-value")
        .env("COPILOT_PROVIDER_API_KEY", "key-secret-value");
    shown.scratch.file("s.txt", "tok-3n-secret-value key-secret-value");
    let run = run.finish().expect_exit(0);
    let log = shown.scratch.log(&run.session_id());
    let asked = shown.bodies().iter().map(ToString::to_string).collect::<String>();
    for secret in ["tok-3n-secret-value", "key-secret-value"] {
        for (place, text) in
            [("stdout", &run.stdout), ("stderr", &run.stderr), ("log", &log), ("request", &asked)]
        {
            assert!(!text.contains(secret), "{secret} is in the {place}");
        }
    }
    assert!(run.stdout.contains("hunter2-hunter2"), "what is no secret is shown");
}

#[test]
fn a_plan_is_carried_out_when_autopilot_is_asked_for_too() {
    let shown = Shown::new();
    let run = shown.run("make a plan", &["--plan", "--mode", "autopilot", "--max-autopilot-continues", "0"]);
    let events = run.events();
    let modes: Vec<_> = Finished::of_type(&events, "session.mode_notice_delivered")
        .iter()
        .map(|event| event["data"]["mode"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(modes, ["plan", "autopilot"]);
    assert!(shown.last().contains("The plan is approved"), "{}", shown.last());
}
