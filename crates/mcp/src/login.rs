//! Logins of people at remote servers: OAuth with a browser, once, and a token on disk that is renewed from then on.

use std::fs::{File, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use ring::digest::{Context, SHA256};
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationRequest, AuthorizationSession, CredentialStore,
    StoredCredentials,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Timeout of a login in the browser.
const LOGIN_PATIENCE: Duration = Duration::from_secs(600);
/// Timeout of discovery and of refreshing a token.
const EXCHANGE_PATIENCE: Duration = Duration::from_secs(30);
/// Polling interval of a waiter for the lock on a token.
const TURN_STEP: Duration = Duration::from_millis(20);
/// The longest request of a browser that comes back.
const MAX_CALLBACK: usize = 16 << 10;
/// Connections of browsers that may be open at once. They open some before they know what for.
const MAX_BROWSERS: usize = 16;
/// Timeout of a request from the browser.
const BROWSER_PATIENCE: Duration = Duration::from_secs(120);

/// The login at one server, kept in a file of its own.
#[derive(Debug, Clone)]
pub(crate) struct StoredLogins {
    url: String,
    client_id: Option<String>,
    file: TokenFile,
}

#[derive(Debug, Clone)]
struct TokenFile(PathBuf);

/// A login that a person has to complete, and the wait for it.
pub(crate) struct PendingLogin {
    pub(crate) authorization_url: String,
    session: AuthorizationSession,
    listener: TcpListener,
}

impl StoredLogins {
    pub(crate) fn new(dir: PathBuf, url: &str, client_id: Option<String>) -> Self {
        let file = TokenFile(dir.join(format!("{}.json", fingerprint(url, client_id.as_deref()))));
        Self { url: url.to_owned(), client_id, file }
    }

    /// The token of an earlier login, renewed if it is due.
    pub(crate) async fn token(&self) -> Option<String> {
        if !self.file.0.is_file() {
            return None;
        }
        let found = async {
            let _turn = self.file.turn().await;
            self.restored().await?.get_access_token().await
        };
        tokio::time::timeout(EXCHANGE_PATIENCE, found).await.ok()?.ok()
    }

    /// Another token than the one that was refused.
    pub(crate) async fn refreshed(&self, refused: &str) -> Option<String> {
        if !self.file.0.is_file() {
            return None;
        }
        let found = async {
            let _turn = self.file.turn().await;
            // Another process may have renewed it meanwhile.
            if let Some(token) = self.file.access_token().filter(|token| token != refused) {
                return Ok(token);
            }
            let manager = self.restored().await?;
            manager.refresh_token().await?;
            manager.get_access_token().await
        };
        tokio::time::timeout(EXCHANGE_PATIENCE, found).await.ok()?.ok()
    }

    pub(crate) fn forget(&self) {
        // A missing file need not be removed.
        let _ = std::fs::remove_file(&self.file.0);
    }

    async fn manager(&self) -> Result<AuthorizationManager, AuthError> {
        let mut manager = AuthorizationManager::new_allowing_private_addresses(self.url.as_str()).await?;
        manager.set_credential_store(self.file.clone());
        Ok(manager)
    }

    async fn restored(&self) -> Result<AuthorizationManager, AuthError> {
        let mut manager = self.manager().await?;
        if manager.initialize_from_store().await? {
            Ok(manager)
        } else {
            Err(AuthError::AuthorizationRequired)
        }
    }

    /// Finds out how the login works, registers with the server if it does not know us, and waits for a browser.
    pub(crate) async fn start(&self, client_name: &str) -> Result<PendingLogin, String> {
        let listener = TcpListener::bind("127.0.0.1:0")
            .await
            .map_err(|error| format!("cannot listen for the browser: {error}"))?;
        let port = listener.local_addr().map_err(|error| error.to_string())?.port();
        let prepared = async {
            let mut manager = self.manager().await?;
            let metadata = manager.resolve_metadata().await?.metadata;
            manager.set_metadata(metadata);
            let mut request = AuthorizationRequest::new(format!("http://127.0.0.1:{port}/callback"))
                .with_client_name(client_name);
            if let Some(id) = &self.client_id {
                request = request.with_preregistered_client(id);
            }
            AuthorizationSession::new(manager, request).await.map_err(|(_, error)| error)
        };
        let session = tokio::time::timeout(EXCHANGE_PATIENCE, prepared)
            .await
            .map_err(|_| "the server does not say how to log in".to_owned())?
            .map_err(|error| error.to_string())?;
        Ok(PendingLogin { authorization_url: session.get_authorization_url().to_owned(), session, listener })
    }
}

impl PendingLogin {
    /// Waits for the browser to come back with the code, and exchanges it for a token.
    pub(crate) async fn finish(self, goodbye: &str) -> Result<(), String> {
        let PendingLogin { session, listener, .. } = self;
        let wait = async {
            let mut browsers = FuturesUnordered::new();
            loop {
                let target = tokio::select! {
                    accepted = listener.accept(), if browsers.len() < MAX_BROWSERS => {
                        let (browser, _) = accepted.map_err(|error| error.to_string())?;
                        browsers.push(serve(browser, goodbye));
                        continue;
                    }
                    Some(target) = browsers.next() => target,
                };
                // Browsers also ask for icons; only the callback ends the wait.
                if let Some(target) = target.filter(|target| target.starts_with("/callback")) {
                    return session
                        .handle_callback_url(&format!("http://127.0.0.1{target}"))
                        .await
                        .map(drop)
                        .map_err(|error| error.to_string());
                }
            }
        };
        tokio::time::timeout(LOGIN_PATIENCE, wait).await.map_err(|_| "nobody logged in".to_owned())?
    }
}

/// Answers one connection of a browser. What it asked for, if it asked for anything.
async fn serve(mut browser: TcpStream, goodbye: &str) -> Option<String> {
    let asked = async {
        let mut request = Vec::new();
        let mut buffer = [0; 2048];
        while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MAX_CALLBACK {
            match browser.read(&mut buffer).await {
                Ok(length @ 1..) => request.extend_from_slice(&buffer[..length]),
                _ => break,
            }
        }
        let request = String::from_utf8_lossy(&request);
        let target = request.split_whitespace().nth(1).unwrap_or_default().to_owned();
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{goodbye}",
            goodbye.len()
        );
        let _ = browser.write_all(answer.as_bytes()).await;
        target
    };
    tokio::time::timeout(BROWSER_PATIENCE, asked).await.ok()
}

