//! What the tests of the published SDKs run with. All of it is pinned, installed beside the tests and never committed.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{npm, root, shell};

/// Versions of Python that the SDK runs on, newest first.
const PYTHONS: [&str; 5] = ["python3", "python3.14", "python3.13", "python3.12", "python3.11"];
const NEW_ENOUGH: &str = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))";

pub(crate) fn install_node() -> Result<()> {
    if !shell::is_installed("node", &["--version"]) {
        bail!("node is not installed; the tests of the Node SDK need Node 20 or later");
    }
    npm::install(&root().join("e2e"))
}

/// The programs of other agents: 1.1 GB unpacked, some 40 s on a good line, once.
pub(crate) fn install_agents() -> Result<()> {
    npm::install(&root().join("e2e/agents"))
}

/// Their names as runtimes, and where they are.
pub(crate) fn agents() -> Vec<(&'static str, PathBuf)> {
    let modules = root().join("e2e/agents/node_modules");
    [
        ("copilot", "@github/copilot-linux-x64/copilot"),
        ("claude", "@anthropic-ai/claude-code-linux-x64/claude"),
        ("codex", "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex"),
        ("opencode", "opencode-linux-x64/bin/opencode"),
    ]
    .map(|(name, path)| (name, modules.join(path)))
    .into()
}

/// A server of ssh, for the tests of agents on another machine.
pub(crate) fn install_sshd() -> Result<()> {
    if Path::new("/usr/sbin/sshd").exists() {
        return Ok(());
    }
    apt_install("openssh-server", "the tests of agents on other machines need OpenSSH's server")
}

/// A terminal multiplexer, for the tests of the terminal.
pub(crate) fn install_tmux() -> Result<()> {
    if shell::is_installed("tmux", &["-V"]) {
        return Ok(());
    }
    apt_install("tmux", "the tests of resizing a terminal need tmux")
}

/// The tool that makes networks of their own, for the tests of the fleet whose links are cut.
pub(crate) fn install_iproute() -> Result<()> {
    if shell::is_installed("ip", &["-V"]) {
        return Ok(());
    }
    apt_install("iproute2", "the tests of the fleet cut links of network namespaces with it")
}

/// A browser, for the tests of the portal's pages.
pub(crate) fn install_chromium() -> Result<()> {
    if shell::is_installed("chromium", &["--version"]) {
        return Ok(());
    }
    apt_install("chromium", "the tests of the portal's pages need Chromium")
}

fn apt_install(package: &str, why: &str) -> Result<()> {
    if !shell::is_installed("apt-get", &["--version"]) {
        bail!("{package} is not installed, nor is apt-get: {why}");
    }
    let superuser = shell::is_installed("sh", &["-c", "test \"$(id -u)\" = 0"]);
    let apt = |args: &[&str]| {
        let mut command = shell::program(if superuser { "apt-get" } else { "sudo" });
        if !superuser {
            command.arg("apt-get");
        }
        shell::run(command.args(args).env("DEBIAN_FRONTEND", "noninteractive"))
    };
    let install = ["install", "--yes", "--no-install-recommends", package];
    // A fresh machine has no list of packages, and an old one names versions that are gone.
    apt(&install).or_else(|_| apt(&["update"]).and_then(|()| apt(&install)))
}

/// The packages of the Python SDK.
pub(crate) fn install_python() -> Result<()> {
    install_requirements(&root().join("e2e/sdk-python"), "the tests of the Python SDK need it")
}

/// A virtual environment with what `requirements.txt` of a directory pins, unless it is there already.
fn install_requirements(directory: &Path, why: &str) -> Result<()> {
    let requirements = directory.join("requirements.txt");
    let pinned = std::fs::read_to_string(&requirements)
        .with_context(|| format!("reading {}", requirements.display()))?;
    let environment = directory.join(".venv");
    let installed = environment.join("installed.txt");
    if std::fs::read_to_string(&installed).is_ok_and(|done| done == pinned) {
        return Ok(());
    }
    let Some(python) = PYTHONS.into_iter().find(|name| shell::is_installed(name, &["-c", NEW_ENOUGH])) else {
        bail!("Python 3.11 or later with venv is not installed; {why}");
    };
    shell::run(shell::program(python).args(["-m", "venv", "--clear"]).arg(&environment))?;
    let pip = environment.join("bin/pip");
    let flags = ["install", "--quiet", "--disable-pip-version-check", "--no-deps", "-r"];
    shell::run(shell::program(&pip.to_string_lossy()).args(flags).arg(&requirements))?;
    std::fs::write(&installed, pinned).context("noting what was installed")
}

/// NATS servers, for the tests of the fleet: the pinned release, and that of Debian for what has to work on old ones too.
pub(crate) fn install_nats() -> Result<()> {
    let directory = root().join("e2e/nats");
    install_requirements(&directory, "the tests of the fleet need a NATS server")?;
    let debian = directory.join("debian");
    if debian.join("usr/sbin/nats-server").exists() {
        return Ok(());
    }
    if !shell::is_installed("apt-get", &["--version"]) {
        bail!("apt-get is not installed; the tests of the fleet unpack Debian's nats-server with it");
    }
    // Unpacked and not installed, so that no service is started.
    std::fs::create_dir_all(&debian).context("creating a directory for Debian's nats-server")?;
    let download =
        || shell::run(shell::program("apt-get").args(["download", "nats-server"]).current_dir(&debian));
    download().or_else(|_| {
        shell::run(shell::program("apt-get").arg("update"))?;
        download()
    })?;
    shell::run(shell::program("sh").args(["-c", "dpkg-deb -x nats-server_*.deb ."]).current_dir(&debian))
}

/// The tests of the Rust SDK, compiled beforehand so that running them is all that is left.
pub(crate) fn build_rust() -> Result<()> {
    // Examples are built by a test run too: one of them is the program of the documentation.
    let build = ["test", "--locked", "--no-run", "--target-dir"];
    shell::run(
        shell::program("cargo")
            .args(build)
            .arg(root().join("target/sdk-rust"))
            .current_dir(root().join("e2e/sdk-rust")),
    )
}
