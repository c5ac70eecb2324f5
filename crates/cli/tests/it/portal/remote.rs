//! Remote control: a session of an SDK's server that the portal joins and steers once its client allows it.

use serde_json::json;

use super::{Portal, expect};
use crate::hangar;
use crate::sdk::{Client, ID, of_session};

#[test]
fn a_portal_steers_a_session_of_an_sdk_as_long_as_its_client_allows_it() {
    let portal = Portal::start();
    let mut client = Client::of(hangar(&portal.scratch, &portal.model));
    client.create(json!({}));
    client.send("SAY:first");
    client.event("session.idle");
    let path = format!("/api/v1/sessions/{ID}/messages");
    let message = json!({ "text": "SAY:from the portal" });
    let config = json!({ "remote": true, "steerable": true, "explicit": true, "silent": true });
    let started = client.call("sessions.startRemoteControl", json!({ "sessionId": ID, "config": config }));
    let status = &started["status"];
    assert_eq!((&status["state"], &status["isSteerable"]), (&json!("active"), &json!(true)), "{started}");
    assert!(status["frontendUrl"].as_str().unwrap().ends_with(&format!("/sessions/{ID}")), "{started}");
    expect(portal.ask("POST", &path).json(&message).send(), 202);
    assert_eq!(client.event("assistant.message")["content"], "from the portal");
    client.event("session.idle");
    let stopped = client.call("sessions.stopRemoteControl", json!({ "expectedSessionId": "other" }));
    assert_eq!(stopped["stopped"], false);
    let stopped = client.call("sessions.stopRemoteControl", json!({ "expectedSessionId": ID }));
    assert_eq!(stopped, json!({ "stopped": true, "status": { "state": "off" } }));
    client.call("session.destroy", of_session(json!({})));
    client.finish();
}
