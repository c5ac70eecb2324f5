//! The sandbox from outside: what must not happen, and what must go on working.
//!
//! Every attempt runs in the launcher of the real binary, on a scratch machine with something to lose. Where no sandbox
//! can be had, the launcher refuses to run anything, which denies every attempt too; only what must work then fails, and
//! says why.

mod attempts;
mod more;
mod neighbours;
mod session;

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use hangar_test_support::{Finished, ModelServer, Scratch};
use serde_json::json;

use self::attempts::{ATTEMPTS, Attempt, Layer};
use self::more::MORE;
use self::neighbours::Neighbours;
use crate::{HANGAR, hangar};

/// Text that nobody may read; it is in a file, and in the environment of a process.
const KEY: &str = "PRIVATE-KEY";
/// Output of an attempt that succeeded without leaving a trace.
const ESCAPED: &str = "ESCAPED";

struct Machine {
    scratch: Scratch,
    victim: Child,
    tcp: TcpListener,
    stream: UnixListener,
    datagram: UnixDatagram,
    abstracted: UnixListener,
}

impl Machine {
    fn new() -> Self {
        let scratch = Scratch::new();
        let outside = scratch.root().join("outside");
        for (path, text) in
            [("home/.ssh/id", KEY), ("outside/kept", "kept\n"), ("outside/dir/inner", "inner\n")]
        {
            let path = scratch.root().join(path);
            std::fs::create_dir_all(path.parent().expect("the scratch machine works"))
                .expect("the scratch machine works");
            std::fs::write(path, text).expect("the scratch machine works");
        }
        std::os::unix::fs::symlink(&outside, scratch.work().join("link")).expect("the scratch machine works");
        let victim = Command::new("sleep")
            .arg("600")
            .env("KEY", KEY)
            .stdin(Stdio::null())
            .spawn()
            .expect("the scratch machine works");
        let tcp = TcpListener::bind("127.0.0.1:0").expect("the scratch machine works");
        let stream = UnixListener::bind(scratch.work().join("stream")).expect("the scratch machine works");
        let datagram =
            UnixDatagram::bind(scratch.work().join("datagram")).expect("the scratch machine works");
        let name = format!("hangar-{}", scratch.root().display());
        let address = SocketAddr::from_abstract_name(name).expect("the scratch machine works");
        let abstracted = UnixListener::bind_addr(&address).expect("the scratch machine works");
        abstracted.set_nonblocking(true).expect("the scratch machine works");
        tcp.set_nonblocking(true).expect("the scratch machine works");
        stream.set_nonblocking(true).expect("the scratch machine works");
        datagram.set_nonblocking(true).expect("the scratch machine works");
        Self { scratch, victim, tcp, stream, datagram, abstracted }
    }

    fn policy(&self, network: &str, without: &[&str]) -> String {
        let path = |name: &str| self.scratch.root().join(name);
        json!({
            "writable": [self.scratch.work(), self.scratch.tmp()],
            "protected": [],
            "denied": [path("home/.ssh")],
            "network": network,
            "without": without,
        })
        .to_string()
    }

    fn confined(&self, network: &str, script: &str) -> Finished {
        self.confined_without(&[], network, script)
    }

    /// As on a kernel that lacks something.
    fn confined_without(&self, without: &[&str], network: &str, script: &str) -> Finished {
        let arguments = ["--sandbox-launch", &self.policy(network, without), "/bin/bash", "-c", script];
        self.bash(HANGAR, &arguments)
    }

    fn bash(&self, program: &str, arguments: &[&str]) -> Finished {
        let neighbours = Neighbours::wanted_by(arguments);
        self.scratch
            .run(program)
            .args(arguments)
            .env("ABSTRACT", format!("hangar-{}", self.scratch.root().display()))
            .env("SHM", neighbours.memory())
            .env("PTS", neighbours.terminal())
            .env("OUT", self.scratch.root().join("outside"))
            .env("VICTIM", self.victim.id().to_string())
            .env("PORT", self.tcp.local_addr().expect("the scratch machine works").port().to_string())
            .finish()
    }

    /// All that is outside, with what can be changed about it.
    fn outside(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        for top in ["home", "outside"] {
            look(&self.scratch.root().join(top), &mut found);
        }
        found
    }

