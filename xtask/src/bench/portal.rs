//! `cargo xtask bench portal`: what the portal costs at rest, with a thousand sessions at work, and with two hundred readers
//! of one session.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::table::{Bar, Table, Unit};
use super::{measure, megabytes, millis};
use crate::shell;

const NAME: &str = "hangar";
const SESSIONS: usize = 1000;
/// Requests at once while sessions are opened.
const OPENERS: usize = 8;
const READERS: usize = 200;
/// Threads that the readers share; they stand for other machines.
const READER_THREADS: usize = 2;
const EVENTS: usize = 5000;
const SETTLE: Duration = Duration::from_secs(2);
const AT_REST: Duration = Duration::from_secs(10);
const LIMIT: Duration = Duration::from_secs(300);
const NAP: Duration = Duration::from_micros(500);

pub(crate) fn run(program: &Path, cache: &Path) -> Result<()> {
    let mut table = Table::new(vec![NAME]);
    let portal = Portal::start(program, cache)?;
    at_rest(&portal, &mut table)?;
    many_readers(&portal, &mut table)?;
    drop(portal);
    let portal = Portal::start(program, cache)?;
    many_sessions(&portal, &mut table)?;
    table.set_bars(&[
        ("at rest: memory", Bar::Below(40.0)),
        ("at rest: CPU in 10 s", Bar::Below(5.0)),
        ("200 readers: lost", Bar::Below(0.0)),
        ("200 readers: delay, p99", Bar::Below(50.0)),
        ("1000 sessions: lost", Bar::Below(0.0)),
        ("1000 sessions: memory of each", Bar::Below(1024.0)),
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
    let mut feed = portal.stream("/api/v1/stream")?;
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
    // What a thousand sessions say is more than one slow reader may miss, so the list is asked instead.
    drop(feed.read_some());
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

/// Readers of one session that says a thousand things a second.
fn many_readers(portal: &Portal, table: &mut Table) -> Result<()> {
    let id = portal.open("SAY:ready")?;
    while portal.get(&format!("/api/v1/sessions/{id}"))?["state"] != "idle" {
        std::thread::sleep(Duration::from_millis(50));
    }
    let path = format!("/api/v1/sessions/{id}/stream");
    let mut readers =
        (0..READERS).map(|_| Ok(Reader::new(portal.stream(&path)?))).collect::<Result<Vec<_>>>()?;
    let begun = Instant::now();
    portal
        .post(&format!("/api/v1/sessions/{id}/messages"), &json!({ "text": format!("STREAM:{EVENTS}:1") }))?;
    let share = READERS.div_ceil(READER_THREADS);
    std::thread::scope(|scope| {
        for readers in readers.chunks_mut(share) {
            scope.spawn(move || read_all(readers, begun));
        }
    });
    let wall = begun.elapsed();
    let lost = readers.iter().filter(|reader| !reader.is_whole()).count();
    let mut delays: Vec<u64> = readers.iter().flat_map(|reader| reader.delays.iter().copied()).collect();
    delays.sort_unstable();
    let at = |share: f64| delays.get((delays.len() as f64 * share) as usize).copied().unwrap_or(0) as f64;
    table.add("200 readers: lost", Unit::Pieces, NAME, lost as f64);
    table.add("200 readers: events per second", Unit::Pieces, NAME, EVENTS as f64 / wall.as_secs_f64());
    table.add("200 readers: delay, median", Unit::Milliseconds, NAME, at(0.5));
    table.add("200 readers: delay, p99", Unit::Milliseconds, NAME, at(0.99));
    Ok(())
}

fn read_all(readers: &mut [Reader], begun: Instant) {
    while readers.iter().any(|reader| !reader.done) && begun.elapsed() < LIMIT {
        let mut quiet = true;
        for reader in readers.iter_mut().filter(|reader| !reader.done) {
            quiet &= !reader.read();
        }
        if quiet {
            std::thread::sleep(NAP);
        }
    }
}

/// One reader: puts the pieces of the answer together and notes how late each came.
struct Reader {
    stream: Stream,
    text: String,
    answer: String,
    expected: Option<String>,
    delays: Vec<u64>,
    done: bool,
}

impl Reader {
    fn new(stream: Stream) -> Self {
        let delays = Vec::with_capacity(EVENTS);
        Self { stream, text: String::new(), answer: String::new(), expected: None, delays, done: false }
    }

    /// Says whether there was anything.
    fn read(&mut self) -> bool {
        let Some(bytes) = self.stream.read_some() else { return false };
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64;
        self.text.push_str(&String::from_utf8_lossy(&bytes));
        while let Some(end) = self.text.find("\n\n") {
            let message: String = self.text.drain(..end + 2).collect();
            self.hear(&message, now);
        }
        self.done |= bytes.is_empty();
        true
    }

    fn hear(&mut self, message: &str, now: u64) {
        let is = |kind: &str| message.contains(&format!("{{\"type\":\"{kind}\""));
        if is("assistant.message_delta") {
            self.answer.push_str(between(message, "\"deltaContent\":\"", "\"").unwrap_or_default());
            if let Some(said) = between(message, "\"timestamp\":\"", "\"").and_then(day_millis) {
                // The bench does not run over midnight often enough to matter.
                self.delays.push((now % DAY).saturating_sub(said));
            }
        } else if is("assistant.message") {
            let content = between(message, "\"content\":\"", "\",\"").unwrap_or_default();
            if content != "ready" {
                self.expected = Some(content.to_owned());
            }
        } else if is("session.idle") && self.expected.is_some() {
            self.done = true;
        }
    }

    fn is_whole(&self) -> bool {
        self.delays.len() >= EVENTS && self.expected.as_deref() == Some(&self.answer)
    }
}

const DAY: u64 = 24 * 3600 * 1000;

fn between<'a>(text: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let start = text.find(before)? + before.len();
    let length = text[start..].find(after)?;
    Some(&text[start..start + length])
}

/// Milliseconds since midnight, of a time like `2026-01-01T10:00:00.000Z`.
fn day_millis(time: &str) -> Option<u64> {
    let part = |from: usize, to: usize| time.get(from..to)?.parse::<u64>().ok();
    Some(((part(11, 13)? * 60 + part(14, 16)?) * 60 + part(17, 19)?) * 1000 + part(20, 23)?)
}

struct Portal {
    process: Child,
    port: u16,
    workspace: PathBuf,
}

impl Portal {
    fn start(program: &Path, cache: &Path) -> Result<Self> {
        let home = cache.join("portal");
        if home.exists() {
            std::fs::remove_dir_all(&home).context("removing what the last benchmark left")?;
        }
        let workspace = home.join("work");
        std::fs::create_dir_all(&workspace).context("making a directory to work in")?;
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

    fn get(&self, path: &str) -> Result<Value> {
        self.ask("GET", path, "")
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.ask("POST", path, &body.to_string())
    }

    fn open(&self, prompt: &str) -> Result<String> {
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

    fn stream(&self, path: &str) -> Result<Stream> {
        let reader = self.connect("GET", path, "", false)?;
        reader.get_ref().set_nonblocking(true)?;
        Ok(Stream { rest: reader.buffer().to_vec(), stream: reader.into_inner(), left: 0 })
    }

    fn memory(&self) -> u64 {
        measure::memory_of_tree(self.process.id())
    }

    fn peak_memory(&self) -> Result<u64> {
        measure::peak_memory_of(self.process.id())
    }

    fn cpu(&self) -> Result<Duration> {
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

/// The body of a stream, without the frames of its chunks.
struct Stream {
    stream: TcpStream,
    rest: Vec<u8>,
    /// Bytes of the chunk that is being read.
    left: usize,
}

impl Stream {
    /// What has come. Empty at the end, `None` if nothing has.
    fn read_some(&mut self) -> Option<Vec<u8>> {
        let mut buffer = [0; 64 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => return Some(Vec::new()),
            Ok(read) => self.rest.extend_from_slice(&buffer[..read]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => return Some(Vec::new()),
        }
        let mut body = Vec::new();
        let mut at = 0;
        loop {
            if self.left > 0 {
                let taken = self.left.min(self.rest.len() - at);
                body.extend_from_slice(&self.rest[at..at + taken]);
                (self.left, at) = (self.left - taken, at + taken);
                if self.left > 0 {
                    break;
                }
            }
            // The end of a chunk, then the length of the next.
            let head = &self.rest[at..];
            let skip = if head.starts_with(b"\r\n") { 2 } else { 0 };
            let Some(end) = head[skip..].windows(2).position(|pair| pair == b"\r\n") else { break };
            let length = std::str::from_utf8(&head[skip..skip + end]).unwrap_or_default();
            self.left = usize::from_str_radix(length, 16).unwrap_or(0);
            at += skip + end + 2;
        }
        self.rest.drain(..at);
        (!body.is_empty()).then_some(body)
    }
}
