//! The budget of a session: caps on cost, tokens and turns that hold before a call is made.
//!
//! Every call of a session passes its [`BudgetLedger`]: calls of the main agent, of its sub-agents, for summaries, and beside
//! the conversation. The ledger reserves the most that a call could use before it is made, and settles the reservation
//! to the actual usage when it ends. A call that does not fit gets a lower output limit; if that would leave too little
//! for an answer, it waits for the calls in flight or is refused.

mod bound;
mod reservation;

use std::sync::Arc;

use futures_core::stream::BoxStream;
use futures_util::{StreamExt, stream};
use hangar_protocol::Totals;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::conversation;
use crate::model::{
    Initiator, Message, ModelError, ModelErrorKind, ModelEvent, ModelProvider, ModelRequest, Price,
    ProviderFacts, TokenMeter, TokenUsage,
};
use crate::tool::ToolSpec;
use bound::InputBounds;
use reservation::Reservation;

/// Price of one of GitHub's AI credits, in which clients set limits.
pub const USD_PER_CREDIT: f64 = 0.01;
/// Shortest answer that is worth a call.
const LEAST_OUTPUT: u64 = 1024;
/// Output limit that is assumed for a model without a known one, where a budget needs one.
const USUAL_OUTPUT: u64 = 8192;
/// Length that nearly all answers stay below.
const AMPLE_OUTPUT: u64 = 8192;
/// A call reserves at most this part of the remaining budget, unless it needs more for an ample answer, so that
/// parallel agents do not wait for each other.
const SHARE: f64 = 0.25;
/// Calls that are kept until they are put on record. Further ones are added to the last.
const UNLOGGED_CALLS: usize = 64;

/// Caps of a session; absent ones are unlimited.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Budget {
    /// US dollars.
    pub max_cost: Option<f64>,
    /// Input and output tokens.
    pub max_tokens: Option<u64>,
    /// Model calls of the main agent and its sub-agents.
    pub max_turns: Option<u64>,
}

impl Budget {
    pub fn is_unlimited(&self) -> bool {
        *self == Self::default()
    }

    /// The caps of both; where both have one, the lower one.
    #[must_use]
    pub fn within(self, other: Self) -> Self {
        fn lower<T: PartialOrd>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(if b < a { b } else { a }),
                (a, b) => a.or(b),
            }
        }
        Self {
            max_cost: lower(self.max_cost, other.max_cost),
            max_tokens: lower(self.max_tokens, other.max_tokens),
            max_turns: lower(self.max_turns, other.max_turns),
        }
    }
}

/// Usage of calls, actual or at most.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Spending {
    pub cost: f64,
    pub tokens: u64,
    pub turns: u64,
}

impl Spending {
    fn plus(self, other: Self) -> Self {
        Self {
            cost: self.cost + other.cost,
            tokens: self.tokens.saturating_add(other.tokens),
            turns: self.turns.saturating_add(other.turns),
        }
    }
}

impl From<&Totals> for Spending {
    /// Spending on record. Calls of unknown cost count as nothing here. Calls that were in flight when their process was
    /// killed count as their reservation.
    fn from(totals: &Totals) -> Self {
        let tokens =
            |input: Option<u64>, output: Option<u64>| input.unwrap_or(0).saturating_add(output.unwrap_or(0));
        let told = Self {
            cost: totals.cost.unwrap_or(0.0),
            tokens: tokens(totals.input_tokens, totals.output_tokens),
            turns: totals.requests,
        };
        totals.reserved.values().fold(told, |sum, bound| {
            sum.plus(Self {
                cost: bound.cost.unwrap_or(0.0),
                tokens: tokens(bound.input_tokens, bound.output_tokens),
                turns: 1,
            })
        })
    }
}

/// Ledger of a session's budget, shared by all providers that its calls go to.
#[derive(Debug, Clone, Default)]
pub struct BudgetLedger(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    account: Mutex<Account>,
    /// Wakes calls that wait for others to end.
    settled: Notify,
    /// Wakes the owner of the log when a call is reserved.
    reserved: Notify,
    /// Wakes calls that wait until their reservation is on record.
    recorded: Notify,
}

/// Origin of a cap. All of them hold at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cap {
    /// The session, by flags and configuration.
    Session,
    /// A client, at any time.
    Client,
    /// The sender of the prompt of the current turn.
    Turn,
}

