//! Possible values of the variables of a command line.
//!
//! Values are collected without regard to order; only whether a variable has certainly been set is followed through the
//! text. The result holds at least the values that are possible.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};

/// Values of one variable that are told apart.
const VALUE_LIMIT: usize = 16;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Values {
    Known(BTreeSet<String>),
    Unknown,
}

pub(super) struct Variables<'a> {
    env: &'a BTreeMap<OsString, OsString>,
    assigned: BTreeMap<String, Values>,
    /// Variables that have been set on the way here.
    certain: HashSet<String>,
    /// Something ran that can set any of them.
    anything_goes: bool,
    changed: bool,
    /// A variable that gets yet another value can hold anything.
    is_widening: bool,
}

impl<'a> Variables<'a> {
    pub(super) fn new(env: &'a BTreeMap<OsString, OsString>) -> Self {
        Self {
            env,
            assigned: BTreeMap::new(),
            certain: HashSet::new(),
            anything_goes: false,
            changed: false,
            is_widening: false,
        }
    }

    /// Begins another reading of the same text; says whether the one before learned anything.
    pub(super) fn begin(&mut self) -> bool {
        self.certain.clear();
        std::mem::take(&mut self.changed)
    }

    pub(super) fn assign(&mut self, name: &str, values: Values) {
        let merged = match (self.assigned.get(name), values) {
            (Some(Values::Unknown), _) | (_, Values::Unknown) => Values::Unknown,
            (None, values) => values,
            (Some(Values::Known(known)), Values::Known(new)) => {
                Values::Known(known.union(&new).cloned().collect())
            }
        };
        let merged = match merged {
            Values::Known(values) if values.len() > VALUE_LIMIT => Values::Unknown,
            other => other,
        };
        let is_news = self.assigned.get(name) != Some(&merged);
        let merged = if is_news && self.is_widening { Values::Unknown } else { merged };
        if self.assigned.get(name) != Some(&merged) {
            self.assigned.insert(name.to_owned(), merged);
            self.changed = true;
        }
        self.certain.insert(name.to_owned());
    }

    /// Gives up on variables that hold more with every reading, as in `x="$x y"`.
    pub(super) fn widen(&mut self) {
        self.is_widening = true;
    }

    /// From here on every variable can hold anything.
    pub(super) fn lose_track(&mut self) {
        self.changed |= !self.anything_goes;
        self.anything_goes = true;
    }

    pub(super) fn values(&self, name: &str) -> Values {
        if self.anything_goes || is_set_by_the_shell(name) {
            return Values::Unknown;
        }
        let inherited = match self.env.get(OsStr::new(name)).map(|value| value.to_str()) {
            None => "",
            Some(Some(value)) => value,
            Some(None) => return Values::Unknown,
        };
        let mut values = match self.assigned.get(name) {
            None => BTreeSet::new(),
            Some(Values::Unknown) => return Values::Unknown,
            Some(Values::Known(values)) => values.clone(),
        };
        if values.is_empty() || !self.certain.contains(name) {
            values.insert(inherited.to_owned());
        }
        Values::Known(values)
    }

    /// Snapshot of the values, to restore behind a part that may not run.
    pub(super) fn mark(&self) -> HashSet<String> {
        self.certain.clone()
    }

    pub(super) fn reset(&mut self, mark: HashSet<String>) {
        self.certain = mark;
    }
}

fn is_set_by_the_shell(name: &str) -> bool {
    const NAMES: [&str; 27] = [
        "_",
        "COLUMNS",
        "DIRSTACK",
        "EPOCHREALTIME",
        "EPOCHSECONDS",
        "EUID",
        "FUNCNAME",
        "GROUPS",
        "HISTCMD",
        "HOSTNAME",
        "HOSTTYPE",
        "IFS",
        "LINENO",
        "LINES",
        "MACHTYPE",
        "MAPFILE",
        "OLDPWD",
        "OPTARG",
        "OPTIND",
        "OSTYPE",
        "PIPESTATUS",
        "PPID",
        "RANDOM",
        "REPLY",
        "SECONDS",
        "SRANDOM",
        "UID",
    ];
    NAMES.contains(&name) || name.starts_with("BASH") || name.starts_with("COMP_") || name == "SHELLOPTS"
}

/// Whether setting a variable can put another program in the place of any command, whichever that is.
pub(super) fn replaces_programs(name: &str) -> bool {
    const NAMES: [&str; 5] = ["PATH", "ENV", "PROMPT_COMMAND", "PS4", "SHELLOPTS"];
    const STARTS: [&str; 3] = ["LD_", "DYLD_", "BASH"];
    NAMES.contains(&name) || STARTS.iter().any(|start| name.starts_with(start))
}

/// Whether setting a variable can change what programs do or which of them run.
pub(super) fn is_dangerous(name: &str) -> bool {
    const NAMES: [&str; 34] = [
        "PATH",
        "IFS",
        "ENV",
        "HOME",
        "SHELL",
        "CDPATH",
        "GLOBIGNORE",
        "PROMPT_COMMAND",
        "PS0",
        "PS4",
        "SHELLOPTS",
        "PAGER",
        "MANPAGER",
        "EDITOR",
        "VISUAL",
        "BROWSER",
        "LESS",
        "LESSOPEN",
        "LESSCLOSE",
        "LESSSECURE",
        "NODE_OPTIONS",
        "NODE_PATH",
        "JAVA_TOOL_OPTIONS",
        "_JAVA_OPTIONS",
        "MAVEN_OPTS",
        "GRADLE_OPTS",
        "RUBYOPT",
        "RUBYLIB",
        "TAR_OPTIONS",
        "POSIXLY_CORRECT",
        "EXECIGNORE",
        "OPENSSL_CONF",
        "TMPDIR",
        "LOCPATH",
    ];
    const STARTS: [&str; 17] = [
        "LD_", "DYLD_", "BASH", "GIT_", "GH_", "SSH_", "XDG_", "PYTHON", "PERL", "RIPGREP_", "GREP_",
        "CARGO", "RUST", "NPM_", "npm_", "GCONV", "HANGAR_",
    ];
    NAMES.contains(&name) || STARTS.iter().any(|start| name.starts_with(start))
}
