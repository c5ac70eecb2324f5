//! Answers in text mode: pieces as they come, and each answer once, whatever happens to it.

use hangar_test_support::{Finished, ModelServer, Scratch, Signal};
use serde_json::json;

use crate::{HANGAR, hangar};

/// A model that says this much and then nothing for longer than any test.
const HANGS: &str = "SAY:one\\ntwo\nDELAY:600000\nSAY:never";

#[track_caller]
fn check(prompt: &str, flags: &[&str], exit: i32, stdout: &str) {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let run = hangar(&scratch, &model).args(["-p", prompt]).args(flags).finish().expect_exit(exit);
    assert_eq!(run.stdout, stdout, "{prompt}");
}

#[test]
fn an_answer_in_pieces_is_printed_once() {
    for flags in [&["-s"][..], &[], &["--stream", "on"], &["--stream", "off"]] {
        check("STREAM:3\nSAY:end\\n", flags, 0, "tok0 tok1 tok2 end\n\n");
    }
}

/// As the reference tells it (1.0.102), with the message of the part that was cut.
#[test]
fn an_answer_that_the_output_limit_cut_goes_on_without_a_message_between() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let prompt = ["-p", "STREAM:1\nSTOP:length", "--output-format", "json"];
    let events = hangar(&scratch, &model).args(prompt).finish().expect_exit(0).events();
    let kinds = events.iter().map(|event| event["type"].as_str().unwrap_or_default());
    let turn = [
        "assistant.turn_start",
        "model.call_start",
        "assistant.message_start",
        "assistant.message_delta",
        "model.call_finished",
        "assistant.message",
        "model.call_final_result",
        "assistant.turn_end",
    ];
    let told: Vec<&str> = kinds.skip_while(|kind| *kind != turn[0]).collect();
    let expected = [turn.as_slice(), &turn, &["assistant.idle", "result"]].concat();
    assert_eq!(told, expected);
}

/// As the reference tells it (1.0.102): all calls start in their order, and end in the order in which they are done.
#[test]
fn parallel_calls_start_in_order_and_each_ends_when_it_is_done() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    // Each call but the last waits until the one after it is on record as done.
    let log = scratch.state().join("session-state");
    let call = |name: &str, after: usize| {
        let ended = format!("grep -rhs '\"tool.execution_complete\"' {} | wc -l", log.display());
        let command = format!("echo {name}; until [ $({ended}) -ge {after} ]; do sleep 0.02; done; echo end");
        json!({ "command": command, "description": name }).to_string()
    };
    let prompt = format!(
        "PTOOL:bash:{}\nPTOOL:bash:{}\nTOOL:bash:{}\nSAY:done",
        call("a", 2),
        call("b", 1),
        call("c", 0)
    );
    let run = hangar(&scratch, &model).args(["-p", &prompt, "--allow-all", "--output-format", "json"]);
    let events = run.finish().expect_exit(0).events();
    let calls = |kind: &str| -> Vec<String> {
        let events = Finished::of_type(&events, kind);
        events.iter().map(|event| event["data"]["toolCallId"].to_string()).collect()
    };
    let (started, ended) = (calls("tool.execution_start"), calls("tool.execution_complete"));
    assert_eq!(started.len(), 3);
    assert_eq!(ended, [&started[2], &started[1], &started[0]].map(String::clone));
    // A call ends with a piece that has its whole output.
    let of_calls = events.iter().filter(|event| event["data"]["toolCallId"].is_string());
    let of_calls: Vec<(&str, String)> = of_calls
        .map(|event| (event["type"].as_str().unwrap_or_default(), event["data"]["toolCallId"].to_string()))
        .collect();
    for call in &started {
        let kinds: Vec<&str> = of_calls.iter().filter(|(_, of)| of == call).map(|(kind, _)| *kind).collect();
        let place = |kind: &str| kinds.iter().rposition(|known| *known == kind);
        let (piece, complete) = (place("tool.execution_partial_result"), place("tool.execution_complete"));
        assert!(place("tool.execution_start") < piece && piece < complete, "{kinds:?}");
        assert_eq!(complete, Some(kinds.len() - 1), "{kinds:?}");
    }
    // The model gets the results in the order of its calls.
    let request = model.last_request();
    let messages = request["messages"].as_array().into_iter().flatten();
    let results: Vec<String> = messages
        .filter(|message| message["role"] == "tool")
        .map(|message| message["tool_call_id"].to_string())
        .collect();
    assert_eq!(results, started);
}

#[test]
fn words_before_a_call_and_after_it_are_paragraphs() {
    let script = "SAY:let me \nSAY:see\nTOOL:bash:{\"command\":\"true\",\"description\":\"look\"}\nSAY:done";
    check(script, &["--allow-all-tools", "-s"], 0, "let me see\n\ndone\n\n");
    check(script, &["--allow-all-tools"], 0, "let me see\n\n\u{25cf} bash: look\n\ndone\n\n");
}

#[test]
fn an_answer_that_is_cut_off_again_and_again_is_printed_once() {
    check("STREAM:3\nDROP:", &["-s"], 1, "tok0 tok1 tok2 \n\n");
    check("STREAM:3\nDROP:", &[], 1, "tok0 tok1 tok2 \n\n");
}

#[test]
fn pieces_are_there_before_the_answer_is_whole_and_stay_when_it_is_aborted() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let mut run = hangar(&scratch, &model).args(["-s", "-p", HANGS]).start();
    assert_eq!(run.next_line(), Some("one"));
    run.signal(Signal::INT);
    assert_eq!(run.finish().expect_exit(0).stdout, "one\ntwo\n\n");
}

#[test]
fn a_terminal_shows_the_same() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    // A terminal of Python's, whose other end is our pipe.
    let spawn = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let run = scratch.run("python3").provider(model.url()).args(["-c", spawn, HANGAR]);
    let run = run.args(["-s", "-p", "STREAM:2\nSAY:end"]).finish().expect_exit(0);
    assert_eq!(run.stdout, "tok0 tok1 end\r\n\r\n");
}
