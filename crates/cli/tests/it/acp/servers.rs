//! MCP servers that an editor brings along.

use hangar_test_support::process::Witness;
use hangar_test_support::{ModelServer, Scratch};
use serde_json::{Value, json};

use super::{Client, PATIENCE, stage, wait_for};

const ODD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/servers/odd.mjs");

impl Client {
    fn open_with(&mut self, servers: Value) -> String {
        let params = json!({ "cwd": self.cwd, "mcpServers": servers });
        self.call("session/new", &params)["sessionId"].as_str().unwrap().to_owned()
    }
}

/// A small server that behaves as told, as an editor writes it. Its starts are written down.
fn program(how: &str, scratch: &Scratch) -> Value {
    let env = json!([{ "name": "GIVEN", "value": "${HOME} as it is written" }]);
    json!({ "name": "s", "command": "node", "args": [ODD, how, scratch.root().join("starts")], "env": env })
}

fn told(model: &ModelServer) -> String {
    model.last_request()["messages"].to_string()
}

#[test]
fn servers_that_a_client_brings_are_those_of_its_session() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    client.call("initialize", &json!({ "protocolVersion": 1 }));
    let session = client.open_with(json!([program("fine", &scratch)]));
    let starts = scratch.root().join("starts");
    assert!(!starts.exists(), "it was started before anybody asked for anything");

    // A call of theirs is asked about like any other.
    let prompt = client.send_prompt(&session, "TOOL:s-env:{\"name\": \"GIVEN\"}\nSAY:done");
    let asked = client.decide("allow_once");
    assert_eq!(asked["params"]["toolCall"]["title"], "env");
    assert_eq!(client.answer_to(prompt)["result"]["stopReason"], "end_turn");
    assert!(told(&model).contains("${HOME} as it is written"), "{}", told(&model));

    // Another session of the same client does not have it.
    let other = client.open();
    client.prompt(&other, "SAY:ok");
    assert!(!model.last_request()["tools"].to_string().contains("s-env"));

    // With all permissions the server may ask the model; nobody can be shown a form.
    client.allow_all(&session);
    client.prompt(&session, "TOOL:s-sample:{}\nTOOL:s-ask:{}\nSAY:done");
    assert!(told(&model).contains("sampled words") && told(&model).contains("decline"), "{}", told(&model));
    let server = Witness::of(wait_for(&starts).trim().parse().unwrap());
    client.call("session/close", &json!({ "sessionId": session }));
    assert!(server.is_gone_within(PATIENCE), "the server outlived its session");
    client.finish();
}

#[test]
fn servers_of_a_loaded_session_are_those_that_it_is_loaded_with() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open();
    client.prompt(&session, "SAY:ok");
    client.call("session/close", &json!({ "sessionId": session }));
    let params =
        json!({ "sessionId": session, "cwd": client.cwd, "mcpServers": [program("fine", &scratch)] });
    client.call("session/load", &params);
    client.allow_all(&session);
    client.prompt(&session, "TOOL:s-echo:{\"text\": \"after loading\"}\nSAY:done");
    assert!(told(&model).contains("after loading"), "{}", told(&model));
    client.finish();
}

#[test]
fn servers_at_an_address_are_reached_with_the_headers_that_a_client_gives() {
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap();
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    for kind in ["http", "sse"] {
        let headers = json!([{ "name": "X-Key", "value": format!("for {kind}") }]);
        let far = json!({ "type": kind, "name": "far", "url": format!("http://{address}/{kind}"), "headers": headers });
        let session = client.open_with(json!([far]));
        let prompt = client.send_prompt(&session, "SAY:ok");
        let (mut asked, _) = server.accept().unwrap();
        let mut request = [0; 4096];
        let length = std::io::Read::read(&mut asked, &mut request).unwrap();
        let request = String::from_utf8_lossy(&request[..length]).to_lowercase();
        assert!(request.contains(&format!("/{kind} ")), "{request}");
        assert!(request.contains(&format!("x-key: for {kind}")), "{request}");
        drop(asked);
        // A server that does not answer costs its tools and nothing else.
        assert_eq!(client.answer_to(prompt)["result"]["stopReason"], "end_turn");
    }
    client.finish();
}

#[test]
fn the_servers_that_a_user_configured_are_there_too_and_a_broken_one_is_left_out() {
    let (scratch, model) = stage();
    std::fs::create_dir_all(scratch.state()).unwrap();
    let mine = json!({ "command": "node", "args": [ODD, "fine"] });
    let config = json!({ "mcpServers": { "mine": mine } }).to_string();
    std::fs::write(scratch.state().join("mcp-config.json"), config).unwrap();
    let mut client = Client::start(&scratch, &model);
    let session = client.open_with(json!([{ "name": "broken", "type": "carrier-pigeon" }]));
    client.prompt(&session, "SAY:ok");
    assert!(model.last_request()["tools"].to_string().contains("mine-echo"));
    client.finish();
    let log = scratch.log(&session);
    assert!(
        log.contains("MCP server `broken` is left out: `carrier-pigeon` is not a type of server"),
        "{log}"
    );
}

#[test]
fn a_prompt_that_waits_for_servers_can_be_cancelled_and_the_next_one_has_them() {
    let (scratch, model) = stage();
    let mut client = Client::start(&scratch, &model);
    let session = client.open_with(json!([program("slow", &scratch)]));
    client.allow_all(&session);
    let first = client.send_prompt(&session, "SAY:never said");
    wait_for(&scratch.root().join("starts"));
    let cancel = json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
    client.write(&cancel.to_string());
    assert_eq!(client.answer_to(first)["result"]["stopReason"], "cancelled");
    std::fs::write(scratch.root().join("starts.go"), "").unwrap();
    wait_for(&scratch.root().join("starts.lists"));
    client.allow_all(&session);
    client.prompt(&session, "TOOL:s-echo:{\"text\": \"here now\"}\nSAY:done");
    assert!(told(&model).contains("here now"), "{}", told(&model));
    assert!(!told(&model).contains("never said"), "{}", told(&model));
    client.finish();
}
