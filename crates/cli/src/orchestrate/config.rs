//! `[[orchestrator]]` of `config.toml`: the workflows that `hangar up` runs.
//!
//! ```toml
//! [[orchestrator]]
//! workflow = "/srv/app/WORKFLOW.md"
//! ```

use std::collections::BTreeSet;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::settings::Settings;

/// Most workflows of one portal.
const MOST: usize = 64;

/// `[[orchestrator]]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrchestratorTable {
    /// Workflow file whose issues the portal works on; an absolute path.
    pub(crate) workflow: PathBuf,
    /// File with SORTIE_* variables; an absolute path.
    pub(crate) env_file: Option<PathBuf>,
    /// Whether it runs. It does unless it is set to false.
    pub(crate) enabled: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct File {
    orchestrator: Vec<OrchestratorTable>,
}

/// The workflows of a text of `config.toml` that are to run, without those that cannot.
pub(super) fn read(text: &str) -> Vec<OrchestratorTable> {
    let file: File = toml::from_str(text).unwrap_or_default();
    let mut known = BTreeSet::new();
    let wanted = |table: &OrchestratorTable| {
        table.enabled != Some(false) && table.workflow.is_absolute() && known.insert(table.workflow.clone())
    };
    file.orchestrator.into_iter().filter(wanted).take(MOST).collect()
}

/// Problems of the workflows, each with the path of its setting.
pub(crate) fn check(settings: &Settings, text: &str) -> Vec<(Vec<String>, String)> {
    let file: File = toml::from_str(text).unwrap_or_default();
    let mut problems = Vec::new();
    let mut known = BTreeSet::new();
    for (index, table) in file.orchestrator.iter().enumerate() {
        let mut add = |key: &str, message: String| {
            problems.push((vec!["orchestrator".to_owned(), index.to_string(), key.to_owned()], message));
        };
        let path = &table.workflow;
        if !path.is_absolute() {
            add("workflow", format!("`{}` must be an absolute path", path.display()));
            continue;
        }
        if table.env_file.as_ref().is_some_and(|file| !file.is_absolute()) {
            add("env_file", "`env_file` must be an absolute path".to_owned());
            continue;
        }
        if !known.insert(path) {
            add("workflow", format!("{} is listed twice", path.display()));
            continue;
        }
        if index >= MOST {
            add("workflow", format!("there are more than {MOST} workflows"));
            break;
        }
        let source = super::source(settings, Some(path.clone()), table.env_file.clone());
        let report =
            source.map(|source| source.load().err().and_then(|report| report.errors.into_iter().next()));
        match report {
            Ok(None) => {}
            Ok(Some(problem)) => add("workflow", problem.line(&path.display().to_string())),
            Err(error) => add("workflow", format!("{error:#}")),
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_cannot_run_are_left_out() {
        let table =
            |workflow: &str, rest: &str| format!("[[orchestrator]]\nworkflow = \"{workflow}\"\n{rest}\n");
        let text =
            [table("/a", ""), table("b", ""), table("/c", "enabled = false"), table("/a", "")].concat();
        let paths: Vec<PathBuf> = read(&text).into_iter().map(|table| table.workflow).collect();
        assert_eq!(paths, [PathBuf::from("/a")]);
    }
}
