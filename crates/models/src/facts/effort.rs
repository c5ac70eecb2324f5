//! Reasoning efforts: the levels, and the mapping from the requested level to one that a model accepts.

use serde::{Deserialize, Serialize};

use super::model::{ModelFacts, ThinkingMode, ThinkingType};

/// Tokens for thinking that a model with budgets gets for each level.
const BUDGETS: [(Level, u64); 6] = [
    (Level::Minimal, 1024),
    (Level::Low, 4000),
    (Level::Medium, 10_000),
    (Level::High, 16_000),
    (Level::Xhigh, 31_999),
    (Level::Max, 31_999),
];

/// A reasoning effort. Ordered by how much the model thinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    None,
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
    Max,
}

impl Level {
    pub const ALL: [Self; 7] =
        [Self::None, Self::Minimal, Self::Low, Self::Medium, Self::High, Self::Xhigh, Self::Max];

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name().eq_ignore_ascii_case(name.trim()))
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
            Self::Max => "max",
        }
    }
}

/// Reasoning parameters that a model is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reasoning {
    /// Nothing: the model decides, or knows no efforts.
    Unset,
    /// The level to send.
    Level(Level),
    /// Thinking budget in tokens, for a model that does not accept levels.
    Budget(u64),
    /// Thinking is switched off, where that is not a level.
    Off,
}

/// The effort that a model is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    pub reasoning: Reasoning,
    /// The requested level, if the model does not accept it and gets another one. It is reported once.
    pub instead_of: Option<Level>,
}

impl Effort {
    const UNSET: Self = Self { reasoning: Reasoning::Unset, instead_of: None };

    /// The level as it is written on the wire.
    pub fn value(&self) -> Option<&'static str> {
        match self.reasoning {
            Reasoning::Level(level) => Some(level.name()),
            Reasoning::Unset | Reasoning::Budget(_) | Reasoning::Off => None,
        }
    }
}

impl ModelFacts {
    /// The effort to send for the requested one. Nothing is sent if none was requested, or if the model's efforts are
    /// unknown. A level that the model does not accept becomes the nearest lower one, or its lowest.
    pub fn effort(&self, asked: Option<&str>) -> Effort {
        let Some(asked) = asked.and_then(Level::parse) else { return Effort::UNSET };
        if self.budgets() && self.efforts.is_empty() {
            return Effort { reasoning: budget(asked), instead_of: None };
        }
        if self.efforts.is_empty() {
            return Effort::UNSET;
        }
        // Claude has no such level, but a type of thinking, which some models refuse.
        if asked == Level::None
            && self.thinking.as_ref().is_some_and(|rule| rule.accepts(ThinkingType::Disabled))
        {
            return Effort { reasoning: Reasoning::Off, instead_of: None };
        }
        let level = self.nearest(asked);
        Effort { reasoning: Reasoning::Level(level), instead_of: (level != asked).then_some(asked) }
    }

    /// Whether the model takes a thinking budget in tokens.
    pub fn budgets(&self) -> bool {
        self.thinks_by_budget || self.thinking.as_ref().is_some_and(|rule| rule.mode == ThinkingMode::Budget)
    }

    /// The names of the efforts that are accepted unchanged. Empty if the model accepts none, or if they are unknown.
    pub fn accepted_efforts(&self) -> Vec<Level> {
        if self.efforts.is_empty() && self.budgets() {
            return Level::ALL.to_vec();
        }
        let off = self.thinking.as_ref().is_some_and(|rule| rule.accepts(ThinkingType::Disabled));
        let off =
            (off && !self.efforts.is_empty() && !self.efforts.contains(&Level::None)).then_some(Level::None);
        off.into_iter().chain(self.efforts.iter().copied()).collect()
    }

    fn nearest(&self, asked: Level) -> Level {
        if self.efforts.contains(&asked) {
            return asked;
        }
        if let Some((_, instead)) = self.effort_map.iter().find(|(from, _)| *from == asked) {
            return *instead;
        }
        // Not thinking at all is different from thinking little.
        let thinking = || self.efforts.iter().copied().filter(|level| *level != Level::None);
        let below = thinking().filter(|level| *level < asked).max();
        below.or_else(|| thinking().min()).unwrap_or(Level::None)
    }
}

impl Level {
    /// Tokens for thinking that a model with budgets gets. `None` for no thinking.
    pub fn budget(self) -> Option<u64> {
        BUDGETS.iter().find(|(level, _)| *level == self).map(|(_, tokens)| *tokens)
    }
}

fn budget(asked: Level) -> Reasoning {
    asked.budget().map_or(Reasoning::Off, Reasoning::Budget)
}
