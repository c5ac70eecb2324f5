//! `hangar runtimes probe`: claims are proved, remembered, and compared with what is installed later.

use hangar_test_support::{Finished, Scratch};
use serde_json::{Value, json};

use super::{CODEX_PONG, configure, stand_in};
use crate::HANGAR;

fn json(run: &Finished) -> Value {
    serde_json::from_str(&run.stdout).expect("JSON")
}

#[test]
fn our_own_agent_can_what_it_claims() {
    let scratch = Scratch::new();
    let run = scratch.run(HANGAR).args(["runtimes", "probe", "native", "--json"]).finish().expect_exit(0);
    let probe = &json(&run)[0]["probe"];
    for ability in
        ["answer", "streaming", "tool_events", "resume", "input_tokens", "effort", "tool_rules", "mcp_config"]
    {
        assert_eq!(probe["proofs"][ability], "proved", "{probe}");
    }
    assert_eq!(probe["proofs"]["cost"], "proved");
    // It leaves a memory and nothing else.
    let left = std::fs::read_dir(scratch.state().join("runtimes")).expect("the memory").count();
    assert_eq!(left, 1);
}

#[test]
fn what_is_claimed_and_not_seen_needs_attention_and_other_help_is_drift() {
    let scratch = Scratch::new();
    let script = format!(
        "case \"$*\" in --version) echo codex-cli 9.8.7; exit;; *--help) cat help; exit;; esac\ncat >/dev/null\n{CODEX_PONG}"
    );
    let help = |text: &str| std::fs::write(scratch.home().join("help"), text).expect("a file in the home");
    help("flags: none");
    let program = stand_in(&scratch, "codex-program", &script);
    configure(&scratch, &format!("[runtimes.codex]\nprogram = {}\n", json!(program)));
    let run = |args: &[&str]| scratch.run(HANGAR).args(args).finish();
    let probed = run(&["runtimes", "probe", "codex", "--json"]).expect_exit(2);
    let proofs = json(&probed)[0]["probe"]["proofs"].clone();
    assert_eq!(proofs["resume"], "proved", "{proofs}");
    // The script calls no tool, whatever the model says.
    assert_eq!(proofs["tool_events"], "missing", "{proofs}");
    // Nor does it ask a model with what it was ordered.
    assert_eq!(
        (&proofs["effort"], &proofs["mcp_config"]),
        (&json!("missing"), &json!("missing")),
        "{proofs}"
    );

    let drift = || -> Vec<String> {
        let rows = json(&run(&["runtimes", "--json"]).expect_exit(0));
        let codex = rows.as_array().expect("rows").iter().find(|row| row["name"] == "codex").expect("codex");
        serde_json::from_value(codex["drift"].clone()).expect("sentences")
    };
    assert!(!drift().iter().any(|line| line.contains("--help")));
    help("flags: --new");
    assert!(drift().iter().any(|line| line.contains("--help has changed")), "{:?}", drift());
}
