//! The conversation with the model: streaming, compaction, questions to people.

use hangar_agent::session::Compaction;
use serde::Deserialize;

group! {
    pub struct ConversationOptions {
        /// Whether answers arrive in pieces.
        streaming: bool = "streaming" | "enableStreaming",
        infinite: InfiniteSessions = "infiniteSessions",
        /// Whether the model may not ask people.
        ask_user_disabled: bool = "askUserDisabled",
    }
}

impl ConversationOptions {
    pub fn is_infinite(&self) -> bool {
        self.infinite.as_ref().and_then(|config| config.enabled).unwrap_or(true)
    }

    /// When the session is to sum itself up; `None` for never.
    pub fn compaction(&self) -> Option<Compaction> {
        let usual = Compaction::default();
        let config = self.infinite.clone().unwrap_or_default();
        self.is_infinite().then(|| Compaction {
            start: config.background_compaction_threshold.unwrap_or(usual.start),
            wait: config.buffer_exhaustion_threshold.unwrap_or(usual.wait),
        })
    }
}

/// Sessions that go on when the context is full.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct InfiniteSessions {
    pub enabled: Option<bool>,
    pub background_compaction_threshold: Option<f64>,
    pub buffer_exhaustion_threshold: Option<f64>,
}
