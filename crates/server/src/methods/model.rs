//! The session's model.

use std::sync::Arc;

use hangar_agent::session::{Command, ModelSwitch, Origin, Prompt, QueueEdit};
use hangar_protocol::data::{ContextTier, ModelChange, ReasoningSummary, SessionWarning, Verbosity};
use hangar_spec::{CapabilityOverrides, ModelOptions, SessionSpec};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::queue_edits::full;
use super::{Call, Failure, Method, Reply};
use crate::hub::ServedSession;
use crate::model_choices::QueuedModel;
use crate::opener::{RecomposeScope, Recomposed};
use crate::recompose::recompose;
use crate::task::SessionTask;

/// Model name that leaves the choice to the provider.
const AUTO: &str = "auto";
/// Models that a client may allow.
const MAX_ALLOWED: usize = 1000;

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.model.getCurrent", run: |call| Box::pin(current(call)) },
    Method { name: "session.model.switchTo", run: |call| Box::pin(switch(call)) },
    Method { name: "session.model.setReasoningEffort", run: |call| Box::pin(set_effort(call)) },
    Method { name: "session.model.setAllowedModels", run: |call| Box::pin(set_allowed(call)) },
    Method { name: "session.model.switchAutoTier", run: |call| Box::pin(switch_tier(call)) },
];

/// Priority of automatic model selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum AutoTier {
    Efficiency,
    Balance,
    Intelligence,
    Fast,
}

/// Model of a session with its settings, serialised for clients.
pub(super) fn snapshot(task: &SessionTask) -> Value {
    let state = task.session().state();
    let mut told = json!({});
    if !state.model.is_empty() {
        told["modelId"] = json!(state.model);
    }
    if let Some(effort) = &state.effort {
        told["reasoningEffort"] = json!(effort);
    }
    if let Some(tier) = task.spec.model.tier {
        told["contextTier"] = json!(tier);
    }
    // Nothing here acts on it, so it never is more than a wish.
    if let Some(tier) = task.models.auto_tier.filter(|_| state.model == AUTO) {
        told["pendingAutoTier"] = json!(tier);
    }
    told
}

async fn current(call: Call) -> Result<Reply, Failure> {
    Reply::of(call.live()?.ask(|task| snapshot(task)).await?)
}

/// Requested model and effort of a session.
#[derive(Default)]
pub(super) struct RequestedModel {
    pub(super) model: String,
    pub(super) effort: EffortChoice,
    pub(super) summary: Option<ReasoningSummary>,
    pub(super) verbosity: Option<Verbosity>,
    pub(super) tier: Option<ContextTier>,
    pub(super) capabilities: Option<CapabilityOverrides>,
}

/// Requested reasoning effort.
#[derive(Default)]
pub(super) enum EffortChoice {
    /// As hard as the one before.
    #[default]
    Kept,
    /// `None` for the model's default.
    Set(Option<String>),
}

impl From<Option<String>> for EffortChoice {
    fn from(wanted: Option<String>) -> Self {
        wanted.map_or(Self::Kept, |effort| Self::Set(Some(effort)))
    }
}

/// Origin of a model choice.
#[derive(Clone, Copy)]
pub(super) enum Chooser {
    Client,
    /// The allow list: it excludes the previous model.
    Rules,
}

impl Chooser {
    fn as_str(self) -> &'static str {
        match self {
            Chooser::Client => "sdk",
            Chooser::Rules => "automatic",
        }
    }
}

/// When a choice holds.
#[derive(Clone, Copy)]
pub(super) enum SwitchTime {
    FromNextCall,
    /// When what was sent before is done.
    InTurn {
        /// Whether another queued choice counts as a reason to wait.
        behind_choices: bool,
    },
}

pub(super) struct ChosenModel {
    /// Description of the change, in one sentence.
    pub(super) message: String,
    /// Whether the change is queued.
    pub(super) waits: bool,
}

