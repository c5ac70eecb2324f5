//! `/limits`: the most that the session may cost, in dollars.

use serde_json::{Value, json};

use crate::calls::Purpose;
use crate::format::dollars;
use crate::state::State;

/// Credits of the protocol in a dollar.
const CREDITS_PER_DOLLAR: f64 = 100.0;

impl State {
    pub(crate) fn limit(&mut self, argument: &str) {
        let (limit, told) = match argument.trim_start_matches('$') {
            "" | "show" => return self.show_limit(),
            "off" | "none" => {
                (Value::Null, "The session's cost is not limited by this session any more.".to_owned())
            }
            amount => match amount.parse::<f64>().ok().filter(|amount| amount.is_finite() && *amount > 0.0) {
                Some(amount) => {
                    let told = format!("The session stops before it has cost more than {}.", dollars(amount));
                    (json!({ "maxAiCredits": amount * CREDITS_PER_DOLLAR }), told)
                }
                None => {
                    return self.print_error(&format!(
                        "`{argument}` is not an amount: /limits 2.50, or /limits off"
                    ));
                }
            },
        };
        self.call("session.options.update", json!({ "sessionLimits": limit }), Purpose::Limit(told));
    }

    fn show_limit(&mut self) {
        let spent = dollars(self.cost);
        let told = match self.cost_limit {
            Some(credits) => {
                format!("The session has cost {spent} of at most {}.", dollars(credits / CREDITS_PER_DOLLAR))
            }
            None => format!(
                "The session has cost {spent}; /limits AMOUNT limits it, in dollars. Limits of --max-cost and [budget] hold too."
            ),
        };
        self.print_text(&told);
    }
}
