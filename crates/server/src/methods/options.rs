//! Settings of a session that clients change after the fact.

use hangar_agent::session::Command;
use hangar_protocol::data::SessionLimits;
use hangar_spec::{SessionSpec, SettingsGroup};
use serde_json::Value;

use super::model::{Chooser, RequestedModel, SwitchTime, choose};
use super::{Call, Failure, Method, Reply};
use crate::opener::RecomposeScope;
use crate::recompose::recompose;

pub(super) const METHODS: &[Method] =
    &[Method { name: "session.options.update", run: |call| Box::pin(update(call)) }];

async fn update(call: Call) -> Result<Reply, Failure> {
    // Other options are accepted and ignored.
    let mut change = call.params::<SessionSpec>()?.updatable();
    let live = call.live()?;
    // A limit that is `null` is removed.
    if let Some(limits) = call.params::<Value>()?.get("sessionLimits") {
        let limits: Option<SessionLimits> = serde_json::from_value(limits.clone())
            .map_err(|error| Failure::Params(format!("`sessionLimits`: {error}")))?;
        live.command(Command::SetLimits(limits)).await?;
    }
    let changes_model = !change.model.is_empty();
    // `choose` applies the model settings. Only the provider has to be known before.
    let provider = change.model.provider.take();
    let asked = std::mem::take(&mut change.model);
    change.model.provider = provider;
    if change.needs_reopening() {
        call.hub.reopen(&live, change).await?;
    } else {
        let scope =
            RecomposeScope { instructions: !change.instructions.is_empty(), ..RecomposeScope::default() };
        let (spec, recomposed) = recompose(&live, change.clone(), scope).await?;
        let model = spec.model.name.unwrap_or_default();
        let replaces_tools = !change.tools.is_empty();
        live.ask(move |task| {
            task.spec.adopt(change);
            task.take_parts(recomposed, &model);
            task.apply_options();
            if replaces_tools {
                task.replace_tools();
            }
        })
        .await?;
    }
    if changes_model {
        let (now, tier) =
            live.ask(|task| (task.session().state().model.clone(), task.spec.model.tier)).await?;
        let choice = RequestedModel {
            model: asked.name.unwrap_or(now),
            effort: asked.effort.into(),
            summary: asked.summary,
            verbosity: asked.verbosity,
            tier: asked.tier.or(tier),
            capabilities: asked.capabilities,
        };
        choose(&live, choice, Chooser::Client, SwitchTime::FromNextCall).await?;
    }
    Reply::success()
}