/// Has another model answer.
pub(super) async fn choose(
    live: &ServedSession,
    choice: RequestedModel,
    chooser: Chooser,
    when: SwitchTime,
) -> Result<ChosenModel, Failure> {
    let RequestedModel { model, effort, summary, verbosity, tier, capabilities } = choice;
    let (allowed, kept) =
        live.ask(|task| (task.spec.model.allowed.clone(), task.session().state().effort.clone())).await?;
    let change = SessionSpec {
        model: ModelOptions {
            name: Some(model.clone()),
            // It is checked against the model that is chosen.
            effort: match &effort {
                EffortChoice::Kept => kept,
                EffortChoice::Set(effort) => effort.clone(),
            },
            summary,
            verbosity,
            capabilities,
            ..ModelOptions::default()
        },
        ..SessionSpec::default()
    };
    if matches!(chooser, Chooser::Client) && allowed.is_some_and(|allowed| !allowed.contains(&model)) {
        return Err(Failure::new(format!("Model \"{model}\" is not among the models that are allowed here")));
    }
    let scope = RecomposeScope { model: true, is_chosen: true, ..RecomposeScope::default() };
    let (spec, Recomposed { provider, effort_notice, .. }) = recompose(live, change.clone(), scope).await?;
    let provider = provider.ok_or_else(|| Failure::new(format!("nobody answers for the model {model}")))?;
    let (vision, summary) = (spec.model.has_vision(), spec.model.summary);
    live.ask(move |task| {
        let state = task.session().state();
        let with_effort = |model: &str, effort: Option<&String>| {
            effort.map_or_else(|| model.to_owned(), |effort| format!("{model} ({effort})"))
        };
        let (keeps_effort, effort) = match effort {
            EffortChoice::Kept => (true, None),
            EffortChoice::Set(effort) => (false, effort),
        };
        let message = format!(
            "Model changed from {} to {}",
            with_effort(&state.model, state.effort.as_ref()),
            with_effort(&model, effort.as_ref())
        );
        let recorded = ModelChange {
            new_model: model.clone(),
            reasoning_effort: effort,
            reasoning_summary: summary,
            verbosity,
            context_tier: tier,
            source: Some(chooser.as_str().to_owned()),
            ..ModelChange::default()
        };
        let switch = ModelSwitch { change: recorded, keeps_effort, provider: Arc::clone(&provider), vision };
        let choice = QueuedModel { model, provider, change, tier };
        if let Some(notice) = effort_notice {
            task.record(SessionWarning::new("configuration", notice));
        }
        let waits = match when {
            SwitchTime::FromNextCall => false,
            SwitchTime::InTurn { behind_choices } => {
                task.session().is_running()
                    || behind_choices && task.session().queued().any(|waiting| waiting.is_switch)
            }
        };
        if !waits {
            task.command(Command::SwitchModel(Box::new(switch)));
            task.take_choice(choice);
            return Ok(ChosenModel { message, waits });
        }
        if !task.session().has_room_in_queue() {
            return Err(full());
        }
        let id = uuid::Uuid::new_v4().to_string();
        let prompt = Prompt {
            origin: Origin::Switch(Box::new(switch)),
            message_id: Some(id.clone()),
            ..Prompt::user(format!("/model {}", choice.model))
        };
        task.keep_choice(id, choice);
        task.command(Command::EditQueue(QueueEdit::Insert { at: usize::MAX, prompt: Box::new(prompt) }));
        Ok(ChosenModel { message, waits })
    })
    .await?
}

async fn switch(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        model_id: String,
        reasoning_effort: Option<String>,
        reasoning_summary: Option<ReasoningSummary>,
        verbosity: Option<Verbosity>,
        model_capabilities: Option<CapabilityOverrides>,
        context_tier: Option<ContextTier>,
        auto_tier: Option<AutoTier>,
        #[serde(default)]
        require_available: bool,
        #[serde(default)]
        defer_if_model_change_queued: bool,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    if params.auto_tier.is_some() && params.model_id != AUTO {
        return Err(Failure::refused("autoTier is only valid when modelId is `auto`"));
    }
    if params.require_available {
        available(&call, &live, &params.model_id).await?;
    }
    let choice = RequestedModel {
        model: params.model_id.clone(),
        effort: params.reasoning_effort.into(),
        summary: params.reasoning_summary,
        verbosity: params.verbosity,
        tier: params.context_tier,
        capabilities: params.model_capabilities,
    };
    let when = SwitchTime::InTurn { behind_choices: params.defer_if_model_change_queued };
    let ChosenModel { message, waits } = choose(&live, choice, Chooser::Client, when).await?;
    let state = live
        .ask(move |task| {
            if params.auto_tier.is_some() {
                task.models.auto_tier = params.auto_tier;
            }
            snapshot(task)
        })
        .await?;
    let now = state["modelId"].as_str().filter(|_| waits).unwrap_or(&params.model_id);
    Reply::of(json!({
        "status": "applied",
        "deferred": waits,
        "modelId": now,
        "message": message,
        "deprecationWarnings": [],
        "modelState": state,
    }))
}

