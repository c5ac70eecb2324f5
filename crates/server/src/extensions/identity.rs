//! Identity of an extension's connection, and the requests that it may make.

use hangar_protocol::rpc::{ErrorObject, codes};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

use crate::methods::needs_trust;

/// The extension that a client is.
#[derive(Debug)]
pub(crate) struct ExtensionIdentity {
    /// The session that it belongs to.
    pub(crate) session_id: String,
    pub(crate) id: String,
    pub(crate) name: String,
    /// Number of its run, since it may have been started before.
    pub(crate) run: u64,
    /// Cancelled when it asks to join.
    pub(crate) arrived: CancellationToken,
}

/// Methods without a session that extensions may call. They only read.
const GENERAL: &[&str] =
    &["ping", "models.list", "tools.list", "auth.getStatus", "commands.list", "hangar.features.list"];

/// Methods of a session that decide what is permitted, whether it exists, or what its later processes do. They are for people and hosts.
const REFUSED: &[&str] = &[
    "session.create",
    "session.delete",
    "session.shutdown",
    "session.suspend",
    "session.options.update",
    "session.provider.add",
    "session.provider.getEndpoint",
    "session.permissions.configure",
    "session.permissions.folderTrust.addTrusted",
    "session.permissions.locations.addToolApproval",
    "session.permissions.locations.apply",
    "session.permissions.modifyRules",
    "session.permissions.paths.add",
    "session.permissions.paths.updatePrimary",
    "session.permissions.resetSessionApprovals",
    "session.permissions.setApproveAll",
    "session.permissions.setMode",
    "session.permissions.setRequired",
    "session.permissions.urls.setUnrestrictedMode",
    "session.schedule.add",
];

/// Answer to a permission question. Only extensions that a person let answer them may send it.
const ANSWER: &str = "session.permissions.handlePendingPermissionRequest";

impl ExtensionIdentity {
    /// Checks a request of the extension. It works with its own session alone. `answers` says whether it was admitted as one that
    /// answers permission questions.
    pub(crate) fn may_call(
        &self,
        method: &str,
        params: Option<&RawValue>,
        answers: bool,
    ) -> Result<(), ErrorObject> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct OfSession {
            session_id: String,
        }
        let refused =
            |message: String| Err(ErrorObject { code: codes::INVALID_REQUEST, message, data: None });
        if GENERAL.contains(&method) {
            return Ok(());
        }
        let is_refused = REFUSED.contains(&method) || needs_trust(method) || (method == ANSWER && !answers);
        if !method.starts_with("session.") || is_refused {
            return refused(format!("{method} is not for extensions"));
        }
        let own = params
            .and_then(|params| serde_json::from_str::<OfSession>(params.get()).ok())
            .is_some_and(|params| params.session_id == self.session_id);
        if own { Ok(()) } else { refused(format!("{method}: an extension works with its own session alone")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(method: &str, params: &str, answers: bool, allowed: bool) {
        let identity = ExtensionIdentity {
            session_id: "s".to_owned(),
            id: "user:x".to_owned(),
            name: "x".to_owned(),
            run: 1,
            arrived: CancellationToken::new(),
        };
        let params: Box<RawValue> = serde_json::from_str(params).unwrap();
        assert_eq!(identity.may_call(method, Some(&params), answers).is_ok(), allowed, "{method} {params}");
    }

    #[test]
    fn an_extension_works_with_its_own_session_and_permits_nothing() {
        check("session.send", r#"{"sessionId":"s","prompt":"x"}"#, false, true);
        check("session.send", r#"{"sessionId":"other","prompt":"x"}"#, false, false);
        check("session.send", "{}", false, false);
        check("ping", "{}", false, true);
        check("mcp.config.add", "{}", false, false);
        check("runtime.shutdown", "{}", false, false);
        check("session.permissions.setApproveAll", r#"{"sessionId":"s"}"#, true, false);
        check("session.plugins.install", r#"{"sessionId":"s","source":"x"}"#, true, false);
        check("session.schedule.add", r#"{"sessionId":"s","interval":"5s","prompt":"x"}"#, true, false);
        check("session.schedule.list", r#"{"sessionId":"s"}"#, false, true);
        check("session.plugins.marketplaces.list", r#"{"sessionId":"s"}"#, false, true);
        check(ANSWER, r#"{"sessionId":"s"}"#, false, false);
        check(ANSWER, r#"{"sessionId":"s"}"#, true, true);
    }

    /// A name that no longer exists would refuse nothing.
    #[test]
    fn the_methods_that_are_named_exist() {
        for name in GENERAL.iter().chain(REFUSED).chain([&ANSWER]) {
            assert!(crate::methods::names().any(|known| known == *name), "{name}");
        }
    }
}
