//! Budgets: what calls cost, and caps that hold before a call is made.

use std::sync::Arc;

use expect_test::{Expect, expect};
use futures_util::StreamExt;
use hangar_agent::agents::config::{AgentConfig, AgentSetting, AgentSettings};
use hangar_agent::budget::{Budget, Cap};
use hangar_agent::model::{ModelErrorKind, Price, Rates};
use hangar_agent::session::{Command, Compaction};
use hangar_protocol::Body;
use hangar_protocol::data::Mode;
use serde_json::json;

use crate::stage::{Line, Setting, Stage, agent_config, call};

/// A thousandth of a dollar for each letter in, and for each token out.
fn price() -> Option<Price> {
    Some(Price::flat(Rates { input: 1000.0, output: 1000.0, cache_read: None, cache_write: None }))
}

fn within(budget: Budget) -> Setting {
    Setting { budget, price: price(), uses_all: true, ..Setting::default() }
}

fn dollars(max_cost: f64) -> Setting {
    within(Budget { max_cost: Some(max_cost), ..Budget::default() })
}

/// Plays a prompt; prints the output limits that were asked for, what was spent, and the error.
async fn check(setting: Setting, lines: Vec<Line>, expect: Expect) -> Stage {
    let mut stage = Stage::set(setting, lines);
    stage.play("go").await;
    expect.assert_eq(&told(&stage));
    stage
}

fn told(stage: &Stage) -> String {
    let limits: Vec<String> = stage
        .requests()
        .iter()
        .map(|request| request.max_output_tokens.map_or("-".to_owned(), |limit| limit.to_string()))
        .collect();
    let totals = &stage.driver.session().state().totals;
    let mut told = vec![
        format!("limits {}", limits.join(" ")),
        format!(
            "{} calls, ${:.3}, {} unpriced",
            totals.requests,
            totals.cost.unwrap_or(-1.0),
            totals.unpriced
        ),
    ];
    told.extend(stage.bodies().into_iter().filter_map(|body| match body {
        Body::SessionError(error) => {
            Some(format!("{} {}: {}", error.error_type, error.error_code.unwrap_or_default(), error.message))
        }
        _ => None,
    }));
    told.join("\n")
}

