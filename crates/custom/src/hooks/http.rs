//! Asking one hook over HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;

use super::Surroundings;

/// The most that a service may answer.
const ANSWER_LIMIT: usize = 10 << 20;

#[derive(Debug)]
pub(super) struct HttpHook {
    pub(super) url: String,
    pub(super) headers: BTreeMap<String, String>,
    /// Variables that headers may name.
    pub(super) allowed_env_vars: Vec<String>,
}

impl HttpHook {
    /// The body of the answer, or what was wrong as the end of a sentence.
    pub(super) async fn post(
        &self,
        payload: String,
        timeout: Duration,
        surroundings: &Surroundings,
    ) -> Result<String, String> {
        if !self.is_permitted(surroundings) {
            return Err("is asked over HTTPS only".to_owned());
        }
        let ask = async {
            // Set already if anything else has spoken TLS before.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let client = reqwest::Client::builder()
                .redirect(reqwest::redirect::Policy::none())
                .build()
                .map_err(|_| "cannot be asked: there is no HTTP client".to_owned())?;
            let mut request = client.post(&self.url).header("content-type", "application/json").body(payload);
            for (name, value) in &self.headers {
                request = request.header(name, self.expand(value, surroundings));
            }
            // An error of the client may have the headers' secrets in its address; the reason is enough.
            let answer = request.send().await.map_err(|error| reason(&error))?;
            if !answer.status().is_success() {
                return Err(format!("answered {}", answer.status()));
            }
            let mut pieces = answer.bytes_stream();
            let mut body = Vec::new();
            while let Some(piece) = pieces.next().await {
                body.extend_from_slice(&piece.map_err(|error| reason(&error))?);
                if body.len() > ANSWER_LIMIT {
                    return Err("answered more than 10 MB".to_owned());
                }
            }
            Ok(String::from_utf8_lossy(&body).into_owned())
        };
        let late = || format!("took longer than {} s and was not waited for", timeout.as_secs_f64());
        tokio::time::timeout(timeout, ask).await.unwrap_or_else(|_| Err(late()))
    }

    fn is_permitted(&self, surroundings: &Surroundings) -> bool {
        let Ok(url) = reqwest::Url::parse(&self.url) else { return false };
        let local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        match url.scheme() {
            "https" => true,
            "http" => local && surroundings.allow_localhost,
            _ => false,
        }
    }

    /// A header with the variables that it may use. Others stay as they are written.
    fn expand(&self, value: &str, surroundings: &Surroundings) -> String {
        let mut out = value.to_owned();
        for name in &self.allowed_env_vars {
            let content = surroundings.env.get(name).map(String::as_str).unwrap_or_default();
            out = out.replace(&format!("${{{name}}}"), content).replace(&format!("${name}"), content);
        }
        out
    }
}

fn reason(error: &reqwest::Error) -> String {
    match error {
        error if error.is_connect() => "cannot be reached".to_owned(),
        error if error.is_timeout() => "did not answer in time".to_owned(),
        _ => "broke off its answer".to_owned(),
    }
}
