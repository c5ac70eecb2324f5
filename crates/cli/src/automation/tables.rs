//! `[[schedules]]` and `[hooks.NAME]` of `config.toml`.
//!
//! ```toml
//! [[schedules]]
//! name = "nightly"
//! cron = "0 3 * * mon-fri"
//! time_zone = "Europe/Berlin"
//! prompt = "Update the dependencies and run the tests."
//! agent = "reviewer"
//! workspace = "/home/me/app"
//!
//! [hooks.push]
//! secret_env = "PUSH_SECRET"
//! job = "review"                     # of the installed jobs, or of `jobs_file`
//! workspace = "/home/me/app"
//! ```

use std::collections::BTreeMap;
use std::path::PathBuf;

use hangar_scheduler::cron::Cron;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Schedules and hooks at most.
const MOST: usize = 256;
/// Length of the longest name.
const MAX_NAME: usize = 64;

/// `[[schedules]]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ScheduleTable {
    /// Name, by which its history is kept.
    pub(crate) name: String,
    /// When it runs: minute, hour, day of the month, month, day of the week; or @hourly, @daily, @weekly, @monthly, @yearly.
    pub(crate) cron: String,
    /// Time zone of the times, such as Europe/Berlin. UTC unless it is set.
    pub(crate) time_zone: Option<String>,
    /// Whether it runs. It does unless it is set to false.
    pub(crate) enabled: Option<bool>,
    /// Job to run: of `jobs_file`, or of the jobs that the portal has installed.
    pub(crate) job: Option<String>,
    /// File with jobs, YAML or JSON; an absolute path.
    pub(crate) jobs_file: Option<PathBuf>,
    /// Input of the job.
    pub(crate) input: Option<String>,
    /// Prompt of a session, in place of a job.
    pub(crate) prompt: Option<String>,
    /// Named agent or runtime; the default one unless it is set.
    pub(crate) agent: Option<String>,
    /// Model of the session; that of the agent unless it is set.
    pub(crate) model: Option<String>,
    /// Working directory; an absolute path. That of the portal unless it is set.
    pub(crate) workspace: Option<PathBuf>,
}

/// `[hooks.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct HookTable {
    /// Variable that holds the secret by which requests are signed.
    pub(crate) secret_env: Option<String>,
    /// File that holds the secret, relative to the home folder.
    pub(crate) secret_file: Option<String>,
    /// Command that prints the secret.
    pub(crate) secret_command: Option<String>,
    /// Events to run for, such as push; all unless it is set.
    #[serde(default)]
    pub(crate) events: Vec<String>,
    /// Whether it runs. It does unless it is set to false.
    pub(crate) enabled: Option<bool>,
    /// Job to run: of `jobs_file`, or of the jobs that the portal has installed. Its input is the body of the request.
    pub(crate) job: Option<String>,
    /// File with jobs, YAML or JSON; an absolute path.
    pub(crate) jobs_file: Option<PathBuf>,
    /// Prompt of a session, in place of a job. The body of the request is added to it, marked as data.
    pub(crate) prompt: Option<String>,
    /// Named agent or runtime; the default one unless it is set.
    pub(crate) agent: Option<String>,
    /// Model of the session; that of the agent unless it is set.
    pub(crate) model: Option<String>,
    /// Working directory; an absolute path. That of the portal unless it is set.
    pub(crate) workspace: Option<PathBuf>,
}

/// Work that a schedule or a hook starts, complete enough to start it again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Work {
    pub(crate) job: Option<String>,
    pub(crate) jobs_file: Option<PathBuf>,
    /// Input of the job, or the prompt.
    pub(crate) input: String,
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) workspace: Option<PathBuf>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    schedules: Vec<ScheduleTable>,
    hooks: BTreeMap<String, HookTable>,
}

/// Schedules and hooks of a configuration.
#[derive(Debug, Clone, Default)]
pub(crate) struct Automations {
    pub(crate) schedules: Vec<Schedule>,
    pub(crate) hooks: BTreeMap<String, HookTable>,
}

/// A schedule, checked.
#[derive(Debug, Clone)]
pub(crate) struct Schedule {
    pub(crate) table: ScheduleTable,
    pub(crate) cron: Cron,
    pub(crate) zone: TimeZone,
}

impl Schedule {
    fn of(table: ScheduleTable) -> Result<Self, (&'static str, String)> {
        let cron = table
            .cron
            .parse()
            .map_err(|error: hangar_scheduler::cron::CronError| ("cron", error.to_string()))?;
        let zone = match &table.time_zone {
            None => TimeZone::UTC,
            Some(name) => TimeZone::get(name).map_err(|_| {
                ("time_zone", format!("there is no time zone `{name}`; use a name such as Europe/Berlin"))
            })?,
        };
        Ok(Self { table, cron, zone })
    }

    pub(crate) fn is_enabled(&self) -> bool {
        self.table.enabled != Some(false)
    }

    /// The times as one text. A schedule whose text differs starts anew.
    pub(crate) fn times(&self) -> String {
        let zone = self.table.time_zone.as_deref().unwrap_or("UTC");
        if self.is_enabled() { format!("{} {zone}", self.table.cron) } else { String::new() }
    }

    pub(crate) fn next(&self, after: Timestamp) -> Option<Timestamp> {
        self.cron.next(after, &self.zone)
    }

    pub(crate) fn work(&self) -> Work {
        let table = &self.table;
        Work {
            job: table.job.clone(),
            jobs_file: table.jobs_file.clone(),
            input: table.prompt.clone().or_else(|| table.input.clone()).unwrap_or_default(),
            agent: table.agent.clone(),
            model: table.model.clone(),
            workspace: table.workspace.clone(),
        }
    }
}

