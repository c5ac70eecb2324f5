//! GitHub's Copilot API: three wires behind one URL, and a catalogue that lists the wires of each model.

use hangar_agent::model::{ModelError, ModelErrorKind, ModelRequest};
use parking_lot::Mutex;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use tokio::sync::OnceCell;

use crate::catalogue::{self, ModelInfo};
use crate::config::{ProviderConfig, ProviderKind};
use crate::facts::{self, Endpoint};
use crate::provider::Provider;
use crate::wire::{Wire, shows_images};

/// The API answers only known integrations; this is the one for command lines.
const INTEGRATION: &str = "copilot-developer-cli";
const API_VERSION: &str = "2026-08-01";
const EDITOR_VERSION: &str = concat!("hangar/", env!("CARGO_PKG_VERSION"));

/// Headers that identify the client, for every request.
pub const HEADERS: [(&str, &str); 4] = [
    ("copilot-integration-id", INTEGRATION),
    ("editor-version", EDITOR_VERSION),
    ("openai-intent", "conversation-agent"),
    ("x-github-api-version", API_VERSION),
];

/// The headers of any request.
pub(crate) fn add_headers(headers: &mut HeaderMap) {
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

/// The headers of a request to a model.
pub(crate) fn add_request_headers(headers: &mut HeaderMap, request: &ModelRequest) {
    if let Ok(session) = HeaderValue::from_str(&request.session_id) {
        headers.insert("x-client-session-id", session);
    }
    if shows_images(request) {
        headers.insert("copilot-vision-request", HeaderValue::from_static("true"));
    }
}

/// The wire of each model, read from the catalogue when a model is first called.
pub(crate) struct Routes {
    models: OnceCell<Vec<ModelInfo>>,
    last: Mutex<Wire>,
}

impl Default for Routes {
    fn default() -> Self {
        Self { models: OnceCell::new(), last: Mutex::new(Wire::Chat) }
    }
}

impl Routes {
    /// The routes of a provider that has several wires. A list that came with its configuration is not fetched again.
    pub(crate) fn of(config: &ProviderConfig) -> Option<Self> {
        if config.kind != ProviderKind::Copilot {
            return None;
        }
        let listed = config.learnt.listed.as_deref().filter(|models| !models.is_empty());
        Some(listed.map_or_else(Self::default, |models| Self::known(models.to_vec())))
    }

    /// Uses a catalogue that was read already.
    pub(crate) fn known(models: Vec<ModelInfo>) -> Self {
        Self { models: OnceCell::new_with(Some(models)), last: Mutex::new(Wire::Chat) }
    }

    /// The wire that was used last.
    pub(crate) fn last(&self) -> Wire {
        *self.last.lock()
    }

    /// The list, if it has been read.
    pub(crate) fn models(&self) -> Option<&[ModelInfo]> {
        self.models.get().map(Vec::as_slice)
    }

    pub(crate) async fn wire(&self, provider: &Provider, model: &str) -> Result<Wire, ModelError> {
        let models = self.models.get_or_try_init(|| async {
            match catalogue::fetch(provider).await {
                // A server that has the wires but no catalogue: the wire follows from the model's name.
                Err(error) if error.kind == ModelErrorKind::Refused => Ok(Vec::new()),
                result => result,
            }
        });
        let wire = route(models.await?, model);
        *self.last.lock() = wire;
        Ok(wire)
    }

    /// The wire of a model by the list, if that has been read.
    pub(crate) fn known_wire(&self, model: &str) -> Option<Wire> {
        self.models().map(|models| route(models, model))
    }
}

impl Routes {
    /// Whether the catalogue, where it has been read, lists a WebSocket for the model.
    pub(crate) fn listens_on_socket(&self, model: &str) -> bool {
        let info =
            self.models().and_then(|models| models.iter().find(|info| facts::is_same(&info.id, model)));
        let endpoints = info.and_then(|info| info.endpoints.as_deref()).unwrap_or_default();
        endpoints.iter().any(|endpoint| endpoint == "ws:/responses")
    }
}

/// The wire of a model by a list.
fn route(models: &[ModelInfo], model: &str) -> Wire {
    let info = models.iter().find(|info| facts::is_same(&info.id, model));
    match info.and_then(|info| info.endpoints.as_deref()) {
        Some(endpoints) => preferred(endpoints),
        None if info.is_some() => Wire::Chat,
        None => guess(model),
    }
}

/// The wire that loses the least: the vendors' own wires keep reasoning between calls.
fn preferred(endpoints: &[String]) -> Wire {
    let has = |wire: Wire| endpoints.iter().any(|endpoint| endpoint == wire.endpoint());
    [Wire::Messages, Wire::Responses].into_iter().find(|wire| has(*wire)).unwrap_or(Wire::Chat)
}

/// For a model that the catalogue does not have.
fn guess(model: &str) -> Wire {
    let facts = facts::of(model);
    match facts.endpoints.first() {
        Some(Endpoint::Responses) if facts.custom_tools => Wire::Responses,
        _ => Wire::Chat,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(endpoints: &[&str], wire: Wire) {
        let endpoints: Vec<String> = endpoints.iter().map(|&endpoint| endpoint.to_owned()).collect();
        assert_eq!(preferred(&endpoints), wire);
    }

    #[test]
    fn a_vendor_s_own_wire_is_preferred() {
        check(&["/chat/completions", "/v1/messages"], Wire::Messages);
        check(&["/chat/completions", "/responses"], Wire::Responses);
        check(&["ws:/responses", "/responses"], Wire::Responses);
        check(&["/chat/completions"], Wire::Chat);
        check(&[], Wire::Chat);
    }
}