#[tokio::test(start_paused = true)]
async fn a_call_has_the_cost_that_its_price_makes() {
    let setting = Setting { price: price(), ..Setting::default() };
    check(
        setting,
        vec![call("a", "echo"), Line::Say("done")],
        expect![[r#"
        limits - -
        2 calls, $0.022, 0 unpriced"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_price_is_not_a_price_of_zero() {
    check(
        Setting::default(),
        vec![Line::Say("done")],
        expect![[r#"
        limits -
        1 calls, $-1.000, 1 unpriced"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_output_limit_is_lowered_to_what_fits_and_then_no_call_is_made() {
    let stage =
        check(dollars(5.0), vec![call("a", "echo"), call("b", "echo"), Line::Say("done")], expect![[r#"
            limits 3660
            1 calls, $3.816, 0 unpriced
            budget max_cost: the budget is used up: $3.82 of $5.00 are spent and the next call could cost $1.38; raise `--max-cost`, or `max_cost` in [budget] of config.toml, to go on"#]])
            .await;
    assert_eq!(stage.count("model.call_failure"), 0);
}

#[tokio::test(start_paused = true)]
async fn a_cap_on_tokens_holds_for_input_and_output() {
    let budget = Budget { max_tokens: Some(3000), ..Budget::default() };
    check(within(budget), vec![call("a", "echo"), Line::Say("done")], expect![[r#"
        limits 1660
        1 calls, $1.816, 0 unpriced
        budget max_tokens: the budget is used up: 1816 of 3000 tokens are spent and the next call could use 1384; raise `--max-tokens`, or `max_tokens` in [budget] of config.toml, to go on"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cap_on_turns_holds_and_lowers_nothing() {
    let budget = Budget { max_turns: Some(2), ..Budget::default() };
    let setting = Setting { budget, ..Setting::default() };
    check(setting, vec![call("a", "echo"), call("b", "echo"), Line::Say("never")], expect![[r#"
        limits - -
        2 calls, $-1.000, 2 unpriced
        budget max_turns: the budget is used up: 2 of 2 turns are spent; raise `--max-turns`, or `max_turns` in [budget] of config.toml, to go on"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_cap_on_cost_makes_no_call_without_a_price() {
    let setting = Setting { price: None, ..dollars(1.0) };
    check(setting, vec![Line::Say("never")], expect![[r#"
        limits 
        0 calls, $-1.000, 0 unpriced
        budget no_price: the price of the model `m` is not known, so a cap on cost cannot be held; set `price = { input = 1.0, output = 5.0 }` (US dollars for a million tokens) in its [providers.NAME] table of config.toml, or use `--max-tokens` instead"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_call_costs_nothing_and_a_cut_one_what_it_could() {
    let refused = Line::Fail(ModelErrorKind::Server, Some(503));
    check(
        dollars(9.0),
        vec![refused, Line::Say("done")],
        expect![[r#"
            limits 7660 7660
            1 calls, $7.816, 0 unpriced"#]],
    )
    .await;
    check(dollars(9.0), vec![Line::Cut("half"), Line::Say("done")], expect![[r#"
        limits 7660
        1 calls, $9.000, 0 unpriced
        budget max_cost: the budget is used up: $9.00 of $9.00 are spent and the next call could cost $2.36; raise `--max-cost`, or `max_cost` in [budget] of config.toml, to go on"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn what_was_spent_before_a_resume_is_spent() {
    let mut first = Stage::set(dollars(5.0), vec![Line::Say("one")]);
    first.play("go").await;
    let setting = Setting { log: first.log(), ..dollars(5.0) };
    check(setting, vec![Line::Say("never")], expect![[r#"
        limits 
        1 calls, $3.816, 0 unpriced
        budget max_cost: the budget is used up: $3.82 of $5.00 are spent and the next call could cost $2.50; raise `--max-cost`, or `max_cost` in [budget] of config.toml, to go on"#]]).await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_was_cut_or_stopped_is_on_record_after_a_resume() {
    // Without a cap its input is estimated.
    let mut stage = Stage::set(
        Setting { price: price(), ..Setting::default() },
        vec![Line::Cut("half"), Line::Say("done")],
    );
    stage.play("go").await;
    assert!(told(&stage).ends_with("2 calls, $1.351, 0 unpriced"), "{}", told(&stage));

    let mut stage = Stage::set(dollars(20.0), vec![Line::Hang("half")]);
    stage.send("go");
    stage.until("assistant.message_delta").await;
    stage.driver.close(None).await.unwrap();
    let kinds = stage.kinds();
    assert_eq!(
        kinds.last().map(String::as_str),
        Some("session.shutdown"),
        "what was used is known before the end"
    );
    let setting = Setting { log: stage.log(), ..dollars(20.0) };
    check(
        setting,
        vec![Line::Say("done")],
        expect![[r#"
        limits 8192
        2 calls, $17.949, 0 unpriced"#]],
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_a_killed_process_left_without_an_end_counts_as_what_it_could_use() {
    let mut stage = Stage::set(dollars(20.0), vec![Line::Hang("half")]);
    stage.send("go");
    assert_eq!(stage.requests().len(), 0, "the call waits until its reservation is on record");
    stage.until("assistant.message_delta").await;
    // Nothing of the process is left but its log.
    let setting = Setting { log: stage.log(), ..dollars(20.0) };
    let resumed = check(
        setting,
        vec![Line::Say("done")],
        expect![[r#"
        limits 8192
        2 calls, $17.945, 0 unpriced"#]],
    )
    .await;
    // It is on record once, also for the next process.
    let setting = Setting { log: resumed.log(), ..dollars(20.0) };
    let again = Stage::set(setting, vec![]);
    assert_eq!(again.driver.session().state().totals.requests, 2);
    assert_eq!(again.driver.ledger().spent(), resumed.driver.ledger().spent());
}

#[tokio::test(start_paused = true)]
async fn a_killed_call_is_a_turn() {
    let budget = Budget { max_turns: Some(1), ..Budget::default() };
    let setting = Setting { budget, ..Setting::default() };
    let mut stage = Stage::set(setting.clone(), vec![Line::Hang("half")]);
    stage.send("go");
    stage.until("assistant.message_delta").await;
    let mut stage = Stage::set(Setting { log: stage.log(), ..setting }, vec![Line::Say("never")]);
    stage.play("go on").await;
    assert!(told(&stage).contains("1 of 1 turns are spent"), "{}", told(&stage));
}

#[tokio::test(start_paused = true)]
async fn calls_that_ended_leave_no_reservation() {
    let refused = Line::Fail(ModelErrorKind::Server, Some(503));
    for lines in
        [vec![Line::Say("done")], vec![refused, Line::Say("done")], vec![Line::Cut("half"), Line::Say("x")]]
    {
        let mut stage = Stage::set(dollars(40.0), lines);
        stage.play("go").await;
        let state = stage.driver.session().state();
        assert!(state.totals.reserved.is_empty(), "{:?}", state.totals.reserved);
        let reserved = stage.log().iter().filter(|event| event.kind() == "hangar.reservation").count();
        assert!(reserved >= 2 && reserved % 2 == 0, "{reserved}");
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_servers_are_within_the_budget_and_on_record() {
    let mut stage = Stage::set(dollars(20.0), vec![Line::Say("for a server"), Line::Say("never")]);
    let provider = stage.driver.ledger().unattended(Arc::clone(&stage.provider));
    let request = stage.driver.session().aside("hi".to_owned());
    let asked = tokio::spawn(provider.stream(request.clone()).collect::<Vec<_>>());
    assert!(stage.driver.turn().await.unwrap(), "its reservation is put on record");
    assert!(asked.await.unwrap().last().is_some_and(Result::is_ok));
    stage.command(Command::SetMode(Mode::Plan));
    let totals = &stage.driver.session().state().totals;
    assert_eq!((totals.requests, totals.unpriced, totals.reserved.len()), (1, 0, 0));
    assert_eq!(totals.cost, Some(stage.driver.ledger().spent().cost));
    stage.driver.ledger().set(Cap::Client, Budget { max_cost: Some(0.001), ..Budget::default() });
    let refused: Vec<_> = provider.stream(request).collect().await;
    assert!(matches!(&refused[..], [Err(error)] if error.kind == ModelErrorKind::Budget), "{refused:?}");
}

#[tokio::test(start_paused = true)]
async fn agents_and_summaries_share_the_budget_of_their_session() {
    let start = |id: &'static str| {
        (
            id,
            "task",
            json!({ "name": id, "agent_type": "task", "description": "d", "prompt": "DO:echo", "mode": "background" }),
        )
    };
    for cap in [5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 150.0, 300.0] {
        let setting = Setting {
            agent_config: Some(agent_config()),
            compaction: Some(Compaction::default()),
            max_prompt_tokens: 700,
            ..dollars(cap)
        };
        let calls = vec![start("a"), start("b"), start("c"), start("d")];
        let mut stage = Stage::set(
            setting,
            vec![Line::Call(calls), Line::Say("one"), Line::Say("two"), Line::Say("three")],
        );
        stage.send("go");
        stage.until_settled().await;
        let totals = &stage.driver.session().state().totals;
        assert!(totals.cost.unwrap_or(0.0) <= cap, "{:?} of {cap}", totals.cost);
        assert_eq!(totals.unpriced, 0);
        assert!(totals.requests > 0 || cap < 10.0, "{cap}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_summary_is_accounted() {
    let setting = Setting { price: price(), compaction: Some(Compaction::default()), ..Setting::default() };
    let mut stage = Stage::set(setting, vec![Line::Say("one"), Line::Say("a summary")]);
    stage.play("go").await;
    stage.command(hangar_agent::session::Command::Compact { instructions: None, trigger: None });
    stage.until("session.compaction_complete").await;
    assert_eq!(stage.driver.session().state().totals.requests, 2);
}

#[tokio::test(start_paused = true)]
async fn a_summary_of_another_model_is_on_record_under_its_name() {
    let other = AgentSetting { model: Some("other".to_owned()), effort: None };
    let agents = [("summary".to_owned(), other)].into();
    let settings = AgentSettings { agents, ..AgentSettings::default() };
    let setting = Setting {
        price: price(),
        compaction: Some(Compaction::default()),
        agent_config: Some(AgentConfig { settings, ..agent_config() }),
        ..Setting::default()
    };
    let mut stage = Stage::set(setting, vec![Line::Say("one"), Line::Say("a summary")]);
    stage.play("go").await;
    stage.command(hangar_agent::session::Command::Compact { instructions: None, trigger: None });
    stage.until("session.compaction_complete").await;
    let models: Vec<String> = stage.requests().into_iter().map(|request| request.model).collect();
    assert_eq!(models, ["m", "other"]);
    stage.play("on").await;
    let recorded = stage.log().into_iter().filter_map(|event| match event.body() {
        Body::UsageRecord(record) => Some((record.usage.model.clone(), record.usage.cost.is_some())),
        _ => None,
    });
    assert_eq!(
        recorded.filter(|(model, _)| model == "other").collect::<Vec<_>>(),
        [("other".to_owned(), true)]
    );
}

#[tokio::test(start_paused = true)]
async fn agents_that_do_not_fit_side_by_side_wait_for_each_other() {
    let start = |id: &'static str| {
        let prompt = json!({
            "name": id, "agent_type": "task", "description": "d", "prompt": "DO:nothing", "mode": "background",
        });
        (id, "task", prompt)
    };
    // Answers may be long and are short: what is reserved is nearly all left over.
    let setting = Setting { agent_config: Some(agent_config()), uses_all: false, ..dollars(30.0) };
    let calls = vec![start("a"), start("b"), start("c"), start("d")];
    let mut stage = Stage::set(setting, vec![Line::Call(calls)]);
    stage.send("go");
    stage.until_settled().await;
    assert_eq!((stage.count("subagent.completed"), stage.count("session.error")), (4, 0));
}
