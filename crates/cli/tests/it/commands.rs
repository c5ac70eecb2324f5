//! The commands beside a run: models, doctor, sessions, model serve; and recordings.

use hangar_test_support::{Finished, ModelServer, Scratch};

use crate::{HANGAR, hangar};

fn configured(scratch: &Scratch, model: &ModelServer) {
    std::fs::create_dir_all(scratch.state()).expect("a home");
    let config = format!(
        "model = \"two/mock-model\"\n\n[providers.one]\nbase_url = \"http://127.0.0.1:1/v1\"\n\n\
         [providers.two]\ntype = \"anthropic\"\nbase_url = \"{}\"\napi_key = \"sk-very-secret-key\"\n",
        model.url()
    );
    std::fs::write(scratch.state().join("config.toml"), config).expect("a configuration");
}

fn bare(scratch: &Scratch, args: &[&str]) -> Finished {
    scratch.run(HANGAR).args(args).env("COPILOT_OFFLINE", "true").finish()
}

#[test]
fn config_toml_names_many_providers_and_the_model_chooses() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    configured(&scratch, &model);
    let run = bare(&scratch, &["-s", "-p", "SAY:from two"]).expect_exit(0);
    assert_eq!(run.stdout.trim(), "from two");
    assert!(
        model.requests().iter().all(|request| request.path.ends_with("/messages")),
        "{:?}",
        model.requests()
    );
}

#[test]
fn models_lists_what_providers_offer_and_names_the_one_that_fails() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    configured(&scratch, &model);
    let run = bare(&scratch, &["models"]).expect_exit(1);
    assert!(run.stdout.contains("two/mock-model"), "{}", run.stdout);
    assert!(run.stderr.contains("one: "), "{}", run.stderr);
    let asked = model.requests().len();
    bare(&scratch, &["models"]);
    assert_eq!(model.requests().len(), asked, "the list is cached");
    bare(&scratch, &["models", "--refresh"]);
    assert!(model.requests().len() > asked);
}

#[test]
fn a_broken_configuration_is_one_sentence() {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.state()).expect("a home");
    std::fs::write(scratch.state().join("config.toml"), "[providers.x]\ntype = \"telepathy\"\n")
        .expect("a file");
    let run = bare(&scratch, &["-p", "hi"]).expect_exit(1);
    assert!(run.stderr.contains("config.toml") && run.stderr.contains("telepathy"), "{}", run.stderr);
}

#[test]
fn doctor_finds_what_is_wrong_and_never_prints_a_credential() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    configured(&scratch, &model);
    let run = bare(&scratch, &["doctor"]).expect_exit(2);
    assert!(run.stdout.contains("BAD provider one"), "{}", run.stdout);
    assert!(run.stdout.contains("ok  provider two"), "{}", run.stdout);
    assert!(!run.stdout.contains("sk-very-secret-key"), "{}", run.stdout);
    let run =
        scratch.run(HANGAR).arg("doctor").env("GH_TOKEN", "ghp_classic").env("COPILOT_OFFLINE", "1").finish();
    assert!(run.stdout.contains("classic token") && !run.stdout.contains("ghp_classic"), "{}", run.stdout);
}

#[test]
fn doctor_is_content_when_all_is_well() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let run = hangar(&scratch, &model).arg("doctor").finish().expect_exit(0);
    assert!(run.stdout.contains(" sandbox: "), "{}", run.stdout);
}

#[test]
fn sessions_are_listed_shown_exported_and_deleted() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let run =
        hangar(&scratch, &model).args(["-p", "SAY:hello there", "--output-format", "json", "--name", "mine"]);
    let id = run.finish().session_id();
    let listed = bare(&scratch, &["sessions"]).expect_exit(0);
    assert!(listed.stdout.contains(&id) && listed.stdout.contains("mine"), "{}", listed.stdout);
    let shown = bare(&scratch, &["sessions", "show", "mine"]).expect_exit(0);
    assert!(shown.stdout.contains("hello there"), "{}", shown.stdout);
    bare(&scratch, &["sessions", "export", &id[..8], "-o", "out.md"]).expect_exit(0);
    let exported = std::fs::read_to_string(scratch.work().join("out.md")).expect("the export");
    assert!(exported.contains("hello there"));
    bare(&scratch, &["sessions", "delete", &id]).expect_exit(0);
    assert!(scratch.sessions().is_empty());
    let gone = bare(&scratch, &["sessions", "show", &id]).expect_exit(1);
    assert!(gone.stderr.contains(&id), "{}", gone.stderr);
}

