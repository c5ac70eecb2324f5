//! `cargo xtask bench portal`: what the portal costs at rest, with a thousand sessions at work, with two hundred readers of
//! one session, and how soon a long session is on the screen.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::table::{Bar, Table, Unit};
use super::{first_screen, measure, megabytes, millis, readers};
use crate::shell;

pub(crate) const NAME: &str = "hangar";
const SESSIONS: usize = 1000;
/// Requests at once while sessions are opened.
const OPENERS: usize = 8;
const SETTLE: Duration = Duration::from_secs(2);
const AT_REST: Duration = Duration::from_secs(10);
const LIMIT: Duration = Duration::from_secs(300);

pub(crate) fn run(program: &Path, cache: &Path) -> Result<()> {
    let mut table = Table::new(vec![NAME]);
    let portal = Portal::start(program, cache)?;
    at_rest(&portal, &mut table)?;
    readers::measure(&portal, &mut table)?;
    drop(portal);
    let portal = Portal::start(program, cache)?;
    many_sessions(&portal, &mut table)?;
    drop(portal);
    if let Err(error) = first_screen::measure(program, cache, &mut table) {
        println!("the first screen was not measured: {error:#}");
    }
    table.set_bars(&[
        ("at rest: memory", Bar::Below(40.0)),
        ("at rest: CPU in 10 s", Bar::Below(5.0)),
        ("200 readers: events per second", Bar::AtLeast(1000.0)),
        ("200 readers: events lost", Bar::Below(0.0)),
        ("200 readers: out of order", Bar::Below(0.0)),
        ("200 readers: delay, p99", Bar::Below(50.0)),
        ("1000 sessions: lost", Bar::Below(0.0)),
        ("1000 sessions: memory of each", Bar::Below(1024.0)),
        ("50,000 events: first screen, cold", Bar::Below(1000.0)),
        ("50,000 events: first screen, warm", Bar::Below(1000.0)),
    ]);
    println!("\n{table}");
    Ok(())
}

fn at_rest(portal: &Portal, table: &mut Table) -> Result<()> {
    std::thread::sleep(SETTLE);
    let before = portal.cpu()?;
    std::thread::sleep(AT_REST);
    table.add("at rest: memory", Unit::Megabytes, NAME, megabytes(portal.memory()));
    table.add("at rest: CPU in 10 s", Unit::Milliseconds, NAME, millis(portal.cpu()? - before));
    Ok(())
}

/// Sessions that all work at once, each with three calls of a tool.
fn many_sessions(portal: &Portal, table: &mut Table) -> Result<()> {
    std::thread::sleep(SETTLE);
    let before = portal.memory();
    // Somebody watches, and does not read: what a thousand sessions say is more than one slow reader may miss, so the list is
    // asked instead.
    let _watched = portal.stream("/api/v1/stream")?;
    let begun = Instant::now();
    let opened: Vec<Result<()>> = std::thread::scope(|scope| {
        let openers = (0..OPENERS).map(|at| {
            scope.spawn(move || {
                (at..SESSIONS).step_by(OPENERS).try_for_each(|_| {
                    portal.open("REPEAT:3:TOOL:glob:{\"pattern\":\"*.none\"}\nDELAY:500\nSAY:done").map(drop)
                })
            })
        });
        let openers: Vec<_> = openers.collect();
        openers
            .into_iter()
            .map(|opener| opener.join().unwrap_or_else(|_| bail!("an opener failed")))
            .collect()
    });
    opened.into_iter().collect::<Result<()>>()?;
    let lost = loop {
        let idle = portal.count("idle")?;
        if idle == SESSIONS || begun.elapsed() > LIMIT {
            break SESSIONS - idle;
        }
        std::thread::sleep(Duration::from_millis(500));
    };
    table.add("1000 sessions: wall", Unit::Milliseconds, NAME, millis(begun.elapsed()));
    table.add("1000 sessions: lost", Unit::Pieces, NAME, lost as f64);
    let peak = portal.peak_memory()?;
    table.add("1000 sessions: peak memory", Unit::Megabytes, NAME, megabytes(peak));
    let each = peak.saturating_sub(before) / SESSIONS as u64;
    table.add("1000 sessions: memory of each", Unit::Kilobytes, NAME, each as f64 / 1024.0);
    Ok(())
}

