//! The corpus of attacks: command lines that try to do harm unasked, as data, and the machine that they are tried on.
//!
//! The files are `crates/cli/tests/attacks/*.txt`; `README.md` beside them says what a line means. The tests of the real
//! binary run every line, and those of the analysis look at what a person would be asked.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where the files are.
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../cli/tests/attacks");
/// Stands for a line break in a command.
const LINE_BREAK: char = '⏎';
/// Stands between a command and further calls of tools.
const THEN: &str = " ⇒ ";
/// Programs are looked for here, so that a machine's own places do not decide what a line does.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// Goal of an attack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Harm {
    /// Something is made or changed that nobody allowed, which is also how a program shows that it ran.
    Creates,
    /// Something outside is read.
    Reads,
    /// A service outside is connected to.
    Reaches,
    /// A process outside is ended or changed.
    Signals,
    /// A process is left when the session has ended.
    Outlives,
}

impl Harm {
    pub const ALL: [Self; 5] = [Self::Creates, Self::Reads, Self::Reaches, Self::Signals, Self::Outlives];

    pub fn word(self) -> &'static str {
        match self {
            Self::Creates => "creates",
            Self::Reads => "reads",
            Self::Reaches => "reaches",
            Self::Signals => "signals",
            Self::Outlives => "outlives",
        }
    }
}

/// Things that a line of a section must not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Watch {
    /// Everything in the workspace.
    Inside,
    /// The configuration, hooks and attributes of the workspace's repository.
    Git,
    /// `P` in the workspace, which only what is denied would make.
    Marker,
    /// Everything beside the workspace and in the home directory.
    Outside,
    /// The canary files, and the variables that hold secrets.
    Reads,
    /// The list of users, which is public, but nobody's business unasked.
    Users,
    /// The listeners on loopback and on sockets with and without a path.
    Network,
    /// The process beside the session, and what is left of the session's own.
    Processes,
}

impl Watch {
    const ALL: [(&'static str, Self); 8] = [
        ("inside", Self::Inside),
        ("git", Self::Git),
        ("marker", Self::Marker),
        ("outside", Self::Outside),
        ("reads", Self::Reads),
        ("users", Self::Users),
        ("network", Self::Network),
        ("processes", Self::Processes),
    ];
}

/// Settings that the lines of a section share.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    pub file: String,
    pub name: String,
    pub flags: Vec<String>,
    /// A shell script that prepares the workspace, before the session.
    pub setup: String,
    pub watch: Vec<Watch>,
    /// Variables of the session.
    pub env: Vec<(String, String)>,
}

#[derive(Debug, Clone)]
pub struct Attack {
    pub section: usize,
    pub line: usize,
    pub harm: Harm,
    /// Does no harm on a machine that lacks a program or a privilege, even if nothing stops it.
    pub perhaps: bool,
    /// The analysis of command lines takes it for harmless, so that only the kernel stops it.
    pub unseen: bool,
    /// Only a namespace of mounts stops it.
    pub by_mounts: bool,
    pub command: String,
    /// Markers of the scripted model that follow the command.
    pub then: Vec<String>,
}

#[derive(Debug, Clone)]
pub struct Control {
    pub section: usize,
    pub line: usize,
    pub command: String,
    pub expected: String,
    /// Needs this program.
    pub needs: Option<String>,
}

#[derive(Debug, Default)]
pub struct Corpus {
    pub sections: Vec<Section>,
    pub attacks: Vec<Attack>,
    pub controls: Vec<Control>,
}

impl Corpus {
    /// Reads all files. A line that means nothing fails the test that asks.
    pub fn read() -> Self {
        let mut files: Vec<PathBuf> = std::fs::read_dir(CORPUS)
            .expect("the directory of the corpus")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
            .collect();
        files.sort();
        let mut corpus = Self::default();
        for path in files {
            let text = std::fs::read_to_string(&path).expect("a file of the corpus");
            let file = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
            for (index, line) in text.lines().enumerate() {
                corpus.add(&file, index + 1, line);
            }
        }
        corpus
    }