#[test]
fn the_scripted_model_is_used_by_name_only_and_says_so() {
    let scratch = Scratch::new();
    let run = bare(&scratch, &["--model", "scripted", "-s", "-p", "SAY:rehearsed"]).expect_exit(0);
    assert_eq!(run.stdout.trim(), "rehearsed");
    assert!(run.stderr.contains("scripted model"), "{}", run.stderr);
    let script = scratch.file("play.txt", "# a play\nSAY:first act\n---\nSAY:second act\n");
    let run = scratch
        .run(HANGAR)
        .args(["--model", "scripted", "-s", "-p", "anything"])
        .env("HANGAR_SCRIPT", &script)
        .finish();
    assert_eq!(run.stdout.trim(), "first act");
}

#[test]
fn a_recording_answers_again_without_a_model() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let prompt = "THINK:hm\nSAY:kept";
    hangar(&scratch, &model).args(["-s", "-p", prompt, "--record", "talk.jsonl"]).finish().expect_exit(0);
    let asked = model.requests().len();
    let run =
        hangar(&scratch, &model).args(["-s", "-p", prompt, "--replay", "talk.jsonl"]).finish().expect_exit(0);
    assert_eq!(run.stdout.trim(), "kept");
    assert_eq!(model.requests().len(), asked);
    let run =
        hangar(&scratch, &model).args(["-s", "-p", "something else", "--replay", "talk.jsonl"]).finish();
    let run = run.expect_exit(1);
    assert!(run.stderr.contains("something else"), "{}", run.stderr);
}

#[test]
fn model_serve_offers_the_scripted_model_to_others() {
    let scratch = Scratch::new();
    let mut server = scratch.run(HANGAR).args(["model", "serve", "--port", "0"]).start();
    let line = server.next_line().expect("the address").to_owned();
    let url = line.strip_prefix("listening on ").expect("the address on the first line");
    let run =
        scratch.run(HANGAR).provider(url).args(["-s", "-p", "SAY:over the wire"]).finish().expect_exit(0);
    assert_eq!(run.stdout.trim(), "over the wire");
    server.signal(hangar_test_support::Signal::TERM);
    server.finish().expect_exit(0);
}

#[test]
fn mcp_servers_are_added_shown_switched_and_removed() {
    let scratch = Scratch::new();
    let added = bare(&scratch, &["mcp", "add", "local", "--env", "KEY=s3cret", "--", "node", "x.js", "-y"])
        .expect_exit(0);
    assert!(
        added.stdout.contains("Command: node x.js -y") && added.stdout.contains("KEY: ***"),
        "{}",
        added.stdout
    );
    let args = ["mcp", "add", "--transport", "http", "far", "https://x.example/mcp", "--header", "X: y"];
    bare(&scratch, &args).expect_exit(0);
    let listed = bare(&scratch, &["mcp", "list"]).expect_exit(0).stdout;
    assert_eq!(listed.trim(), "User servers:\n  local (local)\n  far (http)");
    bare(&scratch, &["mcp", "disable", "far"]).expect_exit(0);
    let shown = bare(&scratch, &["mcp", "get", "far", "--show-secrets"]).expect_exit(0).stdout;
    assert!(shown.contains("Status: Disabled") && shown.contains("X: y"), "{shown}");
    let again = bare(&scratch, &["mcp", "add", "local", "--", "x"]).expect_exit(1);
    assert!(again.stderr.contains("mcp remove local"), "{}", again.stderr);
    let bad = bare(&scratch, &["mcp", "add", "odd", "--env", "s3cret", "--", "x"]).expect_exit(1);
    assert!(!bad.stderr.contains("s3cret"), "{}", bad.stderr);
    bare(&scratch, &["mcp", "remove", "local"]).expect_exit(0);
    bare(&scratch, &["mcp", "remove", "local"]).expect_exit(1);
    let json = bare(&scratch, &["mcp", "list", "--json"]).expect_exit(0).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(json["mcpServers"]["far"]["enabled"], false);
}

