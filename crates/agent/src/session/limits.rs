//! The budget of a session, as the model is told about it.

use hangar_protocol::data::{self, SessionLimits};

use super::{Session, Step};
use crate::budget::USD_PER_CREDIT;

/// `source` of messages about the budget.
pub(super) const SOURCE: &str = "session-limits";

impl Session {
    pub(super) fn set_limits(&mut self, limits: Option<SessionLimits>, step: &mut Step) {
        if self.state.limits != limits {
            self.emit(step, data::SessionLimitsChanged { session_limits: limits });
        }
    }

    /// Tells the model its budget, if that has changed since it was last told.
    pub(super) fn tell_limits(&mut self, step: &mut Step) {
        let Some(most) = self.state.limits.and_then(|limits| limits.max_ai_credits) else { return };
        // Calls of unknown cost are not subtracted.
        let used = self.state.totals.cost.unwrap_or(0.0) / USD_PER_CREDIT;
        let left = (most - used).max(0.0);
        let text = status((left * 100.0).round() / 100.0);
        if self.state.told_limits.as_ref() == Some(&text) {
            return;
        }
        let message = data::UserMessage {
            content: String::new(),
            transformed_content: Some(text),
            source: Some(SOURCE.to_owned()),
            interaction_id: self.run.as_ref().map(|run| run.interaction_id.clone()),
            ..Default::default()
        };
        self.emit(step, message);
    }
}

/// Text about the budget. Recorded conversations fix its wording.
fn status(credits: f64) -> String {
    format!(
        "<session_limits_status>\nRemaining session limits: {credits} AI credits. Later session_limits_status messages \
         supersede earlier ones. Be frugal; avoid optional exploration and unnecessary tool \
         calls.\n</session_limits_status>"
    )
}
