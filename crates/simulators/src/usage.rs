//! Tokens and their cost.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Tokens of one exchange, as sums: each vendor splits them as it reports them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Usage {
    /// All tokens of the request, those of the cache included.
    pub input: u64,
    pub cache_read: u64,
    /// Tokens written to the cache, those for an hour included.
    pub cache_write: u64,
    /// Tokens written for an hour instead of minutes, where a vendor has both.
    pub cache_write_hour: u64,
    /// All tokens of the answer, those of its reasoning included.
    pub output: u64,
    pub reasoning: u64,
    /// Web searches that the vendor ran.
    pub searches: u64,
}

impl Usage {
    /// Tokens that were neither read from the cache nor written to it.
    pub fn uncached(&self) -> u64 {
        self.input.saturating_sub(self.cache_read + self.cache_write)
    }

    /// Share of the request that came from the cache.
    pub fn hit_ratio(&self) -> f64 {
        if self.input == 0 { 0.0 } else { self.cache_read as f64 / self.input as f64 }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input += other.input;
        self.cache_read += other.cache_read;
        self.cache_write += other.cache_write;
        self.cache_write_hour += other.cache_write_hour;
        self.output += other.output;
        self.reasoning += other.reasoning;
        self.searches += other.searches;
    }
}

/// USD for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VendorPrice {
    pub input: f64,
    pub output: f64,
    /// Reads from the cache; like other input if absent.
    pub cached: Option<f64>,
    /// Writes to the cache, as a multiple of `input`.
    #[serde(default = "one")]
    pub write: f64,
    /// Writes for an hour, as a multiple of `input`.
    #[serde(default = "one")]
    pub write_hour: f64,
    /// Tokens of the request from which on all tokens cost more.
    pub step: Option<u64>,
    #[serde(default = "one")]
    pub step_input: f64,
    #[serde(default = "one")]
    pub step_output: f64,
    /// USD for a thousand web searches.
    #[serde(default)]
    pub search: f64,
}

fn one() -> f64 {
    1.0
}

impl VendorPrice {
    /// USD for an exchange.
    pub fn of(&self, usage: &Usage) -> f64 {
        let above = self.step.is_some_and(|step| usage.input > step);
        let (more_input, more_output) = if above { (self.step_input, self.step_output) } else { (1.0, 1.0) };
        let input = usage.uncached() as f64 * self.input
            + usage.cache_read as f64 * self.cached.unwrap_or(self.input)
            + usage.cache_write.saturating_sub(usage.cache_write_hour) as f64 * self.input * self.write
            + usage.cache_write_hour as f64 * self.input * self.write_hour;
        let searches = usage.searches as f64 * self.search / 1e3;
        (input * more_input + usage.output as f64 * self.output * more_output) / 1e6 + searches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_token_has_its_price_and_a_step_raises_all() {
        let price = VendorPrice {
            input: 2.0,
            output: 10.0,
            cached: Some(0.2),
            write: 1.25,
            write_hour: 2.0,
            step: Some(500),
            step_input: 2.0,
            step_output: 1.5,
            search: 10.0,
        };
        let usage = Usage {
            input: 400,
            cache_read: 200,
            cache_write: 100,
            output: 10,
            reasoning: 4,
            ..Usage::default()
        };
        assert_eq!(usage.uncached(), 100);
        assert_eq!(usage.hit_ratio(), 0.5);
        assert!((price.of(&usage) * 1e6 - (200.0 + 40.0 + 250.0 + 100.0)).abs() < 1e-9);
        let hour = Usage { cache_write_hour: 100, ..usage };
        assert!((price.of(&hour) * 1e6 - (200.0 + 40.0 + 400.0 + 100.0)).abs() < 1e-9);
        let searched = Usage { searches: 2, ..usage };
        assert!((price.of(&searched) - price.of(&usage) - 0.02).abs() < 1e-9);
        let more = Usage { input: 600, ..usage };
        assert!((price.of(&more) * 1e6 - ((600.0 + 40.0 + 250.0) * 2.0 + 150.0)).abs() < 1e-9);
    }
}
