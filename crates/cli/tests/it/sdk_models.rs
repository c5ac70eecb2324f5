//! Models and efforts that clients ask for: what is not there is refused with what is.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::{ModelServer, Scratch, VendorServer};
use serde_json::{Value, json};

use crate::HANGAR;
use crate::sdk::{Client, ID, of_session};

/// A server with a simulated vendor whose list of models is known.
pub(crate) struct Stage {
    pub(crate) scratch: Scratch,
    pub(crate) vendor: VendorServer,
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self::of("openai-responses", "host = \"openai\"")
    }

    fn of(vendor: &str, line: &str) -> Self {
        let stage = Self { scratch: Scratch::new(), vendor: VendorServer::start(vendor) };
        let config = format!(
            "model = \"v/gpt-5.6-terra\"\n[providers.v]\nbase_url = \"{}\"\napi_key = \"k\"\n{line}\n",
            stage.vendor.base_url()
        );
        std::fs::create_dir_all(stage.scratch.state()).unwrap();
        std::fs::write(stage.scratch.state().join("config.toml"), config).unwrap();
        stage
    }

    fn client(&self) -> Client {
        Client::of(self.scratch.run(HANGAR).env("COPILOT_OFFLINE", "true"))
    }

    fn sessions(&self) -> usize {
        std::fs::read_dir(self.scratch.state().join("session-state")).map_or(0, Iterator::count)
    }
}

/// The error of a call that must be refused.
fn refused(client: &mut Client, method: &str, params: Value) -> String {
    let answer = client.answer(method, params);
    answer["error"]["message"]
        .as_str()
        .unwrap_or_else(|| panic!("{method} was not refused: {answer}"))
        .to_owned()
}

#[test]
fn a_model_that_the_provider_does_not_list_is_refused_with_the_nearest_and_leaves_no_session() {
    let stage = Stage::new();
    stage.scratch.run(HANGAR).env("COPILOT_OFFLINE", "true").arg("models").finish().expect_exit(0);
    let mut client = stage.client();
    let wanted = |model: &str| json!({ "sessionId": ID, "model": model });
    let told = refused(&mut client, "session.create", wanted("v/gpt-5.6-tera"));
    assert!(told.contains("`gpt-5.6-tera`") && told.contains("gpt-5.6-terra"), "{told}");
    // A name alone is one of the default provider.
    let told = refused(&mut client, "session.create", wanted("nosuch"));
    assert!(told.contains("the provider `v` has no model `nosuch`"), "{told}");
    assert!(told.ends_with("`hangar models` lists them"), "{told}");
    assert_eq!(stage.sessions(), 0);
    client.call("session.create", wanted("v/gpt-5.6-terra"));
    let other = json!({ "modelId": "v/gpt-5.6-tera" });
    let told = refused(&mut client, "session.model.switchTo", of_session(other));
    assert!(told.contains("`gpt-5.6-tera`") && told.contains("gpt-5.6-terra"), "{told}");
    let typed = json!({ "name": "model", "input": "v/gpt-5.6-tera" });
    let told = refused(&mut client, "session.commands.invoke", of_session(typed));
    assert!(told.contains("the nearest models are gpt-5.6-terra"), "{told}");
    client.call("session.destroy", of_session(json!({})));
    client.call("session.delete", of_session(json!({})));
    // One that the client brings is the client's affair.
    let own = json!({ "baseUrl": stage.vendor.base_url(), "apiKey": "k", "type": "openai" });
    client.call("session.create", json!({ "sessionId": ID, "model": "gpt-5.6-tera", "provider": own }));
    assert_eq!(stage.sessions(), 1);
    client.finish();
}

/// GitHub's list is that of one account, and plans change: a new session has what is listed, and one that runs may try the rest of the
/// catalogue, as in the reference.
#[test]
fn a_running_session_may_switch_to_a_model_of_github_that_the_account_does_not_list() {
    let stage = Stage::of("copilot", "type = \"copilot\"");
    let mut client = stage.client();
    let wanted = |model: &str| json!({ "sessionId": ID, "model": model });
    client.call("session.create", wanted("v/gpt-5.6-terra"));
    let told = refused(&mut client, "session.create", json!({ "model": "v/claude-opus-4.5" }));
    assert!(told.contains("has no model `claude-opus-4.5`"), "{told}");
    let switch = |model: &str| of_session(json!({ "modelId": model }));
    client.call("session.model.switchTo", switch("v/claude-opus-4.5"));
    assert_eq!(client.event("session.model_change")["newModel"], "v/claude-opus-4.5");
    let told = refused(&mut client, "session.model.switchTo", switch("v/nosuch"));
    assert!(told.contains("has no model `nosuch`"), "{told}");
    client.finish();
}

#[test]
fn a_model_of_another_provider_is_refused_with_its_name_there() {
    let stage = Stage::new();
    let (path, other) = (stage.scratch.state().join("config.toml"), VendorServer::start("anthropic"));
    let mut config = std::fs::read_to_string(&path).unwrap();
    config += &format!(
        "[providers.other]\ntype = \"anthropic\"\nbase_url = \"{}\"\napi_key = \"k\"\nhost = \"anthropic\"\n",
        other.base_url()
    );
    std::fs::write(&path, config).unwrap();
    stage.scratch.run(HANGAR).env("COPILOT_OFFLINE", "true").arg("models").finish().expect_exit(0);
    let expected = "another provider has `other/claude-opus-5-5`";
    let mut client = stage.client();
    let wanted = json!({ "sessionId": ID, "model": "v/claude-opus-5-5" });
    let told = refused(&mut client, "session.create", wanted);
    assert!(told.contains(expected), "{told}");
    assert_eq!(stage.sessions(), 0);
    client.finish();
}

