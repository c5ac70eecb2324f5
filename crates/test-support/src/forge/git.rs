//! The git server of the simulated forges: a bare repository behind git's own HTTP backend, with the token as the password.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

use super::http::Request;
use super::{ForgeServer, Repository, TOKEN};

/// Path of the repository on the server.
pub(super) const PATH: &str = "/octo/app.git";

/// A bare repository on disk.
pub(super) struct Bare {
    root: tempfile::TempDir,
}

impl Bare {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory for the repository");
        let bare = Self { root };
        std::fs::create_dir_all(bare.path()).expect("a directory for the repository");
        bare.git(&["init", "--quiet", "--bare", "-b", "main", "."]).expect("git init");
        bare.git(&["config", "http.receivepack", "true"]).expect("git config");
        bare
    }

    pub(super) fn path(&self) -> PathBuf {
        self.root.path().join("octo/app.git")
    }

    /// Runs git in the repository. `None` if it fails.
    pub(super) fn git(&self, args: &[&str]) -> Option<String> {
        git(&self.path(), args)
    }

    pub(super) fn commit_of(&self, branch: &str) -> Option<String> {
        self.git(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")])
    }

    /// Tree of a merge. `None` if it conflicts.
    pub(super) fn merged_tree(&self, base: &str, head: &str) -> Option<String> {
        let tree = self.git(&["merge-tree", "--write-tree", base, head])?;
        tree.lines().next().map(str::to_owned)
    }
}

fn git(directory: &Path, args: &[&str]) -> Option<String> {
    let mut command = Command::new("git");
    for role in ["AUTHOR", "COMMITTER"] {
        command.env(format!("GIT_{role}_NAME"), "octo").env(format!("GIT_{role}_EMAIL"), "octo@example.com");
    }
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let output = command.args(args).current_dir(directory).stdin(Stdio::null()).output().expect("git runs");
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

impl ForgeServer {
    /// Gives the repository files on its default branch, in one commit.
    pub fn files(&self, files: &[(&str, &str)]) {
        self.commit("main", files, "files");
    }

    /// Somebody commits to a branch, which is created at the default branch if it is missing.
    pub fn commit(&self, branch: &str, files: &[(&str, &str)], message: &str) -> String {
        let mut repository = self.repository();
        let bare = repository.git.get_or_insert_with(Bare::new);
        let work = tempfile::tempdir().expect("a directory for a commit");
        let at = work.path();
        let url = bare.path().display().to_string();
        git(at, &["clone", "--quiet", &url, "."]).expect("a clone");
        if git(at, &["checkout", "--quiet", branch]).is_none() {
            git(at, &["checkout", "--quiet", "-B", branch]).expect("a branch");
        }
        for (name, text) in files {
            let path = at.join(name);
            std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
            std::fs::write(path, text).expect("a file");
        }
        git(at, &["add", "--all"]).expect("git add");
        git(at, &["commit", "--quiet", "-m", message]).expect("git commit");
        git(at, &["push", "--quiet", "origin", &format!("HEAD:refs/heads/{branch}")]).expect("git push");
        let commit = git(at, &["rev-parse", "HEAD"]).expect("a commit");
        repository.start_checks(&self.state);
        commit
    }

    /// Text of a file on a branch.
    pub fn file(&self, branch: &str, name: &str) -> Option<String> {
        self.repository().git.as_ref()?.git(&["show", &format!("refs/heads/{branch}:{name}")])
    }

    /// Subjects of the commits of a branch, the last one first.
    pub fn subjects(&self, branch: &str) -> Vec<String> {
        let repository = self.repository();
        let log = repository.git.as_ref().and_then(|bare| bare.git(&["log", "--format=%s", branch]));
        log.unwrap_or_default().lines().map(str::to_owned).collect()
    }

    /// Address of the repository.
    pub fn clone_url(&self) -> String {
        format!("{}{PATH}", self.url)
    }
}

/// Answers a request of git by its own backend.
pub(super) fn serve(
    mut stream: &TcpStream,
    state: &Arc<Mutex<Repository>>,
    request: &Request,
) -> std::io::Result<()> {
    let header = |name: &str| request.headers.get(name).cloned().unwrap_or_default();
    let (root, is_known) = {
        let mut repository = state.lock().expect("no test panicked with it");
        repository.requests.push(format!("{} {} git", request.method, request.path));
        let tokens = repository.app.iter().flat_map(|app| &app.tokens).map(String::as_str).chain([TOKEN]);
        let mut tokens = tokens.filter(|token| repository.is_token(token));
        let given = header("authorization");
        let is_known =
            tokens.any(|token| given == format!("Basic {}", base64(&format!("x-access-token:{token}"))));
        (repository.git.as_ref().map(|bare| bare.root.path().to_owned()), is_known)
    };
    if !is_known {
        return stream.write_all(
            b"HTTP/1.1 401 x\r\nconnection: close\r\ncontent-length: 0\r\nwww-authenticate: Basic realm=\"git\"\r\n\r\n",
        );
    }
    let Some(root) = root else {
        return stream.write_all(b"HTTP/1.1 404 x\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
    };
    let query = request.target.split_once('?').map(|(_, query)| query).unwrap_or_default();
    let mut backend = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REMOTE_USER", "octo-bot")
        .env("PATH_INFO", &request.path)
        .env("QUERY_STRING", query)
        .env("REQUEST_METHOD", &request.method)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", request.bytes.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("HTTP_GIT_PROTOCOL", header("git-protocol"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut input = backend.stdin.take().expect("it is piped");
    let bytes = request.bytes.clone();
    let writer = std::thread::spawn(move || drop(input.write_all(&bytes)));
    let mut output = Vec::new();
    backend.stdout.take().expect("it is piped").read_to_end(&mut output)?;
    backend.wait()?;
    let _ = writer.join();
    state.lock().expect("no test panicked with it").start_checks(state);
    let end = output.windows(4).position(|part| part == b"\r\n\r\n").unwrap_or(output.len());
    let head = String::from_utf8_lossy(&output[..end]).into_owned();
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK").to_owned();
    let rest: Vec<&str> = head.lines().filter(|line| !line.starts_with("Status:")).collect();
    let body = &output[(end + 4).min(output.len())..];
    let start = format!(
        "HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {}\r\n{}\r\n\r\n",
        body.len(),
        rest.join("\r\n")
    );
    stream.write_all(start.as_bytes())?;
    stream.write_all(body)
}

/// Base64 with padding.
fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut encoded = String::new();
    for part in text.as_bytes().chunks(3) {
        let bytes = [part[0], part.get(1).copied().unwrap_or(0), part.get(2).copied().unwrap_or(0)];
        let number = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]);
        for at in 0..4 {
            let letter = LETTERS[(number >> (18 - 6 * at)) as usize & 63] as char;
            encoded.push(if at <= part.len() { letter } else { '=' });
        }
    }
    encoded
}
