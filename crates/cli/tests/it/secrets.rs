//! Secrets, planted wherever one can be, are nowhere to be found afterwards; and what is JSON stays JSON.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;

use hangar_test_support::{Finished, ModelServer, Scratch};
use serde_json::{Value, json};

use crate::{HANGAR, hangar};

const NAMED: &str = "tok-3n-secret-value";
const API_KEY: &str = "key-7h-secret-value";
const HEADER: &str = "head-5r-secret-value";
/// With all that JSON has to escape.
const QUOTED: &str = "pa\"ss\\wörd\n\"type\":";
/// A name of the protocol, and a number where JSON may have one.
const FIELD: &str = "toolCallId";
const NUMBER: &str = "48151623";

const SECRETS: [&str; 6] = [NAMED, API_KEY, HEADER, QUOTED, FIELD, NUMBER];

/// The files below a directory that hold a text, in whatever form JSON gives it.
pub(crate) fn holding(dir: &Path, secret: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            found.extend(holding(&path, secret));
        } else if path.file_name().is_some_and(|name| name != "config.toml") {
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned();
            if shows(&text, secret) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

pub(crate) fn shows(text: &str, secret: &str) -> bool {
    let escaped = Value::from(secret).to_string();
    // The names of fields are the protocol's, whoever uses them as a password.
    let text = text.replace(&format!("\"{FIELD}\":"), "");
    text.contains(secret) || text.contains(&escaped[1..escaped.len() - 1])
}

/// Runs a prompt where everything that could know a secret does, and looks for them.
fn check(scratch: &Scratch, model_url: &str, prompt: &str, args: &[&str]) -> Finished {
    scratch.file("secrets.txt", &SECRETS.join("\n\n"));
    scratch.file("secrets.json", &json!({"all": SECRETS, "n": 48_151_623, "last": true}).to_string());
    let run = scratch
        .run(HANGAR)
        .provider(model_url)
        .env("HANGAR_RETRY_SCALE", "0.01")
        .env("COPILOT_PROVIDER_API_KEY", API_KEY)
        .env("COPILOT_PROVIDER_HEADERS", format!("X-Auth-Token: Bearer {HEADER}"))
        .env("NAMED", NAMED)
        .env("QUOTED", QUOTED)
        .env("FIELD", FIELD)
        .env("NUMBER", NUMBER)
        .env("EMPTY", "")
        .env("SHORT", "a")
        .args(["--secret-env-vars=NAMED,QUOTED,FIELD,NUMBER,EMPTY,SHORT,ABSENT", "--allow-all"])
        .args(["--all-events", "-p", prompt])
        .args(args)
        .finish();
    for secret in SECRETS {
        assert!(!shows(&run.stdout, secret), "{secret} is on stdout: {}", run.stdout);
        assert!(!shows(&run.stderr, secret), "{secret} is on stderr: {}", run.stderr);
        assert_eq!(holding(&scratch.state(), secret), [""; 0], "{secret}");
    }
    run
}

#[test]
fn run_takes_the_names_of_secret_variables() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let run = scratch.run(HANGAR).provider(model.url()).env("NAMED", NAMED);
    let prompt = format!("SAY:it is {NAMED}");
    let run =
        run.args(["run", "--runtime", "native", "--secret-env-vars=NAMED,ABSENT", "-p", &prompt]).finish();
    let run = run.expect_exit(0);
    assert!(run.stdout.contains("it is ") && !shows(&run.stdout, NAMED), "{}", run.stdout);
    assert_eq!(holding(&scratch.state(), NAMED), [""; 0]);
}

/// The same as JSON lines, of which each must be one, and as text.
fn check_both(prompt: &str) -> Finished {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    check(&scratch, model.url(), prompt, &[]);
    let run = check(&scratch, model.url(), prompt, &["--output-format", "json"]);
    for line in run.stdout.lines() {
        let event: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        let kind = event["type"].as_str().unwrap_or_else(|| panic!("an event without a type: {line}"));
        assert!(!kind.contains("redacted"), "{line}");
    }
    let asked: String = model.requests().iter().map(|request| request.body.to_string()).collect();
    for secret in SECRETS {
        assert!(!shows(&asked, secret), "{secret} was told to the model");
    }
    run
}

fn bash(command: &str) -> String {
    format!("TOOL:bash:{}", json!({"command": command, "description": "Look"}))
}

#[test]
fn what_a_command_prints_is_redacted_as_text_and_as_json() {
    let run = check_both(&bash("cat secrets.txt; echo; cat secrets.json; env; echo fine"));
    assert!(run.stdout.contains("fine") && run.stdout.contains("[redacted]"), "{}", run.stdout);
}

#[test]
fn json_that_a_command_prints_is_still_json_for_the_model() {
    let run = check_both(&bash("cat secrets.json"));
    let events = run.events();
    let complete = Finished::of_type(&events, "tool.execution_complete")[0];
    let content = complete["data"]["result"]["content"].as_str().expect("a result");
    let document: Value = serde_json::from_str(content.lines().next().expect("a line")).expect("a document");
    assert_eq!((&document["n"], &document["last"]), (&json!("[redacted]"), &json!(true)));
}

