//! A client of the SDK protocol on a server's standard input and output; as little of one as measuring needs.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::measure::{self, Job};

/// A server that is silent for longer is broken, not slow.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct Server {
    process: Child,
    stdin: ChildStdin,
    messages: Receiver<Value>,
    /// What came while an answer was waited for.
    unread: VecDeque<Value>,
    next_id: u64,
}

impl Server {
    pub(crate) fn start(job: &Job) -> Result<Self> {
        let label = job.program.display();
        let mut process = Command::new(&job.program)
            .args(&job.args)
            .env_clear()
            .envs(job.env.iter().map(|(key, value)| (key, value)))
            .current_dir(&job.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .with_context(|| format!("cannot start {label}"))?;
        let stdin = process.stdin.take().context("the server has no standard input")?;
        let stdout = process.stdout.take().context("the server has no standard output")?;
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            let mut stdout = BufReader::new(stdout);
            while let Ok(message) = read(&mut stdout) {
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Ok(Self { process, stdin, messages, unread: VecDeque::new(), next_id: 0 })
    }

    /// Asks without waiting for the answer, which comes among the messages.
    pub(crate) fn post(&mut self, method: &str, params: &Value) -> Result<u64> {
        self.next_id += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.next_id, "method": method, "params": params });
        let body = request.to_string();
        write!(self.stdin, "Content-Length: {}\r\n\r\n{body}", body.len())
            .and_then(|()| self.stdin.flush())
            .context("the server does not read")?;
        Ok(self.next_id)
    }

    pub(crate) fn request(&mut self, method: &str, params: &Value) -> Result<Value> {
        let id = self.post(method, params)?;
        loop {
            let mut message = self.receive()?;
            if message["id"] != id || message.get("method").is_some() {
                self.unread.push_back(message);
                continue;
            }
            if let Some(error) = message.get("error") {
                bail!("{method} failed: {error}");
            }
            return Ok(message["result"].take());
        }
    }

    /// The next message that nobody has looked at.
    pub(crate) fn next_message(&mut self) -> Result<Value> {
        self.unread.pop_front().map_or_else(|| self.receive(), Ok)
    }

    fn receive(&self) -> Result<Value> {
        self.messages.recv_timeout(PATIENCE).context("the server says nothing")
    }

    /// Bytes that the server and all that it started have in memory.
    pub(crate) fn memory(&self) -> u64 {
        measure::memory_of_tree(self.process.id())
    }

    /// The most that the server itself ever had in memory, by the kernel's account.
    pub(crate) fn peak_memory(&self) -> Result<u64> {
        measure::peak_memory_of(self.process.id())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        measure::kill_tree(self.process.id());
        // It was just killed, so this does not wait for long.
        let _ = self.process.wait();
    }
}

fn read(stdout: &mut BufReader<ChildStdout>) -> Result<Value> {
    let mut length = None;
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line)? == 0 {
            bail!("the server closed its output");
        }
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = Some(value.trim().parse::<usize>()?);
        }
    }
    let mut body = vec![0; length.context("a frame without a length")?];
    stdout.read_exact(&mut body)?;
    Ok(serde_json::from_slice(&body)?)
}
