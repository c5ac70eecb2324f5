//! One process of an agent that speaks the Agent Client Protocol on its standard input and output: requests both ways, a
//! message per line, any number of sessions.

use futures_util::FutureExt;
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap};
use std::io;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use hangar_peer::{Framing, LineReader, Outgoing, Peer, PeerError, raw};
use hangar_process::{ProcessGroup, command_in_own_session};
use hangar_protocol::rpc::{ErrorObject, Id, RpcMessage, codes};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::host::{Host, ProcessInput, RemoteProgram};
use crate::invocation::Argument;
use crate::stderr_buffer::{MAX_LINE, StderrBuffer};

/// Capacity of a session's queue of messages; the agent has to wait beyond it.
pub(super) const INCOMING: usize = 1024;
/// Grace period between an agent's closed output and SIGTERM.
const EXIT_GRACE: Duration = Duration::from_millis(200);
/// Grace period between SIGTERM and SIGKILL.
const TERM_GRACE: Duration = Duration::from_secs(5);

/// Message of the agent to one session.
#[derive(Debug)]
pub(super) enum AgentMessage {
    Update(Value),
    /// It asks whether it may do something, and waits.
    Permission {
        id: Id,
        params: Value,
    },
}

/// Connection to the agent. The process ends when the last handle is dropped.
pub(super) struct AgentConnection {
    shared: Arc<ConnectionShared>,
    _stop: DropGuard,
}

struct ConnectionShared {
    peer: Peer,
    sessions: Mutex<HashMap<String, mpsc::Sender<AgentMessage>>>,
    stderr: Mutex<StderrBuffer>,
    /// Exit code, if the process exited without a signal from us.
    exit: Mutex<Option<i32>>,
}

/// Command, directory and environment that the agent is started with.
pub(super) struct Launch<'a> {
    pub(super) host: &'a Host,
    /// Environment of the process; the order's variables are added to it.
    pub(super) environment: &'a BTreeMap<String, String>,
    pub(super) program: &'a str,
    pub(super) args: &'a [String],
    pub(super) env: &'a [(String, String)],
    pub(super) cwd: &'a std::path::Path,
}

impl AgentConnection {
    pub(super) fn start(launch: &Launch<'_>) -> io::Result<Self> {
        let mark = format!("{}.", uuid::Uuid::new_v4());
        let mut preface = Vec::new();
        let mut command = match launch.host {
            Host::Local => {
                let mut command = command_in_own_session(launch.program);
                command.args(launch.args).current_dir(launch.cwd).env_clear().envs(launch.environment);
                command.envs(launch.env.iter().map(|(name, value)| (name, value)));
                command
            }
            Host::Ssh(ssh) => {
                let args: Vec<Argument> = launch.args.iter().map(Into::into).collect();
                let remote = RemoteProgram {
                    workspace: launch.cwd,
                    program: launch.program,
                    args: &args,
                    env: launch.env,
                    input: ProcessInput::Link,
                    report: None,
                };
                preface = remote.preface();
                let mut command = command_in_own_session("ssh");
                command.args(ssh.arguments(&remote));
                command.env_clear().envs(launch.environment);
                command
            }
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut child, group) = ProcessGroup::spawn(command.kill_on_drop(true), mark)?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(io::Error::other("the process has no pipes"));
        };
        let (peer, outgoing) = Peer::new(Framing::Line);
        let stop = CancellationToken::new();
        let shared = Arc::new(ConnectionShared {
            peer,
            sessions: Mutex::default(),
            stderr: Mutex::default(),
            exit: Mutex::default(),
        });
        let owner = ProcessOwner { child, group, shared: Arc::clone(&shared) };
        let input = Stdin { pipe: stdin, preface, outgoing };
        tokio::spawn(FutureExt::boxed(owner.run(
            input,
            LineReader::new(stdout, MAX_LINE),
            stderr,
            stop.clone(),
        )));
        Ok(Self { shared, _stop: stop.drop_guard() })
    }

    pub(super) fn is_open(&self) -> bool {
        !self.shared.peer.is_closed()
    }

    /// The beginning and the end of what it wrote on stderr.
    pub(super) fn stderr(&self) -> String {
        self.shared.stderr.lock().text()
    }

    pub(super) fn exit(&self) -> Option<i32> {
        *self.shared.exit.lock()
    }

    /// Subscribes to the agent's messages about a session.
    pub(super) fn subscribe(&self, session: &str) -> mpsc::Receiver<AgentMessage> {
        let (sender, receiver) = mpsc::channel(INCOMING);
        self.shared.sessions.lock().insert(session.to_owned(), sender);
        receiver
    }

    pub(super) fn unsubscribe(&self, session: &str) {
        self.shared.sessions.lock().remove(session);
    }

    pub(super) async fn request(&self, method: &str, params: &Value) -> Result<Value, PeerError> {
        self.shared.peer.request(method, params).await
    }

    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.shared.peer.notify(method, params);
    }

    pub(super) fn respond(&self, id: Id, result: &Value) {
        self.shared.respond(id, result);
    }
}

