//! One model call: from the request to an answer or a failure.

use std::time::Duration;

use hangar_protocol::data::{self, CallOutcome};
use jiff::Timestamp;
use serde_json::Value;
use serde_json::value::RawValue;

use super::beginning::Beginning;
use super::ending::AnswerEnd;
use super::run::{Ending, Phase, Run, millis_between};
use super::tools::is_file_edit;
use super::truncation::{BYTES_PER_TOKEN, Reduction};
use super::{CallOptions, CallSeq, Context, Session, SessionEffect, Step};
use crate::model::{
    Initiator, ModelError, ModelErrorKind, ModelEvent, ModelRequest, NativeTurn, Reply, TokenUsage, ToolCall,
    ToolChoice,
};
use crate::retry::{self, RetryDecision, RetryReason};
use crate::token_counts::Sent;

/// Most retries that a hook may ask for.
const MAX_HOOK_RETRIES: u64 = 10;
/// Delay before a retry that a hook asks for.
const HOOK_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Notices of providers that are remembered as told.
const TOLD_NOTICES: usize = 16;

/// Bytes of an unfinished answer that are kept; no model writes more in one answer.
const MAX_UNFINISHED: usize = 1024 * 1024;

pub(super) struct Call {
    seq: CallSeq,
    retries: u32,
    started: Timestamp,
    first_token: Option<Timestamp>,
    /// The last piece, and the number of pieces so far.
    last_token: Option<Timestamp>,
    pieces: u64,
    /// Id of the message, made when the first text arrives, so that pieces of a failed attempt never share an id with
    /// the answer.
    message_id: Option<String>,
    reasoning_id: Option<String>,
    /// Reason for the retry, while waiting for it.
    retry_reason: Option<RetryReason>,
    sent: Option<Sent>,
    /// Text and reasoning that have arrived, for an answer that is cut off.
    said: String,
    thought: String,
    /// The hook that is asked what to do about a failure, with the failure.
    asked: Option<(String, Box<ModelError>)>,
}

impl Call {
    pub(super) fn elapsed_ms(&self, now: Timestamp) -> u64 {
        millis_between(self.started, now)
    }

    /// Mean time between the pieces of a streamed answer.
    fn inter_token_ms(&self) -> Option<f64> {
        let span = millis_between(self.first_token?, self.last_token?);
        (self.pieces > 1).then(|| span as f64 / (self.pieces - 1) as f64)
    }

    pub(super) fn cancel_phase(&self) -> &'static str {
        if self.first_token.is_some() { "mid_stream" } else { "pre_first_token" }
    }
}

impl Session {
    pub(super) fn call_model(&mut self, retries: u32, step: &mut Step, context: &mut Context<'_>) {
        self.calls += 1;
        let seq = CallSeq(self.calls);
        let Some(run) = &mut self.run else { return };
        run.phase = Phase::Calling(Call {
            seq,
            retries,
            started: context.now,
            first_token: None,
            last_token: None,
            pieces: 0,
            message_id: None,
            reasoning_id: None,
            retry_reason: None,
            sent: None,
            said: String::new(),
            thought: String::new(),
            asked: None,
        });
        let turn_id = run.turn.to_string();
        let call_options = run.call_options.clone();
        let model = Some(self.state.model.clone());
        let request = ModelRequest { initiator: self.initiator(), ..self.next_request(call_options) };
        self.note_shown(&request.tools, step);
        self.keep_beginning(&request, step);
        if retries == 0 {
            self.report_context(&request, step);
        }
        if let Some(Run { phase: Phase::Calling(call), .. }) = &mut self.run {
            call.sent = Sent::of(&request);
        }
        self.emit(step, data::ModelCallStart { turn_id, model });
        step.effects.push(SessionEffect::CallModel(seq, Box::new(request)));
    }

