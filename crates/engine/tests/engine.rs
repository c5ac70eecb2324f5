//! The engine with a model that follows a script, tools that do as they are named, and a log in memory.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures_core::stream::BoxStream;
use futures_util::StreamExt;
use futures_util::future::{BoxFuture, join_all};
use hangar_agent::agents::builtin;
use hangar_agent::agents::config::{AgentConfig, AgentLimits, AgentSettings, ModelChoice, Models, Reporting};
use hangar_agent::driver::{Driver, EventSink, SessionHost};
use hangar_agent::entropy::Entropy;
use hangar_agent::hook::HookSet;
use hangar_agent::log::{ListedFact, LogError, Seq, SessionLog, SessionNotes};
use hangar_agent::model::*;
use hangar_agent::permissions::Policy;
use hangar_agent::prompt::PromptEnvironment;
use hangar_agent::session::{
    ClientAbilities, Command, ConversationState, Metering, Opening, Prompt, Role, Session, SessionConfig,
    SessionInput, StartNotices,
};
use hangar_agent::tool::*;
use hangar_agent::tool_search::Deferral;
use hangar_custom::skills::Skills;
use hangar_engine::{
    Background, BackgroundCommand, BackgroundWork, Engine, EngineParts, EngineProgress, FrontEndTask, Naming,
    NoComposer, Options, SessionComposer, SubmissionEnd, supervise,
};
use hangar_protocol::data::{Mode, ToolType, WorkingDirectory};
use hangar_protocol::permission::{PermissionOutcome, PermissionRequest};
use hangar_protocol::{Body, Event};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::mpsc;

/// Says what stands behind `SAY:` in the prompt, or calls the tool behind `DO:` once and then says `done`.
struct Model;

impl ModelProvider for Model {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        let text = |parts: &[Part]| match parts.first() {
            Some(Part::Text(text)) => text.clone(),
            _ => String::new(),
        };
        let asked = request.messages.iter().rev().find_map(|message| match &**message {
            Message::User(parts) => Some(text(parts)),
            _ => None,
        });
        let answered = matches!(request.messages.last().map(|last| &**last), Some(Message::Tool { .. }));
        let asked = asked.unwrap_or_default();
        let called = asked.split_once("DO:").map(|(_, tool)| tool.lines().next().unwrap_or_default());
        let (say, calls) = match called {
            Some(tool) if !answered => {
                let (name, input) = tool.split_once(' ').unwrap_or((tool, "{}"));
                let call = ToolCall {
                    id: format!("call-{name}"),
                    name: name.trim().to_owned(),
                    kind: ToolType::Function,
                    input: input.to_owned(),
                };
                (String::new(), vec![call])
            }
            _ => ("done".to_owned(), Vec::new()),
        };
        let finish = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
        let turn = AssistantTurn { text: say, reasoning: None, tool_calls: calls, native: None };
        let reply = Reply::new(turn, finish, TokenUsage::default());
        futures_util::stream::iter([Ok(ModelEvent::Finished(Box::new(reply)))]).boxed()
    }

    fn facts(&self) -> ProviderFacts {
        ProviderFacts {
            endpoint: "/chat/completions",
            is_byok: true,
            base_url: "test:".to_owned(),
            name: None,
            max_prompt_tokens: None,
            max_output_tokens: None,
            price: None,
        }
    }
}

/// Answers every question with a title.
struct Titles;

impl ModelProvider for Titles {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        assert!(request.tools.is_empty() && request.model == "small");
        let turn = AssistantTurn { text: "\"Painting a house.\"".to_owned(), ..AssistantTurn::default() };
        let usage = TokenUsage { input_tokens: Some(7), ..TokenUsage::default() };
        let reply = Reply::new(turn, Finish::Stop, usage);
        futures_util::stream::iter([Ok(ModelEvent::Finished(Box::new(reply)))]).boxed()
    }

    fn facts(&self) -> ProviderFacts {
        Model.facts()
    }
}

/// The one model beside the session's.
struct SmallModel;

impl Models for SmallModel {
    fn find(&self, name: &str) -> Option<ModelChoice> {
        let provider = Arc::new(Titles);
        (name == "small").then(|| ModelChoice { provider, model: name.to_owned(), max_prompt_tokens: 1000 })
    }
}

