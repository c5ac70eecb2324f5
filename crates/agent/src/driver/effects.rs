//! Effects of a step, as the driver performs them.

use std::path::PathBuf;
use std::time::Duration;

use futures_util::{StreamExt, stream};
use hangar_protocol::data::{self, PlanAndTodos};
use tokio::time::Instant;

use super::lane::{LaneId, MAIN, renew};
use super::tools::Inspected;
use super::{Driver, Inputs};
use crate::agents::config::ModelChoice;
use crate::log::{ListedFact, LogError};
use crate::model::{ModelEvent, ModelRequest, TokenUsage};
use crate::retry::RetryReason;
use crate::session::{CallSeq, Command, Reminder, SessionEffect, SessionInput};

impl Driver {
    /// Performs an effect. Returns the inputs that follow at once.
    pub(super) fn perform(&mut self, id: LaneId, effect: SessionEffect) -> Result<Inputs, LogError> {
        let Some(lane) = self.lanes.get_mut(&id) else { return Ok(Vec::new()) };
        let here = |input: SessionInput| Ok(vec![(id, input)]);
        match effect {
            SessionEffect::CallModel(seq, request) => self.call_model(id, seq, *request),
            SessionEffect::Summarize(seq, request) => self.summarize(id, seq, *request),
            SessionEffect::UseModel(switch, waited) => {
                self.set_provider(switch.provider);
                self.switched.extend(waited);
            }
            SessionEffect::CancelModel => {
                renew(&mut lane.call);
            }
            SessionEffect::RetryAfter(seq, delay, reason) => self.retry_after(id, seq, delay, reason),
            SessionEffect::Inspect(calls) => {
                let stop = lane.tools.clone();
                match self.inspect(id, calls) {
                    Inspected::Now(inspections) => return here(SessionInput::Inspected(inspections)),
                    Inspected::Later(inspections) => self.running.work.push(Box::pin(async move {
                        (id, stop.run_until_cancelled(inspections).await.map(SessionInput::Inspected))
                    })),
                }
            }
            SessionEffect::RunTool(name, input, grant) => self.run_tool(id, &name, input, grant),
            SessionEffect::CancelTools => {
                renew(&mut lane.tools);
                renew(&mut lane.hooks);
            }
            SessionEffect::Hurry => {
                renew(&mut lane.hurry);
            }
            SessionEffect::Hook(request) => {
                let stop = lane.hooks.clone();
                let Some(hooks) = &self.host.hooks else { return here(request.done(Ok(None))) };
                let answer = hooks.ask(&request);
                self.running.asked.push(Box::pin(async move {
                    let answer = stop.run_until_cancelled(answer).await;
                    (id, answer.map(|answer| request.done(answer)))
                }));
            }
            SessionEffect::Agents(call_id, call) => return self.perform_agent_call(id, call_id, call),
            SessionEffect::AgentDone(end) => return Ok(self.agent_done(id, end)),
            SessionEffect::ReadPlan(call_id) => {
                let content = self.host.log.plan().unwrap_or_default();
                return here(SessionInput::Plan { call_id, content });
            }
            SessionEffect::Discover(touched) => {
                return here(SessionInput::Discovered(self.discover(id, touched)));
            }
            SessionEffect::Gather => return here(SessionInput::Gathered(self.gather(id))),
            SessionEffect::AskUnchanged => {
                let stop = lane.hooks.clone();
                let Some(place) = &self.host.surroundings else {
                    return here(SessionInput::Unchanged(false));
                };
                let answer = place.unchanged();
                self.running.work.push(Box::pin(async move {
                    (id, stop.run_until_cancelled(answer).await.map(SessionInput::Unchanged))
                }));
            }
            SessionEffect::Checkpoint(checkpoint) => {
                // The summary is in the log; a missing checkpoint file does not break the session.
                if let Err(error) = self.host.log.note(ListedFact::Checkpoint(checkpoint)) {
                    let warning = data::SessionWarning::new("checkpoint", error.to_string());
                    return here(SessionInput::Command(Command::Record(warning.into())));
                }
            }
            SessionEffect::Sync => {
                self.host.log.sync()?;
                if self.running_agents() == 0 {
                    self.host.log.rest();
                }
            }
        }
        Ok(Vec::new())
    }

