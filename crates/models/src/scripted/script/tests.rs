#![expect(clippy::needless_pass_by_value, reason = "expectations are written in place")]

use expect_test::{Expect, expect};

use super::*;

fn markers_of(steps: &[ScriptStep]) -> String {
    steps.iter().map(|step| format!("{step}\n")).collect()
}

fn check_markers(prompt: &str, expected: Expect) {
    let steps = markers(prompt);
    expected.assert_eq(&markers_of(&steps));
    let written = markers_of(&steps);
    assert_eq!(markers(&written), steps, "a step is written as it is read");
}

/// Plans each turn of a conversation in which the calls of a turn get the results `r1`, `r2`, …
fn check_turns(script: &str, expected: Expect) {
    let script = markers(script);
    let mut turns = String::new();
    let mut results = 0;
    for turn in 1.. {
        let last_result = format!("r{results}");
        let position = ScriptPosition { results, last_result: &last_result, offer: ToolOffer::Tools };
        let steps = plan(&script, position, "pong");
        turns.push_str(&format!("{turn}: {}", markers_of(&steps).trim_end().replace('\n', " | ")));
        turns.push('\n');
        let calls = steps.iter().filter(|step| step.is_call()).count();
        if calls == 0 {
            break;
        }
        results += calls;
    }
    expected.assert_eq(&turns);
}

fn check_text_only(script: &str, expected: Expect) {
    let position = ScriptPosition { results: 0, last_result: "", offer: ToolOffer::TextOnly };
    expected.assert_eq(&markers_of(&plan(&markers(script), position, "pong")));
}

fn check_file(text: &str, expected: Expect) {
    expected.assert_eq(&match Script::parse(text) {
        Ok(script) => script.turns.iter().map(|turn| markers_of(turn)).collect::<Vec<_>>().join("---\n"),
        Err(error) => error.to_string(),
    });
}

