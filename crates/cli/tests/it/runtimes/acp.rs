//! Agents of the Agent Client Protocol: what only they can do.

use hangar_test_support::{Finished, ModelServer, Scratch};
use serde_json::json;

use super::configure;
use crate::HANGAR;

#[test]
fn with_rules_permissions_are_asked_for_and_denied_where_nobody_is() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let home = scratch.root().join("other-home");
    configure(
        &scratch,
        &format!(
            "[runtimes.mine]\nacp = [{}, \"--acp\"]\nenv = {{ HANGAR_HOME = {} }}\n",
            json!(HANGAR),
            json!(home)
        ),
    );
    let prompt = format!("TOOL:bash:{}", json!({ "command": "touch made", "description": "d" }));
    let run = |more: &[&str]| {
        let run =
            scratch.run(HANGAR).args(["run", "--runtime", "mine", "--output-format", "json", "--all-events"]);
        let run = run.arg(format!("--rehearse={}", model.url())).args(["-p", &prompt]).args(more);
        run.finish().expect_exit(0)
    };
    let denied = run(&["--allow-tool", "read"]);
    let events = denied.events();
    let asked = Finished::of_type(&events, "permission.requested");
    assert_eq!(asked.len(), 1, "{denied:#?}");
    assert_eq!(asked[0]["data"]["permissionRequest"]["fullCommandText"], "touch made");
    assert_eq!(Finished::of_type(&events, "permission.completed").len(), 1);
    assert!(!scratch.work().join("made").exists());
    let allowed = run(&[]);
    assert!(Finished::of_type(&allowed.events(), "permission.requested").is_empty());
    assert!(scratch.work().join("made").exists());
}
