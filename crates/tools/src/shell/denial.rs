//! Accesses that a sandbox denied, as far as a command's output tells.
//!
//! The kernel refuses with the errors that programs know, and programs say which file or host they were about. What they
//! say is held against the limits: a file that the user may not read either is no matter of limits.

use std::path::{Component, Path, PathBuf};

use super::confinement::LimitedSandbox;

/// Lines from the end that are looked at. Programs that give up say so last.
const LINES: usize = 64;

/// Error texts of programs for a refusal by the kernel or by a filter of system calls.
const REFUSALS: [&str; 4] =
    ["Permission denied", "Operation not permitted", "Read-only file system", "Device or resource busy"];

/// Errors of programs that found no network, with what stands before the host that they looked for.
const UNREACHABLE: [&str; 7] = [
    "Could not resolve host: ",
    "unable to resolve host address ",
    "Could not resolve hostname ",
    "getaddrinfo EAI_AGAIN ",
    "lookup ",
    "Temporary failure in name resolution",
    "Name or service not known",
];

/// Words of errors that are about sockets.
const SOCKETS: [&str; 4] = ["socket", "connect", "/dev/tcp/", "/dev/udp/"];

/// The access that a failed command was denied, by its output: `reading /etc/passwd`.
pub(super) fn find(output: &str, cwd: &Path, confined: &LimitedSandbox) -> Option<String> {
    output.lines().rev().take(LINES).find_map(|line| in_line(line, cwd, confined))
}

fn in_line(line: &str, cwd: &Path, confined: &LimitedSandbox) -> Option<String> {
    if !confined.has_network()
        && let Some(host) = unreachable_host(line)
    {
        return Some(match host {
            "" => "reaching the network".to_owned(),
            host => format!("reaching {host} over the network"),
        });
    }
    let (refusal, at) = REFUSALS.iter().find_map(|refusal| Some((refusal, line.rfind(refusal)?)))?;
    let (before, after) = (&line[..at], line[at + refusal.len()..].trim());
    // An error ends with it, or goes on as `: 'path'` or ` (os error 13)`.
    if !(after.is_empty() || after.starts_with([':', '(', '.'])) {
        return None;
    }
    if !confined.has_network() && SOCKETS.iter().any(|word| before.to_ascii_lowercase().contains(word)) {
        return Some(match device_address(before) {
            Some(address) => format!("reaching {address} over the network"),
            None => "reaching the network".to_owned(),
        });
    }
    if before.contains("kill") {
        return Some("sending signals to other processes".to_owned());
    }
    candidates(before, after).find_map(|named| about_path(&named, cwd, confined))
}

/// The address in a path of the shell's own: `/dev/tcp/host/port`.
fn device_address(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("/dev/tcp/").or_else(|| text.split_once("/dev/udp/"))?;
    let (host, port) = rest.split_once('/')?;
    let port = port.split(|c: char| !c.is_ascii_alphanumeric()).next()?;
    Some(format!("{host}:{port}"))
}

fn unreachable_host(line: &str) -> Option<&str> {
    let (words, at) = UNREACHABLE.iter().find_map(|words| Some((words, line.find(words)?)))?;
    let rest = &line[at + words.len()..];
    // Go says `lookup host: …`, and much else begins with that word.
    if *words == "lookup "
        && !rest.contains("dial")
        && !rest.contains("server misbehaving")
        && !line.contains("dial")
    {
        return None;
    }
    let host = rest.split(|c: char| c.is_whitespace() || c == ':').next().unwrap_or_default();
    Some(host.trim_matches(|c| matches!(c, '\'' | '"' | '‘' | '’' | '(' | ')')))
}

/// Candidates for the path in an error: quoted, behind the refusal as some languages put it, or before it.
fn candidates(before: &str, after: &str) -> impl Iterator<Item = String> {
    let mut found = Vec::new();
    found.extend(quoted(after));
    found.extend(quoted(before));
    let part = before.trim_end().trim_end_matches(':');
    let part = part.rsplit(": ").next().unwrap_or(part);
    found.push(part.to_owned());
    // `could not lock config file .git/config`
    found.extend(part.split_whitespace().next_back().filter(|word| word.contains('/')).map(str::to_owned));
    found.into_iter().filter(|path| !path.is_empty())
}

/// The last quoted piece of a text.
fn quoted(text: &str) -> Option<String> {
    [('\'', '\''), ('"', '"'), ('‘', '’')].into_iter().find_map(|(open, close)| {
        let (rest, _) = text.rsplit_once(close)?;
        let (_, inner) = rest.rsplit_once(open)?;
        Some(inner.to_owned())
    })
}

