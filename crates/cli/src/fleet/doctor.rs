//! Findings of `hangar doctor --fleet`: servers, streams, workers, and whether a write is confirmed.

use std::time::Instant;

use anyhow::Result;
use hangar_fleet::facts::{CordonFact, CordonMode, WorkerFact};
use hangar_fleet::queue::OrderQueue;
use hangar_fleet::work_queue::WorkQueue;
use jiff::Timestamp;

use super::listing::is_lost;
use crate::settings::Settings;

/// Share of a stream's limit from which on it is nearly full.
const NEARLY_FULL: f64 = 0.8;
/// Name of the fact that is written to see whether it is confirmed.
const PROBE: &str = "doctor-probe";

/// A finding: whether it is fine, what it is about, and a sentence.
pub(crate) struct FleetFinding {
    pub(crate) good: bool,
    pub(crate) subject: String,
    pub(crate) says: String,
}

pub(super) async fn examine(settings: &Settings, url: Option<&str>) -> Vec<FleetFinding> {
    let finding =
        |good, subject: &str, says: String| FleetFinding { good, subject: subject.to_owned(), says };
    let broker = match super::connect(settings, url, "hangar doctor").await {
        Ok(broker) => broker,
        Err(error) => return vec![finding(false, "fleet", format!("{error:#}"))],
    };
    let (version, name) = broker.server();
    let mut found = vec![finding(
        true,
        "fleet",
        format!("NATS {version} answers ({name}), of {}", broker.settings().shown()),
    )];
    let rest = async {
        let mut rest = Vec::new();
        for stream in broker.streams().await? {
            let full =
                stream.max_bytes.filter(|most| *most > 0).map(|most| stream.bytes as f64 / most as f64);
            let good = full.is_none_or(|full| full < NEARLY_FULL);
            let limit = full.map_or_else(String::new, |full| format!(", {:.0} % of its limit", full * 100.0));
            let says = format!(
                "{} messages, {} MB{limit}, {} copies",
                stream.messages,
                stream.bytes >> 20,
                stream.replicas
            );
            rest.push(finding(good, &format!("stream {}", stream.name), says));
        }
        let began = Instant::now();
        let probe = CordonFact { worker: PROBE.to_owned(), mode: CordonMode::Open, at: Timestamp::now() };
        broker.put_fact(&probe).await?;
        let took = began.elapsed().as_secs_f64() * 1000.0;
        rest.push(finding(true, "fleet writes", format!("confirmed after {took:.1} ms")));
        let workers = broker.facts::<WorkerFact>().await?;
        let there: Vec<&WorkerFact> =
            workers.iter().filter(|worker| !worker.gone && !is_lost(worker, &broker)).collect();
        let slots: u32 = there.iter().map(|worker| worker.slots).sum();
        let busy: u32 = there.iter().map(|worker| worker.busy).sum();
        let says = match there.len() {
            0 => "there is none; `hangar worker` starts one".to_owned(),
            count => format!("{count} there, {busy} of {slots} slots taken"),
        };
        rest.push(finding(!there.is_empty(), "fleet workers", says));
        let orders = WorkQueue::new(&broker).count().await?;
        rest.push(finding(true, "fleet orders", format!("{orders} wait or are carried out")));
        anyhow::Ok(rest)
    };
    match rest.await {
        Ok(rest) => found.extend(rest),
        Err(error) => found.push(finding(false, "fleet", format!("{error:#}"))),
    }
    found
}

/// The findings, from a command that has no runtime.
pub(crate) fn run(settings: &Settings, url: Option<&str>) -> Result<Vec<FleetFinding>> {
    Ok(super::runtime()?.block_on(examine(settings, url)))
}
