//! Messages over the standard streams of a program: one line of JSON each.

use std::io;

use futures_util::FutureExt;
use hangar_peer::LineReader;
use rmcp::service::{RoleClient, RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::AsyncWriteExt;
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use crate::process::RunningServer;

/// The longest message that is taken. A program that says more in one line is not speaking the protocol.
const MAX_LINE: usize = 16 << 20;
/// Capacity of the queues in either direction.
const QUEUE: usize = 32;

pub(crate) struct Stdio {
    outgoing: mpsc::Sender<Vec<u8>>,
    incoming: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    /// Ends the program with the transport.
    life: Option<DropGuard>,
}

impl Stdio {
    pub(crate) fn new(running: RunningServer) -> Self {
        let (outgoing, to_write) = mpsc::channel(QUEUE);
        let (read, incoming) = mpsc::channel(QUEUE);
        tokio::spawn(FutureExt::boxed(write(running.stdin, to_write)));
        let complaint = running.complaint;
        tokio::spawn(FutureExt::boxed(async move {
            // The connection ends when the sender is dropped, whatever the reason.
            if let Err(error) = self::read(running.stdout, read).await {
                complaint.add(&error.to_string());
            }
        }));
        Self { outgoing, incoming, life: Some(running.life) }
    }
}

impl Transport<RoleClient> for Stdio {
    type Error = io::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), io::Error>> + Send + 'static {
        let outgoing = self.outgoing.clone();
        async move {
            let mut line = serde_json::to_vec(&item)?;
            line.push(b'\n');
            let ended = || io::Error::new(io::ErrorKind::BrokenPipe, "the program has ended");
            outgoing.send(line).await.map_err(|_| ended())
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.incoming.recv().await
    }

    async fn close(&mut self) -> Result<(), io::Error> {
        self.life = None;
        Ok(())
    }
}

async fn write(mut stdin: ChildStdin, mut lines: mpsc::Receiver<Vec<u8>>) {
    while let Some(line) = lines.recv().await {
        // The reader of its output notices its end.
        if stdin.write_all(&line).await.is_err() {
            return;
        }
    }
}

async fn read(stdout: ChildStdout, messages: mpsc::Sender<RxJsonRpcMessage<RoleClient>>) -> io::Result<()> {
    let mut lines = LineReader::new(stdout, MAX_LINE);
    while let Some(line) = lines.next_text().await? {
        // Programs print things that are no messages: banners, logs. Those are not for us.
        if let Ok(message) = serde_json::from_str(&line)
            && messages.send(message).await.is_err()
        {
            break;
        }
    }
    Ok(())
}
