//! Authentication of connections. Over TCP a connection sends the server's token in `connect` first. Until then it is
//! limited to a few small frames and a short time.

use std::sync::atomic::{AtomicUsize, Ordering};

use hangar_protocol::rpc::{ErrorObject, MAX_BODY, codes};
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

/// The version of the protocol that every current SDK speaks.
pub(crate) const PROTOCOL_VERSION: u32 = 3;

const REQUIRED: &str = "AUTHENTICATION_REQUIRED: call `connect` with the connection token first";
const FAILED: &str = "AUTHENTICATION_FAILED: the connection token is missing or wrong; it is the one of \
                      COPILOT_CONNECTION_TOKEN, or the one that the server printed beside its port";
const NOT_CONFIGURED: &str = "AUTHENTICATION_NOT_CONFIGURED: this server has no connection token";

/// Frames that a connection may send without being admitted. The next one is not read.
const MAX_ATTEMPTS: usize = 5;
/// Maximum size of a frame's body before authentication.
const MAX_BODY_BEFORE_TOKEN: usize = 64 << 10;

/// Authentication that the server requires.
#[derive(Debug, Clone)]
pub enum ServerAccess {
    /// None: the client is the parent process, on standard input and output.
    Owner,
    /// Clients must send this token.
    Token(ConnectionToken),
    /// Anyone who reaches the port. Such clients cannot change what later sessions start with.
    Anyone,
}

impl ServerAccess {
    /// Checks a request other than `connect`: admits its connection, or refuses it because `connect` is missing.
    pub(crate) fn request(&self, gate: &AdmissionState) -> Result<(), ErrorObject> {
        match self {
            ServerAccess::Token(_) if !gate.is_open() => {
                Err(refusal(codes::AUTHENTICATION_REQUIRED, REQUIRED))
            }
            ServerAccess::Owner | ServerAccess::Token(_) | ServerAccess::Anyone => Ok(()),
        }
    }

    /// Checks the token in the parameters of `connect`.
    pub(crate) fn connect(&self, params: &ConnectParams) -> Result<(), ErrorObject> {
        match (self, &params.token) {
            (ServerAccess::Owner | ServerAccess::Anyone, None) => Ok(()),
            (ServerAccess::Owner | ServerAccess::Anyone, Some(_)) => {
                Err(refusal(codes::AUTHENTICATION_NOT_CONFIGURED, NOT_CONFIGURED))
            }
            (ServerAccess::Token(token), Some(given)) if token.is(given) => Ok(()),
            (ServerAccess::Token(_), _) => Err(refusal(codes::AUTHENTICATION_FAILED, FAILED)),
        }
    }

    /// Whether clients may change settings that later sessions start with.
    pub(crate) fn is_trusted(&self) -> bool {
        match self {
            ServerAccess::Owner | ServerAccess::Token(_) => true,
            ServerAccess::Anyone => false,
        }
    }
}

/// A shared secret between the server and its clients.
#[derive(Clone)]
pub struct ConnectionToken(String);

impl ConnectionToken {
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Compares in a time that depends on nothing but the length of the input.
    pub fn is(&self, given: &str) -> bool {
        let (secret, given) = (self.0.as_bytes(), given.as_bytes());
        let differences =
            secret.iter().cycle().zip(given).fold(0, |found, (a, b)| std::hint::black_box(found | (a ^ b)));
        differences == 0 && secret.len() == given.len() && !secret.is_empty()
    }
}

impl std::fmt::Debug for ConnectionToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConnectParams {
    token: Option<String>,
    /// Kinds of tasks that the client supports in task events.
    pub(crate) supported_task_kinds: Option<Vec<String>>,
    /// Whether the client wants telemetry about its sessions.
    #[serde(rename = "enableGitHubTelemetryForwarding")]
    pub(crate) telemetry: Option<bool>,
}

/// Admission state of a connection, and its limits until it is admitted.
#[derive(Debug)]
pub(crate) struct AdmissionState {
    opened: CancellationToken,
    attempts: AtomicUsize,
    most: usize,
}

impl AdmissionState {
    pub(crate) fn new(access: &ServerAccess) -> Self {
        let most = match access {
            ServerAccess::Token(_) => MAX_BODY_BEFORE_TOKEN,
            ServerAccess::Owner | ServerAccess::Anyone => MAX_BODY,
        };
        Self { opened: CancellationToken::new(), attempts: AtomicUsize::new(0), most }
    }

    pub(crate) fn open(&self) {
        self.opened.cancel();
    }

    pub(crate) fn is_open(&self) -> bool {
        self.opened.is_cancelled()
    }

    /// Waits until the connection is admitted.
    pub(crate) async fn opened(&self) {
        self.opened.cancelled().await;
    }

    /// Maximum size of the next frame's body.
    pub(crate) fn max_body(&self) -> usize {
        if self.is_open() { MAX_BODY } else { self.most }
    }

    /// Counts a frame that was read. False if it was the last that is read, because none of them opened the gate.
    pub(crate) fn took_frame(&self) -> bool {
        self.is_open() || self.attempts.fetch_add(1, Ordering::Relaxed) + 1 < MAX_ATTEMPTS
    }
}

fn refusal(code: i64, message: &str) -> ErrorObject {
    ErrorObject { code, message: message.to_owned(), data: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(access: &ServerAccess, given: Option<&str>, code: Option<i64>) {
        let params = ConnectParams { token: given.map(str::to_owned), ..ConnectParams::default() };
        assert_eq!(access.connect(&params).err().map(|error| error.code), code);
    }

    #[test]
    fn a_connection_is_admitted_by_the_token_and_nothing_else() {
        for access in [ServerAccess::Owner, ServerAccess::Anyone] {
            check(&access, None, None);
            check(&access, Some("x"), Some(-32003));
        }
        let token = ServerAccess::Token(ConnectionToken::new("secret"));
        check(&token, Some("secret"), None);
        for wrong in ["secreT", "Secret", "secret ", "secre", "secretsecret", "s", ""] {
            check(&token, Some(wrong), Some(-32002));
        }
        check(&token, None, Some(-32002));
        check(&ServerAccess::Token(ConnectionToken::new("")), Some(""), Some(-32002));
    }

    #[test]
    fn before_the_token_nothing_else_is_answered() {
        let access = ServerAccess::Token(ConnectionToken::new("secret"));
        let gate = AdmissionState::new(&access);
        let error = access.request(&gate).unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (-32001, REQUIRED));
        gate.open();
        access.request(&gate).unwrap();
    }

    #[test]
    fn before_the_token_frames_are_few_and_small() {
        let gate = AdmissionState::new(&ServerAccess::Token(ConnectionToken::new("secret")));
        assert_eq!(gate.max_body(), MAX_BODY_BEFORE_TOKEN);
        let taken = (0..MAX_ATTEMPTS).take_while(|_| gate.took_frame()).count();
        assert_eq!(taken, MAX_ATTEMPTS - 1);
        gate.open();
        assert!(gate.took_frame());
        assert_eq!(gate.max_body(), MAX_BODY);
    }
}