#[derive(Debug, Default)]
struct Account {
    session: Budget,
    client: Budget,
    turn: Budget,
    spent: Spending,
    /// Reservations of the calls in flight, by call number.
    reserved: Vec<(u64, Spending)>,
    calls: u64,
    /// Calls that have ended, are not on record yet, and that nobody else puts there.
    unlogged: Vec<UnloggedCall>,
    /// Reservations that are not on record yet. Their calls wait for that.
    unrecorded: Vec<ReservedCall>,
    /// Numbers of calls that are on record as reserved and have ended with an answer or a refusal since.
    ended: Vec<u64>,
}

/// A call that no session puts on record: one that was interrupted, which the provider may charge though its answer never came
/// to its end, or one that a server made by the session's model.
#[derive(Debug, Clone, PartialEq)]
pub struct UnloggedCall {
    pub model: String,
    /// Usage of the call. If it was interrupted, the reservation where a cap required one, else its estimated input.
    pub usage: TokenUsage,
    /// Whether it was interrupted.
    pub cut: bool,
    /// Numbers of the reservations that it ends.
    pub calls: Vec<u64>,
}

/// A call that is about to be made, with what it can use at most if a cap makes that known.
#[derive(Debug, Clone, PartialEq)]
pub struct ReservedCall {
    pub number: u64,
    pub model: String,
    pub bound: TokenUsage,
}

impl BudgetLedger {
    /// Ledger of a session that has spent something before.
    pub fn new(budget: Budget, spent: Spending) -> Self {
        let account = Mutex::new(Account { session: budget, spent, ..Account::default() });
        Self(Arc::new(Shared { account, ..Shared::default() }))
    }

    /// The caps that currently hold.
    pub fn budget(&self) -> Budget {
        self.0.account.lock().budget()
    }

    /// Sets the caps of one origin, for future calls.
    pub fn set(&self, cap: Cap, budget: Budget) {
        let mut account = self.0.account.lock();
        match cap {
            Cap::Session => account.session = budget,
            Cap::Client => account.client = budget,
            Cap::Turn => account.turn = budget,
        }
        drop(account);
        self.0.settled.notify_waiters();
    }

    pub fn spent(&self) -> Spending {
        self.0.account.lock().spent
    }

    /// Wraps a provider so that its calls stay within the budget.
    pub fn provider(
        &self,
        provider: Arc<dyn ModelProvider>,
        meter: Option<Arc<dyn TokenMeter>>,
    ) -> Arc<dyn ModelProvider> {
        let meter = meter.unwrap_or_else(|| Arc::new(Bytes));
        let bounds = Arc::new(InputBounds::new(meter));
        Arc::new(BudgetedProvider { provider, bounds, ledger: self.clone(), unattended: false })
    }

    /// A provider for calls that no session puts on record, such as those of MCP servers. They are made within the budget, and
    /// the owner of the log records them.
    pub fn unattended(&self, provider: Arc<dyn ModelProvider>) -> Arc<dyn ModelProvider> {
        let bounds = Arc::new(InputBounds::new(Arc::new(Bytes)));
        Arc::new(BudgetedProvider { provider, bounds, ledger: self.clone(), unattended: true })
    }

    /// Adds what was spent before the ledger was opened.
    pub fn add_spent(&self, spent: Spending) {
        let mut account = self.0.account.lock();
        account.spent = account.spent.plus(spent);
    }

    /// Takes the calls that ended since the last time and that no session puts on record, so that they are.
    pub fn take_unlogged(&self) -> Vec<UnloggedCall> {
        std::mem::take(&mut self.0.account.lock().unlogged)
    }

    /// Waits until a call is reserved that is not on record.
    pub(crate) async fn reserved(&self) {
        self.0.reserved.notified().await;
    }

    /// Calls that are about to be made, and wait until their reservation is on record.
    pub(crate) fn unrecorded(&self) -> Vec<ReservedCall> {
        self.0.account.lock().unrecorded.clone()
    }

    /// Lets calls be made whose reservation is on record.
    pub(crate) fn note_recorded(&self, calls: &[ReservedCall]) {
        let mut account = self.0.account.lock();
        account.unrecorded.retain(|call| !calls.contains(call));
        drop(account);
        self.0.recorded.notify_waiters();
    }

    /// Takes the calls on record as reserved that have ended since the last time. What they used must be on record before.
    pub(crate) fn take_ended(&self) -> Vec<u64> {
        std::mem::take(&mut self.0.account.lock().ended)
    }

