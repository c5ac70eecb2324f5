use std::path::PathBuf;
use std::sync::Arc;

use github_copilot_sdk::handler::ApproveAllHandler;
use github_copilot_sdk::types::SessionConfig;
use github_copilot_sdk::{Client, ClientOptions, Error};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let program = PathBuf::from(std::env::var("HANGAR").unwrap_or_else(|_| "hangar".to_owned()));
    let prompt = std::env::args().nth(1).unwrap_or_else(|| "What is the capital of Norway?".to_owned());
    let client = Client::start(ClientOptions::new().with_program(program)).await?;
    let config = SessionConfig::default().with_permission_handler(Arc::new(ApproveAllHandler));
    let session = client.create_session(config).await?;
    if let Some(answer) = session.send_and_wait(prompt).await? {
        println!("{}", answer.data["content"].as_str().unwrap_or_default());
    }
    session.disconnect().await?;
    client.stop().await.ok();
    Ok(())
}