    /// Reports a deviation of the provider from the request, once per process.
    fn tell_notice(&mut self, notice: String, step: &mut Step) {
        if self.told_notices.contains(&notice) {
            return;
        }
        if self.told_notices.len() == TOLD_NOTICES {
            self.told_notices.pop_front();
        }
        self.told_notices.push_back(notice.clone());
        self.emit(step, data::SessionInfo::new("model_adapted", notice));
    }

    /// The next request.
    pub(super) fn next_request(&self, call_options: CallOptions) -> ModelRequest {
        let Beginning { system, tools, .. } = self.beginning();
        ModelRequest {
            model: self.state.model.clone(),
            system,
            messages: match self.config.vision {
                true => self.state.conversation.messages().cloned().collect(),
                false => self.state.conversation.blind_messages().collect(),
            },
            late_tools: self.late_tools(&tools),
            tools,
            tool_choice: ToolChoice::Auto,
            effort: self.state.effort.clone(),
            stream: self.config.streaming,
            initiator: Initiator::User,
            session_id: self.state.session_id.clone(),
            headers: self.config.headers.iter().cloned().chain(call_options.headers).collect(),
            answer: call_options.answer,
            // An answer that was cut inside a call gets the model's full output limit.
            max_output_tokens: self
                .config
                .provider
                .max_output_tokens
                .filter(|_| self.run.as_ref().is_some_and(|run| run.endings.needs_room())),
        }
    }

    /// Publishes `session.usage_info`, if that is wanted.
    fn report_context(&mut self, request: &ModelRequest, step: &mut Step) {
        let Some(meter) = self.config.metering.meter.as_ref().filter(|_| self.config.metering.reports_usage)
        else {
            return;
        };
        let count = self.token_counts.measure(&**meter, request);
        let usage = data::UsageInfo {
            token_limit: self.config.max_prompt_tokens,
            current_tokens: count.total(),
            messages_length: request.messages.len() as u64,
            system_tokens: Some(count.system),
            conversation_tokens: Some(count.conversation),
            tool_definitions_tokens: Some(count.tools),
            is_initial: (self.calls == 1).then_some(true),
        };
        self.emit(step, usage);
    }

    pub(super) fn model(
        &mut self,
        seq: CallSeq,
        event: Result<ModelEvent, ModelError>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(Run { phase: Phase::Calling(call), .. }) = &mut self.run else { return };
        if call.seq != seq {
            return;
        }
        match event {
            Ok(ModelEvent::Finished(reply)) => self.answered(*reply, step, context),
            Err(error) => self.failed(&error, step, context),
            Ok(ModelEvent::Notice(notice)) => self.tell_notice(notice, step),
            Ok(piece) => {
                call.first_token.get_or_insert(context.now);
                call.last_token = Some(context.now);
                call.pieces += 1;
                if !self.config.streaming {
                    return;
                }
                match piece {
                    ModelEvent::Text(delta_content) => {
                        keep(&mut call.said, &delta_content);
                        let message_id = match &call.message_id {
                            Some(id) => id.clone(),
                            None => {
                                let id = call.message_id.insert(context.entropy.uuid()).clone();
                                self.emit(step, data::MessageStart { message_id: id.clone() });
                                id
                            }
                        };
                        self.emit(
                            step,
                            data::MessageDelta { message_id, delta_content, parent_tool_call_id: None },
                        );
                    }
                    ModelEvent::Reasoning(delta_content) => {
                        keep(&mut call.thought, &delta_content);
                        let reasoning_id =
                            call.reasoning_id.get_or_insert_with(|| context.entropy.uuid()).clone();
                        self.emit(step, data::ReasoningDelta { reasoning_id, delta_content });
                    }
                    ModelEvent::ToolInput { call_id, name, kind, delta } if !delta.is_empty() => {
                        let delta = data::ToolCallDelta {
                            tool_call_id: call_id,
                            tool_name: Some(name),
                            tool_type: Some(kind),
                            input_delta: delta,
                        };
                        self.emit(step, delta);
                    }
                    ModelEvent::ToolInput { .. } | ModelEvent::Notice(_) | ModelEvent::Finished(_) => {}
                }
            }
        }
    }