fn about_path(named: &str, cwd: &Path, confined: &LimitedSandbox) -> Option<String> {
    let path = cwd.join(named);
    if path.starts_with("/proc") {
        // The content there depends on the reading process.
        return Some(format!("reading {}", path.display()));
    }
    let path = real(&path);
    let there = path.symlink_metadata().is_ok();
    let parent_there = path.parent().is_some_and(Path::is_dir);
    let could_be = parent_there && looks_like_path(named);
    if !there && !could_be {
        return None;
    }
    if !confined.may_read(&path) {
        // A file that the user cannot read was denied by its own permissions.
        let readable = !there || std::fs::File::open(&path).is_ok();
        return readable.then(|| format!("{} {}", if there { "reading" } else { "writing" }, path.display()));
    }
    (!confined.may_write(&path)).then(|| format!("changing {}", path.display()))
}

fn looks_like_path(named: &str) -> bool {
    named.contains('/')
        || !named.contains(|c: char| c.is_whitespace() || matches!(c, '`' | '"' | '\'' | '<' | '>'))
}

/// With links resolved as far as the path exists.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent().and_then(|parent| parent.canonicalize().ok()), path.file_name()) {
        (Some(parent), Some(name)) => parent.join(name),
        _ => path.components().filter(|part| *part != Component::CurDir).collect(),
    }
}

#[cfg(test)]
mod tests {
    use hangar_agent::permissions::{CommandLimits, GitWrites, Writes};

    use super::super::confinement::{Confinement, SandboxCache};
    use super::*;

    /// A workspace `w` beside a directory that is not allowed.
    struct Place {
        dir: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            for path in ["w/.git", "outside"] {
                std::fs::create_dir_all(dir.path().join(path)).unwrap();
            }
            for path in ["w/file", "outside/secret"] {
                std::fs::write(dir.path().join(path), "x").unwrap();
            }
            Self { dir }
        }

        fn found(&self, output: &str, writes: bool) -> Option<String> {
            let root = self.dir.path().canonicalize().unwrap();
            let cwd = root.join("w");
            let limits = CommandLimits {
                directories: Some(vec![cwd.clone()]),
                writes: if writes { Writes::Within(vec![cwd.clone()]) } else { Writes::Nothing },
                git: GitWrites::Nothing,
                network: false,
            };
            let place = Confinement {
                launcher: "/bin/false".into(),
                scratch: root.join("scratch"),
                git_dirs: vec![cwd.join(".git")],
                ..Confinement::default()
            };
            let confined = SandboxCache::default().of(&place, &limits).unwrap();
            let found = find(output, &cwd, &confined)?;
            Some(found.replace(root.to_str().unwrap(), "ROOT"))
        }
    }

    #[track_caller]
    fn check(output: &str, expected: Option<&str>) {
        assert_eq!(Place::new().found(output, false).as_deref(), expected, "{output}");
    }

    #[test]
    fn errors_of_programs_tell_which_file_could_not_be_read() {
        let secret = Some("reading ROOT/outside/secret");
        check("cat: ../outside/secret: Permission denied", secret);
        check("grep: ../outside/secret: Permission denied\nother words", secret);
        check("sort: cannot read: ../outside/secret: Permission denied", secret);
        check("PermissionError: [Errno 13] Permission denied: '../outside/secret'", secret);
        check("ls: cannot open directory '../outside': Permission denied", Some("reading ROOT/outside"));
        check("find: ‘../outside’: Permission denied", Some("reading ROOT/outside"));
    }

    #[test]
    fn errors_of_programs_tell_which_file_could_not_be_changed() {
        check("touch: cannot touch 'new': Permission denied", Some("changing ROOT/w/new"));
        check("/bin/bash: line 1: ../new: Permission denied", Some("writing ROOT/new"));
        check("chmod: changing permissions of 'file': Operation not permitted", Some("changing ROOT/w/file"));
        let found = |line: &str| Place::new().found(line, true);
        assert_eq!(found("touch: cannot touch 'new': Permission denied"), None);
        let git = "error: could not lock config file .git/config: Read-only file system";
        assert_eq!(found(git).as_deref(), Some("changing ROOT/w/.git/config"));
    }

    #[test]
    fn errors_about_the_network_tell_the_host() {
        check("curl: (6) Could not resolve host: example.com", Some("reaching example.com over the network"));
        check(
            "wget: unable to resolve host address ‘example.com’",
            Some("reaching example.com over the network"),
        );
        let tcp = "/bin/bash: line 1: /dev/tcp/127.0.0.1/80: Operation not permitted";
        check(tcp, Some("reaching 127.0.0.1:80 over the network"));
    }

    #[test]
    fn other_words_are_not_taken_for_a_refusal() {
        check("error: test failed: expected `Permission denied`", None);
        check("everything is fine", None);
        check("remote: Permission denied to octocat", None);
    }
}
