//! The exporter: a thread that takes spans from all sessions and writes them in batches.

use parking_lot::Mutex;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::metrics::Metrics;
use crate::span::Span;
use crate::{Instrumentation, file, otlp};

/// Queue of spans for the thread. When it is full, spans are dropped: a session must not wait for its telemetry.
const MAX_WAITING: usize = 4096;
/// Spans in one batch.
const MAX_BATCH: usize = 512;
/// Longest time that a span waits for its batch to fill.
const BATCH_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval of writing metrics while they change, so that a process that is never shut down reports them, too.
const METRICS_EVERY: Duration = Duration::from_secs(60);
/// Timeout of one request to the collector.
const COLLECTOR_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout of the last batch at shutdown.
const END_TIMEOUT: Duration = Duration::from_secs(3);

pub enum Destination {
    File(PathBuf),
    /// A collector that takes OTLP over HTTP, with headers that it wants.
    Collector {
        endpoint: String,
        headers: Vec<(String, String)>,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("opening the telemetry file {}", path.display())]
    File { path: PathBuf, source: std::io::Error },
    #[error("starting the thread for telemetry")]
    Thread(#[source] std::io::Error),
    #[error("setting up the connection to the telemetry collector: {0}")]
    Http(String),
}

/// Takes spans. Its clones share one thread.
#[derive(Clone)]
pub struct Exporter(Arc<Inner>);

struct Inner {
    spans: Mutex<Option<SyncSender<Span>>>,
    thread: Mutex<Option<(JoinHandle<()>, Receiver<()>)>>,
}

enum Output {
    File(BufWriter<File>),
    Http {
        runtime: tokio::runtime::Runtime,
        client: reqwest::Client,
        endpoint: String,
        headers: Vec<(String, String)>,
    },
}

impl Exporter {
    pub fn start(
        destination: Destination,
        source: Instrumentation,
        now: fn() -> Timestamp,
    ) -> Result<Self, StartError> {
        Self::start_at(Schedule::USUAL, destination, source, now)
    }

    fn start_at(
        schedule: Schedule,
        destination: Destination,
        source: Instrumentation,
        now: fn() -> Timestamp,
    ) -> Result<Self, StartError> {
        let output = Output::open(destination)?;
        let (spans, waiting) = sync_channel(MAX_WAITING);
        let (done, ended) = sync_channel(1);
        let thread = std::thread::Builder::new()
            .name("telemetry".to_owned())
            .spawn(move || {
                Worker { output, source, schedule, since: now(), now, metrics: Metrics::default() }
                    .run(&waiting);
                // The caller may have gone.
                let _ = done.send(());
            })
            .map_err(StartError::Thread)?;
        let inner = Inner { spans: Mutex::new(Some(spans)), thread: Mutex::new(Some((thread, ended))) };
        Ok(Self(Arc::new(inner)))
    }

    pub(crate) fn send(&self, span: Span) {
        let spans = self.0.spans.lock();
        if let Some(spans) = spans.as_ref()
            && let Err(TrySendError::Full(_)) = spans.try_send(span)
        {
            tracing::warn!("telemetry is too slow; a span is dropped");
        }
    }

    /// Writes the remaining spans, at most until [`END_TIMEOUT`].
    pub fn finish(&self) {
        self.0.spans.lock().take();
        let thread = self.0.thread.lock().take();
        if let Some((thread, ended)) = thread {
            match ended.recv_timeout(END_TIMEOUT) {
                Ok(()) | Err(RecvTimeoutError::Disconnected) => drop(thread.join()),
                Err(RecvTimeoutError::Timeout) => tracing::warn!("the last telemetry was not taken in time"),
            }
        }
    }
}

/// Intervals of writing.
#[derive(Debug, Clone, Copy)]
struct Schedule {
    batch: Duration,
    metrics: Duration,
}

impl Schedule {
    const USUAL: Self = Self { batch: BATCH_TIMEOUT, metrics: METRICS_EVERY };
}

/// State of the metrics that were last written.
#[derive(Debug)]
struct Figures {
    told: Instant,
    /// Whether they have changed since.
    news: bool,
}

impl Figures {
    fn due(&self, now: Instant, every: Duration) -> bool {
        self.news && now.saturating_duration_since(self.told) >= every
    }
}

struct Worker {
    output: Output,
    source: Instrumentation,
    schedule: Schedule,
    since: Timestamp,
    now: fn() -> Timestamp,
    metrics: Metrics,
}

impl Worker {
    fn run(mut self, waiting: &Receiver<Span>) {
        let mut batch: Vec<Span> = Vec::new();
        let mut due = Instant::now() + self.schedule.batch;
        let mut figures = Figures { told: Instant::now(), news: false };
        loop {
            if batch.is_empty() {
                due = Instant::now() + self.schedule.batch;
            }
            let received = waiting.recv_timeout(due.saturating_duration_since(Instant::now()));
            let ended = matches!(received, Err(RecvTimeoutError::Disconnected));
            let late = matches!(received, Err(RecvTimeoutError::Timeout));
            if let Ok(span) = received {
                self.metrics.add(&span);
                figures.news = true;
                batch.push(span);
            }
            if !batch.is_empty() && (ended || late || batch.len() >= MAX_BATCH) {
                self.output.spans(&batch, &self.source);
                batch.clear();
            }
            if ended || figures.due(Instant::now(), self.schedule.metrics) {
                self.output.metrics(&self.metrics, &self.source, self.since, (self.now)());
                figures = Figures { told: Instant::now(), news: false };
            }
            if ended {
                return;
            }
        }
    }
}

impl Output {
    fn open(destination: Destination) -> Result<Self, StartError> {
        match destination {
            Destination::File(path) => {
                let opened = File::options().create(true).append(true).open(&path);
                let file = opened.map_err(|source| StartError::File { path, source })?;
                Ok(Output::File(BufWriter::new(file)))
            }
            Destination::Collector { endpoint, headers } => {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                let runtime = runtime.map_err(StartError::Thread)?;
                // Fails if one is installed already, which serves as well.
                let _ = rustls::crypto::ring::default_provider().install_default();
                let client = reqwest::Client::builder()
                    // Headers must not follow a redirect to another host.
                    .redirect(reqwest::redirect::Policy::none())
                    .timeout(COLLECTOR_TIMEOUT)
                    .build();
                let client = client.map_err(|error| StartError::Http(error.to_string()))?;
                let endpoint = endpoint.trim_end_matches('/').to_owned();
                Ok(Output::Http { runtime, client, endpoint, headers })
            }
        }
    }

