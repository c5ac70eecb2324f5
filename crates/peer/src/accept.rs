//! Accepting connections.

use std::io;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// Delay after a failed accept. A process that is out of descriptors stays so for a while; without the delay it would
/// spend that time on failing calls and on their messages.
const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Accepts the next connection. Failures are logged and retried. Its small messages are sent at once.
///
/// Cancel safe: a connection is not lost if the future is dropped.
pub async fn accept(listener: &TcpListener) -> TcpStream {
    let (stream, _) = retry(|| listener.accept()).await;
    // It only concerns latency.
    let _ = stream.set_nodelay(true);
    stream
}

async fn retry<T, F: Future<Output = io::Result<T>>>(mut attempt: impl FnMut() -> F) -> T {
    loop {
        match attempt().await {
            Ok(accepted) => return accepted,
            Err(error) => {
                tracing::warn!(%error, "accepting a connection failed");
                tokio::time::sleep(RETRY_DELAY).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_failure_that_lasts_is_retried_ten_times_a_second() {
        let start = tokio::time::Instant::now();
        let mut attempts = 0;
        retry(|| {
            attempts += 1;
            std::future::ready(match start.elapsed() < Duration::from_secs(1) {
                true => Err(io::Error::from(io::ErrorKind::WouldBlock)),
                false => Ok(()),
            })
        })
        .await;
        assert_eq!(attempts, 11);
    }
}
