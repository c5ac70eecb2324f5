//! The skills of a session: which there are, which are switched on, which were used.

use serde::Deserialize;
use serde_json::{Value, json};

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.skills.list", run: |call| Box::pin(list(call)) },
    Method { name: "session.skills.getInvoked", run: |call| Box::pin(invoked(call)) },
    Method { name: "session.skills.enable", run: |call| Box::pin(switch(call, true)) },
    Method { name: "session.skills.disable", run: |call| Box::pin(switch(call, false)) },
    Method { name: "session.skills.reload", run: |call| Box::pin(reload(call)) },
    Method { name: "session.skills.ensureLoaded", run: |call| Box::pin(ensure_loaded(call)) },
];

async fn list(call: Call) -> Result<Reply, Failure> {
    let skills = call.live()?.ask(|task| task.engine.skills().list()).await?;
    Reply::of(json!({ "skills": skills }))
}

async fn invoked(call: Call) -> Result<Reply, Failure> {
    let skills: Vec<Value> = call
        .live()?
        .ask(|task| {
            let invoked = task.session().state().skills.iter().enumerate();
            let tell = |(index, skill): (usize, &hangar_protocol::data::SkillInvoked)| {
                let mut told = json!({
                    "name": skill.name,
                    "path": skill.path,
                    "content": skill.content,
                    "invokedAtTurn": index,
                });
                if let Some(tools) = &skill.allowed_tools {
                    told["allowedTools"] = json!(tools);
                }
                told
            };
            invoked.map(tell).collect()
        })
        .await?;
    Reply::of(json!({ "skills": skills }))
}

async fn switch(call: Call, enabled: bool) -> Result<Reply, Failure> {
    #[derive(Deserialize)]
    struct Params {
        name: String,
    }
    let Params { name } = call.params()?;
    let live = call.live()?;
    live.ask(move |task| {
        task.engine.skills().set_enabled(&name, enabled);
        task.renew_skills();
    })
    .await?;
    Reply::null()
}

async fn reload(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "warnings": read_again(&call).await?, "errors": [] }))
}

/// Reads the skills again. Says what is wrong with them.
pub(super) async fn read_again(call: &Call) -> Result<Vec<String>, Failure> {
    call.live()?
        .ask(|task| {
            let warnings = task.engine.skills().reload();
            task.renew_skills();
            warnings
        })
        .await
}

/// Does nothing: skills are loaded before a request can come.
async fn ensure_loaded(call: Call) -> Result<Reply, Failure> {
    call.live()?;
    Reply::null()
}
