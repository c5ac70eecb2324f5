//! A host that serves other wires beside chat completions, with its own model names.

use hyper::header::{AUTHORIZATION, HeaderValue};
use serde_json::{Value, json};

use super::Chat;
use super::template::Vars;
use crate::anthropic::Anthropic;
use crate::packed;
use crate::responses::{ItemIds, Responses};
use crate::{
    Accepted, AnswerHistory, FactsError, PlannedAnswer, Refusal, Request, Vendor, VendorFailure,
    VendorResponse,
};

/// Table of the models of xAI on the wire that it recommends.
pub(super) const GROK: &str = "chat/profiles/xai-responses.toml";
/// Table of the models of OpenAI, for hosts that forward requests.
pub(super) const GPT: &str = "responses/models.toml";

/// The wires of a host.
pub struct Gateway {
    chat: Chat,
    messages: Option<Anthropic>,
    responses: Option<Responses>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Chat,
    Messages,
    Responses,
}

impl Wire {
    fn of(request: &Request) -> Self {
        if request.path.ends_with("/messages") {
            Self::Messages
        } else if request.path.ends_with("/responses") {
            Self::Responses
        } else {
            Self::Chat
        }
    }

    /// Its name in catalogues.
    fn endpoint(self) -> &'static str {
        match self {
            Self::Chat => "/chat/completions",
            Self::Messages => "/v1/messages",
            Self::Responses => "/responses",
        }
    }
}

impl Gateway {
    pub(super) fn openai() -> Result<Self, FactsError> {
        Self::of_two("openai", GPT)
    }

    pub(super) fn azure() -> Result<Self, FactsError> {
        Self::of_two("azure", GPT)
    }

    pub(super) fn xai() -> Result<Self, FactsError> {
        Self::of_two("xai", GROK)
    }

    pub(super) fn openrouter() -> Result<Self, FactsError> {
        Self::of_all("openrouter", ItemIds::Stable)
    }

    pub(super) fn litellm() -> Result<Self, FactsError> {
        Self::of_all("litellm", ItemIds::Stable)
    }

    pub(super) fn copilot() -> Result<Self, FactsError> {
        Self::of_all("copilot", ItemIds::Changing)
    }

    fn of_two(name: &str, models: &str) -> Result<Self, FactsError> {
        let responses = Responses::of_models(packed::text(models), ItemIds::Stable)?;
        Ok(Self { chat: Chat::named(name)?, messages: None, responses: Some(responses) })
    }

    fn of_all(name: &str, item_ids: ItemIds) -> Result<Self, FactsError> {
        Ok(Self {
            chat: Chat::named(name)?,
            messages: Some(Anthropic::new()?),
            responses: Some(Responses::of_models(packed::text(GPT), item_ids)?),
        })
    }

    fn vendor(&self, wire: Wire) -> Option<&dyn Vendor> {
        match wire {
            Wire::Chat => Some(&self.chat),
            Wire::Messages => self.messages.as_ref().map(|messages| messages as &dyn Vendor),
            Wire::Responses => self.responses.as_ref().map(|responses| responses as &dyn Vendor),
        }
    }

    /// Refuses a model that the wire does not serve.
    fn serves(&self, wire: Wire, body: &Value) -> Result<(), Refusal> {
        let book = &self.chat.book;
        let id = body["model"].as_str().unwrap_or_default();
        let Some(wording) = &book.wrong_endpoint else { return Ok(()) };
        let vars = Vars::default().with("model", id).with("endpoint", wire.endpoint());
        let Some(model) = book.model(id) else { return Err(book.unknown_model.refusal(book, vars)) };
        let endpoints = model.rules.endpoints.as_deref();
        let served = endpoints.is_none_or(|endpoints| endpoints.iter().any(|name| name == wire.endpoint()));
        if served { Ok(()) } else { Err(wording.refusal(book, vars)) }
    }

    /// Refuses a prompt that the model's vendor would accept and this host does not.
    fn fits(&self, id: &str, accepted: &Accepted) -> Result<(), Refusal> {
        let book = &self.chat.book;
        let limit = book.model(id).and_then(|model| model.rules.max_input);
        let tokens = accepted.prompt.tokens();
        match (limit, &book.context.refusal) {
            (Some(limit), Some(wording)) if tokens > limit => {
                let vars = Vars::default().with("model", id).with("tokens", tokens).with("limit", limit);
                Err(wording.refusal(book, vars))
            }
            _ => Ok(()),
        }
    }

