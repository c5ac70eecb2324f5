//! Redaction of secrets in output, logs and requests to the model.
//!
//! Secrets are searched in texts, never in their serialised form, so JSON stays valid whatever a secret looks like.
//! [`stream`] does the same for streaming texts; [`guards`] apply it at the boundaries of a session.

mod guards;
mod runtime;
mod stream;

pub(crate) use runtime::runtime;

use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use hangar_jobs::record::RunRecord;
use hangar_protocol::data::ModelItems;
use hangar_protocol::{Body, Event};
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::credentials;
use crate::providers::SelectedModel;
use crate::settings::Settings;

/// Minimum length of a secret. A shorter value cannot be told from ordinary text.
const MIN_SECRET: usize = 6;
/// Minimum length of one line of a secret with several lines.
const MIN_LINE: usize = 16;
/// Minimum length of a key that is a word. No provider gives out shorter ones.
const MIN_KEY: usize = 16;
pub(crate) const MASK: &str = "[redacted]";
/// Maximum depth of JSON within JSON at which a secret is found.
const ESCAPES: usize = 2;

#[derive(Clone, Default)]
pub(crate) struct Redactor(Option<Arc<Secrets>>);

struct Secrets {
    finder: AhoCorasick,
    /// Searched texts: secrets, and their escaped forms in JSON.
    forms: Vec<String>,
}

/// The redactor of a session. It knows the variables of these names, these values, and the provider's credentials.
pub(crate) fn of_session(
    settings: &Settings,
    names: &[String],
    hidden: &[String],
    chosen: &SelectedModel,
) -> Redactor {
    let named = names.iter().filter_map(|name| settings.var(name)).map(str::to_owned);
    let keys = chosen.secrets.iter().filter(|key| !is_placeholder(key)).cloned();
    of_machine(settings).with(named.chain(hidden.iter().cloned()).chain(keys))
}

/// A redactor that knows the secrets of this machine, for any agent.
pub(crate) fn of_machine(settings: &Settings) -> Redactor {
    Redactor::new(credentials::values(settings).into_iter().filter(|key| !is_placeholder(key)))
}

/// Whether a key is a placeholder for servers of this machine, which accept any: `ollama`, `not-needed`.
fn is_placeholder(key: &str) -> bool {
    key.len() < MIN_KEY && key.bytes().all(|byte| byte.is_ascii_lowercase() || b"-_".contains(&byte))
}

impl Redactor {
    pub(crate) fn new(secrets: impl IntoIterator<Item = String>) -> Self {
        Self::default().with(secrets)
    }

    /// The same with more secrets.
    pub(crate) fn with(&self, secrets: impl IntoIterator<Item = String>) -> Self {
        let known = self.0.iter().flat_map(|secrets| secrets.forms.iter().cloned());
        let mut forms: Vec<String> =
            known.chain(secrets.into_iter().flat_map(|secret| forms(&secret))).collect();
        forms.sort();
        forms.dedup();
        if forms.is_empty() {
            return Self(None);
        }
        // Building fails only for more patterns than an environment can hold.
        let finder = AhoCorasick::new(&forms).ok();
        Self(finder.map(|finder| Arc::new(Secrets { finder, forms })))
    }

    /// The text without secrets. Text that is JSON, or lines of JSON, stays so.
    pub(crate) fn text(&self, text: String) -> String {
        let Some(secrets) = &self.0 else { return text };
        let found = secrets.find(&text);
        if found.is_empty() {
            return text;
        }
        if is_document(&text) || found.iter().any(|range| text[range.clone()].contains('\n')) {
            return secrets.document(&text, &found);
        }
        let lines = text.split_inclusive('\n').map(|line| {
            let found = secrets.find(line);
            if found.is_empty() { line.to_owned() } else { secrets.document(line, &found) }
        });
        lines.collect()
    }

    pub(crate) fn finds(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|secrets| secrets.finder.is_match(text))
    }

    /// The event without secrets, if it had any. Words of the protocol stay, even if they equal a secret.
    pub(crate) fn event(&self, event: &Event) -> Option<Event> {
        let line = serde_json::to_string(event).ok().filter(|line| self.finds(line))?;
        let body = match event.body() {
            // Signed items cannot be changed, so all of them are dropped.
            Body::ModelItems(items) => {
                ModelItems { items: RawValue::NULL.to_owned(), ..items.clone() }.into()
            }
            _ => {
                let value: Value = serde_json::from_str(&line).ok()?;
                self.reshaped(value, "data", &|value| body_like(event, value))?
            }
        };
        let (id, parent, agent) = (event.id().clone(), event.parent_id().cloned(), event.agent_id().cloned());
        let mut redacted = Event::new(id, event.timestamp().to_owned(), parent, agent, body);
        event.position().into_iter().for_each(|position| redacted.set_position(position));
        Some(redacted)
    }

    /// The record without secrets, by the same rules.
    pub(crate) fn record(&self, record: RunRecord) -> RunRecord {
        let line = serde_json::to_string(&record).ok().filter(|line| self.finds(line));
        let value: Option<Value> = line.and_then(|line| serde_json::from_str(&line).ok());
        let read = |value: &Value| serde_json::from_value(value[RECORD].clone()).ok();
        value
            .and_then(|value| self.reshaped(serde_json::json!({ RECORD: value }), RECORD, &read))
            .unwrap_or(record)
    }

    /// Parses a document after one of its members was redacted.
    fn reshaped<T>(&self, mut value: Value, member: &str, read: &dyn Fn(&Value) -> Option<T>) -> Option<T> {
        let secrets = self.0.as_ref()?;
        let mut leaves = 0;
        let mut redacted = value.clone();
        each_text(redacted.get_mut(member)?, &mut |text| {
            leaves += 1;
            *text = self.text(std::mem::take(text));
        });
        each_free_value(redacted.get_mut(member)?, &mut |value| secrets.clean(value));
        read(&redacted).or_else(|| {
            // Some of it is a word of the protocol: texts are redacted one by one, and such words stay.
            for nth in 0..leaves {
                let mut next = value.clone();
                let mut at = 0;
                each_text(next.get_mut(member)?, &mut |text| {
                    if at == nth {
                        *text = self.text(std::mem::take(text));
                    }
                    at += 1;
                });
                if read(&next).is_some() {
                    value = next;
                }
            }
            read(&value)
        })
    }
}

