//! Prompts that a session sends itself later.

use hangar_protocol::data::ScheduleCancelled;
use serde::Deserialize;
use serde_json::json;

use super::{Call, Failure, Method, Reply};
use crate::schedules::{Moment, ScheduledPrompt};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.schedule.add", run: |call| Box::pin(add(call)) },
    Method { name: "session.schedule.list", run: |call| Box::pin(list(call)) },
    Method { name: "session.schedule.stop", run: |call| Box::pin(stop(call)) },
];

async fn add(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Params {
        interval: String,
        prompt: String,
        recurring: Option<bool>,
        display_prompt: Option<String>,
    }
    let Params { interval, prompt, recurring, display_prompt } = call.params()?;
    let prompt = ScheduledPrompt { prompt, shown: display_prompt };
    let now = Moment { instant: tokio::time::Instant::now(), time: (call.hub.config().now)() };
    let added = call
        .live()?
        .ask(move |task| {
            let added = task.schedules.add(prompt, &interval, recurring.unwrap_or(true), now);
            added.map(|(created, entry)| {
                task.record(created);
                entry
            })
        })
        .await?;
    Reply::of(match added {
        Ok(entry) => json!({ "entry": entry }),
        Err(error) => json!({ "error": error }),
    })
}

async fn list(call: Call) -> Result<Reply, Failure> {
    let entries = call.live()?.ask(|task| task.schedules.list()).await?;
    Reply::of(json!({ "entries": entries }))
}

async fn stop(call: Call) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        id: u64,
    }
    let Params { id } = call.params()?;
    let live = call.live()?;
    let stopped = live.ask(move |task| {
        let stopped = task.schedules.stop(id);
        if stopped.is_some() {
            task.record(ScheduleCancelled { id });
        }
        stopped
    });
    let stopped = stopped.await?;
    Reply::of(match stopped {
        Some(entry) => json!({ "entry": entry }),
        None => json!({}),
    })
}