    fn call_model(&mut self, id: LaneId, seq: CallSeq, request: ModelRequest) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        let stop = renew(&mut lane.call);
        let pieces = self.rate_limits.ask(&lane.provider, request);
        let pieces = pieces.map(move |piece| (id, SessionInput::Model(seq, piece)));
        self.running.calls.push(pieces.take_until(stop.cancelled_owned()).boxed());
    }

    fn summarize(&mut self, id: LaneId, seq: CallSeq, mut request: ModelRequest) {
        let other = self.summary_model(id, &request);
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        let stop = renew(&mut lane.summary);
        let pieces = match other {
            None => self.rate_limits.ask(&lane.provider, request),
            Some(ModelChoice { provider, model, .. }) => {
                let most = provider.facts().max_output_tokens;
                request.max_output_tokens = request.max_output_tokens.into_iter().chain(most).min();
                (request.model, request.effort) = (model, None);
                let provider = self.host.ledger.unattended(provider);
                self.rate_limits.ask(&provider, request).map(|piece| piece.map(accounted)).boxed()
            }
        };
        let pieces = pieces.map(move |piece| (id, SessionInput::Summary(seq, piece)));
        self.running.calls.push(pieces.take_until(stop.cancelled_owned()).boxed());
    }

    /// The model that is configured for summaries, if the conversation fits into its window.
    fn summary_model(&self, id: LaneId, request: &ModelRequest) -> Option<ModelChoice> {
        let config = self.lanes.get(&id)?.session.config();
        let choice = self.host.models.as_ref()?.find(config.agent_config.as_ref()?.summary_model()?)?;
        let fits = config.metering.meter.as_ref().is_none_or(|meter| {
            let messages = request.messages.iter().map(|message| meter.message(message)).sum::<u64>();
            messages + meter.system(&request.system) + meter.tools(&request.tools) <= choice.max_prompt_tokens
        });
        fits.then_some(choice)
    }

    fn retry_after(&mut self, id: LaneId, seq: CallSeq, delay: Duration, reason: RetryReason) {
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        let stop = renew(&mut lane.call);
        let delay = delay.mul_f64(self.host.retry_scale);
        let now = Instant::now();
        if reason == RetryReason::RateLimit {
            self.rate_limits.hold(&lane.provider, delay, now);
        }
        let wait = async move {
            tokio::time::sleep_until(now + delay).await;
            (id, SessionInput::RetryDue(seq))
        };
        self.running.calls.push(stream::once(wait).take_until(stop.cancelled_owned()).boxed());
    }

    fn discover(&mut self, id: LaneId, touched: Vec<(PathBuf, String)>) -> Vec<Reminder> {
        let Some(lane) = self.lanes.get_mut(&id) else { return Vec::new() };
        // Each conversation is given its instructions separately.
        if id != MAIN && lane.discovery.is_none() {
            lane.discovery = self.host.discovery.as_ref().map(|discovery| discovery.anew());
        }
        let discovery = if id == MAIN { &mut self.host.discovery } else { &mut lane.discovery };
        let reminders = discovery.as_mut().map(|discovery| discovery.discover(touched));
        reminders.unwrap_or_default()
    }

    fn gather(&mut self, id: LaneId) -> PlanAndTodos {
        // The plan and the todos belong to the session, not to its sub-agents.
        let surroundings = self.host.surroundings.as_mut().filter(|_| id == MAIN);
        surroundings.map(|place| place.plan_and_todos()).unwrap_or_default()
    }
}

/// The answer of another model, whose usage is put on record with its call, under its own name.
fn accounted(event: ModelEvent) -> ModelEvent {
    match event {
        ModelEvent::Finished(mut reply) => {
            reply.usage = TokenUsage::default();
            ModelEvent::Finished(reply)
        }
        event => event,
    }
}