    /// Waits until the reservation of a call is on record.
    async fn recorded(self, number: u64) {
        loop {
            let recorded = self.0.recorded.notified();
            if !self.is_unrecorded(number) {
                return;
            }
            recorded.await;
        }
    }

    fn is_unrecorded(&self, number: u64) -> bool {
        self.0.account.lock().unrecorded.iter().any(|call| call.number == number)
    }

    /// Reserves the most that a call could use, with an output limit that fits. `None` if it may fit once calls in
    /// flight have ended.
    fn reserve(
        &self,
        request: &mut ModelRequest,
        facts: &ProviderFacts,
        input: u64,
    ) -> Result<Option<Reservation>, OverBudget> {
        let mut account = self.0.account.lock();
        let is_turn = match request.initiator {
            Initiator::User | Initiator::Agent | Initiator::Subagent => true,
            Initiator::Compaction | Initiator::Aside | Initiator::Background => false,
        };
        let output = match account.fit(account.taken(), request, facts, input, is_turn) {
            Ok(output) => output,
            // It would fit without the calls in flight, which usually do not use all that they reserved.
            Err(_) if account.fit(account.spent, request, facts, input, is_turn).is_ok() => return Ok(None),
            Err(over) => return Err(over),
        };
        let held = Spending {
            cost: facts.price.as_ref().map_or(0.0, |price| price.at_most(input, output)),
            tokens: input.saturating_add(output),
            turns: u64::from(is_turn),
        };
        let budget = account.budget();
        if budget.max_cost.is_some() || budget.max_tokens.is_some() {
            request.max_output_tokens = Some(output);
        }
        account.calls += 1;
        let number = account.calls;
        account.reserved.push((number, held));
        let reservation = Reservation {
            ledger: self.clone(),
            number,
            logged: !budget.is_unlimited(),
            unattended: false,
            model: request.model.clone(),
            held,
            capped: budget.max_cost.is_some() || budget.max_tokens.is_some(),
            input,
            price: facts.price.clone(),
            uncounted: None,
            heard: false,
            settled: false,
        };
        if reservation.logged {
            let (model, bound) = (request.model.clone(), reservation.bound());
            account.unrecorded.push(ReservedCall { number, model, bound });
            self.0.reserved.notify_one();
        }
        Ok(Some(reservation))
    }

    fn note_unlogged(&self, call: UnloggedCall) {
        let mut account = self.0.account.lock();
        if account.unlogged.len() < UNLOGGED_CALLS {
            return account.unlogged.push(call);
        }
        if let Some(last) = account.unlogged.last_mut() {
            let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
            last.usage.input_tokens = sum(last.usage.input_tokens, call.usage.input_tokens);
            last.usage.output_tokens = sum(last.usage.output_tokens, call.usage.output_tokens);
            last.usage.cost = last.usage.cost.zip(call.usage.cost).map(|(a, b)| a + b);
            last.calls.extend(call.calls);
        }
    }

    fn settle(&self, number: u64, used: Spending) {
        let mut account = self.0.account.lock();
        account.reserved.retain(|(reserved, _)| *reserved != number);
        account.unrecorded.retain(|call| call.number != number);
        account.spent = account.spent.plus(used);
        drop(account);
        self.0.settled.notify_waiters();
    }
}

impl Account {
    fn budget(&self) -> Budget {
        self.session.within(self.client).within(self.turn)
    }

    /// Spent plus reserved.
    fn taken(&self) -> Spending {
        self.reserved.iter().fold(self.spent, |sum, (_, held)| sum.plus(*held))
    }

