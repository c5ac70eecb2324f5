//! Token of a remote server: from the host of the session if it provides tokens, from an earlier login otherwise.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hangar_protocol::data::{
    McpOauthChallenge, McpOauthCompleted, McpOauthReason, McpOauthRequired, McpOauthStaticClient,
};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::config::OAuthClient;
use crate::host::HostShared;
use crate::login::StoredLogins;
use crate::pending::Interest;

/// Timeout of fetching the metadata of a protected resource.
const METADATA_PATIENCE: Duration = Duration::from_secs(10);
/// The largest description that is passed on.
const MAX_METADATA: usize = 64 << 10;

/// A token that a host gave.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(pub String);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

/// Reason for which a server rejected a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rejection {
    kind: RejectionKind,
    challenge: McpOauthChallenge,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RejectionKind {
    /// 401: no token, or an expired one.
    Unauthorized,
    /// 403: a good token that may not do this.
    Forbidden,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server requires a login")]
pub(crate) struct NeedsAuth;

impl Rejection {
    pub(crate) fn unauthorized(header: &str) -> Self {
        Self { kind: RejectionKind::Unauthorized, challenge: parse_challenge(header) }
    }

    pub(crate) fn forbidden(header: &str) -> Self {
        Self { kind: RejectionKind::Forbidden, challenge: parse_challenge(header) }
    }
}

/// Reads `Bearer a="x", b=y`.
fn parse_challenge(header: &str) -> McpOauthChallenge {
    let mut challenge = McpOauthChallenge::default();
    let mut rest = header.trim_start().split_once(' ').map_or("", |(_, parameters)| parameters);
    while let Some((name, after)) = rest.split_once('=') {
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').unwrap_or((after, "")),
        };
        let value = Some(value.trim().to_owned());
        match name.trim().trim_start_matches(',').trim() {
            "resource_metadata" => challenge.resource_metadata_url = value,
            "scope" => challenge.scope = value,
            "error" => challenge.error = value,
            _ => {}
        }
        rest = next;
    }
    challenge
}

/// Token of one server. If several requests are refused at once, one of them gets the next token for all.
pub(crate) struct Authority {
    server: String,
    url: String,
    client: OAuthClient,
    common: Arc<HostShared>,
    logins: StoredLogins,
    current: Mutex<Current>,
    /// The description of the resource, as it was last seen.
    metadata: parking_lot::Mutex<Option<String>>,
    refused: AtomicBool,
    /// The wait for a person who is to log in.
    login: parking_lot::Mutex<Option<JoinHandle<()>>>,
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.forget_login();
    }
}

#[derive(Default)]
struct Current {
    token: Option<String>,
    /// Whether the login on disk was loaded.
    looked: bool,
}

impl Authority {
    pub(crate) fn new(
        server: &str,
        url: &str,
        client: OAuthClient,
        common: Arc<HostShared>,
        tokens_dir: PathBuf,
    ) -> Self {
        Self {
            server: server.to_owned(),
            url: url.to_owned(),
            logins: StoredLogins::new(tokens_dir, url, client.id.clone()),
            client,
            common,
            current: Mutex::default(),
            metadata: parking_lot::Mutex::default(),
            refused: AtomicBool::new(false),
            login: parking_lot::Mutex::default(),
        }
    }

    pub(crate) fn logins(&self) -> &StoredLogins {
        &self.logins
    }

    /// Stores a pending login. There is one at a time: a new login replaces it.
    pub(crate) fn await_login(&self, wait: JoinHandle<()>) {
        let before = self.login.lock().replace(wait);
        before.inspect(JoinHandle::abort);
    }

    pub(crate) fn forget_login(&self) {
        let wait = self.login.lock().take();
        wait.inspect(JoinHandle::abort);
    }

    /// Begins a connection attempt: earlier rejections are forgotten.
    pub(crate) fn ask_anew(&self) {
        self.refused.store(false, Ordering::Relaxed);
    }

    /// Whether the last request for a token failed.
    pub(crate) fn is_refused(&self) -> bool {
        self.refused.load(Ordering::Relaxed)
    }

    /// Forgets the token, so that the next request loads it again.
    pub(crate) async fn reset(&self) {
        *self.current.lock().await = Current::default();
        self.refused.store(false, Ordering::Relaxed);
    }

    /// The token of the moment, if there is one.
    pub(crate) async fn bearer(&self) -> Option<String> {
        let mut current = self.current.lock().await;
        if !current.looked && current.token.is_none() {
            current.looked = true;
            if !self.common.pending.is_answered(Interest::OAuth) {
                current.token = self.logins.token().await;
            }
        }
        current.token.clone()
    }

