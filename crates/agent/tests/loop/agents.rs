//! Agents that a session hands work to.

use std::sync::Arc;
use std::time::Duration;

use expect_test::expect;
use hangar_agent::agents::config::{AgentConfig, AgentLimits, AgentSetting, AgentSettings, Reporting};
use hangar_agent::agents::registry::Status;
use hangar_agent::agents::{AgentDefinition, AgentTools, builtin};
use hangar_agent::model::{ModelErrorKind, ToolChoice};
use hangar_agent::session::{Command, Compaction};
use hangar_protocol::Body;
use hangar_protocol::permission::PermissionOutcome;
use serde_json::{Value, json};

use crate::hooks::Scripted;
use crate::stage::{Line, Setting, Stage, agent_config};

/// The built-in agents, and one that is shown `echo` alone and would like the model `other`.
fn crew_with_parrot() -> AgentConfig {
    let mut agent_config = agent_config();
    let mut parrot: AgentDefinition = builtin::definitions().remove(0);
    parrot.name = "parrot".to_owned();
    parrot.prompt = "You are a parrot.".to_owned();
    parrot.tools = AgentTools::Only(vec!["echo".to_owned(), "no-such-tool".to_owned()]);
    parrot.models = vec!["gone".to_owned(), "other".to_owned()];
    agent_config.definitions.push(parrot);
    agent_config
}

fn setting(agent_config: AgentConfig) -> Setting {
    Setting { agent_config: Some(agent_config), ..Default::default() }
}

/// A call of `task`.
fn task(id: &'static str, agent_type: &str, prompt: &str, mode: &str) -> (&'static str, &'static str, Value) {
    let arguments =
        json!({ "description": "d", "agent_type": agent_type, "name": id, "prompt": prompt, "mode": mode });
    (id, "task", arguments)
}

/// Results of the main agent's calls, in the order in which they ended.
fn results(stage: &Stage) -> Vec<String> {
    let main = stage.log().into_iter().filter(|event| event.agent_id().is_none());
    main.filter_map(|event| match event.body() {
        Body::ToolComplete(complete) => {
            let result = complete.result.as_ref().map(|result| result.content.clone());
            result.or_else(|| complete.error.as_ref().map(|error| error.message.clone()))
        }
        _ => None,
    })
    .collect()
}

#[tokio::test(start_paused = true)]
async fn an_agent_has_a_conversation_a_prompt_and_tools_of_its_own() {
    let lines = vec![Line::Call(vec![task("t", "parrot", "DO:echo", "sync")]), Line::Say("thanks")];
    let mut stage = Stage::set(setting(crew_with_parrot()), lines);
    stage.play("go").await;
    let requests = stage.requests();
    assert_eq!(requests.len(), 4, "two of the session, two of the agent");
    let names: Vec<&str> = requests[1].tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names, ["echo"]);
    assert!(requests[1].system.starts_with("You are a parrot."), "{}", requests[1].system);
    assert_eq!(requests[1].messages.len(), 1, "it sees nothing of the session");
    assert_eq!(requests[3].messages.len(), 3, "the session sees the call and its result only");
    assert_eq!(results(&stage), ["done"]);
    let expected = "subagent.started subagent.selected subagent.configured user.message system.message \
        assistant.turn_start model.call_start model.call_finished assistant.message tool.execution_start \
        model.call_final_result tool.execution_complete assistant.turn_end assistant.turn_start model.call_start \
        assistant.message_start assistant.message_delta model.call_finished assistant.message model.call_final_result \
        assistant.turn_end subagent.completed";
    let story: Vec<String> =
        stage.agents_story().into_iter().filter(|kind| !kind.contains("usage")).collect();
    assert_eq!(story.join(" "), expected);
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_role_works_like_its_caller() {
    let lines =
        vec![Line::Call(vec![task("t", "general-purpose", "DO:nothing", "sync")]), Line::Say("thanks")];
    let mut stage = Stage::set(setting(agent_config()), lines);
    stage.play("go").await;
    let requests = stage.requests();
    let names = |index: usize| requests[index].tools.iter().map(|tool| tool.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(0), names(1));
    assert_eq!(stage.count("subagent.selected"), 0);
}

