//! MCP servers of a session: their news become events, and sampling requests are checked against the session's current
//! rules.

use hangar_agent::driver::Driver;
use hangar_agent::log::LogError;
use hangar_agent::session::{Command, SessionInput};
use hangar_mcp::{McpHost, News};
use tokio::sync::mpsc;

use crate::parts::Mcp;

pub(crate) struct Servers {
    pub(crate) host: McpHost,
    news: mpsc::Receiver<News>,
    /// The state of the tools that the model is shown.
    pub(crate) generation: Option<u64>,
}

impl Servers {
    pub(crate) fn new((host, news): Mcp) -> Self {
        Self { host, news, generation: None }
    }

    /// Starts the servers and waits for them, within their budget.
    pub(crate) async fn start(&mut self, driver: &mut Driver) -> Result<(), LogError> {
        let host = self.host.clone();
        let ready = host.ready();
        tokio::pin!(ready);
        loop {
            tokio::select! {
                // Events of a starting server are delivered before the session continues.
                biased;
                Some(news) = self.news.recv() => record(news, driver)?,
                () = &mut ready => break,
            }
        }
        self.drain(driver)
    }

    /// Waits for something to happen to the servers.
    pub(crate) async fn next(&mut self) -> News {
        match self.news.recv().await {
            Some(news) => news,
            // The host lives as long as we do, so there is always someone who could say something.
            None => std::future::pending().await,
        }
    }

    /// Takes all that has happened.
    pub(crate) fn drain(&mut self, driver: &mut Driver) -> Result<(), LogError> {
        while let Ok(news) = self.news.try_recv() {
            record(news, driver)?;
        }
        Ok(())
    }
}

pub(crate) fn record(news: News, driver: &mut Driver) -> Result<(), LogError> {
    match news {
        News::Event(body) => driver.advance(SessionInput::Command(Command::Record(*body))),
        News::Sampling { server, verdict } => {
            // A server that does not wait any more need not know.
            let _ = verdict.send(driver.session().config().policy.decide_sampling(&server));
            Ok(())
        }
        // The offered tools follow from the available ones.
        News::Tools => Ok(()),
    }
}
