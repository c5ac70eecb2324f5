//! The machine that attacks are tried on: what there is to lose, and how to see that it was lost.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hangar_test_support::attacks::{AttackTemplate, PATH, Tree, Watch, with_places};
use hangar_test_support::process::Witness;
use hangar_test_support::{Finished, Invocation};

use crate::HANGAR;

/// Content of every file, variable and name that nobody may read.
const CANARY: &str = "CANARYQXZW";
/// Printed in place of a secret by a program that had it.
const REDACTED: &str = "[redacted]";
/// How the list of users begins.
const USERS: &str = "root:x:0:0:";
/// `nobody`, and the group of the same name or of none.
const NOBODY: u32 = 65534;
/// Far above what a process needs to be gone after it was killed.
const PATIENCE: Duration = Duration::from_secs(3);
/// Far above what a batch takes on a loaded machine.
const LIMIT: Duration = Duration::from_secs(240);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum User {
    Current,
    Nobody,
}

/// Parts of a machine, for one user.
pub(super) struct Ground {
    user: User,
    template: AttackTemplate,
    /// The program, at a place that the user can reach.
    program: PathBuf,
    _copy: Option<tempfile::TempDir>,
}

impl Ground {
    pub(super) fn new(user: User) -> Self {
        let template = AttackTemplate::new();
        let mut program = Command::new(HANGAR);
        let trial = become_user(&mut program, user).arg("version").stdout(Stdio::null()).status();
        if trial.is_ok_and(|status| status.success()) {
            return Self { user, template, program: HANGAR.into(), _copy: None };
        }
        let dir = works(tempfile::Builder::new().prefix("hangar-program-").tempdir());
        works(std::fs::set_permissions(dir.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)));
        let program = dir.path().join("hangar");
        works(std::fs::copy(HANGAR, &program));
        Self { user, template, program, _copy: Some(dir) }
    }

    pub(super) fn machine(&self, setup: &str) -> Machine {
        Machine::new(self.template.tree(setup), self.user, self.program.clone())
    }
}

/// Metadata of a file that changes with it. Contents are not read, because that would show too.
type State = (u32, u32, u32, u64, u64, (i64, i64), (i64, i64));

pub(super) struct Machine {
    tree: Tree,
    user: User,
    program: PathBuf,
    victim: Child,
    victim_settings: String,
    tcp: TcpListener,
    udp: UdpSocket,
    stream: UnixListener,
    datagram: UnixDatagram,
    abstracted: UnixListener,
    /// Suffix that distinguishes this machine's names from those of others.
    number: u32,
    before: BTreeMap<PathBuf, State>,
    read_before: BTreeMap<PathBuf, (i64, i64)>,
}

fn works<T, E: std::fmt::Debug>(result: Result<T, E>) -> T {
    result.expect("the machine for attacks works")
}

