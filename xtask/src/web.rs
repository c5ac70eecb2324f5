//! `cargo xtask web`: builds the pages of the portal from `web/` into `crates/portal/pages`.
//!
//! The built pages are committed, so that `cargo build` needs no Node. `crates/portal/pages.sha256` lists the hash of every
//! source and every page; `tidy` compares it with the files, which needs no Node either. `cargo xtask test` builds the pages
//! again and compares them byte for byte.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use crate::{npm, root, shell, types};

/// Sources of the pages, below `web`. Tests, fixtures and generated types are left out: they change no page.
const SOURCES: [&str; 7] =
    ["index.html", "package.json", "package-lock.json", "public", "src", "tsconfig.json", "vite.config.ts"];
/// The built pages, relative to the root of the repository.
pub(crate) const PAGES: &str = "crates/portal/pages";
/// Hashes of the sources and the pages, in the format of `sha256sum`.
const HASHES: &str = "crates/portal/pages.sha256";
const REBUILD: &str = "run `cargo xtask web` and commit the result";

/// Builds the pages unless they are up to date.
pub(crate) fn build() -> Result<()> {
    if problems()?.is_empty() {
        println!("{PAGES} is up to date");
        return Ok(());
    }
    build_into(&root().join(PAGES))?;
    std::fs::write(root().join(HASHES), format_hashes(&current_hashes()?)).context("writing the hashes")
}

/// Builds the pages a second time and compares them with the committed ones.
pub(crate) fn check() -> Result<()> {
    let fresh = target().join("web-pages");
    build_into(&fresh)?;
    let built = hash_all(&fresh, &fresh)?;
    let pages = root().join(PAGES);
    let committed = hash_all(&pages, &pages)?;
    if let Some(path) = first_difference(&committed, &built) {
        bail!("{PAGES}/{path} is not what web/ builds; {REBUILD}");
    }
    Ok(())
}

/// Unit tests of the pages: the fold over events, diffs, layouts.
pub(crate) fn test() -> Result<()> {
    let web = root().join("web");
    install(&web)?;
    run(&web, "vitest/vitest.mjs", &["run"])
}

/// Files that differ from the committed hashes. Needs no Node.
pub(crate) fn problems() -> Result<Vec<String>> {
    let committed = parse_hashes(&std::fs::read_to_string(root().join(HASHES)).unwrap_or_default());
    let current = current_hashes()?;
    let difference = first_difference(&committed, &current);
    let problem = difference.map(|path| format!("{path} changed since the pages were built; {REBUILD}"));
    Ok(problem.into_iter().collect())
}

fn build_into(directory: &Path) -> Result<()> {
    let web = root().join("web");
    install(&web)?;
    run(&web, "typescript/bin/tsc", &["--noEmit"])?;
    let directory = std::path::absolute(directory)?;
    let directory = directory.to_str().context("the path of the repository is not UTF-8")?;
    run(&web, "vite/bin/vite.js", &["build", "--outDir", directory, "--emptyOutDir"])
}

fn install(web: &Path) -> Result<()> {
    if !shell::is_installed("node", &["--version"]) {
        bail!("node is not installed; changes in web/ need Node 20 or later to build the pages");
    }
    npm::install(web)
}

/// Runs a program that npm installed, without going through npm.
fn run(web: &Path, program: &str, args: &[&str]) -> Result<()> {
    let program = web.join("node_modules").join(program);
    // NODE_ENV decides which variant of a library is bundled.
    shell::run(shell::program("node").arg(program).args(args).current_dir(web).env_remove("NODE_ENV"))
}

fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Hashes by path.
type Hashes = BTreeMap<String, String>;

fn current_hashes() -> Result<Hashes> {
    let root = root();
    let mut hashes = hash_all(&root.join(PAGES), &root)?;
    for source in SOURCES {
        hashes.extend(hash_all(&root.join("web").join(source), &root)?);
    }
    hashes.retain(|path, _| !is_test(path) && path != types::TYPES);
    Ok(hashes)
}

fn is_test(path: &str) -> bool {
    path.ends_with(".test.ts") || path.contains("/fixtures/")
}

/// Hashes of a file, or of every file below a directory; none where there is nothing. Paths are relative to `base`.
fn hash_all(path: &Path, base: &Path) -> Result<Hashes> {
    let mut hashes = Hashes::new();
    let mut pending = vec![path.to_owned()];
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            for entry in std::fs::read_dir(&path).with_context(|| format!("reading {}", path.display()))? {
                pending.push(entry?.path());
            }
        } else if path.exists() {
            let bytes = std::fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
            let hash = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
            hashes.insert(path.strip_prefix(base)?.to_string_lossy().into_owned(), hash);
        }
    }
    Ok(hashes)
}

fn format_hashes(hashes: &Hashes) -> String {
    hashes.iter().map(|(path, hash)| format!("{hash}  {path}\n")).collect()
}

fn parse_hashes(text: &str) -> Hashes {
    let pairs = text.lines().filter_map(|line| line.split_once("  "));
    pairs.map(|(hash, path)| (path.to_owned(), hash.to_owned())).collect()
}

/// The first path that has another hash on the other side, or none.
fn first_difference<'a>(one: &'a Hashes, other: &'a Hashes) -> Option<&'a str> {
    let mut paths = one.keys().chain(other.keys());
    paths.find(|path| one.get(*path) != other.get(*path)).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMITTED: &str = "aa  web/index.html\nbb  web/src/main.tsx\n";

    fn check(found: &str, difference: Option<&str>) {
        assert_eq!(first_difference(&parse_hashes(COMMITTED), &parse_hashes(found)), difference);
    }

    #[test]
    fn a_source_that_changed_came_or_went_is_found() {
        check(COMMITTED, None);
        check("aa  web/index.html\ncc  web/src/main.tsx\n", Some("web/src/main.tsx"));
        check("aa  web/index.html\n", Some("web/src/main.tsx"));
        check("aa  web/index.html\nbb  web/src/main.tsx\ndd  web/src/new.ts\n", Some("web/src/new.ts"));
    }

    #[test]
    fn hashes_are_read_as_they_are_written() {
        assert_eq!(format_hashes(&parse_hashes(COMMITTED)), COMMITTED);
    }

    #[test]
    fn tests_of_the_pages_are_no_sources() {
        assert!(is_test("web/src/session/fold.test.ts"));
        assert!(is_test("web/src/session/fixtures/agent.jsonl"));
        assert!(!is_test("web/src/session/fold.ts"));
    }
}
