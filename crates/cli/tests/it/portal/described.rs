//! Answers of the portal, held against its own description. The types of the pages are generated from that.

use serde_json::{Value, json};

use super::runs::portal_with_jobs;
use super::{Portal, expect};

struct Description(Value);

impl Description {
    /// The description of a portal, in which objects have no members but those that are described.
    fn of(portal: &Portal) -> Self {
        let mut document = portal.get("/api/v1/openapi.json");
        for (name, schema) in document["components"]["schemas"].as_object_mut().unwrap() {
            // The kinds of work are described together with their tag.
            let is_variant = name.ends_with("Work") && name != "RunWork";
            if schema["properties"].is_object() && !is_variant {
                schema["additionalProperties"] = json!(false);
            }
        }
        Self(document)
    }

    #[track_caller]
    fn check(&self, method: &str, route: &str, status: u16, answer: &Value) {
        let responses = &self.0["paths"][format!("/api/v1{route}")][method]["responses"];
        let schema = &responses[status.to_string()]["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{method} {route} does not say that it answers {status}: {responses}");
        let mut root = schema.clone();
        root["components"] = self.0["components"].clone();
        let validator = jsonschema::validator_for(&root).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(answer)
            .map(|error| format!("{error} at {}", error.instance_path()))
            .collect();
        assert!(errors.is_empty(), "{method} {route}: {errors:#?}\n{answer:#}");
    }
}

/// A route with its parameter filled in.
fn at(route: &str, id: &str) -> String {
    format!("/api/v1{}", route.replace("{id}", id).replace("{name}", id))
}

#[test]
fn answers_are_what_the_description_says() {
    let portal = portal_with_jobs();
    let description = Description::of(&portal);
    let get = |route: &str, id: &str| {
        description.check("get", route, 200, &portal.get(&at(route, id)));
    };
    let post = |route: &str, id: &str, body: &Value, status: u16| {
        let answer = expect(portal.ask("POST", &at(route, id)).json(body).send(), status);
        description.check("post", route, status, &answer);
        answer
    };

    let touch = r#"TOOL:bash:{"command":"touch made.txt","description":"makes a file"}"#;
    let new =
        json!({ "workspace": portal.scratch.work(), "policy": "ask", "prompt": touch, "name": "A name" });
    let session = post("/sessions", "", &new, 201)["id"].as_str().unwrap().to_owned();
    portal.hear(&session, 0).until_state("waiting");
    get("/approvals", "");
    let approval = portal.get("/api/v1/approvals")["approvals"][0]["id"].as_str().unwrap().to_owned();
    post("/approvals/{id}", &approval, &json!({ "decision": "approve" }), 200);
    portal.hear(&session, 0).until_state("idle");
    post("/sessions/{id}/messages", &session, &json!({ "text": "SAY:more" }), 202);
    portal.hear(&session, 0).until_state("idle");
    for route in ["/sessions/{id}/abort", "/sessions/{id}/stop"] {
        description.check("post", route, 202, &portal.poke(&at(route, &session), 202));
    }

    let order = json!({ "job": "demo", "input": "you", "workspace": portal.scratch.work() });
    let run = post("/runs", "", &order, 201)["id"].as_str().unwrap().to_owned();
    super::runs::hear(&portal, &run, "succeeded");
    let waiting = json!({ "job": "waits", "workspace": portal.scratch.work() });
    let stopped = post("/runs", "", &waiting, 201)["id"].as_str().unwrap().to_owned();
    description.check("post", "/runs/{id}/stop", 202, &portal.poke(&at("/runs/{id}/stop", &stopped), 202));

    expect(portal.ask("GET", "/api/v1/runtimes?check=true").send(), 200);
    for route in ["/meta", "/sessions", "/runtimes", "/models", "/jobs", "/runs"] {
        get(route, "");
    }
    for route in ["/sessions/{id}", "/sessions/{id}/events"] {
        get(route, &session);
    }
    get("/runs/{id}", &run);
    get("/runtimes/{name}/models", "native");
}
