//! Connected client and its requests; a task per request answers it.

use futures_util::FutureExt;
use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use hangar_files::ClientFiles;
use hangar_peer::{Peer, raw};
use hangar_protocol::rpc::{ErrorObject, Id, codes};
use hangar_store::SessionId;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::extensions::ExtensionIdentity;
use crate::handshake::{AdmissionState, ConnectParams, PROTOCOL_VERSION, ServerAccess};
use crate::hub::ServerHub;
use crate::inference::Exchanges;
use crate::methods::{self, Call, Failure};
use crate::other_agents::ForwardedRequest;
use crate::peer::{Incoming, RpcRequest};
use crate::session_fs::FsProvider;

/// Maximum number of concurrent requests of one client.
const MAX_IN_FLIGHT: usize = 1024;

/// Methods that only wait. Cancelling one of them stops it; any other request runs to its end even if it is cancelled.
const WAITING: [&str; 2] = ["session.eventLog.read", "session.tasks.waitForPending"];

/// Error code of requests to a server that is shutting down.
const SHUTTING_DOWN: i64 = -32000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClientId(pub(crate) u64);

pub(crate) struct Client {
    pub(crate) id: ClientId,
    pub(crate) peer: Peer,
    hub: Weak<ServerHub>,
    access: ServerAccess,
    /// Whether the client is a portal that remote control let in.
    pub(crate) is_guest: bool,
    /// The extension that the client is, if it is one.
    pub(crate) extension: Option<ExtensionIdentity>,
    pub(crate) gate: AdmissionState,
    in_flight: AtomicUsize,
    /// Requests that can be taken back.
    waiting: Mutex<HashMap<Id, CancellationToken>>,
    answered: Notify,
    /// Whether the client sends the requests to models itself.
    request_proxy: AtomicBool,
    /// File storage that the client provides for its sessions, if it does.
    files: Mutex<Option<FsProvider>>,
    pub(crate) exchanges: Exchanges,
    /// Whether the client supports client tasks.
    client_tasks: AtomicBool,
    /// Whether the client wants telemetry about its sessions.
    telemetry: AtomicBool,
}

impl Client {
    pub(crate) fn new(hub: &Arc<ServerHub>, peer: Peer) -> Self {
        Self::with_access(hub, peer, hub.config().access.clone(), false)
    }

    /// A client that is an extension of a session.
    pub(crate) fn of_extension(hub: &Arc<ServerHub>, peer: Peer, extension: ExtensionIdentity) -> Self {
        let client = Self::with_access(hub, peer, ServerAccess::Owner, false);
        Self { extension: Some(extension), ..client }
    }

    /// A client that has to authenticate differently from the others.
    pub(crate) fn with_access(
        hub: &Arc<ServerHub>,
        peer: Peer,
        access: ServerAccess,
        is_guest: bool,
    ) -> Self {
        Self {
            id: hub.next_client(),
            peer,
            hub: Arc::downgrade(hub),
            gate: AdmissionState::new(&access),
            access,
            is_guest,
            extension: None,
            in_flight: AtomicUsize::new(0),
            waiting: Mutex::default(),
            answered: Notify::new(),
            request_proxy: AtomicBool::new(false),
            files: Mutex::default(),
            exchanges: Exchanges::default(),
            client_tasks: AtomicBool::new(false),
            telemetry: AtomicBool::new(false),
        }
    }

    pub(crate) fn is_request_proxy(&self) -> bool {
        self.request_proxy.load(Ordering::Relaxed)
    }

    pub(crate) fn knows_client_tasks(&self) -> bool {
        self.client_tasks.load(Ordering::Relaxed)
    }

    pub(crate) fn wants_telemetry(&self) -> bool {
        self.telemetry.load(Ordering::Relaxed)
    }

    pub(crate) fn become_request_proxy(&self) {
        self.request_proxy.store(true, Ordering::Relaxed);
    }

    pub(crate) fn keep_files(&self, provider: FsProvider) {
        *self.files.lock() = Some(provider);
    }

