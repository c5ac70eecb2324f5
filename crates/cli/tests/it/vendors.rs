//! The agent with simulated vendors, which refuse what the real ones refuse.

use hangar_test_support::simulators::Profile;
use hangar_test_support::{Finished, Invocation, Scratch, Signal, VendorServer};

use crate::HANGAR;

/// `hangar` with a simulated vendor as its provider.
fn with_vendor(scratch: &Scratch, vendor: &VendorServer, kind: &str, wire: &str) -> Invocation {
    scratch
        .run(HANGAR)
        .env("COPILOT_PROVIDER_BASE_URL", vendor.base_url())
        .env("COPILOT_PROVIDER_TYPE", kind)
        .env("COPILOT_PROVIDER_WIRE_API", wire)
        .env("COPILOT_PROVIDER_API_KEY", "sk-test")
        .env("COPILOT_MODEL", vendor.profile().models[0])
        .env("COPILOT_OFFLINE", "true")
        .env("HANGAR_RETRY_SCALE", "0.01")
}

const WORK: &str = "\
THINK:Look first.
TOOL:bash:{\"command\":\"echo one\",\"description\":\"Say one\"}
THINK:Now the rest.
PTOOL:bash:{\"command\":\"echo two\",\"description\":\"Say two\"}
TOOL:bash:{\"command\":\"echo three\",\"description\":\"Say three\"}
SAY:all done";

/// A run with calls after reasoning, and nothing is refused.
fn check(name: &str, kind: &str, wire: &str) {
    let (scratch, vendor) = (Scratch::new(), VendorServer::start(name));
    let run = with_vendor(&scratch, &vendor, kind, wire).args(["-s", "--allow-all-tools", "-p", WORK]);
    assert_eq!(run.finish().expect_exit(0).stdout.trim(), "all done", "{name}");
    let totals = vendor.finish();
    assert_eq!(totals.answers, 3, "{name}");
    assert!(totals.usage.reasoning > 0 && totals.usage.cache_read > 0, "{name}: {totals:?}");
}

#[test]
fn calls_after_thinking_pass_with_anthropic() {
    check("anthropic", "anthropic", "completions");
}

#[test]
fn calls_after_reasoning_pass_with_openai_responses() {
    check("openai-responses", "openai", "responses");
}

#[test]
fn simulated_vendors_are_served_to_other_programs() {
    let scratch = Scratch::new();
    let serve = ["model", "serve", "--vendor", "anthropic", "--vendor", "openai-responses", "--lenient"];
    let mut server = scratch.run(HANGAR).args(serve).start();
    let first = server.next_line().expect("the address").to_owned();
    let url = first.strip_prefix("listening on ").expect("the address on the first line").to_owned();
    for profile in ["anthropic", "openai-responses"].map(|name| Profile::find(name).expect("a vendor")) {
        let line = server.next_line().expect("a line per vendor");
        let base = format!("{url}/{}{}", profile.name, profile.base_path);
        assert_eq!(line, format!("{}: {base} (model {})", profile.name, profile.models[0]));
    }
    server.signal(Signal::TERM);
    server.finish().expect_exit(0);
    let unknown = scratch.run(HANGAR).args(["model", "serve", "--vendor", "nobody"]).finish();
    assert!(unknown.expect_exit(1).stderr.contains("anthropic"));
}

/// `hangar` with a configured vendor that searches the web.
fn searching(vendor: &VendorServer, kind: &str, args: &[&str]) -> Finished {
    let scratch = Scratch::new();
    std::fs::create_dir_all(scratch.state()).expect("a home");
    let config = format!(
        "[providers.v]\ntype = \"{kind}\"\nhost = \"{kind}\"\nbase_url = \"{}\"\napi_key = \"sk-test\"\nweb_search = true\n",
        vendor.base_url()
    );
    std::fs::write(scratch.state().join("config.toml"), config).expect("a configuration");
    let model = format!("v/{}", vendor.profile().models[0]);
    let run = scratch.run(HANGAR).args(["--model", &model, "-s", "--allow-all-tools", "-p", "What is new?"]);
    run.args(args).finish().expect_exit(0)
}

const SEARCH: &str = r#"
[[turn]]
say = [{ thinking = "Look." }, { search = "rust", found = [{ title = "News", url = "https://b.example" }] }, { call = "bash", input = { command = "echo one", description = "Say one" } }]
[[turn]]
say = [{ search = "rust blog", found = [{ title = "Blog", url = "https://a.example" }] }, { text = "It is out." }]
"#;

#[test]
fn a_provider_that_searches_the_web_is_asked_to_and_gets_its_blocks_back() {
    for (name, kind) in [("anthropic", "anthropic"), ("openai-responses", "openai")] {
        let vendor = VendorServer::with_scenario(name, SEARCH);
        let run = searching(&vendor, kind, &["--output-format", "json"]);
        let told = run.events().iter().map(ToString::to_string).collect::<String>();
        for part in ["Searched the web for “rust”.", "Sources:\\n- [Blog](https://a.example)"] {
            assert!(told.contains(part), "{name}: {part} is not in {told}");
        }
        let totals = vendor.finish();
        assert_eq!((totals.answers, totals.usage.searches), (2, 2), "{name}");
    }
}

#[test]
fn a_search_that_was_paused_goes_on_without_a_word() {
    let paused = r#"
[[turn]]
say = [{ thinking = "Look." }, { search = "rust", found = [{ title = "Blog", url = "https://a.example" }] }]
end = "pause"
[[turn]]
say = [{ text = "It is out." }]
expect = { absent = ["/messages/2"], equal = { "/messages/1/role" = "assistant" } }
"#;
    let vendor = VendorServer::with_scenario("anthropic", paused);
    let run = searching(&vendor, "anthropic", &[]);
    assert_eq!(run.stdout.trim(), "It is out.\n\nSources:\n- [Blog](https://a.example)");
    vendor.finish();
}

#[test]
fn a_search_is_not_offered_against_a_rule_or_a_cap() {
    for args in [
        ["--deny-tool", "web_search"],
        ["--deny-tool", "url"],
        ["--deny-url", "https://a.example"],
        ["--excluded-tools", "web_search"],
        ["--available-tools", "view"],
        ["--max-cost", "5"],
    ] {
        let vendor = VendorServer::with_scenario("anthropic", "[[turn]]\nsay = [{ text = \"Hi.\" }]");
        searching(&vendor, "anthropic", &args);
        vendor.finish();
        let tools = vendor.exchanges()[0].body["tools"].to_string();
        assert!(!tools.contains("web_search") && tools.contains("view"), "{args:?}: {tools}");
    }
}

/// Ends of answers that are not complete: the vendor's turns, the exit code of a run, and a part of what it prints.
const ENDS: &[(&str, &str, i32, &str)] = &[
    (
        "a text that is cut goes on",
        "[[turn]]\nsay = [{ text = \"one \" }]\nend = \"length\"\n[[turn]]\nsay = [{ text = \"two\" }]",
        0,
        "two",
    ),
    (
        "a call that is cut is not made",
        "[[turn]]\nsay = [{ call = \"bash\", arguments = '{\"command\": \"echo hi > made' }]\nend = \"length\"\n[[turn]]\nsay = [{ text = \"smaller\" }]",
        0,
        "smaller",
    ),
    ("a refusal", "[[turn]]\nsay = [{ text = \"no\" }]\nend = \"refusal\"", 1, "refused to answer"),
    (
        "an answer that is paused each time",
        "[[turn]]\nsay = [{ text = \"a\" }]\nend = \"pause\"\n[[turn]]\nsay = [{ text = \"b\" }]\nend = \"pause\"\n[[turn]]\nsay = [{ text = \"c\" }]\nend = \"pause\"\n[[turn]]\nsay = [{ text = \"d\" }]\nend = \"pause\"\n[[turn]]\nsay = [{ text = \"e\" }]\nend = \"pause\"\n[[turn]]\nsay = [{ text = \"f\" }]\nend = \"pause\"",
        1,
        "paused the model's answer again and again",
    ),
    ("a filter", "[[turn]]\nsay = [{ text = \"no\" }]\nend = \"content_filter\"", 1, "withheld the answer"),
];

#[test]
fn a_run_whose_answer_is_not_complete_exits_accordingly() {
    for (name, kind, wire) in
        [("anthropic", "anthropic", "completions"), ("openai-responses", "openai", "responses")]
    {
        for (what, turns, exit, printed) in ENDS {
            // Anthropic has no filter: its models refuse, and it pauses long answers.
            let is_only = if *what == "a filter" { "openai-responses" } else { "anthropic" };
            let is_general = what.contains("is cut");
            if !is_general && name != is_only {
                continue;
            }
            let (scratch, vendor) = (Scratch::new(), VendorServer::with_scenario(name, turns));
            let run = with_vendor(&scratch, &vendor, kind, wire)
                .args(["-s", "--allow-all-tools", "-p", "go"])
                .finish();
            let run = run.expect_exit(*exit);
            assert!(format!("{}{}", run.stdout, run.stderr).contains(printed), "{name}, {what}: {run:?}");
            assert!(!scratch.work().join("made").exists(), "{name}, {what}");
            vendor.finish();
        }
    }
}