/// Member that wraps a record while it is redacted.
const RECORD: &str = "record";

impl Secrets {
    /// Ranges of secrets, in order and disjoint: overlapping ones are merged.
    fn find(&self, text: &str) -> Vec<Range<usize>> {
        let mut found: Vec<Range<usize>> =
            self.finder.find_overlapping_iter(text).map(|found| found.range()).collect();
        found.sort_by_key(|range| range.start);
        found.dedup_by(|next, last| {
            let overlap = next.start < last.end;
            if overlap {
                last.end = last.end.max(next.end);
            }
            overlap
        });
        found
    }

    /// Masks the ranges. Where a mask would make a JSON document invalid, the document is parsed, redacted and written again.
    fn document(&self, text: &str, found: &[Range<usize>]) -> String {
        let masked = mask(text, found);
        if !is_document(text) || is_document(&masked) {
            return masked;
        }
        let Ok(mut value) = serde_json::from_str(text) else { return masked };
        self.clean(&mut value);
        let cleaned = value.to_string();
        let cleaned = if self.finder.is_match(&cleaned) { Value::from(MASK).to_string() } else { cleaned };
        let end = &text[text.trim_end().len()..];
        format!("{cleaned}{end}")
    }

    fn clean(&self, value: &mut Value) {
        let masked = |text: &str| mask(text, &self.find(text));
        match value {
            Value::String(text) => *text = masked(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean(item)),
            Value::Object(fields) => {
                *fields = std::mem::take(fields)
                    .into_iter()
                    .map(|(name, mut field)| {
                        self.clean(&mut field);
                        (masked(&name), field)
                    })
                    .collect();
            }
            Value::Number(number) if self.finder.is_match(&number.to_string()) => *value = MASK.into(),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Forms of a secret in a text: verbatim, without the trailing line break of its file, line by line, and escaped as in JSON.
fn forms(secret: &str) -> Vec<String> {
    let trimmed = secret.trim();
    let lines = trimmed.lines().map(str::trim).filter(|line| line.len() >= MIN_LINE && *line != trimmed);
    let plain: Vec<String> = [secret, trimmed]
        .into_iter()
        .filter(|secret| secret.trim().len() >= MIN_SECRET)
        .chain(lines)
        .map(str::to_owned)
        .collect();
    plain
        .into_iter()
        .flat_map(|plain| {
            [
                std::iter::successors(Some(plain.clone()), |form| Some(escaped(form)))
                    .take(ESCAPES + 1)
                    .collect::<Vec<_>>(),
                vec![ascii(&plain)],
            ]
            .concat()
        })
        // The mask itself would be masked again.
        .filter(|form| !MASK.contains(form.as_str()))
        .collect()
}

/// The inside of a JSON string.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// The inside of a JSON string, by a writer that keeps to ASCII.
fn ascii(text: &str) -> String {
    let mut out = String::new();
    for c in escaped(text).chars() {
        if c.is_ascii() {
            out.push(c);
        } else {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        }
    }
    out
}

fn mask(text: &str, found: &[Range<usize>]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut shown = 0;
    for range in found {
        out.push_str(&text[shown..range.start]);
        out.push_str(MASK);
        shown = range.end;
    }
    out.push_str(&text[shown..]);
    out
}

/// Whether the text is a JSON object or array. A number alone is a text like any other.
fn is_document(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(text).is_ok()
}

/// Visits every free text in the data of an event: not names of fields, kinds and ids.
fn each_text(value: &mut Value, visit: &mut dyn FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, visit)),
        Value::Object(fields) => {
            let texts = fields.iter_mut().filter(|(name, _)| !names_something(name) && !is_free(name));
            texts.for_each(|(_, field)| each_text(field, visit));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Visits every part of the data of an event whose shape is free: any name, kind and number in it may be a secret.
fn each_free_value(value: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| each_free_value(item, visit)),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if is_free(name) { visit(field) } else { each_free_value(field, visit) }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Whether a field holds text of a model or a tool.
fn is_free(field: &str) -> bool {
    matches!(
        field,
        "arguments" | "args" | "toolArgs" | "structuredContent" | "rawInput" | "rawOutput" | "_meta"
    )
}

fn names_something(field: &str) -> bool {
    matches!(field, "type" | "kind" | "id" | "timestamp") || field.ends_with("Id")
}

/// Body of a redacted event, if it still has the same type.
fn body_like(event: &Event, value: &Value) -> Option<Body> {
    let read: Event = Event::parse(&value.to_string()).ok()?;
    let body = read.body().clone();
    (std::mem::discriminant(&body) == std::mem::discriminant(event.body())).then_some(body)
}

#[cfg(test)]
mod tests;
