//! Methods of the server: one table, one file per namespace.

mod absent;
mod account;
mod agents;
pub(crate) mod canvas;
mod checkpoints;
mod client_metadata;
mod commands;
mod context;
mod debug;
mod discovery;
mod event_log;
mod execute;
mod extensions;
mod features;
mod history;
mod inference;
mod log;
mod mcp;
mod mcp_config;
mod messages;
mod metadata;
mod mode;
mod model;
mod options;
mod permissions;
mod persisted;
mod plugins;
mod policy;
mod provider;
mod queue;
mod queue_edits;
mod remote;
mod rewind;
mod rules;
mod schedule;
mod server;
mod session;
mod session_fs;
mod sessions;
mod shell;
mod skills;
mod store;
mod tasks;
mod todos;
mod tools;
mod ui;
mod workspace;
mod workspace_facts;
mod workspace_files;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use hangar_protocol::rpc::{self, ErrorObject, codes};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};

pub(crate) use self::commands::{CommandEnd, carry_out as carry_out_command};
pub(crate) use self::execute::permit;
pub(crate) use self::model::AutoTier;
pub(crate) use self::permissions::answer_outside;
pub(crate) use self::plugins::ClientPlugins;
pub(crate) use self::session::take as take_prompts;
use crate::client::Client;
use crate::hub::{ServedSession, ServerHub};
use crate::opener::OpenError;

/// One method of the table.
pub(crate) struct Method {
    pub(crate) name: &'static str,
    pub(crate) run: fn(Call) -> BoxFuture<'static, Result<Reply, Failure>>,
}

const NAMESPACES: &[&[Method]] = &[
    server::METHODS,
    session::METHODS,
    session_fs::METHODS,
    sessions::METHODS,
    history::METHODS,
    rewind::METHODS,
    checkpoints::METHODS,
    tools::METHODS,
    execute::METHODS,
    extensions::METHODS,
    agents::METHODS,
    tasks::METHODS,
    permissions::METHODS,
    rules::METHODS,
    mode::METHODS,
    metadata::METHODS,
    model::METHODS,
    options::METHODS,
    event_log::METHODS,
    queue::METHODS,
    queue_edits::METHODS,
    messages::METHODS,
    commands::METHODS,
    skills::METHODS,
    log::METHODS,
    mcp::METHODS,
    mcp_config::METHODS,
    workspace::METHODS,
    workspace_facts::METHODS,
    workspace_files::METHODS,
    client_metadata::METHODS,
    persisted::METHODS,
    plugins::METHODS,
    policy::METHODS,
    inference::METHODS,
    absent::METHODS,
    canvas::METHODS,
    remote::METHODS,
    account::METHODS,
    context::METHODS,
    debug::METHODS,
    discovery::METHODS,
    features::METHODS,
    provider::METHODS,
    schedule::METHODS,
    shell::METHODS,
    store::METHODS,
    todos::METHODS,
    ui::METHODS,
];

/// Methods that write what later sessions of the user are started with: MCP servers, which are programs, folders whose
/// programs may be started, approvals, settings and logins. What a client starts otherwise ends with its session.
const NEED_TRUST: &[&str] = &[
    "account.login",
    "account.logout",
    "extensions.disable",
    "extensions.enable",
    "mcp.config.add",
    "mcp.config.disable",
    "mcp.config.enable",
    "mcp.config.remove",
    "mcp.config.update",
    "plugins.builtin.set",
    "plugins.disable",
    "plugins.enable",
    "plugins.install",
    "plugins.marketplaces.add",
    "plugins.marketplaces.refresh",
    "plugins.marketplaces.remove",
    "plugins.uninstall",
    "plugins.update",
    "plugins.updateAll",
    "session.permissions.folderTrust.addTrusted",
    "session.permissions.locations.addToolApproval",
    "session.plugins.disable",
    "session.plugins.enable",
    "session.plugins.install",
    "session.plugins.marketplaces.add",
    "session.plugins.marketplaces.refresh",
    "session.plugins.marketplaces.remove",
    "session.plugins.uninstall",
    "session.plugins.update",
    "sessions.setAdditionalPlugins",
    "skills.config.setDisabledSkills",
    "skills.config.setSkillDisabled",
    "user.settings.set",
];