    fn answered(&mut self, mut reply: Reply, step: &mut Step, context: &mut Context<'_>) {
        let Some(run) = &mut self.run else { return };
        let Phase::Calling(call) = std::mem::replace(&mut run.phase, Phase::Between) else { return };
        run.unfinished = None;
        let verdict = run.endings.judge(&mut reply);
        self.account(&call, &reply, step, context);
        if let (Some(sent), Some(tokens)) = (call.sent.clone(), reply.usage.input_tokens) {
            self.token_counts.report(sent, tokens);
        }
        let outcome = match &verdict {
            AnswerEnd::Retry(_) | AnswerEnd::Withheld(_) => CallOutcome::Error,
            _ => CallOutcome::Success,
        };
        let edits = reply.turn.tool_calls.iter().any(|call| is_file_edit(&call.name));
        self.finish_call_event(&call, outcome, Some(edits), step, context);
        if let AnswerEnd::Retry(reason) = verdict {
            return self.retry_answer(reason, call.retries, step, context);
        }
        let calls = std::mem::take(&mut reply.turn.tool_calls);
        self.publish_answer(call, reply, &calls, step, context);
        match verdict {
            AnswerEnd::Calls { notice } => {
                if let Some(notice) = notice {
                    self.after_tools(notice.into());
                }
                self.begin_tools(calls, step, context);
            }
            verdict => {
                self.final_result("success".to_owned(), step);
                self.end_turn(step);
                self.conclude(verdict, step, context);
            }
        }
    }

    /// Emits the answer and its reasoning.
    fn publish_answer(
        &mut self,
        call: Call,
        reply: Reply,
        calls: &[ToolCall],
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let reasoning = reply.turn.reasoning.unwrap_or_default();
        let message_id = call.message_id.unwrap_or_else(|| context.entropy.uuid());
        self.log_items(&message_id, reply.turn.native, step);
        let Some(Run { interaction_id, message_id: origin, turn, .. }) = &self.run else { return };
        let message = data::AssistantMessage {
            message_id,
            originating_message_id: Some(origin.clone()),
            model: Some(self.state.model.clone()),
            content: reply.turn.text,
            tool_requests: calls.iter().map(|call| self.tool_request(call)).collect(),
            interaction_id: Some(interaction_id.clone()),
            turn_id: Some(turn.to_string()),
            reasoning_text: (!reasoning.text.is_empty()).then(|| reasoning.text.clone()),
            reasoning_opaque: reasoning.opaque,
            encrypted_content: reasoning.encrypted,
            output_tokens: reply.usage.output_tokens,
            api_call_id: reply.id,
            request_id: reply.request_ids.github,
            service_request_id: reply.request_ids.service,
            phase: reply.phase,
            parent_tool_call_id: None,
        };
        let said = message.content.clone();
        self.emit(step, message);
        if !reasoning.text.is_empty() {
            let reasoning_id = call.reasoning_id.unwrap_or_else(|| context.entropy.uuid());
            self.emit(step, data::AssistantReasoning { reasoning_id, content: reasoning.text });
        }
        if let Some(run) = &mut self.run {
            // A cut answer continues where it stopped. An empty one removes nothing.
            if !run.endings.goes_on() && !said.is_empty() {
                run.answer.clear();
            }
            run.answer.push_str(&said);
        }
    }

    /// Logs the vendor's own items of an answer, before the answer itself: a log that ends in between has no answer
    /// without its items.
    fn log_items(&mut self, message_id: &str, native: Option<NativeTurn>, step: &mut Step) {
        let Some(native) = native else { return };
        // Items that are not JSON could not be sent back either.
        let Ok(items) = RawValue::from_string(native.items.to_string()) else { return };
        let NativeTurn { origin, paused, prefix, .. } = native;
        self.emit(
            step,
            data::ModelItems { message_id: message_id.to_owned(), origin, items, paused, prefix },
        );
    }

