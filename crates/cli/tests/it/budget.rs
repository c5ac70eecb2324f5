//! Costs of runs, and caps on them: flags, configuration, errors and exit codes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::{Finished, Invocation, ModelServer, Scratch};
use serde_json::Value;

use crate::hangar;

/// A command that gives the same each time.
const LOOK: &str = r#"TOOL:bash:{"command":"echo x","description":"d"}"#;

/// A run with a model that has a price.
fn priced(scratch: &Scratch, model: &ModelServer) -> Invocation {
    hangar(scratch, model).env("COPILOT_MODEL", "gpt-4.1").arg("--allow-all-tools")
}

fn configure(scratch: &Scratch, text: &str) {
    std::fs::create_dir_all(scratch.state()).unwrap();
    std::fs::write(scratch.state().join("config.toml"), text).unwrap();
}

/// Runs a prompt with flags that end it; answers its only error, with the number of calls.
fn stopped(scratch: &Scratch, model: &ModelServer, prompt: &str, flags: &[&str]) -> (String, String, usize) {
    let before = model.requests().len();
    let args = ["-p", prompt, "--output-format", "json"];
    let events = priced(scratch, model).args(args).args(flags).finish().expect_exit(1).events();
    let errors = Finished::of_type(&events, "session.error");
    assert_eq!(errors.len(), 1, "{events:#?}");
    let data = |name: &str| errors[0]["data"][name].as_str().unwrap_or_default().to_owned();
    (data("errorType"), data("message"), model.requests().len() - before)
}

#[test]
fn every_figure_has_the_cost_of_the_run() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let path = scratch.work().join("usage.json");
    let args = ["-p", "SAY:hello", "--output-format", "json", "--all-events", "--usage-output-file"];
    let events = priced(&scratch, &model).args(args).arg(&path).finish().expect_exit(0).events();
    let usage = Finished::of_type(&events, "assistant.usage")[0]["data"].clone();
    // Two dollars for a million tokens in, eight for a million out.
    let tokens = |name: &str| usage[name].as_f64().unwrap();
    let expected = (tokens("inputTokens") * 2.0 + tokens("outputTokens") * 8.0) / 1e6;
    let is_cost = |cost: &Value| (cost.as_f64().unwrap() - expected).abs() < 1e-9;
    assert!(expected > 0.0 && is_cost(&usage["cost"]), "{usage}");
    let result = Finished::of_type(&events, "result")[0]["usage"].clone();
    assert!(is_cost(&result["costUsd"]), "{result}");
    let file: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    assert!(is_cost(&file["totalCostUsd"]) && file["unpricedCalls"] == 0, "{file}");
    let listed = hangar(&scratch, &model).args(["sessions", "list", "--json"]).finish().expect_exit(0);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert!(is_cost(&listed[0]["costUsd"]), "{listed}");
}

#[test]
fn an_unknown_price_is_told_as_unknown() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let args = ["-p", "SAY:hello", "--output-format", "json", "--all-events"];
    let events = hangar(&scratch, &model).args(args).finish().expect_exit(0).events();
    assert!(Finished::of_type(&events, "assistant.usage")[0]["data"].get("cost").is_none());
    let result = Finished::of_type(&events, "result")[0]["usage"].clone();
    assert!(result.get("costUsd").is_none() && result["unpricedCalls"] == 1, "{result}");
}

