//! A client that makes the requests to models in the server's place.

use serde_json::json;

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] = &[
    Method { name: "llmInference.setProvider", run: |call| Box::pin(set_provider(call)) },
    Method { name: "llmInference.httpResponseStart", run: |call| Box::pin(start(call)) },
    Method { name: "llmInference.httpResponseChunk", run: |call| Box::pin(chunk(call)) },
];

async fn set_provider(call: Call) -> Result<Reply, Failure> {
    call.client.become_request_proxy();
    Reply::success()
}

async fn start(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "accepted": call.client.exchanges.start(call.params()?) }))
}

async fn chunk(call: Call) -> Result<Reply, Failure> {
    Reply::of(json!({ "accepted": call.client.exchanges.chunk(call.params()?).await }))
}
