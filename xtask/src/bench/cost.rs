//! `cargo xtask bench cost`: tokens and simulated cost of the same work, beside other agents, at the same simulated vendor.
//!
//! Every agent does the same: it changes a file, reads three, prints a lot, and says that it is done. What differs is what
//! each sends along: its system prompt, its tools, how it shows results, and how much of that the vendor's cache keeps.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::contender::{Contender, Kind};
use super::table::{Bar, Table, Unit};
use super::{Model, compare};

/// A vendor, a model of it, and who can ask it.
struct Vendor {
    name: &'static str,
    model: &'static str,
    /// Path of the API below the simulator's address.
    path: &'static str,
    peers: &'static [Kind],
}

/// The models are ones that every agent here asks in a way that the vendor takes.
const VENDORS: [Vendor; 2] = [
    Vendor { name: "anthropic", model: "claude-sonnet-4-6", path: "", peers: &[Kind::Copilot, Kind::Claude] },
    Vendor {
        name: "openai-responses",
        model: "gpt-5.6-sol",
        path: "/v1",
        peers: &[Kind::Copilot, Kind::Codex],
    },
];

pub(crate) fn run(hangar: &Path, peers: &Path, cache: &Path) -> Result<()> {
    for vendor in &VENDORS {
        let mut contenders = vec![Contender::new(Kind::Hangar, hangar.to_owned(), cache, "")?];
        let installed = Contender::peers(peers, cache, "")?;
        contenders.extend(installed.into_iter().filter(|peer| vendor.peers.contains(&peer.kind)));
        let mut table = compare(&contenders, |contender, table| measure(hangar, vendor, contender, table));
        table.set_bars(&[
            ("input tokens", Bar::ShareOfBestPeer(1.0)),
            ("cost, thousandths of a dollar", Bar::ShareOfBestPeer(1.0)),
        ]);
        println!("\n{} with {}\n\n{table}", vendor.name, vendor.model);
    }
    Ok(())
}

fn measure(hangar: &Path, vendor: &Vendor, contender: &Contender, table: &mut Table) -> Result<()> {
    let simulator = Model::start_with(hangar, &["--vendor", vendor.name, "--lenient"])?;
    let project = contender.project();
    for (file, text) in [("a.txt", "alpha\n"), ("b.txt", "beta\n"), ("c.txt", "gamma\n")] {
        std::fs::write(project.join(file), text)?;
    }
    let job = contender.job_at(
        vendor.name,
        vendor.model,
        &format!("{}{}", simulator.url, vendor.path),
        &work(contender.kind, &project),
    );
    job.cost().context("the work")?;
    let stats = stats(&simulator.url)?;
    let figure = |pointer: &str| stats.pointer(pointer).and_then(Value::as_f64);
    let name = contender.kind.name();
    let (Some(input), Some(cost)) = (figure("/totals/usage/input"), figure("/totals/cost")) else {
        bail!("the simulator does not say what was used: {stats}");
    };
    table.add("requests", Unit::Pieces, name, figure("/totals/answers").unwrap_or_default());
    table.add("input tokens", Unit::Pieces, name, input);
    let read = figure("/totals/usage/cache_read").unwrap_or_default();
    table.add("of them from the cache", Unit::Percent, name, read * 100.0 / input.max(1.0));
    table.add("output tokens", Unit::Pieces, name, figure("/totals/usage/output").unwrap_or_default());
    table.add("cost, thousandths of a dollar", Unit::Tenths, name, cost * 1000.0);
    Ok(())
}

/// The work as markers that the simulated vendor follows, with the tools of each agent.
fn work(kind: Kind, project: &Path) -> String {
    let commands = [
        "echo delta >> a.txt",
        "cat a.txt",
        "cat b.txt",
        "cat c.txt",
        "seq 1 30000",
        "ls",
        "wc -l a.txt b.txt c.txt",
        "git status --short || true",
    ];
    let call = |command: &str| {
        let (tool, arguments) = match kind {
            Kind::Hangar | Kind::Copilot => ("bash", json!({ "command": command, "description": "work" })),
            Kind::Codex => ("exec_command", json!({ "cmd": command, "workdir": project })),
            Kind::Claude => ("Bash", json!({ "command": command, "description": "work" })),
        };
        format!("TOOL:{tool}:{arguments}\n")
    };
    format!("{}SAY:done", commands.iter().map(|command| call(command)).collect::<String>())
}

/// What the simulator counted.
fn stats(url: &str) -> Result<Value> {
    let address = url.strip_prefix("http://").context("the address of the simulator")?;
    let mut stream = TcpStream::connect(address)?;
    stream.write_all(
        format!("GET /__stats HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n").as_bytes(),
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    let start = body.find(['[', '{']).context("the simulator's figures")?;
    let end = body.rfind([']', '}']).context("the simulator's figures")?;
    let value: Value = serde_json::from_str(&body[start..=end])?;
    Ok(value.get(0).cloned().unwrap_or(value))
}
