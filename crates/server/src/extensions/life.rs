//! Life of one extension: its process is started, served as a client, and started again when it ends by itself.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use hangar_custom::extensions::Extension;
use hangar_protocol::data::{ExtensionStatus, SessionWarning};
use serde::Deserialize;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::host::{ExtensionSession, LaunchPlan};
use super::identity::ExtensionIdentity;
use super::process::{ExtensionProcess, StderrTail};
use super::registry::{Run, SessionExtensions};
use crate::client::Client;
use crate::hub::{ServedSession, ServerHub};
use crate::peer;
use crate::transport::converse;

/// Time from the start of an extension to its request to join.
const START_PATIENCE: Duration = Duration::from_secs(30);
/// Time until the end of a process whose standard output is closed.
const EXIT_PATIENCE: Duration = Duration::from_secs(2);
/// Delays before an extension that has ended by itself is started again. After the last it has failed.
const RESTARTS: [Duration; 3] = [Duration::from_millis(250), Duration::from_secs(2), Duration::from_secs(10)];
/// Time that a client gets to say how an extension is started.
const RESOLVE_PATIENCE: Duration = Duration::from_secs(15);

/// Variables that a client cannot set for an extension.
const OURS: [&str; 3] = ["COPILOT_SDK_PATH", "SESSION_ID", "COPILOT_EXTENSION_PARENT_PID"];

/// End of an extension's process.
enum End {
    /// It was asked to.
    Stopped,
    /// By itself, with the reason.
    Unasked(String),
}

pub(super) async fn live(
    hub: Arc<ServerHub>,
    live: Arc<ServedSession>,
    session: ExtensionSession,
    extension: Extension,
    stderr: StderrTail,
    run: Run,
) {
    let _ended = run.ended.clone().drop_guard();
    let mut restarts = RESTARTS.iter();
    loop {
        let End::Unasked(why) = serve(&hub, &live, &session, &extension, &stderr, &run).await else { return };
        let status = live.extensions.status(&extension.id, run.number);
        // One that was refused has failed already, and the reason is known.
        if status.is_none_or(|status| status == ExtensionStatus::Failed) {
            return;
        }
        let had_joined = status == Some(ExtensionStatus::Running);
        let delay = restarts.next().filter(|_| had_joined);
        let why = match stderr.last_line() {
            Some(line) => format!("{why}: {line}"),
            None => why,
        };
        let status = if delay.is_some() { ExtensionStatus::Starting } else { ExtensionStatus::Failed };
        if !live.extensions.set(&extension.id, run.number, status, None, Some(why.clone())) {
            return;
        }
        let what = if delay.is_some() { "is started again" } else { "failed" };
        let text = format!("The extension {} {what}, because {why}.", extension.id);
        // A session that has ended needs no warning.
        let _ = live.ask(move |task| task.record(SessionWarning::new("extension", text))).await;
        SessionExtensions::publish_change(&live).await;
        let Some(delay) = delay else { return };
        tokio::select! {
            () = tokio::time::sleep(*delay) => {}
            () = run.stop.cancelled() => return,
        }
    }
}

/// Starts the process and serves it to its end.
async fn serve(
    hub: &Arc<ServerHub>,
    live: &Arc<ServedSession>,
    session: &ExtensionSession,
    extension: &Extension,
    stderr: &StderrTail,
    run: &Run,
) -> End {
    let plan = match plan(hub, session, extension).await {
        Ok(plan) => plan,
        Err(problem) => return End::Unasked(problem),
    };
    let (mut process, stdin, stdout) = match ExtensionProcess::spawn(&plan, &session.directory, stderr) {
        Ok(started) => started,
        Err(error) => {
            return End::Unasked(format!("{} cannot be started: {error}", plan.program.display()));
        }
    };
    live.extensions.set(&extension.id, run.number, ExtensionStatus::Starting, process.id(), None);
    let arrived = CancellationToken::new();
    let identity = ExtensionIdentity {
        session_id: session.id.clone(),
        id: extension.id.clone(),
        name: extension.name.clone(),
        run: run.number,
        arrived: arrived.clone(),
    };
    let (peer, outgoing) = peer::connect();
    let client = Arc::new(Client::of_extension(hub, peer, identity));
    let late = async {
        tokio::select! {
            () = arrived.cancelled() => std::future::pending().await,
            () = tokio::time::sleep(START_PATIENCE) => {}
        }
    };
    let end = tokio::select! {
        biased;
        () = run.stop.cancelled() => End::Stopped,
        why = process.ended() => End::Unasked(why),
        // The output of a process that ends is closed before its exit code is known.
        () = converse(&client, stdout, stdin, outgoing) => {
            let why = tokio::time::timeout(EXIT_PATIENCE, process.ended()).await;
            End::Unasked(why.unwrap_or_else(|_| "it closed its standard output".to_owned()))
        }
        () = late => End::Unasked(format!("it did not join the session in {} s", START_PATIENCE.as_secs())),
    };
    client.peer.close();
    hub.left(&client);
    process.stop().await;
    end
}

/// How the extension is started: as the client says that provides this, else in our own way.
async fn plan(
    hub: &Arc<ServerHub>,
    session: &ExtensionSession,
    extension: &Extension,
) -> Result<LaunchPlan, String> {
    #[derive(Deserialize)]
    struct Resolved {
        launch: Option<LaunchProfile>,
    }
    #[derive(Deserialize)]
    struct LaunchProfile {
        executable: String,
        args: Vec<String>,
        env: std::collections::BTreeMap<String, String>,
    }
    let Some(host) = hub.config().extensions.as_deref() else {
        return Err("this server runs no extensions".to_owned());
    };
    let Some(provider) = hub.launch_provider() else { return host.launch(session, extension) };
    let params = json!({
        "id": extension.id,
        "name": extension.name,
        "modulePath": extension.path,
        "source": extension.source,
    });
    let asking = provider.peer.request::<Resolved>("extensionLaunchProvider.resolve", &params);
    let resolved = match tokio::time::timeout(RESOLVE_PATIENCE, asking).await {
        Err(_) => return Err("the client did not say in time how it is started".to_owned()),
        Ok(Err(error)) => return Err(format!("the client did not say how it is started: {error}")),
        Ok(Ok(resolved)) => resolved,
    };
    let own = host.launch(session, extension)?;
    let Some(profile) = resolved.launch else {
        return Err("the client does not support this kind of extension".to_owned());
    };
    let mut env = own.env;
    let given = profile.env.into_iter().filter(|(name, _)| !OURS.contains(&name.as_str()));
    env.extend(given.map(|(name, value)| (OsString::from(name), OsString::from(value))));
    Ok(LaunchPlan {
        program: profile.executable.into(),
        args: profile.args.into_iter().map(OsString::from).collect(),
        env,
        sandbox: own.sandbox,
    })
}
