//! Joining of an extension: what it may bring is asked for first.

use hangar_agent::tool::ToolStatus;
use hangar_protocol::permission::PermissionRequest;
use hangar_spec::{ClientOptions, EntryOptions, SessionSpec};

use super::host::ExtensionSession;
use super::identity::ExtensionIdentity;
use crate::hub::{ServedSession, ServerHub};
use crate::methods::{Failure, permit};

/// Most variables that an extension may ask for.
const MAX_VARIABLES: usize = 64;

/// An extension that may join.
pub(crate) struct AdmittedExtension {
    /// The request, without anything that changes the session itself.
    pub(crate) spec: SessionSpec,
    /// Secret variables that it is given.
    pub(crate) variables: Vec<(String, String)>,
}

/// Asks for the permissions that an extension needs to join. An error is a sentence for its author.
pub(crate) async fn admit(
    hub: &ServerHub,
    live: &ServedSession,
    extension: &ExtensionIdentity,
    spec: SessionSpec,
) -> Result<AdmittedExtension, Failure> {
    refuse_clashes(live, extension, &spec).await?;
    let capabilities = capabilities(&spec.client);
    if !capabilities.is_empty() {
        let wanted = capabilities.join(", ");
        let request = PermissionRequest::ExtensionPermissionAccess {
            tool_call_id: None,
            extension_name: extension.id.clone(),
            capabilities,
        };
        ask(live, request, || format!("the extension {} was not allowed to {wanted}", extension.id)).await?;
    }
    let variables = grant(hub, live, extension, spec.client.wanted_variables.as_deref()).await?;
    let client = ClientOptions { extensions: None, extension_sdk: None, ..spec.client };
    let entry = EntryOptions { limits: None, continue_pending: None, ..spec.entry };
    Ok(AdmittedExtension { spec: SessionSpec { client, entry, ..SessionSpec::default() }, variables })
}

/// Parts of the request that take part in decisions, in words for people.
fn capabilities(client: &ClientOptions) -> Vec<String> {
    let skips = client.tools.iter().flatten().any(|tool| tool.skip_permission.unwrap_or(false));
    let asked = [
        (client.hooks.unwrap_or(false), "register hooks"),
        (client.permissions.unwrap_or(false), "handle permission requests"),
        (skips, "skip tool permission prompts"),
    ];
    asked.into_iter().filter(|(wanted, _)| *wanted).map(|(_, words)| words.to_owned()).collect()
}

/// Refuses tools whose names are taken.
async fn refuse_clashes(
    live: &ServedSession,
    extension: &ExtensionIdentity,
    spec: &SessionSpec,
) -> Result<(), Failure> {
    let tools = spec.client.tools.clone().unwrap_or_default();
    for member in live.audience.members().iter() {
        let is_itself = member.client.extension.as_ref().is_some_and(|known| known.id == extension.id);
        let taken = member.tools.iter().map(|tool| &tool.tool.spec().name);
        let clash = taken.into_iter().find(|name| tools.iter().any(|tool| tool.name == **name));
        if let Some(name) = clash.filter(|_| !is_itself) {
            let text = format!("External tool name clash: {name} already registered by another connection");
            return Err(Failure::new(text));
        }
    }
    let replaced = live
        .ask(move |task| {
            let builtin = |name: &str| task.builtin().iter().any(|tool| tool.spec().name == name);
            let silently =
                |tool: &&hangar_spec::ToolDeclaration| !tool.overrides_built_in_tool.unwrap_or(false);
            tools.iter().filter(silently).find(|tool| builtin(&tool.name)).map(|tool| tool.name.clone())
        })
        .await?;
    match replaced {
        Some(name) => Err(Failure::new(format!(
            "External tool \"{name}\" conflicts with a built-in tool of the same name. Set overridesBuiltInTool: true to \
             replace it."
        ))),
        None => Ok(()),
    }
}

/// The secret variables that an extension asks for. Names that are not set or that it has anyway are not asked about.
async fn grant(
    hub: &ServerHub,
    live: &ServedSession,
    extension: &ExtensionIdentity,
    wanted: Option<&[String]>,
) -> Result<Vec<(String, String)>, Failure> {
    let Some(wanted) = wanted.filter(|wanted| !wanted.is_empty()) else { return Ok(Vec::new()) };
    if wanted.len() > MAX_VARIABLES {
        return Err(Failure::new(format!("an extension may ask for {MAX_VARIABLES} variables at most")));
    }
    let Some(host) = hub.config().extensions.as_deref() else { return Ok(Vec::new()) };
    let session = ExtensionSession::of(live).await?;
    let variables = host.withheld(&session, wanted);
    if variables.is_empty() {
        return Ok(variables);
    }
    let names: Vec<String> = variables.iter().map(|(name, _)| name.clone()).collect();
    let listed = names.join(", ");
    let request = PermissionRequest::ExtensionEnvAccess {
        tool_call_id: None,
        extension_name: extension.id.clone(),
        environment_variables: names,
    };
    ask(live, request, || {
        format!(
            "the extension {} was denied access to sensitive environment variables: {listed}",
            extension.id
        )
    })
    .await?;
    Ok(variables)
}

async fn ask(
    live: &ServedSession,
    request: PermissionRequest,
    refusal: impl FnOnce() -> String,
) -> Result<(), Failure> {
    match permit(live, request).await? {
        Ok(()) => Ok(()),
        Err(outcome) if outcome.status == ToolStatus::Rejected => Err(Failure::new(refusal())),
        Err(outcome) => Err(Failure::new(format!("{}: {}", refusal(), outcome.text))),
    }
}
