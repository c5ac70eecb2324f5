//! `cargo xtask bench terminal`: the interactive views of agents side by side, each in a pty of 120x40 that answers queries.

mod long_session;
mod processes;
mod pty;
mod resize;
mod views;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::table::{Bar, Table, Unit};
use super::{Model, megabytes, middle, millis};
use pty::Pty;
use views::View;

/// Starts of each view, and answers of each kind; figures are medians.
const STARTS: usize = 5;
const ANSWERS: u32 = 5;
/// Keys whose echo is measured.
const KEYS: usize = 60;
const KEY_GAP: Duration = Duration::from_millis(60);
/// Tokens of the paced answer and their distance: 125 a second.
const TOKENS: u32 = 1_000;
const TOKEN_MS: u32 = 8;
const BURST: u32 = 3_000;
const TURNS: usize = 200;
/// Time in which a view has to show something that it was asked for.
const PATIENCE: Duration = Duration::from_secs(60);
/// A screen that has been the same for so long is complete.
const QUIET: Duration = Duration::from_millis(1_500);
const IDLE: Duration = Duration::from_secs(10);
/// A character that no screen shows by itself, typed to see its echo.
const KEY: &str = "§";

pub(super) fn run(hangar: &Path, peers: &Path, cache: &Path) -> Result<()> {
    let model = Model::start(hangar)?;
    let views = View::all(hangar, peers, cache, &model.url)?;
    let mut table = Table::new(views.iter().map(|view| view.name).collect());
    for view in &views {
        eprintln!("measuring {} …", view.name);
        if let Err(error) = measure(view, &mut table) {
            println!("{} was not measured to the end: {error:#}", view.name);
        }
    }
    table.set_bars(&[
        ("spawn to first echo", Bar::ShareOfBestPeer(0.3)),
        ("key to echo, idle", Bar::ShareOfBestPeer(0.5)),
        ("key to echo, busy", Bar::ShareOfBestPeer(0.5)),
        ("written per 1,000 tokens", Bar::ShareOfBestPeer(0.9)),
        ("CPU per 1,000 tokens", Bar::ShareOfBestPeer(0.2)),
        ("3,000 tokens at once", Bar::ShareOfBestPeer(0.5)),
        ("memory at the prompt", Bar::ShareOfBestPeer(0.15)),
        ("memory after 200 turns", Bar::ShareOfBestPeer(0.1)),
        ("growth over 200 turns", Bar::Below(5.0)),
        ("idle CPU in 10 s", Bar::Below(0.0)),
        ("wakes in 10 s", Bar::Below(0.0)),
        ("50,000 events opened", Bar::Below(300.0)),
        ("resize: tokens lost", Bar::Below(0.0)),
        ("resize: tokens doubled", Bar::Below(0.0)),
        ("resize: 80 shell lines kept", Bar::AtLeast(80.0)),
    ]);
    println!("\n{table}");
    Ok(())
}

fn measure(view: &View, table: &mut Table) -> Result<()> {
    let name = view.name;
    // The first start on a machine unpacks and creates; it is not what people wait for.
    let mut warm = Pty::spawn(view)?;
    first_echo(&mut warm).context("the first start")?;
    warm.close();
    let mut echoes = Vec::new();
    for _ in 0..STARTS {
        let mut pty = Pty::spawn(view)?;
        echoes.push(first_echo(&mut pty)?);
        pty.close();
    }
    table.add("spawn to first echo", Unit::Milliseconds, name, millis(middle(echoes)));

    let mut pty = Pty::spawn(view)?;
    first_echo(&mut pty)?;
    pty.settle(QUIET);
    clear(&mut pty);
    table.add("memory at the prompt", Unit::Megabytes, name, megabytes(pty.memory()));
    let (cpu, wakes) = (pty.cpu(), pty.wakes());
    std::thread::sleep(IDLE);
    table.add("idle CPU in 10 s", Unit::Milliseconds, name, millis(pty.cpu().saturating_sub(cpu)));
    table.add("wakes in 10 s", Unit::Pieces, name, pty.wakes().saturating_sub(wakes) as f64);
    table.add("key to echo, idle", Unit::Tenths, name, millis(keys(&mut pty)?));
    clear(&mut pty);

    stream(&mut pty, name, table)?;
    let mut bursts = Vec::new();
    for more in 0..ANSWERS {
        // The last token of each answer is on no screen before.
        let tokens = BURST + more;
        bursts.push(prompt(&mut pty, &format!("STREAM:{tokens}"), &format!("tok{}", tokens - 1))?);
        pty.settle(QUIET);
    }
    table.add("3,000 tokens at once", Unit::Milliseconds, name, millis(middle(bursts)));
    let start = pty.memory();
    for turn in 0..TURNS {
        prompt(&mut pty, &format!("SAY:turn {turn} is done"), &format!("turn {turn} is done"))?;
    }
    pty.settle(QUIET);
    let after = pty.memory();
    table.add("memory after 200 turns", Unit::Megabytes, name, megabytes(after));
    table.add("growth over 200 turns", Unit::Megabytes, name, megabytes(after.saturating_sub(start)));
    pty.close();
    if let Some(resize::Outcome { lost, doubled, shell_lines }) = resize::run(view)? {
        table.add("resize: tokens lost", Unit::Pieces, name, lost as f64);
        table.add("resize: tokens doubled", Unit::Pieces, name, doubled as f64);
        table.add("resize: 80 shell lines kept", Unit::Pieces, name, shell_lines as f64);
    }
    if view.is_ours() {
        table.add("50,000 events opened", Unit::Milliseconds, name, millis(long_session::open(view)?));
    }
    Ok(())
}

