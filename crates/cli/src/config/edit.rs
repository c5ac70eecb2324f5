//! Edits of `config.toml`. Everything else in the file stays as its owner wrote it, comments included.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde_json::Value as Json;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, Value};

use super::check::{Problem, problems, unknown_key};
use super::schema::{Schema, Setting, is_secret};
use crate::settings::Settings;

/// Stands for a secret where the file is shown.
const HIDDEN: &str = "(secret)";
/// Keys of the deepest setting.
const DEEPEST: usize = 16;

/// Path of a setting: keys with dots between them, quoted as in TOML where they have dots themselves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyPath(pub(crate) Vec<String>);

impl FromStr for KeyPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let keys =
            toml_edit::Key::parse(text).map_err(|_| format!("`{text}` is not a key; write it as a.b.c"))?;
        if keys.len() > DEEPEST {
            return Err(format!("`{text}` is too deep"));
        }
        Ok(Self(keys.iter().map(|key| key.get().to_owned()).collect()))
    }
}

/// A change of one setting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ConfigEdit {
    /// A value as it was typed: TOML, or plain text for a setting that is a text.
    SetText(KeyPath, String),
    SetJson(KeyPath, Json),
    Unset(KeyPath),
}

#[derive(Debug)]
pub(crate) enum EditError {
    /// The change makes no sense by itself.
    Refused(String),
    /// The file would have these problems, so it was not written.
    Invalid(Vec<Problem>),
    /// The file could not be read or written.
    File(String),
}

impl std::fmt::Display for EditError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            EditError::Refused(why) | EditError::File(why) => f.write_str(why),
            EditError::Invalid(problems) => {
                let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
                f.write_str(&lines.join("\n"))
            }
        }
    }
}

/// Carries the edits out in one step, if the file is valid after them. Problems that it had before do not keep one from editing.
pub(crate) fn apply(settings: &Settings, edits: &[ConfigEdit]) -> Result<(), EditError> {
    let path = target(&settings.config_path());
    let file = |error: &dyn std::fmt::Display| EditError::File(error.to_string());
    let before = settings.config_text().map_err(|error| file(&format!("{error:#}")))?;
    let after = edited(&before, edits).map_err(EditError::Refused)?;
    let known: Vec<String> = problems(settings, &before).into_iter().map(|problem| problem.message).collect();
    let mut found = problems(settings, &after);
    found.retain(|problem| !known.contains(&problem.message));
    if !found.is_empty() {
        return Err(EditError::Invalid(found));
    }
    // Another process may have edited the file meanwhile; its change is not overwritten.
    if settings.config_text().map_err(|error| file(&format!("{error:#}")))? != before {
        return Err(EditError::File("config.toml was changed by another process; try again".to_owned()));
    }
    hangar_disk::keep(&path, after)
        .map_err(|error| file(&format!("cannot write {}: {error}", path.display())))
}

/// The file itself, if the configuration is a link: the link stays.
fn target(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

fn edited(text: &str, edits: &[ConfigEdit]) -> Result<String, String> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        format!("config.toml:{}: {}", before.matches('\n').count() + 1, error.message())
    })?;
    for edit in edits {
        match edit {
            ConfigEdit::SetText(path, typed) => {
                let value = typed_value(definition(path)?, typed, path)?;
                set(document.as_table_mut(), &path.0, value)?;
            }
            ConfigEdit::SetJson(path, json) => {
                definition(path)?;
                let item = from_json(json).ok_or_else(|| format!("`{}` cannot be null", path.0.join(".")))?;
                set(document.as_table_mut(), &path.0, item)?;
            }
            ConfigEdit::Unset(path) => unset(document.as_table_mut(), &path.0)?,
        }
    }
    Ok(document.to_string())
}

/// Definition of the setting. A secret itself is refused: only references to secrets belong into the file.
fn definition(path: &KeyPath) -> Result<Setting<'static>, String> {
    if is_secret(&path.0) {
        return Err(format!(
            "`{}` would be a secret in plain text; set `api_key_env`, `api_key_file`, `api_key_command` or \
             `api_key_keychain` instead",
            path.0.join(".")
        ));
    }
    let schema = Schema::of_config();
    let mut setting = schema.root();
    for (depth, key) in path.0.iter().enumerate() {
        setting = setting.member(key).ok_or_else(|| unknown_key(&path.0[..depth], key, &setting.keys()))?;
    }
    Ok(setting)
}

