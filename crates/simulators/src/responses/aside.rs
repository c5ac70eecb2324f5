//! Endpoints beside responses: the list of models, and the count of tokens.

use serde_json::{Value, json};

use super::error::invalid;
use super::prompt::Reading;
use super::{Gpt, Responses};
use crate::request::Request;
use crate::stream::VendorResponse;

pub(super) fn answer(vendor: &Responses, request: &Request) -> Option<VendorResponse> {
    if request.method == "POST" && request.path.ends_with("/responses/input_tokens") {
        return Some(count(vendor, &request.body));
    }
    if !request.is_get() {
        return None;
    }
    let (_, id) = request.path.rsplit_once("/models")?;
    let id = id.trim_start_matches('/');
    if id.is_empty() {
        let models: Vec<_> = vendor.models.models.iter().map(told).collect();
        return Some(VendorResponse::ok(json!({"object": "list", "data": models})));
    }
    Some(match vendor.models.find(id) {
        Some(model) => VendorResponse::ok(told(model)),
        None => {
            let message = format!("The model '{id}' does not exist");
            let refusal = invalid(message, "model", "model_not_found");
            VendorResponse::Whole { status: 404, headers: refusal.headers, body: refusal.body }
        }
    })
}

fn count(vendor: &Responses, body: &Value) -> VendorResponse {
    let id = body["model"].as_str().unwrap_or_default();
    match vendor.models.find(id) {
        Some(model) => {
            let tokens = Reading { model, body, dropped: &[] }.prompt().tokens();
            VendorResponse::ok(json!({"object": "response.input_tokens", "input_tokens": tokens}))
        }
        None => {
            let message = format!("The requested model '{id}' does not exist.");
            invalid(message, "model", "model_not_found").into()
        }
    }
}

fn told(model: &Gpt) -> Value {
    json!({"id": model.id, "object": "model", "created": 1_780_000_000, "owned_by": "openai"})
}