    /// Initiator of this turn's call.
    fn initiator(&self) -> Initiator {
        match (self.agent(), &self.run) {
            (Some(_), _) => Initiator::Subagent,
            (None, Some(run)) if run.turn > 0 => Initiator::Agent,
            (None, _) => Initiator::User,
        }
    }

    /// Cost of a call in US dollars: as the provider reported it, else by the price of the model.
    pub(super) fn cost(&self, usage: &TokenUsage) -> Option<f64> {
        usage.cost.or_else(|| self.config.provider.price.as_ref()?.cost(usage))
    }

    /// Emits the usage of a call, as `assistant.usage` and for the log.
    fn account(&mut self, call: &Call, reply: &Reply, step: &mut Step, context: &mut Context<'_>) {
        let initiator = match self.initiator() {
            Initiator::User => "user",
            Initiator::Subagent => "sub-agent",
            Initiator::Agent | Initiator::Compaction | Initiator::Aside | Initiator::Background => "agent",
        };
        let usage = data::AssistantUsage {
            duration: Some(call.elapsed_ms(context.now)),
            time_to_first_token_ms: call.first_token.map(|at| millis_between(call.started, at) as f64),
            inter_token_latency_ms: call.inter_token_ms(),
            ..self.usage_of(reply, initiator)
        };
        self.emit(step, usage.clone());
        let record = self.usage_record(reply, usage);
        self.emit(step, record);
    }

    /// The record of a call for the log, which says where its cost comes from.
    pub(super) fn usage_record(&self, reply: &Reply, usage: data::AssistantUsage) -> data::UsageRecord {
        let computed = usage.cost.is_some() && reply.usage.cost.is_none();
        data::UsageRecord { computed: computed.then_some(true), ..usage.into() }
    }

    /// Usage and cost of an answer, without its times.
    pub(super) fn usage_of(&self, reply: &Reply, initiator: &str) -> data::AssistantUsage {
        data::AssistantUsage {
            model: self.state.model.clone(),
            input_tokens: reply.usage.input_tokens,
            output_tokens: reply.usage.output_tokens,
            cache_read_tokens: reply.usage.cache_read_tokens,
            cache_write_tokens: reply.usage.cache_write_tokens,
            reasoning_tokens: reply.usage.reasoning_tokens,
            cost: self.cost(&reply.usage),
            initiator: Some(initiator.to_owned()),
            api_call_id: reply.id.clone(),
            provider_call_id: reply.request_ids.github.clone(),
            service_request_id: reply.request_ids.service.clone(),
            api_endpoint: Some(self.config.provider.endpoint.to_owned()),
            reasoning_effort: self.state.effort.clone(),
            finish_reason: Some(reply.finish.name().to_owned()),
            ..Default::default()
        }
    }

    fn failed(&mut self, error: &ModelError, step: &mut Step, context: &mut Context<'_>) {
        let Some(run) = &mut self.run else { return };
        let Phase::Calling(mut call) = std::mem::replace(&mut run.phase, Phase::Between) else { return };
        let failure = data::ModelCallFailure {
            model: Some(self.state.model.clone()),
            status_code: error.status,
            duration_ms: Some(call.elapsed_ms(context.now)),
            api_endpoint: Some(self.config.provider.endpoint.to_owned()),
            failure_kind: Some(if error.status.is_some() { "api" } else { "transport" }.to_owned()),
            source: "top_level".to_owned(),
            error_message: Some(error.body.clone().unwrap_or_else(|| error.message.clone())),
            error_code: error.code.clone(),
            error_type: error_type(error),
        };
        if let Some(cut) = self.cut_answer(&call)
            && let Some(run) = &mut self.run
        {
            run.unfinished = Some(cut);
        }
        // The budget refused this call, so it was never made.
        if error.kind != ModelErrorKind::Budget {
            self.emit(step, failure);
        }
        self.finish_call_event(&call, CallOutcome::Error, None, step, context);
        if let Some(hook) = self.announce_error(&error.message, step, context) {
            // The answer of the hook decides; an abort ends the wait as it ends one for a retry.
            call.asked = Some((hook, Box::new(error.clone())));
            return self.set_phase(Phase::Waiting(call));
        }
        self.react(call, error, step, context);
    }