/// The name of a login's file, the same in every version of this program.
fn fingerprint(url: &str, client_id: Option<&str>) -> String {
    let mut digest = Context::new(&SHA256);
    digest.update(url.as_bytes());
    // No address has a line break in it.
    digest.update(b"\n");
    digest.update(client_id.unwrap_or_default().as_bytes());
    digest.finish().as_ref()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The right to renew a login, until it is dropped.
struct RenewalLock(File);

impl Drop for RenewalLock {
    fn drop(&mut self) {
        // Closing would do, were it not for a child that is just being started and still shares the file.
        let _ = self.0.unlock();
    }
}

impl TokenFile {
    /// Waits for its turn among all sessions that share the login, of this process and of others: a server may take a
    /// refresh token only once. `None` where files cannot be locked.
    async fn turn(&self) -> Option<RenewalLock> {
        let mut options = File::options();
        let file = options.create(true).truncate(false).write(true).mode(0o600);
        let file = file.open(self.0.with_extension("lock")).ok()?;
        loop {
            match file.try_lock() {
                Ok(()) => return Some(RenewalLock(file)),
                Err(TryLockError::WouldBlock) => tokio::time::sleep(TURN_STEP).await,
                Err(TryLockError::Error(_)) => return None,
            }
        }
    }

    /// The token as it is stored, good or not.
    fn access_token(&self) -> Option<String> {
        let stored: serde_json::Value = serde_json::from_slice(&std::fs::read(&self.0).ok()?).ok()?;
        stored["token_response"]["access_token"].as_str().map(str::to_owned)
    }
}

#[async_trait]
impl CredentialStore for TokenFile {
    async fn load(&self) -> Result<Option<StoredCredentials>, AuthError> {
        match std::fs::read(&self.0) {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(AuthError::CredentialStoreError(error.to_string())),
        }
    }

    async fn save(&self, credentials: StoredCredentials) -> Result<(), AuthError> {
        let failed = |error: String| AuthError::CredentialStoreError(error);
        let text = serde_json::to_vec(&credentials).map_err(|error| failed(error.to_string()))?;
        hangar_disk::keep(&self.0, &text).map_err(|error| failed(error.to_string()))
    }

    async fn clear(&self) -> Result<(), AuthError> {
        match std::fs::remove_file(&self.0) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(AuthError::CredentialStoreError(error.to_string()))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_found_again_by_every_version_and_belongs_to_its_server_and_client() {
        assert_eq!(fingerprint("https://a.example/mcp", None), "d20970f618146c9ed9b805ec60fadc62");
        assert_ne!(
            fingerprint("https://a.example/mcp", Some("c")),
            fingerprint("https://a.example/mcp", None)
        );
        assert_ne!(
            fingerprint("https://a.example/mc", Some("p")),
            fingerprint("https://a.example/mcp", None)
        );
    }
}
