//! `[[notifications]]` of `config.toml`: which notices are sent where, and the quiet hours.
//!
//! ```toml
//! [[notifications]]
//! on = ["question", "failure", "budget"]    # default: all but finish
//! project = "/home/me/big"                  # only work in this directory; default: all
//! bell = true                               # bell of the terminal that runs the portal
//! desktop = true                            # notify-send, or osascript on macOS
//! webhook = "https://example.com/hook"      # the notice as JSON
//! slack = "env:SLACK_URL"                   # {"text": ...}; env:NAME takes the address from a variable
//! command = ["logger", "-t", "hangar"]      # the notice as JSON on standard input
//! quiet = { from = "22:00", to = "07:00", time_zone = "Europe/Berlin" }
//! ```

use std::collections::BTreeSet;

use anyhow::{Context, Result, bail};
use hangar_registry::notice::{Notice, NoticeKind};
use jiff::Timestamp;
use jiff::civil::Time;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::config::located;
use crate::settings::{Settings, parse_toml};

/// Rules that are read.
const MOST_RULES: usize = 64;

/// A rule of `[[notifications]]`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleTable {
    /// Occasions: question, failure, budget, finish. All but finish by default.
    #[schemars(extend("items" = { "type": "string", "enum": ["question", "failure", "budget", "finish"] }))]
    on: Option<BTreeSet<String>>,
    /// Directory of the work; all by default.
    project: Option<String>,
    /// Whether the terminal of the portal rings its bell.
    #[serde(default)]
    bell: bool,
    /// Whether the desktop shows the notice.
    #[serde(default)]
    desktop: bool,
    /// Address that receives the notice as JSON.
    webhook: Option<String>,
    /// Address of an incoming webhook of Slack's form; `env:NAME` takes it from a variable.
    slack: Option<String>,
    /// Program with arguments that receives the notice as JSON on standard input.
    #[serde(default)]
    command: Vec<String>,
    /// Hours without notices.
    quiet: Option<QuietTable>,
}

/// Hours without notices.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct QuietTable {
    /// Time of day such as 22:00.
    from: String,
    /// Time of day such as 07:00.
    to: String,
    /// Time zone such as Europe/Berlin; UTC by default.
    time_zone: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct File {
    notifications: Vec<RuleTable>,
}

/// A way to a person.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Destination {
    Bell,
    Desktop,
    /// An address may hold a secret, so it is never shown.
    Webhook(String),
    Slack(String),
    Command(Vec<String>),
}

impl Destination {
    /// Name in messages.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Destination::Bell => "bell",
            Destination::Desktop => "desktop",
            Destination::Webhook(_) => "webhook",
            Destination::Slack(_) => "slack",
            Destination::Command(_) => "command",
        }
    }
}

/// Hours in which nothing is sent. They may pass midnight.
#[derive(Debug, Clone, PartialEq)]
struct Quiet {
    from: Time,
    to: Time,
    zone: TimeZone,
}

impl Quiet {
    fn contains(&self, at: Timestamp) -> bool {
        let time = at.to_zoned(self.zone.clone()).time();
        match self.from <= self.to {
            true => self.from <= time && time < self.to,
            false => time >= self.from || time < self.to,
        }
    }
}

/// One rule.
#[derive(Clone)]
pub(super) struct Rule {
    kinds: BTreeSet<NoticeKind>,
    project: Option<String>,
    quiet: Option<Quiet>,
    pub(super) destinations: Vec<Destination>,
    /// Addresses that are in variables which are not set, as sentences.
    unset: Vec<String>,
}

impl Rule {
    /// Whether a notice is sent now.
    pub(super) fn admits(&self, notice: &Notice, now: Timestamp) -> bool {
        let inside = |project: &String| {
            let place = notice.project.as_ref().map(std::path::Path::new);
            place.is_some_and(|place| place.starts_with(project))
        };
        self.kinds.contains(&notice.kind)
            && self.project.as_ref().is_none_or(inside)
            && !self.quiet.as_ref().is_some_and(|quiet| quiet.contains(now))
    }
}