/// `echo` answers, `panic` panics while it runs, `trap` while it is inspected; `write` needs permission.
struct Prop(Arc<ToolSpec>);

impl Tool for Prop {
    fn spec(&self) -> &Arc<ToolSpec> {
        &self.0
    }

    fn inspect(&self, call: &ToolInput) -> Result<Access, ToolOutcome> {
        assert!(self.0.name != "trap", "the trap was inspected");
        if self.0.name != "write" {
            return Ok(Access::None);
        }
        let request = PermissionRequest::Write {
            tool_call_id: Some(call.call_id.clone()),
            intention: "write".to_owned(),
            file_name: "/w/a".to_owned(),
            diff: String::new(),
            new_file_contents: None,
            can_offer_session_approval: true,
        };
        Ok(Access::Needs(Box::new(AccessRequest { request, reads: Vec::new(), writes: vec!["/w/a".into()] })))
    }

    fn run(&self, _: ToolInput, _: ToolContext) -> BoxFuture<'static, ToolOutcome> {
        let panics = self.0.name == "panic";
        Box::pin(async move {
            tokio::task::yield_now().await;
            assert!(!panics, "the tool broke");
            ToolOutcome::success("ok")
        })
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<Event>>>);

impl SessionNotes for Log {}

impl SessionLog for Log {
    fn append(&mut self, _: Seq, events: &[Event]) -> Result<Seq, LogError> {
        let mut log = self.0.lock();
        log.extend(events.iter().cloned());
        Ok(Seq(log.len() as u64))
    }

    fn sync(&mut self) -> Result<(), LogError> {
        Ok(())
    }
}

