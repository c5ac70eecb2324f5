//! The servers of a session that somebody drives: their news become events, their tools become the model's, and their
//! wish to ask the model meets the session's rules as they are at that moment.

use std::sync::Arc;

use hangar_agent::driver::Driver;
use hangar_agent::log::LogError;
use hangar_agent::session::{Command, Input};
use hangar_agent::tool::{Tool, ToolFilter, ToolSource, Toolset};
use tokio::sync::mpsc;

use crate::host::{McpHost, News};
use crate::pending::ElicitationAnswer;

pub struct Running {
    host: McpHost,
    news: mpsc::Receiver<News>,
    filter: ToolFilter,
    /// The other tools of the session, which come first.
    others: Vec<Arc<dyn Tool>>,
}

impl Running {
    /// Nothing is started yet. The tools that the driver has now are those that stay beside the servers'.
    pub fn new(host: McpHost, news: mpsc::Receiver<News>, filter: ToolFilter, driver: &Driver) -> Self {
        Self { host, news, filter, others: driver.tools().iter().cloned().collect() }
    }

    /// Starts the servers and waits for them, within their budget.
    pub async fn start(&mut self, driver: &mut Driver) -> Result<(), LogError> {
        let host = self.host.clone();
        let ready = host.ready();
        tokio::pin!(ready);
        loop {
            tokio::select! {
                // What happened while a server started is told before the session goes on.
                biased;
                Some(news) = self.news.recv() => record(news, driver)?,
                () = &mut ready => break,
            }
        }
        self.catch_up(driver)
    }

    pub fn host(&self) -> &McpHost {
        &self.host
    }

    /// Waits for something to happen to the servers.
    pub async fn next(&mut self) -> News {
        match self.news.recv().await {
            Some(news) => news,
            // The host lives as long as we do, so there is always someone who could say something.
            None => std::future::pending().await,
        }
    }

    pub fn take(&mut self, news: News, driver: &mut Driver) -> Result<(), LogError> {
        match news {
            News::Tools => self.offer(driver),
            News::Event(_) | News::Sampling { .. } => record(news, driver),
        }
    }

    /// Takes all that has happened, and shows the model the tools that are there now.
    pub fn catch_up(&mut self, driver: &mut Driver) -> Result<(), LogError> {
        while let Ok(news) = self.news.try_recv() {
            record(news, driver)?;
        }
        self.offer(driver)
    }

    fn offer(&self, driver: &mut Driver) -> Result<(), LogError> {
        driver.session_mut().set_mcp_servers(self.host.summaries());
        let admitted = |tool: &Arc<dyn Tool>| self.filter.admits(ToolSource::Mcp, &tool.spec().name);
        let tools = self.host.tools().into_iter().filter(admitted);
        driver.set_tools(Toolset::new(self.others.iter().cloned().chain(tools).collect()), &[])
    }

    /// Forwards a person's answer to a server that asked for it.
    pub fn answer(&self, request_id: &str, answer: ElicitationAnswer) {
        // A question that is settled already stays so.
        let _ = self.host.answer_elicitation(request_id, answer);
    }

    pub async fn shutdown(&self) {
        self.host.shutdown().await;
    }
}

fn record(news: News, driver: &mut Driver) -> Result<(), LogError> {
    match news {
        News::Event(body) => driver.advance(Input::Command(Command::Record(*body))),
        News::Sampling { server, verdict } => {
            // A server that does not wait any more need not know.
            let _ = verdict.send(driver.session().config().policy.decide_sampling(&server));
            Ok(())
        }
        // What is offered follows from what is there.
        News::Tools => Ok(()),
    }
}
