//! Reasoning goes back behind the messages that it followed, and nowhere else, whenever a summary is ready.

use std::time::Duration;

use hangar_agent::model::{Message, ModelErrorKind, ModelRequest, ToolChoice};
use hangar_agent::session::{Command, Compaction};
use hangar_agent::tool::Toolset;
use hangar_protocol::data::Mode;
use hangar_protocol::{Body, Event};

use crate::stage::{Line, Setting, Stage, call};

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
async fn a_cycle_of_bound_reasoning_begins_with_the_summary_and_none_is_thrown_away() {
    for seconds in [0, 1, 3, 14, 30] {
        let mut stage = stage(seconds, 9.0);
        for prompt in ["first", "second", "third"] {
            stage.send(prompt);
            stage.until_idle().await;
        }
        assert_eq!(refusals(&stage.requests()), Vec::<String>::new(), "after {seconds} s");
        let summaries = summaries(&stage);
        assert!(
            !summaries.is_empty() && summaries.iter().all(|used| *used),
            "after {seconds} s: {summaries:?}"
        );
        assert!(stage.last_request().contains("THE SUMMARY"), "after {seconds} s");
        assert_eq!(
            tells_of_dropped_reasoning(&stage),
            0,
            "after {seconds} s: it has all that follows the summary"
        );
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
async fn an_aborted_cycle_leaves_no_summary_under_way() {
    let mut stage = stage(3, 9.0);
    stage.send("first");
    stage.until_idle().await;
    stage.send("second");
    // The run ends in the middle of its cycle.
    while stage.count("tool.execution_complete") < 1 {
        assert!(stage.driver.turn().await.unwrap());
    }
    stage.command(Command::Abort { reason: "user_initiated".to_owned() });
    stage.until_idle().await;
    assert!(!stage.driver.session().is_compacting());
    assert_eq!(summaries(&stage), [true]);
    stage.send("third");
    stage.until_idle().await;
    assert_eq!(refusals(&stage.requests()), Vec::<String>::new());
}

/// Tools of each request, by name.
fn tools(stage: &Stage) -> Vec<String> {
    let names = |request: &ModelRequest| {
        request.tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(" ")
    };
    stage.requests().iter().map(names).collect()
}

/// A session that makes two calls for its first prompt, and one for its second. Something happens during the first call.
async fn changed_during_a_call(signs: bool, change: impl FnOnce(&mut Stage)) -> Stage {
    let setting = Setting { signs, ..Setting::default() };
    let lines = vec![call("a", "slow"), call("b", "slow"), Line::Say("one"), Line::Say("two")];
    let mut stage = Stage::set(setting, lines);
    stage.send("first");
    stage.until("tool.execution_start").await;
    change(&mut stage);
    stage.until_idle().await;
    stage.play("second").await;
    stage
}

#[tokio::test(start_paused = true)]
async fn another_mode_has_its_tools_when_the_cycle_has_ended() {
    let stage = changed_during_a_call(true, |stage| stage.command(Command::SetMode(Mode::Autopilot))).await;
    let completes = |tools: &String| tools.contains("task_complete");
    // The autopilot goes on by itself until its cap.
    let offered: Vec<bool> = tools(&stage).iter().map(completes).collect();
    assert_eq!(offered[..4], [false, false, false, true]);
    let told: Vec<String> = infos(&stage, "tools_held");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(told[0].contains("new tool(s) are offered from the next prompt on"), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn where_nothing_is_bound_another_mode_has_its_tools_at_once() {
    let stage = changed_during_a_call(false, |stage| stage.command(Command::SetMode(Mode::Autopilot))).await;
    assert!(!tools(&stage)[0].contains("task_complete") && tools(&stage)[1].contains("task_complete"));
    assert_eq!(infos(&stage, "tools_held"), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_comes_late_is_offered_when_the_cycle_has_ended() {
    let late = Stage::new(vec![]).driver.tools().iter().next().cloned().unwrap();
    let setting = Setting { signs: true, ..Setting::default() };
    let lines = vec![call("b", "slow"), Line::Say("one"), Line::Say("two")];
    let mut stage = Stage::set(setting, lines);
    let all: Vec<_> = stage.driver.tools().iter().cloned().collect();
    stage.driver.set_tools(Toolset::new(all[1..].to_vec()), &[]).unwrap();
    stage.send("first");
    stage.until("tool.execution_start").await;
    let more = all[1..].iter().cloned().chain([late]).collect();
    stage.driver.set_tools(Toolset::new(more), &[]).unwrap();
    stage.until_idle().await;
    stage.play("second").await;
    assert_eq!(tools(&stage), ["slow hang write", "slow hang write", "slow hang write echo"]);
    assert_eq!(infos(&stage, "tools_held").len(), 1);
}

/// The tools of each request and those that were added in the conversation: `a b | 3: c`.
fn offers(stage: &Stage) -> Vec<String> {
    let names = |tools: &[std::sync::Arc<hangar_agent::tool::ToolSpec>]| {
        tools.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>().join(" ")
    };
    let offer = |request: &ModelRequest| {
        let later = request.later_tools().map(|(behind, tools)| format!(" | {behind}: {}", names(tools)));
        names(request.first_tools()) + &later.collect::<String>()
    };
    stage.requests().iter().map(offer).collect()
}

/// The next process of a session.
fn resumed(stage: &Stage, answer: &'static str) -> Stage {
    let setting = Setting { log: stage.log(), signs: true, ..Setting::default() };
    Stage::set(setting, vec![Line::Say(answer)])
}

#[tokio::test(start_paused = true)]
async fn a_mode_adds_its_tools_behind_those_that_were_there_and_leaves_them_there() {
    let lines = vec![Line::Say("one"), call("a", "task_complete"), Line::Say("three"), Line::Say("four")];
    let mut stage = Stage::set(Setting { signs: true, ..Setting::default() }, lines);
    stage.play("first").await;
    stage.command(Command::SetMode(Mode::Autopilot));
    stage.play("second").await;
    stage.command(Command::SetMode(Mode::Interactive));
    stage.play("third").await;
    let late = "echo slow hang write | 3: task_complete ask_user";
    assert_eq!(offers(&stage), ["echo slow hang write", late, late]);
    assert_eq!(infos(&stage, "reasoning_dropped"), Vec::<String>::new());
    // After a resume, too.
    let mut stage = resumed(&stage, "five");
    stage.play("fourth").await;
    assert_eq!(offers(&stage), [late]);
}

#[tokio::test(start_paused = true)]
async fn the_tools_of_a_mode_that_has_ended_cannot_be_called() {
    let lines = vec![call("a", "task_complete"), call("b", "task_complete"), Line::Say("done")];
    let mut stage = Stage::new(lines);
    stage.command(Command::SetMode(Mode::Autopilot));
    stage.play("first").await;
    stage.command(Command::SetMode(Mode::Interactive));
    stage.play("second").await;
    let refused = stage.last_request().contains("Tool 'task_complete' is no longer available.");
    assert!(refused, "{}", stage.last_request());
}

#[tokio::test(start_paused = true)]
async fn a_resumed_session_has_its_tools_in_the_order_in_which_they_came() {
    let mut stage = Stage::set(Setting::default(), vec![Line::Say("one"), Line::Say("two")]);
    let all: Vec<_> = stage.driver.tools().iter().cloned().collect();
    stage.driver.set_tools(Toolset::new(all[2..].to_vec()), &[]).unwrap();
    stage.play("first").await;
    let late = all[2..].iter().chain(&all[..2]).cloned().collect();
    stage.driver.set_tools(Toolset::new(late), &[]).unwrap();
    stage.play("second").await;
    let before = offers(&stage).last().cloned();
    // The next process finds them in another order.
    let mut stage = resumed(&stage, "three");
    stage.play("third").await;
    assert_eq!(offers(&stage).last().cloned(), before);
    assert_eq!(before.as_deref(), Some("hang write | 3: echo slow"));
}

#[tokio::test(start_paused = true)]
async fn reasoning_that_the_log_does_not_have_is_told_when_the_session_is_resumed() {
    let setting = Setting { signs: true, ..Setting::default() };
    let mut stage = Stage::set(setting, vec![Line::Say("one"), Line::Say("two"), Line::Say("three")]);
    for prompt in ["first", "second", "third"] {
        stage.play(prompt).await;
    }
    let told = |log: Vec<Event>| async {
        let setting = Setting { log, signs: true, ..Setting::default() };
        let mut stage = Stage::set(setting, vec![Line::Say("four")]);
        stage.play("fourth").await;
        infos(&stage, "reasoning_dropped")
    };
    assert_eq!(told(stage.log()).await, Vec::<String>::new());
    // A secret was in the items of two answers.
    let mut left = 2;
    let redacted = stage.log().into_iter().map(|event| match event.body() {
        Body::ModelItems(items) if left > 0 => {
            left -= 1;
            let mut items = items.clone();
            items.items = serde_json::value::to_raw_value(&()).unwrap();
            Event::new(
                event.id().clone(),
                event.timestamp().to_owned(),
                event.parent_id().cloned(),
                None,
                items.into(),
            )
        }
        _ => event,
    });
    let infos = told(redacted.collect()).await;
    assert!(infos.len() == 1 && infos[0].contains("behind 2 answer(s)"), "{infos:?}");
    // An older version logged only its own form of the reasoning.
    let old = stage.log().into_iter().filter(|event| !matches!(event.body(), Body::ModelItems(_)));
    let old = old.map(|event| match event.body() {
        Body::AssistantMessage(message) => {
            let mut message = message.clone();
            message.reasoning_opaque = Some("signature".to_owned());
            Event::new(
                event.id().clone(),
                event.timestamp().to_owned(),
                event.parent_id().cloned(),
                None,
                message.into(),
            )
        }
        _ => event,
    });
    let infos = told(old.collect()).await;
    assert!(infos.len() == 1 && infos[0].contains("behind 3 answer(s)"), "{infos:?}");
}

#[tokio::test(start_paused = true)]
async fn another_system_prompt_drops_earlier_reasoning_and_tells_it() {
    let setting = Setting { signs: true, ..Setting::default() };
    let mut stage = Stage::set(setting, vec![Line::Say("one"), Line::Say("two")]);
    stage.play("first").await;
    stage.driver.session_mut().set_system("another".into());
    stage.play("second").await;
    let told = infos(&stage, "reasoning_dropped");
    assert!(told.len() == 1 && told[0].contains("has another system prompt now"), "{told:?}");
}

fn infos(stage: &Stage, kind: &str) -> Vec<String> {
    let bodies = stage.bodies().into_iter();
    let told = bodies.filter_map(|body| if let Body::SessionInfo(info) = body { Some(info) } else { None });
    told.filter(|info| info.info_type == kind).map(|info| info.message).collect()
}

#[tokio::test(start_paused = true)]
async fn reasoning_that_the_provider_refuses_is_left_out_for_good() {
    let refused = || Line::Fail(ModelErrorKind::Reasoning, Some(400));
    let lines = vec![call("a", "echo"), Line::Say("one"), refused(), call("b", "echo"), Line::Say("two")];
    let mut stage = Stage::set(Setting { signs: true, ..Setting::default() }, lines);
    for prompt in ["first", "second"] {
        stage.send(prompt);
        stage.until_idle().await;
    }
    let items = |request: &ModelRequest| -> usize {
        let is_native =
            |message: &Message| matches!(message, Message::Assistant(turn) if turn.native.is_some());
        request.messages.iter().filter(|message| is_native(message)).count()
    };
    let sent: Vec<usize> = stage.requests().iter().map(items).collect();
    assert_eq!(sent, [0, 1, 2, 0, 1], "the answer behind the refusal keeps its own");
    assert_eq!((stage.count("session.error"), tells_of_dropped_reasoning(&stage)), (0, 1));
    // The same after a resume: the log knows.
    let setting = Setting { signs: true, log: stage.log(), ..Setting::default() };
    let mut again = Stage::set(setting, vec![Line::Say("x")]);
    again.send("third");
    again.until_idle().await;
    assert_eq!(items(&again.requests()[0]), 2);
    // A refusal without any reasoning in the request is final.
    let mut stage = Stage::set(Setting::default(), vec![refused(), Line::Say("never asked for")]);
    stage.send("first");
    stage.until_idle().await;
    assert_eq!((stage.requests().len(), stage.count("session.error")), (1, 1));
}
