//! The agent with simulated vendors, which refuse what the real ones refuse.

use hangar_test_support::simulators::Profile;
use hangar_test_support::{Invocation, Scratch, Signal, VendorServer};

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
