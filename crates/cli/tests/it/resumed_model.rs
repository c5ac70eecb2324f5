//! The model of a session that is resumed: its own, of its own provider, unless another is asked for.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

use hangar_test_support::{Finished, Invocation, ModelServer, Scratch};

use crate::HANGAR;

const SESSION: &str = "5e5510a0-0000-4000-8000-0000000000de";

/// Two providers of the same model, the first of which is the configured default.
struct Stage {
    scratch: Scratch,
    usual: ModelServer,
    other: ModelServer,
}

impl Stage {
    fn new() -> Self {
        let stage =
            Self { scratch: Scratch::new(), usual: ModelServer::start(), other: ModelServer::start() };
        stage.configure(&[("usual", &stage.usual), ("other", &stage.other)]);
        stage
    }

    fn configure(&self, providers: &[(&str, &ModelServer)]) {
        let mut text = "model = \"usual/shared\"\n".to_owned();
        for (name, server) in providers {
            text.push_str(&format!(
                "[providers.{name}]\nbase_url = \"{}/v1\"\napi_key = \"k\"\n",
                server.url()
            ));
        }
        std::fs::create_dir_all(self.scratch.state()).unwrap();
        std::fs::write(self.scratch.state().join("config.toml"), text).unwrap();
    }

    fn run(&self, flags: &[&str]) -> Invocation {
        let run = self.scratch.run(HANGAR).env("COPILOT_OFFLINE", "true").args(["-p", "SAY:hello"]);
        run.args(["--output-format", "json"]).args(flags)
    }

    /// Models that were asked, at the default provider and at the other.
    fn asked(&self) -> [Vec<String>; 2] {
        [&self.usual, &self.other].map(|server| {
            let requests = server.requests();
            let model =
                |request: &serde_json::Value| request["model"].as_str().unwrap_or_default().to_owned();
            requests.iter().map(|request| model(&request.body)).collect()
        })
    }
}

fn session() -> String {
    format!("--session-id={SESSION}")
}

#[test]
fn a_resumed_session_goes_on_with_its_own_model_and_provider() {
    let stage = Stage::new();
    stage.run(&["--model", "other/shared", &session()]).finish().expect_exit(0);
    stage.run(&["--resume", SESSION]).finish().expect_exit(0);
    stage.run(&["--continue"]).finish().expect_exit(0);
    assert_eq!(
        stage.asked(),
        [vec![], vec!["shared"; 3]],
        "neither the default nor the first that has the name"
    );
    stage.run(&["--resume", SESSION, "--model", "usual/third"]).finish().expect_exit(0);
    stage.run(&["--resume", SESSION]).finish().expect_exit(0);
    assert_eq!(stage.asked(), [vec!["third"; 2], vec!["shared"; 3]], "what was asked for last goes on");
}

#[test]
fn the_environment_names_the_model_of_a_prompt_as_a_flag_does() {
    let stage = Stage::new();
    stage.run(&["--model", "other/shared", &session()]).finish().expect_exit(0);
    stage.run(&["--resume", SESSION]).env("COPILOT_MODEL", "usual/third").finish().expect_exit(0);
    assert_eq!(stage.asked(), [vec!["third"], vec!["shared"]]);
}

#[test]
fn a_provider_that_is_gone_is_named_with_what_to_do() {
    let stage = Stage::new();
    stage.run(&["--model", "other/shared", &session()]).finish().expect_exit(0);
    stage.configure(&[("usual", &stage.usual)]);
    let refused = stage.run(&["--resume", SESSION]).finish().expect_exit(1);
    let told = &refused.stderr;
    assert!(
        told.contains("`shared`") && told.contains(stage.other.url()) && told.contains("--model"),
        "{told}"
    );
    assert_eq!(stage.asked(), [vec![], vec!["shared"]]);
    let events =
        stage.run(&["--resume", SESSION, "--model", "usual/shared"]).finish().expect_exit(0).events();
    assert_eq!(Finished::of_type(&events, "session.error").len(), 0);
}

#[test]
fn of_two_accounts_at_one_address_a_resumed_session_keeps_its_own() {
    let stage = Stage::new();
    let configure = |names: &[&str]| {
        let table = |name: &&str| {
            format!(
                "[providers.{name}]\nbase_url = \"{}/v1\"\napi_key = \"k-{name}\"\nheaders = {{ x-who = \"of-{name}\" }}\n",
                stage.usual.url()
            )
        };
        let tables: String = names.iter().map(table).collect();
        let text = format!("model = \"usual/shared\"\n{tables}");
        std::fs::write(stage.scratch.state().join("config.toml"), text).unwrap();
    };
    let senders = || -> Vec<String> {
        let requests = stage.usual.requests();
        requests.iter().map(|request| format!("{:?}", request.headers)).collect()
    };
    configure(&["usual", "other"]);
    stage.run(&["--model", "other/shared", &session()]).finish().expect_exit(0);
    stage.run(&["--resume", SESSION]).finish().expect_exit(0);
    let asked = senders();
    assert!(asked.len() == 2 && asked.iter().all(|headers| headers.contains("of-other")), "{asked:?}");
    configure(&["usual"]);
    let told = stage.run(&["--resume", SESSION]).finish().expect_exit(1).stderr;
    assert!(told.contains("the provider `other`") && told.contains("not configured any more"), "{told}");
    assert_eq!(senders().len(), 2, "nobody else is asked");
}
