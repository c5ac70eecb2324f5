//! Kinds of MCP questions that clients subscribed to. Without a subscriber the question is not asked.

use hangar_mcp::Interest;

use crate::client::ClientId;

/// Interests that a session keeps.
const MAX: usize = 1024;

struct Registered {
    handle: String,
    client: ClientId,
    interest: Interest,
}

/// Subscriptions; each lasts until it is released by its handle, or its client disconnects.
#[derive(Default)]
pub(crate) struct Interests(Vec<Registered>);

impl Interests {
    /// False where there are too many.
    pub(crate) fn add(&mut self, handle: String, client: ClientId, interest: Interest) -> bool {
        let room = self.0.len() < MAX;
        if room {
            self.0.push(Registered { handle, client, interest });
        }
        room
    }

    pub(crate) fn release(&mut self, handle: &str) {
        self.0.retain(|registered| registered.handle != handle);
    }

    pub(crate) fn keep_of(&mut self, is_here: impl Fn(ClientId) -> bool) {
        self.0.retain(|registered| is_here(registered.client));
    }

    pub(crate) fn contain(&self, interest: Interest) -> bool {
        self.0.iter().any(|registered| registered.interest == interest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interest_lasts_as_long_as_somebody_has_it() {
        let mut interests = Interests::default();
        let (one, other) = (ClientId(1), ClientId(2));
        assert!(interests.add("a".to_owned(), one, Interest::OAuth));
        assert!(interests.add("b".to_owned(), other, Interest::OAuth));
        interests.release("a");
        assert!(interests.contain(Interest::OAuth), "the other client still answers");
        interests.keep_of(|client| client == one);
        assert!(!interests.contain(Interest::OAuth), "and is gone now");
    }
}