impl Machine {
    fn new(tree: Tree, user: User, program: PathBuf) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = std::process::id() % 100_000 * 10_000 + NUMBER.fetch_add(1, Ordering::Relaxed);
        let tcp = works(TcpListener::bind("127.0.0.1:0"));
        let udp = works(UdpSocket::bind("127.0.0.1:0"));
        let stream = works(UnixListener::bind(tree.root().join("socket")));
        let datagram = works(UnixDatagram::bind(tree.root().join("datagram")));
        let address = works(SocketAddr::from_abstract_name(abstract_name(number)));
        let abstracted = works(UnixListener::bind_addr(&address));
        works(tcp.set_nonblocking(true));
        works(udp.set_nonblocking(true));
        works(stream.set_nonblocking(true));
        works(datagram.set_nonblocking(true));
        works(abstracted.set_nonblocking(true));
        if user == User::Nobody {
            tree.give_to(NOBODY);
        }
        let mut victim = Command::new("sleep");
        victim.arg("600").env_clear().env("KEY", CANARY).current_dir(tree.root().join("other"));
        let victim = works(become_user(&mut victim, user).stdin(Stdio::null()).spawn());
        let victim_settings = settings_of(victim.id());
        let mut machine = Self {
            tree,
            user,
            program,
            victim,
            victim_settings,
            tcp,
            udp,
            stream,
            datagram,
            abstracted,
            number,
            before: BTreeMap::new(),
            read_before: BTreeMap::new(),
        };
        machine.before = machine.files();
        machine.read_before = machine.read_times();
        machine
    }

    /// A text of the corpus with the names that hold on this machine.
    pub(super) fn fill_in(&self, text: &str) -> String {
        let port = |address: std::io::Result<std::net::SocketAddr>| works(address).port().to_string();
        with_places(text, self.tree.root())
            .replace("@PORT@", &port(self.tcp.local_addr()))
            .replace("@UDP@", &port(self.udp.local_addr()))
            .replace("@VICTIM@", &self.victim.id().to_string())
            .replace("@ABSTRACT@", &abstract_name(self.number))
            .replace("@SLEEP@", &self.sleep())
    }

    /// How long processes sleep that are looked for afterwards: a number that no other has.
    fn sleep(&self) -> String {
        format!("600.{:09}", self.number)
    }

    /// A program with the environment of a session, secrets included.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .env_clear()
            .envs([("PATH", PATH), ("LANG", "C.UTF-8"), ("SECRET_TOKEN", "CANARYQXZW-token")])
            .env("COPILOT_PROVIDER_API_KEY", "CANARYQXZW-key")
            .env("HOME", self.tree.home())
            .env("HANGAR_HOME", self.tree.home().join("state"))
            .env("COPILOT_HOME", self.tree.home().join("state"))
            .env("TMPDIR", self.tree.root().join("tmp"))
            .current_dir(self.tree.work());
        become_user(&mut command, self.user);
        command
    }

    /// A session in the workspace whose model calls these tools, one after the other.
    pub(super) fn session(&self, calls: &[String], flags: &[String], env: &[(&str, &str)]) -> Finished {
        let mut command = self.command(&self.program);
        command.args(["--model", "scripted", "--output-format", "json", "--secret-env-vars=SECRET_TOKEN"]);
        command.args(flags).envs(env.iter().map(|(name, value)| (*name, self.fill_in(value))));
        let script = format!("{}\nSAY:done", calls.join("\n"));
        command.args(["-p", &script]);
        Invocation::new(command).within(LIMIT).finish()
    }

    /// A command that nothing stops. Its parent has the secrets, as a session has them.
    pub(super) fn free(&self, line: &str, env: &[(&str, &str)]) -> Finished {
        let mut command = self.command("/bin/sh".as_ref());
        // A file takes what is printed, because a process that stays would keep a pipe open.
        let script = "exec > \"$TMPDIR/printed\" 2>&1 < /dev/null\n\
                      env -u SECRET_TOKEN -u COPILOT_PROVIDER_API_KEY /bin/bash -c \"$1\"\nexit";
        command
            .args(["-c", script, "sh", line])
            .envs(env.iter().map(|(name, value)| (*name, self.fill_in(value))));
        Invocation::new(command).within(LIMIT).finish()
    }

    /// Output of a command that nothing stops.
    pub(super) fn printed(&self) -> String {
        let printed = std::fs::read(self.tree.root().join("tmp/printed")).unwrap_or_default();
        String::from_utf8_lossy(&printed).into_owned()
    }

    /// The damage, in words.
    pub(super) fn harm(&mut self, run: &Finished, watch: &[Watch]) -> Vec<String> {
        self.harm_within(PATIENCE, run, watch)
    }

    /// The same where processes are not expected to go away. One that a command leaves behind may begin after the command
    /// has ended.
    pub(super) fn harm_without_limits(&mut self, run: &Finished, watch: &[Watch]) -> Vec<String> {
        let began = Instant::now();
        loop {
            let harm = self.harm_within(Duration::ZERO, run, watch);
            if !harm.is_empty() || began.elapsed() > PATIENCE {
                return harm;
            }
            std::thread::yield_now();
        }
    }

    fn harm_within(&mut self, patience: Duration, run: &Finished, watch: &[Watch]) -> Vec<String> {
        let (mut harm, changed) = (Vec::new(), self.changed());
        let of = |concerns: &dyn Fn(&Path) -> bool| -> Vec<String> {
            changed
                .iter()
                .filter(|path| concerns(path))
                .map(|path| format!("changed {}", path.display()))
                .collect()
        };
        for what in watch {
            harm.extend(match what {
                Watch::Inside => of(&|path| path.starts_with("work")),
                Watch::Git => of(&is_git_setting),
                Watch::Marker => of(&|path| path == Path::new("work/P")),
                Watch::Outside => of(&|path| !path.starts_with("work")),
                Watch::Reads => self.read(run),
                Watch::Users => {
                    self.said(run).contains(USERS).then(|| "read the users".to_owned()).into_iter().collect()
                }
                Watch::Network => self.reached(),
                Watch::Processes => self.processes(patience),
            });
        }
        harm.sort();
        harm.dedup();
        harm
    }

    /// Files that are not as they were, relative to the root.
    fn changed(&self) -> Vec<PathBuf> {
        let now = self.files();
        let paths = self.before.keys().chain(now.keys().filter(|path| !self.before.contains_key(*path)));
        paths.filter(|path| self.before.get(*path) != now.get(*path)).cloned().collect()
    }

    fn files(&self) -> BTreeMap<PathBuf, State> {
        let mut found = BTreeMap::new();
        look(self.tree.root(), Path::new(""), &mut found);
        found
    }

    /// When the canaries were read last, where the file system says so.
    fn read_times(&self) -> BTreeMap<PathBuf, (i64, i64)> {
        if !notes_reading() {
            return BTreeMap::new();
        }
        ["secret.txt", "secret.json", "other/secret.txt", "home/secret.txt", "home/.ssh/id", "outside/kept"]
            .into_iter()
            .filter_map(|path| {
                let metadata = self.tree.root().join(path).symlink_metadata().ok()?;
                Some((path.into(), (metadata.atime(), metadata.atime_nsec())))
            })
            .collect()
    }

    fn read(&self, run: &Finished) -> Vec<String> {
        let now = self.read_times();
        let mut harm: Vec<String> = self
            .read_before
            .iter()
            .filter(|(path, time)| now.get(*path).is_some_and(|now| now != *time))
            .map(|(path, _)| format!("read {}", path.display()))
            .collect();
        let said = self.said(run);
        if said.contains(REDACTED) {
            harm.push("had a secret of the session".to_owned());
        }
        let plain: String =
            said.replace("\\n", "").replace("\\t", "").chars().filter(|c| !c.is_whitespace()).collect();
        if let Some(form) = forms().iter().find(|form| said.contains(*form) || plain.contains(*form)) {
            harm.push(format!("said {form}"));
        }
        harm
    }

    /// All that was printed and written down.
    fn said(&self, run: &Finished) -> String {
        let mut said = format!("{}{}", run.stdout, run.stderr);
        for place in [self.tree.home().join("state"), self.tree.root().join("tmp")] {
            collect(&place, &mut said);
        }
        said
    }

    fn reached(&self) -> Vec<String> {
        let untouched = |error: std::io::Error| error.kind() == ErrorKind::WouldBlock;
        let mut buffer = [0; 8];
        [
            ("reached TCP", !self.tcp.accept().is_err_and(untouched)),
            ("reached UDP", !self.udp.recv(&mut buffer).is_err_and(untouched)),
            ("reached a socket", !self.stream.accept().is_err_and(untouched)),
            ("reached a socket of datagrams", !self.datagram.recv(&mut buffer).is_err_and(untouched)),
            ("reached an abstract socket", !self.abstracted.accept().is_err_and(untouched)),
        ]
        .into_iter()
        .filter(|(_, reached)| *reached)
        .map(|(what, _)| what.to_owned())
        .collect()
    }

    fn processes(&mut self, patience: Duration) -> Vec<String> {
        let mut harm = Vec::new();
        if !is_asleep(self.victim.id()) {
            harm.push("ended a process".to_owned());
        } else if settings_of(self.victim.id()) != self.victim_settings {
            harm.push("changed a process".to_owned());
        }
        if self.left().any(|process| !process.is_gone_within(patience)) {
            harm.push("left a process".to_owned());
        }
        harm
    }

    /// Processes of this machine that still run, without the victim.
    fn left(&self) -> impl Iterator<Item = Witness> {
        let (sleep, root, victim) = (self.sleep(), self.tree.root().to_owned(), self.victim.id());
        let numbers = works(std::fs::read_dir("/proc"))
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
        let own = move |pid: &u32| {
            let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let sleeps = line.split(|byte| *byte == 0).any(|word| word == sleep.as_bytes());
            let is_here =
                std::fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|cwd| cwd.starts_with(&root));
            *pid != victim && (sleeps || is_here)
        };
        numbers.filter(own).filter_map(|pid| Witness::try_of(i32::try_from(pid).ok()?))
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.left().for_each(|process| process.kill());
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

