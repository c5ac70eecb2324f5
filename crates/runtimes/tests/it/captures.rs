//! Every recorded run through its translator. The snapshots were read by a person; a change in one is a change in what
//! users see of that agent.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use expect_test::expect_file;
use hangar_protocol::Body;
use hangar_runtimes::outcome::{ProcessExit, TurnFacts, TurnResult, decide};
use hangar_runtimes::translate::{
    TranslatedEvent, Translation, Translator, claude, codex, copilot, opencode,
};
use hangar_runtimes::usage::Figure;
use serde_json::Value;

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/captures")
}

fn translator(name: &str) -> Box<dyn Translator> {
    match name.split('-').next().unwrap_or_default() {
        "claude" => Box::<claude::ClaudeTranslator>::default(),
        "codex" => Box::<codex::CodexTranslator>::default(),
        "copilot" => Box::<copilot::CopilotTranslator>::default(),
        "opencode" => Box::<opencode::OpencodeTranslator>::default(),
        other => panic!("no translator for {other}"),
    }
}

/// The text of a capture as people see it in a snapshot: kinds in order, with the words that matter.
fn told(name: &str, lines: &str, end: &Value) -> String {
    let mut translator = translator(name);
    let mut said = Translation::default();
    for line in lines.lines().filter(|line| !line.trim().is_empty()) {
        translator.line(line, &mut said);
    }
    translator.end(&mut said);
    let mut out = String::new();
    for spoken in &said.events {
        let (agent, body) = match spoken {
            TranslatedEvent::Body { agent, body } => (agent.as_ref(), body),
            TranslatedEvent::Whole(event) => (event.agent_id(), event.body()),
        };
        let who = agent.map(|_| "    ").unwrap_or_default();
        writeln!(out, "{who}{} {}", body.kind(), words(body)).unwrap();
    }
    let code = end["exit"].as_i64().unwrap() as i32;
    let facts = TurnFacts {
        exit: Some(if code < 0 { ProcessExit::Signal(-code) } else { ProcessExit::Code(code) }),
        verdict: said.facts.verdict,
        reported_error: said.facts.reported_error.clone(),
        worked: said.facts.worked,
        aborted: said.facts.aborted,
        halted: said.facts.halted,
        stderr: end["stderr"].as_str().unwrap_or_default().to_owned(),
        ..TurnFacts::default()
    };
    writeln!(out, "--").unwrap();
    match decide(&facts) {
        TurnResult::Completed => writeln!(out, "completed").unwrap(),
        TurnResult::Failed(failure) => {
            writeln!(out, "{} ({})", failure.kind.as_str(), short(&failure.message)).unwrap();
        }
    }
    let facts = &said.facts;
    writeln!(out, "session known: {}, model: {:?}", facts.session_id.is_some(), facts.model).unwrap();
    let tokens = |figure: Figure| match figure {
        Figure::Unknown => "unknown".to_owned(),
        figure => format!("{figure:?}"),
    };
    let usage = facts.usage;
    writeln!(out, "input {}, output {}", tokens(usage.input_tokens), tokens(usage.output_tokens)).unwrap();
    if facts.malformed > 0 || !facts.unknown.is_empty() {
        writeln!(out, "malformed {}, unknown {:?}", facts.malformed, facts.unknown).unwrap();
    }
    out.lines().map(str::trim_end).collect::<Vec<_>>().join("\n") + "\n"
}

fn words(body: &Body) -> String {
    match body {
        Body::AssistantMessage(message) => {
            let calls: Vec<&str> =
                message.tool_requests.iter().map(|request| request.name.as_str()).collect();
            format!("{:?} {calls:?}", short(&message.content))
        }
        Body::ToolStart(start) => format!("{} {}", start.tool_name, short(&start.arguments.to_string())),
        Body::ToolComplete(complete) => {
            let result = complete.result.as_ref().map(|result| result.content.as_str());
            let error = complete.error.as_ref().map(|error| error.message.as_str());
            format!(
                "{} {:?}",
                if complete.success { "ok" } else { "failed" },
                short(result.or(error).unwrap_or_default())
            )
        }
        Body::SessionError(error) => {
            format!("{} {:?} {}", error.error_type, error.status_code, short(&error.message))
        }
        Body::SessionWarning(warning) => short(&warning.message),
        Body::MessageDelta(delta) => format!("{:?}", delta.delta_content),
        Body::Reasoning(reasoning) => format!("{:?}", reasoning.content),
        Body::TurnStart(turn) => turn.turn_id.clone(),
        Body::TurnEnd(turn) => turn.turn_id.clone(),
        Body::SubagentStarted(started) => started.agent_name.clone(),
        Body::UserMessage(message) => format!("{:?}", short(&message.content)),
        _ => String::new(),
    }
}

fn short(text: &str) -> String {
    let line = text.replace('\n', "⏎");
    match line.char_indices().nth(90) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[test]
fn every_capture_is_told_as_it_was_reviewed() {
    let ends: Value =
        serde_json::from_str(&std::fs::read_to_string(dir().join("ends.json")).unwrap()).unwrap();
    let ends = ends.as_object().unwrap();
    assert!(ends.len() > 100, "captures are missing");
    for (name, end) in ends {
        let lines = std::fs::read_to_string(dir().join(format!("{name}.jsonl"))).unwrap();
        expect_file![dir().join(format!("../told/{name}.txt"))].assert_eq(&told(name, &lines, end));
    }
}

#[test]
fn no_capture_holds_a_type_that_nobody_knows() {
    let ends: Value =
        serde_json::from_str(&std::fs::read_to_string(dir().join("ends.json")).unwrap()).unwrap();
    for name in ends.as_object().unwrap().keys() {
        let mut translator = translator(name);
        let mut said = Translation::default();
        for line in std::fs::read_to_string(dir().join(format!("{name}.jsonl"))).unwrap().lines() {
            translator.line(line, &mut said);
        }
        assert!(said.facts.unknown.is_empty(), "{name}: {:?}", said.facts.unknown);
    }
}
