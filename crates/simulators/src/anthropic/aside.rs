//! Endpoints beside messages: the list of models, and the count of tokens.

use serde_json::{Value, json};

use super::error::refuse;
use super::prompt::Reading;
use super::{Anthropic, Claude, check};
use crate::request::Request;
use crate::stream::VendorResponse;

pub(super) fn answer(vendor: &Anthropic, request: &Request) -> Option<VendorResponse> {
    if request.method == "POST" && request.path.ends_with("/messages/count_tokens") {
        return Some(count(vendor, request));
    }
    if !request.is_get() {
        return None;
    }
    let (_, id) = request.path.rsplit_once("/models")?;
    let id = id.trim_start_matches('/');
    if id.is_empty() {
        let models: Vec<_> = vendor.models.models.iter().map(told).collect();
        let (first, last) = (&models[0]["id"], &models[models.len() - 1]["id"]);
        return Some(VendorResponse::ok(
            json!({"data": models, "first_id": first, "last_id": last, "has_more": false}),
        ));
    }
    Some(match vendor.models.find(id) {
        Some(model) => VendorResponse::ok(told(model)),
        None => refuse(404, "not_found_error", format!("model: {id}")).into(),
    })
}

fn count(vendor: &Anthropic, request: &Request) -> VendorResponse {
    match check::model(vendor, &request.body) {
        Ok(model) => {
            let reading = Reading { model, body: &request.body, dropped: &[] };
            VendorResponse::ok(json!({"input_tokens": reading.prompt().tokens()}))
        }
        Err(refusal) => refusal.into(),
    }
}

fn told(model: &Claude) -> Value {
    let supported = |yes: bool| json!({"supported": yes});
    let levels = ["low", "medium", "high", "xhigh", "max"];
    let efforts = levels.map(|level| (level, supported(model.efforts.iter().any(|known| known == level))));
    let kinds = ["enabled", "disabled", "adaptive", "between_tools"];
    let refused = &model.rules.refused_thinking;
    let types = kinds.map(|kind| (kind, supported(!refused.iter().any(|refused| refused == kind))));
    let mut effort: Value = efforts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    effort["supported"] = json!(!model.efforts.is_empty());
    let types: Value = types.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    json!({
        "type": "model", "id": model.id, "display_name": model.id, "created_at": "2026-01-01T00:00:00Z",
        "max_input_tokens": model.window, "max_tokens": model.output,
        "capabilities": {
            "effort": effort, "thinking": {"supported": true, "types": types},
            "image_input": supported(true), "pdf_input": supported(true), "structured_outputs": supported(true),
        },
    })
}