pub(super) fn load(settings: &Settings) -> Result<Vec<Rule>> {
    let text = settings.config_text()?;
    let rules = parse(&text, &|name| settings.var(name).map(str::to_owned));
    let rules = rules.map_err(|error| located(settings, &text, &error))?;
    for why in rules.iter().flat_map(|rule| &rule.unset) {
        tracing::warn!("some notices are not sent: {why}");
    }
    Ok(rules)
}

/// Checks the rules of a text of `config.toml`.
pub(crate) fn check(settings: &Settings, text: &str) -> Result<()> {
    parse(text, &|name| settings.var(name).map(str::to_owned)).map(drop)
}

/// Addresses of a text of `config.toml` that are in variables which are not set here, as sentences.
pub(crate) fn unset(settings: &Settings, text: &str) -> Vec<String> {
    let rules = parse(text, &|name| settings.var(name).map(str::to_owned)).unwrap_or_default();
    rules.into_iter().flat_map(|rule| rule.unset).collect()
}

fn parse(text: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Vec<Rule>> {
    if !text.contains("notifications") {
        return Ok(Vec::new());
    }
    let tables = parse_toml::<File>(text)?.notifications;
    if tables.len() > MOST_RULES {
        bail!("there are {} [[notifications]]; at most {MOST_RULES} are allowed", tables.len());
    }
    let rules = tables.into_iter().enumerate();
    rules
        .map(|(place, table)| {
            rule(table, variable).with_context(|| format!("[[notifications]] number {}", place + 1))
        })
        .collect()
}

fn rule(table: RuleTable, variable: &dyn Fn(&str) -> Option<String>) -> Result<Rule> {
    let kind = |name: &String| {
        let found = NoticeKind::ALL.iter().find(|kind| kind.as_str() == name);
        found
            .copied()
            .with_context(|| format!("`{name}` in `on` is none of question, failure, budget and finish"))
    };
    let kinds = match &table.on {
        Some(names) => names.iter().map(kind).collect::<Result<_>>()?,
        None => NoticeKind::ALL.iter().copied().filter(|kind| *kind != NoticeKind::Finish).collect(),
    };
    let mut destinations = Vec::new();
    destinations.extend(table.bell.then_some(Destination::Bell));
    destinations.extend(table.desktop.then_some(Destination::Desktop));
    // A variable that this process lacks stops its notices, not its work.
    let mut unset = Vec::new();
    type Make = fn(String) -> Destination;
    let given: [(&str, Option<String>, Make); 2] =
        [("webhook", table.webhook, Destination::Webhook), ("slack", table.slack, Destination::Slack)];
    for (key, given, make) in given {
        match given.map(|given| address(key, &given, variable)).transpose()? {
            Some(Address::Known(address)) => destinations.push(make(address)),
            Some(Address::Unset(name)) => unset.push(format!("`{key}`: the variable {name} is not set")),
            None => {}
        }
    }
    if !table.command.is_empty() {
        destinations.push(Destination::Command(table.command));
    }
    if destinations.is_empty() && unset.is_empty() {
        bail!("it has none of `bell`, `desktop`, `webhook`, `slack` and `command`");
    }
    let quiet = table.quiet.map(quiet_hours).transpose()?;
    Ok(Rule { kinds, project: table.project, quiet, destinations, unset })
}

enum Address {
    Known(String),
    /// It is in this variable, which is not set.
    Unset(String),
}

/// An address, or the one in a variable. The error does not show it.
fn address(key: &str, given: &str, variable: &dyn Fn(&str) -> Option<String>) -> Result<Address> {
    let address = match given.strip_prefix("env:") {
        Some(name) => match variable(name) {
            Some(address) => address,
            None => return Ok(Address::Unset(name.to_owned())),
        },
        None => given.to_owned(),
    };
    match address.starts_with("https://") || address.starts_with("http://") {
        true => Ok(Address::Known(address)),
        false => bail!("`{key}` must begin with https:// or http://"),
    }
}

fn quiet_hours(table: QuietTable) -> Result<Quiet> {
    let time = |key: &str, text: &str| -> Result<Time> {
        let found = Time::strptime("%H:%M", text);
        found.map_err(|_| anyhow::anyhow!("`{key}` in `quiet` is `{text}`; it must be a time such as 22:00"))
    };
    let zone = match table.time_zone.as_deref() {
        None => TimeZone::UTC,
        Some(name) => TimeZone::get(name).map_err(|_| {
            anyhow::anyhow!(
                "`time_zone` in `quiet` is `{name}`, which is not a time zone such as Europe/Berlin"
            )
        })?,
    };
    Ok(Quiet { from: time("from", &table.from)?, to: time("to", &table.to)?, zone })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(text: &str) -> Result<Vec<Rule>> {
        parse(text, &|name| (name == "HOOK").then(|| "https://x.test/secret".to_owned()))
    }

    #[track_caller]
    fn refused(text: &str, expected: &str) {
        let error = format!("{:#}", rules(&format!("[[notifications]]\n{text}")).err().unwrap());
        assert!(error.contains(expected) && error.contains("[[notifications]] number 1"), "{error}");
        assert!(!error.contains("secret"), "{error}");
    }

    fn notice(kind: NoticeKind, project: &str) -> Notice {
        Notice {
            kind,
            title: "t".to_owned(),
            text: "x".to_owned(),
            at: String::new(),
            session: None,
            run: None,
            project: Some(project.to_owned()),
        }
    }

    #[test]
    fn rules_choose_by_kind_project_and_time() {
        let text = "[[notifications]]\nbell = true\nproject = \"/p\"\nquiet = { from = \"22:00\", to = \"07:00\", time_zone = \"Europe/Berlin\" }\n[[notifications]]\non = [\"finish\"]\nslack = \"env:HOOK\"\n";
        let rules = rules(text).unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let day = at("2026-11-18T12:00:00Z");
        assert!(rules[0].admits(&notice(NoticeKind::Question, "/p/sub"), day));
        assert!(!rules[0].admits(&notice(NoticeKind::Question, "/pq"), day));
        assert!(!rules[0].admits(&notice(NoticeKind::Finish, "/p"), day));
        // 21:30 UTC is 22:30 in Berlin; 06:30 UTC is 07:30.
        assert!(!rules[0].admits(&notice(NoticeKind::Failure, "/p"), at("2026-11-18T21:30:00Z")));
        assert!(rules[0].admits(&notice(NoticeKind::Failure, "/p"), at("2026-11-18T06:30:00Z")));
        assert!(rules[1].admits(&notice(NoticeKind::Finish, "/q"), day));
        assert!(rules[1].destinations == [Destination::Slack("https://x.test/secret".to_owned())]);
    }

    #[test]
    fn invalid_rules_are_sentences_without_addresses() {
        refused("on = [\"question\"]", "it has none of `bell`");
        refused(
            "bell = true\non = [\"panic\"]",
            "`panic` in `on` is none of question, failure, budget and finish",
        );
        refused("webhook = \"ftp://secret\"", "`webhook` must begin with https:// or http://");
        refused("bell = true\nquiet = { from = \"25:00\", to = \"07:00\" }", "`from` in `quiet` is `25:00`");
    }

    #[test]
    fn a_variable_that_is_not_set_stops_notices_and_nothing_else() {
        let rules = rules("[[notifications]]\nbell = true\nslack = \"env:GONE\"\nwebhook = \"env:HOOK\"\n");
        let rule = &rules.unwrap()[0];
        let names: Vec<&str> = rule.destinations.iter().map(Destination::name).collect();
        assert_eq!(names, ["bell", "webhook"]);
        assert_eq!(rule.unset, ["`slack`: the variable GONE is not set"]);
    }
}
