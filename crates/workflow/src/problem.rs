//! Problems of a workflow file, with codes that programs act on and positions that editors jump to.

use std::fmt;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
}

/// Position in the file; both numbers begin with 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct FilePosition {
    pub line: usize,
    pub column: usize,
}

impl FilePosition {
    pub const START: FilePosition = FilePosition { line: 1, column: 1 };

    pub fn line(line: usize) -> Self {
        Self { line, column: 1 }
    }
}

/// One thing that is wrong with a workflow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    pub severity: Severity,
    /// Code, such as `tracker.kind` or `template_parse`.
    pub check: String,
    pub message: String,
    #[serde(flatten)]
    pub at: FilePosition,
}

impl Problem {
    pub fn error(check: &str, at: FilePosition, message: impl Into<String>) -> Self {
        Self { severity: Severity::Error, check: check.to_owned(), message: message.into(), at }
    }

    pub fn warning(check: &str, at: FilePosition, message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, check: check.to_owned(), message: message.into(), at }
    }

    /// The problem as compilers print it.
    pub fn line(&self, file: &str) -> String {
        let severity = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        format!("{file}:{}: {severity}: {} [{}]", self.at.line, self.message, self.check)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line("WORKFLOW.md"))
    }
}

/// Result of a validation, in the shape that `validate --format json` prints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub valid: bool,
    pub errors: Vec<Problem>,
    pub warnings: Vec<Problem>,
}

impl Report {
    pub fn of(mut problems: Vec<Problem>) -> Self {
        problems.sort_by(|a, b| (a.at, &a.check).cmp(&(b.at, &b.check)));
        let (errors, warnings): (Vec<_>, Vec<_>) =
            problems.into_iter().partition(|problem| problem.severity == Severity::Error);
        Self { valid: errors.is_empty(), errors, warnings }
    }

    /// All problems, errors first.
    pub fn all(&self) -> impl Iterator<Item = &Problem> {
        self.errors.iter().chain(&self.warnings)
    }
}

/// Codes that belong to no single setting.
pub mod check {
    pub const MISSING_FILE: &str = "missing_workflow_file";
    pub const PARSE: &str = "workflow_parse_error";
    pub const NOT_A_MAP: &str = "workflow_front_matter_not_a_map";
    pub const TEMPLATE_PARSE: &str = "template_parse_error";
    pub const TEMPLATE_RENDER: &str = "template_render_error";
    pub const UNKNOWN_KEY: &str = "unknown_key";
    pub const UNKNOWN_SUB_KEY: &str = "unknown_sub_key";
    pub const TYPE: &str = "type_mismatch";
    pub const UNKNOWN_VARIABLE: &str = "unknown_var";
    pub const UNKNOWN_FIELD: &str = "unknown_field";
    pub const ENV_FILE: &str = "env_file";
}
