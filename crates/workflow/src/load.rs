//! Loads a workflow file.

use std::path::Path;

use crate::config::Config;
use crate::environment::WorkflowEnvironment;
use crate::problem::{FilePosition, Problem, Report, Severity, check};
use crate::reader::Reader;
use crate::sections;
use crate::template::{Template, shape};
use crate::yaml::{self, Yaml};

/// Largest workflow file, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// A workflow that can be run.
#[derive(Debug, Clone)]
pub struct Workflow {
    pub config: Config,
    pub prompt: Template,
    /// Name of the branch of an issue.
    pub branch: Template,
    /// Title and text of a pull request.
    pub title: Template,
    pub body: Option<Template>,
    pub warnings: Vec<Problem>,
}

/// Reads the text of a workflow file in `directory`. All problems are found at once.
pub fn load(text: &str, directory: &Path, environment: &WorkflowEnvironment) -> Result<Workflow, Report> {
    let one = |problem: Problem| Report::of(vec![problem]);
    if text.len() > MAX_BYTES {
        let message = format!("the file is larger than {MAX_BYTES} bytes");
        return Err(one(Problem::error(check::PARSE, FilePosition::START, message)));
    }
    let text = text.replace("\r\n", "\n");
    let Some(parts) = hangar_front_matter::split(&text) else {
        let message = "the front matter has no end; close it with a line of `---`";
        return Err(one(Problem::error(check::PARSE, FilePosition::START, message)));
    };
    // The YAML begins on the second line, behind the fence.
    let root = yaml::parse(parts.yaml.unwrap_or_default(), 1).map_err(one)?;
    if let Some(root) = &root
        && !matches!(root.value, Yaml::Map(_))
    {
        let message = format!("the front matter must be a map, not {}", root.kind());
        return Err(one(Problem::error(check::NOT_A_MAP, root.at, message)));
    }
    let mut reader = Reader { root: root.as_ref(), environment, base: directory, problems: Vec::new() };
    let config = sections::config(&mut reader);
    let branch_at = reader.position("workspace.branch");
    let (title_at, body_at) = (reader.position("pull_requests.title"), reader.position("pull_requests.body"));
    let mut problems = reader.problems;
    let text = parts.body.trim_start();
    let blank = parts.body[..parts.body.len() - text.len()].matches('\n').count();
    let prompt = template(text.trim_end(), config.template, parts.body_offset + blank, &mut problems);
    let branch = template(&config.workspace.branch, None, branch_at.line - 1, &mut problems);
    let title = template(&config.pulls.title, None, title_at.line - 1, &mut problems);
    let body = config.pulls.body.as_deref();
    let body = body.and_then(|text| template(text, None, body_at.line - 1, &mut problems));
    let report = Report::of(problems);
    match (prompt, branch, title) {
        (Some(prompt), Some(branch), Some(title)) if report.valid => {
            Ok(Workflow { config, prompt, branch, title, body, warnings: report.warnings })
        }
        _ => Err(report),
    }
}

fn template(
    text: &str,
    language: Option<crate::template::Language>,
    offset: usize,
    problems: &mut Vec<Problem>,
) -> Option<Template> {
    let at = |line: usize| FilePosition::line(line + offset);
    match Template::parse(text, language) {
        Ok(parsed) => {
            let found = shape::check(&parsed).into_iter();
            problems.extend(found.map(|found| Problem {
                severity: Severity::Warning,
                check: found.check.to_owned(),
                message: found.message,
                at: at(found.line),
            }));
            Some(parsed.shifted(offset))
        }
        Err(error) => {
            problems.push(Problem::error(check::TEMPLATE_PARSE, at(error.line), error.message));
            None
        }
    }
}

#[cfg(test)]
mod symphony;
#[cfg(test)]
mod tests;
