//! Which parts of Hangar are on. A method of Hangar's own: the protocol has none.

use hangar_agent::features::FEATURES;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] =
    &[Method { name: "hangar.features.list", run: |call| Box::pin(list(call)) }];

async fn list(call: Call) -> Result<Reply, Failure> {
    let on = &call.hub.config().features;
    let features: Vec<Value> = FEATURES
        .iter()
        .map(|feature| {
            json!({
                "name": feature.name,
                "stage": feature.stage.as_str(),
                "enabled": on.is_on(feature.name),
                "about": feature.about,
            })
        })
        .collect();
    Reply::of(json!({ "features": features }))
}