/// Whether a method is reserved for clients that started the server or have sent its token.
pub(crate) fn needs_trust(name: &str) -> bool {
    NEED_TRUST.contains(&name)
}

/// Error for a client that calls a reserved method without being trusted.
pub(crate) fn untrusted(name: &str) -> ErrorObject {
    let message = format!(
        "{name} changes what later sessions are started with, which is refused on a server without a token; start the \
         server without --no-token"
    );
    ErrorObject { code: codes::AUTHENTICATION_REQUIRED, message, data: None }
}

pub(crate) fn find(name: &str) -> Option<&'static Method> {
    NAMESPACES.iter().copied().flatten().find(|method| method.name == name)
}

/// Every method that is answered, for the documentation.
pub fn names() -> impl Iterator<Item = &'static str> {
    // The handshake is settled before the table is looked at.
    std::iter::once("connect").chain(NAMESPACES.iter().copied().flatten().map(|method| method.name))
}

/// A request on its way.
pub(crate) struct Call {
    pub(crate) hub: Arc<ServerHub>,
    pub(crate) client: Arc<Client>,
    pub(crate) params: Option<Box<RawValue>>,
}

impl Call {
    pub(crate) fn params<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let text = self.params.as_deref().map_or("{}", RawValue::get);
        rpc::read(text).map_err(|error| Failure::Params(at_its_place(text, &error)))
    }

    /// The live session that the request is about.
    pub(crate) fn live(&self) -> Result<Arc<ServedSession>, Failure> {
        let SessionParams { session_id } = self.params()?;
        self.hub.live(&session_id)
    }
}

/// Describes an error in parameters, with the path to the parameter.
fn at_its_place(text: &str, error: &serde_json::Error) -> String {
    match rpc::error_path(text, error) {
        Some(place) => format!("`{place}`: {error}"),
        None => error.to_string(),
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SessionParams {
    pub(crate) session_id: String,
}

/// The answer to a request, and what is to happen after it was sent.
pub(crate) struct Reply {
    pub(crate) result: Value,
    pub(crate) then: Option<BoxFuture<'static, ()>>,
}

impl Reply {
    pub(crate) fn of(result: Value) -> Result<Self, Failure> {
        Ok(Self { result, then: None })
    }

    pub(crate) fn null() -> Result<Self, Failure> {
        Self::of(Value::Null)
    }

    pub(crate) fn success() -> Result<Self, Failure> {
        Self::of(json!({ "success": true }))
    }

    pub(crate) fn did(success: bool) -> Result<Self, Failure> {
        Self::of(json!({ "success": success }))
    }

    /// Some requests answer with their failure rather than fail.
    pub(crate) fn unsuccessful(error: &str) -> Result<Self, Failure> {
        Self::of(json!({ "success": false, "error": error }))
    }
}

#[derive(Debug)]
pub(crate) enum Failure {
    /// The parameters are not what the method takes.
    Params(String),
    /// An error that clients tell apart by its code or its data, sent as it is.
    Told(Box<ErrorObject>),
    Failed(String),
}

impl Failure {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Failure::Failed(message.into())
    }

    /// Refusal of a request, with its reason as the message.
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self::coded(codes::INVALID_PARAMS, message, None)
    }

    pub(crate) fn coded(code: i64, message: impl Into<String>, data: Option<Value>) -> Self {
        Failure::Told(Box::new(ErrorObject { code, message: message.into(), data }))
    }

    pub(crate) fn message(&self) -> &str {
        match self {
            Failure::Params(message) | Failure::Failed(message) => message,
            Failure::Told(error) => &error.message,
        }
    }

    /// The reason, without the name of the request.
    pub(crate) fn into_message(self) -> String {
        match self {
            Failure::Params(message) | Failure::Failed(message) => message,
            Failure::Told(error) => error.message,
        }
    }

    pub(crate) fn into_error(self, method: &str) -> ErrorObject {
        let (code, message) = match self {
            Failure::Params(message) => (codes::INVALID_PARAMS, message),
            Failure::Failed(message) => (codes::INTERNAL_ERROR, message),
            Failure::Told(error) => return *error,
        };
        let message = format!("Request {method} failed with message: {message}");
        ErrorObject { code, message, data: None }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        Failure::Failed(error.0)
    }
}