    /// Damage to the owner of the machine.
    fn harm(&mut self, before: &BTreeMap<PathBuf, String>, run: &Finished) -> Option<String> {
        let said = format!("{}{}", run.stdout, run.stderr);
        let untouched = |error: std::io::Error| error.kind() == ErrorKind::WouldBlock;
        if said.contains(KEY) || said.contains(ESCAPED) {
            Some(format!("it said: {said}"))
        } else if self.outside() != *before {
            Some(format!("files changed: {before:#?} {:#?}", self.outside()))
        } else if self.victim.try_wait().expect("the scratch machine works").is_some() {
            Some("a process outside was ended".to_owned())
        } else if !self.tcp.accept().is_err_and(untouched)
            || !self.stream.accept().is_err_and(untouched)
            || !self.abstracted.accept().is_err_and(untouched)
        {
            Some("a service outside was reached".to_owned())
        } else if !self.datagram.recv(&mut [0; 8]).is_err_and(untouched) {
            Some("a service outside was sent something".to_owned())
        } else {
            None
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

fn look(path: &Path, found: &mut BTreeMap<PathBuf, String>) {
    let metadata = path.symlink_metadata().expect("the scratch machine works");
    let what = if metadata.is_dir() {
        for entry in std::fs::read_dir(path).expect("the scratch machine works") {
            look(&entry.expect("the scratch machine works").path(), found);
        }
        String::new()
    } else if metadata.is_file() {
        std::fs::read_to_string(path).unwrap_or_default()
    } else {
        // Reading a pipe would wait for a writer.
        String::new()
    };
    let (mode, owner, links) = (metadata.mode(), metadata.uid(), metadata.nlink());
    let modified = (metadata.mtime(), metadata.mtime_nsec());
    found.insert(path.to_owned(), format!("{mode:o} {owner} {links} {modified:?} {what}"));
}

fn check(attempts: &[Attempt]) {
    let mut failures = escapes(&[], attempts);
    for Attempt { name, script, free, .. } in attempts {
        // An attempt that would not work anyway proves nothing.
        if *free {
            let mut machine = Machine::new();
            let before = machine.outside();
            let run = machine.bash("/bin/bash", &["-c", script]);
            if machine.harm(&before, &run).is_none() {
                failures.push(format!("{name}: harmless without a sandbox: {}{}", run.stdout, run.stderr));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The attempts that did harm on a kernel that lacks something, with what they did.
fn escapes(without: &[&str], attempts: &[Attempt]) -> Vec<String> {
    let harm = |Attempt { name, script, .. }: &Attempt| {
        let mut machine = Machine::new();
        let before = machine.outside();
        let run = machine.confined_without(without, "Closed", script);
        machine.harm(&before, &run).map(|harm| format!("{name}: {harm}"))
    };
    attempts.iter().filter_map(harm).collect()
}

#[test]
fn there_are_enough_attempts_and_each_is_its_own() {
    let all = ATTEMPTS.len() + MORE.len();
    let names: std::collections::BTreeSet<_> =
        ATTEMPTS.iter().chain(MORE).map(|attempt| attempt.name).collect();
    assert!(all >= 110 && names.len() == all, "{} of {all}", names.len());
}

#[test]
fn no_attempt_to_change_files_outside_succeeds() {
    check(&of(Layer::Files));
}

#[test]
fn no_attempt_to_change_what_is_said_of_files_succeeds() {
    check(&of(Layer::Metadata));
}

#[test]
fn landlock_alone_keeps_the_content_of_files_on_every_kernel_that_has_it() {
    for older in ["LandlockScopes", "LandlockNetwork"] {
        assert_eq!(escapes(&["Namespaces", older], &of(Layer::Files)), [""; 0], "without {older}");
    }
}

#[test]
fn the_filter_of_system_calls_alone_keeps_the_network() {
    assert_eq!(escapes(&["Namespaces", "LandlockNetwork"], &of(Layer::Calls)), [""; 0]);
}

/// A descriptor's owner gets a signal of the caller's choice, through calls that are no signals by name.
const SIGNALS_BY_DESCRIPTOR: &[&str] = &[
    "python3 -c 'import fcntl, os\nr, w = os.pipe()\nfcntl.fcntl(r, 8, int(os.environ[\"VICTIM\"]))\nfcntl.fcntl(r, 10, 9)\nfcntl.fcntl(r, 4, os.O_ASYNC)\nos.write(w, b\"x\")'",
    "python3 -c 'import fcntl, os, struct\nr, w = os.pipe()\nfcntl.fcntl(r, 15, struct.pack(\"ii\", 1, int(os.environ[\"VICTIM\"])))\nfcntl.fcntl(r, 10, 9)\nfcntl.fcntl(r, 4, os.O_ASYNC)\nos.write(w, b\"x\")'",
    "python3 -c 'import fcntl, os, socket, struct\na, b = socket.socketpair()\nfcntl.ioctl(a, 0x8901, struct.pack(\"i\", int(os.environ[\"VICTIM\"])))\nfcntl.fcntl(a, 10, 9)\nfcntl.fcntl(a, 4, os.O_ASYNC)\nb.send(b\"x\")'",
];

#[test]
fn a_command_that_only_reads_signals_nobody_where_landlock_cannot_scope_signals() {
    for script in SIGNALS_BY_DESCRIPTOR {
        let mut machine = Machine::new();
        let before = machine.outside();
        let without = ["Namespaces", "LandlockScopes"];
        let mut policy: serde_json::Value =
            serde_json::from_str(&machine.policy("Closed", &without)).expect("the policy is JSON");
        policy["metadata"] = json!("Frozen");
        let arguments = ["--sandbox-launch", &policy.to_string(), "/bin/bash", "-c", script];
        let run = machine.bash(HANGAR, &arguments);
        assert_eq!(machine.harm(&before, &run), None, "{script}");
        assert!(run.stderr.contains("PermissionError"), "{script}: {}", run.stderr);
        let run = machine.bash("/bin/bash", &["-c", &format!("{script}; sleep 0.05")]);
        assert!(
            machine.harm(&before, &run).is_some(),
            "{script}: harmless without a sandbox: {}",
            run.stderr
        );
    }
}

#[test]
fn a_command_that_only_reads_sets_no_version_of_a_file() {
    let machine = Machine::new();
    std::fs::write(machine.scratch.work().join("file"), "x").expect("the scratch machine works");
    let mut policy: serde_json::Value =
        serde_json::from_str(&machine.policy("Closed", &[])).expect("the policy is JSON");
    policy["metadata"] = json!("Frozen");
    for request in ["0x40087602", "0x40086604", "0x40086602"] {
        let script = format!(
            "python3 -c 'import fcntl, os, struct\nfcntl.ioctl(os.open(\"file\", os.O_RDONLY), {request}, struct.pack(\"l\", 78))'"
        );
        let arguments = ["--sandbox-launch", &policy.to_string(), "/bin/bash", "-c", &script];
        let run = machine.bash(HANGAR, &arguments);
        // A file system without such versions would say ENOTTY.
        assert!(run.stderr.contains("PermissionError"), "{request}: {}{}", run.stdout, run.stderr);
    }
}

#[test]
fn what_a_kernel_lacks_is_said_and_what_must_not_be_missing_is_refused() {
    let check = |without: &[&str], expected: &str| {
        let machine = Machine::new();
        let run = machine.bash(HANGAR, &["--sandbox-trial", &machine.policy("Closed", without)]);
        assert!(format!("{}{}", run.stdout, run.stderr).contains(expected), "{}{}", run.stdout, run.stderr);
        let run = machine.confined_without(without, "Closed", "echo it ran");
        assert_eq!(run.stdout.contains("it ran"), expected.ends_with(']'), "{}", run.stderr);
    };
    check(&["Namespaces"], "[\"Metadata\",\"Processes\"]");
    // A namespace of processes keeps signals in too.
    check(&["LandlockScopes"], "[]");
    check(&["Namespaces", "LandlockNetwork"], "[\"Metadata\",\"Processes\",\"Signals\"]");
    check(&["Landlock"], "needs Landlock");
    check(&["Seccomp"], "needs a filter of system calls");
}

#[test]
fn no_attempt_to_read_secrets_or_reach_processes_succeeds() {
    check(&of(Layer::Processes));
}

#[test]
fn no_attempt_to_reach_the_network_or_a_service_succeeds() {
    check(&of(Layer::Calls));
}

fn of(layer: attempts::Layer) -> Vec<Attempt> {
    ATTEMPTS.iter().chain(MORE).filter(|attempt| attempt.layer == layer).copied().collect()
}

/// Commands that must still work in the sandbox: each prints `fine` last.
const WORK: &[&str] = &[
    "git init -q r && cd r && echo x > f && git add f && git -c user.name=n -c user.email=e commit -qm m && echo fine",
    "echo a | tr a b | grep -q b && echo fine",
    "echo x > f && mv f g && ln g h && ln -s g i && chmod 755 g && touch -d 2001-01-01 g && rm f g h i; echo fine",
    "mkdir -p a/b && echo x > a/b/c && mv a/b/c a/c && rm -r a && echo fine",
    "f=$(mktemp) && echo x > $f && cat $f > /dev/null && rm $f && echo fine",
    "sleep 0 & wait $! && echo fine",
    "cat <<< text > /dev/null && cat <(echo x) > /dev/null && echo fine",
    "mkfifo p && (echo x > p &) && cat p > /dev/null && echo fine",
    "printf '#!/bin/sh\\necho fine\\n' > run && chmod +x run && ./run",
    "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_STREAM, 0) or die; print \"fine\\n\"'",
    "perl -e 'my $p = fork // die; if (!$p) { sleep 600 } kill 9, $p; waitpid $p, 0; print \"fine\\n\"'",
    "head -c 8 /dev/urandom > /dev/null && ls / > /dev/null && cat /etc/passwd > /dev/null && echo fine",
    "echo fine > /dev/stdout",
    "script -qec 'tty > /dev/null && echo fine' /dev/null",
    "perl -e '$id = shmget(0, 64, 0600) // die; shmwrite($id, \"x\", 0, 1) || die; shmctl($id, 0, 0); print \"fine\n\"'",
    "echo x > /dev/shm/hangar-$$ && cat /dev/shm/hangar-$$ > /dev/null; echo fine",
    "ulimit -n 64 && prlimit --nofile > /dev/null && echo fine",
    "perl -MSocket -e 'socketpair(A, B, AF_UNIX, SOCK_SEQPACKET, 0) or die; print \"fine\n\"'",
];

#[test]
fn ordinary_work_goes_on() {
    for script in WORK {
        let run = Machine::new().confined("Closed", script);
        assert!(run.stdout.trim_end().ends_with("fine"), "{script}: {}{}", run.stdout, run.stderr);
    }
}

#[test]
fn an_open_network_is_reached_and_services_with_a_path_are_not() {
    let machine = Machine::new();
    let run = machine.confined("Open", "echo x > /dev/tcp/127.0.0.1/$PORT && echo fine");
    assert!(run.stdout.contains("fine"), "{}{}", run.stdout, run.stderr);
    let run = machine.confined("Open", attempts::CONNECT_STREAM);
    assert!(!run.stdout.contains(ESCAPED), "{}", run.stdout);
}

#[test]
fn a_session_with_a_sandbox_keeps_its_commands_and_its_files_tools_and_says_so() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    let outside = scratch.root().join("outside");
    std::fs::create_dir(&outside).expect("the scratch machine works");
    let command = format!("echo in > here; echo out > {}/shell", outside.display());
    let script = format!(
        "TOOL:bash:{}\nTOOL:create:{}",
        json!({"command": command, "description": "Write"}),
        json!({"path": outside.join("tool"), "file_text": "x"})
    );
    let run = hangar(&scratch, &model)
        .args(["--sandbox", "--allow-all", "--output-format", "json", "-p", &script])
        .finish();
    assert!(scratch.work().join("here").exists(), "{}{}", run.stdout, run.stderr);
    assert_eq!(std::fs::read_dir(&outside).expect("the scratch machine works").count(), 0, "{}", run.stdout);
    assert!(run.stdout.contains("\"sandboxed\":true"), "{}", run.stdout);
}

#[test]
fn a_sandbox_that_cannot_be_kept_is_refused_before_anything_runs() {
    let (scratch, model) = (Scratch::new(), ModelServer::start());
    std::fs::create_dir_all(scratch.state()).expect("the scratch machine works");
    let config = "[sandbox]\nenabled = true\n[sandbox.userPolicy.network]\nallowOutbound = true\nallowedHosts = [\"a.example\"]\n";
    std::fs::write(scratch.state().join("config.toml"), config).expect("the scratch machine works");
    let run = hangar(&scratch, &model).args(["-p", "SAY:hello"]).finish();
    assert!(run.stderr.contains("cannot filter by host"), "{}", run.stderr);
    assert!(!run.stdout.contains("hello"), "{}", run.stdout);
    let run = hangar(&scratch, &model).args(["--no-sandbox", "-p", "SAY:hello"]).finish();
    assert!(run.stdout.contains("hello"), "{}", run.stderr);
}
