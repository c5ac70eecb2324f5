//! A scripted model on loopback that belongs to one test and remembers what it was asked.

use std::fs::File;
use std::net::TcpListener;
use std::thread::JoinHandle;
use std::time::SystemTime;

use hangar_models::scripted::{Script, ServeOptions, serve};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub struct ModelServer {
    url: String,
    log: tempfile::NamedTempFile,
    shutdown: CancellationToken,
    thread: Option<JoinHandle<()>>,
}

/// One request that the model saw.
#[derive(Debug, Clone)]
pub struct SeenRequest {
    pub path: String,
    /// Those that are no secrets.
    pub headers: Value,
    pub body: Value,
    /// `None`: there was no answer, or nobody read it to its end.
    pub status: Option<u16>,
}

impl ModelServer {
    /// A model that does what the markers in its prompts say, in a thread of its own.
    pub fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port on loopback");
        listener.set_nonblocking(true).expect("a socket that does not block");
        let url = format!("http://{}", listener.local_addr().expect("the socket is bound"));
        let log = tempfile::NamedTempFile::new().expect("a temporary file");
        let mut options = ServeOptions::new(Script::default(), SystemTime::now);
        options.log = Some(File::options().append(true).open(log.path()).expect("the file exists"));
        let shutdown = CancellationToken::new();
        let stopped = shutdown.clone();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("a listening socket");
                serve(listener, options, stopped).await.expect("serving on loopback");
            });
        });
        Self { url, log, shutdown, thread: Some(thread) }
    }

    /// `http://127.0.0.1:PORT`, without a path.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The file that each request is written to when its answer has ended, for tests in other languages.
    pub fn log_path(&self) -> &std::path::Path {
        self.log.path()
    }

    /// The requests whose answers have ended, in the order in which they did.
    pub fn requests(&self) -> Vec<SeenRequest> {
        let log = std::fs::read_to_string(self.log.path()).expect("the log of requests");
        let parse = |line: &str| {
            let mut record: Value = serde_json::from_str(line).expect("the log has one JSON object per line");
            let status = record["status"].as_i64().and_then(|status| u16::try_from(status).ok());
            SeenRequest {
                path: record["path"].as_str().unwrap_or_default().to_owned(),
                headers: record["headers"].take(),
                body: record["body"].take(),
                status: status.filter(|status| *status > 0),
            }
        };
        log.lines().map(parse).collect()
    }

    /// The body of the last request.
    pub fn last_request(&self) -> Value {
        self.requests().pop().expect("the model was asked").body
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shutdown.cancel();
        if let Some(thread) = self.thread.take() {
            // A panic in there has been printed; a second one while a test unwinds would hide the first.
            let _ = thread.join();
        }
    }
}