/// Refuses a model that the server's providers do not list. One that the client brought is the client's affair.
pub(super) async fn available(call: &Call, live: &ServedSession, model: &str) -> Result<(), Failure> {
    let account = &call.hub.config().account;
    let (token, own) = live
        .ask(|task| {
            (
                task.spec.identity.github_token.clone(),
                task.spec.model.provider.is_some() || task.spec.model.models.is_some(),
            )
        })
        .await?;
    let by_github = !own && (token.is_some() || account.given_token().is_some());
    let known = match account.models(token).await {
        Ok(listed) => own || listed.iter().any(|known| known["id"] == *model),
        Err(error) if by_github => return Err(error.into()),
        // A provider that lists nothing may have any model.
        Err(_) => true,
    };
    if known { Ok(()) } else { Err(Failure::new(format!("Model \"{model}\" is not available"))) }
}

async fn set_effort(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        reasoning_effort: String,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let effort = params.reasoning_effort.clone();
    let change = SessionSpec {
        model: ModelOptions { effort: Some(effort.clone()), ..ModelOptions::default() },
        ..SessionSpec::default()
    };
    let scope = RecomposeScope { model: true, ..RecomposeScope::default() };
    let (_, Recomposed { effort_notice, .. }) = recompose(&live, change.clone(), scope).await?;
    live.ask(move |task| {
        task.spec.adopt(change);
        if let Some(notice) = effort_notice {
            task.record(SessionWarning::new("configuration", notice));
        }
        let state = task.session().state();
        let change = ModelChange {
            previous_model: Some(state.model.clone()),
            new_model: state.model.clone(),
            previous_reasoning_effort: state.effort.clone(),
            reasoning_effort: Some(effort),
            source: Some(Chooser::Client.as_str().to_owned()),
            ..ModelChange::default()
        };
        task.record(change);
    })
    .await?;
    Reply::of(json!({ "reasoningEffort": params.reasoning_effort }))
}

/// Replaces the list of models that the session may have. One that has another gets the first of them.
async fn set_allowed(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        allowed_models: Option<Vec<String>>,
    }
    let Params { allowed_models } = call.params()?;
    let live = call.live()?;
    check_allowed(allowed_models.as_deref())?;
    // First the model and then the rule: where there is no such model, nothing has changed.
    obey(&live, allowed_models.as_deref()).await?;
    let allowed = allowed_models.clone();
    let model = live
        .ask(move |task| {
            task.spec.model.allowed = allowed;
            task.drop_forbidden_choices();
            task.session().state().model.clone()
        })
        .await?;
    let mut result = json!({ "effectiveAllowedModels": ["*"], "modelId": model });
    if let Some(allowed) = allowed_models
        && let Some(first) = allowed.first()
    {
        result["fallbackModel"] = json!(first);
        result["allowedModels"] = json!(allowed);
        result["effectiveAllowedModels"] = json!(allowed);
    }
    Reply::of(result)
}

/// Checks a list of models that a session is restricted to.
pub(super) fn check_allowed(models: Option<&[String]>) -> Result<(), Failure> {
    match models {
        Some([]) => Err(Failure::new("Host allowedModels must contain at least one model id")),
        Some(models) if models.len() > MAX_ALLOWED => {
            Err(Failure::new(format!("Host allowedModels must not contain more than {MAX_ALLOWED} ids")))
        }
        _ => Ok(()),
    }
}

/// Gives a session that has another model than these the first of them.
pub(super) async fn obey(live: &ServedSession, allowed: Option<&[String]>) -> Result<(), Failure> {
    let Some(allowed) = allowed else { return Ok(()) };
    let model = live.ask(|task| task.session().state().model.clone()).await?;
    match allowed.first() {
        Some(first) if !allowed.contains(&model) => {
            let choice = RequestedModel { model: first.clone(), ..RequestedModel::default() };
            choose(live, choice, Chooser::Rules, SwitchTime::FromNextCall).await.map(|_| ())
        }
        _ => Ok(()),
    }
}

async fn switch_tier(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        auto_tier: Option<AutoTier>,
    }
    let live = call.live()?;
    if live.ask(|task| task.session().state().model != AUTO).await? {
        return Err(Failure::refused("Auto preference switching requires the selected model to be `auto`"));
    }
    let Params { auto_tier } = call.params()?;
    let before = live.ask(move |task| std::mem::replace(&mut task.models.auto_tier, auto_tier)).await?;
    if before == auto_tier {
        return Reply::of(json!({ "status": "unchanged" }));
    }
    let mut result = json!({ "status": "pending", "pendingAutoTier": auto_tier });
    if let Some(before) = before {
        result["supersededAutoTier"] = json!(before);
    }
    Reply::of(result)
}