/// The value that somebody typed, by the type of the setting.
fn typed_value(setting: Setting<'_>, typed: &str, path: &KeyPath) -> Result<Item, String> {
    let plain = || Item::Value(Value::from(typed));
    if setting.is("string") && !typed.starts_with('"') {
        return Ok(plain());
    }
    if setting.is("array") && !typed.trim_start().starts_with('[') {
        let mut list = Array::new();
        typed.split(',').map(str::trim).filter(|word| !word.is_empty()).for_each(|word| list.push(word));
        return Ok(Item::Value(Value::Array(list)));
    }
    match typed.parse::<Value>() {
        Ok(value) => Ok(Item::Value(value)),
        Err(_) => Err(format!("`{}` is `{typed}`; it must be {}", path.0.join("."), setting.kind())),
    }
}

fn from_json(json: &Json) -> Option<Item> {
    fn value(json: &Json) -> Option<Value> {
        Some(match json {
            Json::Null => return None,
            Json::Bool(flag) => Value::from(*flag),
            Json::Number(number) => match number.as_i64() {
                Some(whole) => Value::from(whole),
                None => Value::from(number.as_f64()?),
            },
            Json::String(text) => Value::from(text.as_str()),
            Json::Array(items) => Value::Array(items.iter().filter_map(value).collect()),
            Json::Object(members) => {
                let members = members.iter().filter_map(|(key, member)| Some((key.as_str(), value(member)?)));
                Value::InlineTable(members.collect())
            }
        })
    }
    match json {
        // A table of its own is easier to read than one on a line.
        Json::Object(members) if members.values().any(|member| !member.is_null()) => {
            let mut table = Table::new();
            for (key, member) in members {
                if let Some(member) = value(member) {
                    table.insert(key, Item::Value(member));
                }
            }
            Some(Item::Table(table))
        }
        json => value(json).map(Item::Value),
    }
}

fn set(table: &mut dyn TableLike, path: &[String], mut item: Item) -> Result<(), String> {
    let [first, rest @ ..] = path else { return Ok(()) };
    if rest.is_empty() {
        // A comment behind the value stays with it.
        if let (Some(Item::Value(before)), Item::Value(after)) = (table.get(first), &mut item) {
            *after.decor_mut() = before.decor().clone();
        }
        match table.get_mut(first) {
            Some(place) => *place = item,
            None => drop(table.insert(first, item)),
        }
        return Ok(());
    }
    if let Some(Item::ArrayOfTables(tables)) = table.get_mut(first) {
        let [index, rest @ ..] = rest else { return Ok(()) };
        let index: usize =
            index.parse().map_err(|_| format!("`{first}` is a list; name an item by its number"))?;
        while tables.len() <= index && tables.len() < index + 1 {
            tables.push(Table::new());
        }
        let Some(inner) = tables.get_mut(index) else { return Ok(()) };
        if let (true, Item::Table(whole)) = (rest.is_empty(), item.clone()) {
            *inner = whole;
            return Ok(());
        }
        return set(inner, rest, item);
    }
    if !table.contains_key(first) {
        let is_list =
            Schema::of_config().setting(std::slice::from_ref(first)).is_some_and(|known| known.is("array"));
        let made = match is_list {
            true => Item::ArrayOfTables(toml_edit::ArrayOfTables::new()),
            false => {
                let mut made = Table::new();
                // Only a table with values of its own has a header.
                made.set_implicit(true);
                Item::Table(made)
            }
        };
        table.insert(first, made);
        return set(table, path, item);
    }
    match table.get_mut(first).and_then(Item::as_table_like_mut) {
        Some(inner) => set(inner, rest, item),
        None => Err(format!("`{first}` is not a table")),
    }
}

fn unset(table: &mut dyn TableLike, path: &[String]) -> Result<(), String> {
    let missing = || format!("`{}` is not set", path.join("."));
    let [first, rest @ ..] = path else { return Ok(()) };
    if rest.is_empty() {
        return table.remove(first).map(drop).ok_or_else(missing);
    }
    if let Some(Item::ArrayOfTables(tables)) = table.get_mut(first) {
        let [index, rest @ ..] = rest else { return Err(missing()) };
        let index = index.parse().ok().filter(|index| *index < tables.len()).ok_or_else(missing)?;
        if rest.is_empty() {
            tables.remove(index);
            return Ok(());
        }
        return tables.get_mut(index).ok_or_else(missing).and_then(|inner| unset(inner, rest));
    }
    let inner = table.get_mut(first).and_then(Item::as_table_like_mut).ok_or_else(missing)?;
    unset(inner, rest)
}