#[test]
fn a_session_is_forked_and_rewound_to_a_prompt() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let first =
        hangar(&scratch, &model).args(["-p", "SAY:one", "--output-format", "json"]).finish().expect_exit(0);
    let session = first.result()["sessionId"].as_str().expect("an id").to_owned();
    let resume = format!("--resume={session}");
    hangar(&scratch, &model).args([&resume, "-p", "SAY:two"]).finish().expect_exit(0);
    let prompts = bare(&scratch, &["sessions", "rewind", &session]).expect_exit(0).stdout;
    let second = prompts.lines().nth(1).expect("two prompts").split(' ').next().expect("an id").to_owned();
    let forked = bare(&scratch, &["sessions", "fork", &session, "--before", &second, "--name", "before two"])
        .expect_exit(0);
    assert!(forked.stdout.contains("Forked"), "{}", forked.stdout);
    let output_tokens = || {
        let listed = bare(&scratch, &["sessions", "list", "--json"]).expect_exit(0).stdout;
        let listed: Vec<serde_json::Value> = serde_json::from_str(&listed).expect("JSON");
        let fork = listed.into_iter().find(|row| row["name"] == "before two");
        fork.expect("the fork")["outputTokens"].clone()
    };
    assert_eq!(output_tokens(), serde_json::Value::Null, "usage of the other session");
    let run = ["--resume=before two", "-p", "SAY:other", "--output-format", "json", "--all-events"];
    let run = hangar(&scratch, &model).args(run).finish().expect_exit(0);
    let events = run.events();
    let usage = &Finished::of_type(&events, "assistant.usage")[0]["data"];
    assert_eq!(output_tokens(), usage["outputTokens"], "{usage}");
    let asked = model.last_request()["messages"].to_string();
    assert!(asked.contains("SAY:one") && !asked.contains("SAY:two"), "{asked}");
    bare(&scratch, &["sessions", "rewind", &session, "--to", &second]).expect_exit(0);
    hangar(&scratch, &model).args([&resume, "-p", "SAY:three"]).finish().expect_exit(0);
    let asked = model.last_request()["messages"].to_string();
    assert!(asked.contains("SAY:one") && !asked.contains("SAY:two"), "{asked}");
    let missing = bare(&scratch, &["sessions", "rewind", &session, "--to", "nothing"]).expect_exit(1);
    assert!(missing.stderr.contains("lists its prompts"), "{}", missing.stderr);
}

/// A home with one OpenAI-compatible provider `p`, and further lines of configuration before it.
fn with_provider(scratch: &Scratch, before: &str, url: &str) {
    std::fs::create_dir_all(scratch.state()).expect("a home");
    let config = format!("{before}\n[providers.p]\nbase_url = \"{url}/v1\"\n");
    std::fs::write(scratch.state().join("config.toml"), config).expect("a configuration");
}

#[test]
fn models_tells_what_holds_of_a_model_and_where_that_comes_from() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    with_provider(&scratch, "small_model = \"p/tiny\"\n", model.url());
    let run = bare(&scratch, &["models"]).expect_exit(0);
    let line = run.stdout.lines().find(|line| line.starts_with("p/mock-model")).expect("the model");
    assert!(line.contains("prompt 128k (default)"), "{line}");
    assert!(line.contains("small model p/tiny (config)"), "{line}");
    let run = bare(&scratch, &["models", "--json"]).expect_exit(0);
    let rows: serde_json::Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(rows[0]["resolved"]["sources"]["prompt"], "default", "{rows}");
    assert_eq!(rows[0]["resolved"]["smallModelSource"], "config", "{rows}");
}

#[test]
fn a_catalogue_of_the_user_s_own_is_used_and_a_broken_one_is_named() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    std::fs::create_dir_all(scratch.state()).expect("a home");
    let configure = |before: &str| {
        let provider = format!("[providers.p]\ntype = \"groq\"\nbase_url = \"{}/v1\"\n", model.url());
        std::fs::write(scratch.state().join("config.toml"), format!("{before}{provider}")).expect("a file");
    };
    configure("");
    let catalogue = scratch.state().join("models.json");
    let entry = serde_json::json!({
        "limit": { "context": 64000, "output": 4000 },
        "reasoning_options": [{ "type": "effort", "values": ["low", "high"] }],
        "cost": { "input": 1, "output": 2, "tiers": [{ "input": 2, "output": 4, "tier": { "type": "context", "size": 20000 } }] },
    });
    let file = serde_json::json!({ "groq": { "models": { "mock-model": entry } } });
    std::fs::write(&catalogue, file.to_string()).expect("a file");
    let shows = |parts: &[&str]| {
        let run = bare(&scratch, &["models"]).expect_exit(0);
        for part in parts {
            assert!(run.stdout.contains(part), "{part} in {}", run.stdout);
        }
    };
    shows(&[
        "window 64k (user file)",
        "efforts low high (user file)",
        "$1.00 in, $2.00 out per million (user file)",
    ]);
    shows(&["prompt 20k (user file)", "60k with use_full_window"]);
    configure("[models]\nuse_full_window = true\n\n");
    shows(&["prompt 60k (user file)"]);
    std::fs::write(&catalogue, "[]").expect("a file");
    let run = bare(&scratch, &["models"]).expect_exit(1);
    assert!(run.stderr.contains("models.json") && run.stderr.contains("models.dev"), "{}", run.stderr);
}

