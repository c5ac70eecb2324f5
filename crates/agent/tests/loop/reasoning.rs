//! Reasoning goes back behind the messages that it followed, and nowhere else, whenever a summary is ready.

use std::time::Duration;

use hangar_agent::model::{Message, ModelRequest, ToolChoice};
use hangar_agent::session::{Command, Compaction};
use hangar_protocol::Body;

use crate::stage::{Line, Setting, Stage};

/// Answers and calls that take two seconds each, in two prompts.
fn lines() -> Vec<Line> {
    let after = |id: &'static str| Line::CallAfter(Duration::from_secs(2), id, "slow");
    let done = |text: &'static str| Line::SayAfter(Duration::from_secs(2), text);
    vec![
        Line::Say("one"),
        after("a"),
        after("b"),
        after("c"),
        done("two"),
        after("d"),
        after("e"),
        done("three"),
    ]
}

/// A conversation whose summary begins with the second prompt and takes some time.
fn stage(summary_after: u64, wait: f64) -> Stage {
    let setting = Setting {
        compaction: Some(Compaction { start: 0.05, wait }),
        max_prompt_tokens: 1000,
        signs: true,
        summary_after: Some(Duration::from_secs(summary_after)),
        ..Setting::default()
    };
    Stage::set(setting, lines())
}

/// Reasons for which a strict vendor would refuse a request: items after other messages than those of the request that
/// they answered, and answers of the current cycle without theirs.
fn refusals(requests: &[ModelRequest]) -> Vec<String> {
    let mut refusals = Vec::new();
    for (number, request) in requests.iter().enumerate() {
        let messages = &request.messages;
        let is_prompt = |at: usize| {
            matches!(*messages[at], Message::User(_))
                && !(at > 0 && matches!(*messages[at - 1], Message::Tool { .. }))
        };
        // The words that ask for a summary follow the cycle, if one is under way.
        let cycle = (0..messages.len()).rev().find(|at| is_prompt(*at)).unwrap_or(0);
        for (at, message) in messages.iter().enumerate() {
            let Message::Assistant(turn) = &**message else { continue };
            match &turn.native {
                Some(native) => {
                    let answered: usize = native.items.parse().unwrap();
                    if messages[..at] != requests[answered].messages[..] {
                        refusals
                            .push(format!("request {number}: message {at} is bound to request {answered}"));
                    }
                }
                None if at > cycle => {
                    refusals.push(format!("request {number}: message {at} lacks its items"));
                }
                None => {}
            }
        }
    }
    refusals
}

fn summaries(stage: &Stage) -> Vec<bool> {
    let bodies = stage.bodies().into_iter();
    bodies
        .filter_map(|body| if let Body::CompactionComplete(end) = body { Some(end.success) } else { None })
        .collect()
}

fn tells_of_dropped_reasoning(stage: &Stage) -> usize {
    let bodies = stage.bodies().into_iter();
    bodies
        .filter(|body| matches!(body, Body::SessionInfo(info) if info.info_type == "reasoning_dropped"))
        .count()
}

#[tokio::test(start_paused = true)]
async fn a_summary_beside_the_work_waits_for_the_end_of_the_cycle_whenever_it_is_ready() {
    // The second prompt takes fourteen seconds: each of its answers and calls is under way at some of these moments.
    for seconds in 0..30 {
        let mut stage = stage(seconds, 9.0);
        for prompt in ["first", "second", "third"] {
            stage.send(prompt);
            stage.until_idle().await;
        }
        assert_eq!(refusals(&stage.requests()), Vec::<String>::new(), "after {seconds} s");
        if seconds < 14 {
            assert!(summaries(&stage).contains(&true), "after {seconds} s: {:?}", summaries(&stage));
            assert!(stage.last_request().contains("THE SUMMARY"), "after {seconds} s");
            assert!(tells_of_dropped_reasoning(&stage) > 0, "after {seconds} s");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_full_context_in_the_middle_of_a_cycle_is_summed_up_as_a_whole() {
    for seconds in 0..20 {
        // The calls of the second prompt pass the threshold at which work waits.
        let mut stage = stage(seconds, 0.155);
        for prompt in ["first", "second", "third"] {
            stage.send(prompt);
            stage.until_idle().await;
        }
        assert_eq!(refusals(&stage.requests()), Vec::<String>::new(), "after {seconds} s");
        assert!(summaries(&stage).contains(&true), "after {seconds} s: {:?}", summaries(&stage));
        let covers = stage.requests().into_iter().filter(|request| request.tool_choice == ToolChoice::None);
        assert!(covers.count() > 1, "after {seconds} s: the first summary does not cover the cycle");
    }
}

#[tokio::test(start_paused = true)]
async fn an_aborted_cycle_leaves_no_summary_that_could_never_be_applied() {
    let mut stage = stage(3, 9.0);
    stage.send("first");
    stage.until_idle().await;
    stage.send("second");
    // The summary is ready while the second call runs; the run ends in the middle of its cycle.
    while stage.count("tool.execution_complete") < 1 {
        assert!(stage.driver.turn().await.unwrap());
    }
    stage.command(Command::Abort { reason: "user_initiated".to_owned() });
    stage.until_idle().await;
    assert!(!stage.driver.session().is_compacting());
    assert_eq!(summaries(&stage), [false]);
    stage.send("third");
    stage.until_idle().await;
    assert_eq!(refusals(&stage.requests()), Vec::<String>::new());
}
