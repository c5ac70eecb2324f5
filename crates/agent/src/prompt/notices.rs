//! Notices to the model in the course of a session.

use hangar_protocol::data::{Mode, PlanAction};

/// Message to an autopilot that ended its turn without `task_complete`.
pub const CONTINUATION: &str = "\
The task is still open: you ended your turn without calling task_complete.

If you were planning, stop planning and start implementing. You are done only when everything that was asked for works \
and you have seen it work. Do not call task_complete while

- questions are open: decide by your best judgement and go on;
- something failed: fix it, or find another way;
- steps remain: do them first.

Go on by yourself until the task is really finished, then call task_complete with a summary.";

/// Message after an answer that reached the output limit.
pub const CUT_SHORT: &str = "Your answer reached the output limit. Please continue from where you left off.";

/// Message after an answer that reached the output limit before it said anything.
pub const CUT_THOUGHT: &str = "Your reasoning reached the output limit before you answered, and none of it was kept. Reason less this \
                               time: answer, or make the next call, as soon as you know it.";

/// Error of a run whose answers reach the output limit each time.
pub const STAYS_CUT: &str = "The model's answer reached the output limit again and again, so the run was stopped before the answer \
                             was complete. Send a message to go on, or raise `max_output_tokens` of the model.";

/// Error of a run whose reasoning fills the output limit each time.
pub const ONLY_THOUGHT: &str = "The model's reasoning reached the output limit again and again, so there is no answer. Lower the \
                                effort, or raise `max_output_tokens` of the model.";

/// Message after an answer that filled the context window, which has room again.
pub const CUT_BY_WINDOW: &str = "Your answer filled the context window, and earlier parts of the conversation were left out or \
                                 summarised since. Please continue from where you left off.";

/// Message after an answer that filled the context window inside a call.
pub fn call_cut_by_window(name: &str) -> String {
    format!(
        "Your answer filled the context window inside a call of {name}, so that call was not made. Make it again with less \
         input, for example in several smaller steps."
    )
}

/// Error of a run whose answers fill the context window each time.
pub const WINDOW_STAYS_FULL: &str = "The model's answer filled its context window again and again, so the run was stopped. Start a \
                                     new session, or ask for smaller steps.";

/// Error of a run whose answer the provider pauses each time.
pub const STAYS_PAUSED: &str = "The provider paused the model's answer again and again, so the run was stopped before the answer was \
                                complete. Send a message to go on.";

/// Message after an answer that a limit cut inside a call.
pub fn cut_call(name: &str) -> String {
    format!(
        "Your answer reached the output limit inside a call of {name}, so that call was not made. Make it again with less \
         input, for example in several smaller steps."
    )
}

/// Error of a run whose calls do not fit into the output limit.
pub fn calls_stay_cut(name: &str) -> String {
    format!(
        "The model's call of {name} reached the output limit again and again, so the run was stopped. Ask for smaller \
         steps, or raise `max_output_tokens` of the model."
    )
}

/// Error of an answer that the provider withheld.
pub const FILTERED: &str = "The provider's content filter withheld the answer.";

/// Error of an answer that the model refused to give.
pub fn refused(explanation: Option<&str>) -> String {
    match explanation {
        Some(explanation) => format!("The model refused to answer ({explanation})."),
        None => "The model refused to answer.".to_owned(),
    }
}

/// Error of an answer that is empty.
pub const EMPTY: &str = "The model returned an empty answer. Send the message again to retry.";

/// Error of an answer that filled the context window, when nothing can be dropped.
pub const CONTEXT_FULL: &str =
    "The conversation fills the context window of the model and cannot be made shorter. Start a new session.";

/// Error of an answer that was not usable twice.
pub fn unusable(reason: &str) -> String {
    match reason {
        "" => "The model's answer ended without content and without a reason, twice.".to_owned(),
        reason => format!("The model's answer was not usable, twice: the provider ended it with `{reason}`."),
    }
}

/// Message after an empty answer that followed read-only tool calls.
pub const SAY_SOMETHING: &str = "Your last answer was empty. If you have what you need, answer the request now; otherwise go on with the work.";

/// Message about a call that is repeated.
pub fn repeated(name: &str, times: u32) -> String {
    format!(
        "You have called {name} {times} times with the same input and got the same result each time. Calling it again \
         will not change that. Try something else, or say what keeps you from going on."
    )
}

