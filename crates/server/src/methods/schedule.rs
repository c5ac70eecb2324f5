//! Prompts that a session sends itself later.

use serde::Deserialize;
use serde_json::json;

use super::{Call, Failure, Method, Reply};
use crate::schedules::{Moment, ScheduledPrompt, WantedSchedule};

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
    // What is in the log is sent by later processes of the user too.
    let logged = call.client.is_trusted();
    let added = call
        .live()?
        .ask(move |task| {
            let recurring = recurring.unwrap_or(true);
            let wanted = WantedSchedule { prompt, interval: &interval, recurring, logged };
            task.schedules.add(wanted, now).map(|(created, entry)| {
                created.into_iter().for_each(|created| task.record(created));
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
        let (cancelled, entry) = task.schedules.stop(id)?;
        cancelled.into_iter().for_each(|cancelled| task.record(cancelled));
        Some(entry)
    });
    let stopped = stopped.await?;
    Reply::of(match stopped {
        Some(entry) => json!({ "entry": entry }),
        None => json!({}),
    })
}
