//! A client that keeps the files of its sessions.

use super::{Call, Failure, Method, Reply};

pub(super) const METHODS: &[Method] =
    &[Method { name: "sessionFs.setProvider", run: |call| Box::pin(set_provider(call)) }];

async fn set_provider(call: Call) -> Result<Reply, Failure> {
    let provider = call.params()?;
    call.hub.keep_files(&call.client, provider)?;
    Reply::success()
}