#[test]
fn a_bad_effort_is_answered_with_those_that_the_model_takes_and_a_lowered_one_is_told() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    with_provider(&scratch, "", model.url());
    let ask = |effort: &str| {
        bare(&scratch, &["-p", "SAY:hi", "--model", "p/gpt-5", "--effort", effort, "--output-format", "json"])
    };
    let run = ask("extreme").expect_exit(1);
    assert!(run.stderr.contains("`extreme`"), "{}", run.stderr);
    assert!(run.stderr.contains("`gpt-5` takes minimal, low, medium, high"), "{}", run.stderr);
    let events = ask("max").expect_exit(0).events();
    let warnings = Finished::of_type(&events, "session.warning");
    let told = |text: &str| warnings.iter().filter(|event| event.to_string().contains(text)).count();
    assert_eq!(told("does not take the effort max; it gets high"), 1, "{warnings:?}");
    let events = ask("high").expect_exit(0).events();
    assert!(!format!("{events:?}").contains("does not take the effort"));
}

#[test]
fn an_effort_that_is_not_sent_is_told_in_text_too() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    std::fs::create_dir_all(scratch.state()).expect("a home");
    let check = |name: &str, part: &str| {
        let config = format!(
            "[providers.p]\nbase_url = \"{}/v1\"\nhost = \"openai\"\nwire_api = \"completions\"\napi_key = \"k\"\n",
            model.url()
        );
        std::fs::write(scratch.state().join("config.toml"), config).expect("a file");
        let named = format!("p/{name}");
        let run = bare(&scratch, &["-p", "SAY:hi", "--model", &named, "--effort", "high"]).expect_exit(0);
        assert_eq!(run.stderr.matches(part).count(), 1, "{}", run.stderr);
    };
    check("gpt-4.1", "`gpt-4.1` takes no effort; it is asked without the effort high");
    check("gpt-5.4", "although the effort is high");
}

#[test]
fn the_probe_says_what_works_and_what_it_costs_at_most() {
    let scratch = Scratch::new();
    let script = scratch.tmp().join("script.txt");
    let call = "TOOL:report_word:{\"word\":\"blue\"}";
    std::fs::write(&script, format!("THINK:easy\nSAY:ready\n{call}\n")).expect("a script");
    let script = script.display().to_string();
    let mut server = scratch.run(HANGAR).args(["model", "serve", "--port", "0", "--script", &script]).start();
    let line = server.next_line().expect("the address").to_owned();
    let url = line.strip_prefix("listening on ").expect("the address on the first line");
    with_provider(&scratch, "model = \"p/gpt-5\"\n", url);
    let run = bare(&scratch, &["doctor", "--probe"]);
    let said = run.stdout.lines().find(|line| line.contains("probe p:")).expect("a finding");
    for part in ["ok  probe p: gpt-5: text yes", "tool call yes", "streaming yes", "tokens in", "$0.00"] {
        assert!(said.contains(part), "{part} in {said}");
    }
    assert!(
        run.stderr.contains("asking gpt-5 at p: about") && run.stderr.contains("at most"),
        "{}",
        run.stderr
    );
    server.signal(hangar_test_support::Signal::TERM);
    server.finish().expect_exit(0);
}

#[test]
fn a_probe_of_a_model_that_calls_no_tool_is_bad() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    with_provider(&scratch, "model = \"p/mock-model\"\n", model.url());
    let run = bare(&scratch, &["doctor", "--probe"]).expect_exit(2);
    assert!(run.stdout.contains("BAD probe p: mock-model: text yes, tool call no"), "{}", run.stdout);
    assert!(run.stderr.contains("an unknown price"), "{}", run.stderr);
}

#[test]
fn a_provider_without_a_configured_model_is_probed_with_one_of_its_list() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    with_provider(&scratch, "", model.url());
    let run = bare(&scratch, &["doctor", "--probe"]).expect_exit(2);
    assert!(run.stdout.contains("probe p: gpt-5: text yes"), "{}", run.stdout);
}

#[test]
fn a_provider_that_lists_no_models_is_not_passed_over() {
    let scratch = Scratch::new();
    with_provider(&scratch, "", "http://127.0.0.1:9");
    let run = bare(&scratch, &["doctor", "--probe"]).expect_exit(2);
    let said = "BAD probe p: not asked, for want of a model: set `model` in [providers.p]";
    assert!(run.stdout.contains(said), "{}", run.stdout);
}
