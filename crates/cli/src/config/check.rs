//! Checks of `config.toml`: every problem with its line and what is allowed there.

use std::fmt;

use toml_edit::{Document, Item, TableLike, Value};

use super::schema::{Schema, Setting};
use crate::automation;
use crate::budget;
use crate::fleet;
use crate::just_in_time;
use crate::notify;
use crate::orchestrate;
use crate::providers;
use crate::queue;
use crate::runtimes::AgentRuntimes;
use crate::runtimes::named::AgentTable;
use crate::settings::Settings;

/// How alike a misspelt key must be to the one that is suggested.
const ALIKE: f64 = 0.8;
/// Problems that are listed at most.
const MOST_PROBLEMS: usize = 100;

/// A problem in `config.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) line: usize,
    /// The setting, with dots between its keys.
    pub(crate) key: String,
    pub(crate) message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "config.toml:{}: {}", self.line, self.message)
    }
}

/// All problems of a text of `config.toml`, by line.
pub(crate) fn problems(settings: &Settings, text: &str) -> Vec<Problem> {
    let document = match Document::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let line = line_at(text, error.span().map(|span| span.start));
            // The message may quote the line, which may have a key on it; its first line does not.
            let message = error.message().lines().next().unwrap_or_default().to_owned();
            return vec![Problem { line, key: String::new(), message }];
        }
    };
    let mut found = Checker { text, problems: Vec::new() };
    found.table(document.as_table(), None, Schema::of_config().root(), &mut Vec::new());
    if found.problems.is_empty() {
        found.meaning(settings, document.as_table());
    }
    let mut problems = found.problems;
    problems.sort_by_key(|problem| problem.line);
    problems.truncate(MOST_PROBLEMS);
    problems
}

/// Tables of a text of `config.toml` that cannot be used, each with its error.
fn unusable(settings: &Settings, text: &str) -> impl Iterator<Item = (&'static str, anyhow::Error)> {
    let checks = [
        ("limits", queue::config::check(text)),
        ("budgets", queue::budgets::parse(text).map(drop)),
        ("notifications", notify::config::check(settings, text)),
        ("budget", budget::check(text)),
        ("just_in_time", just_in_time::check(text)),
        ("providers", providers::check(settings, text)),
        ("runtimes", AgentRuntimes::check(settings, text)),
        ("fleet", fleet::config::check(text)),
    ];
    checks.into_iter().filter_map(|(table, checked)| Some((table, checked.err()?)))
}

/// The first problem that keeps a text of `config.toml` from being used. Keys that nobody reads are none.
pub(crate) fn obstacle(settings: &Settings, text: &str) -> Option<String> {
    if Document::parse(text).is_err() {
        return problems(settings, text).first().map(ToString::to_string);
    }
    let (_, error) = unusable(settings, text).next()?;
    // The sentence with its line, if the checks of the file find the same.
    let found = problems(settings, text).into_iter().next();
    Some(found.map_or_else(|| format!("config.toml: {error:#}"), |problem| problem.to_string()))
}

fn line_at(text: &str, at: Option<usize>) -> usize {
    let before = at.and_then(|at| text.get(..at)).unwrap_or_default();
    before.matches('\n').count() + 1
}

struct Checker<'a> {
    text: &'a str,
    problems: Vec<Problem>,
}

