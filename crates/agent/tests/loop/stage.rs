//! The stage that the tests play on: a model that reads its lines, tools that do as they are named, a log in memory.

mod model;
mod tools;

use parking_lot::Mutex;
use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use futures_util::future::BoxFuture;
use hangar_agent::agents::builtin;
use hangar_agent::agents::config::{AgentConfig, AgentLimits, AgentSettings, ModelChoice, Models, Reporting};
use hangar_agent::budget::{Budget, BudgetLedger, Spending};
use hangar_agent::driver::{Driver, EventSink, SessionHost, Surroundings};
use hangar_agent::entropy::Entropy;
use hangar_agent::hook::HookSet;
use hangar_agent::log::{LogError, Seq, SessionLog, SessionNotes};
use hangar_agent::model::*;
use hangar_agent::permissions::Policy;
use hangar_agent::prompt::PromptEnvironment;
use hangar_agent::session::*;
use hangar_agent::tool::*;
use hangar_agent::tool_search::Deferral;
use hangar_protocol::data::{Mode, PlanAndTodos, WorkingDirectory};
use hangar_protocol::{Body, Event};
use serde_json::json;
use tokio::sync::mpsc;

use model::{Actor, Letters};
pub(crate) use model::{Line, call, facts};
use tools::Prop;

/// A plan and todos that are always the same, and an answer to whether anything changed.
#[derive(Clone, Default)]
pub(crate) struct Place {
    pub(crate) plan_and_todos: PlanAndTodos,
    pub(crate) unchanged: bool,
}

impl Surroundings for Place {
    fn plan_and_todos(&mut self) -> PlanAndTodos {
        self.plan_and_todos.clone()
    }

    fn unchanged(&self) -> BoxFuture<'static, bool> {
        Box::pin(std::future::ready(self.unchanged))
    }
}

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<Event>>>);

impl SessionNotes for Memory {}

impl SessionLog for Memory {
    fn append(&mut self, expected: Seq, events: &[Event]) -> Result<Seq, LogError> {
        let mut log = self.0.lock();
        assert_eq!(expected.0, log.len() as u64, "the log is appended to where the session thinks it ends");
        log.extend(events.iter().cloned());
        Ok(Seq(log.len() as u64))
    }

