//! Machines of a fleet, each with a home of its own.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use hangar_fleet::facts::SessionFact;
use hangar_fleet::fold::SessionFold;
use hangar_fleet::log::{self, LogEntry, LogItem};
use hangar_fleet::order::{Labels, Order, OrderId, OrderWorkspace, SessionSettings};
use hangar_fleet::queue::OrderQueue as _;
use hangar_fleet::record::FleetRecord;
use hangar_fleet::work_queue::WorkQueue;
use hangar_fleet::{Broker, FleetError, FleetSettings, VERSION, check};
use hangar_test_support::{Invocation, ModelServer, NatsServers, Running, Scratch};
use serde_json::Value;

use crate::hangar;

/// Lease of the tests, in seconds.
pub(super) const LEASE: u64 = 3;
/// Far longer than anything takes here.
const LONG: Duration = Duration::from_secs(240);
const LOOK: Duration = Duration::from_millis(50);

/// Servers, a model, a remote, and the machine that places orders.
pub(super) struct Fleet {
    pub(super) servers: NatsServers,
    pub(super) model: ModelServer,
    pub(super) here: Scratch,
    /// Lease of its machines, in seconds.
    lease: u64,
}

/// A machine with a worker.
pub(super) struct Worker {
    pub(super) scratch: Scratch,
    pub(super) running: Running,
}

impl Fleet {
    pub(super) fn new(servers: NatsServers) -> Self {
        Self::with_lease(servers, LEASE)
    }

    pub(super) fn with_lease(servers: NatsServers, lease: u64) -> Self {
        let fleet = Self { servers, model: ModelServer::start(), here: Scratch::new(), lease };
        fleet.configure(&fleet.here, &fleet.servers.url());
        let seed = fleet.here.root().join("seed");
        std::fs::create_dir_all(&seed).unwrap();
        std::fs::write(seed.join("README"), "hello\n").unwrap();
        let remote = fleet.remote();
        fleet.git(&["init", "--quiet", "--bare", &remote]);
        let at = seed.to_string_lossy().into_owned();
        for args in [
            &["init", "--quiet", "-b", "main"][..],
            &["add", "README"],
            &["-c", "user.name=t", "-c", "user.email=t@t", "commit", "--quiet", "-m", "first"],
            &["push", "--quiet", &remote, "main"],
        ] {
            fleet.git(&[&["-C", at.as_str()], args].concat());
        }
        fleet.git(&["--git-dir", &remote, "symbolic-ref", "HEAD", "refs/heads/main"]);
        fleet
    }

    pub(super) fn configure(&self, scratch: &Scratch, url: &str) {
        let lease = self.lease;
        std::fs::create_dir_all(scratch.state()).unwrap();
        let config = format!("[fleet]\nurl = \"{url}\"\nlease_seconds = {lease}\n");
        std::fs::write(scratch.state().join("config.toml"), config).unwrap();
    }

    /// Path of the bare repository that all machines push to.
    pub(super) fn remote(&self) -> String {
        self.here.root().join("remote.git").to_string_lossy().into_owned()
    }