impl ConnectionShared {
    fn respond(&self, id: Id, result: &Value) {
        if let Some(result) = raw(result) {
            self.peer.respond(id, Ok(result));
        }
    }

    async fn heard(&self, line: &str) {
        match RpcMessage::parse(line.as_bytes()) {
            Ok(RpcMessage::Response { id, result }) => self.peer.answered(id, result),
            Ok(RpcMessage::Notification { method, params }) if method == "session/update" => {
                let params = value(params);
                self.pass_on(&params, AgentMessage::Update(params["update"].clone())).await;
            }
            Ok(RpcMessage::Request { id, method, params }) if method == "session/request_permission" => {
                let params = value(params);
                let asked = AgentMessage::Permission { id: id.clone(), params: params.clone() };
                if !self.pass_on(&params, asked).await {
                    self.respond(id, &json!({ "outcome": { "outcome": "cancelled" } }));
                }
            }
            Ok(RpcMessage::Request { id, method, .. }) => {
                let message = format!("this client does not offer `{method}`");
                let error = ErrorObject { code: codes::METHOD_NOT_FOUND, message, data: None };
                self.peer.refuse(Some(id), error);
            }
            // Notices of other kinds, and lines that are no messages.
            Ok(RpcMessage::Notification { .. }) | Err(_) => {}
        }
    }

    /// Delivers a message to its session; false if the session has no subscriber.
    async fn pass_on(&self, params: &Value, incoming: AgentMessage) -> bool {
        let session = params["sessionId"].as_str().unwrap_or_default();
        let listener = self.sessions.lock().get(session).cloned();
        match listener {
            Some(listener) => listener.send(incoming).await.is_ok(),
            None => false,
        }
    }
}

fn value(params: Option<Box<RawValue>>) -> Value {
    params.and_then(|params| serde_json::from_str(params.get()).ok()).unwrap_or(Value::Null)
}

/// Writer of the agent's standard input.
struct Stdin {
    pipe: ChildStdin,
    /// For the shell that starts it elsewhere, ahead of all messages.
    preface: Vec<u8>,
    outgoing: Outgoing,
}

/// Owner of the process.
struct ProcessOwner {
    child: Child,
    group: ProcessGroup,
    shared: Arc<ConnectionShared>,
}

impl ProcessOwner {
    async fn run(
        mut self,
        mut stdin: Stdin,
        mut lines: LineReader<tokio::process::ChildStdout>,
        mut stderr: tokio::process::ChildStderr,
        stop: CancellationToken,
    ) {
        let shared = Arc::clone(&self.shared);
        let read = async {
            while let Ok(Some(line)) = lines.next_text().await {
                shared.heard(&line).await;
            }
        };
        let complain = async {
            let mut buffer = vec![0; 8 << 10];
            while let Ok(length) = stderr.read(&mut buffer).await
                && length > 0
            {
                shared.stderr.lock().push(&buffer[..length]);
            }
            std::future::pending::<()>().await;
        };
        let write = async {
            if stdin.pipe.write_all(&stdin.preface).await.is_ok() {
                shared.peer.write(&mut stdin.pipe, &mut stdin.outgoing).await;
            }
        };
        tokio::select! {
            () = write => {}
            // It does not read what it is sent.
            () = shared.peer.closed() => {}
            () = read => {}
            () = complain => {}
            () = stop.cancelled() => {}
        }
        // An agent that ended by itself has said all, and its code says why.
        if let Ok(Ok(status)) = tokio::time::timeout(EXIT_GRACE, self.child.wait()).await {
            *self.shared.exit.lock() = status.code();
        }
        self.shared.peer.close();
        self.group.terminate();
        if tokio::time::timeout(TERM_GRACE, self.child.wait()).await.is_ok() {
            self.group.leader_ended();
        }
        self.group.kill();
    }
}