    fn sync(&mut self) -> Result<(), LogError> {
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Audience(Arc<Mutex<Vec<Event>>>);

impl EventSink for Audience {
    fn publish(&mut self, event: &Event) {
        self.0.lock().push(event.clone());
    }
}

/// There is one model besides the session's own, of the same provider. Whoever asks for it has a way there of their own.
struct Shelf(ModelChoice);

impl Models for Shelf {
    fn find(&self, name: &str) -> Option<ModelChoice> {
        let provider = || Arc::new(SameProvider(Arc::clone(&self.0.provider)));
        (name == self.0.model).then(|| ModelChoice { provider: provider(), ..self.0.clone() })
    }
}

struct SameProvider(Arc<dyn ModelProvider>);

impl ModelProvider for SameProvider {
    fn stream(&self, request: ModelRequest) -> BoxStream<'static, Result<ModelEvent, ModelError>> {
        self.0.stream(request)
    }

    fn facts(&self) -> ProviderFacts {
        self.0.facts()
    }
}

/// The built-in agents.
pub(crate) fn agent_config() -> AgentConfig {
    AgentConfig {
        definitions: builtin::definitions(),
        limits: AgentLimits::default(),
        settings: AgentSettings::default(),
        client_settings: AgentSettings::default(),
        small_model: None,
        reporting: Reporting::Announced,
        environment: PromptEnvironment {
            cwd: "/w".to_owned(),
            git_root: None,
            os: "linux".to_owned(),
            version: "0".to_owned(),
            tools: Vec::new(),
        },
        instructions: String::new(),
    }
}

pub(crate) struct Stage {
    pub(crate) driver: Driver,
    pub(crate) inbox: mpsc::Sender<Box<SessionInput>>,
    pub(crate) cancelled: Arc<Mutex<Vec<String>>>,
    /// The provider, outside of the budget.
    pub(crate) provider: Arc<dyn ModelProvider>,
    /// How often a message was counted.
    pub(crate) counted: Arc<std::sync::atomic::AtomicUsize>,
    requests: Arc<Mutex<Vec<(tokio::time::Instant, ModelRequest)>>>,
    audience: Audience,
    memory: Memory,
}

#[derive(Clone)]
pub(crate) struct Setting {
    pub(crate) mode: Mode,
    pub(crate) cap: u32,
    pub(crate) user_reachable: bool,
    pub(crate) compaction: Option<Compaction>,
    pub(crate) agent_config: Option<AgentConfig>,
    pub(crate) hooks: Option<Arc<dyn hangar_agent::driver::Hooks>>,
    pub(crate) allow_all: bool,
    pub(crate) max_prompt_tokens: u64,
    pub(crate) log: Vec<Event>,
    pub(crate) continue_pending: Option<bool>,
    pub(crate) reports_usage: bool,
    pub(crate) just_in_time: Vec<JustInTime>,
    pub(crate) place: Place,
    /// Whether the provider is GitHub's rather than the user's own.
    pub(crate) github: bool,
    pub(crate) budget: Budget,
    pub(crate) price: Option<Price>,
    /// The longest answer of the model, if it is known.
    pub(crate) max_output_tokens: Option<u64>,
    /// Whether each answer uses all tokens that it may.
    pub(crate) uses_all: bool,
    /// Whether each answer has items of its vendor, which name the request that it answers.
    pub(crate) signs: bool,
    /// How long a summary takes, if it does not follow the lines.
    pub(crate) summary_after: Option<Duration>,
    pub(crate) deferral: Option<Deferral>,
    pub(crate) facts: Vec<String>,
    /// Custom instructions, which are part of the system prompt.
    pub(crate) instructions: &'static str,
}

impl Default for Setting {
    fn default() -> Self {
        Self {
            mode: Mode::Interactive,
            cap: 5,
            user_reachable: false,
            compaction: None,
            hooks: None,
            agent_config: None,
            allow_all: true,
            max_prompt_tokens: 128_000,
            log: Vec::new(),
            continue_pending: None,
            reports_usage: false,
            just_in_time: Vec::new(),
            place: Place::default(),
            github: false,
            budget: Budget::default(),
            price: None,
            max_output_tokens: None,
            uses_all: false,
            signs: false,
            summary_after: None,
            deferral: None,
            facts: Vec::new(),
            instructions: "",
        }
    }
}

impl Stage {
    pub(crate) fn new(lines: Vec<Line>) -> Self {
        Self::set(Setting::default(), lines)
    }

