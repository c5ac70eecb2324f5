//! Summing a conversation up, beside the work and by request.

use expect_test::expect;
use hangar_agent::model::ModelErrorKind;
use hangar_agent::session::{Command, Compaction};
use hangar_protocol::Body;

use crate::stage::{Line, Setting, Stage};

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

#[tokio::test(start_paused = true)]
async fn a_summary_takes_the_place_of_what_it_covers_and_people_s_words_stay() {
    let mut stage = stage(9.0, vec![Line::Say("one"), Line::Say("THE SUMMARY"), Line::Say("two")]);
    say(&mut stage, "first").await;
    stage.command(Command::Compact { instructions: None });
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
    stage.command(Command::Compact { instructions: None });
    stage.until("session.compaction_complete").await;
    say(&mut stage, "second").await;
    assert_eq!(outcomes(&stage), [false]);
    expect![[r#"
        user: first
        assistant: one[]
        user: second"#]]
    .assert_eq(&stage.last_request());
}