#[test]
fn every_marker_is_read() {
    check_markers(
        "SAY:a b\nSTREAM:3\nSTREAM:3:20\nTHINK:hm\nTOOL:bash:{\"command\": \"ls\"}\nPTOOL:view:{}\nDELAY:1.5\n\
         FAIL:500\nFAIL:429:1\nFAIL:429:1:2\nFAIL:503::0.5\nDROP:\nSTOP:length\nSTOP:pause_turn",
        expect![[r#"
            SAY:a b
            STREAM:3
            STREAM:3:20
            THINK:hm
            TOOL:bash:{"command": "ls"}
            PTOOL:view:{}
            DELAY:1.5
            FAIL:500
            FAIL:429:1
            FAIL:429:1:2
            FAIL:503::0.5
            DROP:
            STOP:length
            STOP:pause_turn
        "#]],
    );
}

#[test]
fn markers_are_found_between_other_lines_and_behind_spaces() {
    check_markers(
        "<current_datetime>x</current_datetime>\r\n\r\n  SAY:one\r\nI SAY:no\nplease\n\tSAY:two\n\n<reminder/>",
        expect![[r#"
            SAY:one
            SAY:two
        "#]],
    );
}

#[test]
fn a_backslash_n_is_a_line_break() {
    assert_eq!(
        markers("SAY:a\\nb\nTHINK:c\\nd"),
        [ScriptStep::Say("a\nb".into()), ScriptStep::Think("c\nd".into())]
    );
}

#[test]
fn a_call_without_input_gets_an_empty_object() {
    check_markers(
        "TOOL: list :\nTOOL:list\nTOOL:a:  {\"b\": \"c:d\"}  ",
        expect![[r#"
            TOOL:list:{}
            TOOL:list:{}
            TOOL:a:{"b": "c:d"}
        "#]],
    );
}

#[test]
fn a_repeat_unfolds() {
    check_markers(
        "REPEAT:2:TOOL:a:{}\nREPEAT:2:REPEAT:2:SAY:x\nREPEAT:0:SAY:y",
        expect![[r#"
            TOOL:a:{}
            TOOL:a:{}
            SAY:x
            SAY:x
            SAY:x
            SAY:x
        "#]],
    );
}

#[test]
fn bad_markers_are_ordinary_text() {
    check_markers(
        "STREAM:x\nSTREAM:\nSTREAM:-1\nSTREAM:3:x\nSTREAM:3:-1\nSTREAM:99999999\nDELAY:\nDELAY:soon\nDELAY:inf\nDELAY:NaN\n\
         DELAY:1e300\nFAIL:\nFAIL:x\nFAIL:9\nFAIL:70000\nFAIL:500:x\nFAIL:500:1:x\nTOOL:\nTOOL::{}\nREPEAT:2\n\
         REPEAT:x:SAY:a\nREPEAT:2:a\nREPEAT:2:a:b\nREPEAT:99999999999:SAY:a\n\
         REPEAT:9999999999999999:REPEAT:9999999999999999:SAY:a\nSTOP:\nSHOUT:a\nsay:a\n:\nSAY",
        expect![""],
    );
}

#[test]
fn a_prompt_of_nested_repeats_is_read_without_a_deep_stack() {
    let prompt = format!("{}SAY:x", "REPEAT:1:".repeat(100_000));
    assert_eq!(markers(&prompt), [ScriptStep::Say("x".into())]);
}

#[test]
fn a_prompt_has_a_bounded_number_of_steps() {
    assert_eq!(markers(&"REPEAT:6000:SAY:x\n".repeat(3)).len(), 6000);
}

#[test]
fn a_prompt_without_markers_gets_the_default_answer() {
    check_turns(
        "say pong",
        expect![[r#"
        1: SAY:pong
    "#]],
    );
}

#[test]
fn steps_without_an_outcome_get_the_default_answer_too() {
    check_turns(
        "THINK:hm\nDELAY:1\nSTOP:length",
        expect![[r#"
        1: THINK:hm | DELAY:1 | STOP:length | SAY:pong
    "#]],
    );
    check_turns(
        "SAY:",
        expect![[r#"
        1: SAY:
    "#]],
    );
    check_turns(
        "DROP:",
        expect![[r#"
        1: DROP:
    "#]],
    );
    check_turns(
        "FAIL:500",
        expect![[r#"
        1: FAIL:500
    "#]],
    );
}

#[test]
fn a_last_call_is_followed_by_its_result() {
    check_turns(
        "THINK:hm\nSAY:ok\nTOOL:a:{}",
        expect![[r#"
        1: THINK:hm | SAY:ok | TOOL:a:{}
        2: SAY:done: r1
    "#]],
    );
}

#[test]
fn a_turn_ends_behind_each_call() {
    check_turns(
        "TOOL:a:{}\nSAY:between\nTOOL:b:{}\nSAY:end",
        expect![[r#"
        1: TOOL:a:{}
        2: SAY:between | TOOL:b:{}
        3: SAY:end
    "#]],
    );
    check_turns(
        "REPEAT:3:TOOL:a:{}",
        expect![[r#"
        1: TOOL:a:{}
        2: TOOL:a:{}
        3: TOOL:a:{}
        4: SAY:done: r3
    "#]],
    );
}

#[test]
fn parallel_calls_are_one_turn_that_waits_for_all_results() {
    check_turns(
        "PTOOL:a:{}\nPTOOL:b:{}\nTOOL:c:{}\nSAY:end",
        expect![[r#"
        1: PTOOL:a:{} | PTOOL:b:{} | TOOL:c:{}
        2: SAY:end
    "#]],
    );
    let script = markers("PTOOL:a:{}\nTOOL:b:{}\nSAY:end");
    let half = ScriptPosition { results: 1, last_result: "r", offer: ToolOffer::Tools };
    assert_eq!(plan(&script, half, "pong"), script[..2]);
}

#[test]
fn parallel_calls_at_the_end_are_made_once() {
    check_turns(
        "PTOOL:a:{}\nPTOOL:b:{}",
        expect![[r#"
        1: PTOOL:a:{} | PTOOL:b:{}
        2: SAY:done: r2
    "#]],
    );
    check_turns(
        "TOOL:a:{}\nPTOOL:b:{}",
        expect![[r#"
        1: TOOL:a:{}
        2: PTOOL:b:{}
        3: SAY:done: r2
    "#]],
    );
}

#[test]
fn a_failure_or_a_cut_behind_a_call_is_the_last_turn() {
    check_turns(
        "TOOL:a:{}\nFAIL:401",
        expect![[r#"
        1: TOOL:a:{}
        2: FAIL:401
    "#]],
    );
    check_turns(
        "TOOL:a:{}\nTHINK:x\nDROP:",
        expect![[r#"
        1: TOOL:a:{}
        2: THINK:x | DROP:
    "#]],
    );
    check_turns(
        "TOOL:a:{}\nTHINK:x",
        expect![[r#"
        1: TOOL:a:{}
        2: THINK:x | SAY:done: r1
    "#]],
    );
}

#[test]
fn a_request_that_offers_no_tools_skips_calls() {
    check_text_only(
        "TOOL:a:{}",
        expect![[r#"
        SAY:pong
    "#]],
    );
    check_text_only(
        "THINK:x\nPTOOL:a:{}\nTOOL:a:{}\nSAY:title",
        expect![[r#"
        THINK:x
        SAY:title
    "#]],
    );
    check_text_only(
        "FAIL:500:1",
        expect![[r#"
        FAIL:500:1
        SAY:pong
    "#]],
    );
}

#[test]
fn a_quoted_result_is_cut_between_characters() {
    let result = "é".repeat(300);
    let position = ScriptPosition { results: 1, last_result: &result, offer: ToolOffer::Tools };
    let steps = plan(&markers("TOOL:a:{}"), position, "pong");
    assert_eq!(steps, [ScriptStep::Say(format!("done: {}", "é".repeat(200)))]);
}

#[test]
fn a_file_has_comments_and_turns() {
    check_file(
        "# greets\n\nSAY:one # not a comment\n  ---  \n# nothing\n---\nTOOL:a:{}\n  # also a comment\nSAY:three\n",
        expect![[r#"
            SAY:one # not a comment
            ---
            ---
            TOOL:a:{}
            SAY:three
        "#]],
    );
}

#[test]
fn a_file_with_a_line_that_is_no_marker_is_refused() {
    check_file("SAY:one\n\nSTREAM:x", expect!["line 3 of the script is not a marker: `STREAM:x`"]);
    check_file("hello", expect!["line 1 of the script is not a marker: `hello`"]);
    check_file(
        "REPEAT:6000:SAY:x\nREPEAT:6000:SAY:x",
        expect!["line 2 of the script makes a turn of more than 10000 steps"],
    );
}
