//! The session's model.

use hangar_agent::session::Command;
use serde::Deserialize;
use serde_json::json;

use super::{Call, Failure, Method, Reply};
use crate::inference;
use crate::spec::{CapabilityOverrides, SessionSpec};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.model.getCurrent", run: |call| Box::pin(current(call)) },
    Method { name: "session.model.switchTo", run: |call| Box::pin(switch(call)) },
    Method { name: "session.model.setReasoningEffort", run: |call| Box::pin(set_effort(call)) },
];

async fn current(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let (model, effort) = live
        .ask(|task| (task.session().state().model.clone(), task.session().state().effort.clone()))
        .await?;
    let mut result = json!({});
    if !model.is_empty() {
        result["modelId"] = json!(model);
    }
    if let Some(effort) = effort {
        result["reasoningEffort"] = json!(effort);
    }
    Reply::of(result)
}

async fn switch(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        model_id: String,
        #[serde(default)]
        reasoning_effort: Option<String>,
        #[serde(default)]
        model_capabilities: Option<CapabilityOverrides>,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let change = SessionSpec {
        model: Some(params.model_id.clone()),
        model_capabilities: params.model_capabilities,
        ..SessionSpec::default()
    };
    let spec = live
        .ask(move |task| {
            task.spec.adopt(change);
            task.spec.clone()
        })
        .await?;
    let vision = spec.has_vision();
    let ways = inference::ways(&live.audience, &spec, live.audience.courier().is_some());
    let provider = call.hub.config().opener.provider(&spec, &params.model_id, ways)?;
    let model = params.model_id.clone();
    live.ask(move |task| {
        task.set_provider(provider, &model);
        task.driver.session_mut().set_vision(vision);
        task.command(Command::SetModel { model, effort: params.reasoning_effort });
    })
    .await?;
    Reply::of(json!({ "modelId": params.model_id }))
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
    live.ask(move |task| {
        let model = task.session().state().model.clone();
        task.command(Command::SetModel { model, effort: Some(effort) });
    })
    .await?;
    Reply::of(json!({ "reasoningEffort": params.reasoning_effort }))
}
