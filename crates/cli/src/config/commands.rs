//! `hangar config`: shows, changes and checks `config.toml`.

use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};
use clap::Subcommand;
use hangar_process::credentials::Child;
use serde_json::Value as Json;

use super::schema::{Schema, Setting};
use super::{ConfigEdit, KeyPath, apply, problems, shown};
use crate::commands::print_line;
use crate::credentials;
use crate::exit::Exit;
use crate::output::remark;
use crate::settings::Settings;

/// Note after a change: open sessions keep their settings.
const UNDER_WAY: &str = "note: new sessions use it; sessions under way keep what they began with";

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Print a setting, or all of them; secrets are never shown
    Get {
        /// Setting, such as limits.global
        key: Option<KeyPath>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Change a setting; comments of the file stay
    Set {
        /// Setting, such as agents.reviewer.model
        key: KeyPath,
        /// Value: text, or TOML for numbers, lists and tables
        #[arg(allow_hyphen_values = true)]
        value: String,
    },
    /// Remove a setting or a table
    Unset { key: KeyPath },
    /// Open the file in your editor, and use it if it is valid
    Edit,
    /// List every problem of the file with its line
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Say what a setting means, what it may be and what it is
    Explain { key: Option<KeyPath> },
    /// Print the JSON Schema of the file, for editors
    Schema,
}

pub(crate) fn run(settings: &Settings, command: Option<ConfigCommand>) -> Result<Exit> {
    match command.unwrap_or(ConfigCommand::Get { key: None, json: false }) {
        ConfigCommand::Get { key, json } => get(settings, key.as_ref(), json),
        ConfigCommand::Set { key, value } => change(settings, ConfigEdit::SetText(key, value)),
        ConfigCommand::Unset { key } => change(settings, ConfigEdit::Unset(key)),
        ConfigCommand::Edit => edit(settings),
        ConfigCommand::Check { json } => check(settings, json),
        ConfigCommand::Explain { key } => explain(settings, key.as_ref()),
        ConfigCommand::Schema => {
            print_line(&serde_json::to_string_pretty(Schema::of_config().as_value())?)?;
            Ok(Exit::Done)
        }
    }
}

fn get(settings: &Settings, key: Option<&KeyPath>, json: bool) -> Result<Exit> {
    let path: &[String] = key.map_or(&[], |key| &key.0);
    let found = shown(&settings.config_text()?, path).map_err(|error| anyhow!("config.toml: {error}"))?;
    let Some(found) = found else {
        let known = Schema::of_config().setting(path).is_some();
        let key = path.join(".");
        bail!(if known { format!("`{key}` is not set") } else { format!("there is no setting `{key}`") });
    };
    match (&found, json) {
        (Json::String(text), false) => print_line(text)?,
        (Json::Object(members), false) if path.is_empty() => {
            lines(members, "").iter().try_for_each(|line| print_line(line))?;
        }
        (Json::Object(members), false) => {
            lines(members, &format!("{}.", path.join("."))).iter().try_for_each(|line| print_line(line))?;
        }
        (found, _) => print_line(&serde_json::to_string_pretty(found)?)?,
    }
    Ok(Exit::Done)
}

/// Settings of a table, one on a line.
fn lines(members: &serde_json::Map<String, Json>, before: &str) -> Vec<String> {
    let line = |(key, value): (&String, &Json)| match value {
        Json::Object(members) => lines(members, &format!("{before}{key}.")),
        value => vec![format!("{before}{key} = {value}")],
    };
    members.iter().flat_map(line).collect()
}

fn change(settings: &Settings, edit: ConfigEdit) -> Result<Exit> {
    match apply(settings, &[edit]) {
        Ok(()) => {
            remark(UNDER_WAY);
            Ok(Exit::Done)
        }
        Err(error) => bail!("{error}"),
    }
}

fn check(settings: &Settings, json: bool) -> Result<Exit> {
    let found = problems(settings, &settings.config_text()?);
    if json {
        let rows: Vec<Json> = found
            .iter()
            .map(|problem| serde_json::json!({ "line": problem.line, "key": problem.key, "message": problem.message }))
            .collect();
        print_line(&serde_json::to_string_pretty(&rows)?)?;
    } else {
        found.iter().try_for_each(|problem| print_line(&problem.to_string()))?;
        if found.is_empty() {
            print_line(&format!("{} is valid", settings.config_path().display()))?;
        }
    }
    Ok(if found.is_empty() { Exit::Done } else { Exit::Failed })
}

fn explain(settings: &Settings, key: Option<&KeyPath>) -> Result<Exit> {
    let path: &[String] = key.map_or(&[], |key| &key.0);
    let Some(setting) = Schema::of_config().setting(path) else {
        bail!(
            "there is no setting `{}`; `{} config explain` lists the tables",
            path.join("."),
            settings.program
        );
    };
    if !path.is_empty() {
        print_line(&format!("{}: {}", path.join("."), setting.kind()))?;
        if let Some(words) = setting.description() {
            print_line(&format!("  {}", words.replace('\n', " ")))?;
        }
        let value = shown(&settings.config_text()?, path).ok().flatten();
        let value = value.map_or_else(|| "not set".to_owned(), |value| value.to_string());
        print_line(&format!("  now: {value}"))?;
    }
    let name = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{}.{key}", path.join(".")) };
    let row = |key: String, member: Setting<'_>| {
        let words = member.description().unwrap_or_default().replace('\n', " ");
        print_line(&format!("  {key:<32} {}: {words}", member.kind()))
    };
    for key in setting.keys() {
        if let Some(member) = setting.member(key) {
            row(name(key), member)?;
        }
    }
    if setting.is_open()
        && let Some(member) = setting.member("NAME")
    {
        row(name("NAME"), member)?;
        for key in member.keys() {
            if let Some(inner) = member.member(key) {
                row(format!("{}.{key}", name("NAME")), inner)?;
            }
        }
    }
    Ok(Exit::Done)
}

/// Opens a copy in the editor, so that an invalid file never takes effect.
fn edit(settings: &Settings) -> Result<Exit> {
    let before = settings.config_text()?;
    let copy = settings.home.join("config.toml.edited");
    hangar_disk::keep(&copy, before.clone()).with_context(|| format!("cannot write {}", copy.display()))?;
    let editor = settings.var("VISUAL").or_else(|| settings.var("EDITOR")).unwrap_or("vi");
    let mut words = editor.split_whitespace();
    let program = words.next().unwrap_or("vi");
    let status = Command::new(program)
        .args(words)
        .arg(&copy)
        .env_clear()
        .envs(credentials::environment(settings, Child::Helper, &[]))
        .status()
        .with_context(|| format!("cannot start {program}; set EDITOR to your editor"))?;
    if !status.success() {
        bail!("{program} ended with {status}; config.toml is unchanged");
    }
    let after = std::fs::read_to_string(&copy).with_context(|| format!("cannot read {}", copy.display()))?;
    let found = problems(settings, &after);
    if !found.is_empty() {
        found.iter().for_each(|problem| remark(&problem.to_string()));
        bail!("config.toml is unchanged; the edited file is {}", copy.display());
    }
    if settings.config_text()? != before {
        bail!("config.toml was changed meanwhile and stays so; the edited file is {}", copy.display());
    }
    let path = settings.config_path();
    let path = path.canonicalize().unwrap_or(path);
    hangar_disk::keep(&path, after).with_context(|| format!("cannot write {}", path.display()))?;
    // The copy has served.
    let _ = std::fs::remove_file(&copy);
    remark(UNDER_WAY);
    Ok(Exit::Done)
}