    /// Continues after the `errorOccurred` hook has answered.
    pub(super) fn error_answered(
        &mut self,
        hook: &str,
        output: Option<Value>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(run) = &mut self.run else { return };
        let Phase::Waiting(call) = &mut run.phase else { return };
        let Some((_, error)) = call.asked.take_if(|(asked, _)| asked == hook) else { return };
        let Phase::Waiting(mut call) = std::mem::replace(&mut run.phase, Phase::Between) else { return };
        let answer = output.unwrap_or_default();
        let allowed = answer["retryCount"].as_u64().unwrap_or(1).min(MAX_HOOK_RETRIES);
        match answer["errorHandling"].as_str() {
            Some("abort") => self.give_up(&error, call.retries, step, context),
            Some("skip") => {
                self.final_result(result_name(&error), step);
                let text = format!("The model call failed and was skipped by a hook: {}", error.message);
                self.emit(step, data::SessionInfo::new("model_call_skipped", text));
                self.end_turn(step);
                self.end_run(Ending::Answered, step, context);
            }
            Some("retry") if u64::from(call.retries) < allowed => {
                call.retry_reason = Some(RetryReason::ApiError);
                step.effects.push(SessionEffect::RetryAfter(
                    call.seq,
                    HOOK_RETRY_DELAY,
                    RetryReason::ApiError,
                ));
                self.set_phase(Phase::Waiting(call));
            }
            _ => self.react(call, &error, step, context),
        }
    }

    /// Retries a failed call or gives up, by the retry policy.
    fn react(&mut self, mut call: Call, error: &ModelError, step: &mut Step, context: &mut Context<'_>) {
        let reduced = match error.kind {
            ModelErrorKind::ContextLength => self.reduce_request(error, step, context),
            ModelErrorKind::Image => self.withhold_images(step, context),
            ModelErrorKind::Reasoning => self.withhold_reasoning(step, context),
            _ => false,
        };
        if reduced {
            return;
        }
        let shortened = self.run.as_ref().is_some_and(|run| run.reduction == Reduction::Shortened);
        let decision = match error.kind {
            ModelErrorKind::ContextLength if shortened && error.status == Some(413) => {
                retry::decide_too_large(error, call.retries, context.entropy)
            }
            _ => retry::decide(error, call.retries, context.entropy),
        };
        match decision {
            RetryDecision::Retry { after, reason } => {
                call.retry_reason = Some(reason);
                step.effects.push(SessionEffect::RetryAfter(call.seq, after, reason));
                if let Some(run) = &mut self.run {
                    run.phase = Phase::Waiting(call);
                }
            }
            RetryDecision::GiveUp => self.give_up(error, call.retries, step, context),
        }
    }

    /// The part of an answer that has arrived, if there is one.
    fn cut_answer(&self, call: &Call) -> Option<data::AnswerCut> {
        let run = self.run.as_ref()?;
        if call.said.trim().is_empty() && call.thought.trim().is_empty() {
            return None;
        }
        Some(data::AnswerCut {
            message_id: call.message_id.clone().or_else(|| call.reasoning_id.clone())?,
            content: call.said.clone(),
            reasoning_text: Some(call.thought.clone()).filter(|thought| !thought.is_empty()),
            interaction_id: Some(run.interaction_id.clone()),
            turn_id: Some(run.turn.to_string()),
            parent_tool_call_id: self.agent().map(|role| role.tool_call_id.clone()),
            recovered: false,
        })
    }

