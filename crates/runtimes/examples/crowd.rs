//! The cost of supervising agents. `cargo xtask bench runtimes` runs it; each mode prints one line of JSON.
//!
//! ```text
//! crowd many SESSIONS SECONDS           stand-ins that say 50 events a second each, all at once
//! crowd cost RUNTIME PROGRAM URL TURNS  turns of a real agent on a scripted model, ours beside its own share
//! ```
//!
//! Started as an agent is (`exec …`), it is the stand-in.
#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people who measure")]

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hangar_runtimes::agents;
use hangar_runtimes::environment::{RuntimeEnvironment, RuntimeSettings};
use hangar_runtimes::outcome::TurnResult;
use hangar_runtimes::runtime::{AgentOrder, RehearsalStage, Runtime, SessionCommand, SessionNews};
use rustix::process::{WaitOptions, set_child_subreaper, wait};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

const EVENTS_PER_SECOND: u64 = 50;
const SECONDS: &str = "CROWD_SECONDS";
/// How often memory is looked at while all of them speak.
const LOOKS: u32 = 8;
/// Clock ticks of `/proc` in a second.
const TICKS: f64 = 100.0;
/// How long processes that an agent left behind may take to be gone once they were killed.
const LEFTOVERS: Duration = Duration::from_secs(5);

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    // One thread: one core has to be enough.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    match args.as_slice() {
        ["exec", ..] => stand_in(),
        ["many", sessions, seconds] => {
            runtime.block_on(many(sessions.parse().unwrap(), seconds.parse().unwrap()));
        }
        ["cost", name, program, url, turns] => {
            runtime.block_on(cost(name, program, url, turns.parse().unwrap()));
        }
        _ => println!("see the head of crates/runtimes/examples/crowd.rs"),
    }
}

/// Speaks as codex does.
fn stand_in() {
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink()).unwrap();
    let seconds: u64 = std::env::var(SECONDS).unwrap().parse().unwrap();
    let mut stdout = std::io::stdout().lock();
    let begun = Instant::now();
    for n in 0..seconds * EVENTS_PER_SECOND {
        let item = json!({ "id": n.to_string(), "type": "agent_message", "text": "a sentence of the usual length, more or less" });
        writeln!(stdout, "{}", json!({ "type": "item.completed", "item": item })).unwrap();
        stdout.flush().unwrap();
        let due = Duration::from_secs_f64((n + 1) as f64 / EVENTS_PER_SECOND as f64);
        std::thread::sleep(due.saturating_sub(begun.elapsed()));
    }
    writeln!(
        stdout,
        "{}",
        json!({ "type": "turn.completed", "usage": { "input_tokens": 1, "output_tokens": 1 } })
    )
    .unwrap();
}

fn find(name: &str, program: &str) -> Arc<dyn Runtime> {
    let settings = RuntimeSettings { program: Some(program.to_owned()), ..Default::default() };
    let surroundings = RuntimeEnvironment {
        vars: std::env::vars().collect(),
        agents: BTreeMap::from([(name.to_owned(), settings)]),
        ..RuntimeEnvironment::bare(&std::env::temp_dir())
    };
    agents::all(&surroundings).into_iter().find(|runtime| runtime.card().name == name).unwrap()
}