impl Checker<'_> {
    fn add(&mut self, at: Option<usize>, path: &[String], message: String) {
        let line = line_at(self.text, at);
        self.problems.push(Problem { line, key: path.join("."), message });
    }

    fn table(
        &mut self,
        table: &dyn TableLike,
        at: Option<usize>,
        setting: Setting<'_>,
        path: &mut Vec<String>,
    ) {
        for (key, item) in table.iter() {
            let key_at = table.key(key).and_then(toml_edit::Key::span).map(|span| span.start);
            let at = key_at.or_else(|| item.span().map(|span| span.start)).or(at);
            match setting.member(key) {
                Some(member) => {
                    path.push(key.to_owned());
                    self.item(item, at, member, path);
                    path.pop();
                }
                None if setting.is_closed() => {
                    let message = unknown_key(path, key, &setting.keys());
                    self.add(at, path, message);
                }
                None => {}
            }
        }
        for key in setting.required() {
            if !table.contains_key(key) {
                self.add(at, path, format!("{} needs `{key}`", place(path)));
            }
        }
    }

    fn item(&mut self, item: &Item, at: Option<usize>, setting: Setting<'_>, path: &mut Vec<String>) {
        match item {
            Item::None => {}
            Item::Table(table) => match setting.is("object") || setting.types().is_empty() {
                true => self.table(table, table.span().map(|span| span.start).or(at), setting, path),
                false => self.wrong_type("a table", at, setting, path),
            },
            Item::ArrayOfTables(tables) => match setting.items() {
                Some(each) => {
                    for (index, table) in tables.iter().enumerate() {
                        path.push(index.to_string());
                        self.table(table, table.span().map(|span| span.start).or(at), each, path);
                        path.pop();
                    }
                }
                None => self.wrong_type("a list of tables", at, setting, path),
            },
            Item::Value(value) => self.value(value, at, setting, path),
        }
    }

    fn value(&mut self, value: &Value, at: Option<usize>, setting: Setting<'_>, path: &mut Vec<String>) {
        let at = value.span().map(|span| span.start).or(at);
        let any = setting.types().is_empty();
        match value {
            Value::InlineTable(table) if any || setting.is("object") => self.table(table, at, setting, path),
            Value::Array(array) if any || setting.is("array") => {
                let Some(each) = setting.items() else { return };
                for (index, value) in array.iter().enumerate() {
                    path.push(index.to_string());
                    self.value(value, at, each, path);
                    path.pop();
                }
            }
            Value::String(text) if any || setting.is("string") => {
                let allowed = setting.allowed();
                if !allowed.is_empty() && !allowed.contains(&text.value().as_str()) {
                    let (key, text) = (path.join("."), text.value());
                    self.add(at, path, format!("`{key}` is \"{text}\"; allowed: {}", allowed.join(", ")));
                }
            }
            Value::Integer(number) if any || setting.is("integer") || setting.is("number") => {
                self.range(*number.value() as f64, at, setting, path);
            }
            Value::Float(number) if any || setting.is("number") => {
                self.range(*number.value(), at, setting, path);
            }
            Value::Boolean(_) if any || setting.is("boolean") => {}
            other => self.wrong_type(kind_of(other), at, setting, path),
        }
    }

    fn range(&mut self, number: f64, at: Option<usize>, setting: Setting<'_>, path: &[String]) {
        let (least, most, above) = setting.range();
        let low = least.is_some_and(|least| number < least || (above && number <= least));
        if low || most.is_some_and(|most| number > most) || !number.is_finite() {
            self.add(at, path, format!("`{}` is {number}; it must be {}", path.join("."), setting.kind()));
        }
    }

    fn wrong_type(&mut self, found: &str, at: Option<usize>, setting: Setting<'_>, path: &[String]) {
        let message = format!("`{}` is {found}; it must be {}", path.join("."), setting.kind());
        self.add(at, path, message);
    }

    /// Problems that no type tells: what refers to something that is not there, or contradicts something else.
    fn meaning(&mut self, settings: &Settings, document: &toml_edit::Table) {
        let text = self.text;
        self.agents(document);
        for (table, error) in unusable(settings, text) {
            let message = format!("{error:#}");
            let named = named_setting(&message).unwrap_or_else(|| vec![table.to_owned()]);
            // Agents were checked above, each at its own key.
            if self.problems.iter().all(|known| !message.contains(&known.message)) {
                self.add(place_of(document, &named), &named, message);
            }
        }
        let settings = settings.with_config(text.into());
        for (path, message) in
            automation::check(text).into_iter().chain(orchestrate::config::check(&settings, text))
        {
            self.add(place_of(document, &path), &path, message);
        }
    }

    fn agents(&mut self, document: &toml_edit::Table) {
        #[derive(Default, serde::Deserialize)]
        struct File {
            #[serde(default)]
            agents: std::collections::BTreeMap<String, AgentTable>,
        }
        let file: File = toml::from_str(self.text).unwrap_or_default();
        for (name, agent) in &file.agents {
            if let Err((key, why)) = agent.check(name) {
                let path = ["agents".to_owned(), name.clone(), key.to_owned()];
                self.add(place_of(document, &path), &path, why);
            }
        }
    }
}

