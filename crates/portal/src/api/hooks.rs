//! Hooks: requests from outside that start work. A signature takes the place of the portal's token.

use axum::Json as Answer;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use ring::hmac;

use super::input::Name;
use super::settings::{aside, automation};
use super::{Endpoint, Of, post};
use crate::problem::Problem;
use crate::settings::{FiredHook, HookDelivery};

/// Largest body of a request.
const MAX_BODY: usize = 1 << 20;
/// Length of the longest id of a delivery, and of an event's name.
const MAX_ID: usize = 200;
/// Headers of the signature, of the id of a delivery and of the event: ours, and GitHub's.
const SIGNATURES: [&str; 2] = ["x-hangar-signature-256", "x-hub-signature-256"];
const DELIVERIES: [&str; 2] = ["x-hangar-delivery", "x-github-delivery"];
const EVENTS: [&str; 2] = ["x-hangar-event", "x-github-event"];

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        post(
            "/api/v1/hooks/{name}",
            "Start the work of a hook; the body is signed in X-Hub-Signature-256, and X-GitHub-Delivery identifies it",
            fire,
        )
        .answers::<FiredHook>(202)
        .limit(MAX_BODY)
        .open(),
    ]
}

fn header<'a>(headers: &'a HeaderMap, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| headers.get(*name)?.to_str().ok())
}

async fn fire(
    State(app): Of,
    Name(name): Name,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Answer<FiredHook>), Problem> {
    let automation = automation(&app)?;
    // A hook that does not exist is refused like a wrong signature, so that names cannot be guessed.
    let refused = || {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "wrong_signature",
            "sign the body with the hook's secret: X-Hub-Signature-256: sha256=HEX of its HMAC-SHA256",
        )
    };
    let signature = header(&headers, &SIGNATURES).and_then(signature_bytes).ok_or_else(refused)?;
    let (keys, called) = (std::sync::Arc::clone(&automation), name.clone());
    let secret = aside(move || keys.hook_secret(&called)).await?.ok_or_else(refused)?;
    let key = hmac::Key::new(hmac::HMAC_SHA256, &secret);
    // It compares in constant time.
    hmac::verify(&key, &body, &signature).map_err(|_| refused())?;
    let delivery = header(&headers, &DELIVERIES).filter(|id| (1..=MAX_ID).contains(&id.len()));
    let delivery = delivery.ok_or_else(|| {
        Problem::invalid(
            "name the delivery: X-GitHub-Delivery or X-Hangar-Delivery, with up to 200 characters",
        )
    })?;
    let request = HookDelivery {
        name,
        delivery: delivery.to_owned(),
        event: header(&headers, &EVENTS).filter(|event| event.len() <= MAX_ID).map(str::to_owned),
        body: String::from_utf8_lossy(&body).into_owned(),
    };
    // Runs are started on the runtime.
    let fired = automation.fire(request);
    let failed = |why| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "not_started", why);
    let fired = fired.map_err(failed)?;
    let status = if fired.duplicate { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Answer(fired)))
}

/// Bytes of a signature in GitHub's form, `sha256=HEX`.
fn signature_bytes(text: &str) -> Option<Vec<u8>> {
    let hex = text.trim().strip_prefix("sha256=")?;
    if hex.len() != 64 || !hex.is_ascii() {
        return None;
    }
    (0..32).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_has_the_form_of_github() {
        let hex = "ab".repeat(32);
        assert_eq!(signature_bytes(&format!("sha256={hex}")), Some(vec![0xab; 32]));
        for wrong in [hex.as_str(), "sha256=ab", "sha1=ab", &format!("sha256={}", "zz".repeat(32))] {
            assert_eq!(signature_bytes(wrong), None, "{wrong}");
        }
    }
}