/// Error of a run that was stopped because it repeated a call.
pub fn stopped_repeating(name: &str, times: u32) -> String {
    format!(
        "The model called {name} {times} times with the same input and got the same result each time, so the run was \
         stopped. Send another message to go on."
    )
}

/// Message that starts the work on an approved plan.
pub const IMPLEMENT_PLAN: &str =
    "The plan is approved. Carry it out now, step by step, and verify each step.";

/// Result of `ask_user` when nobody is there.
pub const NOBODY_TO_ASK: &str = "\
The user is not available to answer and will look at the result later. Decide by yourself and go on. If the request \
cannot be settled without them, stop and say in task_complete what is unclear rather than build on a guess.";

/// Prompt for a summary of the conversation. Other programs recognise such a request by its first sentence.
pub const SUMMARIZE: &str = "\
Please create a detailed summary of the conversation so far. The history is being compacted: what you write here \
replaces it, so whoever goes on must find in it everything that is needed. Call no tools. Use these sections, each in tags \
of its name:

<overview>: what the user wants and what the work is about.
<history>: what was asked and what was done about it, in order.
<work_done>: files made or changed and what is in them now, what works, what was verified.
<technical_details>: decisions and their reasons, things that were found out, open questions.
<important_files>: paths, why they matter, the places in them.
<next_steps>: what is left to do, first things first.
<checkpoint_title>: a title of two to six words.";

/// Addition for conversations that are already partly summarised.
pub const SUMMARIZE_THE_REST: &str = "\
The first message holds summaries of what came before it. They stay as they are: do not repeat them, and sum up only the \
messages after that one.";

/// Placeholder for the middle of a text that is too long to be summarised.
pub fn left_out(bytes: usize) -> String {
    format!("\n[{bytes} bytes left out]\n")
}

/// Notice of the mode, given once.
pub fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Interactive => {
            "<system_reminder>Interactive mode: answer the user, act on what they ask for, and hand back when it is done.</system_reminder>"
        }
        Mode::Plan => {
            "<system_reminder>Plan mode: explore and think, change nothing. Write the plan to plan.md in the session folder, so \
             that someone else could carry it out: goal, steps, files, how each step is verified, open questions. \
             Tools that change anything outside the session folder are refused.</system_reminder>"
        }
        Mode::Autopilot => {
            "<system_reminder>Autopilot: nobody is watching, so work on your own until the task is finished and verified. Do not \
             stop to ask or to announce what you will do next. When everything that was asked for works, call \
             task_complete with a summary; ending your turn without it means the task is still open.</system_reminder>"
        }
    }
}

/// Result of a call that would change something in plan mode.
pub const PLAN_REFUSAL: &str = "\
Plan mode changes nothing outside the session folder, so this call was refused. Read what you need, write the plan to \
plan.md in the session folder, and leave the change for later.";

/// Result of a plan that was approved. Recorded conversations fix its wording.
pub fn plan_approved(action: PlanAction) -> &'static str {
    match action {
        PlanAction::Interactive => {
            "Plan approved! Exited plan mode.\n\nYou are now in interactive mode. Start implementing the plan now, in this \
             same response. Approving the plan is your go-signal, so do not stop to ask whether to proceed or wait for \
             another message."
        }
        PlanAction::Autopilot | PlanAction::AutopilotFleet => {
            "Plan approved! Exited plan mode.\n\nYou are now in autopilot mode. Start implementing the plan now, in this \
             same response, and go on by yourself until it is done and verified; then call task_complete with a summary."
        }
        PlanAction::ExitOnly => {
            "Plan approved! Exited plan mode.\n\nDo not start implementing the plan: the user will say when. End your turn \
             with one sentence."
        }
    }
}

/// Result of a plan that was not approved.
pub fn plan_refused(feedback: Option<&str>) -> String {
    match feedback {
        Some(feedback) => format!(
            "The plan was not approved, and you are still in plan mode. The user says: {feedback}\n\nChange the plan \
             accordingly and hand it in again."
        ),
        None => "The plan was not approved, and you are still in plan mode. Ask what should be different, or end your \
                 turn."
            .to_owned(),
    }
}

/// Result of a call for a skill that the conversation has already.
pub(crate) fn skill_is_loaded(name: &str) -> String {
    format!("Skill \"{name}\" is loaded already. Follow the instructions in its skill context.")
}