    fn spans(&mut self, spans: &[Span], source: &Instrumentation) {
        match self {
            Output::File(file) => write(file, spans.iter().map(|span| file::span(span, source))),
            Output::Http { .. } => self.post("v1/traces", &otlp::traces(spans, source)),
        }
    }

    fn metrics(&mut self, metrics: &Metrics, source: &Instrumentation, since: Timestamp, now: Timestamp) {
        match self {
            Output::File(file) => write(file, file::metrics(metrics, source, since, now).into_iter()),
            Output::Http { .. } if metrics.series().next().is_none() => {}
            Output::Http { .. } => self.post("v1/metrics", &otlp::metrics(metrics, source, since, now)),
        }
    }

    fn post(&self, path: &str, body: &serde_json::Value) {
        let Output::Http { runtime, client, endpoint, headers } = self else { return };
        let mut request = client.post(format!("{endpoint}/{path}")).json(body);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        // Telemetry that is lost is no reason to stop work; headers may be secret and are not logged.
        match runtime.block_on(async { request.send().await }) {
            Ok(answer) if answer.status().is_success() => {}
            Ok(answer) => {
                tracing::warn!(status = %answer.status(), "the telemetry collector refused a batch");
            }
            Err(error) => {
                tracing::warn!(error = %error.without_url(), "the telemetry collector cannot be reached");
            }
        }
    }
}

fn write(file: &mut BufWriter<File>, lines: impl Iterator<Item = serde_json::Value>) {
    for line in lines {
        if let Err(error) = writeln!(file, "{line}") {
            tracing::warn!(%error, "writing telemetry failed");
            return;
        }
    }
    if let Err(error) = file.flush() {
        tracing::warn!(%error, "writing telemetry failed");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::span::{Attributes, Kind, SpanWork};

    #[track_caller]
    fn check(news: bool, seconds: u64, due: bool) {
        let told = Instant::now();
        let now = told + Duration::from_secs(seconds);
        assert_eq!(Figures { told, news }.due(now, Schedule::USUAL.metrics), due);
    }

    #[test]
    fn figures_are_due_once_a_minute_if_there_are_new_ones() {
        check(true, 59, false);
        check(true, 60, true);
        check(false, 600, false);
    }

    fn span() -> Span {
        let now = Timestamp::UNIX_EPOCH;
        Span {
            trace: "t".to_owned(),
            id: "s".to_owned(),
            parent: None,
            name: "execute_tool x".to_owned(),
            kind: Kind::Internal,
            start: now,
            end: now,
            attributes: Attributes::new(),
            events: Vec::new(),
            error: None,
            work: SpanWork::Tool { name: "x".to_owned() },
        }
    }

    /// Reads what is written while nothing has ended yet, until a line of figures has come.
    fn figures(file: &std::path::Path) -> String {
        let begun = Instant::now();
        // Far above what it needs on a loaded machine; reaching it is a failure, never a measurement.
        while begun.elapsed() < Duration::from_secs(60) {
            let text = std::fs::read_to_string(file).unwrap();
            if let Some(line) = text.lines().find(|line| line.contains("github.copilot.tool.call.count")) {
                return line.to_owned();
            }
            std::thread::yield_now();
        }
        panic!("no figures were written");
    }

    #[test]
    fn figures_are_written_while_the_work_goes_on() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("telemetry.jsonl");
        let source =
            Instrumentation { scope: "s".to_owned(), service: "s".to_owned(), version: "1".to_owned() };
        let schedule = Schedule { batch: Duration::from_millis(1), metrics: Duration::ZERO };
        let destination = Destination::File(file.clone());
        let exporter = Exporter::start_at(schedule, destination, source, || Timestamp::UNIX_EPOCH).unwrap();
        exporter.send(span());
        assert!(!figures(&file).is_empty());
        exporter.finish();
    }
}
