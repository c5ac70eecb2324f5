//! Who may talk to the server: the first request of a connection, where a token is set, is `connect` with that token.

use hangar_protocol::rpc::{ErrorObject, codes};
use serde::Deserialize;

/// The version of the protocol that every current SDK speaks.
pub(crate) const PROTOCOL_VERSION: u32 = 3;

/// A shared secret between the server and its clients.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// Takes the same time wherever the first difference is.
    fn is(&self, given: &str) -> bool {
        let (secret, given) = (self.0.as_bytes(), given.as_bytes());
        let differences = secret.iter().zip(given).fold(0, |found, (a, b)| found | (a ^ b));
        std::hint::black_box(differences) == 0 && secret.len() == given.len()
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(..)")
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConnectParams {
    #[serde(default)]
    token: Option<String>,
    /// What the client understands when it is told of tasks.
    #[serde(default)]
    pub(crate) supported_task_kinds: Option<Vec<String>>,
}

/// Whether a connection has shown its token.
#[derive(Debug)]
pub(crate) enum Gate {
    Open,
    Locked,
}

impl Gate {
    pub(crate) fn new(token: Option<&Token>) -> Self {
        if token.is_some() { Gate::Locked } else { Gate::Open }
    }

    /// Whether any other method may be called yet.
    pub(crate) fn admits(&self) -> Result<(), ErrorObject> {
        match self {
            Gate::Open => Ok(()),
            Gate::Locked => Err(refusal(codes::AUTHENTICATION_REQUIRED, "AUTHENTICATION_REQUIRED")),
        }
    }

    /// Takes what `connect` was called with.
    pub(crate) fn connect(
        &mut self,
        server: Option<&Token>,
        params: &ConnectParams,
    ) -> Result<(), ErrorObject> {
        match (server, &params.token) {
            (None, None) => Ok(()),
            (None, Some(_)) => {
                Err(refusal(codes::AUTHENTICATION_NOT_CONFIGURED, "AUTHENTICATION_NOT_CONFIGURED"))
            }
            (Some(token), Some(given)) if token.is(given) => {
                *self = Gate::Open;
                Ok(())
            }
            (Some(_), _) => Err(refusal(codes::AUTHENTICATION_FAILED, "AUTHENTICATION_FAILED")),
        }
    }
}

fn refusal(code: i64, message: &str) -> ErrorObject {
    ErrorObject { code, message: message.to_owned(), data: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(server: Option<&str>, given: Option<&str>, code: Option<i64>) {
        let server = server.map(Token::new);
        let mut gate = Gate::new(server.as_ref());
        let params = ConnectParams { token: given.map(str::to_owned), ..ConnectParams::default() };
        let result = gate.connect(server.as_ref(), &params);
        assert_eq!(result.as_ref().err().map(|error| error.code), code);
        assert_eq!(gate.admits().is_ok(), result.is_ok() || server.is_none());
    }

    #[test]
    fn a_connection_is_admitted_by_the_token_and_nothing_else() {
        check(None, None, None);
        check(None, Some("x"), Some(-32003));
        check(Some("secret"), Some("secret"), None);
        check(Some("secret"), Some("secreT"), Some(-32002));
        check(Some("secret"), Some("secret "), Some(-32002));
        check(Some("secret"), Some("secre"), Some(-32002));
        check(Some("secret"), Some(""), Some(-32002));
        check(Some("secret"), None, Some(-32002));
    }

    #[test]
    fn before_the_token_nothing_else_is_answered() {
        let error = Gate::new(Some(&Token::new("secret"))).admits().unwrap_err();
        assert_eq!((error.code, error.message.as_str()), (-32001, "AUTHENTICATION_REQUIRED"));
    }
}