/// The file as JSON, with secrets hidden. `path` selects a part of it.
pub(crate) fn shown(text: &str, path: &[String]) -> Result<Option<Json>, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| error.message().to_owned())?;
    let Ok(mut json) = serde_json::to_value(table) else { return Ok(None) };
    hide(&mut json, &mut Vec::new());
    let mut part = &json;
    for key in path {
        let member = match part {
            Json::Array(items) => key.parse().ok().and_then(|index: usize| items.get(index)),
            other => other.get(key),
        };
        let Some(member) = member else { return Ok(None) };
        part = member;
    }
    Ok(Some(part.clone()))
}

/// Whether a value is an address of a notification, which may hold a secret. A reference to one is shown.
fn is_secret_address(path: &[String], value: &Json) -> bool {
    let [table, .., key] = path else { return false };
    let is_reference = value.as_str().is_some_and(|text| text.starts_with("env:"));
    table == "notifications" && ["webhook", "slack"].contains(&key.as_str()) && !is_reference
}

fn hide(json: &mut Json, path: &mut Vec<String>) {
    match json {
        Json::Object(members) => {
            for (key, member) in members.iter_mut() {
                path.push(key.clone());
                match is_secret(path) || is_secret_address(path, member) {
                    true => *member = Json::String(HIDDEN.to_owned()),
                    false => hide(member, path),
                }
                path.pop();
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| hide(item, path)),
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    const TEXT: &str = "# mine\nmodel = \"a/b\" # the default\n\n[limits] # how much\nglobal = 3 # few\n\n[[schedules]]\nname = \"x\"\ncron = \"0 3 * * *\"\nprompt = \"hi\"\n";

    #[track_caller]
    fn check(edits: &[(&str, Option<&str>)], expected: &Expect) {
        let edits: Vec<ConfigEdit> = edits
            .iter()
            .map(|(key, value)| match value {
                Some(value) => ConfigEdit::SetText(key.parse().unwrap(), (*value).to_owned()),
                None => ConfigEdit::Unset(key.parse().unwrap()),
            })
            .collect();
        expected.assert_eq(&edited(TEXT, &edits).unwrap_or_else(|error| error));
    }

    #[test]
    fn comments_survive_edits() {
        check(
            &[("model", Some("c/d")), ("limits.global", Some("8")), ("schedules.0.cron", Some("0 4 * * *"))],
            &expect![[r#"
                # mine
                model = "c/d" # the default

                [limits] # how much
                global = 8 # few

                [[schedules]]
                name = "x"
                cron = "0 4 * * *"
                prompt = "hi"
            "#]],
        );
    }

    #[test]
    fn tables_are_made_and_values_removed() {
        check(
            &[
                ("agents.fast.runtime", Some("native")),
                ("agents.fast.hosts", Some("a, b")),
                ("limits.global", None),
            ],
            &expect![[r#"
                # mine
                model = "a/b" # the default

                [limits] # how much

                [[schedules]]
                name = "x"
                cron = "0 3 * * *"
                prompt = "hi"

                [agents.fast]
                runtime = "native"
                hosts = ["a", "b"]
            "#]],
        );
    }

    #[test]
    fn what_cannot_be_set_is_a_sentence() {
        check(
            &[("limits.globl", Some("8"))],
            &expect![
                "[limits] has no key `globl`; did you mean `global`? allowed: global, per_runtime, per_agent, per_provider, per_host, per_project, per_job, per_label, weights"
            ],
        );
        check(
            &[("limits.global", Some("many"))],
            &expect!["`limits.global` is `many`; it must be a whole number from 1 to 100000"],
        );
        check(
            &[("providers.x.api_key", Some("sk"))],
            &expect![
                "`providers.x.api_key` would be a secret in plain text; set `api_key_env`, `api_key_file`, `api_key_command` or `api_key_keychain` instead"
            ],
        );
        check(&[("budget.max_cost", None)], &expect!["`budget.max_cost` is not set"]);
    }

    #[test]
    fn secrets_are_never_shown() {
        let text = "[providers.x]\napi_key = \"sk-1\"\napi_key_env = \"KEY\"\nheaders = { Authorization = \"t\" }\n[runtimes.codex.env]\nMY_TOKEN = \"u\"\n";
        let shown = shown(text, &[]).unwrap().unwrap().to_string();
        assert!(!shown.contains("sk-1") && !shown.contains("\"t\"") && !shown.contains("\"u\""), "{shown}");
        assert!(shown.contains("\"KEY\""), "{shown}");
    }
}