    /// The directory of a session with this client, if it keeps files.
    pub(crate) fn session_files(&self, id: &SessionId) -> Option<ClientFiles> {
        let files = self.files.lock();
        files.as_ref().map(|provider| provider.session_files(&self.peer, id))
    }

    pub(crate) fn hear(self: &Arc<Self>, said: Incoming) {
        match said {
            Incoming::Request(request) => self.take(request),
            Incoming::Cancelled(id) => {
                if let Some(waiting) = self.waiting().get(&id) {
                    waiting.cancel();
                }
            }
        }
    }

    /// Whether the client may change what later sessions of the user do.
    pub(crate) fn is_trusted(&self) -> bool {
        self.access.is_trusted()
    }

    /// Takes a request. The handshake is settled here, in order; everything else runs side by side.
    fn take(self: &Arc<Self>, request: RpcRequest) {
        let Some(hub) = self.hub.upgrade() else { return };
        let RpcRequest { id, method, params } = request;
        let params = match by_name(params) {
            Ok(params) => params,
            Err(problem) => return self.answer(id, Err(Failure::Params(problem).into_error(&method))),
        };
        if method == "connect" {
            let result = self.connect(&hub, params.as_deref());
            return self.answer(id, result);
        }
        if let Err(error) = self.access.request(&self.gate).and_then(|()| self.admit(&hub)) {
            return self.answer(id, Err(error));
        }
        if hub.is_stopping() && method != "runtime.shutdown" {
            let message = "SERVER_SHUTTING_DOWN".to_owned();
            return self.answer(id, Err(ErrorObject { code: SHUTTING_DOWN, message, data: None }));
        }
        let Some(method) = methods::find(&method) else {
            let message = format!("Unhandled method {method}");
            return self.answer(id, Err(ErrorObject { code: codes::METHOD_NOT_FOUND, message, data: None }));
        };
        if !self.is_trusted() && methods::needs_trust(method.name) {
            return self.answer(id, Err(methods::untrusted(method.name)));
        }
        if let Some(extension) = &self.extension
            && let Err(error) =
                extension.may_call(method.name, params.as_deref(), self.answers_permissions(&hub))
        {
            return self.answer(id, Err(error));
        }
        if let Some(agents) = hub.config().other_agents.as_deref()
            && self.extension.is_none()
            && !self.is_guest
            && agents.concerns(method.name, params.as_deref())
        {
            let params =
                params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or_default();
            let (peer, method) = (self.peer.clone(), method.name.to_owned());
            return agents.take(ForwardedRequest { peer, id, method, params });
        }
        if self.in_flight.fetch_add(1, Ordering::Relaxed) >= MAX_IN_FLIGHT {
            self.in_flight.fetch_sub(1, Ordering::Relaxed);
            let message = format!("{MAX_IN_FLIGHT} requests of this client are under way already");
            return self.answer(id, Err(ErrorObject { code: codes::INTERNAL_ERROR, message, data: None }));
        }
        let client = Arc::clone(self);
        let taken_back = CancellationToken::new();
        let waits = WAITING.contains(&method.name);
        if waits {
            self.waiting().insert(id.clone(), taken_back.clone());
        }
        tokio::spawn(FutureExt::boxed(async move {
            let call = Call { hub, client: Arc::clone(&client), params };
            let outcome = tokio::select! {
                outcome = (method.run)(call) => outcome.map_err(|failure| failure.into_error(method.name)),
                () = taken_back.cancelled() => Err(cancelled(method.name)),
            };
            let (result, then) = match outcome {
                Ok(reply) => (Ok(reply.result), reply.then),
                Err(error) => (Err(error), None),
            };
            if waits {
                client.waiting().remove(&id);
            }
            client.answer(id, result);
            client.in_flight.fetch_sub(1, Ordering::Relaxed);
            client.answered.notify_waiters();
            if let Some(then) = then {
                then.await;
            }
        }));
    }