    /// Output limit with which a call fits into the unreserved budget.
    fn fit(
        &self,
        taken: Spending,
        request: &ModelRequest,
        facts: &ProviderFacts,
        input: u64,
        is_turn: bool,
    ) -> Result<u64, OverBudget> {
        let Budget { max_cost, max_tokens, max_turns } = self.budget();
        if let Some(cap) = max_turns
            && is_turn
            && taken.turns >= cap
        {
            return Err(OverBudget::Turns { cap, spent: self.spent.turns });
        }
        let wanted = request.max_output_tokens.or(facts.max_output_tokens).unwrap_or(USUAL_OUTPUT);
        let least = LEAST_OUTPUT.min(wanted);
        let mut output = wanted;
        if let Some(cap) = max_tokens {
            let left = cap.saturating_sub(taken.tokens);
            let share = ((left as f64 * SHARE) as u64).saturating_sub(input).max(AMPLE_OUTPUT);
            output = output.min(left.saturating_sub(input)).min(share);
            if output < least {
                return Err(OverBudget::Tokens { cap, spent: self.spent.tokens, next: input + least });
            }
        }
        if let Some(cap) = max_cost {
            let Some(price) = &facts.price else {
                return Err(OverBudget::NoPrice { model: request.model.clone() });
            };
            let left = cap - taken.cost;
            let share = affordable(price, input, output, left * SHARE).max(AMPLE_OUTPUT);
            output = affordable(price, input, output.min(share), left);
            if output < least {
                let next = price.at_most(input, least);
                return Err(OverBudget::Cost { cap, spent: self.spent.cost, next });
            }
        }
        Ok(output)
    }
}

/// Largest output limit up to `most` with which a call costs no more than `left`; zero if none does.
fn affordable(price: &Price, input: u64, most: u64, left: f64) -> u64 {
    let fits = |output: u64| price.at_most(input, output) <= left;
    if fits(most) {
        return most;
    }
    // The cost grows with the limit, so binary search finds the last one that fits.
    let (mut low, mut high) = (0, most);
    while low + 1 < high {
        let middle = low + (high - low) / 2;
        if fits(middle) { low = middle } else { high = middle }
    }
    low
}

/// An amount with cents, and with as many digits more as it takes to see a small one.
pub fn dollars(amount: f64) -> String {
    let places = match amount {
        _ if amount <= 0.0 || amount >= 1.0 => 2,
        _ if amount >= 0.01 => 4,
        _ => 6,
    };
    let text = format!("${amount:.places$}");
    // Zeros behind the cents say nothing.
    let cents = text.find('.').map_or(text.len(), |point| point + 3);
    let kept = text.trim_end_matches('0').len().max(cents);
    text[..kept].to_owned()
}

/// Reason why a call was not made.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
enum OverBudget {
    #[error(
        "the budget is used up: {} of {} are spent and the next call could cost {}; raise `--max-cost`, \
         or `max_cost` in [budget] of config.toml, to go on", dollars(*spent), dollars(*cap), dollars(*next)
    )]
    Cost { cap: f64, spent: f64, next: f64 },
    #[error(
        "the budget is used up: {spent} of {cap} tokens are spent and the next call could use {next}; raise `--max-tokens`, \
         or `max_tokens` in [budget] of config.toml, to go on"
    )]
    Tokens { cap: u64, spent: u64, next: u64 },
    #[error(
        "the budget is used up: {spent} of {cap} turns are spent; raise `--max-turns`, or `max_turns` in [budget] of \
         config.toml, to go on"
    )]
    Turns { cap: u64, spent: u64 },
    #[error("{}", no_price(model))]
    NoPrice { model: String },
}

/// Error of a cap on cost with a model of unknown price.
pub fn no_price(model: &str) -> String {
    format!(
        "the price of the model `{model}` is not known, so a cap on cost cannot be held; set `price = {{ input = 1.0, output = \
         5.0 }}` (US dollars for a million tokens) in its [providers.NAME] table of config.toml, or use `--max-tokens` instead"
    )
}

impl From<OverBudget> for ModelError {
    fn from(over: OverBudget) -> Self {
        let code = match over {
            OverBudget::Cost { .. } => "max_cost",
            OverBudget::Tokens { .. } => "max_tokens",
            OverBudget::Turns { .. } => "max_turns",
            OverBudget::NoPrice { .. } => "no_price",
        };
        Self { code: Some(code.to_owned()), ..Self::new(ModelErrorKind::Budget, over.to_string()) }
    }
}

#[derive(Clone)]
struct BudgetedProvider {
    provider: Arc<dyn ModelProvider>,
    bounds: Arc<InputBounds>,
    ledger: BudgetLedger,
    /// Whether no session puts its answers on record.
    unattended: bool,
}

impl BudgetedProvider {
    /// Whether a cap makes reservations necessary. Without one nothing is counted, because counting takes time.
    fn is_capped(&self) -> bool {
        let budget = self.ledger.budget();
        budget.max_cost.is_some() || budget.max_tokens.is_some()
    }

