//! Documents beside the chat: lists of models, and information endpoints of local servers.

use serde_json::Value;

use super::forms::{HttpMethod, ServedDocument};
use super::model;
use super::rulebook::Rulebook;
use super::template::Vars;
use crate::{Request, VendorResponse};

/// The document that a request asks for, if it is one.
pub(crate) fn document(book: &Rulebook, request: &Request) -> Option<VendorResponse> {
    let method = if request.is_get() { HttpMethod::Get } else { HttpMethod::Post };
    book.document.iter().find_map(|document| {
        let rest = request.path.strip_prefix(document.path.trim_end_matches("{id}"))?;
        let named = match (rest, document.path.ends_with("{id}")) {
            ("", false) => None,
            ("", true) | (_, false) => return None,
            (id, true) => Some(id.to_owned()),
        };
        (document.method == method).then(|| answer(book, document, named, request))
    })
}

fn answer(
    book: &Rulebook,
    document: &ServedDocument,
    named: Option<String>,
    request: &Request,
) -> VendorResponse {
    let asked = document.model_at.as_ref().and_then(|at| request.body.pointer(at)).and_then(Value::as_str);
    let mut vars = Vars::default();
    // A document about one model names it; a server with a single model describes that one.
    match named.as_deref().or(asked) {
        Some(id) => match book.model(id) {
            Some(found) => vars = model::vars(found),
            None => return book.unknown_model.refusal(book, vars.with("model", id)).into(),
        },
        None => {
            if let Some(first) = book.model.first() {
                vars = model::vars(first);
            }
        }
    }
    if let Some(entry) = &document.entry {
        let models = book.model.iter().map(|model| model::vars(model).json(&entry.0));
        vars.set("models", models.collect::<Value>());
    }
    VendorResponse::ok(vars.json(&document.body.0))
}
