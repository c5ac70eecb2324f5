//! `hangar model serve`: the scripted model and simulated vendors for other programs, on loopback only.

use std::fs::{File, OpenOptions};
use std::net::Ipv4Addr;
use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Result};
use hangar_models::scripted::{Script, ServeOptions, serve};
use hangar_simulators::{Profile, Scenario, Simulator, Strictness};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::print_line;
use crate::args::ModelServeArgs;
use crate::exit::Exit;
use crate::providers::read_script;

pub(crate) fn run(args: ModelServeArgs) -> Result<Exit> {
    let script = args.script.as_deref().map_or_else(|| Ok(Script::default()), read_script)?;
    let script = script.with_default(args.default.clone());
    let simulators = simulators(&args, &script)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(async {
        let port = args.port;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .await
            .with_context(|| format!("cannot listen on 127.0.0.1:{port}"))?;
        let url = format!("http://{}", listener.local_addr()?);
        // A reader of the address may send a signal at once.
        let signals = [SignalKind::terminate(), SignalKind::interrupt()].map(signal);
        print_line(&format!("listening on {url}"))?;
        let shutdown = CancellationToken::new();
        let (served, ()) = if simulators.is_empty() {
            let mut options = ServeOptions::new(script, SystemTime::now);
            options.log = open_log(args.log.as_deref())?;
            tokio::join!(serve(listener, options, shutdown.clone()), interrupted(signals, shutdown))
        } else {
            for name in &args.vendor {
                print_line(&vendor_line(&url, name, args.vendor.len()))?;
            }
            let served = hangar_simulators::serve(listener, simulators, shutdown.clone());
            tokio::join!(served, interrupted(signals, shutdown))
        };
        served.context("the model server stopped")
    })?;
    Ok(Exit::Done)
}

/// Address of a vendor, and a model to start with.
fn vendor_line(url: &str, name: &str, vendors: usize) -> String {
    let profile = Profile::find(name);
    let path = profile.map_or("", |profile| profile.base_path);
    let model = profile.map_or("", |profile| profile.models[0]);
    let name_in_path = if vendors > 1 { format!("/{name}") } else { String::new() };
    format!("{name}: {url}{name_in_path}{path} (model {model})")
}

fn simulators(args: &ModelServeArgs, script: &Script) -> Result<Vec<Simulator>> {
    let scenario = args.scenario.as_deref().map(read_scenario).transpose()?;
    let strictness = if args.lenient { Strictness::Lenient } else { Strictness::Strict };
    let simulator = |name: &String| {
        let profile = Profile::find(name).with_context(|| format!("`{name}` is not a simulated vendor"))?;
        let mut simulator = profile.simulator()?.with_script(script.clone()).with_strictness(strictness);
        if let Some(scenario) = &scenario {
            simulator = simulator.with_scenario(scenario.clone());
        }
        if let Some(log) = open_log(args.log.as_deref())? {
            simulator = simulator.with_log(log);
        }
        Ok(simulator)
    };
    args.vendor.iter().map(simulator).collect()
}

fn read_scenario(path: &Path) -> Result<Scenario> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the scenario {}", path.display()))?;
    Scenario::parse(&text).with_context(|| format!("in {}", path.display()))
}

fn open_log(path: Option<&Path>) -> Result<Option<File>> {
    let open = |path: &Path| {
        let opened = OpenOptions::new().create(true).append(true).open(path);
        opened.with_context(|| format!("cannot write the log {}", path.display()))
    };
    path.map(open).transpose()
}

/// Waits for a signal to end, then stops the server.
async fn interrupted(signals: [std::io::Result<Signal>; 2], stop: CancellationToken) {
    let [terminated, interrupted] = signals.map(|signal| async {
        match signal {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    });
    tokio::select! {
        () = terminated => {}
        () = interrupted => {}
    }
    stop.cancel();
}