/// The table or setting that a sentence names: `[agents.NAME]`, `` `key` in [table] ``, `` `key` of [table] ``, `[table] has the key`
/// or `` [[list]] number 2: `key` ``.
fn named_setting(message: &str) -> Option<Vec<String>> {
    let (before, rest) = message.split_once('[')?;
    let (name, mut rest) = rest.split_once(']')?;
    let mut path: Vec<String> = name.trim_start_matches('[').split('.').map(str::to_owned).collect();
    if let Some(number) = rest.strip_prefix("] number ") {
        let digits = number.chars().take_while(char::is_ascii_digit).count();
        path.push(number[..digits].parse::<usize>().ok()?.saturating_sub(1).to_string());
        rest = &number[digits..];
    }
    let quoted = before.strip_suffix("` in ").or_else(|| before.strip_suffix("` of "));
    let key = match quoted.and_then(|before| before.rsplit_once('`')) {
        Some((_, key)) => Some(key),
        None => match rest.strip_prefix(": `") {
            Some(rest) => match rest.split_once("` in `") {
                // A key of an inner table.
                Some((key, rest)) => {
                    path.extend(rest.split_once('`').map(|(outer, _)| outer.to_owned()));
                    Some(key)
                }
                None => rest.split_once('`').map(|(key, _)| key),
            },
            None => rest.strip_prefix(" has the ").and_then(|rest| rest.split(' ').next()),
        },
    };
    path.extend(key.into_iter().flat_map(|key| key.split('.').map(str::to_owned)));
    Some(path)
}

/// Offset of a setting in the text; of a missing one, that of the nearest table around it.
fn place_of(document: &toml_edit::Table, path: &[String]) -> Option<usize> {
    let mut table: &dyn TableLike = document;
    let mut found = None;
    let mut keys = path.iter();
    while let Some(key) = keys.next() {
        let at = table.key(key).and_then(toml_edit::Key::span).map(|span| span.start);
        let Some(item) = table.get(key) else { break };
        found = at.or_else(|| item.span().map(|span| span.start)).or(found);
        match item {
            Item::ArrayOfTables(tables) => {
                let index = keys.next().and_then(|key| key.parse().ok()).unwrap_or_default();
                let Some(inner) = tables.get(index) else { break };
                found = inner.span().map(|span| span.start).or(found);
                table = inner;
            }
            item => match item.as_table_like() {
                Some(inner) => table = inner,
                None => break,
            },
        }
    }
    found
}

/// An error about a text of `config.toml`, with the line of the setting that it names.
pub(crate) fn located(settings: &Settings, text: &str, error: &anyhow::Error) -> anyhow::Error {
    let message = format!("{error:#}");
    let path = settings.config_path();
    // Errors of the syntax have their line already.
    if message.starts_with("config.toml:") {
        return anyhow::anyhow!("cannot use {}: {message}", path.display());
    }
    let document = Document::parse(text).ok();
    let at = document.and_then(|document| place_of(document.as_table(), &named_setting(&message)?));
    match at {
        Some(at) => {
            anyhow::anyhow!(
                "cannot use {}: config.toml:{}: {message}",
                path.display(),
                line_at(text, Some(at))
            )
        }
        None => anyhow::anyhow!("cannot use {}: {message}", path.display()),
    }
}

/// A table in words.
fn place(path: &[String]) -> String {
    if path.is_empty() { "the file".to_owned() } else { format!("[{}]", path.join(".")) }
}

pub(super) fn unknown_key(path: &[String], key: &str, known: &[&str]) -> String {
    let scored = known.iter().map(|known| (strsim::jaro_winkler(key, known), *known));
    let best = scored.max_by(|a, b| a.0.total_cmp(&b.0)).filter(|(score, _)| *score > ALIKE);
    let hint = best.map(|(_, best)| format!("did you mean `{best}`? ")).unwrap_or_default();
    format!("{} has no key `{key}`; {hint}allowed: {}", place(path), known.join(", "))
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "a text",
        Value::Integer(_) => "a whole number",
        Value::Float(_) => "a number",
        Value::Boolean(_) => "true or false",
        Value::Datetime(_) => "a date",
        Value::Array(_) => "a list",
        Value::InlineTable(_) => "a table",
    }
}
