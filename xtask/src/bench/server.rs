//! `cargo xtask bench server`: what a server of the SDK protocol costs, beside the real CLI in the same run.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::json;

use super::contender::{Contender, Kind};
use super::rpc::Server;
use super::table::{Bar, Table, Unit};
use super::{Model, megabytes, middle, millis};

const STARTS: usize = 10;
const SLOW_STARTS: usize = 3;
/// A server that has just started still fetches and frees; its memory is looked at after that.
const SETTLE: Duration = Duration::from_millis(500);
const SESSIONS: usize = 1000;
/// What the others are asked for too: a thousand would take them minutes.
const FEW_SESSIONS: usize = 100;
const TOOL_CALLS: usize = 50;
/// All sessions together.
const LIMIT: Duration = Duration::from_secs(300);

pub(crate) fn run(program: &Path, peers: &Path, cache: &Path) -> Result<()> {
    let model = Model::start(program)?;
    let mut contenders = vec![Contender::new(Kind::Hangar, program.to_path_buf(), cache, &model.url)?];
    let others = Contender::peers(peers, cache, &model.url)?;
    contenders.extend(others.into_iter().filter(|other| other.kind == Kind::Copilot));
    let mut table = super::compare(&contenders, measure_one);
    table.set_bars(&[
        ("spawn to ping", Bar::Below(30.0)),
        ("memory after start", Bar::Below(20.0)),
        ("first session", Bar::Below(5.0)),
        ("an idle session", Bar::Below(100.0)),
        ("round trip of a client's tool", Bar::Below(2.0)),
        ("1000 sessions: lost", Bar::Below(0.0)),
        ("1000 sessions: peak memory", Bar::Below(150.0)),
    ]);
    println!("\n{table}");
    Ok(())
}

fn measure_one(contender: &Contender, table: &mut Table) -> Result<()> {
    let name = contender.kind.name();
    let state = contender.state();
    if state.exists() {
        std::fs::remove_dir_all(&state).context("removing the sessions of the last benchmark")?;
    }
    // The first start on a machine unpacks and creates.
    start(contender)?;
    let starts = if contender.kind == Kind::Hangar { STARTS } else { SLOW_STARTS };
    let mut firsts = Vec::new();
    let mut pings = Vec::new();
    for _ in 0..starts {
        let (mut server, ping) = start(contender)?;
        pings.push(ping);
        let begun = Instant::now();
        Stage { server: &mut server, contender }.create()?;
        firsts.push(begun.elapsed());
    }
    table.add("spawn to ping", Unit::Milliseconds, name, millis(middle(pings)));
    table.add("first session", Unit::Milliseconds, name, millis(middle(firsts)));

    let (mut server, _) = start(contender)?;
    std::thread::sleep(SETTLE);
    table.add("memory after start", Unit::Megabytes, name, megabytes(server.memory()));
    let mut stage = Stage { server: &mut server, contender };
    let session = stage.create()?;
    table.add(
        "round trip of a client's tool",
        Unit::Milliseconds,
        name,
        millis(middle(stage.tool_calls(&session)?)),
    );
    let before = server.memory();
    let count = if contender.kind == Kind::Hangar { SESSIONS } else { FEW_SESSIONS };
    for _ in 0..count {
        Stage { server: &mut server, contender }.create()?;
    }
    std::thread::sleep(SETTLE);
    let each = server.memory().saturating_sub(before) / count as u64;
    table.add("an idle session", Unit::Kilobytes, name, each as f64 / 1024.0);
    drop(server);

    let few = many(contender, FEW_SESSIONS)?;
    table.add("100 sessions: wall", Unit::Milliseconds, name, millis(few.wall));
    table.add("100 sessions: peak memory", Unit::Megabytes, name, megabytes(few.peak_memory));
    if contender.kind == Kind::Hangar {
        let all = many(contender, SESSIONS)?;
        table.add("1000 sessions: lost", Unit::Pieces, name, all.lost as f64);
        table.add("1000 sessions: wall", Unit::Milliseconds, name, millis(all.wall));
        table.add("1000 sessions: peak memory", Unit::Megabytes, name, megabytes(all.peak_memory));
    }
    Ok(())
}