impl Failure {
    /// The client that keeps the files does not do what it was asked.
    pub(crate) fn from_files(error: hangar_files::FileError) -> Self {
        Self::new(error.to_string())
    }
}

impl From<hangar_store::StoreError> for Failure {
    fn from(error: hangar_store::StoreError) -> Self {
        Failure::Failed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fmt::Write;

    use super::*;

    /// Every method that the SDKs know, whether it is answered here or not.
    const PROTOCOL: &str = include_str!("protocol.txt");

    /// Reasons of methods that are not done: see the file.
    const COVERAGE: &str = include_str!("coverage.txt");

    /// The reason of a method among those of a kind.
    fn reason(kind: &str, name: &str) -> Option<&'static str> {
        let lines = COVERAGE.lines().filter(|line| !line.starts_with('#'));
        let of_kind = lines.filter_map(|line| line.strip_prefix(kind)?.strip_prefix(' ')?.split_once(' '));
        let matches = |pattern: &str| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        };
        of_kind.into_iter().find(|(pattern, _)| matches(pattern)).map(|(_, reason)| reason)
    }

    #[test]
    fn the_documentation_lists_every_method_with_its_state() {
        let answered: BTreeSet<&str> = names().collect();
        let known: BTreeSet<&str> = PROTOCOL.lines().collect();
        let all: BTreeSet<&str> = known.union(&answered).copied().collect();
        let mut table = String::from(
            "# Methods of the SDK protocol\n\nGenerated by the tests of `hangar-server` (`UPDATE_EXPECT=1 cargo test -p \
             hangar-server`). *done*: it does what it says. *no*: it is answered, and the answer is an honest no. *not asked \
             for* and *missing*: it answers -32601 `Unhandled method NAME`.\n\n",
        );
        let _ = writeln!(table, "{} of {} methods are answered.\n", answered.len(), all.len());
        table.push_str("| method | state | why |\n|---|---|---|\n");
        for name in all {
            let (state, why) = match (answered.contains(name), reason("no", name)) {
                (true, None) => ("done", ""),
                (true, Some(why)) => ("no", why),
                (false, _) => {
                    let missing = reason("missing", name).map(|why| ("missing", why));
                    let absent = || reason("absent", name).map(|why| ("not asked for", why));
                    let state = missing.or_else(absent);
                    state.unwrap_or_else(|| panic!("{name} is absent without a reason in coverage.txt"))
                }
            };
            let _ = writeln!(table, "| `{name}` | {state} | {why} |");
        }
        expect_test::expect_file!["../../../../docs/sdk-methods.md"].assert_eq(&table);
    }

    #[test]
    fn an_error_says_which_parameter_is_wrong() {
        fn check<T: DeserializeOwned>(text: &str, expected: &str) {
            let error = rpc::read::<T>(text).err().unwrap();
            assert_eq!(at_its_place(text, &error), expected);
        }
        check::<SessionParams>(
            r#"{"sessionId":7}"#,
            "`sessionId`: invalid type: integer `7`, expected a string at line 1 column 14",
        );
        check::<SessionParams>("{}", "missing field `sessionId` at line 1 column 2");
        let spec = r#"{"tools":[{"name":"a"},{"name":[]}]}"#;
        let wrong = "`tools[1].name`: invalid type: sequence, expected a string at line 1 column 31";
        check::<hangar_spec::SessionSpec>(spec, wrong);
    }

    #[test]
    fn methods_that_need_trust_are_in_the_table() {
        let unknown: Vec<&&str> = NEED_TRUST.iter().filter(|name| find(name).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn no_method_is_in_the_table_twice() {
        let all: Vec<&str> = names().collect();
        let distinct: BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(all.len(), distinct.len());
    }
}