#[test]
fn the_footer_tells_the_cost() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let run = priced(&scratch, &model).args(["-p", "SAY:hello"]).finish().expect_exit(0);
    assert!(run.stderr.contains("\nCost       $0."), "{}", run.stderr);
    let run = hangar(&scratch, &model).args(["-p", "SAY:hello"]).finish().expect_exit(0);
    assert!(
        run.stderr.contains("\nCost       unknown (the price of 1 call is not known)\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn a_cap_on_cost_without_a_price_is_refused_before_anything_is_made() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let run = hangar(&scratch, &model).args(["-p", "SAY:x", "--max-cost", "1"]).finish().expect_exit(1);
    assert!(run.stderr.contains("`mock-model`") && run.stderr.contains("price = {"), "{}", run.stderr);
    assert_eq!(model.requests().len(), 0);
    assert!(!scratch.state().join("session-state").exists());
}

#[test]
fn a_price_of_the_configuration_is_used() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let url = model.url();
    configure(
        &scratch,
        &format!(
            "model = \"own/mine\"\n[providers.own]\nbase_url = \"{url}/v1\"\napi_key = \"k\"\nprice = {{ input = 1000, output = 0 }}\n"
        ),
    );
    let run = scratch.run(crate::HANGAR).args(["-p", "SAY:x", "--max-cost", "500"]);
    let run = run.args(["--output-format", "json", "--all-events"]);
    let events = run.env("COPILOT_OFFLINE", "true").finish().expect_exit(0).events();
    let usage = Finished::of_type(&events, "assistant.usage")[0]["data"].clone();
    let cost = usage["inputTokens"].as_f64().unwrap() / 1000.0;
    assert!((usage["cost"].as_f64().unwrap() - cost).abs() < 1e-9, "{usage}");
}

#[test]
fn no_call_is_made_that_could_pass_a_cap() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let (kind, message, calls) = stopped(&scratch, &model, "SAY:x", &["--max-cost", "0.0001"]);
    assert_eq!((kind.as_str(), calls), ("budget", 0));
    assert!(message.contains("$0.00 of $0.0001") && message.contains("`--max-cost`"), "{message}");
    let (kind, message, calls) = stopped(&scratch, &model, "SAY:x", &["--max-tokens", "100"]);
    assert_eq!((kind.as_str(), calls), ("budget", 0));
    assert!(message.contains("0 of 100 tokens"), "{message}");
    let (kind, message, calls) = stopped(&scratch, &model, LOOK, &["--max-turns", "1"]);
    assert_eq!((kind.as_str(), calls), ("budget", 1));
    assert!(message.contains("1 of 1 turns"), "{message}");
}

#[test]
fn the_configuration_has_caps_and_a_flag_replaces_them() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    configure(&scratch, "[budget]\nmax_turns = 1\n");
    let (kind, _, calls) = stopped(&scratch, &model, LOOK, &[]);
    assert_eq!((kind.as_str(), calls), ("budget", 1));
    priced(&scratch, &model).args(["-p", LOOK, "--max-turns", "9"]).finish().expect_exit(0);
    configure(&scratch, "[budget]\nmax_turns = 0\n");
    let run = priced(&scratch, &model).args(["-p", "SAY:x"]).finish().expect_exit(1);
    assert!(run.stderr.contains("max_turns"), "{}", run.stderr);
}

#[test]
fn a_resumed_session_has_spent_what_it_spent() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    priced(&scratch, &model).args(["-p", "SAY:x", "--max-turns", "1"]).finish().expect_exit(0);
    let (kind, message, calls) = stopped(&scratch, &model, "SAY:y", &["--max-turns", "1", "--continue"]);
    assert_eq!((kind.as_str(), calls), ("budget", 0));
    assert!(message.contains("1 of 1 turns"), "{message}");
    priced(&scratch, &model).args(["-p", "SAY:y", "--max-turns", "2", "--continue"]).finish().expect_exit(0);
}

#[test]
fn the_budget_of_run_is_a_cap_on_the_cost_of_our_own_agent() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let run = |budget: &str| {
        let args =
            ["run", "--runtime", "native", "-p", "SAY:x", "--output-format", "json", "--budget", budget];
        scratch.run(crate::HANGAR).args(args).arg(format!("--rehearse={}", model.url())).finish()
    };
    run("2").expect_exit(0);
    let events = run("0.0001").expect_exit(1).events();
    let errors = Finished::of_type(&events, "session.error");
    assert_eq!(errors[0]["data"]["errorType"], "budget", "{events:#?}");
}

#[test]
fn a_model_that_repeats_itself_is_stopped() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let (kind, message, calls) = stopped(&scratch, &model, &format!("REPEAT:20:{LOOK}"), &[]);
    assert_eq!((kind.as_str(), calls), ("repetition", 5));
    assert!(message.contains("bash 5 times"), "{message}");
}
