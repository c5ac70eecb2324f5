//! The session's mode and name.

use hangar_agent::log::ListedFact;
use hangar_agent::session::Command;
use hangar_protocol::data::{ContextTier, Mode};
use serde::Deserialize;
use serde_json::json;

use super::model::{Chooser, EffortChoice, RequestedModel, SwitchTime, choose};
use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.mode.get", run: |call| Box::pin(get(call)) },
    Method { name: "session.mode.set", run: |call| Box::pin(set(call)) },
    Method { name: "session.name.get", run: |call| Box::pin(name(call)) },
    Method { name: "session.name.set", run: |call| Box::pin(set_name(call)) },
    Method { name: "session.name.setAuto", run: |call| Box::pin(set_auto_name(call)) },
];

async fn get(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let mode = live.ask(|task| task.session().state().mode).await?;
    Reply::of(json!(mode))
}

async fn set(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        mode: Mode,
        /// Required current mode; in another one nothing happens.
        expected_mode: Option<Mode>,
        #[serde(default)]
        plan_model_configured: bool,
        plan_model: Option<String>,
        plan_reasoning_effort: Option<String>,
        plan_context_tier: Option<ContextTier>,
        /// Whether leaving plan mode restores the model that was used before it.
        #[serde(default)]
        restore_plan_model: bool,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    call.hub.admits(params.mode)?;
    let (before, model, effort, base) = live
        .ask(|task| {
            let state = task.session().state();
            (state.mode, state.model.clone(), state.effort.clone(), task.models.plan_base.clone())
        })
        .await?;
    if params.expected_mode.is_some_and(|expected| expected != before) {
        return Reply::of(json!({ "status": "unchanged", "modelChanged": false, "modeApplied": false }));
    }
    let (choice, base) = match (params.mode, base) {
        (Mode::Plan, base) => {
            let wanted = params.plan_model.filter(|_| params.plan_model_configured);
            let choice = wanted.filter(|wanted| *wanted != model).map(|wanted| RequestedModel {
                model: wanted,
                effort: params.plan_reasoning_effort.into(),
                tier: params.plan_context_tier,
                ..RequestedModel::default()
            });
            let base = base.or_else(|| choice.is_some().then_some((model, effort)));
            (choice, base)
        }
        (Mode::Interactive | Mode::Autopilot, Some((model, effort))) if params.restore_plan_model => (
            Some(RequestedModel { model, effort: EffortChoice::Set(effort), ..RequestedModel::default() }),
            None,
        ),
        (Mode::Interactive | Mode::Autopilot, base) => (None, base),
    };
    let message = match choice {
        Some(choice) => Some(choose(&live, choice, Chooser::Client, SwitchTime::FromNextCall).await?.message),
        None => None,
    };
    let applied = live
        .ask(move |task| {
            task.models.plan_base = base;
            // Another client may have changed it meanwhile.
            let mode = task.session().state().mode;
            let expected = params.expected_mode.is_none_or(|expected| expected == mode);
            if expected {
                task.command(Command::SetMode(params.mode));
            }
            expected
        })
        .await?;
    Reply::of(match message {
        None => json!({ "status": "unchanged", "modelChanged": false, "modeApplied": applied }),
        Some(message) => json!({
            "status": "applied",
            "modelChanged": true,
            "modeApplied": applied,
            "message": message,
            "deprecationWarnings": [],
        }),
    })
}

async fn name(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let name = live.meta().await?.and_then(|meta| meta.name).map(|name| name.as_str().to_owned());
    Reply::of(json!({ "name": name }))
}

async fn set_name(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        name: String,
    }
    let params: Params = call.params()?;
    let name = params.name.trim().to_owned();
    if name.is_empty() {
        return Err(Failure::new("Session name cannot be empty"));
    }
    let live = call.live()?;
    live.ask(move |task| {
        task.set_name(ListedFact::GivenName(name.clone()), name)
            .map_err(|error| Failure::new(error.to_string()))
    })
    .await??;
    Reply::null()
}

/// Sets a generated name, which never replaces one that the user chose.
async fn set_auto_name(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        summary: String,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let name = params.summary.trim().to_owned();
    let known = live.meta().await?.and_then(|meta| meta.name);
    if name.is_empty() || matches!(known, Some(hangar_store::SessionName::Given(_))) {
        return Reply::of(json!({ "applied": false }));
    }
    live.ask(move |task| {
        task.set_name(ListedFact::DerivedName(name.clone()), name)
            .map_err(|error| Failure::new(error.to_string()))
    })
    .await??;
    Reply::of(json!({ "applied": true }))
}