/// A server that has answered its first `ping`, and how long that took from its start.
fn start(contender: &Contender) -> Result<(Server, Duration)> {
    let args = ["--headless", "--no-auto-update", "--log-level", "error", "--stdio", "--no-auto-login"];
    let begun = Instant::now();
    let mut server = Server::start(&contender.job_with(args.map(str::to_owned).to_vec()))?;
    server.request("ping", &json!({}))?;
    let taken = begun.elapsed();
    server.request("connect", &json!({}))?;
    Ok((server, taken))
}

/// What became of many sessions that each made a turn with three calls of a client's tool, all at once.
struct Many {
    wall: Duration,
    lost: usize,
    peak_memory: u64,
}

fn many(contender: &Contender, count: usize) -> Result<Many> {
    let (mut server, _) = start(contender)?;
    let begun = Instant::now();
    let mut stage = Stage { server: &mut server, contender };
    let sessions = (0..count).map(|_| stage.create()).collect::<Result<Vec<_>>>()?;
    for session in &sessions {
        stage.send(session, 3)?;
    }
    let mut working = sessions.len();
    let mut lost = 0;
    while working > 0 {
        if begun.elapsed() > LIMIT {
            lost += working;
            break;
        }
        match stage.next_event()? {
            (_, Heard::Idle) => working -= 1,
            (session, Heard::Asked { request }) => stage.answer(&session, &request)?,
            (_, Heard::Failed) => lost += 1,
            (_, Heard::Completed | Heard::Other) => {}
        }
    }
    Ok(Many { wall: begun.elapsed(), lost, peak_memory: server.peak_memory()? })
}

/// What a session says that matters here.
enum Heard {
    Asked { request: String },
    Completed,
    Idle,
    Failed,
    Other,
}

struct Stage<'a> {
    server: &'a mut Server,
    contender: &'a Contender,
}

impl Stage<'_> {
    fn create(&mut self) -> Result<String> {
        let tool = json!({
            "name": "lookup", "description": "Looks something up.", "skipPermission": true,
            "parameters": { "type": "object", "properties": { "key": { "type": "string" } } },
        });
        let provider = json!({
            "type": "openai", "apiKey": "dummy", "baseUrl": format!("{}/v1", self.contender.model_url()),
        });
        let config = json!({ "model": "mock-model", "provider": provider, "tools": [tool] });
        let created = self.server.request("session.create", &config)?;
        created["sessionId"].as_str().map(str::to_owned).context("a session without an id")
    }

    fn send(&mut self, session: &str, calls: usize) -> Result<()> {
        let call = |n: usize| format!("TOOL:lookup:{{\"key\":\"{n}\"}}\n");
        let prompt = format!("{}SAY:done", (0..calls).map(call).collect::<String>());
        self.server.post("session.send", &json!({ "sessionId": session, "prompt": prompt }))?;
        Ok(())
    }

    fn answer(&mut self, session: &str, request: &str) -> Result<()> {
        let answer = json!({ "sessionId": session, "requestId": request, "result": "found" });
        self.server.post("session.tools.handlePendingToolCall", &answer)?;
        Ok(())
    }

    fn next_event(&mut self) -> Result<(String, Heard)> {
        let message = self.server.next_message()?;
        if let Some(error) = message.get("error") {
            bail!("a request failed: {error}");
        }
        let (params, event) = (&message["params"], &message["params"]["event"]);
        let heard = match event["type"].as_str() {
            Some("external_tool.requested") => {
                Heard::Asked { request: event["data"]["requestId"].as_str().unwrap_or_default().to_owned() }
            }
            Some("tool.execution_complete") => Heard::Completed,
            Some("session.idle") => Heard::Idle,
            Some("session.error") => Heard::Failed,
            _ => Heard::Other,
        };
        Ok((params["sessionId"].as_str().unwrap_or_default().to_owned(), heard))
    }

    /// From each question to the client, which answers at once, to the word that the call has ended. The model has no
    /// part in that time.
    fn tool_calls(&mut self, session: &str) -> Result<Vec<Duration>> {
        self.send(session, TOOL_CALLS)?;
        let mut taken = Vec::new();
        let mut asked: Option<Instant> = None;
        loop {
            match self.next_event()?.1 {
                Heard::Asked { request } => {
                    asked = Some(Instant::now());
                    self.answer(session, &request)?;
                }
                Heard::Completed => taken.extend(asked.take().map(|since| since.elapsed())),
                Heard::Idle => return Ok(taken),
                Heard::Failed => bail!("the session failed"),
                Heard::Other => {}
            }
        }
    }
}