impl EventSink for Log {
    fn publish(&mut self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

impl Log {
    fn kinds(&self) -> Vec<String> {
        self.0.lock().iter().map(|event| event.kind().to_owned()).collect()
    }

    fn take(&self) -> Vec<Event> {
        std::mem::take(&mut self.0.lock())
    }

    fn find<T>(&self, of: impl Fn(&Body) -> Option<T>) -> Option<T> {
        self.0.lock().iter().rev().find_map(|event| of(event.body()))
    }
}

/// Background work that a test switches on and off.
#[derive(Default)]
struct Switch(AtomicBool);

impl Background for Switch {
    fn is_running(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn shutdown(&self) -> BoxFuture<'static, ()> {
        Box::pin(std::future::ready(()))
    }

    fn commands(&self) -> Vec<BackgroundCommand> {
        Vec::new()
    }

    fn output(&self, _: &str) -> Option<String> {
        None
    }

    fn stop(&self, _: &str) -> bool {
        false
    }
}

struct Stage {
    engine: Engine,
    log: Log,
    events: Log,
    background: Arc<Switch>,
    inbox: mpsc::Sender<Box<SessionInput>>,
}

fn agents() -> AgentConfig {
    AgentConfig {
        definitions: builtin::definitions(),
        limits: AgentLimits::default(),
        reporting: Reporting::Announced,
        environment: PromptEnvironment {
            cwd: "/w".to_owned(),
            git_root: None,
            os: "linux".to_owned(),
            version: "0".to_owned(),
            tools: Vec::new(),
        },
        instructions: String::new(),
        settings: AgentSettings::default(),
        client_settings: AgentSettings::default(),
        small_model: Some("small".to_owned()),
    }
}

impl Stage {
    fn new(options: Options) -> Self {
        Self::composed(options, Policy { allow_all_tools: true, ..policy() }, Arc::new(NoComposer))
    }

    fn composed(options: Options, policy: Policy, composer: Arc<dyn SessionComposer>) -> Self {
        let (log, events) = (Log::default(), Log::default());
        let background = Arc::new(Switch::default());
        let (inbox, commands) = mpsc::channel(8);
        let tools = ["echo", "panic", "trap", "write"].map(|name| {
            let input = ToolSchema::function(json!({"type": "object"}));
            let spec = ToolSpec { name: name.to_owned(), title: None, description: String::new(), input };
            Arc::new(Prop(Arc::new(spec))) as Arc<dyn Tool>
        });
        let tools = Toolset::new(tools.into());
        let config = SessionConfig {
            system: "system".into(),
            instructions: "".into(),
            tools: tools.iter().map(|tool| tool.spec().clone()).collect(),
            policy,
            provider: Model.facts(),
            max_prompt_tokens: 128_000,
            metering: Metering::default(),
            just_in_time: Arc::new([]),
            streaming: false,
            autopilot_cap: 5,
            clients: ClientAbilities { permissions: true, questions: true, hooks: false },
            hooks: HookSet::NONE,
            notices: StartNotices::default(),
            compaction: None,
            vision: true,
            headers: Vec::new(),
            own_tools: ToolFilter::default(),
            may_ask: true,
            session_dir: "/s".into(),
            deferral: Some(Deferral::default()),
            facts: Vec::new(),
            discovers_instructions: false,
            role: Role::Main,
            agent_config: Some(Arc::new(agents())),
        };
        let host = SessionHost {
            provider: Arc::new(Model),
            tools,
            log: Box::new(log.clone()),
            sink: Box::new(events.clone()),
            discovery: None,
            hooks: None,
            surroundings: None,
            ledger: hangar_agent::budget::BudgetLedger::default(),
            models: Some(Arc::new(SmallModel)),
            now: Box::new(|| jiff::Timestamp::UNIX_EPOCH),
            entropy: Entropy::seeded(7),
            retry_scale: 1.0,
        };
        let mut state = ConversationState::default();
        "model".clone_into(&mut state.model);
        let parts = EngineParts {
            driver: Driver::new(Session::new(state, config), host, commands),
            opening: vec![SessionInput::Opened(Opening::New {
                session_id: "s".to_owned(),
                version: "0".to_owned(),
                context: WorkingDirectory {
                    cwd: "/w".to_owned(),
                    git_root: None,
                    repository: None,
                    branch: None,
                },
            })],
            mcp: None,
            filter: ToolFilter::default(),
            skills: Skills::none(),
            background: Arc::clone(&background) as Arc<dyn Background>,
            directory: "/w".into(),
            sandboxed: false,
            fact: None,
        };
        Self { engine: Engine::new(parts, options, composer), log, events, background, inbox }
    }

    async fn begun(options: Options) -> Self {
        let mut stage = Self::new(options);
        stage.engine.begin().await.expect("a log");
        stage
    }

    /// Runs until what was submitted has ended.
    async fn ended(&mut self) -> SubmissionEnd {
        loop {
            match self.engine.next().await.expect("a log") {
                EngineProgress::Ended(ended) => return ended,
                EngineProgress::Moved => {}
                EngineProgress::Closed => panic!("the session closed"),
            }
        }
    }

    async fn submit(&mut self, text: &str) -> SubmissionEnd {
        self.engine.submit(Prompt::user(text)).expect("a log");
        self.ended().await
    }

    /// The answer of a slash command, or why there is none.
    fn answer(&self) -> String {
        let said = self.events.find(|body| match body {
            Body::SessionInfo(info) if info.info_type == "command" => Some(info.message.clone()),
            Body::SessionError(error) if error.error_type == "command" => {
                Some(format!("refused: {}", error.message))
            }
            _ => None,
        });
        said.unwrap_or_default()
    }
}

fn policy() -> Policy {
    Policy { roots: vec!["/w".into()], ..Policy::default() }
}

/// A front end that sends one prompt.
struct OnePrompt {
    stage: Stage,
    prompt: &'static str,
}

impl FrontEndTask for OnePrompt {
    fn engine(&mut self) -> &mut Engine {
        &mut self.stage.engine
    }

    fn run(&mut self) -> BoxFuture<'_, Option<String>> {
        Box::pin(async {
            self.stage.engine.begin().await.expect("a log");
            assert_ne!(self.prompt, "CRASH", "the front end broke");
            self.stage.submit(self.prompt).await;
            None
        })
    }
}

/// Runs sessions side by side in one process; returns the last events of each.
async fn side_by_side(prompts: [&'static str; 10]) -> Vec<Vec<Event>> {
    let tasks = prompts.map(|prompt| {
        let mut task = OnePrompt { stage: Stage::new(Options::default()), prompt };
        let log = task.stage.log.clone();
        tokio::spawn(async move {
            supervise(&mut task, std::future::pending()).await;
            log.take()
        })
    });
    join_all(tasks).await.into_iter().map(|ended| ended.expect("no panic leaves a session")).collect()
}

async fn check_crash(prompt: &'static str, reason: &str) {
    let mut prompts = ["DO:echo"; 10];
    prompts[3] = prompt;
    for (at, log) in side_by_side(prompts).await.into_iter().enumerate() {
        let (Some(Body::SessionShutdown(end)), error) = (
            log.last().map(Event::body),
            log.iter().find_map(|event| match event.body() {
                Body::SessionError(error) => Some((error.error_type.as_str(), error.message.as_str())),
                _ => None,
            }),
        ) else {
            panic!("session {at} was not closed");
        };
        let answered = log
            .iter()
            .any(|event| matches!(event.body(), Body::AssistantMessage(said) if said.content == "done"));
        if at == 3 {
            let message = format!("the session crashed: {reason}");
            assert_eq!(error, Some(("internal", message.as_str())));
            assert_eq!((end.shutdown_type.as_str(), end.error_reason.as_deref()), ("error", Some(&*message)));
            assert!(!answered);
        } else {
            assert_eq!(error, None, "session {at}");
            assert_eq!(end.shutdown_type, "routine", "session {at}");
            assert!(answered, "session {at} went on");
        }
    }
}

#[tokio::test]
async fn a_tool_that_panics_ends_its_session_and_no_other() {
    check_crash("DO:panic", "the tool broke").await;
}

#[tokio::test]
async fn a_tool_that_panics_in_the_driver_s_own_step_does_too() {
    check_crash("DO:trap", "the trap was inspected").await;
}

#[tokio::test]
async fn so_does_a_front_end_that_panics() {
    check_crash(
        "CRASH",
        "assertion `left != right` failed: the front end broke\n  left: \"CRASH\"\n right: \"CRASH\"",
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_prompt_has_ended_when_its_background_has_or_its_time_is_up() {
    let started = tokio::time::Instant::now();
    let wait = Duration::from_secs(30);
    let mut stage = Stage::begun(Options { task_wait: wait, ..Options::default() }).await;
    assert_eq!(stage.submit("DO:echo").await, SubmissionEnd::Idle);
    assert_eq!(started.elapsed(), Duration::ZERO);
    stage.background.0.store(true, Ordering::Relaxed);
    // Events do not prolong the wait.
    let inbox = stage.inbox.clone();
    let chatter = tokio::spawn(async move {
        loop {
            tokio::time::sleep(Duration::from_secs(7)).await;
            let info = hangar_protocol::data::SessionInfo::new("configuration", "still here".to_owned());
            let said = Box::new(SessionInput::Command(Command::Record(info.into())));
            if inbox.send(said).await.is_err() {
                return;
            }
        }
    });
    assert_eq!(stage.submit("DO:echo").await, SubmissionEnd::Idle);
    assert_eq!(started.elapsed(), wait);
    chatter.abort();
}

#[tokio::test(start_paused = true)]
async fn a_prompt_that_waits_for_agents_alone_ends_beside_a_running_command() {
    let started = tokio::time::Instant::now();
    let mut stage = Stage::begun(Options { waits_for: BackgroundWork::Agents, ..Options::default() }).await;
    stage.background.0.store(true, Ordering::Relaxed);
    assert_eq!(stage.submit("DO:echo").await, SubmissionEnd::Idle);
    assert_eq!(started.elapsed(), Duration::ZERO);
}

#[tokio::test]
async fn permissions_of_sub_agents_are_asked_for_once_and_can_be_answered() {
    let mut stage = Stage::composed(Options::default(), policy(), Arc::new(NoComposer));
    stage.engine.begin().await.unwrap();
    let task = json!({
        "name": "n", "agent_type": "general-purpose", "description": "d", "prompt": "DO:write", "mode": "sync",
    });
    stage.engine.submit(Prompt::user(format!("DO:task {task}"))).unwrap();
    let mut asked = Vec::new();
    loop {
        let progress = stage.engine.next().await.unwrap();
        for question in stage.engine.new_questions() {
            assert!(stage.engine.session().pending_permissions().is_empty(), "the main agent asks nothing");
            asked.push(question.request_id.clone());
            let answer = PermissionOutcome::Approved {};
            let command = Command::AnswerPermission { request_id: question.request_id, answer };
            stage.engine.command(command).unwrap();
        }
        if let EngineProgress::Ended(ended) = progress {
            assert_eq!(ended, SubmissionEnd::Idle);
            break;
        }
    }
    assert_eq!(asked.len(), 1, "{:?}", stage.events.kinds());
}

#[tokio::test]
async fn slash_commands_are_answered_by_events_and_other_words_are_for_the_model() {
    let mut stage = Stage::begun(Options::default()).await;
    for (text, ended, answer) in [
        ("/model", SubmissionEnd::Replied, "Model: model"),
        ("/cwd", SubmissionEnd::Replied, "The session works in /w."),
        ("/autopilot on", SubmissionEnd::Replied, "The autopilot is on."),
        ("/rename A name", SubmissionEnd::Replied, "The session is called A name now."),
        ("/permissions", SubmissionEnd::Replied, "Permissions: everything is approved without a question."),
        (
            "/allow-all off",
            SubmissionEnd::Replied,
            "Permissions: the session asks before it does what nobody approved.",
        ),
        ("/mcp", SubmissionEnd::Replied, "No MCP servers are configured."),
        ("/skills", SubmissionEnd::Replied, "There are no skills."),
        ("/rename", SubmissionEnd::Refused, "refused: Usage: /rename <name>"),
        ("/model other", SubmissionEnd::Refused, "refused: the model of this session cannot be changed"),
        ("/compact", SubmissionEnd::Refused, "refused: Nothing to compact."),
    ] {
        assert_eq!(stage.submit(text).await, ended, "{text}");
        assert_eq!(stage.answer(), answer, "{text}");
    }
    assert!(!stage.events.kinds().contains(&"user.message".to_owned()), "no model was asked");
    assert_eq!(stage.engine.session().state().mode, Mode::Autopilot);
    assert_eq!(stage.submit("/plan").await, SubmissionEnd::Replied);
    assert_eq!(stage.engine.session().state().mode, Mode::Plan);
    assert_eq!(stage.submit("/nosuch command").await, SubmissionEnd::Idle);
    assert!(stage.events.kinds().contains(&"user.message".to_owned()));
}

#[tokio::test]
async fn the_first_prompt_names_the_session_and_a_command_does_not() {
    let mut stage = Stage::begun(Options::default()).await;
    stage.submit("/model").await;
    let title = |stage: &Stage| {
        stage.events.find(|body| match body {
            Body::TitleChanged(changed) => Some(changed.title.clone()),
            _ => None,
        })
    };
    assert_eq!(title(&stage), None);
    stage.submit("paint the house").await;
    assert_eq!(title(&stage).as_deref(), Some("paint the house"));
}

/// Titles of a session so far, the latest last.
fn titles(stage: &Stage) -> Vec<String> {
    let events = stage.events.0.lock();
    let titles = events.iter().filter_map(|event| match event.body() {
        Body::TitleChanged(changed) => Some(changed.title.clone()),
        _ => None,
    });
    titles.collect()
}

#[tokio::test]
async fn a_small_model_makes_a_better_title_and_a_given_name_stays() {
    let titled = || Options { naming: Naming::Titled, ..Options::default() };
    let mut stage = Stage::begun(titled()).await;
    stage.submit("paint the house").await;
    stage.submit("and the fence").await;
    assert_eq!(titles(&stage), ["paint the house", "Painting a house"]);
    let usage = stage.log.find(|body| match body {
        Body::UsageRecord(record) if record.usage.model == "small" => record.usage.input_tokens,
        _ => None,
    });
    assert_eq!(usage, Some(7), "it is on record");

    let mut stage = Stage::begun(titled()).await;
    stage.engine.submit(Prompt::user("paint the house")).unwrap();
    stage.engine.rename(ListedFact::GivenName("Mine".to_owned()), "Mine".to_owned()).unwrap();
    stage.ended().await;
    assert_eq!(titles(&stage), ["paint the house", "Mine"]);
}

#[tokio::test]
async fn a_session_that_has_not_begun_is_closed_without_a_word() {
    let mut stage = Stage::new(Options::default());
    stage.engine.close(None, std::future::pending()).await.unwrap();
    assert_eq!(stage.log.kinds(), Vec::<String>::new());
    assert_eq!(stage.engine.directory(), Path::new("/w"));
}
