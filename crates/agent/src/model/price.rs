//! Prices of models: the cost of a call by its reported usage, and its upper bound.

use serde::{Deserialize, Serialize};

use super::TokenUsage;

const PER: f64 = 1_000_000.0;
const PER_SEARCHES: f64 = 1000.0;

/// Price of a model. Vendors charge more for calls with a long input: all tokens of such a call have the rates of its step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Price {
    pub rates: Rates,
    /// Higher rates of long calls, by rising threshold.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<PriceStep>,
    /// US dollars for a thousand searches of the web that the provider makes itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searches: Option<f64>,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    pub input: f64,
    pub output: f64,
    /// Input that the provider read from its cache. Costs what other input costs where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_read: Option<f64>,
    /// Input that the provider wrote to its cache. Costs what other input costs where it is absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_write: Option<f64>,
}

/// Rates of calls whose input has more tokens than `above`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PriceStep {
    pub above: u64,
    pub rates: Rates,
}

impl Price {
    /// The same rates for calls of every length.
    pub fn flat(rates: Rates) -> Self {
        Self { rates, steps: Vec::new(), searches: None }
    }

    /// Sets the rates of what is written to the cache that nobody told, as a multiple of those of input.
    pub fn fill_cache_write(&mut self, times: f64) {
        for rates in std::iter::once(&mut self.rates).chain(self.steps.iter_mut().map(|step| &mut step.rates))
        {
            rates.cache_write = rates.cache_write.or(Some(rates.input * times));
        }
    }

    /// Cost of a call in US dollars. `None` if the provider did not report what it took in and gave out.
    pub fn cost(&self, usage: &TokenUsage) -> Option<f64> {
        let (input, output) = (usage.input_tokens?, usage.output_tokens?);
        let rates = self.rates_of(input);
        let read = usage.cache_read_tokens.unwrap_or(0).min(input);
        let written = usage.cache_write_tokens.unwrap_or(0).min(input - read);
        let fresh = input - read - written;
        let cost = fresh as f64 * rates.input
            + read as f64 * rates.cache_read.unwrap_or(rates.input)
            + written as f64 * rates.cache_write.unwrap_or(rates.input)
            + output as f64 * rates.output;
        let searches = usage.web_searches.unwrap_or(0) as f64 * self.searches.unwrap_or(0.0);
        Some(cost / PER + searches / PER_SEARCHES)
    }

    /// Upper bound of the cost of a call in US dollars: no input is read from the cache, all of it is written there if
    /// that costs more, and the answer has its full length. It does not hold for a call that offers the provider's own
    /// search, whose results are input that cannot be counted in advance.
    pub fn at_most(&self, input_tokens: u64, max_output_tokens: u64) -> f64 {
        let reached = self.steps.iter().filter(|step| input_tokens > step.above).map(|step| step.rates);
        let bound = |rates: Rates| {
            let input =
                [rates.cache_write, rates.cache_read].into_iter().flatten().fold(rates.input, f64::max);
            input_tokens as f64 * input + max_output_tokens as f64 * rates.output
        };
        std::iter::once(self.rates).chain(reached).map(bound).fold(0.0, f64::max) / PER
    }

    /// Input tokens above which a call costs more, if the price has such a step.
    pub fn first_step(&self) -> Option<u64> {
        self.steps.iter().map(|step| step.above).min()
    }

    fn rates_of(&self, input_tokens: u64) -> Rates {
        let reached = self.steps.iter().filter(|step| input_tokens > step.above);
        reached.max_by_key(|step| step.above).map_or(self.rates, |step| step.rates)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates { input: 2.0, output: 10.0, cache_read: Some(0.2), cache_write: Some(2.5) };

    fn stepped() -> Price {
        let long = Rates { input: 4.0, output: 15.0, cache_read: Some(0.4), cache_write: Some(5.0) };
        Price { steps: vec![PriceStep { above: 200_000, rates: long }], ..Price::flat(RATES) }
    }

    fn usage(input: u64, output: u64, read: u64, written: u64) -> TokenUsage {
        TokenUsage {
            input_tokens: Some(input),
            output_tokens: Some(output),
            cache_read_tokens: Some(read),
            cache_write_tokens: Some(written),
            ..TokenUsage::default()
        }
    }

    #[track_caller]
    fn check(price: &Price, usage: TokenUsage, millionths: f64) {
        let cost = price.cost(&usage).unwrap() * PER;
        assert!((cost - millionths).abs() < 1e-6, "{cost} is not {millionths}");
    }

    #[test]
    fn each_kind_of_token_has_its_rate() {
        check(&stepped(), usage(1000, 10, 0, 0), 2100.0);
        check(&stepped(), usage(1000, 10, 600, 300), 200.0 + 120.0 + 750.0 + 100.0);
    }

    #[test]
    fn all_tokens_of_a_long_call_have_the_rates_of_its_step() {
        check(&stepped(), usage(200_000, 1, 0, 0), 400_010.0);
        check(&stepped(), usage(200_001, 1, 0, 0), 800_019.0);
    }

    #[test]
    fn searches_cost_beside_tokens_where_they_have_a_price() {
        let searched = TokenUsage { web_searches: Some(3), ..usage(1000, 10, 0, 0) };
        check(&Price { searches: Some(10.0), ..stepped() }, searched, 2100.0 + 30_000.0);
        check(&stepped(), searched, 2100.0);
    }

    #[test]
    fn cached_tokens_without_a_rate_cost_what_others_cost() {
        let price = Price::flat(Rates { cache_read: None, cache_write: None, ..RATES });
        check(&price, usage(1000, 0, 600, 300), 2000.0);
    }

    #[test]
    fn counts_that_contradict_each_other_do_not_underflow() {
        check(&stepped(), usage(100, 0, 80, 90), 16.0 + 50.0);
    }

    #[test]
    fn a_call_without_reported_usage_has_no_known_cost() {
        assert_eq!(stepped().cost(&TokenUsage::default()), None);
        assert_eq!(stepped().cost(&TokenUsage { output_tokens: None, ..usage(1, 1, 0, 0) }), None);
    }

    #[test]
    fn no_call_costs_more_than_its_bound() {
        let price = stepped();
        for input in [0, 1, 199_999, 200_000, 200_001, 900_000] {
            for (read, written) in [(0, 0), (input, 0), (0, input), (input / 2, input / 2)] {
                let cost = price.cost(&usage(input, 64, read, written)).unwrap();
                assert!(cost <= price.at_most(input, 64), "{input} {read} {written}");
            }
        }
    }
}