    /// Logs the part of a call's answer that has arrived, or that of the failed attempt before it.
    pub(super) fn log_cut_answer(&mut self, call: &Call, step: &mut Step) {
        if let Some(cut) = self.cut_answer(call)
            && let Some(run) = &mut self.run
        {
            run.unfinished = Some(cut);
        }
        self.log_unfinished(step);
    }

    fn log_unfinished(&mut self, step: &mut Step) {
        if let Some(cut) = self.run.as_mut().and_then(|run| run.unfinished.take()) {
            self.emit(step, cut);
        }
    }

    /// Bytes of the answer that is arriving, and one for the call itself. They only grow while one does.
    pub(crate) fn arrived_bytes(&self) -> usize {
        match &self.run {
            Some(Run { phase: Phase::Calling(call), .. }) => 1 + call.said.len() + call.thought.len(),
            Some(Run { phase: Phase::Waiting(call), .. }) => call.said.len() + call.thought.len(),
            _ => 0,
        }
    }

    /// Estimated usage of the call in flight, in the form that is logged if the process is killed before its end.
    pub(crate) fn usage_so_far(&self) -> Option<data::UsageRecord> {
        let Some(Run { phase: Phase::Calling(call), .. }) = &self.run else { return None };
        let input = self.measure().unwrap_or_else(|| self.estimate()).total();
        let output = (call.said.len() + call.thought.len()) / BYTES_PER_TOKEN;
        let usage = TokenUsage {
            input_tokens: Some(input),
            output_tokens: Some(output as u64),
            ..TokenUsage::default()
        };
        let cost = self.cost(&usage);
        let usage = data::AssistantUsage {
            model: self.state.model.clone(),
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            cost,
            finish_reason: Some("cut".to_owned()),
            ..Default::default()
        };
        Some(data::UsageRecord { computed: cost.is_some().then_some(true), ..usage.into() })
    }

    /// The answer that is arriving, in the form that is logged if the process is killed before its end.
    pub(crate) fn arriving_answer(&self) -> Option<data::AnswerCut> {
        let Some(Run { phase: Phase::Calling(call) | Phase::Waiting(call), .. }) = &self.run else {
            return None;
        };
        self.cut_answer(call).map(|cut| data::AnswerCut { recovered: true, ..cut })
    }

    /// Ends the run with the provider's error.
    pub(super) fn give_up(
        &mut self,
        error: &ModelError,
        retries: u32,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        self.log_unfinished(step);
        self.final_result(result_name(error), step);
        let retried = match retries {
            _ if error.kind == ModelErrorKind::Budget => String::new(),
            0 => String::new(),
            1 => " (retried once)".to_owned(),
            n => format!(" (retried {n} times)"),
        };
        // Whoever retries the session has to know it.
        let wait = error.retry_after.filter(|wait| *wait > retry::LONGEST_WAIT);
        let wait = wait.map(|wait| format!("; retry after {} s", wait.as_secs())).unwrap_or_default();
        let kind = match error.kind {
            ModelErrorKind::Authentication | ModelErrorKind::AccessDenied => "authentication",
            ModelErrorKind::RateLimit => "rate_limit",
            ModelErrorKind::Quota => "quota",
            ModelErrorKind::Budget => "budget",
            ModelErrorKind::ContextLength => "context_limit",
            _ => "query",
        };
        let reported = data::SessionError {
            status_code: error.status,
            error_code: error.code.clone(),
            provider_call_id: error.request_ids.github.clone(),
            service_request_id: error.request_ids.service.clone(),
            ..data::SessionError::new(kind, format!("{}{retried}{wait}", error.message))
        };
        if self.may_switch(error) {
            return self.ask_to_switch(error, reported, step, context);
        }
        self.end_turn(step);
        self.fail_run(reported, step, context);
    }

