//! From the text of a file to an [`Entry`]. JSON, or YAML that means the same.
//!
//! Mistakes that a reader of the types could not put well are found first, in the words of validation: a kind of work that
//! does not exist, criteria without a failure action, retries that are no number.

use std::path::{Path, PathBuf};

use serde_json::Value;
use serde_path_to_error::Segment;

use crate::entry::Entry;
use crate::validate::{Invalid, ValidEntry, validate_entry};

/// Maximum size of a file.
pub const MAX_ENTRY_BYTES: usize = 4 << 20;
/// Maximum nesting of works.
const MAX_DEPTH: usize = 64;
const KINDS: [&str; 5] = ["Ref", "Seq", "Par", "Loop", "Alt"];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Json,
    Yaml,
}

impl Format {
    /// By the name of a file.
    pub fn of(path: &std::path::Path) -> Self {
        let json = path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"));
        if json { Self::Json } else { Self::Yaml }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("an entry of {0} bytes exceeds the limit of {MAX_ENTRY_BYTES} bytes")]
    TooLong(usize),
    #[error("not JSON: {0}")]
    Json(serde_json::Error),
    #[error("not YAML: {0}")]
    Yaml(String),
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("reading {}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("{} is too long for an entry", path.display())]
    TooLong { path: PathBuf },
    #[error("reading {}", path.display())]
    Read { path: PathBuf, source: ReadError },
    #[error(transparent)]
    Invalid(#[from] Invalid),
}

/// Reads and validates a file.
pub fn load(path: &Path) -> Result<ValidEntry, LoadError> {
    let io = |source| LoadError::Io { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(io)?.len() > MAX_ENTRY_BYTES as u64 {
        return Err(LoadError::TooLong { path: path.to_owned() });
    }
    let text = std::fs::read_to_string(path).map_err(io)?;
    let code_path = format!("{}:", path.display());
    let entry = read_entry(&text, Format::of(path), &code_path).map_err(|source| match source {
        // It names the file itself.
        ReadError::Invalid(invalid) => LoadError::Invalid(invalid),
        source => LoadError::Read { path: path.to_owned(), source },
    })?;
    Ok(validate_entry(entry, &code_path)?)
}

/// Reads an entry without asking whether it is sound.
pub fn read_entry(text: &str, format: Format, code_path: &str) -> Result<Entry, ReadError> {
    if text.len() > MAX_ENTRY_BYTES {
        return Err(ReadError::TooLong(text.len()));
    }
    let value: Value = match format {
        Format::Json => serde_json::from_str(text).map_err(ReadError::Json)?,
        Format::Yaml => {
            // `y` and `no` are words in a prompt, not booleans.
            let options = serde_saphyr::options! { strict_booleans: true };
            serde_saphyr::from_str_with_options(text, options)
                .map_err(|error| ReadError::Yaml(error.to_string()))?
        }
    };
    entry_of(value, code_path)
}

/// Reads an entry that has been parsed already.
pub fn entry_of(value: Value, code_path: &str) -> Result<Entry, ReadError> {
    check_tasks(&value["tasks"], code_path)?;
    check_jobs(&value["jobs"], code_path)?;
    Ok(serde_path_to_error::deserialize(value).map_err(|error| {
        let path = format!("{code_path}entry{}", shown(error.path()));
        Invalid::at(path, format!("{}.", error.into_inner()))
    })?)
}

/// A path as validation writes it: `.tasks["name"].prompt[0]`.
fn shown(path: &serde_path_to_error::Path) -> String {
    path.iter().enumerate().fold(String::new(), |shown, (depth, segment)| match segment {
        Segment::Seq { index } => format!("{shown}[{index}]"),
        // The second level has the names of tasks and jobs.
        Segment::Map { key } if depth == 1 => format!("{shown}[\"{key}\"]"),
        Segment::Map { key } | Segment::Enum { variant: key } => format!("{shown}.{key}"),
        Segment::Unknown => shown,
    })
}

fn check_tasks(tasks: &Value, code_path: &str) -> Result<(), Invalid> {
    for (name, task) in tasks.as_object().into_iter().flatten() {
        let Some(criteria) = task.get("criteria").filter(|criteria| !criteria.is_null()) else { continue };
        let path = format!("{code_path}entry.tasks[\"{name}\"].criteria.failureAction");
        match criteria.get("failureAction") {
            None | Some(Value::Null) => return Err(Invalid::at(path, "Should exist.")),
            Some(action) => {
                check_count(action.get("retryTimes").unwrap_or(&Value::Null), &format!("{path}.retryTimes"))?;
            }
        }
    }
    Ok(())
}

fn check_count(value: &Value, path: &str) -> Result<(), Invalid> {
    match value.as_u64().map(u32::try_from) {
        Some(Ok(_)) => Ok(()),
        _ => Err(Invalid::at(path, format!("Should be a number from 0 but is {value}."))),
    }
}

fn check_jobs(jobs: &Value, code_path: &str) -> Result<(), Invalid> {
    for (name, job) in jobs.as_object().into_iter().flatten() {
        let path = format!("{code_path}entry.jobs[\"{name}\"].work");
        match job.get("work") {
            None | Some(Value::Null) => return Err(Invalid::at(path, "Should exist.")),
            Some(work) => check_work(work, &path, 0)?,
        }
    }
    Ok(())
}

fn check_work(work: &Value, path: &str, depth: usize) -> Result<(), Invalid> {
    if depth > MAX_DEPTH {
        return Err(Invalid::at(path, format!("Works are nested deeper than {MAX_DEPTH}.")));
    }
    let kind = &work["kind"];
    if !kind.as_str().is_some_and(|kind| KINDS.contains(&kind)) {
        let reason = format!("{kind} is not a kind of work ({}).", KINDS.join(", "));
        return Err(Invalid::at(format!("{path}.kind"), reason));
    }
    for (index, child) in work["works"].as_array().into_iter().flatten().enumerate() {
        check_work(child, &format!("{path}.works[{index}]"), depth + 1)?;
    }
    for (field, child) in [("preCondition", 1), ("postCondition", 1)] {
        if let Some(child) = work[field].get(child) {
            check_work(child, &format!("{path}.{field}[1]"), depth + 1)?;
        }
    }
    for field in ["body", "condition", "trueWork", "falseWork"] {
        if let Some(child) = work.get(field).filter(|child| !child.is_null()) {
            check_work(child, &format!("{path}.{field}"), depth + 1)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Expect) {
        let error = read_entry(text, Format::Yaml, "job.yaml:").expect_err("a mistake");
        assert!(std::error::Error::source(&error).is_none(), "the message has the source already");
        expected.assert_eq(&error.to_string());
    }

    #[test]
    fn an_error_names_the_path_of_the_mistake() {
        check("tasks: {t: {}}", expect![[r#"job.yaml:entry.tasks["t"]: missing field `prompt`."#]]);
        check(
            "tasks: {t: {model: {category: x}, prompt: [1]}}",
            expect![[
                r#"job.yaml:entry.tasks["t"].prompt[0]: invalid type: integer `1`, expected a string."#
            ]],
        );
        check("tasks: 5", expect!["job.yaml:entry.tasks: invalid type: integer `5`, expected a map."]);
        let error = read_entry("{", Format::Json, "job.json:").expect_err("no JSON");
        assert!(std::error::Error::source(&error).is_none());
    }
}