#[test]
fn a_secret_that_is_printed_in_two_pieces_is_redacted() {
    let (head, tail) = NAMED.split_at(7);
    let run = check_both(&bash(&format!("printf 'a {head}'; sleep 0.3; printf '{tail} z'")));
    let events = run.events();
    let printed = Finished::of_type(&events, "tool.shell_output");
    let printed: String =
        printed.iter().map(|event| event["data"]["text"].as_str().unwrap_or_default()).collect();
    assert_eq!(printed, "a [redacted] z");
}

#[test]
fn a_large_output_is_saved_without_secrets() {
    let run = check_both(&bash("cat secrets.txt; seq 100000; cat secrets.txt"));
    assert!(run.stdout.contains("Saved to"), "{}", run.stdout);
}

#[test]
fn other_tools_and_calls_that_fail_tell_no_secrets() {
    check_both(&format!("TOOL:view:{}", json!({"path": "secrets.txt"})));
    check_both(&format!("TOOL:grep:{}", json!({"pattern": "secret", "output_mode": "content"})));
    check_both(&format!("TOOL:view:{}", json!({"path": format!("/{NAMED}/absent")})));
    let edit = json!({"path": "secrets.txt", "old_str": NAMED, "new_str": format!("{NAMED}{API_KEY}")});
    check_both(&format!("TOOL:edit:{edit}"));
    check_both(&format!("TOOL:absent-tool:{}", json!({"say": NAMED})));
}

#[test]
fn a_prompt_and_an_answer_tell_no_secrets() {
    check_both(&format!("SAY:the token is {NAMED}, the key {API_KEY}"));
}

/// A provider that refuses, and repeats all that it was sent.
fn echo(status: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let (mut head, mut length) = (String::new(), 0);
            loop {
                let mut line = String::new();
                if reader.read_line(&mut line).unwrap_or(0) <= 2 {
                    break;
                }
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap_or(0);
                }
                head.push_str(&line);
            }
            let mut body = vec![0; length];
            let _ = reader.read_exact(&mut body);
            let message = format!("refused: {head} {QUOTED} {NAMED}");
            let answer =
                json!({"error": {"message": message, "code": NUMBER, "pin": 48_151_623}}).to_string();
            let mut stream = reader.into_inner();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{answer}",
                answer.len()
            );
        }
    });
    url
}

#[test]
fn a_provider_that_repeats_what_it_was_sent_tells_no_secrets() {
    for status in ["400 Bad Request", "401 Unauthorized", "500 Internal Server Error"] {
        let scratch = Scratch::new();
        let run = check(&scratch, &echo(status), "hi", &["--output-format", "json"]);
        assert!(run.stdout.contains("refused"), "{status}: {}{}", run.stdout, run.stderr);
        assert!(run.stdout.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{}", run.stdout);
    }
}

#[test]
fn a_key_in_the_configuration_is_no_part_of_what_is_said_about_it() {
    let key = "sk-9f-configured-key";
    for config in [
        format!("[providers.x]\ntype = \"openai\"\napi_key = \"{key}\n"),
        format!("model = 1 # {key}\n"),
        format!("sandbox = 1 # {key}\n"),
        format!("[providers.x]\ntype = \"openai\"\nbase_url = 7\napi_key = \"{key}\"\n"),
    ] {
        let (scratch, model) = (Scratch::new(), ModelServer::start());
        std::fs::create_dir_all(scratch.state()).expect("a home");
        std::fs::write(scratch.state().join("config.toml"), &config).expect("a file");
        for args in [["-p", "SAY:hi"].as_slice(), &["doctor"]] {
            let run = hangar(&scratch, &model).args(args).finish();
            assert!(!format!("{}{}", run.stdout, run.stderr).contains(key), "{}{}", run.stdout, run.stderr);
        }
    }
}

#[test]
fn a_key_in_the_configuration_is_redacted_where_a_tool_shows_it() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    std::fs::create_dir_all(scratch.state()).expect("a home");
    let key = "sk-9f-configured-key";
    let config = format!(
        "model = \"mine/m\"\n[providers.mine]\ntype = \"openai\"\nbase_url = \"{}\"\napi_key = \"{key}\"\n",
        model.url()
    );
    let path = scratch.state().join("config.toml");
    std::fs::write(&path, config).expect("a file");
    let prompt = bash(&format!("cat {}", path.display()));
    let run = scratch.run(HANGAR).args(["--allow-all", "--output-format", "json", "-p", &prompt]).finish();
    assert!(run.stdout.contains("providers.mine"), "{}{}", run.stdout, run.stderr);
    assert!(!run.stdout.contains(key), "{}", run.stdout);
    assert_eq!(holding(&scratch.state(), key), [""; 0]);
}
