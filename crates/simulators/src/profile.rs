//! The vendors that are simulated, by name.

use crate::facts::FactsError;
use crate::simulator::Simulator;
use crate::vendor::Vendor;
use crate::{anthropic, chat, responses};

/// A vendor, and the facts that a client needs to call it.
#[derive(Debug, Clone, Copy)]
pub struct Profile {
    pub name: &'static str,
    /// Path of the client's base URL below the simulator's.
    pub base_path: &'static str,
    /// A model to begin with, and one to switch to.
    pub models: [&'static str; 2],
    pub vendor: fn() -> Result<Box<dyn Vendor>, FactsError>,
}

impl Profile {
    /// All of them.
    pub fn all() -> Vec<Self> {
        [anthropic::PROFILE, responses::PROFILE].iter().chain(chat::PROFILES).copied().collect()
    }

    pub fn find(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|profile| profile.name == name)
    }

    /// A strict simulator of this vendor, without a scenario.
    pub fn simulator(&self) -> Result<Simulator, FactsError> {
        Ok(Simulator::new(self.name, (self.vendor)()?))
    }
}
