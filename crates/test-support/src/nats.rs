//! Real NATS servers on loopback, one or a cluster, which a test may kill and start again.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::namespace::Namespace;

/// Time in which a server answers after its start, on a loaded machine.
const START: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(20);

/// Program of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NatsVersion {
    /// The pinned release.
    Current,
    /// The one of Debian.
    Debian,
}

impl NatsVersion {
    fn program(self) -> PathBuf {
        let below = match self {
            NatsVersion::Current => "e2e/nats/.venv/bin/nats-server",
            NatsVersion::Debian => "e2e/nats/debian/usr/sbin/nats-server",
        };
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(below);
        assert!(path.exists(), "{below} is not installed; `cargo xtask test` installs it");
        path
    }
}

/// Servers that end with the test.
pub struct NatsServers {
    servers: Vec<Server>,
    _directory: tempfile::TempDir,
}

struct Server {
    /// Words of the command before its options.
    command: Vec<String>,
    host: String,
    config: PathBuf,
    port: u16,
    child: Option<Child>,
}

impl NatsServers {
    /// One server.
    pub fn one() -> Self {
        Self::start(NatsVersion::Current, 1, "")
    }

    /// A cluster of three.
    pub fn three() -> Self {
        Self::start(NatsVersion::Current, 3, "")
    }

    /// One server in a network of its own. Its address is that over the first link.
    pub fn within(namespace: &Namespace) -> Self {
        let server = NatsVersion::Current.program().to_string_lossy().into_owned();
        let command = namespace.entering().into_iter().chain([server]).collect();
        Self::launch(command, &namespace.address(0), 1, "")
    }

    /// Servers with more configuration.
    pub fn start(version: NatsVersion, count: usize, more: &str) -> Self {
        let command = vec![version.program().to_string_lossy().into_owned()];
        Self::launch(command, "127.0.0.1", count, more)
    }

    fn launch(command: Vec<String>, host: &str, count: usize, more: &str) -> Self {
        let directory = tempfile::Builder::new().prefix("hangar-nats-").tempdir().expect("a directory");
        // Held until all are known, so that no two are the same.
        let held: Vec<TcpListener> =
            (0..2 * count).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
        let ports: Vec<u16> = held.iter().map(|held| held.local_addr().expect("an address").port()).collect();
        drop(held);
        let (clients, routes) = ports.split_at(count);
        let listen = if host == "127.0.0.1" { host } else { "0.0.0.0" };
        let servers = (0..count).map(|n| {
            let data = directory.path().join(format!("n{n}"));
            let mut text = format!("server_name: n{n}\nlisten: {listen}:{}\n", clients[n]);
            if !more.contains("jetstream") {
                // Servers of a cluster keep what they confirm in memory for a while, and two that are killed lose it.
                let sync = if count > 1 { ", sync_interval: always" } else { "" };
                let _ = writeln!(text, "jetstream {{ store_dir: {data:?}{sync} }}");
            }
            if count > 1 {
                let all: Vec<String> = routes.iter().map(|port| format!("nats://127.0.0.1:{port}")).collect();
                let all = all.join(", ");
                let _ = writeln!(
                    text,
                    "cluster {{ name: test, listen: \"127.0.0.1:{}\", routes: [{all}] }}",
                    routes[n]
                );
            }
            text.push_str(more);
            let config = directory.path().join(format!("n{n}.conf"));
            std::fs::write(&config, text).expect("a configuration");
            let (command, host) = (command.clone(), host.to_owned());
            Server { command, host, config, port: clients[n], child: None }
        });
        let mut servers = Self { servers: servers.collect(), _directory: directory };
        (0..count).for_each(|n| servers.spawn(n));
        (0..count).for_each(|n| servers.wait(n));
        servers
    }

    /// Addresses of all, as `--fleet` takes them.
    pub fn url(&self) -> String {
        let all: Vec<String> = (0..self.servers.len()).map(|n| self.address(n)).collect();
        all.join(",")
    }

    /// Address of one.
    pub fn address(&self, n: usize) -> String {
        format!("nats://{}:{}", self.servers[n].host, self.servers[n].port)
    }

    pub fn port(&self, n: usize) -> u16 {
        self.servers[n].port
    }

    pub fn count(&self) -> usize {
        self.servers.len()
    }

    /// Kills one, as a power cut would.
    pub fn kill(&mut self, n: usize) {
        if let Some(mut child) = self.servers[n].child.take() {
            child.kill().expect("a server that runs");
            child.wait().expect("its end");
        }
    }

    /// Starts one again that was killed.
    pub fn restart(&mut self, n: usize) {
        self.spawn(n);
        self.wait(n);
    }

    fn spawn(&mut self, n: usize) {
        let server = &mut self.servers[n];
        let log =
            std::fs::File::options().create(true).append(true).open(server.config.with_extension("log"));
        let child = Command::new(&server.command[0])
            .args(&server.command[1..])
            .arg("-c")
            .arg(&server.config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("a log"))
            .spawn();
        server.child = Some(child.unwrap_or_else(|error| panic!("starting {:?}: {error}", server.command)));
    }

    /// Waits until a server greets its clients.
    fn wait(&self, n: usize) {
        let server = &self.servers[n];
        let deadline = Instant::now() + START;
        loop {
            if let Ok(stream) = TcpStream::connect((server.host.as_str(), server.port)) {
                let mut line = String::new();
                if BufReader::new(stream).read_line(&mut line).is_ok() && line.starts_with("INFO ") {
                    return;
                }
            }
            assert!(Instant::now() < deadline, "server {n} does not answer:\n{}", self.log(n));
            std::thread::sleep(LOOK);
        }
    }

    /// What a server says.
    pub fn log(&self, n: usize) -> String {
        std::fs::read_to_string(self.servers[n].config.with_extension("log")).unwrap_or_default()
    }
}

impl Drop for NatsServers {
    fn drop(&mut self) {
        for n in 0..self.servers.len() {
            if let Some(mut child) = self.servers[n].child.take() {
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    }
}