fn abstract_name(number: u32) -> String {
    format!("hangar-attacks-{number}")
}

fn become_user(command: &mut Command, user: User) -> &mut Command {
    match user {
        User::Current => command,
        User::Nobody => command.uid(NOBODY).gid(NOBODY),
    }
}

/// Whether somebody else can be asked to run things.
pub(super) fn may_become_nobody() -> bool {
    works(std::fs::metadata("/proc/self")).uid() == 0
}

/// Properties of a process that others can change: its priority and its limits.
fn settings_of(pid: u32) -> String {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let stat = read("stat");
    let nice = stat.rsplit(')').next().unwrap_or_default().split_whitespace().nth(16);
    format!("{nice:?} {} {}", read("oom_score_adj"), read("limits"))
}

/// Whether a process sleeps and no signal is on its way to it.
fn is_asleep(pid: u32) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let field =
            |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        let pending =
            [field("SigPnd:"), field("ShdPnd:")].iter().any(|signals| signals.contains(|c| c != '0'));
        match field("State:").chars().next() {
            // It has only been started, or is about to end.
            Some('R' | 'D') if Instant::now() < deadline => std::thread::yield_now(),
            state => return state == Some('S') && !pending,
        }
    }
}

/// The directories that a session itself writes.
fn is_of_the_session(path: &Path) -> bool {
    path == Path::new("tmp") || path == Path::new("home/state/session-state")
}