#[tokio::test(start_paused = true)]
async fn the_model_is_the_one_asked_for_or_the_definitions_or_the_callers() {
    let check = async |agent: &str, asked: Option<&str>, expected: &str, why: &str| {
        let (id, tool, mut arguments) = task("t", agent, "DO:nothing", "sync");
        if let Some(model) = asked {
            arguments["model"] = json!(model);
        }
        let lines = vec![Line::Call(vec![(id, tool, arguments)]), Line::Say("thanks")];
        let mut stage = Stage::set(setting(crew_with_parrot()), lines);
        stage.play("go").await;
        assert_eq!(stage.requests()[1].model, expected, "{agent} {asked:?}");
        let started =
            stage.bodies().into_iter().find(|body| matches!(body, Body::SubagentStarted(_))).unwrap();
        assert_eq!(started.data().unwrap()["modelSelectionSource"], why);
        let configured =
            stage.bodies().into_iter().find(|body| matches!(body, Body::SubagentConfigured(_))).unwrap();
        assert_eq!(configured.data().unwrap()["model"], expected);
    };
    check("explore", None, "m", "session_inheritance").await;
    check("explore", Some("other"), "other", "explicit_override").await;
    check("explore", Some("gone"), "m", "session_inheritance").await;
    check("parrot", None, "other", "agent_definition_default").await;
    check("parrot", Some("m"), "m", "explicit_override").await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_has_the_model_that_is_set_for_it() {
    let set = |model: &str| AgentSettings {
        agents: [("explore".to_owned(), AgentSetting { model: Some(model.to_owned()), effort: None })].into(),
        ..AgentSettings::default()
    };
    let check = async |agent: &str, config: AgentConfig, expected: &str| {
        let lines = vec![Line::Call(vec![task("t", agent, "DO:nothing", "sync")]), Line::Say("thanks")];
        let mut stage = Stage::set(setting(config), lines);
        stage.play("go").await;
        assert_eq!(stage.requests()[1].model, expected, "{agent}");
    };
    let small = || AgentConfig { small_model: Some("other".to_owned()), ..agent_config() };
    check("explore", small(), "other").await;
    check("task", small(), "other").await;
    check("general-purpose", small(), "m").await;
    check("explore", AgentConfig { settings: set("other"), ..agent_config() }, "other").await;
    check("explore", AgentConfig { settings: set("m"), ..small() }, "m").await;
    check(
        "explore",
        AgentConfig { settings: set("m"), client_settings: set("other"), ..agent_config() },
        "other",
    )
    .await;
    // One that nobody offers is passed over.
    check("explore", AgentConfig { settings: set("gone"), ..small() }, "other").await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_switched_off_is_neither_offered_nor_started() {
    let client_settings = AgentSettings { disabled: vec!["explore".to_owned()], ..AgentSettings::default() };
    let lines = vec![Line::Call(vec![task("t", "explore", "DO:nothing", "sync")]), Line::Say("thanks")];
    let mut stage = Stage::set(setting(AgentConfig { client_settings, ..agent_config() }), lines);
    stage.play("go").await;
    assert!(stage.last_request().contains("Unknown agent_type: explore"), "{}", stage.last_request());
}

#[tokio::test(start_paused = true)]
async fn agents_run_side_by_side() {
    let calls = vec![
        task("a", "general-purpose", "DO:slow", "sync"),
        task("b", "general-purpose", "DO:slow", "sync"),
    ];
    let mut stage = Stage::set(setting(agent_config()), vec![Line::Call(calls), Line::Say("thanks")]);
    let before = tokio::time::Instant::now();
    stage.play("go").await;
    assert_eq!(before.elapsed(), Duration::from_secs(2), "the tool of each takes that long");
    assert_eq!(results(&stage), ["done", "done"]);
}

#[tokio::test(start_paused = true)]
async fn a_background_agent_wakes_the_session_when_it_is_done() {
    let lines = vec![
        Line::Call(vec![task("t", "general-purpose", "DO:slow", "background")]),
        Line::Say("waiting"),
        Line::Call(vec![("r", "read_agent", json!({ "agent_id": "t" }))]),
        Line::Say("thanks"),
    ];
    let mut stage = Stage::set(setting(agent_config()), lines);
    stage.send("go");
    stage.until("assistant.idle").await;
    assert_eq!(stage.count("session.idle"), 0, "the session is not idle while its agents work");
    stage.until_settled().await;
    assert_eq!(stage.count("session.idle"), 1);
    let seen = stage.last_request();
    let id = stage.driver.session().state().agents.find("t").unwrap().id.clone();
    expect![[r#"
        user: go
        assistant: ["t"]
        tool t: Agent started in background with agent_id: ID. You'll be notified when it completes. Tell the user you're waiting and end your response, or continue unrelated work until notified. The agent supports multi-turn conversations: write_agent sends it follow-up messages about the same task.
        assistant: waiting[]
        user: <system_notification>
        Agent "t" (general-purpose) has finished processing and is now idle. Use read_agent with agent_id "ID" to read the results, or write_agent to send follow-up messages.
        </system_notification>
        assistant: ["r"]
        tool r: Agent is idle (waiting for messages). agent_id: ID, agent_type: general-purpose, status: idle, description: d, elapsed: 2s, total_turns: 1

        [Turn 0]
        done"#]]
    .assert_eq(&seen.replace(&id, "ID"));
}

#[tokio::test(start_paused = true)]
async fn a_result_may_come_with_the_news() {
    let lines = vec![
        Line::Call(vec![task("t", "general-purpose", "DO:slow", "background")]),
        Line::Say("waiting"),
        Line::Say("thanks"),
    ];
    let mut stage =
        Stage::set(setting(AgentConfig { reporting: Reporting::Delivered, ..agent_config() }), lines);
    stage.send("go");
    stage.until_settled().await;
    assert!(stage.last_request().ends_with("[Turn 0]\ndone"), "{}", stage.last_request());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_waited_for_is_not_announced() {
    let lines = vec![
        Line::Call(vec![task("t", "general-purpose", "DO:slow", "background")]),
        Line::Call(vec![("r", "read_agent", json!({ "agent_id": "t", "wait": true }))]),
        Line::Say("thanks"),
    ];
    let mut stage = Stage::set(setting(agent_config()), lines);
    stage.send("go");
    stage.until_settled().await;
    assert!(stage.last_request().ends_with("[Turn 0]\ndone"), "{}", stage.last_request());
    assert_eq!(stage.count("system.notification"), 0);
}

#[tokio::test(start_paused = true)]
async fn waiting_for_an_agent_has_an_end() {
    let lines = vec![
        Line::Call(vec![task("t", "general-purpose", "DO:hang", "background")]),
        Line::Call(vec![("r", "read_agent", json!({ "agent_id": "t", "wait": true, "timeout": 5 }))]),
        Line::Say("I give up"),
    ];
    let mut stage = Stage::set(setting(agent_config()), lines);
    let before = tokio::time::Instant::now();
    stage.play("go").await;
    assert_eq!(before.elapsed(), Duration::from_secs(5));
    assert!(results(&stage)[1].starts_with("Agent is still running."), "{:?}", results(&stage));
}

#[tokio::test(start_paused = true)]
async fn an_idle_agent_can_be_asked_more_and_remembers() {
    let lines = vec![
        Line::Call(vec![task("t", "general-purpose", "DO:nothing", "sync")]),
        Line::Call(vec![("w", "write_agent", json!({ "agent_id": "t", "message": "more" }))]),
        Line::Say("waiting"),
        Line::Say("thanks"),
    ];
    let mut stage = Stage::set(setting(agent_config()), lines);
    stage.send("go");
    stage.until_settled().await;
    let agent = stage.driver.session().state().agents.find("t").unwrap().clone();
    assert_eq!(agent.answers, ["done", "done"]);
    let longest = stage
        .requests()
        .into_iter()
        .find(|request| request.messages.len() == 3 && request.session_id == agent.id);
    assert!(longest.is_some(), "the second request of the agent holds its first answer");
    assert_eq!(stage.count("system.notification"), 1);
}

#[tokio::test(start_paused = true)]
async fn limits_are_refusals_that_the_model_is_told() {
    let check = async |limits: AgentLimits, calls, expected: &str| {
        let lines = vec![Line::Call(calls), Line::Say("ok"), Line::Say("ok")];
        let mut stage = Stage::set(setting(AgentConfig { limits, ..agent_config() }), lines);
        stage.send("go");
        stage.until("assistant.idle").await;
        assert_eq!(results(&stage).last().unwrap(), expected);
    };
    let two = vec![task("a", "task", "DO:slow", "background"), task("b", "task", "DO:slow", "background")];
    let one_at_a_time = AgentLimits { running: 1, ..AgentLimits::default() };
    check(
        one_at_a_time,
        two,
        "1 agents are running, which is the limit. Wait until one is done, then start this one.",
    )
    .await;
    let unknown = vec![task("a", "wizard", "x", "sync")];
    let valid = "Unknown agent_type: wizard. Valid types are: explore, task, general-purpose, code-review";
    check(AgentLimits::default(), unknown, valid).await;
    let missing = vec![("r", "read_agent", json!({ "agent_id": "nobody" }))];
    let gone = "No agent found with agent_id: nobody. The agent may have been cleared or never existed.";
    check(AgentLimits::default(), missing, gone).await;
}

#[tokio::test(start_paused = true)]
async fn at_the_last_level_nobody_is_offered_agents() {
    let lines =
        vec![Line::Call(vec![task("t", "general-purpose", "DO:nothing", "sync")]), Line::Say("thanks")];
    let limits = AgentLimits { depth: 1, ..AgentLimits::default() };
    let mut stage = Stage::set(setting(AgentConfig { limits, ..agent_config() }), lines);
    stage.play("go").await;
    let offers = |index: usize| stage.requests()[index].tools.iter().any(|tool| tool.name == "task");
    assert!(offers(0) && !offers(1));
}

#[tokio::test(start_paused = true)]
async fn hooks_may_instruct_an_agent_and_rewrite_its_answer() {
    let check = async |hooks: Vec<(&'static str, Value)>, requests: usize, result: &str, told: &str| {
        let lines = vec![Line::Call(vec![task("t", "explore", "DO:nothing", "sync")]), Line::Say("thanks")];
        let hooks = Some(Arc::new(Scripted(hooks)) as Arc<dyn hangar_agent::driver::Hooks>);
        let mut stage = Stage::set(Setting { hooks, ..setting(agent_config()) }, lines);
        stage.play("go").await;
        assert_eq!(stage.requests().len(), requests);
        assert_eq!(results(&stage), [result]);
        let first = format!("{:?}", stage.requests()[1].messages[0]);
        assert!(first.contains(told), "{first}");
    };
    check(vec![], 3, "done", "DO:nothing").await;
    check(
        vec![("subagentStart", json!({ "additionalContext": "Be kind." }))],
        3,
        "done",
        "Be kind.\\n\\nDO:nothing",
    )
    .await;
    check(
        vec![
            ("subagentStart", json!({ "additionalContext": "Be kind." })),
            ("userPromptSubmitted", json!({ "additionalContext": "Be quick." })),
        ],
        3,
        "done",
        "Be kind.\\n\\nDO:nothing\\n\\n<system_reminder>\\nBe quick.",
    )
    .await;
    check(vec![("subagentStop", json!({ "modifiedResponse": "better" }))], 3, "better", "DO:nothing").await;
    // Two of the session, one of the agent, and eight more that the hook wanted.
    check(vec![("subagentStop", json!({ "decision": "block", "reason": "more" }))], 11, "done", "DO:nothing")
        .await;
    // One that is sent on has not answered yet, so there is nothing to rewrite.
    let both = json!({ "decision": "block", "reason": "more", "modifiedResponse": "better" });
    check(vec![("subagentStop", both)], 11, "done", "DO:nothing").await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_is_sent_on_is_told_why() {
    let lines = vec![Line::Call(vec![task("t", "explore", "DO:nothing", "sync")]), Line::Say("thanks")];
    let block = vec![("subagentStop", json!({ "decision": "block", "reason": "what of the tests?" }))];
    let hooks = Some(Arc::new(Scripted(block)) as Arc<dyn hangar_agent::driver::Hooks>);
    let mut stage = Stage::set(Setting { hooks, ..setting(agent_config()) }, lines);
    stage.play("go").await;
    let second = format!("{:?}", stage.requests()[2].messages);
    assert!(second.contains("done") && second.contains("what of the tests?"), "{second}");
}

#[tokio::test(start_paused = true)]
async fn a_failed_agent_is_an_answer_for_its_caller() {
    let lines = vec![
        Line::Call(vec![task("t", "explore", "fail", "sync")]),
        Line::Fail(ModelErrorKind::Refused, Some(400)),
        Line::Say("I see"),
    ];
    let mut stage = Stage::set(setting(agent_config()), lines);
    stage.play("go").await;
    assert_eq!(results(&stage), ["Refused"]);
    assert_eq!(stage.count("subagent.failed"), 1);
}

#[tokio::test(start_paused = true)]
async fn abort_stops_the_whole_tree() {
    let calls = vec![
        task("a", "general-purpose", "DO:hang", "sync"),
        task("b", "general-purpose", "DO:hang", "background"),
    ];
    let mut stage = Stage::set(setting(agent_config()), vec![Line::Call(calls), Line::Say("back")]);
    stage.send("go");
    while stage.count("tool.execution_start") < 4 {
        stage.driver.turn().await.unwrap();
    }
    stage.command(Command::Abort { reason: "user_initiated".to_owned() });
    assert!(stage.driver.is_idle());
    assert_eq!(stage.count("subagent.failed"), 2);
    assert_eq!(stage.count("session.idle"), 1);
    let statuses: Vec<Status> =
        stage.driver.session().state().agents.iter().map(|agent| agent.status.clone()).collect();
    assert_eq!(statuses, [Status::Cancelled, Status::Cancelled]);
    stage.driver.close(None).await.unwrap();
    assert_eq!(stage.cancelled.lock().len(), 2, "their tools were told to stop");
}

#[tokio::test(start_paused = true)]
async fn whoever_answers_for_the_session_answers_for_its_agents() {
    let lines = vec![
        Line::Call(vec![task("t", "general-purpose", "DO:write", "sync")]),
        Line::Call(vec![("w", "write", json!({}))]),
        Line::Say("thanks"),
    ];
    let setting = Setting { allow_all: false, user_reachable: true, ..setting(agent_config()) };
    let mut stage = Stage::set(setting, lines);
    stage.send("go");
    stage.until("permission.requested").await;
    let asked = stage.driver.pending_permissions().remove(0);
    let answer = PermissionOutcome::ApprovedForSession { approval: json!({ "kind": "write" }) };
    stage.command(Command::AnswerPermission { request_id: asked.request_id, answer });
    stage.until_idle().await;
    assert_eq!(results(&stage), ["done", "w ok"]);
    assert_eq!(stage.count("permission.requested"), 1, "what was allowed an agent is allowed the session");
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_holds_all_lanes_back_and_lets_them_go_in_turn() {
    let mut agents = ["a", "b", "c"].map(|id| task(id, "general-purpose", "DO:slow", "background"));
    // Another model of the same provider is under the same limit.
    agents[1].2["model"] = json!("other");
    let wait = Duration::from_secs(30);
    let lines = vec![
        Line::Call(agents.to_vec()),
        // The session itself is sent away; its agents come back with the results of their tools meanwhile.
        Line::FailAfter(ModelErrorKind::RateLimit, wait),
        Line::Say("here again"),
    ];
    let mut stage = Stage::set(setting(agent_config()), lines);
    let before = tokio::time::Instant::now();
    stage.send("go");
    while stage.requests().len() < 9 {
        assert!(stage.driver.turn().await.unwrap());
    }
    let asked = stage.asked_since(before);
    let (first, later) = asked.split_at(5);
    assert!(first.iter().all(|(at, _)| *at < 1.0), "everybody asked at once: {asked:?}");
    assert!(later[0].0 >= wait.as_secs_f64(), "nobody asks before the time is up: {asked:?}");
    let gaps = later.windows(2).map(|pair| ((pair[1].0 - pair[0].0) * 1000.0).round());
    assert_eq!(gaps.collect::<Vec<_>>(), [50.0; 3], "and then not all at the same moment: {asked:?}");
    let registry = &stage.driver.session().state().agents;
    let name = |id: &str| registry.find(id).map_or("main".to_owned(), |agent| agent.name.clone());
    let order: Vec<String> = later.iter().map(|(_, id)| name(id)).collect();
    assert_eq!(order, ["a", "b", "c", "main"], "who came first goes first");
}

#[tokio::test(start_paused = true)]
async fn a_summary_keeps_to_the_rate_limit_too() {
    let compaction = Some(Compaction { start: 0.0001, wait: 9.0 });
    let lines = vec![
        Line::Call(vec![task("a", "explore", "look", "background"), ("s", "slow", json!({}))]),
        Line::FailAfter(ModelErrorKind::RateLimit, Duration::from_secs(30)),
    ];
    let mut stage = Stage::set(Setting { compaction, ..setting(agent_config()) }, lines);
    let before = tokio::time::Instant::now();
    stage.send("go");
    stage.until("session.compaction_complete").await;
    let summary =
        stage.requests().iter().position(|request| request.tool_choice == ToolChoice::None).unwrap();
    let asked = stage.asked_since(before);
    assert!(asked[summary].0 >= 30.0, "the agent was sent away for that long: {asked:?}");
}

#[tokio::test(start_paused = true)]
async fn everything_that_an_agent_does_is_marked_as_its_own() {
    let play = async |call| {
        let mut stage =
            Stage::set(setting(agent_config()), vec![Line::Call(vec![call]), Line::Say("thanks")]);
        stage.play("go").await;
        stage
    };
    let with_agent = play(task("t", "explore", "DO:echo", "sync")).await;
    let without = play(("t", "echo", json!({}))).await;
    // To those who leave out what agents do, an agent is a call like any other.
    assert_eq!(with_agent.main_story(), without.main_story());
    let registry = &with_agent.driver.session().state().agents;
    let id = &registry.iter().next().unwrap().id;
    for event in with_agent.log().iter().filter(|event| event.agent_id().is_some()) {
        assert_eq!(event.agent_id().unwrap().0, *id);
        let data = event.body().data().unwrap();
        let call = match event.kind() {
            "assistant.message" | "tool.execution_start" | "tool.execution_complete" => {
                &data["parentToolCallId"]
            }
            kind if kind.starts_with("subagent.") && data.get("toolCallId").is_some() => &data["toolCallId"],
            _ => continue,
        };
        assert_eq!(call, "t", "{}: {data}", event.kind());
    }
}

#[tokio::test(start_paused = true)]
async fn abort_reaches_the_agents_of_agents() {
    let lines = vec![
        Line::Call(vec![task("child", "general-purpose", "hand it on", "sync")]),
        Line::Call(vec![task("grandchild", "general-purpose", "DO:hang", "background")]),
        Line::Hang("thinking"),
    ];
    let mut stage = Stage::set(setting(agent_config()), lines);
    stage.send("go");
    while stage.requests().len() < 4 || stage.count("tool.execution_start") < 3 {
        stage.driver.turn().await.unwrap();
    }
    stage.command(Command::Abort { reason: "user_initiated".to_owned() });
    assert!(stage.driver.is_idle());
    let ended: Vec<(String, Status)> = stage
        .driver
        .session()
        .state()
        .agents
        .iter()
        .map(|agent| (agent.name.clone(), agent.status.clone()))
        .collect();
    let cancelled = |name: &str| (name.to_owned(), Status::Cancelled);
    assert_eq!(ended, [cancelled("child"), cancelled("grandchild")]);
    stage.driver.close(None).await.unwrap();
    assert_eq!(*stage.cancelled.lock(), ["inner"], "the tool of the last one was told to stop");
}

#[tokio::test(start_paused = true)]
async fn a_runner_has_the_tools_of_its_caller() {
    let lines = vec![Line::Call(vec![task("t", "task", "DO:nothing", "sync")]), Line::Say("thanks")];
    let mut stage = Stage::set(setting(agent_config()), lines);
    stage.play("go").await;
    let names = |index: usize| -> Vec<String> {
        stage.requests()[index].tools.iter().map(|tool| tool.name.clone()).collect()
    };
    assert_eq!(names(1), names(0));
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_was_summed_up_names_no_file_that_is_not_there() {
    let compaction = Some(Compaction { start: 0.01, wait: 0.02 });
    let lines = vec![
        Line::Call(vec![task("t", "general-purpose", "a long story", "sync")]),
        Line::Call(vec![("e", "echo", json!({}))]),
        Line::Say("THE SUMMARY <checkpoint_title>Of an agent</checkpoint_title>"),
        Line::Say("told"),
    ];
    let mut stage =
        Stage::set(Setting { compaction, max_prompt_tokens: 1000, ..setting(agent_config()) }, lines);
    stage.send("go");
    stage.until("session.compaction_complete").await;
    let complete = stage.log().into_iter().find_map(|event| match event.body() {
        Body::CompactionComplete(complete) => Some((event.agent_id().is_some(), complete.clone())),
        _ => None,
    });
    let (is_agents, complete) = complete.unwrap();
    assert!(is_agents && complete.success);
    assert_eq!((complete.checkpoint_number, complete.checkpoint_path), (None, None));
}

#[tokio::test(start_paused = true)]
async fn a_log_that_is_cut_anywhere_resumes_with_every_agent_accounted_for() {
    let lines = vec![
        Line::Call(vec![
            task("a", "general-purpose", "DO:echo", "sync"),
            task("b", "explore", "DO:nothing", "background"),
        ]),
        Line::Say("waiting"),
        Line::Say("thanks"),
    ];
    let mut stage = Stage::set(setting(agent_config()), lines);
    stage.send("go");
    stage.until_settled().await;
    stage.driver.close(None).await.unwrap();
    let log = stage.log();
    for end in 1..=log.len() {
        let cut = Setting { log: log[..end].to_vec(), ..setting(agent_config()) };
        let mut stage = Stage::set(cut, vec![Line::Say("back")]);
        assert_eq!(stage.driver.session().state().agents.running(), 0, "cut at {end}");
        stage.play("go on").await;
        assert_eq!(stage.requests().len(), 1, "cut at {end}: nothing is run again");
        let seen = stage.last_request();
        for agent in stage.driver.session().state().agents.iter() {
            let known = match &agent.status {
                Status::Idle => seen.contains("done") || seen.contains("is now idle"),
                Status::Failed { .. } => seen.contains("has failed"),
                Status::Running | Status::Cancelled => false,
            };
            assert!(known, "cut at {end}, {} is {:?}:\n{seen}", agent.name, agent.status);
        }
        let again = Stage::set(Setting { log: stage.log(), ..setting(agent_config()) }, vec![]);
        let closed =
            |stage: &Stage| stage.log().iter().filter(|event| event.kind() == "subagent.failed").count();
        assert_eq!(closed(&again), closed(&stage), "cut at {end}: closed once");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hundred_agents_at_once_all_end() {
    const NAMES: usize = 100;
    let ids: Vec<&'static str> =
        (0..NAMES).map(|index| &*Box::leak(format!("a{index}").into_boxed_str())).collect();
    let calls = ids.iter().map(|id| task(id, "general-purpose", "DO:slow", "sync")).collect();
    let limits = AgentLimits { running: NAMES, ..AgentLimits::default() };
    let mut stage = Stage::set(
        setting(AgentConfig { limits, ..agent_config() }),
        vec![Line::Call(calls), Line::Say("thanks")],
    );
    let before = tokio::time::Instant::now();
    stage.play("go").await;
    assert_eq!(before.elapsed(), Duration::from_secs(2));
    assert_eq!(stage.count("subagent.completed"), NAMES);
    assert_eq!(results(&stage), vec!["done"; NAMES]);
}
