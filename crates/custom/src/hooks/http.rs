//! Asking one hook over HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::StreamExt;

use super::HookEnvironment;

/// The most that a service may answer.
const ANSWER_LIMIT: usize = 10 << 20;

#[derive(Debug)]
pub(super) struct HttpHook {
    pub(super) url: String,
    pub(super) headers: BTreeMap<String, String>,
    /// Variables that headers may name.
    pub(super) allowed_env_vars: Vec<String>,
}

/// Why there is no answer, as the end of a sentence.
#[derive(Debug)]
pub(super) enum Unanswered {
    NotAsked,
    Late(Duration),
    Failed(String),
}

impl std::fmt::Display for Unanswered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotAsked => f.write_str("is asked over HTTPS only"),
            Self::Late(after) => {
                write!(f, "took longer than {} s and was not waited for", after.as_secs_f64())
            }
            Self::Failed(why) => f.write_str(why),
        }
    }
}

impl HttpHook {
    /// The body of the answer.
    pub(super) async fn post(
        &self,
        payload: String,
        timeout: Duration,
        environment: &HookEnvironment,
    ) -> Result<String, Unanswered> {
        if !self.is_permitted(environment) {
            return Err(Unanswered::NotAsked);
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
                request = request.header(name, self.expand(value, environment));
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
        match tokio::time::timeout(timeout, ask).await {
            Ok(answer) => answer.map_err(Unanswered::Failed),
            Err(_) => Err(Unanswered::Late(timeout)),
        }
    }

    fn is_permitted(&self, environment: &HookEnvironment) -> bool {
        let Ok(url) = reqwest::Url::parse(&self.url) else { return false };
        let local = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
        match url.scheme() {
            "https" => true,
            "http" => local && environment.allow_localhost,
            _ => false,
        }
    }

    /// A header with the variables that it may use. Others are empty.
    fn expand(&self, value: &str, environment: &HookEnvironment) -> String {
        let mut out = String::with_capacity(value.len());
        let mut rest = value;
        while let Some((before, after)) = rest.split_once('$') {
            out.push_str(before);
            let (name, behind) = match after.strip_prefix('{').and_then(|braced| braced.split_once('}')) {
                Some(parts) => parts,
                None => after.split_at(after.find(|c: char| !is_of_name(c)).unwrap_or(after.len())),
            };
            if name.is_empty() {
                out.push('$');
            } else if self.allowed_env_vars.iter().any(|allowed| allowed == name) {
                out.push_str(environment.env.get(name).map(String::as_str).unwrap_or_default());
            }
            rest = behind;
        }
        out.push_str(rest);
        out
    }
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

fn reason(error: &reqwest::Error) -> String {
    match error {
        error if error.is_connect() => "cannot be reached".to_owned(),
        error if error.is_timeout() => "did not answer in time".to_owned(),
        _ => "broke off its answer".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_have_the_variables_that_are_allowed_and_no_others() {
        let hook = HttpHook {
            url: String::new(),
            headers: BTreeMap::new(),
            allowed_env_vars: vec!["KEY".to_owned(), "ABSENT".to_owned()],
        };
        let env = [("KEY", "k"), ("SECRET", "s")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        let environment = HookEnvironment { shell: "".into(), env: env.into(), allow_localhost: false };
        let check = |value: &str, expected: &str| assert_eq!(hook.expand(value, &environment), expected);
        check("Bearer $KEY", "Bearer k");
        check("${KEY}-${SECRET}-$SECRET.", "k--.");
        check("$ABSENT 5$ ${", " 5$ ${");
        check("$KEYS", "");
    }
}