    /// Refuses an output limit that the model's vendor would accept and this host does not.
    fn affords(&self, id: &str, body: &Value) -> Result<(), Refusal> {
        let book = &self.chat.book;
        let limit = book.model(id).map(|model| model.output);
        let asked = ["max_tokens", "max_output_tokens"].into_iter().find_map(|field| body[field].as_u64());
        match (asked, limit, &book.output.refusal) {
            (Some(asked), Some(limit), Some(wording)) if asked > limit => {
                let vars = Vars::default().with("model", id).with("value", asked).with("limit", limit);
                Err(wording.refusal(book, vars))
            }
            _ => Ok(()),
        }
    }

    /// The request as the model's vendor would receive it.
    fn passed_on(&self, request: &Request) -> Request {
        let mut request = request.clone();
        let id = request.body["model"].as_str().unwrap_or_default();
        let upstream = self.chat.book.model(id).and_then(|model| model.rules.upstream.clone());
        if let Some(upstream) = upstream {
            request.body["model"] = json!(upstream);
        }
        let key = request.header("api-key").map(|key| format!("Bearer {key}"));
        if let Some(Ok(bearer)) = key.filter(|_| request.bearer().is_none()).map(HeaderValue::try_from) {
            request.headers.insert(AUTHORIZATION, bearer);
        }
        request
    }
}

impl Vendor for Gateway {
    fn aside(&self, request: &Request) -> Option<VendorResponse> {
        self.chat.aside(request)
    }

    fn check(&self, request: &Request, history: &AnswerHistory) -> Result<Accepted, Refusal> {
        let wire = Wire::of(request);
        let Some(vendor) = self.vendor(wire) else { return Err(self.chat.no_such_path(request)) };
        if wire == Wire::Chat {
            self.chat.served(request)?;
        }
        self.chat.account(request)?;
        self.serves(wire, &request.body)?;
        let mut accepted = match wire {
            Wire::Chat => vendor.check(request, history)?,
            Wire::Messages | Wire::Responses => vendor.check(&self.passed_on(request), history)?,
        };
        let model = request.body["model"].as_str().unwrap_or_default();
        self.fits(model, &accepted)?;
        if wire != Wire::Chat {
            self.affords(model, &request.body)?;
        }
        let mut billed = false;
        if let Some(billing) = &self.chat.book.billing {
            billed = billing.is_billed(request);
            accepted.violations.extend(billing.violation(request));
        }
        let context = json!({"endpoint": wire.endpoint(), "inner": accepted.context, "billed": billed});
        Ok(Accepted { context, ..accepted })
    }

    fn fail(&self, accepted: &Accepted, failure: &VendorFailure) -> Refusal {
        let (vendor, inner) = self.inner(accepted);
        match (&self.chat.book.billing, vendor) {
            // One proxy in front of all wires words its own refusals.
            (Some(_), _) | (None, None) => self.chat.fail(accepted, failure),
            (None, Some(vendor)) => vendor.fail(&inner, failure),
        }
    }

    fn encode(
        &self,
        accepted: &Accepted,
        reply: &PlannedAnswer,
        history: &mut AnswerHistory,
    ) -> VendorResponse {
        let (vendor, inner) = self.inner(accepted);
        let answer = vendor.unwrap_or(&self.chat).encode(&inner, reply, history);
        match &self.chat.book.billing {
            Some(billing) => {
                let used = billing.count(accepted.context["billed"] == true, history);
                answer.with_header(&billing.quota_header, billing.quota(used))
            }
            None => answer,
        }
    }
}

impl Gateway {
    /// The wire that accepted a request, and what it accepted.
    fn inner(&self, accepted: &Accepted) -> (Option<&dyn Vendor>, Accepted) {
        let wires = [Wire::Chat, Wire::Messages, Wire::Responses];
        let wire = wires.into_iter().find(|wire| accepted.context["endpoint"] == wire.endpoint());
        let inner = Accepted { context: accepted.context["inner"].clone(), ..accepted.clone() };
        (wire.and_then(|wire| self.vendor(wire)), inner)
    }
}