    /// Makes a call if it fits; `None` if it has to wait.
    fn call(&self, request: &mut ModelRequest) -> Option<ModelStream> {
        let capped = self.is_capped();
        let input = if capped { self.bounds.of(request) } else { 0 };
        match self.ledger.reserve(request, &self.provider.facts(), input) {
            Ok(None) => None,
            Ok(Some(mut reservation)) => {
                reservation.unattended = self.unattended;
                if !capped {
                    reservation.uncounted = Some((Arc::clone(&self.bounds), request.clone()));
                }
                let mut sent = capped.then(|| self.bounds.note(request, input)).flatten();
                let answer = match reservation.logged {
                    // A process that is killed during the call leaves its reservation on record.
                    true => {
                        let recorded = self.ledger.clone().recorded(reservation.number);
                        let (provider, request) = (Arc::clone(&self.provider), request.clone());
                        let made = async move {
                            recorded.await;
                            provider.stream(request)
                        };
                        stream::once(made).flatten().boxed()
                    }
                    false => self.provider.stream(request.clone()),
                };
                let bounds = Arc::clone(&self.bounds);
                let heard = move |event: &_| {
                    if let Ok(ModelEvent::Finished(reply)) = event
                        && let Some(tokens) = reply.usage.input_tokens
                        && let Some(sent) = sent.take()
                    {
                        bounds.learn(sent, tokens);
                    }
                    reservation.hear(event);
                };
                Some(answer.inspect(heard).boxed())
            }
            Err(over) => Some(stream::iter([Err(over.into())]).boxed()),
        }
    }
}

/// Estimates tokens without a tokenizer; rather too many than too few.
struct Bytes;

impl Bytes {
    const PER_TOKEN: usize = 3;

    fn tokens(bytes: usize) -> u64 {
        bytes.div_ceil(Self::PER_TOKEN) as u64
    }
}

impl TokenMeter for Bytes {
    fn system(&self, text: &str) -> u64 {
        Self::tokens(text.len())
    }

    fn message(&self, message: &Message) -> u64 {
        Self::tokens(conversation::size(message))
    }

    fn tools(&self, tools: &[Arc<ToolSpec>]) -> u64 {
        Self::tokens(tools.iter().map(|tool| tool.size()).sum())
    }
}

type ModelStream = BoxStream<'static, Result<ModelEvent, ModelError>>;

impl ModelProvider for BudgetedProvider {
    fn stream(&self, mut request: ModelRequest) -> ModelStream {
        if let Some(answer) = self.call(&mut request) {
            return answer;
        }
        let this = self.clone();
        let later = async move {
            loop {
                // A call that settles between the attempt and the wait must not be missed.
                let settled = this.ledger.0.settled.notified();
                if let Some(answer) = this.call(&mut request) {
                    return answer;
                }
                settled.await;
            }
        };
        stream::once(later).flatten().boxed()
    }

    fn facts(&self) -> ProviderFacts {
        self.provider.facts()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Rates;

    fn price() -> Price {
        Price::flat(Rates { input: 2.0, output: 10.0, cache_read: None, cache_write: None })
    }

    #[test]
    fn the_output_limit_is_lowered_to_what_the_rest_of_the_budget_pays_for() {
        // 10,000 tokens of input cost two cents, each thousand of output one.
        let check = |left: f64, most: u64, expected: u64| {
            assert_eq!(affordable(&price(), 10_000, most, left), expected, "{left}");
        };
        check(1.0, 32_000, 32_000);
        check(0.05, 32_000, 3000);
        check(0.02, 32_000, 0);
        check(0.0, 32_000, 0);
        check(-1.0, 32_000, 0);
    }

    #[test]
    fn small_amounts_are_seen_and_zero_is_zero() {
        for (amount, text) in [
            (0.0, "$0.00"),
            (0.01, "$0.01"),
            (0.0125, "$0.0125"),
            (0.00004, "$0.00004"),
            (5.0, "$5.00"),
            (3.816, "$3.82"),
        ] {
            assert_eq!(dollars(amount), text);
        }
    }

    #[test]
    fn the_lower_cap_of_two_holds() {
        let one = Budget { max_cost: Some(1.0), max_tokens: None, max_turns: Some(3) };
        let two = Budget { max_cost: Some(0.5), max_tokens: Some(10), max_turns: Some(5) };
        let both = Budget { max_cost: Some(0.5), max_tokens: Some(10), max_turns: Some(3) };
        assert_eq!((one.within(two), two.within(one)), (both, both));
        assert!(Budget::default().is_unlimited() && !both.is_unlimited());
    }
}