    /// Whether this extension was let answer the permission questions of its session.
    fn answers_permissions(&self, hub: &ServerHub) -> bool {
        let live = self.extension.as_ref().and_then(|extension| hub.live(&extension.session_id).ok());
        live.is_some_and(|live| {
            live.audience.members().iter().any(|member| member.client.id == self.id && member.permissions)
        })
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<Id, CancellationToken>> {
        self.waiting.lock()
    }

    /// Waits until every request that was taken is answered.
    pub(crate) async fn settled(&self) {
        loop {
            // Made before the look: what is answered in between counts.
            let answered = self.answered.notified();
            if self.in_flight.load(Ordering::Relaxed) == 0 {
                return;
            }
            answered.await;
        }
    }

    /// Makes this one of the server's clients, if it is none yet.
    pub(crate) fn admit(self: &Arc<Self>, hub: &ServerHub) -> Result<(), ErrorObject> {
        if !self.gate.is_open() {
            hub.joined(self)?;
            self.gate.open();
        }
        Ok(())
    }

    fn connect(
        self: &Arc<Self>,
        hub: &ServerHub,
        params: Option<&RawValue>,
    ) -> Result<serde_json::Value, ErrorObject> {
        let params = params
            .and_then(|params| serde_json::from_str::<ConnectParams>(params.get()).ok())
            .unwrap_or_default();
        self.access.connect(&params)?;
        self.admit(hub)?;
        let wanted = params.supported_task_kinds.unwrap_or_default();
        let client_tasks = wanted.iter().any(|kind| kind == "client");
        self.client_tasks.store(client_tasks, Ordering::Relaxed);
        self.telemetry.store(params.telemetry.unwrap_or(false), Ordering::Relaxed);
        let kinds: &[&str] = if client_tasks { &["agent", "shell", "client"] } else { &["agent", "shell"] };
        Ok(json!({
            "ok": true,
            "protocolVersion": PROTOCOL_VERSION,
            "version": hub.config().version,
            "taskKinds": kinds,
        }))
    }

    fn answer(&self, id: Id, result: Result<serde_json::Value, ErrorObject>) {
        let result = result.and_then(|value| {
            raw(&value).ok_or_else(|| ErrorObject {
                code: codes::INTERNAL_ERROR,
                message: "the answer has no form in JSON".to_owned(),
                data: None,
            })
        });
        self.peer.respond(id, result);
    }
}

fn cancelled(method: &str) -> ErrorObject {
    let message = format!("Request {method} was cancelled");
    ErrorObject { code: codes::REQUEST_CANCELLED, message, data: None }
}

/// The parameters as the methods take them: one object. Clients that pass parameters by position put it into a list.
fn by_name(params: Option<Box<RawValue>>) -> Result<Option<Box<RawValue>>, String> {
    let Some(given) = params.as_deref().filter(|params| !params.get().starts_with('{')) else {
        return Ok(params);
    };
    let Ok(list) = serde_json::from_str::<Vec<Box<RawValue>>>(given.get()) else {
        return Err("the parameters are no object".to_owned());
    };
    let count = list.len();
    match list.into_iter().next() {
        None => Ok(None),
        Some(only) if count == 1 && only.get().starts_with('{') => Ok(Some(only)),
        // Node's client library sends this for no parameters at all.
        Some(only) if count == 1 && only.get() == "null" => Ok(None),
        Some(_) => Err(format!("the parameters are one object, not a list of {count}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(params: &str, expected: Result<Option<&str>, &str>) {
        let params: Option<Box<RawValue>> = serde_json::from_str(params).unwrap();
        let read = by_name(params).map(|params| params.map(|params| params.get().to_owned()));
        assert_eq!(read, expected.map(|params| params.map(str::to_owned)).map_err(str::to_owned));
    }

    #[test]
    fn an_object_in_a_list_of_one_means_the_object() {
        check(r#"{"a":1}"#, Ok(Some(r#"{"a":1}"#)));
        check(r#"[{"a":1}]"#, Ok(Some(r#"{"a":1}"#)));
        check("[]", Ok(None));
        check("[null]", Ok(None));
        check("null", Ok(None));
        check("\"a\"", Err("the parameters are no object"));
        check(r#"["a"]"#, Err("the parameters are one object, not a list of 1"));
        check(r#"[{}, {}]"#, Err("the parameters are one object, not a list of 2"));
    }
}
