//! `cargo xtask up`: a first look without a key. Builds the program with its pages and starts the portal on the scripted
//! model, with a job that is done within seconds, one that goes on, and a session that asks for a permission.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::json;

use crate::{root, shell, web};

const BUG: &str = "def add(a, b):\n    return a - b\n";
/// How long the server may take to answer one of our requests.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// A session that has a question, in the marker language of the scripted model.
const ASKING: &str = "Write down what was fixed.\n\
    SAY:I write a line into CHANGES.md.\n\
    TOOL:create:{\"path\":\"CHANGES.md\",\"file_text\":\"- `add` adds.\\n\"}\n\
    SAY:It is written down.";

/// Where `hangar up` listens unless it is told otherwise.
const DEFAULT_PORT: u16 = 8888;

/// Builds the program and runs its portal, with further flags for `hangar up`.
pub(crate) fn run_demo(flags: &[&str]) -> Result<()> {
    // Building takes longer than finding out that it was for nothing.
    check_port(flags)?;
    web::build()?;
    shell::run(shell::program("cargo").args(["build", "--package", "hangar-cli"]))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from);
    let hangar = std::path::absolute(target.join("debug").join("hangar"))?;
    let project = std::path::absolute(target.join("demo").join("project"))?;
    std::fs::create_dir_all(&project).with_context(|| format!("cannot make {}", project.display()))?;
    std::fs::write(project.join("calc.py"), BUG)?;
    let mut server = start(&hangar, &target.join("demo").join("home"), &project, flags)?;
    let shown = address(&mut server).and_then(|address| fill(&address, &project).map(|()| address));
    match shown {
        Ok(address) => {
            println!("\n  {address}\n\nCtrl+C ends it. Your own model: `{} doctor`\n", hangar.display());
        }
        Err(error) => {
            let _ = server.kill();
            return Err(error);
        }
    }
    let status = server.wait().context("cannot wait for the server")?;
    if !status.success() {
        bail!("the server ended with {status}");
    }
    Ok(())
}

/// Fails where another program has the port, with the command that works.
fn check_port(flags: &[&str]) -> Result<()> {
    let port = port(flags);
    if let Err(error) = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        && error.kind() == ErrorKind::AddrInUse
    {
        bail!(
            "port {port} is in use, perhaps by another portal; `cargo xtask up --port 0` picks a free port"
        );
    }
    Ok(())
}

/// The port among the flags. What is no number is for `hangar up` to refuse.
fn port(flags: &[&str]) -> u16 {
    let behind = flags.iter().skip_while(|flag| **flag != "--port").nth(1);
    let joined = flags.iter().find_map(|flag| flag.strip_prefix("--port="));
    joined.or(behind.copied()).and_then(|port| port.parse().ok()).unwrap_or(DEFAULT_PORT)
}

fn start(hangar: &Path, home: &Path, project: &Path, flags: &[&str]) -> Result<Child> {
    Command::new(hangar)
        .args(["up", "--entry"])
        .arg(root().join("examples/demo.yaml"))
        .arg("--directory")
        .arg(project)
        .args(flags)
        .current_dir(project)
        .env("HANGAR_HOME", std::path::absolute(home)?)
        .env("COPILOT_MODEL", "scripted")
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| format!("cannot run {}", hangar.display()))
}

/// Where the server says that it is. What it says later is for the reader.
fn address(server: &mut Child) -> Result<String> {
    let mut lines = BufReader::new(server.stdout.take().context("the server has no output")?).lines();
    let found = loop {
        let Some(line) = lines.next() else { bail!("the server ended before it was there") };
        let line = line?;
        println!("{line}");
        if let Some(at) = line.find("http://") {
            break line[at..].split_whitespace().next().unwrap_or_default().to_owned();
        }
    };
    std::thread::spawn(move || lines.map_while(Result::ok).for_each(|line| println!("{line}")));
    Ok(found)
}

fn fill(address: &str, project: &Path) -> Result<()> {
    for job in ["fix", "watch"] {
        post(address, "/api/v1/runs", &json!({ "job": job, "workspace": project }))?;
    }
    let asking = json!({
        "workspace": project, "model": "scripted", "policy": "ask", "name": "Write the changes down", "prompt": ASKING,
    });
    post(address, "/api/v1/sessions", &asking)
}

/// One request over a connection of its own: nothing that would be worth a library.
fn post(address: &str, path: &str, body: &serde_json::Value) -> Result<()> {
    let host = address.trim_start_matches("http://").trim_end_matches('/');
    let mut connection = TcpStream::connect(host).with_context(|| format!("cannot reach {address}"))?;
    connection.set_read_timeout(Some(ANSWER_WITHIN))?;
    let body = body.to_string();
    write!(
        connection,
        "POST {path} HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).with_context(|| format!("reading the answer of {path}"))?;
    let status = answer.split_whitespace().nth(1).unwrap_or_default();
    if !status.starts_with('2') {
        bail!("{path} was answered with {}", answer.lines().last().unwrap_or_default());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_found_among_the_flags() {
        assert_eq!(port(&[]), DEFAULT_PORT);
        assert_eq!(port(&["--open"]), DEFAULT_PORT);
        assert_eq!(port(&["--open", "--port", "8899"]), 8899);
        assert_eq!(port(&["--port=0"]), 0);
    }
}
