//! Progress events of a running command.
//!
//! Every piece of output is an event once, and now and then an event says what there is so far. The second kind is
//! spaced in time and cut in size, so that a command which prints for hours costs no more than its output.

use std::collections::VecDeque;
use std::time::Duration;

use hangar_protocol::Body;
use hangar_protocol::data::{ToolPartialResult, ToolShellOutput};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::pipes::Stream;

/// The least time between two events with the output so far.
const PARTIAL_INTERVAL: Duration = Duration::from_millis(100);

/// Events that wait for a listener before the command has to.
const QUEUE_LIMIT: usize = 16;

pub(super) struct OutputProgress {
    call_id: String,
    listener: Listener,
    queue: VecDeque<Body>,
    sequence: u64,
    last_partial: Option<Instant>,
    /// Output has come that no event with the output so far has shown.
    partial_is_stale: bool,
}

enum Listener {
    /// The call waits for the command, and the command for its listener.
    Waiting(mpsc::Sender<Box<Body>>),
    /// The call is over. Listeners that are still there hear what they have room for.
    Passing(mpsc::WeakSender<Box<Body>>),
    Gone,
}

impl OutputProgress {
    /// For a command that its call waits for.
    pub(super) fn waiting(call_id: String, sender: mpsc::Sender<Box<Body>>) -> Self {
        Self::new(call_id, Listener::Waiting(sender))
    }

    /// For a command that runs on its own.
    pub(super) fn passing(call_id: String, sender: &mpsc::Sender<Box<Body>>) -> Self {
        Self::new(call_id, Listener::Passing(sender.downgrade()))
    }

    fn new(call_id: String, listener: Listener) -> Self {
        Self {
            call_id,
            listener,
            queue: VecDeque::new(),
            sequence: 0,
            last_partial: None,
            partial_is_stale: false,
        }
    }

    /// The call no longer waits.
    pub(super) fn pass(&mut self) {
        if let Listener::Waiting(sender) = &self.listener {
            self.listener = Listener::Passing(sender.downgrade());
        }
        self.offer();
    }

    /// Whether the call has gone on already.
    pub(super) fn is_passing(&self) -> bool {
        !matches!(self.listener, Listener::Waiting(_))
    }

    /// Says no more.
    pub(super) fn silence(&mut self) {
        self.listener = Listener::Gone;
        self.queue.clear();
        self.partial_is_stale = false;
    }

    /// A piece of output, and the end of all there is.
    pub(super) fn printed(&mut self, stream: Stream, text: String, tail: &str) {
        if matches!(self.listener, Listener::Gone) {
            return;
        }
        let sequence = self.sequence;
        self.sequence += 1;
        let tool_call_id = self.call_id.clone();
        self.add(ToolShellOutput { tool_call_id, stream: stream.name().to_owned(), text, sequence }.into());
        self.partial_is_stale = true;
        if self.partial_due().is_some_and(|due| due <= Instant::now()) {
            self.show_partial(tail);
        }
    }

    /// When the output so far is to be shown, if it changed.
    pub(super) fn partial_due(&self) -> Option<Instant> {
        let due = self.last_partial.map_or_else(Instant::now, |last| last + PARTIAL_INTERVAL);
        self.partial_is_stale.then_some(due)
    }

    /// Shows the output so far.
    pub(super) fn show_partial(&mut self, tail: &str) {
        if matches!(self.listener, Listener::Gone) {
            return;
        }
        self.partial_is_stale = false;
        self.last_partial = Some(Instant::now());
        let tool_call_id = self.call_id.clone();
        self.add(ToolPartialResult { tool_call_id, partial_output: tail.to_owned() }.into());
    }

    fn add(&mut self, body: Body) {
        self.queue.push_back(body);
        self.offer();
    }

    /// Hands over what a listener that is not waited for has room for, and forgets the rest.
    fn offer(&mut self) {
        match &self.listener {
            Listener::Waiting(_) => {}
            Listener::Passing(sender) => match sender.upgrade() {
                Some(sender) => self.queue.drain(..).for_each(|body| drop(sender.try_send(Box::new(body)))),
                None => self.silence(),
            },
            Listener::Gone => self.queue.clear(),
        }
    }

    /// Whether the command has to wait before it may print more.
    pub(super) fn is_behind(&self) -> bool {
        self.queue.len() >= QUEUE_LIMIT
    }

    pub(super) fn has_news(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Hands over one event as soon as the listener takes it. Nothing is lost when the future is dropped.
    pub(super) async fn deliver(&mut self) {
        let Listener::Waiting(sender) = &self.listener else { return self.offer() };
        let Ok(permit) = sender.reserve().await else { return self.silence() };
        if let Some(body) = self.queue.pop_front() {
            permit.send(Box::new(body));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(body: &Body) -> String {
        match body {
            Body::ToolShellOutput(output) => {
                format!("{} {} {}", output.sequence, output.stream, output.text)
            }
            Body::ToolPartialResult(partial) => format!("so far {}", partial.partial_output),
            other => other.kind().to_owned(),
        }
    }

    fn heard(receiver: &mut mpsc::Receiver<Box<Body>>) -> Vec<String> {
        std::iter::from_fn(|| receiver.try_recv().ok()).map(|body| show(&body)).collect()
    }

    #[tokio::test(start_paused = true)]
    async fn the_output_so_far_comes_first_at_once_and_then_not_too_often() {
        let (sender, mut receiver) = mpsc::channel(100);
        let mut progress = OutputProgress::waiting("c".to_owned(), sender);
        progress.printed(Stream::Stdout, "a".to_owned(), "a");
        progress.printed(Stream::Stderr, "b".to_owned(), "ab");
        progress.printed(Stream::Stdout, "c".to_owned(), "abc");
        while progress.has_news() {
            progress.deliver().await;
        }
        assert_eq!(heard(&mut receiver), ["0 stdout a", "so far a", "1 stderr b", "2 stdout c"]);
        tokio::time::sleep_until(progress.partial_due().unwrap()).await;
        progress.show_partial("abc");
        assert_eq!(progress.partial_due(), None);
        progress.deliver().await;
        assert_eq!(heard(&mut receiver), ["so far abc"]);
    }

    #[tokio::test]
    async fn a_call_that_waits_loses_nothing_and_holds_the_command_back() {
        let (sender, mut receiver) = mpsc::channel(1);
        let mut progress = OutputProgress::waiting("c".to_owned(), sender);
        let mut printed = 0;
        while !progress.is_behind() {
            progress.printed(Stream::Stdout, "x".to_owned(), "x");
            printed += 1;
        }
        assert!(printed <= QUEUE_LIMIT);
        let mut outputs = 0;
        while progress.has_news() {
            progress.deliver().await;
            let said = heard(&mut receiver);
            outputs += said.iter().filter(|line| line.contains("stdout")).count();
        }
        assert_eq!(outputs, printed);
    }

    #[tokio::test]
    async fn a_call_that_is_over_hears_what_it_has_room_for_and_holds_nothing() {
        let (sender, mut receiver) = mpsc::channel(3);
        let mut progress = OutputProgress::passing("c".to_owned(), &sender);
        for _ in 0..100 {
            progress.printed(Stream::Stdout, "x".to_owned(), "x");
        }
        assert!(!progress.has_news());
        assert_eq!(heard(&mut receiver).len(), 3);
        drop(sender);
        assert!(receiver.recv().await.is_none(), "the channel was kept open");
        progress.printed(Stream::Stdout, "x".to_owned(), "x");
        assert!(!progress.has_news());
    }
}