pub(crate) struct Portal {
    process: Child,
    port: u16,
    workspace: PathBuf,
}

impl Portal {
    fn start(program: &Path, cache: &Path) -> Result<Self> {
        Self::start_with(program, cache, |_| Ok(()))
    }

    /// With something in its home that was there before.
    pub(crate) fn start_with(
        program: &Path,
        cache: &Path,
        furnish: impl FnOnce(&Path) -> std::io::Result<()>,
    ) -> Result<Self> {
        let home = cache.join("portal");
        if home.exists() {
            std::fs::remove_dir_all(&home).context("removing what the last benchmark left")?;
        }
        let workspace = home.join("work");
        std::fs::create_dir_all(&workspace).context("making a directory to work in")?;
        furnish(&home.join("home")).context("making a home")?;
        let mut process = shell::program(&program.to_string_lossy())
            .args(["up", "--port", "0"])
            .current_dir(&workspace)
            .env("HANGAR_HOME", home.join("home"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the portal")?;
        let mut line = String::new();
        if let Some(stdout) = &mut process.stdout {
            BufReader::new(stdout).read_line(&mut line).context("reading where the portal listens")?;
        }
        match line.trim().rsplit_once(':').and_then(|(_, port)| port.parse().ok()) {
            Some(port) => Ok(Self { process, port, workspace }),
            None => {
                let _ = process.kill();
                bail!("the portal did not say where it listens: {line:?}");
            }
        }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    fn connect(&self, method: &str, path: &str, body: &str, close: bool) -> Result<BufReader<TcpStream>> {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port))?;
        stream.set_read_timeout(Some(LIMIT))?;
        let connection = if close { "close" } else { "keep-alive" };
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1:{}\r\nconnection: {connection}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            self.port,
            body.len()
        )?;
        let mut reader = BufReader::new(stream);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let status = line.split(' ').nth(1).unwrap_or_default().to_owned();
        while reader.read_line(&mut line)? > 2 {}
        if !status.starts_with('2') {
            let mut body = String::new();
            let _ = reader.read_to_string(&mut body);
            bail!("{method} {path}: {status} {body}");
        }
        Ok(reader)
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Result<Value> {
        let mut text = String::new();
        self.connect(method, path, body, true)?.read_to_string(&mut text)?;
        Ok(serde_json::from_str(&text)?)
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        self.ask("GET", path, "")
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask("POST", path, &body.to_string())
    }

    pub(crate) fn open(&self, prompt: &str) -> Result<String> {
        let body = json!({
            "workspace": self.workspace, "model": "scripted", "policy": "allow-all", "prompt": prompt,
        });
        let opened = self.post("/api/v1/sessions", &body)?;
        opened["id"].as_str().map(str::to_owned).context("a session without an id")
    }

    /// Sessions in a state.
    fn count(&self, state: &str) -> Result<usize> {
        let mut count = 0;
        let mut cursor = String::new();
        loop {
            let page = self.get(&format!("/api/v1/sessions?state={state}&limit=500{cursor}"))?;
            count += page["sessions"].as_array().map_or(0, Vec::len);
            match page["next"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return Ok(count),
            }
        }
    }

    /// A stream, and what has come of its body already. Reading more of it does not wait.
    pub(crate) fn stream(&self, path: &str) -> Result<(TcpStream, Vec<u8>)> {
        let reader = self.connect("GET", path, "", false)?;
        reader.get_ref().set_nonblocking(true)?;
        let come = reader.buffer().to_vec();
        Ok((reader.into_inner(), come))
    }

    fn memory(&self) -> u64 {
        measure::memory_of_tree(self.process.id())
    }

    fn peak_memory(&self) -> Result<u64> {
        measure::peak_memory_of(self.process.id())
    }

    pub(crate) fn cpu(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.process.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok()).unwrap_or(0);
        // The kernel counts in hundredths of a second.
        Ok(Duration::from_millis((ticks(11) + ticks(12)) * 10))
    }
}

impl Drop for Portal {
    fn drop(&mut self) {
        measure::kill_tree(self.process.id());
        // It was just killed, so this does not wait for long.
        let _ = self.process.wait();
    }
}
