//! Secrets that another agent says, wherever it can say something, are nowhere to be found afterwards.

use hangar_test_support::{Finished, ModelServer, Scratch};

use crate::hangar;
use crate::secrets::{holding, shows};

const KEY: &str = "key-7h-secret-value";
const TOKEN: &str = "tok-3n-secret-value";

/// Copilot, telling secrets in pieces, in arguments, in results, in errors, in words that nobody knows, and on stderr.
fn talkative(exit: u8) -> String {
    let event = |kind: &str, data: &str| {
        format!(
            r#"echo '{{"type":"{kind}","data":{data},"id":"e'$((n=n+1))'","timestamp":"2026-01-01T00:00:00.000Z","parentId":null}}'"#
        )
    };
    let (head, tail) = KEY.split_at(7);
    [
        "n=0; cat >/dev/null".to_owned(),
        event("assistant.message_delta", &format!(r#"{{"messageId":"m","deltaContent":"it is {head}"}}"#)),
        event("assistant.message_delta", &format!(r#"{{"messageId":"m","deltaContent":"{tail}, {TOKEN}"}}"#)),
        event("assistant.reasoning_delta", &format!(r#"{{"reasoningId":"r","deltaContent":"hm {KEY}"}}"#)),
        event(
            "tool.execution_start",
            &format!(
                r#"{{"toolCallId":"c","toolName":"bash","arguments":{{"command":"echo {KEY}","id":"{KEY}","{TOKEN}":1}}}}"#
            ),
        ),
        event(
            "tool.execution_partial_result",
            &format!(r#"{{"toolCallId":"c","partialOutput":"{KEY} {head}"}}"#),
        ),
        event(
            "tool.execution_complete",
            &format!(
                r#"{{"toolCallId":"c","success":false,"result":{{"content":"{KEY}","detailedContent":"{TOKEN}"}},"error":{{"message":"{KEY}"}}}}"#
            ),
        ),
        event("session.error", &format!(r#"{{"errorType":"query","message":"no {KEY}"}}"#)),
        event("something.new", &format!(r#"{{"words":"{KEY}","deep":[{{"a":"{TOKEN}"}}]}}"#)),
        format!("echo 'not JSON {KEY}'; echo 'complaint {KEY} {TOKEN}' >&2"),
        event("assistant.message", &format!(r#"{{"messageId":"m","content":"it is {KEY}, {TOKEN}","toolRequests":[]}}"#)),
        format!(
            r#"echo '{{"type":"result","timestamp":"2026-01-01T00:00:00.000Z","sessionId":"0b5a2a57-6f0a-4b5e-9f0c-0c8f0e4ad001","exitCode":{exit},"usage":{{}}}}'"#
        ),
        format!("exit {exit}"),
    ]
    .join("\n")
}

fn stage(script: &str) -> (Scratch, ModelServer) {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let text = scratch.file("agent.txt", &format!("#!/bin/sh\n{script}\n"));
    let program = scratch.root().join("agent");
    let installed =
        std::process::Command::new("install").args(["-m", "755"]).args([&text, &program]).status();
    assert!(installed.expect("install").success());
    std::fs::create_dir_all(scratch.state()).expect("a home");
    let config = format!("[runtimes.copilot]\nprogram = \"{}\"\n", program.display());
    std::fs::write(scratch.state().join("config.toml"), config).expect("a file");
    (scratch, model)
}

fn run(scratch: &Scratch, model: &ModelServer, args: &[&str]) -> Finished {
    hangar(scratch, model).env("COPILOT_PROVIDER_API_KEY", KEY).env("GITHUB_TOKEN", TOKEN).args(args).finish()
}

#[track_caller]
fn check(scratch: &Scratch, run: &Finished) {
    for secret in [KEY, TOKEN] {
        assert!(!shows(&run.stdout, secret), "{secret} is on stdout: {}", run.stdout);
        assert!(!shows(&run.stderr, secret), "{secret} is on stderr: {}", run.stderr);
        assert_eq!(holding(&scratch.state(), secret), [""; 0], "{secret}");
    }
}

#[test]
fn an_agent_tells_no_secrets_on_stdout_and_in_its_log() {
    for exit in [0, 1] {
        for format in ["text", "json"] {
            let (scratch, model) = stage(&talkative(exit));
            let prompt = format!("use {KEY}");
            let args =
                ["run", "--runtime", "copilot", "--all-events", "--output-format", format, "-p", &prompt];
            let finished = run(&scratch, &model, &args);
            assert!(finished.stdout.contains("[redacted]"), "{}{}", finished.stdout, finished.stderr);
            if format == "json" {
                let events = finished.events();
                let said: String = Finished::of_type(&events, "assistant.message_delta")
                    .iter()
                    .map(|event| event["data"]["deltaContent"].as_str().unwrap_or_default())
                    .collect();
                assert_eq!(said, "it is [redacted], [redacted]");
            }
            check(&scratch, &finished);
        }
    }
}

#[test]
fn an_agent_that_cannot_work_tells_no_secrets() {
    let (scratch, model) = stage(&format!("echo 'no {KEY}' >&2; exit 7"));
    let finished = run(&scratch, &model, &["run", "--runtime", "copilot", "-p", "x"]);
    check(&scratch, &finished);
    let finished = run(&scratch, &model, &["runtimes", "--json"]);
    check(&scratch, &finished);
}

#[test]
fn records_of_a_job_tell_no_secrets() {
    let (scratch, model) = stage(&talkative(1));
    scratch.file(
        "jobs.yaml",
        &format!(
            "models: {{ driving: mock-model }}\n\
             tasks:\n  say:\n    model: {{ category: driving }}\n    prompt: \"hello $user-input\"\n    \
             requireUserInput: true\n    \
             criteria: {{ commands: [{{ run: \"echo {KEY}; false\" }}], failureAction: {{ retryTimes: 0 }} }}\n\
             jobs:\n  j: {{ work: {{ kind: Ref, taskId: say }} }}\n"
        ),
    );
    for format in ["text", "json"] {
        let input = format!("with {TOKEN}");
        let args = [
            "job",
            "run",
            "jobs.yaml",
            "j",
            "--input",
            &input,
            "--runtime",
            "copilot",
            "--output-format",
            format,
        ];
        let finished = run(&scratch, &model, &args);
        check(&scratch, &finished);
    }
    let shown = run(&scratch, &model, &["job", "runs", "--json"]);
    check(&scratch, &shown);
}