    pub(super) fn git(&self, args: &[&str]) -> String {
        let output = Command::new("git").args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// A file of the work that was kept of a session.
    pub(super) fn kept(&self, session: &str, file: &str) -> String {
        let remote = self.remote();
        self.git(&["--git-dir", &remote, "show", &format!("refs/hangar/{session}:{file}")])
    }

    /// Starts a worker, and waits until it is there.
    pub(super) fn worker(&self, name: &str, args: &[&str]) -> Worker {
        self.worker_at(name, &self.servers.url(), args)
    }

    /// The same with other addresses of the servers.
    pub(super) fn worker_at(&self, name: &str, url: &str, args: &[&str]) -> Worker {
        let scratch = Scratch::new();
        self.configure(&scratch, url);
        self.worker_in(scratch, name, args)
    }

    /// Starts a worker on a machine that is there.
    pub(super) fn worker_in(&self, scratch: Scratch, name: &str, args: &[&str]) -> Worker {
        let invocation = hangar(&scratch, &self.model);
        self.worker_as(invocation, scratch, name, args)
    }

    /// The same with a model that never answers.
    pub(super) fn worker_without_answers(
        &self,
        scratch: Scratch,
        name: &str,
        silent: &TcpListener,
    ) -> Worker {
        let url = format!("http://{}", silent.local_addr().unwrap());
        let invocation = hangar(&scratch, &self.model).provider(&url);
        self.worker_as(invocation, scratch, name, &[])
    }

    fn worker_as(&self, invocation: Invocation, scratch: Scratch, name: &str, args: &[&str]) -> Worker {
        let before = jiff::Timestamp::now().to_string();
        let invocation =
            invocation.within(Duration::from_secs(3600)).args(["worker", "--name", name]).args(args);
        let worker = Worker { running: invocation.start(), scratch };
        self.until(&format!("{name} is ready"), |workers| {
            // A heartbeat of an earlier worker of that name does not count.
            let beats = |row: &Value| row["worker"]["at"].as_str().is_some_and(|at| at >= &before[..19]);
            workers.iter().any(|row| row["worker"]["name"] == name && row["state"] == "ready" && beats(row))
        });
        worker
    }

    /// `hangar` on the machine that places orders.
    pub(super) fn hangar(&self, args: &[&str]) -> Invocation {
        hangar(&self.here, &self.model).within(LONG).args(args)
    }

    /// An order whose events come back as JSON.
    pub(super) fn place(&self, prompt: &str, more: &[&str]) -> Invocation {
        let remote = self.remote();
        let order = ["run", "--fleet", "--output-format", "json", "--remote", &remote, "-p", prompt];
        self.hangar(&order).args(more)
    }

    /// Waits until the workers are as expected.
    pub(super) fn until(&self, what: &str, expected: impl Fn(&[Value]) -> bool) {
        let deadline = Instant::now() + LONG;
        loop {
            let listed = self.hangar(&["workers", "--json"]).finish();
            // Servers that were killed may still be electing a leader.
            let rows: Result<Vec<Value>, _> = serde_json::from_str(&listed.stdout);
            if let (0, Ok(rows)) = (listed.exit, &rows)
                && expected(rows)
            {
                return;
            }
            assert!(Instant::now() < deadline, "never: {what}\n{listed:#?}");
            std::thread::sleep(LOOK);
        }
    }

    /// The log of a session on the servers.
    pub(super) fn log(&self, session: &str) -> Vec<LogEntry> {
        let id = session.parse().unwrap();
        self.asked(async |broker| log::read(&broker, &log::session_subject(&broker, &id)).await)
    }

    /// An order of the remote, as the queue takes it.
    pub(super) fn order(&self, session: &str, prompt: &str) -> Order {
        Order {
            v: VERSION,
            id: OrderId(uuid::Uuid::new_v4().to_string()),
            session: session.to_owned(),
            labels: Labels::default(),
            prompt: prompt.to_owned(),
            settings: SessionSettings::default(),
            workspace: OrderWorkspace::Git { remote: self.remote(), reference: None },
            from: "test".to_owned(),
            placed: jiff::Timestamp::now(),
        }
    }

    /// An answer of the servers. Those that were killed may take a while until they have one.
    pub(super) fn asked<T>(&self, ask: impl AsyncFn(Broker) -> Result<T, FleetError>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let deadline = Instant::now() + LONG;
        loop {
            let settings = FleetSettings::of_url(&self.servers.url()).unwrap();
            let settings = settings.with_lease(self.lease).unwrap();
            let answer = runtime.block_on(async { ask(Broker::connect(settings, "checker").await?).await });
            match answer {
                Ok(answer) => return answer,
                Err(error) => assert!(Instant::now() < deadline, "{error}"),
            }
            std::thread::sleep(LOOK);
        }
    }

    /// Whether no order of a session ever came to the servers: none waits or is carried out any more, and its log is empty.
    pub(super) fn was_never_accepted(&self, session: &str) -> bool {
        let deadline = Instant::now() + LONG;
        while self.log(session).is_empty() {
            let waiting = self.asked(async |broker| WorkQueue::new(&broker).count().await);
            if waiting == 0 {
                return self.log(session).is_empty();
            }
            assert!(Instant::now() < deadline, "{waiting} orders are left");
            std::thread::sleep(LOOK);
        }
        false
    }

    /// What lists show of all sessions.
    pub(super) fn facts(&self) -> impl Fn() -> Vec<SessionFact> {
        let settings = FleetSettings::of_url(&self.servers.url()).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let broker = runtime.block_on(Broker::connect(settings, "checker")).unwrap();
        move || runtime.block_on(broker.facts::<SessionFact>()).unwrap()
    }

    /// Checks the log of a session that has ended, and returns the workers that claimed it.
    #[track_caller]
    pub(super) fn check(&self, session: &str) -> Vec<String> {
        let entries = self.log(session);
        let problems: Vec<String> =
            check::problems(&entries).into_iter().chain(check::unfinished(&entries)).collect();
        assert_eq!(problems, Vec::<String>::new(), "{entries:#?}");
        claims(&entries)
    }
}

/// Workers that claimed a log, in order.
pub(super) fn claims(entries: &[LogEntry]) -> Vec<String> {
    let claims = entries.iter().filter_map(|entry| match &entry.item {
        LogItem::Record(FleetRecord::Claimed { worker, .. }) => Some(worker.clone()),
        _ => None,
    });
    claims.collect()
}

/// Waits until the log of a session is as expected.
pub(super) fn until_log(fleet: &Fleet, session: &str, what: &str, expected: impl Fn(&SessionFold) -> bool) {
    let deadline = Instant::now() + LONG;
    loop {
        let entries = fleet.log(session);
        if expected(&SessionFold::of(&entries)) {
            return;
        }
        assert!(Instant::now() < deadline, "never: {what}\n{entries:#?}");
        std::thread::sleep(LOOK);
    }
}

/// Waits for a file, and returns its text.
pub(super) fn file(path: &PathBuf) -> String {
    let deadline = Instant::now() + LONG;
    loop {
        if let Ok(text) = std::fs::read_to_string(path)
            && !text.is_empty()
        {
            return text;
        }
        assert!(Instant::now() < deadline, "{} does not come", path.display());
        std::thread::sleep(LOOK);
    }
}

/// A link to a server that can be cut.
pub(super) struct Link {
    port: u16,
    cut: Arc<AtomicBool>,
}

impl Link {
    pub(super) fn to(server: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let cut = Arc::new(AtomicBool::new(false));
        let is_cut = Arc::clone(&cut);
        std::thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if is_cut.load(Ordering::Relaxed) {
                    continue;
                }
                let Ok(far) = TcpStream::connect(("127.0.0.1", server)) else { continue };
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let is_cut = Arc::clone(&is_cut);
                    std::thread::spawn(move || pass(from, to, &is_cut));
                }
            }
        });
        Self { port, cut }
    }

    pub(super) fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// Cuts or mends it. While it is cut, bytes are swallowed, as by a firewall.
    pub(super) fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::Relaxed);
    }
}

fn pass(mut from: TcpStream, mut to: TcpStream, is_cut: &AtomicBool) {
    let mut buffer = [0; 64 << 10];
    let mut was_cut = false;
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        // A connection that lost bytes is of no more use.
        was_cut |= is_cut.load(Ordering::Relaxed);
        if was_cut && !is_cut.load(Ordering::Relaxed) {
            break;
        }
        if !was_cut && to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}
