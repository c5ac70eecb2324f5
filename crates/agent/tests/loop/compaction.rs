//! Summing a conversation up, beside the work and by request.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use futures_util::future::BoxFuture;
use hangar_agent::driver::Hooks;
use hangar_agent::hook::{HookAnswer, HookRequest};
use hangar_agent::model::{Finish, Message, ModelErrorKind, ModelRequest, Part, ToolChoice};
use hangar_agent::session::{Command, Compaction, ConversationState, Prompt};
use hangar_protocol::Body;
use hangar_protocol::data::{
    Attachment, CompactionTrigger, NotificationKind, PlanAndTodos, SkillInvoked, SystemNotification, Todo,
};

use crate::stage::{Line, Place, Setting, Stage, call};

fn stage(start: f64, lines: Vec<Line>) -> Stage {
    let compaction = Some(Compaction { start, wait: 2.0 });
    Stage::set(Setting { compaction, max_prompt_tokens: 1000, ..Default::default() }, lines)
}

async fn say(stage: &mut Stage, prompt: &str) {
    stage.send(prompt);
    stage.until_idle().await;
}

fn outcomes(stage: &Stage) -> Vec<bool> {
    let bodies = stage.bodies().into_iter();
    bodies
        .filter_map(|body| if let Body::CompactionComplete(end) = body { Some(end.success) } else { None })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn below_the_threshold_nothing_is_summed_up() {
    let mut stage = stage(0.9, vec![Line::Say("one"), Line::Say("two")]);
    say(&mut stage, "first").await;
    say(&mut stage, "second").await;
    assert_eq!(stage.count("session.compaction_start"), 0);
}

/// Fills the context of a session with the usual thresholds with so many letters, each of them a token, of 10 000: how
/// many summaries were begun, and whether the answer waits for one.
async fn at_share(letters: usize) -> (usize, bool) {
    let setting =
        Setting { compaction: Some(Compaction::default()), max_prompt_tokens: 10_000, ..Default::default() };
    let lines = vec![Line::Say("one"), Line::SayAfter(Duration::from_secs(60), "slow"), Line::Say("two")];
    let mut stage = Stage::set(setting, lines);
    say(&mut stage, "first").await;
    let told = |stage: &Stage| stage.driver.session().measure().unwrap().total();
    // A prompt is shown with the time, which has letters too.
    let decoration = told(&stage) - "first".len() as u64 - "one".len() as u64;
    let prompt = letters - usize::try_from(told(&stage) + decoration).unwrap();
    stage.send(&"x".repeat(prompt));
    assert_eq!(told(&stage), letters as u64);
    let asked =
        stage.requests().into_iter().filter(|request| request.tool_choice == ToolChoice::Auto).count();
    (stage.count("session.compaction_start"), asked == 1)
}

#[tokio::test(start_paused = true)]
async fn a_summary_begins_at_four_fifths_and_work_waits_when_the_context_is_full() {
    assert_eq!(at_share(7_999).await, (0, false));
    assert_eq!(at_share(8_000).await, (1, false));
    assert_eq!(
        at_share(9_999).await,
        (1, false),
        "the first that is too long begins the summary and goes on"
    );
    assert_eq!(at_share(10_000).await, (1, true), "what does not fit is not sent");
}

#[tokio::test(start_paused = true)]
async fn work_waits_for_a_summary_from_nineteen_twentieths_on() {
    let check = async |letters: usize, waits: bool| {
        let setting = Setting {
            compaction: Some(Compaction::default()),
            max_prompt_tokens: 10_000,
            ..Default::default()
        };
        let never = Duration::from_secs(86_400);
        let lines =
            vec![Line::Say("one"), Line::SayAfter(never, "slow"), Line::Say("two"), Line::Say("three")];
        let mut stage = Stage::set(setting, lines);
        let told =
            |stage: &Stage| usize::try_from(stage.driver.session().measure().unwrap().total()).unwrap();
        say(&mut stage, "first").await;
        let decoration = told(&stage) - "first".len() - "one".len();
        let room = 8_000 - told(&stage) - decoration;
        say(&mut stage, &"x".repeat(room)).await;
        let room = letters - told(&stage) - decoration;
        stage.send(&"y".repeat(room));
        assert_eq!(told(&stage), letters);
        let asked = stage.requests().iter().filter(|request| request.tool_choice == ToolChoice::Auto).count();
        assert_eq!(asked == 2, waits, "{letters}");
    };
    check(9_499, false).await;
    check(9_500, true).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_said_since_a_summary_began_stays_as_it_was() {
    let lines = vec![
        Line::Say("one"),
        Line::SayAfter(Duration::from_secs(1), "THE SUMMARY"),
        call("a", "slow"),
        Line::Say("done"),
    ];
    let mut stage = stage(0.05, lines);
    say(&mut stage, "first").await;
    say(&mut stage, "second").await;
    let (requests, shown) = (stage.requests(), stage.last_request());
    assert_eq!(requests.last().unwrap().system, requests[0].system);
    let (summarized, since) = shown.split_once("</system_reminder>\n").unwrap();
    assert!(
        summarized.contains("THE SUMMARY") && summarized.contains("first") && summarized.contains("second"),
        "{summarized}"
    );
    assert_eq!(since, "assistant: [\"a\"]\ntool a: a done");
}

#[tokio::test(start_paused = true)]
async fn the_events_of_a_summary_say_what_it_was_about() {
    let mut stage = stage(9.0, vec![Line::Say("one"), Line::Say("S <checkpoint_title>T</checkpoint_title>")]);
    say(&mut stage, "first").await;
    let before = stage.driver.session().measure().unwrap();
    stage.command(Command::Compact {
        instructions: Some("the tests".to_owned()),
        trigger: Some(CompactionTrigger::Manual),
    });
    stage.until("session.compaction_complete").await;
    let data = |kind: &str| {
        let event = stage.log().into_iter().find(|event| event.kind() == kind).unwrap();
        event.body().data().unwrap()
    };
    let start = data("session.compaction_start");
    assert_eq!(start["trigger"], "manual");
    assert_eq!(
        (start["currentTokens"].as_u64(), start["tokenLimit"].as_u64()),
        (Some(before.total()), Some(1000))
    );
    let complete = data("session.compaction_complete");
    let after = stage.driver.session().measure().unwrap().total();
    let number = |name: &str| complete[name].as_u64();
    assert_eq!(
        (number("preCompactionTokens"), number("postCompactionTokens")),
        (Some(before.total()), Some(after))
    );
    assert_eq!((number("messagesRemoved"), number("preCompactionMessagesLength")), (Some(2), Some(2)));
    assert_eq!(
        (number("checkpointNumber"), complete["checkpointPath"].as_str()),
        (Some(1), Some("/s/checkpoints/001-t.md"))
    );
    assert_eq!((&complete["success"], &complete["customInstructions"]), (&true.into(), &"the tests".into()));
    assert!(complete["summaryContent"].as_str().unwrap().starts_with("S "));
}

#[tokio::test(start_paused = true)]
async fn a_summary_takes_the_place_of_what_it_covers_and_people_s_words_stay() {
    let mut stage = stage(9.0, vec![Line::Say("one"), Line::Say("THE SUMMARY"), Line::Say("two")]);
    say(&mut stage, "first").await;
    stage.command(Command::Compact { instructions: None, trigger: None });
    stage.until("session.compaction_complete").await;
    say(&mut stage, "second").await;
    expect![[r#"
        user: Some of the conversation history has been summarized to free up context.

        You were originally given instructions from a user over one or more turns. Here were the user messages:
        <user_message>
        first
        </user_message>

        Here is a summary of the prior context:
        <summary>
        THE SUMMARY
        </summary>

        <system_reminder>The session folder is /s.</system_reminder>
        user: second"#]]
    .assert_eq(&stage.last_request());
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_made_beside_the_work_that_fills_the_context() {
    let mut stage = stage(0.05, vec![Line::Say("one")]);
    say(&mut stage, "first").await;
    say(&mut stage, "second").await;
    assert_eq!(stage.requests().len(), 3);
    assert_eq!(stage.count("session.compaction_start"), 1);
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_fails_leaves_everything_as_it_was() {
    let mut stage =
        stage(9.0, vec![Line::Say("one"), Line::Fail(ModelErrorKind::Server, Some(500)), Line::Say("two")]);
    say(&mut stage, "first").await;
    stage.command(Command::Compact { instructions: None, trigger: None });
    stage.until("session.compaction_complete").await;
    say(&mut stage, "second").await;
    assert_eq!(outcomes(&stage), [false]);
    expect![[r#"
        user: first
        assistant: one[]
        user: second"#]]
    .assert_eq(&stage.last_request());
}

fn trigger_of(stage: &Stage) -> Vec<String> {
    let bodies = stage.bodies().into_iter();
    bodies
        .filter_map(|body| match body {
            Body::CompactionStart(start) => Some(serde_json::to_value(start.trigger).unwrap()),
            _ => None,
        })
        .map(|trigger| trigger.as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn the_summary_request_keeps_prefix_and_tools_and_calls_none() {
    let mut stage = stage(0.05, vec![Line::Say("one")]);
    say(&mut stage, "first").await;
    say(&mut stage, "second").await;
    let requests = stage.requests();
    let summary = requests.iter().find(|request| request.tool_choice == ToolChoice::None).unwrap();
    let main = requests.iter().rfind(|request| request.tool_choice == ToolChoice::Auto).unwrap();
    assert_eq!(summary.system, main.system);
    assert_eq!(summary.tools, main.tools);
    // The prefix is the same to the byte; the request for a summary comes behind it.
    assert_eq!(summary.messages[..summary.messages.len() - 1], main.messages[..]);
    // Some vendors refuse a long answer in one piece.
    assert_eq!(summary.stream, main.stream);
}

#[tokio::test(start_paused = true)]
async fn a_summary_has_a_limit_of_its_own_below_that_of_the_model() {
    for (model, summary) in [(None, None), (Some(8000), None), (Some(128_000), Some(32_000))] {
        let compaction = Some(Compaction { start: 0.05, wait: 2.0 });
        let setting =
            Setting { compaction, max_prompt_tokens: 1000, max_output_tokens: model, ..Default::default() };
        let mut stage = Stage::set(setting, vec![Line::Say("one")]);
        say(&mut stage, "first").await;
        say(&mut stage, "second").await;
        let requests = stage.requests();
        let limits = |choice: ToolChoice| {
            let found = requests.iter().find(|request| request.tool_choice == choice).unwrap();
            found.max_output_tokens
        };
        assert_eq!((limits(ToolChoice::Auto), limits(ToolChoice::None)), (None, summary), "{model:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn fewer_than_four_messages_are_not_summed_up() {
    let mut stage = stage(0.0001, vec![Line::Say("one")]);
    say(&mut stage, "first").await;
    assert_eq!(stage.count("session.compaction_start"), 0);
    assert_eq!(stage.counted.load(std::sync::atomic::Ordering::Relaxed), 0, "nothing depends on the count");
    say(&mut stage, "second").await;
    assert_eq!(stage.count("session.compaction_start"), 1);
}

#[tokio::test(start_paused = true)]
async fn work_goes_on_beside_a_slow_summary_until_the_context_is_nearly_full() {
    let compaction = Some(Compaction { start: 0.1, wait: 0.5 });
    let setting = Setting { compaction, max_prompt_tokens: 1000, ..Default::default() };
    let long: &'static str = Box::leak("x".repeat(500).into_boxed_str());
    let lines = vec![
        Line::Say("one"),
        Line::SayAfter(Duration::from_secs(60), "THE SUMMARY"),
        Line::Say(long),
        Line::Say("after"),
    ];
    let mut stage = Stage::set(setting, lines);
    say(&mut stage, "first").await;
    // 0.1 is passed: the summary starts, the answer does not wait for it.
    say(&mut stage, &"y".repeat(100)).await;
    assert_eq!((stage.requests().len(), stage.count("session.compaction_complete")), (3, 0));
    // 0.5 is passed: the answer waits.
    stage.send("third");
    assert_eq!(stage.requests().len(), 3);
    stage.until_idle().await;
    assert_eq!((stage.requests().len(), stage.count("session.compaction_complete")), (4, 1));
    assert!(stage.last_request().contains("THE SUMMARY"), "{}", stage.last_request());
}

#[tokio::test(start_paused = true)]
async fn a_call_and_its_result_are_never_on_two_sides_of_a_summary() {
    let lines = vec![
        Line::Say("one"),
        Line::SayAfter(Duration::from_secs(1), "THE SUMMARY"),
        call("a", "slow"),
        call("b", "slow"),
        Line::Say("done"),
    ];
    let mut stage = stage(0.05, lines);
    say(&mut stage, "first").await;
    say(&mut stage, &"y".repeat(40)).await;
    for request in stage.requests() {
        let mut open: Vec<String> = Vec::new();
        for message in &request.messages {
            match &**message {
                Message::Assistant(turn) => open.extend(turn.tool_calls.iter().map(|call| call.id.clone())),
                Message::Tool { call_id, .. } => {
                    assert!(open.contains(call_id), "a result without its call");
                    open.retain(|id| id != call_id);
                }
                Message::User(_) => assert!(open.is_empty(), "a call without its result"),
            }
        }
        assert!(open.is_empty());
    }
    // At this threshold every answer may begin a summary.
    let outcomes = outcomes(&stage);
    assert!(!outcomes.is_empty() && outcomes.iter().all(|succeeded| *succeeded), "{outcomes:?}");
}

#[tokio::test(start_paused = true)]
async fn a_refusal_as_too_long_forces_a_summary_and_one_retry() {
    let lines = vec![
        Line::Say("one"),
        Line::Fail(ModelErrorKind::ContextLength, Some(413)),
        Line::Say("<checkpoint_title>So far</checkpoint_title>"),
        Line::Say("two"),
    ];
    let mut stage = stage(9.0, lines);
    say(&mut stage, "first").await;
    say(&mut stage, "second").await;
    assert_eq!(trigger_of(&stage), ["context_limit_retry"]);
    let reasons: Vec<String> = stage
        .bodies()
        .into_iter()
        .filter_map(|body| if let Body::TurnRetry(retry) = body { retry.reason } else { None })
        .collect();
    assert_eq!(reasons, ["forced_compaction"]);
    assert_eq!(stage.count("session.error"), 0);
    assert_eq!(stage.requests().len(), 4);
    assert!(stage.last_request().starts_with("user: Some of the conversation"), "{}", stage.last_request());
}

#[tokio::test(start_paused = true)]
async fn a_second_refusal_of_the_same_turn_is_an_error() {
    let refused = || Line::Fail(ModelErrorKind::ContextLength, Some(400));
    let mut stage = stage(9.0, vec![Line::Say("one"), refused(), Line::Say("summary"), refused()]);
    say(&mut stage, "first").await;
    say(&mut stage, "second").await;
    assert_eq!((stage.count("session.error"), stage.requests().len()), (1, 4));
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_large_though_it_was_made_shorter_is_tried_again() {
    let refused = || Line::Fail(ModelErrorKind::ContextLength, Some(413));
    for (after, errors, requests) in [(vec![refused(), Line::Say("two")], 0, 5), (vec![refused(); 9], 1, 9)] {
        let mut lines = vec![Line::Say("one"), refused(), Line::Say("summary")];
        lines.extend(after);
        let mut stage = stage(9.0, lines);
        say(&mut stage, "first").await;
        say(&mut stage, "second").await;
        assert_eq!((stage.count("session.error"), stage.requests().len()), (errors, requests));
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_conversation_a_summary_fails() {
    let mut stage = stage(9.0, vec![]);
    stage.command(Command::Compact { instructions: None, trigger: None });
    let complete = stage.bodies().into_iter().find_map(|body| match body {
        Body::CompactionComplete(complete) => Some((complete.success, complete.error)),
        _ => None,
    });
    assert_eq!(complete, Some((false, Some("Nothing to compact.".to_owned()))));
    assert_eq!((stage.count("session.compaction_start"), stage.requests().len()), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn with_too_little_to_sum_up_a_refusal_is_an_error() {
    let mut stage = stage(9.0, vec![Line::Fail(ModelErrorKind::ContextLength, Some(413))]);
    say(&mut stage, "first").await;
    assert_eq!((stage.count("session.error"), stage.count("session.compaction_start")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_forced_summary_that_fails_ends_the_run_with_the_first_error() {
    let lines = vec![
        Line::Say("one"),
        Line::Fail(ModelErrorKind::ContextLength, Some(413)),
        Line::Fail(ModelErrorKind::Server, Some(500)),
        Line::Say("still here"),
    ];
    let mut stage = stage(9.0, lines);
    say(&mut stage, "first").await;
    say(&mut stage, "second").await;
    assert_eq!((outcomes(&stage), stage.count("session.error")), (vec![false], 1));
    say(&mut stage, "third").await;
    assert_eq!(stage.count("session.error"), 1);
}

#[tokio::test(start_paused = true)]
async fn images_give_way_to_a_word_when_the_request_is_too_large() {
    check_images_give_way(ModelErrorKind::ContextLength, 413).await;
}

#[tokio::test(start_paused = true)]
async fn images_that_the_provider_cannot_read_give_way_to_a_word() {
    check_images_give_way(ModelErrorKind::Image, 400).await;
}

async fn check_images_give_way(kind: ModelErrorKind, status: u16) {
    let mut stage = stage(9.0, vec![Line::Fail(kind, Some(status)), Line::Say("one")]);
    let image = Attachment::Blob {
        data: Some("aGk=".to_owned()),
        mime_type: "image/png".to_owned(),
        display_name: None,
    };
    stage.command(Command::Send(Prompt { attachments: vec![image], ..Prompt::user("look") }));
    stage.until_idle().await;
    let requests = stage.requests();
    let shows = |request: &ModelRequest| format!("{:?}", request.messages).contains("Image");
    assert_eq!(requests.iter().map(shows).collect::<Vec<_>>(), [true, false]);
    assert!(stage.last_request().contains(hangar_agent::conversation::IMAGE_WITHHELD));
    assert_eq!(stage.count("session.error"), 0);
    // The same after a resume: the log knows.
    let mut again = Stage::set(Setting { log: stage.log(), ..Default::default() }, vec![Line::Say("x")]);
    say(&mut again, "go on").await;
    assert!(!shows(&again.requests()[0]));
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_fails_beside_the_work_is_said_and_not_tried_at_once_again() {
    let lines = vec![
        Line::Say("one"),
        Line::Fail(ModelErrorKind::Server, Some(500)),
        Line::Say("two"),
        Line::Say("three"),
    ];
    let mut stage = stage(0.01, lines);
    say(&mut stage, "first").await;
    say(&mut stage, "second").await;
    stage.until("session.compaction_complete").await;
    say(&mut stage, "third").await;
    assert_eq!(outcomes(&stage), [false]);
    let said = stage.bodies().into_iter().find_map(|body| match body {
        Body::CompactionComplete(end) => Some((end.error, end.status_code)),
        _ => None,
    });
    assert_eq!(said, Some((Some("Server".to_owned()), Some(500))));
    assert_eq!(stage.count("session.error"), 0);
}

#[tokio::test(start_paused = true)]
async fn without_infinite_sessions_the_oldest_exchanges_go_and_nothing_is_summed_up() {
    let setting = Setting { compaction: None, max_prompt_tokens: 600, ..Default::default() };
    let mut stage = Stage::set(setting, vec![]);
    for turn in 0..8 {
        say(&mut stage, &format!("{turn} {}", "z".repeat(400))).await;
    }
    assert_eq!(stage.count("session.compaction_start"), 0);
    assert!(stage.count("session.truncation") > 0);
    assert!(!stage.last_request().contains("user: 0 "));
}

#[tokio::test(start_paused = true)]
async fn each_message_is_counted_once() {
    let compaction = Some(Compaction { start: 0.0, wait: 9.0 });
    let setting =
        Setting { compaction, reports_usage: true, max_prompt_tokens: 1_000_000, ..Default::default() };
    let mut stage = Stage::set(setting, vec![Line::Say("one"), call("a", "echo"), Line::Say("two")]);
    say(&mut stage, "first").await;
    let after_first = stage.counted.load(std::sync::atomic::Ordering::Relaxed);
    assert_eq!((after_first, stage.count("session.usage_info")), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn hooks_are_told_before_a_summary_is_made() {
    let hooks = Some(Arc::new(Silent) as Arc<dyn Hooks>);
    let compaction = Some(Compaction { start: 9.0, wait: 9.0 });
    let mut stage = Stage::set(Setting { compaction, hooks, ..Default::default() }, vec![Line::Say("one")]);
    say(&mut stage, "first").await;
    stage.command(Command::Compact {
        instructions: Some("the tests".to_owned()),
        trigger: Some(CompactionTrigger::Manual),
    });
    stage.until("session.compaction_complete").await;
    let asked = stage.bodies().into_iter().find_map(|body| match body {
        Body::HookStart(start) if start.hook_type == "preCompact" => start.input,
        _ => None,
    });
    let asked = asked.unwrap();
    assert_eq!(
        (asked["trigger"].as_str(), asked["customInstructions"].as_str()),
        (Some("manual"), Some("the tests"))
    );
}

#[tokio::test(start_paused = true)]
async fn a_summary_that_nobody_waits_for_any_more_is_told_as_cancelled() {
    let compaction = Some(Compaction { start: 9.0, wait: 9.0 });
    let mut stage = Stage::set(Setting { compaction, ..Default::default() }, vec![Line::Say("one")]);
    say(&mut stage, "first").await;
    stage.command(Command::Compact { instructions: None, trigger: None });
    stage.command(Command::Shutdown { error: None });
    let complete = stage.bodies().into_iter().find_map(|body| match body {
        Body::CompactionComplete(complete) => Some(complete),
        _ => None,
    });
    let complete = complete.unwrap();
    assert_eq!((complete.success, complete.error.as_deref()), (false, Some("Compaction Cancelled")));
    assert!(matches!(stage.bodies().last(), Some(Body::SessionShutdown(_))));
}

struct Silent;

impl Hooks for Silent {
    fn ask(&self, _: &HookRequest) -> BoxFuture<'static, HookAnswer> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

/// Records that the session must keep: all user messages, the plan, the todos, instructions and skills.
#[tokio::test(start_paused = true)]
async fn twenty_summaries_in_a_row_lose_nothing_that_is_owed_and_cost_the_same_each() {
    const ROUNDS: usize = 20;
    let plan = "# Plan\n\n1. *first*\n2. `second` \u{2713}\n";
    let todo = Todo {
        id: "t1".to_owned(),
        title: "write the tests".to_owned(),
        description: "all of them".to_owned(),
        status: "in_progress".to_owned(),
    };
    let place = Place {
        plan_and_todos: PlanAndTodos { plan: Some(plan.to_owned()), todos: vec![todo] },
        unchanged: false,
    };
    let compaction = Some(Compaction { start: 9.0, wait: 9.0 });
    let setting = Setting { compaction, place, max_prompt_tokens: 20_000, ..Default::default() };
    let mut lines = Vec::new();
    for round in 0..ROUNDS {
        let summary =
            format!("round {round}. {}<checkpoint_title>Round {round}</checkpoint_title>", "s".repeat(2_000));
        lines.push(Line::Say(Box::leak("w".repeat(3_000).into_boxed_str())));
        lines.push(Line::Say(Box::leak(summary.into_boxed_str())));
    }
    let mut stage = Stage::set(setting, lines);
    let skill = SkillInvoked {
        name: "release".to_owned(),
        path: "/w/SKILL.md".to_owned(),
        content: "Tag, then publish.\n\tNever the other way round.".to_owned(),
        ..Default::default()
    };
    let instruction = "<system_reminder>\nUse tabs in src.\n</system_reminder>";
    let mut owed =
        vec![plan.to_owned(), skill.content.clone(), instruction.to_owned(), "write the tests".to_owned()];
    for round in 0..ROUNDS {
        let request =
            format!("Rule {round}: keep \u{00e4}\u{1f980} \"quotes\"  and   blanks\n\tas they are.");
        say(&mut stage, &request).await;
        owed.push(format!("<user_message>\n{request}\n</user_message>"));
        if round == 0 {
            stage.command(Command::Record(skill.clone().into()));
            let discovered = SystemNotification {
                content: instruction.to_owned(),
                kind: NotificationKind::InstructionDiscovered {
                    source_path: "/w/AGENTS.md".to_owned(),
                    trigger_file: "/w/src/a".to_owned(),
                    trigger_tool: "view".to_owned(),
                    description: None,
                },
            };
            stage.command(Command::Record(discovered.into()));
        }
        stage.command(Command::Compact { instructions: None, trigger: None });
        while stage.driver.session().is_compacting() {
            assert!(stage.driver.turn().await.unwrap());
        }
        // After each one, live and from the log alone, all of it is there to the byte.
        let mut state = ConversationState::default();
        stage.log().iter().for_each(|event| state.apply_event(event));
        for conversation in [&stage.driver.session().state().conversation, &state.conversation] {
            let Some(Message::User(parts)) = conversation.messages().next().map(|message| &**message) else {
                panic!("no summarized")
            };
            let [Part::Text(summarized)] = parts.as_slice() else { panic!("no text") };
            for record in &owed {
                assert!(summarized.contains(record.as_str()), "round {round} lost {record:?}");
            }
            assert!(summarized.contains(&format!("round {round}.")));
            assert_eq!(conversation.len(), 1);
        }
    }
    assert_eq!(outcomes(&stage), [true; ROUNDS]);
    // A summary is asked for from originals: what it covers is in the request as it was said.
    let asked: Vec<ModelRequest> =
        stage.requests().into_iter().filter(|request| request.tool_choice == ToolChoice::None).collect();
    assert_eq!(asked.len(), ROUNDS);
    let size = |request: &ModelRequest| format!("{:?}", request.messages).len();
    for request in &asked {
        assert!(format!("{:?}", request.messages).contains(&"w".repeat(3_000)));
    }
    // Linear: the last ones cost no more than those before, apart from what people said since.
    let (middle, last) = (size(&asked[ROUNDS / 2]), size(&asked[ROUNDS - 1]));
    assert!(last < middle + ROUNDS * 200 + 4_000, "{middle} bytes became {last}");
    // Older summaries are not repeated; their files are named.
    let summarized = stage.driver.session().state().conversation.messages().next().cloned();
    let summarized = format!("{summarized:?}");
    assert!(
        summarized.contains("checkpoints/001-round-0.md") && !summarized.contains("round 0."),
        "{summarized}"
    );
}

#[tokio::test(start_paused = true)]
async fn after_a_summary_the_model_is_told_what_it_was_told_before_and_not_what_people_were_shown() {
    let compaction = Some(Compaction { start: 9.0, wait: 9.0 });
    let mut stage = Stage::set(
        Setting { compaction, ..Default::default() },
        vec![Line::Say("one"), Line::Say("two"), Line::Say("summed up")],
    );
    let shown = Some("/tidy".to_owned());
    stage.command(Command::Send(Prompt { shown, ..Prompt::user("Tidy the whole tree.") }));
    stage.until_idle().await;
    say(&mut stage, "And then?").await;
    stage.command(Command::Compact { instructions: None, trigger: None });
    stage.until("session.compaction_complete").await;
    let summarized = stage.driver.session().state().conversation.messages().next().cloned();
    let summarized = format!("{summarized:?}");
    assert!(summarized.contains("Tidy the whole tree.") && !summarized.contains("/tidy"), "{summarized}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_no_summary_replaces_nothing() {
    for line in [
        Line::Ends("Let me look.", vec![("c", "echo", "{}")], Finish::ToolCalls),
        Line::Finish("I cannot", Finish::Refusal(None)),
        Line::Finish("half", Finish::Broken("error".to_owned())),
        Line::Say(" "),
    ] {
        let setting = Setting { compaction: Some(Compaction::default()), ..Setting::default() };
        let mut stage = Stage::set(setting, vec![Line::Say("one"), line, Line::Say("two")]);
        stage.play("first").await;
        stage.command(Command::Compact { instructions: None, trigger: None });
        stage.until("session.compaction_complete").await;
        let failed = stage
            .bodies()
            .into_iter()
            .any(|body| matches!(body, Body::CompactionComplete(end) if !end.success && end.error.is_some()));
        assert!(failed, "{:?}", stage.kinds());
        stage.play("second").await;
        assert!(stage.last_request().starts_with("user: first"), "{}", stage.last_request());
    }
}
