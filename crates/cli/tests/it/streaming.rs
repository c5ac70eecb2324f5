//! Answers in text mode: pieces as they come, and each answer once, whatever happens to it.

use hangar_test_support::{ModelServer, Scratch, Signal};

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