async fn many(sessions: u64, seconds: u64) {
    let program = std::env::current_exe().unwrap();
    let runtime = find("codex", &program.display().to_string());
    let before = resident();
    let begun = Instant::now();
    let mut running = tokio::task::JoinSet::new();
    let (begins, mut speaking) = tokio::sync::mpsc::unbounded_channel();
    for _ in 0..sessions {
        let mut order = AgentOrder::new(uuid::Uuid::new_v4().to_string(), std::env::temp_dir());
        order.env.push((SECONDS.to_owned(), seconds.to_string()));
        let mut live = runtime.open(order).await.unwrap();
        let begins = begins.clone();
        running.spawn(async move {
            live.commands.send(SessionCommand::Send("go".to_owned())).await.unwrap();
            let mut heard = 0_u64;
            loop {
                match live.news.recv().await.unwrap() {
                    SessionNews::Event(event) if event.kind() == "assistant.message" => {
                        if heard == 0 {
                            begins.send(Instant::now()).unwrap();
                        }
                        heard += 1;
                    }
                    SessionNews::Event(_) => {}
                    SessionNews::TurnEnded(ended) => {
                        assert_eq!(ended.outcome.end, TurnResult::Completed);
                        return heard;
                    }
                }
            }
        });
    }
    // From when the last has begun to speak until the first ends, memory should stay what it is.
    let first = speaking.recv().await.unwrap();
    for _ in 1..sessions {
        speaking.recv().await.unwrap();
    }
    let left = (first + Duration::from_secs(seconds)).saturating_duration_since(Instant::now());
    let all_speak = (Instant::now(), own_cpu());
    let mut looks = Vec::new();
    for _ in 0..LOOKS {
        tokio::time::sleep(left / (LOOKS + 1)).await;
        looks.push(resident());
    }
    let cores = (own_cpu() - all_speak.1) / all_speak.0.elapsed().as_secs_f64();
    let mut heard = 0;
    while let Some(ended) = running.join_next().await {
        heard += ended.unwrap();
    }
    let said = sessions * seconds * EVENTS_PER_SECOND;
    let most = looks.iter().copied().max().unwrap_or_default();
    println!(
        "{}",
        json!({
            "sessions": sessions, "said": said, "lost": said - heard, "cores": cores,
            "startSeconds": (all_speak.0 - begun).as_secs_f64(),
            "megabytesPerSession": most.saturating_sub(before) as f64 / sessions as f64 / 1e6,
            "residentMegabytes": looks.iter().map(|bytes| *bytes as f64 / 1e6).collect::<Vec<_>>(),
        })
    );
}

async fn cost(name: &str, program: &str, url: &str, turns: u64) {
    // Children that an agent did not wait for become ours to wait for, and so part of its account.
    set_child_subreaper(Some(rustix::process::getpid())).unwrap();
    let runtime = find(name, program);
    let home = tempfile_dir();
    let mut order = AgentOrder::new(uuid::Uuid::new_v4().to_string(), home.clone());
    runtime.rehearse(&mut order, &RehearsalStage { model_url: url.to_owned(), home: home.clone() });
    order.limits.steps = Some(0);
    let before = resident();
    let mut live = runtime.open(order).await.unwrap();
    let begun = (own_cpu(), cpu_of_ended());
    for n in 0..turns {
        live.commands.send(SessionCommand::Send(format!("STREAM:100:1\nSAY:turn {n}"))).await.unwrap();
        loop {
            match live.news.recv().await.unwrap() {
                SessionNews::Event(_) => {}
                SessionNews::TurnEnded(ended) => {
                    assert_eq!(ended.outcome.end, TurnResult::Completed);
                    break;
                }
            }
        }
    }
    let ours = own_cpu() - begun.0;
    let held = resident().saturating_sub(before);
    drop(live);
    wait_for_leftovers().await;
    let theirs = cpu_of_ended() - begun.1;
    println!(
        "{}",
        json!({
            "runtime": name, "turns": turns, "ourSeconds": ours, "agentSeconds": theirs, "share": ours / theirs,
            "megabytesPerSession": held as f64 / 1e6,
        })
    );
    let _ = std::fs::remove_dir_all(home);
}

/// Waits for what the agent left behind. Our own watchdog is the one child that stays.
async fn wait_for_leftovers() {
    let begun = Instant::now();
    loop {
        while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
        let children = std::fs::read_to_string("/proc/thread-self/children").unwrap();
        if children.split_whitespace().count() <= 1 {
            return;
        }
        assert!(begun.elapsed() < LEFTOVERS, "the agent left processes behind: {children}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn tempfile_dir() -> std::path::PathBuf {
    let dir = std::env::temp_dir().join(format!("crowd-{}", uuid::Uuid::new_v4()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// Bytes of memory that this process holds.
fn resident() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).unwrap().parse::<u64>().unwrap() * 4096
}

/// Seconds of processor time that this process took.
fn own_cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Seconds of processor time that children took which have ended and were waited for, with all that they waited for.
fn cpu_of_ended() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<f64> =
        stat.rsplit(") ").next().unwrap().split(' ').map(|field| field.parse().unwrap_or(0.0)).collect();
    (fields[13] + fields[14]) / TICKS
}
