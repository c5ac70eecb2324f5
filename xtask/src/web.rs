//! `cargo xtask web`: the pages of the portal, from `web/` into `web/dist`, which `crates/portal` makes part of the program.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::{npm, root, shell};

/// What `web/dist` is made from. Everything else in `web/` is installed or made.
const SOURCES: [&str; 7] =
    ["index.html", "package.json", "package-lock.json", "public", "src", "tsconfig.json", "vite.config.ts"];

/// Installs what the pages are built with, checks their types and builds them, unless nothing changed since.
pub(crate) fn build() -> Result<()> {
    let web = root().join("web");
    let sources = fingerprint(&web)?;
    let stamp = target().join("web-build.txt");
    let is_done = web.join("dist/index.html").exists()
        && std::fs::read_to_string(&stamp).is_ok_and(|done| done == sources);
    if is_done {
        return Ok(());
    }
    install(&web)?;
    run(&web, "typescript/bin/tsc", &["--noEmit"])?;
    run(&web, "vite/bin/vite.js", &["build"])?;
    std::fs::create_dir_all(target())?;
    std::fs::write(&stamp, sources).context("noting what was built")
}

/// The tests of what the pages compute: the fold over events, diffs, layouts.
pub(crate) fn test() -> Result<()> {
    let web = root().join("web");
    install(&web)?;
    run(&web, "vitest/vitest.mjs", &["run"])
}

fn install(web: &Path) -> Result<()> {
    if !shell::is_installed("node", &["--version"]) {
        bail!("node is not installed; the web UI is built with Node 20 or later");
    }
    npm::install(web)
}

/// Runs a program that npm installed, without npm between it and us.
fn run(web: &Path, program: &str, args: &[&str]) -> Result<()> {
    let program = web.join("node_modules").join(program);
    shell::run(shell::program("node").arg(program).args(args).current_dir(web))
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// The name, size and time of every source: a change of any of them shows.
fn fingerprint(web: &Path) -> Result<String> {
    let mut files = Vec::new();
    for source in SOURCES {
        collect(&web.join(source), &mut files)?;
    }
    files.sort();
    Ok(files.join("\n"))
}

fn collect(path: &Path, files: &mut Vec<String>) -> Result<()> {
    let about = std::fs::metadata(path).with_context(|| format!("looking at {}", path.display()))?;
    if about.is_dir() {
        for entry in std::fs::read_dir(path)? {
            collect(&entry?.path(), files)?;
        }
        return Ok(());
    }
    let modified = about.modified()?.duration_since(std::time::UNIX_EPOCH)?.as_nanos();
    files.push(format!("{} {} {modified}", path.display(), about.len()));
    Ok(())
}