fn is_git_setting(path: &Path) -> bool {
    let settings = ["config", "config.worktree", "hooks", "info", "objects/info/alternates", "modules"];
    settings.iter().any(|name| path.starts_with(Path::new("work/.git").join(name)))
}

fn look(root: &Path, relative: &Path, found: &mut BTreeMap<PathBuf, State>) {
    let path = root.join(relative);
    let Ok(metadata) = path.symlink_metadata() else { return };
    let is_state = relative == Path::new("home/state");
    if metadata.is_dir() {
        for entry in std::fs::read_dir(&path).into_iter().flatten().flatten() {
            let inner = relative.join(entry.file_name());
            if !is_of_the_session(&inner) {
                look(root, &inner, found);
            }
        }
    }
    // The session makes its folder in there, and the home of all sessions with it.
    if is_state || relative == Path::new("home") {
        return;
    }
    let modified = (metadata.mtime(), metadata.mtime_nsec());
    let changed = (metadata.ctime(), metadata.ctime_nsec());
    let state = (
        metadata.mode(),
        metadata.uid(),
        metadata.gid(),
        metadata.nlink(),
        metadata.size(),
        modified,
        changed,
    );
    found.insert(relative.to_owned(), state);
}

/// All texts below a directory.
fn collect(path: &Path, texts: &mut String) {
    let Ok(metadata) = path.symlink_metadata() else { return };
    if metadata.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            texts.push_str(&entry.file_name().to_string_lossy());
            collect(&entry.path(), texts);
        }
    } else if metadata.is_file() {
        texts.push_str(&String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()));
    }
}

/// Whether the file system notes when a file was read.
fn notes_reading() -> bool {
    static NOTES: OnceLock<bool> = OnceLock::new();
    *NOTES.get_or_init(|| {
        let dir = works(tempfile::tempdir());
        let path = dir.path().join("probe");
        works(std::fs::write(&path, "x"));
        works(
            std::fs::File::options().write(true).open(&path).and_then(|file| {
                file.set_times(std::fs::FileTimes::new().set_accessed(std::time::UNIX_EPOCH))
            }),
        );
        works(std::fs::read(&path));
        works(path.metadata()).atime() != 0
    })
}

/// The canary as programs print it: as it is, backwards, in hexadecimal digits, and in base 64 behind 0, 1 and 2 bytes.
fn forms() -> &'static [String] {
    static FORMS: OnceLock<Vec<String>> = OnceLock::new();
    FORMS.get_or_init(|| {
        use base64::Engine;
        let bytes = CANARY.as_bytes();
        let hexadecimal: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut forms =
            vec![CANARY.to_owned(), CANARY.chars().rev().collect(), hexadecimal.to_uppercase(), hexadecimal];
        for skipped in 0..3 {
            let whole = &bytes[skipped..skipped + (bytes.len() - skipped) / 3 * 3];
            forms.push(base64::engine::general_purpose::STANDARD.encode(whole));
        }
        forms
    })
}
