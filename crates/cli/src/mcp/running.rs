//! The MCP servers of a run: their news become events, their tools become the model's.

use std::sync::Arc;

use anyhow::Result;
use hangar_agent::driver::Driver;
use hangar_agent::session::{Command, Input};
use hangar_agent::tool::{Tool, ToolFilter, ToolSource, Toolset};
use hangar_mcp::{ElicitationAnswer, McpHost, News};
use tokio::sync::mpsc;

pub(crate) struct Running {
    host: McpHost,
    news: mpsc::Receiver<News>,
    filter: ToolFilter,
    /// The other tools of the run, which come first.
    others: Vec<Arc<dyn Tool>>,
}

impl Running {
    /// Starts the servers and waits for them, within their budget.
    pub(crate) async fn start(
        host: McpHost,
        mut news: mpsc::Receiver<News>,
        filter: ToolFilter,
        driver: &mut Driver,
    ) -> Result<Self> {
        let ready = host.ready();
        tokio::pin!(ready);
        loop {
            tokio::select! {
                // What happened while a server started is told before the session goes on.
                biased;
                Some(news) = news.recv() => record(news, driver)?,
                () = &mut ready => break,
            }
        }
        let others = driver.tools().iter().cloned().collect();
        let mut running = Self { host: host.clone(), news, filter, others };
        while let Ok(news) = running.news.try_recv() {
            record(news, driver)?;
        }
        running.offer(driver)?;
        Ok(running)
    }

    /// Waits for something to happen to the servers.
    pub(crate) async fn next(&mut self) -> News {
        match self.news.recv().await {
            Some(news) => news,
            // The host lives as long as we do, so there is always someone who could say something.
            None => std::future::pending().await,
        }
    }

    pub(crate) fn take(&mut self, news: News, driver: &mut Driver) -> Result<()> {
        match news {
            News::Tools => self.offer(driver),
            News::Event(_) => record(news, driver),
        }
    }

    fn offer(&self, driver: &mut Driver) -> Result<()> {
        driver.session_mut().set_mcp_servers(self.host.summaries());
        let admitted = |tool: &Arc<dyn Tool>| self.filter.admits(ToolSource::Mcp, &tool.spec().name);
        let tools = self.host.tools().into_iter().filter(admitted);
        driver.set_tools(Toolset::new(self.others.iter().cloned().chain(tools).collect()), &[])?;
        Ok(())
    }

    /// What a person says to a server that asked them.
    pub(crate) fn answer(&self, request_id: &str, answer: ElicitationAnswer) {
        // A question that is settled already stays so.
        let _ = self.host.answer_elicitation(request_id, answer);
    }

    pub(crate) async fn shutdown(&self) {
        self.host.shutdown().await;
    }
}

fn record(news: News, driver: &mut Driver) -> Result<()> {
    if let News::Event(body) = news {
        driver.advance(Input::Command(Command::Record(*body)))?;
    }
    Ok(())
}