impl HookTable {
    pub(crate) fn is_enabled(&self) -> bool {
        self.enabled != Some(false)
    }

    /// The reference to the secret, in words.
    /// The work without the request that starts it.
    pub(crate) fn work(&self) -> Work {
        Work {
            job: self.job.clone(),
            jobs_file: self.jobs_file.clone(),
            input: String::new(),
            agent: self.agent.clone(),
            model: self.model.clone(),
            workspace: self.workspace.clone(),
        }
    }

    pub(crate) fn secret_place(&self) -> String {
        match (&self.secret_env, &self.secret_file, &self.secret_command) {
            (Some(name), _, _) => format!("variable {name}"),
            (None, Some(file), _) => format!("file {file}"),
            (None, None, Some(_)) => "printed by a command".to_owned(),
            (None, None, None) => "none".to_owned(),
        }
    }
}

/// Schedules and hooks of a text of `config.toml`, without those that are invalid.
pub(crate) fn read(text: &str) -> Automations {
    let file: File = toml::from_str(text).unwrap_or_default();
    let schedules = file.schedules.into_iter().filter_map(|table| Schedule::of(table).ok());
    Automations { schedules: schedules.take(MOST).collect(), hooks: file.hooks }
}

/// Problems of schedules and hooks, each with the path of its setting.
pub(crate) fn check(text: &str, now: Timestamp) -> Vec<(Vec<String>, String)> {
    let file: File = toml::from_str(text).unwrap_or_default();
    let mut problems = Vec::new();
    let mut names = std::collections::BTreeSet::new();
    for (index, table) in file.schedules.into_iter().enumerate() {
        let name = table.name.clone();
        let mut add = |key: &str, why: String| {
            problems.push((
                vec!["schedules".to_owned(), index.to_string(), key.to_owned()],
                format!("schedule `{name}`: {why}"),
            ));
        };
        if !is_name(&name) || !names.insert(name.clone()) {
            add(
                "name",
                format!("its name must be unique, with 1 to {MAX_NAME} letters, digits, `-` and `_`"),
            );
        }
        if let Err(why) = work_problem(
            table.job.as_ref(),
            table.prompt.as_ref(),
            table.jobs_file.as_ref(),
            table.workspace.as_ref(),
        ) {
            add("job", why);
        }
        match Schedule::of(table) {
            Err((key, why)) => add(key, why),
            Ok(schedule) if schedule.next(now).is_none() => add("cron", "it never fires".to_owned()),
            Ok(_) => {}
        }
    }
    for (name, table) in file.hooks {
        let mut add = |key: &str, why: String| {
            problems.push((
                vec!["hooks".to_owned(), name.clone(), key.to_owned()],
                format!("hook `{name}`: {why}"),
            ));
        };
        if !is_name(&name) {
            add("job", format!("its name must have 1 to {MAX_NAME} letters, digits, `-` and `_`"));
        }
        let secrets = [&table.secret_env, &table.secret_file, &table.secret_command];
        if secrets.iter().filter(|secret| secret.is_some()).count() != 1 {
            add("secret_env", "it needs one of `secret_env`, `secret_file` and `secret_command`".to_owned());
        }
        if let Err(why) = work_problem(
            table.job.as_ref(),
            table.prompt.as_ref(),
            table.jobs_file.as_ref(),
            table.workspace.as_ref(),
        ) {
            add("job", why);
        }
    }
    problems
}

fn is_name(name: &str) -> bool {
    let allowed = |letter: char| letter.is_ascii_alphanumeric() || letter == '-' || letter == '_';
    (1..=MAX_NAME).contains(&name.len()) && name.chars().all(allowed)
}

fn work_problem(
    job: Option<&String>,
    prompt: Option<&String>,
    jobs_file: Option<&PathBuf>,
    workspace: Option<&PathBuf>,
) -> Result<(), String> {
    if job.is_some() == prompt.is_some() {
        return Err("it needs either a `job` or a `prompt`".to_owned());
    }
    let relative = jobs_file.into_iter().chain(workspace).find(|path| !path.is_absolute());
    match relative {
        Some(path) => Err(format!("`{}` is not an absolute path", path.display())),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(text: &str, says: &str) {
        let now = Timestamp::UNIX_EPOCH;
        let found: Vec<String> = check(text, now).into_iter().map(|(_, why)| why).collect();
        assert!(found.iter().any(|why| why.contains(says)), "{found:?}");
    }

    #[test]
    fn mistakes_are_named() {
        let schedule = |rest: &str| format!("[[schedules]]\nname = \"a\"\n{rest}");
        check_refused(&schedule("cron = \"0 25 * * *\"\nprompt = \"x\""), "schedule `a`: the hour `25`");
        check_refused(&schedule("cron = \"0 0 30 2 *\"\nprompt = \"x\""), "it never fires");
        check_refused(
            &schedule("cron = \"@daily\"\ntime_zone = \"Mars\"\nprompt = \"x\""),
            "no time zone `Mars`",
        );
        check_refused(&schedule("cron = \"@daily\""), "either a `job` or a `prompt`");
        check_refused(
            &schedule("cron = \"@daily\"\nprompt = \"x\"\nworkspace = \"here\""),
            "not an absolute path",
        );
        check_refused("[hooks.a]\nprompt = \"x\"", "needs one of `secret_env`");
    }
}
