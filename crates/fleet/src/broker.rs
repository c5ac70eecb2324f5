//! Connection to the servers of a fleet, with its streams.

use std::sync::Arc;
use std::time::Duration;

use async_nats::client::RequestErrorKind;
use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::Stream;
use async_nats::jetstream::{self, Context, ErrorCode};
use async_nats::{Client, ConnectErrorKind, ConnectOptions, ServerAddr};
use bytes::Bytes;
use serde::Deserialize;

use crate::shape::{StreamKind, difference};
use crate::{FleetError, FleetSettings};

/// Time limit of a connection and of one request.
const CONNECT: Duration = Duration::from_secs(5);
const REQUEST: Duration = Duration::from_secs(5);
/// Pause between attempts to reconnect, at most.
const RECONNECT: Duration = Duration::from_millis(500);
/// Time for which a cluster is given to elect its leader before streams get fewer copies.
const CLUSTER: Duration = Duration::from_secs(20);
const CLUSTER_STEP: Duration = Duration::from_millis(250);
/// Copies of a stream where nothing else is configured.
const REPLICAS: usize = 3;
/// "replicas > 1 not supported in non-clustered mode"
const NOT_CLUSTERED: ErrorCode = ErrorCode(10074);
const STREAM_NOT_FOUND: ErrorCode = ErrorCode(10059);

/// A connection. Clones share it. It reconnects by itself.
#[derive(Debug, Clone)]
pub struct Broker(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    settings: FleetSettings,
    client: Client,
    context: Context,
    work: Stream,
    log: Stream,
    facts: Stream,
}

impl Broker {
    /// Connects, and creates the streams that are missing. `name` is how the servers list the connection.
    pub async fn connect(settings: FleetSettings, name: &str) -> Result<Self, FleetError> {
        let client = connect(&settings, name).await?;
        let mut context = jetstream::new(client.clone());
        context.set_timeout(REQUEST);
        await_jetstream(&client, &settings).await?;
        let work = ensure(&context, &settings, StreamKind::Work).await?;
        let log = ensure(&context, &settings, StreamKind::Log).await?;
        let facts = ensure(&context, &settings, StreamKind::Facts).await?;
        Ok(Self(Arc::new(Inner { settings, client, context, work, log, facts })))
    }

    pub fn settings(&self) -> &FleetSettings {
        &self.0.settings
    }

    /// Version and name of the server that this connection uses.
    pub fn server(&self) -> (String, String) {
        let info = self.0.client.server_info();
        (info.version, info.server_name)
    }

    pub fn is_connected(&self) -> bool {
        self.0.client.connection_state() == async_nats::connection::State::Connected
    }

    /// Copies and bytes of each stream, for operators.
    pub async fn streams(&self) -> Result<Vec<StreamFacts>, FleetError> {
        let mut all = Vec::new();
        for stream in [&self.0.work, &self.0.log, &self.0.facts] {
            let info =
                stream.get_info().await.map_err(|error| FleetError::failed("reading a stream", &error))?;
            all.push(StreamFacts {
                name: info.config.name,
                replicas: info.config.num_replicas,
                messages: info.state.messages,
                bytes: info.state.bytes,
                max_bytes: u64::try_from(info.config.max_bytes).ok(),
                leader: info.cluster.and_then(|cluster| cluster.leader),
            });
        }
        Ok(all)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.0.client
    }

    pub(crate) fn context(&self) -> &Context {
        &self.0.context
    }

    pub(crate) fn work(&self) -> &Stream {
        &self.0.work
    }

    pub(crate) fn log(&self) -> &Stream {
        &self.0.log
    }

    pub(crate) fn fact_stream(&self) -> &Stream {
        &self.0.facts
    }

    /// A subject below the prefix.
    pub(crate) fn subject(&self, rest: &str) -> String {
        format!("{}.{rest}", self.0.settings.prefix.as_str())
    }
}

/// One stream, as operators see it.
#[derive(Debug, Clone, serde::Serialize)]
pub struct StreamFacts {
    pub name: String,
    pub replicas: usize,
    pub messages: u64,
    pub bytes: u64,
    pub max_bytes: Option<u64>,
    pub leader: Option<String>,
}

