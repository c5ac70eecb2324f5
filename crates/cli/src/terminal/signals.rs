//! Signals that a terminal session acts on.

use std::io::Result;

use rustix::process::Signal as Number;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signal that came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caught {
    /// SIGINT from outside: Ctrl+C is a key while the terminal is ours.
    Interrupt,
    Terminate,
    /// The terminal is gone.
    Hangup,
    /// The terminal has another size.
    Resize,
}

impl Caught {
    /// Code with which a program ends that the signal has ended.
    pub(crate) fn exit_code(self) -> Option<u8> {
        let number = match self {
            Self::Interrupt => Number::INT,
            Self::Terminate => Number::TERM,
            Self::Hangup => Number::HUP,
            Self::Resize => return None,
        };
        u8::try_from(128 + number.as_raw()).ok()
    }
}

/// Signals of the session. From the first one on they no longer end the program by themselves.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    resize: Signal,
}

impl Signals {
    pub(crate) fn new() -> Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            resize: signal(SignalKind::window_change())?,
        })
    }

    pub(crate) async fn next(&mut self) -> Caught {
        tokio::select! {
            biased;
            _ = self.hangup.recv() => Caught::Hangup,
            _ = self.terminate.recv() => Caught::Terminate,
            _ = self.interrupt.recv() => Caught::Interrupt,
            _ = self.resize.recv() => Caught::Resize,
        }
    }
}

/// Stops the process as Ctrl+Z does, together with the rest of its group, and returns once it is continued.
pub(super) async fn stop() -> Result<()> {
    // Our stop may come a moment after the call returns, since any thread may take the signal. Without a shell that could
    // continue us the kernel ignores it; then the wait is what bounds this.
    const STOP_WAIT: std::time::Duration = std::time::Duration::from_millis(250);
    let mut continued = signal(SignalKind::from_raw(Number::CONT.as_raw()))?;
    rustix::process::kill_current_process_group(Number::TSTP)?;
    // Whether it was continued or never stopped: in both cases the terminal is wanted back.
    let _ = tokio::time::timeout(STOP_WAIT, continued.recv()).await;
    Ok(())
}