    /// Opens a session, new or on the setting's log.
    pub(crate) fn set(setting: Setting, lines: Vec<Line>) -> Self {
        let cancelled = Arc::new(Mutex::new(Vec::new()));
        let counted = Arc::default();
        let tools: Vec<Arc<dyn Tool>> = ["echo", "slow", "hang", "write"]
            .into_iter()
            .map(|name| {
                Arc::new(Prop {
                    spec: Arc::new(ToolSpec {
                        name: name.to_owned(),
                        title: None,
                        description: String::new(),
                        input: ToolSchema::Function(json!({"type": "object"}).into()),
                    }),
                    cancelled: Arc::clone(&cancelled),
                }) as Arc<dyn Tool>
            })
            .collect();
        let tools = Toolset::new(tools);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let facts = ProviderFacts {
            price: setting.price.clone(),
            max_output_tokens: setting.max_output_tokens,
            ..facts()
        };
        let lines = Mutex::new(lines.into());
        let actor = Actor {
            facts,
            uses_all: setting.uses_all,
            signs: setting.signs,
            summary_after: setting.summary_after,
            lines,
            requests: Arc::clone(&requests),
        };
        let provider: Arc<dyn ModelProvider> = Arc::new(actor);
        let outside = Arc::clone(&provider);
        let mut state =
            ConversationState { model: "m".to_owned(), mode: setting.mode, ..ConversationState::default() };
        for event in &setting.log {
            state.apply_event(event);
        }
        let ledger = BudgetLedger::new(setting.budget, Spending::from(&state.totals));
        let models = ModelChoice {
            provider: Arc::clone(&provider),
            model: "other".to_owned(),
            max_prompt_tokens: 64_000,
        };
        let policy =
            Policy { allow_all_tools: setting.allow_all, roots: vec!["/w".into()], ..Policy::default() };
        let config = SessionConfig {
            system: format!("system\n\n{}", setting.instructions).trim_end().into(),
            instructions: setting.instructions.into(),
            tools: tools.iter().map(|tool| tool.spec().clone()).collect(),
            policy,
            provider: ProviderFacts { is_byok: !setting.github, ..provider.facts() },
            max_prompt_tokens: setting.max_prompt_tokens,
            metering: Metering {
                meter: Some(Arc::new(Letters(Arc::clone(&counted)))),
                reports_usage: setting.reports_usage,
            },
            just_in_time: setting.just_in_time.clone().into(),
            streaming: true,
            autopilot_cap: setting.cap,
            clients: ClientAbilities {
                permissions: setting.user_reachable,
                questions: setting.user_reachable,
                hooks: false,
            },
            hooks: if setting.hooks.is_some() { HookSet::ALL } else { HookSet::NONE },
            notices: StartNotices::default(),
            compaction: setting.compaction,
            vision: true,
            headers: Vec::new(),
            own_tools: ToolFilter::default(),
            may_ask: true,
            session_dir: "/s".into(),
            deferral: setting.deferral.clone(),
            facts: setting.facts.clone(),
            discovers_instructions: false,
            role: Role::Main,
            agent_config: setting.agent_config.clone().map(Arc::new),
        };
        let memory = Memory(Arc::new(Mutex::new(setting.log.clone())));
        let audience = Audience::default();
        let (inbox, commands) = mpsc::channel(16);
        let start = jiff::Timestamp::from_second(1_800_000_000).unwrap();
        let clock = tokio::time::Instant::now();
        let host = SessionHost {
            provider,
            tools,
            log: Box::new(memory.clone()),
            sink: Box::new(audience.clone()),
            discovery: None,
            hooks: setting.hooks.clone(),
            surroundings: Some(Box::new(setting.place.clone())),
            models: Some(Arc::new(Shelf(models))),
            ledger,
            now: Box::new(move || start + clock.elapsed()),
            entropy: Entropy::seeded(1),
            retry_scale: 1.0,
        };
        let mut driver = Driver::new(Session::new(state, config), host, commands);
        let context =
            WorkingDirectory { cwd: "/w".to_owned(), git_root: None, repository: None, branch: None };
        let opening = if setting.log.is_empty() {
            Opening::New { session_id: "s".to_owned(), version: "0".to_owned(), context }
        } else {
            Opening::Resumed {
                log_bytes: 0,
                context,
                silent: false,
                continue_pending: setting.continue_pending,
            }
        };
        driver.advance(SessionInput::Opened(opening)).unwrap();
        Self { driver, inbox, provider: outside, cancelled, counted, requests, audience, memory }
    }

    pub(crate) fn command(&mut self, command: Command) {
        self.driver.advance(SessionInput::Command(command)).unwrap();
    }

    pub(crate) fn send(&mut self, text: &str) {
        self.command(Command::Send(Prompt::user(text)));
    }

    pub(crate) async fn until_idle(&mut self) {
        while !self.driver.session().is_idle() {
            assert!(self.driver.turn().await.unwrap());
        }
    }

    /// Plays until an event of this type has gone by.
    pub(crate) async fn until(&mut self, kind: &str) {
        while !self.kinds().iter().any(|seen| seen == kind) {
            assert!(self.driver.turn().await.unwrap());
        }
    }

