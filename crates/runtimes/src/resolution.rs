//! Resolution of an agent to a program, and cached facts about it. They are cached between runs, because asking a
//! program for its version takes longer than many turns, and are valid while the program's file is unchanged.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::environment::RuntimeEnvironment;
use crate::host::Host;
use crate::program_query::{self, NoVersion, ProbeHost};

/// Lifetime of a cached resolution. Some programs update themselves behind an unchanged file.
const TIME_TO_LIVE: Duration = Duration::from_secs(24 * 3600);

/// A program with arguments that stand before all others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Located {
    pub(crate) program: String,
    pub(crate) leading: Vec<String>,
    /// Why this may not be the real thing, if so.
    pub(crate) doubt: Option<String>,
}

impl Located {
    pub(crate) fn program(path: &Path) -> Self {
        Self { program: path.display().to_string(), leading: Vec::new(), doubt: None }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Resolution {
    #[serde(flatten)]
    pub(crate) located: Located,
    stamp: ProgramStamp,
    pub(crate) version: Option<String>,
    pub(crate) help_hash: Option<String>,
    /// The levels of effort that its help names.
    pub(crate) effort_levels: Option<Vec<String>>,
    /// Words that its help was searched for and does not contain.
    pub(crate) lacks: Vec<String>,
    resolved_at: String,
    /// Why its version is not known. Such a look is not kept.
    #[serde(skip)]
    pub(crate) trouble: Option<String>,
    /// Why the program is not there, in one sentence.
    #[serde(skip)]
    pub(crate) absent: Option<String>,
}

/// Tells a file from the one that was there before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct ProgramStamp {
    inode: u64,
    size: u64,
    /// Nanoseconds of the last change, of which packages cannot give a wrong account as they do of the last writing.
    changed: i128,
}

impl ProgramStamp {
    fn of(program: &str) -> Option<Self> {
        let meta = std::fs::metadata(program).ok()?;
        let changed = i128::from(meta.ctime()) * 1_000_000_000 + i128::from(meta.ctime_nsec());
        Some(Self { inode: meta.ino(), size: meta.len(), changed })
    }
}

/// Questions for a program.
pub(crate) struct ProgramQuestions<'a> {
    /// The agent's name.
    pub(crate) name: &'a str,
    /// The arguments with which it tells about its flags.
    pub(crate) help: &'a [&'a str],
    /// Words to search its help for.
    pub(crate) named: Vec<&'a str>,
}

impl Resolution {
    /// Cached resolution of the agent's program, if it is still valid.
    pub(crate) fn remembered(name: &str, runtime_env: &RuntimeEnvironment) -> Option<Self> {
        let text = std::fs::read(file(runtime_env, name)?).ok()?;
        let known: Self = serde_json::from_slice(&text).ok()?;
        let since = known.resolved_at.parse::<Timestamp>().ok()?;
        let age = Duration::try_from((runtime_env.now)().duration_since(since)).ok()?;
        (age < TIME_TO_LIVE && ProgramStamp::of(&known.located.program) == Some(known.stamp)).then_some(known)
    }

    /// Asks the program itself, and remembers what one of this machine said.
    pub(crate) async fn ask(
        located: Located,
        questions: &ProgramQuestions<'_>,
        host: &ProbeHost<'_>,
    ) -> Self {
        // One after the other: some set up a home with their first run, and cannot do that twice at once.
        let version = program_query::version(&located, host).await;
        let help = program_query::help(&located, questions.help, host).await;
        let is_lacking = |word: &&&str| help.as_ref().is_some_and(|help| !help.contains(**word));
        let lacks = questions.named.iter().filter(is_lacking).map(|word| (*word).to_owned());
        let (trouble, absent) = match &version {
            Ok(_) => (None, None),
            Err(NoVersion::Broken(why)) => (Some(why.clone()), None),
            Err(NoVersion::Absent(why)) => (None, Some(why.clone())),
        };
        let resolution = Self {
            stamp: ProgramStamp::of(&located.program).unwrap_or_default(),
            help_hash: help.as_deref().map(program_query::mark),
            effort_levels: help.as_deref().and_then(program_query::effort_levels),
            lacks: lacks.collect(),
            resolved_at: (host.runtime_env.now)().to_string(),
            trouble,
            absent,
            version: version.ok(),
            located,
        };
        if resolution.version.is_some() && *host.host == Host::Local {
            resolution.remember(questions.name, host.runtime_env);
        }
        resolution
    }

    fn remember(&self, name: &str, runtime_env: &RuntimeEnvironment) {
        let Some(file) = file(runtime_env, name) else { return };
        let text = serde_json::to_vec_pretty(self).map_err(std::io::Error::from);
        // It is asked again next time.
        let _ = text.and_then(|text| hangar_disk::keep(&file, text));
    }
}

fn file(runtime_env: &RuntimeEnvironment, name: &str) -> Option<PathBuf> {
    let safe = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_') { c } else { '_' };
    let name: String = name.chars().map(safe).collect();
    Some(runtime_env.cache.as_ref()?.join(format!("agent-{name}.json")))
}
