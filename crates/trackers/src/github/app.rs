//! Tokens of a GitHub App: made with the key of the app, and made anew before they expire.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use hangar_workflow::config::{AppConfig, AppKey};
use jiff::{SignedDuration, Timestamp};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::Reading;
use crate::error::{TrackerError, TrackerErrorKind};
use crate::http::{Api, Credentials, Method, text};

/// A token is replaced when it has less time left.
const MARGIN: SignedDuration = SignedDuration::from_mins(5);
/// Life of the proof that we are the app, which GitHub limits to ten minutes.
const PROOF: SignedDuration = SignedDuration::from_mins(9);
/// Difference of clocks that does not matter.
const SKEW: SignedDuration = SignedDuration::from_secs(60);

/// Tokens of one installation. One instance serves any number of callers at once.
#[derive(Clone)]
pub struct AppTokens(Arc<Inner>);

struct Inner {
    api: Api,
    /// `owner/name`.
    repository: String,
    current: Mutex<Current>,
}

struct Current {
    installation: Option<String>,
    token: Option<(String, Timestamp)>,
}

/// The app itself, which may only ask for tokens.
struct App {
    id: String,
    key: RsaKeyPair,
}

impl AppTokens {
    pub fn new(app: &AppConfig, endpoint: &str, repository: &str) -> Result<Self, TrackerError> {
        let own = Arc::new(App { id: app.id.clone(), key: key(&app.private_key)? });
        let current = Current { installation: app.installation.clone(), token: None };
        Ok(Self(Arc::new(Inner {
            api: Api::with(super::service(endpoint, None), Some(own))?,
            repository: repository.to_owned(),
            current: Mutex::new(current),
        })))
    }
}

impl Credentials for AppTokens {
    fn token(&self) -> Reading<String> {
        let inner = Arc::clone(&self.0);
        Box::pin(async move { inner.token().await })
    }
}

impl Credentials for App {
    fn token(&self) -> Reading<String> {
        let proof = self.proof(Timestamp::now());
        Box::pin(async move { proof })
    }
}

impl App {
    /// A JSON web token that only the owner of the key can make.
    fn proof(&self, now: Timestamp) -> Result<String, TrackerError> {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let claims = json!({
            "iat": (now - SKEW).as_second(), "exp": (now + PROOF).as_second(), "iss": self.id,
        });
        let signed = format!("{}.{}", part(json!({ "alg": "RS256", "typ": "JWT" })), part(claims));
        let mut signature = vec![0; self.key.public().modulus_len()];
        let made = self.key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature);
        made.map_err(|_| {
            TrackerError::new(TrackerErrorKind::InvalidConfig, "the key of the GitHub App cannot sign")
        })?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }
}

impl Inner {
    async fn token(&self) -> Result<String, TrackerError> {
        let mut current = self.current.lock().await;
        let now = Timestamp::now();
        if let Some((token, until)) = &current.token
            && until.duration_since(now) > MARGIN
        {
            return Ok(token.clone());
        }
        let payload =
            |what: &str| TrackerError::new(TrackerErrorKind::Payload, format!("GitHub gives no {what}"));
        let installation = match &current.installation {
            Some(known) => known.clone(),
            None => {
                let path = format!("/repos/{}/installation", self.repository);
                let found = self.api.get(&path).await?.body["id"].as_u64();
                found.ok_or_else(|| payload("installation of the app"))?.to_string()
            }
        };
        let path = format!("/app/installations/{installation}/access_tokens");
        let made = self.api.send(Method::Post, &path, None).await?;
        let until = text(&made, "expires_at").parse::<Timestamp>();
        let (token, until) = (text(&made, "token"), until.map_err(|_| payload("date of a token"))?);
        if token.is_empty() {
            return Err(payload("token"));
        }
        (current.installation, current.token) = (Some(installation), Some((token.clone(), until)));
        Ok(token)
    }
}

/// A key in PEM form, as GitHub gives it or as PKCS #8.
fn key(source: &AppKey) -> Result<RsaKeyPair, TrackerError> {
    let wrong = |message: String| TrackerError::new(TrackerErrorKind::InvalidConfig, message);
    let pem = match source {
        // Variables often hold it in one line.
        AppKey::Text(text) => text.0.replace("\\n", "\n"),
        AppKey::File(path) => std::fs::read_to_string(path).map_err(|error| {
            wrong(format!("the key of the GitHub App cannot be read: {}: {error}", path.display()))
        })?,
    };
    let invalid = || wrong("the key of the GitHub App is no RSA key in PEM form".to_owned());
    let is_plain = pem.contains("BEGIN RSA PRIVATE KEY");
    let body: String = pem.lines().filter(|line| !line.starts_with("-----")).map(str::trim).collect();
    let der = STANDARD.decode(body).map_err(|_| invalid())?;
    match is_plain {
        true => RsaKeyPair::from_der(&der),
        false => RsaKeyPair::from_pkcs8(&der),
    }
    .map_err(|_| invalid())
}