    pub(super) fn retry_due(&mut self, seq: CallSeq, step: &mut Step, context: &mut Context<'_>) {
        let Some(run) = &mut self.run else { return };
        let turn_id = run.turn.to_string();
        let (retries, reason) = match &run.phase {
            Phase::Waiting(call) if call.seq == seq => (call.retries + 1, call.retry_reason),
            _ => return,
        };
        let retry = data::TurnRetry {
            turn_id,
            model: Some(self.state.model.clone()),
            reason: reason.map(|reason| reason.as_str().to_owned()),
        };
        self.emit(step, retry);
        if reason != Some(RetryReason::RateLimit) {
            let message = "The request failed; trying again.".to_owned();
            self.emit(step, data::SessionInfo::new("model_retry", message));
        }
        self.call_model(retries, step, context);
    }

    pub(super) fn fail_run(&mut self, error: data::SessionError, step: &mut Step, context: &mut Context<'_>) {
        self.last_run.failure = Some(error.message.clone());
        self.emit(step, error);
        self.end_run(Ending::Failed, step, context);
    }

    pub(super) fn finish_call_event(
        &mut self,
        call: &Call,
        outcome: CallOutcome,
        edits: Option<bool>,
        step: &mut Step,
        context: &mut Context<'_>,
    ) {
        let Some(run) = &self.run else { return };
        let finished = data::ModelCallFinished {
            turn_id: run.turn.to_string(),
            dispatch_duration_ms: call.elapsed_ms(context.now),
            outcome,
            edit_classifier_version: 1,
            interaction_id: Some(run.interaction_id.clone()),
            contains_built_in_file_edit_request: edits,
        };
        self.emit(step, finished);
    }

    pub(super) fn final_result(&mut self, result: String, step: &mut Step) {
        let model = Some(self.state.model.clone());
        let is_byok = self.config.provider.is_byok;
        self.emit(step, data::ModelCallFinalResult { model, is_byok, result });
    }

    fn tool_request(&self, call: &ToolCall) -> data::ToolRequest {
        let arguments = parse_arguments(call);
        let intention_summary =
            arguments.get("description").and_then(serde_json::Value::as_str).map(str::to_owned);
        let tool_title =
            self.config.tools.iter().find(|spec| spec.name == call.name).and_then(|spec| spec.title.clone());
        data::ToolRequest {
            tool_call_id: call.id.clone(),
            name: call.name.clone(),
            arguments,
            kind: Some(call.kind),
            intention_summary,
            tool_title,
            mcp_server_name: None,
            mcp_tool_name: None,
        }
    }
}

/// Adds a piece to the text of an unfinished answer.
fn keep(text: &mut String, piece: &str) {
    let room = MAX_UNFINISHED.saturating_sub(text.len());
    text.push_str(&piece[..piece.floor_char_boundary(room)]);
}

/// Parses the arguments of a call. Free text, of a custom tool or by mistake of the model, becomes a string.
pub(super) fn parse_arguments(call: &ToolCall) -> serde_json::Value {
    let text = || serde_json::Value::String(call.input.clone());
    match call.kind {
        data::ToolType::Custom => text(),
        data::ToolType::Function if call.input.trim().is_empty() => serde_json::json!({}),
        data::ToolType::Function => match serde_json::from_str(&call.input) {
            Ok(serde_json::Value::Object(arguments)) => serde_json::Value::Object(arguments),
            Ok(_) | Err(_) => text(),
        },
    }
}

/// `type` of the provider's error object.
fn error_type(error: &ModelError) -> Option<String> {
    let body: serde_json::Value = serde_json::from_str(error.body.as_deref()?).ok()?;
    let object = body.get("error").unwrap_or(&body);
    object.get("type")?.as_str().map(str::to_owned)
}

fn result_name(error: &ModelError) -> String {
    match error.status {
        Some(status @ (400 | 413 | 429)) => format!("http_{status}"),
        Some(status) => format!("http_{}xx", status / 100),
        None => "transport_error".to_owned(),
    }
}
