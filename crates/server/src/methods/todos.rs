//! The todos that the agent keeps in the session's database.

use serde_json::json;

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    Method { name: "session.plan.readSqlTodos", run: |call| Box::pin(rows(call)) },
    Method { name: "session.plan.readSqlTodosWithDependencies", run: |call| Box::pin(board(call)) },
];

async fn rows(call: Call) -> Result<Reply, Failure> {
    let todos = call.live()?.ask(|task| task.todos()).await?;
    let board = todos.read().await.map_err(Failure::new)?;
    Reply::of(json!({ "rows": board.rows }))
}

async fn board(call: Call) -> Result<Reply, Failure> {
    let todos = call.live()?.ask(|task| task.todos()).await?;
    let board = todos.read().await.map_err(Failure::new)?;
    Reply::of(json!(board))
}
