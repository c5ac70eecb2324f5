//! Instructions that come when their time has come, once.

use std::time::Duration;

use hangar_agent::session::{Due, JustInTime};
use hangar_protocol::{Body, Event};

use crate::stage::{Line, Place, Setting, Stage, call};

fn instruction(due: Due, only_unchanged: bool) -> JustInTime {
    JustInTime { text: "Wrap up.".to_owned(), due, only_unchanged }
}

fn stage(instruction: JustInTime, unchanged: bool, log: Vec<Event>) -> Stage {
    let place = Place { unchanged, ..Place::default() };
    let setting = Setting { just_in_time: vec![instruction], place, log, ..Default::default() };
    Stage::set(setting, vec![call("a", "slow"), call("b", "slow"), call("c", "slow"), Line::Say("done")])
}

/// Before which of the four calls to the model it was told.
async fn told_before(instruction: JustInTime, unchanged: bool) -> Vec<usize> {
    let mut stage = stage(instruction, unchanged, Vec::new());
    stage.play("go").await;
    let requests = stage.requests();
    let told = |index: &usize| format!("{:?}", requests[*index].messages).contains("Wrap up.");
    let first = (0..requests.len()).find(told);
    let sources = stage.bodies().into_iter().filter(
        |body| matches!(body, Body::UserMessage(message) if message.source.as_deref() == Some("jit-instruction")),
    );
    first.into_iter().cycle().take(sources.count()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_instruction_comes_once_when_so_many_turns_are_used_up() {
    assert_eq!(told_before(instruction(Due::AfterTurns(2), false), false).await, [2]);
}

#[tokio::test(start_paused = true)]
async fn an_instruction_comes_once_when_so_much_time_is_used_up() {
    assert_eq!(told_before(instruction(Due::After(Duration::from_secs(3)), false), false).await, [2]);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_is_not_used_up_brings_nothing() {
    assert!(told_before(instruction(Due::AfterTurns(9), false), false).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_instruction_for_idle_work_depends_on_whether_anything_changed() {
    assert_eq!(told_before(instruction(Due::AfterTurns(1), true), true).await, [1]);
    assert!(told_before(instruction(Due::AfterTurns(1), true), false).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn an_instruction_does_not_come_again_after_a_resume() {
    let mut first = stage(instruction(Due::AfterTurns(1), false), true, Vec::new());
    first.play("go").await;
    first.play("go on").await;
    let mut again = stage(instruction(Due::AfterTurns(1), false), true, first.log());
    again.play("and on").await;
    let told = again.log().into_iter().filter(
        |event| matches!(event.body(), Body::UserMessage(message) if message.source.as_deref() == Some("jit-instruction")),
    );
    assert_eq!(told.count(), 1);
}
