//! Variables of the environment as a workflow sees them: those of the process, those of a `.env` file, and `$NAME` in values.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::problem::{FilePosition, Problem, check};

/// Prefix of the variables that replace settings.
pub const PREFIX: &str = "SORTIE_";
/// Variable that names a `.env` file.
pub const ENV_FILE: &str = "SORTIE_ENV_FILE";

/// Environment of a workflow. It is handed in, so that nothing here reads that of the process.
#[derive(Debug, Clone, Default)]
pub struct WorkflowEnvironment {
    pub variables: BTreeMap<String, String>,
    pub home: PathBuf,
    pub temp: PathBuf,
    /// `SORTIE_*` variables of a `.env` file. Those of the process win.
    pub from_file: BTreeMap<String, String>,
}

impl WorkflowEnvironment {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// Value of a variable that replaces a setting.
    pub(crate) fn override_of(&self, name: &str) -> Option<&str> {
        let from_file = || self.from_file.get(name).map(String::as_str).filter(|value| !value.is_empty());
        self.get(name).or_else(from_file)
    }

    /// Replaces `$NAME` and `${NAME}` everywhere. Unknown variables are empty.
    pub fn expand(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(dollar) = rest.find('$') {
            out.push_str(&rest[..dollar]);
            let after = &rest[dollar + 1..];
            let (name, tail) = variable(after);
            match name {
                Some(name) => {
                    let value = self.get(name).or_else(|| self.from_file.get(name).map(String::as_str));
                    out.push_str(value.unwrap_or_default());
                }
                None => out.push('$'),
            }
            rest = tail;
        }
        out.push_str(rest);
        out
    }

    /// A path with `~` and, if it begins with one, a variable replaced. A relative one is below `base`.
    pub(crate) fn path(&self, text: &str, base: &Path) -> PathBuf {
        let text = if text.contains('$') { self.expand(text) } else { text.to_owned() };
        match text.strip_prefix('~') {
            Some("") => self.home.clone(),
            Some(rest) if rest.starts_with('/') => self.home.join(rest.trim_start_matches('/')),
            _ => base.join(text),
        }
    }
}

/// Name of a variable after a `$`, and the text after it.
fn variable(text: &str) -> (Option<&str>, &str) {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if let Some(inner) = text.strip_prefix('{')
        && let Some((name, tail)) = inner.split_once('}')
        && !name.is_empty()
        && name.chars().all(is_name)
    {
        return (Some(name), tail);
    }
    let end = text.find(|c| !is_name(c)).unwrap_or(text.len());
    match end > 0 && !text.starts_with(|c: char| c.is_ascii_digit()) {
        true => (Some(&text[..end]), &text[end..]),
        false => (None, text),
    }
}

/// Reads a `.env` file. Only variables with the prefix count; values are taken literally.
pub fn dotenv(text: &str) -> Result<BTreeMap<String, String>, Problem> {
    let mut found = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        let Some((name, value)) = line.split_once('=') else {
            let message = format!("line {} of the env file is no `NAME=value`", number + 1);
            return Err(Problem::error(check::ENV_FILE, FilePosition::START, message));
        };
        let (name, value) = (name.trim(), value.trim());
        let quoted = ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
        if name.starts_with(PREFIX) {
            found.insert(name.to_owned(), quoted.unwrap_or(value).to_owned());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> WorkflowEnvironment {
        let variables = [("A", "1"), ("DIR", "/d"), ("EMPTY", "")];
        WorkflowEnvironment {
            variables: variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
            home: "/home/me".into(),
            temp: "/tmp".into(),
            ..WorkflowEnvironment::default()
        }
    }

    #[test]
    fn variables_are_replaced_by_name() {
        for (text, expanded) in
            [("$A", "1"), ("x${A}y$A", "x1y1"), ("$NONE-", "-"), ("5$", "5$"), ("$5", "$5"), ("${", "${")]
        {
            assert_eq!(environment().expand(text), expanded, "{text}");
        }
    }

    #[test]
    fn paths_are_below_home_or_the_workflow() {
        for (text, path) in
            [("~", "/home/me"), ("~/x", "/home/me/x"), ("$DIR/x", "/d/x"), ("x", "/base/x"), ("/x", "/x")]
        {
            assert_eq!(environment().path(text, Path::new("/base")), Path::new(path), "{text}");
        }
    }

    #[test]
    fn an_env_file_has_quotes_comments_and_only_our_variables() {
        let text = "# note\nSORTIE_A=\"a b\"\nexport SORTIE_B='$x'\nOTHER=1\nSORTIE_C=a=b\n";
        let found = dotenv(text).unwrap();
        let found: Vec<(&str, &str)> = found.iter().map(|(name, value)| (&**name, &**value)).collect();
        assert_eq!(found, [("SORTIE_A", "a b"), ("SORTIE_B", "$x"), ("SORTIE_C", "a=b")]);
        assert_eq!(dotenv("nonsense").unwrap_err().check, check::ENV_FILE);
    }
}
