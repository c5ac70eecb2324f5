//! The providers of a session: what can be chosen, what is added on the way, and where the model is reached.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};
use hangar_spec::{ModelSpec, ProviderSpec, SessionSpec};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.provider.add", run: |call| Box::pin(add(call)) },
    Method { name: "session.provider.getEndpoint", run: |call| Box::pin(endpoint(call)) },
    Method { name: "session.model.list", run: |call| Box::pin(list(call)) },
];

async fn add(call: Call) -> Result<Reply, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Params {
        providers: Vec<ProviderSpec>,
        models: Vec<ModelSpec>,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    if let Some(unnamed) = params.providers.iter().find(|provider| provider.name.is_none()) {
        return Err(Failure::new(format!("the provider at {} has no name", unnamed.base_url)));
    }
    let added: Vec<Value> = params.models.iter().map(describe).collect();
    live.ask(move |task| {
        let named = |provider: &ProviderSpec| provider.name.clone();
        let known = task.spec.model.providers.get_or_insert_with(Vec::new);
        if let Some(clash) =
            params.providers.iter().find(|new| known.iter().any(|old| named(old) == named(new)))
        {
            let name = clash.name.as_deref().unwrap_or_default();
            return Err(Failure::new(format!("there is a provider `{name}` already")));
        }
        let reachable = |model: &&ModelSpec| {
            let mut all = known.iter().chain(&params.providers);
            !all.any(|provider| provider.name.as_deref() == Some(model.provider.as_str()))
        };
        if let Some(lost) = params.models.iter().find(reachable) {
            return Err(Failure::new(format!(
                "the model `{}` names the provider `{}`, which is not there",
                lost.id, lost.provider
            )));
        }
        known.extend(params.providers);
        task.spec.model.models.get_or_insert_with(Vec::new).extend(params.models);
        Ok(())
    })
    .await??;
    Reply::of(json!({ "models": added }))
}

/// Serialises a model of a client's provider.
fn describe(model: &ModelSpec) -> Value {
    let id = format!("{}/{}", model.provider, model.id);
    let mut limits = json!({});
    for (name, limit) in [
        ("max_prompt_tokens", model.max_prompt_tokens),
        ("max_output_tokens", model.max_output_tokens),
        ("max_context_window_tokens", model.max_context_window_tokens),
    ] {
        if let Some(limit) = limit {
            limits[name] = json!(limit);
        }
    }
    json!({
        "id": id,
        "name": model.name.as_ref().unwrap_or(&id),
        "capabilities": { "supports": {}, "limits": limits },
    })
}

async fn list(call: Call) -> Result<Reply, Failure> {
    let live = call.live()?;
    let (own, alone, token) = live
        .ask(|task| {
            let SessionSpec { model, identity, .. } = &task.spec;
            let own: Vec<Value> = model.models.iter().flatten().map(describe).collect();
            (own, model.provider.is_some(), identity.github_token.clone())
        })
        .await?;
    let mut list = own;
    // A session with a provider of its own reaches no other; without one, what the server has comes first.
    if !alone {
        match call.hub.config().account.models(token).await {
            Ok(offered) => list.splice(..0, offered).for_each(drop),
            Err(error) if list.is_empty() => return Err(error.into()),
            Err(_) => {}
        }
    }
    Reply::of(json!({ "list": list }))
}

async fn endpoint(call: Call) -> Result<Reply, Failure> {
    #[derive(Default, Deserialize)]
    #[serde(rename_all = "camelCase", default)]
    struct Params {
        model_id: Option<String>,
    }
    let params: Params = call.params()?;
    let live = call.live()?;
    let (spec, model) = live.ask(|task| (task.spec.clone(), task.session().state().model.clone())).await?;
    let model = params.model_id.unwrap_or(model);
    Reply::of(call.hub.config().opener.endpoint(&spec, &model)?)
}