    pub(crate) async fn play(&mut self, prompt: &str) {
        self.send(prompt);
        self.until_idle().await;
    }

    pub(crate) fn kinds(&self) -> Vec<String> {
        self.audience.0.lock().iter().map(|event| event.kind().to_owned()).collect()
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        self.kinds().iter().filter(|seen| *seen == kind).count()
    }

    pub(crate) fn log(&self) -> Vec<Event> {
        self.memory.0.lock().clone()
    }

    /// The types of the events of agents, each agent's in its own order.
    pub(crate) fn agents_story(&self) -> Vec<String> {
        let events = self.audience.0.lock();
        events
            .iter()
            .filter(|event| event.agent_id().is_some())
            .map(|event| event.kind().to_owned())
            .filter(|kind| kind != "hangar.tools_offered")
            .collect()
    }

    /// Plays until neither the session nor an agent of it has anything to do.
    pub(crate) async fn until_settled(&mut self) {
        while !self.driver.is_idle() {
            assert!(self.driver.turn().await.unwrap());
        }
    }

    pub(crate) fn bodies(&self) -> Vec<Body> {
        self.audience.0.lock().iter().map(|event| event.body().clone()).collect()
    }

    pub(crate) fn requests(&self) -> Vec<ModelRequest> {
        self.requests.lock().iter().map(|(_, request)| request.clone()).collect()
    }

    /// When each session asked the model, from some moment on: seconds with what it is called.
    pub(crate) fn asked_since(&self, start: tokio::time::Instant) -> Vec<(f64, String)> {
        let requests = self.requests.lock();
        let since = |at: tokio::time::Instant| at.duration_since(start).as_secs_f64();
        requests.iter().map(|(at, request)| (since(*at), request.session_id.clone())).collect()
    }

    /// The types of the main agent's events, in order.
    pub(crate) fn main_story(&self) -> Vec<String> {
        let events = self.audience.0.lock();
        events
            .iter()
            .filter(|event| event.agent_id().is_none())
            .map(|event| event.kind().to_owned())
            .collect()
    }

    /// The model's last request, a line per message.
    pub(crate) fn last_request(&self) -> String {
        let requests = self.requests();
        let lines: Vec<String> =
            requests.last().unwrap().messages.iter().map(|message| show(message)).collect();
        lines.join("\n")
    }

    /// The types of all events from the first prompt on, without the pieces.
    pub(crate) fn story(&self) -> String {
        let kinds = self.kinds();
        let start = kinds.iter().position(|kind| kind == "user.message").unwrap_or(0);
        let told: Vec<&str> = kinds[start..]
            .iter()
            .map(String::as_str)
            .filter(|kind| {
                !matches!(
                    *kind,
                    "assistant.message_start"
                        | "assistant.message_delta"
                        | "assistant.usage"
                        | "session.usage_record"
                        | "hangar.tools_offered"
                        | "session.mcp_servers_loaded"
                        | "session.tools_updated"
                        | "system.message"
                )
            })
            .collect();
        told.join("\n")
    }
}

fn show(message: &Message) -> String {
    let text = |parts: &[Part]| -> String {
        parts
            .iter()
            .map(|part| match part {
                Part::Text(text) => {
                    // The time of day is not what these tests are about.
                    text.split_once("</current_datetime>\n\n")
                        .map_or(text.as_str(), |(_, rest)| rest)
                        .to_owned()
                }
                Part::Image { mime_type, .. } | Part::Document { mime_type, .. } => format!("[{mime_type}]"),
            })
            .collect()
    };
    match message {
        Message::User(parts) => format!("user: {}", text(parts)),
        Message::Assistant(turn) => {
            let calls: Vec<&str> = turn.tool_calls.iter().map(|call| call.id.as_str()).collect();
            format!("assistant: {}{calls:?}", turn.text)
        }
        Message::Tool { call_id, parts, .. } => format!("tool {call_id}: {}", text(parts)),
    }
}