#[test]
fn a_session_without_a_provider_lacks_authentication() {
    let scratch = Scratch::new();
    let mut client = Client::of(scratch.run(HANGAR).env("COPILOT_OFFLINE", "true"));
    client.call("session.create", json!({ "sessionId": ID }));
    client.call("session.send", of_session(json!({ "prompt": "hi" })));
    let error = client.event("session.error");
    assert_eq!(error["errorType"], "authentication", "{error}");
    client.finish();

    let run = scratch.run(HANGAR).env("COPILOT_OFFLINE", "true");
    let run = run.args(["run", "--runtime", "native", "-p", "hi", "--output-format", "json"]).finish();
    let printed = run.expect_exit(1).stdout;
    assert!(printed.contains(r#""errorType":"authentication""#), "{printed}");
    assert!(printed.contains("no model provider is configured: `hangar` in a terminal"), "{printed}");
}

#[test]
fn directories_that_are_added_later_are_checked_and_listed() {
    let (stage, added) = (Stage::new(), Scratch::new());
    let mut client = stage.client();
    client.call("session.create", json!({ "sessionId": ID, "model": "v/gpt-5" }));
    let with = |dir: &str| of_session(json!({ "additionalDirectories": [dir] }));
    let told = refused(&mut client, "session.options.update", with("/nope"));
    assert!(told.contains("/nope"), "{told}");
    let dir = added.state().parent().unwrap().canonicalize().unwrap().display().to_string();
    client.call("session.options.update", with(&dir));
    let listed = client.call("session.commands.invoke", of_session(json!({ "name": "list-dirs" })));
    assert!(listed.to_string().contains(&dir), "{listed}");
    client.finish();
}

#[test]
fn without_a_list_every_model_may_be_right() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.call("session.create", json!({ "sessionId": ID, "model": "v/gpt-5.6-tera" }));
    client.finish();
}

#[test]
fn an_effort_that_is_none_is_refused_with_those_that_the_model_takes() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.call("session.create", json!({ "sessionId": ID, "model": "v/gpt-5", "reasoningEffort": "low" }));
    let takes = "takes minimal, low, medium, high";
    for (method, params) in [
        ("session.model.switchTo", json!({ "modelId": "v/gpt-5", "reasoningEffort": "extreme" })),
        ("session.options.update", json!({ "reasoningEffort": "extreme" })),
        ("session.model.setReasoningEffort", json!({ "reasoningEffort": "extreme" })),
    ] {
        let told = refused(&mut client, method, of_session(params));
        assert!(told.contains("`extreme`") && told.contains(takes), "{method}: {told}");
    }
    let current = client.call("session.model.getCurrent", of_session(json!({})));
    assert_eq!(current["reasoningEffort"], "low", "what was refused changed nothing");
    client.finish();
}

#[test]
fn a_lowered_effort_is_told_whenever_it_is_chosen() {
    let stage = Stage::new();
    let mut client = stage.client();
    client.call(
        "session.create",
        json!({ "sessionId": ID, "model": "v/gpt-5.6-terra", "reasoningEffort": "max" }),
    );
    // The effort is kept, and the other model does not have it.
    client.call("session.model.switchTo", of_session(json!({ "modelId": "v/gpt-5" })));
    let told = client.event("session.warning")["message"].as_str().unwrap().to_owned();
    assert!(told.contains("does not take the effort max; it gets high"), "{told}");
    client.call("session.model.setReasoningEffort", of_session(json!({ "reasoningEffort": "xhigh" })));
    let told = client.event("session.warning")["message"].as_str().unwrap().to_owned();
    assert!(told.contains("does not take the effort xhigh; it gets high"), "{told}");
    client.finish();
}

#[test]
fn a_client_s_provider_is_asked_for_the_same_model_after_a_resume() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let url = format!("{}/v1", model.url());
    let config = format!(
        "[providers.first]\nbase_url = \"http://127.0.0.1:1/v1\"\n[providers.openai]\nbase_url = \"{url}\"\n"
    );
    std::fs::create_dir_all(scratch.state()).unwrap();
    std::fs::write(scratch.state().join("config.toml"), config).unwrap();
    let own = json!({ "type": "openai", "baseUrl": url });
    let ask = |method: &str, config: Value| {
        let mut client = Client::of(scratch.run(HANGAR).env("COPILOT_OFFLINE", "true"));
        client.call(method, config);
        client.send("SAY:hi");
        client.event("session.idle");
        let current = client.call("session.model.getCurrent", of_session(json!({})));
        client.finish();
        current["modelId"].clone()
    };
    let created = json!({ "sessionId": ID, "model": "gpt-5.6-sol", "provider": &own });
    assert_eq!(ask("session.create", created), "gpt-5.6-sol");
    assert_eq!(ask("session.resume", json!({ "sessionId": ID, "provider": &own })), "gpt-5.6-sol");
    let asked: Vec<Value> =
        model.requests().into_iter().map(|mut request| request.body["model"].take()).collect();
    assert_eq!(asked, ["gpt-5.6-sol"; 2]);
}