/// Time from the start of a program to the echo of a key that is pressed again and again.
fn first_echo(pty: &mut Pty) -> Result<Duration> {
    let began = pty.began();
    while began.elapsed() < PATIENCE {
        pty.send(KEY.as_bytes())?;
        // Some take keys in quick succession for a paste and show nothing until it ends.
        if let Some(seen) = pty.wait_for(KEY, Duration::from_millis(150)) {
            return Ok(seen.duration_since(began));
        }
    }
    bail!("no key was shown within {} s:\n{}", PATIENCE.as_secs(), pty.tail())
}

fn clear(pty: &mut Pty) {
    // Back over everything that was typed; there is no key that clears everywhere.
    let _ = pty.send(&b"\x7f".repeat(80));
    pty.settle(Duration::from_millis(300));
}

/// Median time from a key to its echo.
fn keys(pty: &mut Pty) -> Result<Duration> {
    let mut times = Vec::new();
    for _ in 0..KEYS {
        pty.forget();
        let pressed = Instant::now();
        pty.send(KEY.as_bytes())?;
        if let Some(seen) = pty.wait_for(KEY, Duration::from_secs(2)) {
            times.push(seen.duration_since(pressed));
        }
        std::thread::sleep(KEY_GAP);
    }
    if times.len() < KEYS / 2 {
        bail!("most keys were not shown");
    }
    Ok(middle(times))
}

/// Sends a prompt and waits for the end of its answer.
fn prompt(pty: &mut Pty, text: &str, end: &str) -> Result<Duration> {
    pty.forget();
    pty.send(text.as_bytes())?;
    // A line break right behind a text is a pasted one for some.
    std::thread::sleep(Duration::from_millis(120));
    pty.forget();
    let sent = Instant::now();
    pty.send(b"\r")?;
    match pty.wait_until_shown(end, PATIENCE) {
        Some(seen) => Ok(seen.duration_since(sent)),
        None => bail!("no answer to {text:?} within {} s:\n{}", PATIENCE.as_secs(), pty.tail()),
    }
}

/// A paced answer: bytes, processor time, and keys meanwhile.
fn stream(pty: &mut Pty, name: &str, table: &mut Table) -> Result<()> {
    pty.settle(Duration::from_millis(300));
    let (mut written, mut used) = (Vec::new(), Vec::new());
    for more in 0..ANSWERS {
        let tokens = TOKENS + more;
        let (bytes, cpu) = (pty.written(), pty.cpu());
        prompt(pty, &format!("STREAM:{tokens}:{TOKEN_MS}"), &format!("tok{}", tokens - 1))?;
        pty.settle(QUIET);
        written.push(pty.written() - bytes);
        used.push(pty.cpu().saturating_sub(cpu));
    }
    table.add("written per 1,000 tokens", Unit::Kilobytes, name, middle(written) as f64 / 1e3);
    table.add("CPU per 1,000 tokens", Unit::Milliseconds, name, millis(middle(used)));
    let tokens = TOKENS + ANSWERS;
    pty.send(format!("STREAM:{tokens}:{TOKEN_MS}").as_bytes())?;
    std::thread::sleep(Duration::from_millis(120));
    pty.send(b"\r")?;
    std::thread::sleep(Duration::from_secs(1));
    table.add("key to echo, busy", Unit::Tenths, name, millis(keys(pty)?));
    if pty.wait_until_shown(&format!("tok{}", tokens - 1), PATIENCE).is_none() {
        bail!("the paced answer did not end");
    }
    pty.settle(QUIET);
    clear(pty);
    Ok(())
}
