//! A provider's rate limit, shared: when it sends one lane away, all lanes that ask it hold back, and come again one
//! after the other.

use std::sync::Arc;
use std::time::Duration;

use futures_core::stream::BoxStream;
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest};

/// The distance between two calls that were held back together.
const SPACING: Duration = Duration::from_millis(50);

/// An answer as it comes.
type Pieces = BoxStream<'static, Result<ModelEvent, ModelError>>;

#[derive(Default)]
pub(super) struct Pace {
    held: Vec<Held>,
}

struct Held {
    /// Where the provider is. Agents with a model of their own have a provider of their own, at the same place.
    base_url: String,
    /// When the next call may be made.
    next: Instant,
}

impl Pace {
    /// The provider wants to be left alone for that long.
    pub(super) fn hold(&mut self, provider: &Arc<dyn ModelProvider>, wait: Duration, now: Instant) {
        let next = now + wait;
        let base_url = provider.facts().base_url;
        match self.held.iter_mut().find(|held| held.base_url == base_url) {
            Some(held) => held.next = held.next.max(next),
            None => self.held.push(Held { base_url, next }),
        }
    }

    /// Asks a provider as soon as that may be done.
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

    /// When a call may be made, if not at once. Each that asks has a time of its own.
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

/// The pieces of an answer up to the one that ends it. A provider's stream that just stops is a broken one.
fn whole(pieces: Pieces) -> impl futures_util::Stream<Item = Result<ModelEvent, ModelError>> + Send {
    stream::unfold(Some(pieces), |pieces| async move {
        let mut pieces = pieces?;
        let piece = pieces.next().await.unwrap_or_else(|| {
            Err(ModelError {
                kind: ModelErrorKind::Cut,
                status: None,
                message: "the answer broke off before its end".to_owned(),
                body: None,
                code: None,
                retry_after: None,
            })
        });
        let goes_on = matches!(&piece, Ok(piece) if !matches!(piece, ModelEvent::Finished(_)));
        Some((piece, goes_on.then_some(pieces)))
    })
}