    /// Gets another token after `rejected` was refused.
    pub(crate) async fn renew(&self, rejected: Option<&str>, rejection: &Rejection) -> Result<(), NeedsAuth> {
        let mut current = self.current.lock().await;
        if current.token.as_deref() != rejected {
            // Another task got one meanwhile.
            return Ok(());
        }
        let next = if self.common.pending.is_answered(Interest::OAuth) {
            self.ask_host(rejected.is_some(), rejection).await
        } else {
            match (rejection.kind, rejected) {
                (RejectionKind::Unauthorized, Some(rejected)) => self.logins.refreshed(rejected).await,
                // Another session may have logged in since this one looked.
                (RejectionKind::Unauthorized, None) => self.logins.token().await,
                (RejectionKind::Forbidden, _) => None,
            }
        };
        self.refused.store(next.is_none(), Ordering::Relaxed);
        current.token = next;
        if current.token.is_some() { Ok(()) } else { Err(NeedsAuth) }
    }

    async fn ask_host(&self, had_one: bool, rejection: &Rejection) -> Option<String> {
        let reason = match (rejection.kind, had_one) {
            (RejectionKind::Forbidden, _) => McpOauthReason::Upscope,
            (RejectionKind::Unauthorized, false) => McpOauthReason::Initial,
            (RejectionKind::Unauthorized, true) => McpOauthReason::Refresh,
        };
        let token = self.ask_for(reason, rejection).await;
        if token.is_none() && reason == McpOauthReason::Refresh {
            // A token that cannot be renewed may be requested again.
            return self.ask_for(McpOauthReason::Reauth, rejection).await;
        }
        token
    }

    async fn ask_for(&self, reason: McpOauthReason, rejection: &Rejection) -> Option<String> {
        let request_id = self.common.fresh_id();
        let question = self.common.pending.tokens.open(&request_id);
        let challenge = &rejection.challenge;
        let resource_metadata = self.metadata(challenge.resource_metadata_url.as_deref()).await;
        let required = McpOauthRequired {
            request_id: request_id.clone(),
            server_name: self.server.clone(),
            server_url: self.url.clone(),
            reason,
            static_client_config: self.client.id.clone().map(|client_id| McpOauthStaticClient {
                client_id,
                public_client: self.client.public,
                grant_type: self.client.machine.then(|| "client_credentials".to_owned()),
            }),
            www_authenticate_params: Some(challenge.clone()),
            resource_metadata,
        };
        self.common.tell(required).await;
        let token = question.answer().await.flatten();
        let outcome = if token.is_some() { "token" } else { "cancelled" }.to_owned();
        self.common.tell(McpOauthCompleted { request_id, outcome }).await;
        token.map(|Token(token)| token)
    }

    /// The description of the protected resource, as the server writes it.
    async fn metadata(&self, url: Option<&str>) -> Option<String> {
        let remembered = || self.metadata.lock().clone();
        let Some(url) = url else { return remembered() };
        let fetched = async {
            let response = self.common.http().ok()?.get(url).send().await.ok()?;
            let mut response = response.error_for_status().ok()?;
            let mut text = Vec::new();
            while let Some(piece) = response.chunk().await.ok()? {
                text.extend_from_slice(&piece);
                if text.len() > MAX_METADATA {
                    return None;
                }
            }
            String::from_utf8(text).ok()
        };
        let text = tokio::time::timeout(METADATA_PATIENCE, fetched).await.ok().flatten();
        if text.is_some() {
            self.metadata.lock().clone_from(&text);
        }
        text.or_else(remembered)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &str, url: Option<&str>, scope: Option<&str>, error: Option<&str>) {
        let owned = |text: Option<&str>| text.map(str::to_owned);
        let expected =
            McpOauthChallenge { resource_metadata_url: owned(url), scope: owned(scope), error: owned(error) };
        assert_eq!(parse_challenge(header), expected);
    }

    #[test]
    fn challenges_are_read() {
        check(
            r#"Bearer resource_metadata="http://h/.well-known/x", scope="a b", error="invalid_token""#,
            Some("http://h/.well-known/x"),
            Some("a b"),
            Some("invalid_token"),
        );
        check("Bearer error=invalid_token, scope=x", None, Some("x"), Some("invalid_token"));
        check(r#"Bearer realm="r""#, None, None, None);
        check("Bearer", None, None, None);
        check("", None, None, None);
    }
}
