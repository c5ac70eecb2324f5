//! Rate limits of providers, shared by all lanes: after a 429 all calls to that provider wait, and then resume one
//! after the other.

use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest};

/// Interval between calls that waited together.
const SPACING: Duration = Duration::from_millis(50);

/// A streamed answer.
type Pieces = BoxStream<'static, Result<ModelEvent, ModelError>>;

#[derive(Default)]
pub(super) struct RateLimits {
    held: Vec<ProviderDelay>,
}

struct ProviderDelay {
    /// Base URL of the provider. Agents with another model have another provider object with the same URL.
    base_url: String,
    /// Earliest time of the next call.
    next: Instant,
}

impl RateLimits {
    /// Delays all calls to the provider.
    pub(super) fn hold(&mut self, provider: &Arc<dyn ModelProvider>, wait: Duration, now: Instant) {
        let next = now + wait;
        let base_url = provider.facts().base_url;
        match self.held.iter_mut().find(|held| held.base_url == base_url) {
            Some(held) => held.next = held.next.max(next),
            None => self.held.push(ProviderDelay { base_url, next }),
        }
    }

    /// Makes a request as soon as the rate limit allows it.
    pub(super) fn ask(&mut self, provider: &Arc<dyn ModelProvider>, request: ModelRequest) -> Pieces {
        let Some(slot) = self.slot(provider, Instant::now()) else {
            return whole(provider.stream(request)).boxed();
        };
        let provider = Arc::clone(provider);
        let later = async move {
            tokio::time::sleep_until(slot).await;
            whole(provider.stream(request))
        };
        stream::once(later).flatten().boxed()
    }

    /// Reserves a slot: the time at which a call may be made, if not at once.
    fn slot(&mut self, provider: &Arc<dyn ModelProvider>, now: Instant) -> Option<Instant> {
        self.held.retain(|held| held.next > now);
        if self.held.is_empty() {
            return None;
        }
        let base_url = provider.facts().base_url;
        let held = self.held.iter_mut().find(|held| held.base_url == base_url)?;
        let slot = held.next;
        held.next += SPACING;
        Some(slot)
    }
}

/// Pieces of an answer up to the final one. A stream that stops without it is an error.
fn whole(pieces: Pieces) -> impl futures_util::Stream<Item = Result<ModelEvent, ModelError>> + Send {
    stream::unfold(Some(pieces), |pieces| async move {
        let mut pieces = pieces?;
        let piece = pieces.next().await.unwrap_or_else(|| {
            Err(ModelError::new(ModelErrorKind::Cut, "the answer broke off before its end"))
        });
        let goes_on = matches!(&piece, Ok(piece) if !matches!(piece, ModelEvent::Finished(_)));
        Some((piece, goes_on.then_some(pieces)))
    })
}