async fn connect(settings: &FleetSettings, name: &str) -> Result<Client, FleetError> {
    let mut options = ConnectOptions::new()
        .name(name)
        .connection_timeout(CONNECT)
        .request_timeout(Some(REQUEST))
        // A link that swallows everything is noticed before the lease is over.
        .ping_interval((settings.lease / 6).clamp(Duration::from_secs(1), Duration::from_secs(10)))
        .reconnect_delay_callback(|attempts| match attempts {
            0 | 1 => Duration::ZERO,
            _ => RECONNECT,
        });
    let unreadable = |path: &std::path::Path, error: &std::io::Error| {
        FleetError::Invalid(format!("the file {} of [fleet] cannot be used: {error}", path.display()))
    };
    // The library takes the host of an address, and not the user.
    let users = settings.servers.iter().filter_map(|server| server.parse::<ServerAddr>().ok());
    let user = users.into_iter().find_map(|server| {
        let user = server.username().map(decoded)?;
        Some((user, server.password().map(decoded)))
    });
    options = match user {
        Some((user, Some(password))) => options.user_and_password(user, password),
        Some((token, None)) => options.token(token),
        None => options,
    };
    if let Some(creds) = &settings.creds {
        options = options.credentials_file(creds).await.map_err(|error| unreadable(creds, &error))?;
    }
    let tls = &settings.tls;
    for file in [&tls.ca, &tls.cert, &tls.key].into_iter().flatten() {
        std::fs::metadata(file).map_err(|error| unreadable(file, &error))?;
    }
    if let Some(ca) = &tls.ca {
        options = options.add_root_certificates(ca.clone()).require_tls(true);
    }
    match (&tls.cert, &tls.key) {
        (Some(cert), Some(key)) => options = options.add_client_certificate(cert.clone(), key.clone()),
        (None, None) => {}
        _ => {
            let why = "`tls` of [fleet] has only one of `cert` and `key`; a client certificate needs both";
            return Err(FleetError::Invalid(why.to_owned()));
        }
    }
    options.connect(&settings.servers).await.map_err(|error| {
        let servers = settings.shown();
        match error.kind() {
            ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
                FleetError::Refused { servers }
            }
            _ => {
                let FleetError::Failed { why, .. } = FleetError::failed("", &error) else {
                    return FleetError::Unreachable { servers, why: error.to_string() };
                };
                FleetError::Unreachable { servers, why }
            }
        }
    })
}

/// A part of an address without its `%` escapes.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let escape = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        match (first, more.get(..2).and_then(escape)) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = &more[2..];
            }
            _ => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Waits until JetStream answers. A cluster may be electing its leader.
async fn await_jetstream(client: &Client, settings: &FleetSettings) -> Result<(), FleetError> {
    let deadline = tokio::time::Instant::now() + CLUSTER;
    loop {
        // Read loosely: servers of different ages describe an account differently.
        let is_off = match client.request(ACCOUNT, Bytes::new()).await {
            Ok(answer) => match serde_json::from_slice::<AccountAnswer>(&answer.payload) {
                Ok(AccountAnswer { error: Some(refused) }) => {
                    [ErrorCode::JETSTREAM_NOT_ENABLED, ErrorCode::JETSTREAM_NOT_ENABLED_FOR_ACCOUNT]
                        .contains(&ErrorCode(refused.err_code))
                }
                Ok(AccountAnswer { error: None }) | Err(_) => return Ok(()),
            },
            Err(error) => error.kind() == RequestErrorKind::NoResponders,
        };
        if is_off || tokio::time::Instant::now() >= deadline {
            return Err(FleetError::NoJetStream { servers: settings.shown() });
        }
        tokio::time::sleep(CLUSTER_STEP).await;
    }
}

/// Subject of the question about an account.
const ACCOUNT: &str = "$JS.API.INFO";

#[derive(Deserialize)]
struct AccountAnswer {
    error: Option<AccountRefusal>,
}

#[derive(Deserialize)]
struct AccountRefusal {
    #[serde(default)]
    err_code: u64,
}

/// The stream, created if it is missing and checked if it is not.
async fn ensure(context: &Context, settings: &FleetSettings, kind: StreamKind) -> Result<Stream, FleetError> {
    let name = settings.prefix.stream(kind.name());
    let deadline = tokio::time::Instant::now() + CLUSTER;
    let mut replicas = settings.replicas.unwrap_or(REPLICAS);
    loop {
        match context.get_stream(&name).await {
            Ok(stream) => {
                let found = &stream.cached_info().config;
                return match difference(found, &kind.config(settings, replicas)) {
                    None => Ok(stream),
                    Some(why) => Err(FleetError::Shape { stream: name, why }),
                };
            }
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(error) if error.error_code() == STREAM_NOT_FOUND => {}
                _ if tokio::time::Instant::now() < deadline => {
                    tokio::time::sleep(CLUSTER_STEP).await;
                    continue;
                }
                _ => return Err(FleetError::failed(format!("reading the stream {name}"), &error)),
            },
        }
        let Err(error) = context.create_stream(kind.config(settings, replicas)).await else { continue };
        let patient = tokio::time::Instant::now() < deadline;
        match error.kind() {
            CreateStreamErrorKind::JetStream(refused) if refused.error_code() == NOT_CLUSTERED => {
                if settings.replicas.is_some_and(|wanted| wanted > 1) {
                    return Err(FleetError::failed(format!("creating the stream {name}"), &error));
                }
                replicas = 1;
            }
            // The servers may still be finding each other.
            _ if patient => tokio::time::sleep(CLUSTER_STEP).await,
            CreateStreamErrorKind::JetStream(_) if settings.replicas.is_none() && replicas > 1 => {
                replicas -= 1;
                tracing::warn!(stream = name, replicas, "the cluster has no room for three copies");
            }
            _ => return Err(FleetError::failed(format!("creating the stream {name}"), &error)),
        }
    }
}
