//! `/every` and `/after`: prompts that the session sends itself, again and again or once.

use serde_json::{Value, json};

use crate::calls::Purpose;
use crate::state::State;

const USAGE: &str =
    "an interval and a prompt are needed: /every 10m check the build, or /after 2h run the tests";

impl State {
    pub(crate) fn schedule(&mut self, recurring: bool, argument: &str) {
        let (first, rest) = argument.split_once(char::is_whitespace).unwrap_or((argument, ""));
        match (first, rest.trim()) {
            ("" | "list", "") => self.call("session.schedule.list", json!({}), Purpose::Schedules),
            ("stop", id) => match id.parse::<u64>() {
                Ok(id) => self.call("session.schedule.stop", json!({ "id": id }), Purpose::ScheduleStopped),
                Err(_) => self.print_error("which one? /every lists them with their numbers"),
            },
            (_, "") => self.print_error(USAGE),
            (interval, prompt) => {
                let params = json!({ "interval": interval, "prompt": prompt, "recurring": recurring });
                self.call("session.schedule.add", params, Purpose::Scheduled);
            }
        }
    }

    pub(crate) fn take_scheduled(&mut self, answer: &Value) {
        if let Some(error) = answer["error"].as_str() {
            return self.print_error(error);
        }
        let entry = &answer["entry"];
        let told = format!(
            "{}\n/every stop {} ends it; while the session is closed, it waits.",
            described(entry),
            id(entry)
        );
        self.print_text(&told);
    }

    pub(crate) fn take_schedules(&mut self, answer: &Value) {
        let entries = answer["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
        if entries.is_empty() {
            return self
                .print_text("No prompts are scheduled. /every 10m PROMPT sends one every ten minutes.");
        }
        self.print_text(&listed(entries));
    }

    /// Says what a session that was opened again is going to send itself.
    pub(crate) fn take_resumed_schedules(&mut self, answer: &Value) {
        let entries = answer["entries"].as_array().map(Vec::as_slice).unwrap_or_default();
        if !entries.is_empty() {
            self.print_text(&format!("This session has scheduled prompts:\n{}", listed(entries)));
        }
    }

    pub(crate) fn take_stopped_schedule(&mut self, answer: &Value) {
        match answer.get("entry") {
            Some(entry) => self.print_text(&format!("Stopped: {}", described(entry))),
            None => self.print_error("there is no schedule of that number; /every lists them"),
        }
    }
}

/// Schedules with their numbers, and how to end one.
fn listed(entries: &[Value]) -> String {
    let lines: Vec<String> =
        entries.iter().map(|entry| format!("{}. {}", id(entry), described(entry))).collect();
    format!("{}\n/every stop NUMBER ends one.", lines.join("\n"))
}

fn id(entry: &Value) -> u64 {
    entry["id"].as_u64().unwrap_or(0)
}

/// `every 10m: check the build`.
fn described(entry: &Value) -> String {
    let word = if entry["recurring"].as_bool().unwrap_or(true) { "every" } else { "once, after" };
    let prompt = entry["displayPrompt"].as_str().or(entry["prompt"].as_str()).unwrap_or_default();
    format!("{word} {}: {prompt}", interval(entry["intervalMs"].as_u64().unwrap_or(0) / 1_000))
}

/// Seconds in the largest unit that they are a number of.
fn interval(seconds: u64) -> String {
    let units = [(86_400, 'd'), (3_600, 'h'), (60, 'm')];
    let unit = units.into_iter().find(|(size, _)| seconds > 0 && seconds.is_multiple_of(*size));
    unit.map_or_else(|| format!("{seconds}s"), |(size, unit)| format!("{}{unit}", seconds / size))
}