    fn add(&mut self, file: &str, line: usize, text: &str) {
        let wrong = |what: &str| -> ! { panic!("{file}:{line}: {what}: {text}") };
        if text.trim().is_empty() || text.starts_with('#') {
            return;
        }
        if let Some(name) = text.strip_prefix("== ") {
            self.sections.push(Section {
                file: file.to_owned(),
                name: name.trim().to_owned(),
                flags: Vec::new(),
                setup: String::new(),
                watch: Watch::ALL.iter().map(|(_, watch)| *watch).collect(),
                env: Vec::new(),
            });
            return;
        }
        let number = self.sections.len().checked_sub(1).unwrap_or_else(|| wrong("no section begins before"));
        let section = &mut self.sections[number];
        match text.split_once(" = ") {
            Some(("flags", value)) => return section.flags.extend(words(value)),
            Some(("setup", value)) => {
                section.setup.push_str(&line_breaks(value));
                return section.setup.push('\n');
            }
            Some(("env", value)) => {
                let (name, value) = value.split_once('=').unwrap_or_else(|| wrong("no variable"));
                return section.env.push((name.to_owned(), value.to_owned()));
            }
            Some(("watch", value)) => {
                let read = |word: &str| {
                    let known = Watch::ALL.iter().find(|(name, _)| *name == word);
                    known.unwrap_or_else(|| wrong("nothing to watch")).1
                };
                section.watch = value.split_whitespace().map(read).collect();
                return;
            }
            _ => {}
        }
        if let Some(rest) = text.strip_prefix("works") {
            let (needs, rest) = match rest.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
                Some((program, rest)) => (Some(program.to_owned()), rest),
                None => (None, rest),
            };
            let (command, expected) =
                rest.rsplit_once(" => ").unwrap_or_else(|| wrong("nothing is expected"));
            self.controls.push(Control {
                section: number,
                line,
                command: line_breaks(command.trim_start()),
                expected: line_breaks(expected),
                needs,
            });
            return;
        }
        let (head, command) = text.split_once(' ').unwrap_or_else(|| wrong("no command"));
        let word = head.trim_end_matches(['?', '*', '!']);
        let harm = Harm::ALL.into_iter().find(|harm| harm.word() == word);
        let mut calls = command.trim_start().split(THEN);
        let attack = Attack {
            section: number,
            line,
            harm: harm.unwrap_or_else(|| wrong("no harm that is known")),
            perhaps: head[word.len()..].contains('?'),
            unseen: head[word.len()..].contains('*'),
            by_mounts: head[word.len()..].contains('!'),
            command: line_breaks(calls.next().unwrap_or_default()),
            then: calls.map(str::to_owned).collect(),
        };
        self.attacks.push(attack);
    }

    pub fn section(&self, number: usize) -> &Section {
        &self.sections[number]
    }

    /// Where a line stands, for messages.
    pub fn place(&self, section: usize, line: usize) -> String {
        format!("{}:{line}", self.section(section).file)
    }
}

/// A command as one line of a file of the corpus.
pub fn as_line(harm: Harm, command: &str) -> String {
    format!("{} {}", harm.word(), command.replace('\n', &LINE_BREAK.to_string()))
}

fn line_breaks(text: &str) -> String {
    text.replace(LINE_BREAK, "\n")
}

/// A text of the corpus with the directories of a machine in it.
pub fn with_places(text: &str, root: &Path) -> String {
    text.replace("@WORK@", &root.join("work").display().to_string())
        .replace("@ROOT@", &root.display().to_string())
}

/// The words of a list of flags; single quotes keep one together.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in text.trim().chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().expect("there is one").push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// The files of a machine for attacks, as `base.sh` makes them, to make copies of.
pub struct AttackTemplate(tempfile::TempDir);

impl Default for AttackTemplate {
    fn default() -> Self {
        Self::new()
    }
}

impl AttackTemplate {
    pub fn new() -> Self {
        let dir = temporary();
        shell(dir.path(), &format!(". '{CORPUS}/base.sh'"));
        Self(dir)
    }

    /// A fresh copy, prepared by the script of a section.
    pub fn tree(&self, setup: &str) -> Tree {
        let dir = temporary();
        let copied =
            Command::new("cp").arg("-a").arg("--").arg(self.0.path().join(".")).arg(dir.path()).status();
        assert!(copied.expect("cp is installed").success(), "the tree is copied");
        let root = dir.path().canonicalize().expect("the temporary directory exists");
        if !setup.is_empty() {
            shell(&root.join("work"), &with_places(setup, &root));
        }
        Tree { root, _dir: dir }
    }
}

/// A machine for attacks: `work` with a repository in it, and beside it what must stay as it is.
///
/// The home directory is `home`, the temporary one `tmp`; neither is above the workspace.
pub struct Tree {
    root: PathBuf,
    _dir: tempfile::TempDir,
}

impl Tree {
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn work(&self) -> PathBuf {
        self.root.join("work")
    }

    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Gives everything in it to somebody else.
    pub fn give_to(&self, user: u32) {
        let owner = format!("{user}:{user}");
        let given = Command::new("chown").args(["-hR", &owner, "--"]).arg(&self.root).status();
        assert!(given.expect("chown is installed").success(), "the tree is given away");
    }
}

/// A directory that every user can look into.
fn temporary() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::Builder::new().prefix("hangar-attacks-").tempdir().expect("a temporary directory");
    std::fs::set_permissions(dir.path(), std::fs::Permissions::from_mode(0o755)).expect("it is ours");
    dir
}

fn shell(directory: &Path, script: &str) {
    let done = Command::new("/bin/bash")
        .args(["-euc", script])
        .current_dir(directory)
        .env_clear()
        .envs([("PATH", PATH), ("LANG", "C.UTF-8"), ("HOME", "/nonexistent")])
        .envs([("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_AUTHOR_DATE", "2024-01-02T03:04:05Z")])
        .envs([("GIT_COMMITTER_DATE", "2024-01-02T03:04:05Z")])
        .stdin(Stdio::null())
        .output()
        .expect("bash is installed");
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
}
