//! `cargo xtask tidy`: the rules of the repository that no compiler knows.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::{root, shell, supply, types, web};

/// From here on a source file is listed: it may hold a second noun.
const LONG_FILE: usize = 700;
const TOO_LONG_FILE: usize = 900;
/// Methods of a trait, and lines of a function, from which tidy warns, and from which it fails.
const TRAIT_METHODS: (usize, usize) = (5, 7);
const FUNCTION_LINES: (usize, usize) = (100, 160);
/// Files that are tables, and may be as long as what they list.
const TABLES: &[&str] = &["web/src/api/openapi.ts"];
const README_LIMIT: usize = 150;

/// What no source may contain, with the reason. Split, so that this list does not find itself.
const FORBIDDEN: &[(&str, &str)] = &[
    (concat!("todo", "!("), "finish it"),
    (concat!("unimplemented", "!("), "finish it"),
    (concat!("FIX", "ME"), "mend it"),
    (concat!("#[igno", "re"), "a test that does not run is no test"),
];

/// Directories of the machines that the code was written on.
const MACHINE_PATHS: &[&str] = &[concat!("/wo", "rk/"), concat!("/ro", "ot/"), concat!("/tmp/pe", "ers")];

/// Which crates of the workspace each crate may use. A new crate gets a line here.
const MAY_USE: &[(&str, &[&str])] = &[
    ("hangar-protocol", &[]),
    ("hangar-diff", &[]),
    ("hangar-disk", &[]),
    ("hangar-files", &["hangar-disk"]),
    ("hangar-front-matter", &[]),
    ("hangar-process", &[]),
    ("hangar-git", &["hangar-process"]),
    ("hangar-peer", &["hangar-protocol"]),
    ("hangar-agent", &["hangar-protocol"]),
    ("hangar-models", &["hangar-agent", "hangar-disk", "hangar-protocol"]),
    ("hangar-images", &["hangar-agent"]),
    ("hangar-simulators", &["hangar-agent", "hangar-models"]),
    ("hangar-sandbox", &[]),
    ("hangar-spec", &["hangar-agent", "hangar-protocol", "hangar-sandbox"]),
    (
        "hangar-mcp",
        &[
            "hangar-agent",
            "hangar-disk",
            "hangar-peer",
            "hangar-process",
            "hangar-protocol",
            "hangar-sandbox",
        ],
    ),
    (
        "hangar-tools",
        &[
            "hangar-agent",
            "hangar-diff",
            "hangar-disk",
            "hangar-files",
            "hangar-images",
            "hangar-process",
            "hangar-protocol",
            "hangar-sandbox",
        ],
    ),
    ("hangar-store", &["hangar-agent", "hangar-disk", "hangar-files", "hangar-protocol"]),
    (
        "hangar-engine",
        &[
            "hangar-agent",
            "hangar-custom",
            "hangar-files",
            "hangar-mcp",
            "hangar-protocol",
            "hangar-store",
            "hangar-tools",
        ],
    ),
    ("hangar-acp", &["hangar-agent", "hangar-engine", "hangar-peer", "hangar-protocol", "hangar-store"]),
    ("hangar-custom", &["hangar-agent", "hangar-front-matter", "hangar-process", "hangar-protocol"]),
    ("hangar-runtimes", &["hangar-disk", "hangar-git", "hangar-peer", "hangar-process", "hangar-protocol"]),
    ("hangar-scheduler", &[]),
    ("hangar-workflow", &["hangar-front-matter"]),
    ("hangar-trackers", &["hangar-front-matter", "hangar-workflow"]),
    ("hangar-orchestrator", &["hangar-trackers", "hangar-workflow"]),
    (
        "hangar-jobs",
        &["hangar-git", "hangar-process", "hangar-protocol", "hangar-runtimes", "hangar-scheduler"],
    ),
    (
        "hangar-registry",
        &[
            "hangar-diff",
            "hangar-disk",
            "hangar-jobs",
            "hangar-protocol",
            "hangar-runtimes",
            "hangar-scheduler",
            "hangar-store",
        ],
    ),
    ("hangar-fleet", &["hangar-disk", "hangar-jobs", "hangar-protocol", "hangar-scheduler", "hangar-store"]),
    ("hangar-plugins", &["hangar-custom", "hangar-disk", "hangar-git"]),
    (
        "hangar-portal",
        &[
            "hangar-jobs",
            "hangar-peer",
            "hangar-process",
            "hangar-protocol",
            "hangar-registry",
            "hangar-runtimes",
            "hangar-store",
        ],
    ),
    (
        "hangar-server",
        &[
            "hangar-agent",
            "hangar-custom",
            "hangar-diff",
            "hangar-disk",
            "hangar-engine",
            "hangar-files",
            "hangar-git",
            "hangar-mcp",
            "hangar-peer",
            "hangar-plugins",
            "hangar-process",
            "hangar-protocol",
            "hangar-sandbox",
            "hangar-spec",
            "hangar-store",
        ],
    ),
    ("hangar-telemetry", &["hangar-agent", "hangar-protocol"]),
    ("hangar-transcript", &["hangar-protocol"]),
    ("hangar-terminal", &["hangar-diff", "hangar-protocol", "hangar-transcript"]),
    ("hangar-test-support", &["hangar-models", "hangar-simulators"]),
    (
        "hangar-cli",
        &[
            "hangar-acp",
            "hangar-agent",
            "hangar-custom",
            "hangar-disk",
            "hangar-engine",
            "hangar-files",
            "hangar-fleet",
            "hangar-front-matter",
            "hangar-git",
            "hangar-images",
            "hangar-jobs",
            "hangar-mcp",
            "hangar-models",
            "hangar-orchestrator",
            "hangar-peer",
            "hangar-plugins",
            "hangar-portal",
            "hangar-process",
            "hangar-protocol",
            "hangar-registry",
            "hangar-runtimes",
            "hangar-sandbox",
            "hangar-scheduler",
            "hangar-server",
            "hangar-simulators",
            "hangar-spec",
            "hangar-store",
            "hangar-telemetry",
            "hangar-terminal",
            "hangar-tools",
            "hangar-trackers",
            "hangar-transcript",
            "hangar-workflow",
        ],
    ),
    ("xtask", &[]),
];

/// Crates that may be used by tests only.
const TESTS_ONLY: &[&str] = &["hangar-test-support"];

/// Crates that decide and never touch the world.
const WITHOUT_IO: &[&str] = &[
    "hangar-protocol",
    "hangar-agent",
    "hangar-scheduler",
    "hangar-transcript",
    "hangar-terminal",
    "hangar-workflow",
    "hangar-orchestrator",
];
const IO_CRATES: &[&str] = &["reqwest", "hyper", "axum", "rusqlite", "rustix", "nix", "libc", "process-wrap"];
const IO_FEATURES_OF_TOKIO: &[&str] =
    &["full", "fs", "net", "process", "signal", "io-std", "rt-multi-thread"];

/// Crates that `hangar job run` needs, and that no web server comes along with.
const WITHOUT_HTTP: &[&str] = &["hangar-jobs", "hangar-registry", "hangar-runtimes", "hangar-store"];
const HTTP_CRATES: &[&str] = &["axum", "hyper", "hyper-util", "reqwest"];

pub(crate) fn run() -> Result<()> {
    let files = files()?;
    let mut problems = Vec::new();
    problems.extend(words_that_must_not_stay(&files)?);
    problems.extend(lengths(&files)?);
    problems.extend(large_items(&files)?);
    problems.extend(architecture_names_every_crate()?);
    problems.extend(mechanisms_without_tests()?);
    problems.extend(web::problems()?);
    problems.extend(types::problems()?);
    let metadata = metadata()?;
    problems.extend(dependencies(&metadata));
    problems.extend(supply::problems(&metadata));
    if !problems.is_empty() {
        bail!("\n  {}", problems.join("\n  "));
    }
    println!("tidy: {} files", files.len());
    Ok(())
}

/// The tests that `docs/mechanisms.md` names, as `file::name`, and that are not there; and rows without any.
fn mechanisms_without_tests() -> Result<Vec<String>> {
    let page =
        std::fs::read_to_string(root().join("docs/mechanisms.md")).context("reading docs/mechanisms.md")?;
    let mut problems = Vec::new();
    for row in page.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| #")) {
        let named: Vec<&str> = row.split('`').filter(|word| word.contains(".rs::")).collect();
        if named.is_empty() {
            problems.push(format!("docs/mechanisms.md: no test in {row}"));
        }
        for (file, test) in named.iter().filter_map(|name| name.split_once("::")) {
            let text = std::fs::read_to_string(root().join(file)).unwrap_or_default();
            if !text.contains(&format!("fn {test}(")) {
                problems.push(format!("docs/mechanisms.md: {file} has no test {test}"));
            }
        }
    }
    Ok(problems)
}

/// What is in the repository or about to be, relative to its root.
fn files() -> Result<Vec<PathBuf>> {
    let git = ["ls-files", "--cached", "--others", "--exclude-standard"];
    let listing = shell::read(shell::program("git").args(git))?;
    let paths = listing.lines().map(PathBuf::from).filter(|path| root().join(path).is_file());
    // Nobody writes the built pages.
    Ok(paths.filter(|path| !path.starts_with(web::PAGES)).collect())
}

fn read(path: &Path) -> Result<String> {
    let bytes = std::fs::read(root().join(path)).with_context(|| format!("reading {}", path.display()))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn is_source(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| ["rs", "ts", "tsx", "mjs", "js"].iter().any(|known| extension == *known))
}

fn words_that_must_not_stay(files: &[PathBuf]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in files.iter().filter(|path| path.extension().is_none_or(|extension| extension != "lock")) {
        for (number, line) in read(path)?.lines().enumerate() {
            let mut found = |what: &str, why: &str| {
                problems.push(format!("{}:{}: `{what}`: {why}", path.display(), number + 1));
            };
            for path in MACHINE_PATHS.iter().filter(|path| has_path(line, path)) {
                found(path, "a path of one machine");
            }
            for (word, why) in FORBIDDEN.iter().filter(|(word, _)| is_source(path) && line.contains(word)) {
                found(word, why);
            }
        }
    }
    Ok(problems)
}

/// A directory counts at the start of a path, not inside one.
fn has_path(line: &str, path: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || "_.$)}>".contains(c);
    line.match_indices(path).any(|(at, _)| !line[..at].ends_with(inside))
}

fn lengths(files: &[PathBuf]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for path in files.iter().filter(|path| is_source(path)) {
        let lines = read(path)?.lines().count();
        let is_table = TABLES.iter().any(|table| path == Path::new(table));
        if lines > TOO_LONG_FILE && !is_table {
            problems.push(format!("{}: {lines} lines, more than {TOO_LONG_FILE}", path.display()));
        } else if lines > LONG_FILE {
            println!("{}: {lines} lines; does it hold a second noun?", path.display());
        }
    }
    let readme = read(Path::new("README.md"))?.lines().count();
    if readme > README_LIMIT {
        problems.push(format!("README.md: {readme} lines, more than {README_LIMIT}"));
    }
    Ok(problems)
}

/// Traits and functions of the program that do too much. Tests are tables, which may be long.
fn large_items(files: &[PathBuf]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let is_test =
        |path: &Path| path.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
    for path in files.iter().filter(|path| path.extension().is_some_and(|it| it == "rs") && !is_test(path)) {
        let text = read(path)?;
        let traits =
            trait_methods(&text).into_iter().map(|(name, count)| (name, count, "methods", TRAIT_METHODS));
        let functions =
            function_lines(&text).into_iter().map(|(name, count)| (name, count, "lines", FUNCTION_LINES));
        for (name, count, unit, (many, too_many)) in traits.chain(functions) {
            let problem = format!("{}: `{name}` has {count} {unit}, more than {many}", path.display());
            if count > too_many {
                problems.push(problem);
            } else if count > many {
                println!("{problem}");
            }
        }
    }
    Ok(problems)
}

/// Traits of a formatted source file, with the number of their methods.
fn trait_methods(text: &str) -> Vec<(&str, usize)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(name) = name_after(line, "trait ").filter(|_| line.ends_with('{')) else { continue };
        let body = lines.by_ref().take_while(|line| *line != "}");
        found.push((name, body.filter(|line| line.starts_with("    fn ")).count()));
    }
    found
}

/// Functions of a formatted source file, with the number of their lines.
fn function_lines(text: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = text.lines().take_while(|line| *line != "mod tests {").collect();
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let Some(name) = name_after(line.trim_start(), "fn ").filter(|_| !line.ends_with('}')) else {
            continue;
        };
        let indent = line.len() - line.trim_start().len();
        // The first line of its own depth that ends something: the body, or a declaration without one.
        let is_end = |line: &&str| {
            line.len() - line.trim_start().len() == indent && (line.ends_with('}') || line.ends_with(';'))
        };
        if let Some(length) =
            lines[at..].iter().position(is_end).filter(|length| lines[at + length].ends_with('}'))
        {
            found.push((name, length + 1));
        }
    }
    found
}

/// The name behind a keyword that begins a line, with or without a visibility and other modifiers.
fn name_after<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let (before, rest) = line.split_once(keyword)?;
    let is_modifier =
        |word: &str| ["const", "async", "unsafe", "pub"].contains(&word) || word.starts_with("pub(");
    let name = rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()?;
    before.split_whitespace().all(is_modifier).then_some(name).filter(|name| !name.is_empty())
}

fn architecture_names_every_crate() -> Result<Vec<String>> {
    let text = read(Path::new("ARCHITECTURE.md"))?;
    let mut problems = Vec::new();
    for entry in std::fs::read_dir(root().join("crates")).context("reading crates/")? {
        let name = entry.context("reading crates/")?.file_name().to_string_lossy().into_owned();
        if !text.contains(&format!("`crates/{name}`")) {
            problems.push(format!("ARCHITECTURE.md does not say what `crates/{name}` is"));
        }
    }
    Ok(problems)
}

fn metadata() -> Result<Value> {
    let text = shell::read(shell::program("cargo").args([
        "metadata",
        "--format-version",
        "1",
        "--locked",
        "--filter-platform",
        "x86_64-unknown-linux-gnu",
    ]))?;
    serde_json::from_str(&text).context("reading the output of `cargo metadata`")
}

fn dependencies(metadata: &Value) -> Vec<String> {
    let all = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    // Only crates of the workspace have no source.
    let packages: Vec<&Value> = all.iter().filter(|package| package["source"].is_null()).collect();
    let name_of = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
    let members: Vec<String> = packages.iter().copied().map(name_of).collect();
    let mut problems = Vec::new();
    for package in packages {
        let package_name = name_of(package);
        let Some((_, may_use)) = MAY_USE.iter().find(|(name, _)| *name == package_name) else {
            problems.push(format!("xtask/src/tidy.rs does not say which crates {package_name} may use"));
            continue;
        };
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let used = name_of(dependency);
            // Tests may use more: a dev-dependency is not shipped.
            if dependency["kind"] == "dev" {
                continue;
            }
            if TESTS_ONLY.contains(&used.as_str()) {
                problems.push(format!("{package_name} uses {used}, which is for tests only"));
            } else if members.contains(&used) && !may_use.contains(&used.as_str()) {
                problems.push(format!("{package_name} may not use {used}"));
            }
            if WITHOUT_HTTP.contains(&package_name.as_str()) && HTTP_CRATES.contains(&used.as_str()) {
                problems.push(format!("{package_name} knows no HTTP and may not use {used}"));
            }
            if WITHOUT_IO.contains(&package_name.as_str()) {
                problems.extend(io(&package_name, &used, dependency));
            }
        }
    }
    problems
}

fn io(package: &str, used: &str, dependency: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    if IO_CRATES.contains(&used) {
        problems.push(format!("{package} does no I/O and may not use {used}"));
    }
    if used == "tokio" {
        let features = dependency["features"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for feature in features.filter(|feature| IO_FEATURES_OF_TOKIO.contains(feature)) {
            problems.push(format!("{package} does no I/O and may not use the feature `{feature}` of tokio"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check_dependency(package: &str, dependency: &Value, problem: Option<&str>) {
        let members = MAY_USE.iter().map(|(name, _)| *name).filter(|name| *name != package);
        let mut packages: Vec<Value> =
            members.map(|name| json!({ "name": name, "dependencies": [] })).collect();
        packages.push(json!({ "name": package, "dependencies": [dependency] }));
        let found = dependencies(&json!({ "packages": packages }));
        assert_eq!(found.first().map(String::as_str), problem);
    }

    #[test]
    fn dependencies_point_in_one_direction() {
        check_dependency(
            "hangar-cli",
            &json!({ "name": "hangar-agent", "kind": null, "features": [] }),
            None,
        );
        check_dependency(
            "hangar-agent",
            &json!({ "name": "hangar-cli", "kind": null, "features": [] }),
            Some("hangar-agent may not use hangar-cli"),
        );
    }

    #[test]
    fn test_support_is_for_tests() {
        check_dependency(
            "hangar-cli",
            &json!({ "name": "hangar-test-support", "kind": "dev", "features": [] }),
            None,
        );
        check_dependency(
            "hangar-cli",
            &json!({ "name": "hangar-test-support", "kind": null, "features": [] }),
            Some("hangar-cli uses hangar-test-support, which is for tests only"),
        );
    }

    #[test]
    fn the_registry_knows_no_http() {
        check_dependency(
            "hangar-registry",
            &json!({ "name": "axum", "kind": null, "features": [] }),
            Some("hangar-registry knows no HTTP and may not use axum"),
        );
    }

    #[test]
    fn the_agent_does_no_io() {
        check_dependency(
            "hangar-agent",
            &json!({ "name": "tokio", "kind": null, "features": ["sync", "time"] }),
            None,
        );
        check_dependency(
            "hangar-agent",
            &json!({ "name": "tokio", "kind": null, "features": ["sync", "net"] }),
            Some("hangar-agent does no I/O and may not use the feature `net` of tokio"),
        );
        check_dependency(
            "hangar-agent",
            &json!({ "name": "reqwest", "kind": null, "features": [] }),
            Some("hangar-agent does no I/O and may not use reqwest"),
        );
    }

    #[test]
    fn a_crate_that_nobody_placed_is_a_problem() {
        check_dependency(
            "hangar-new",
            &json!({ "name": "serde", "kind": null, "features": [] }),
            Some("xtask/src/tidy.rs does not say which crates hangar-new may use"),
        );
    }

    #[test]
    fn items_are_measured() {
        let text = "pub trait A: B {\n    fn one(&self);\n\n    /// fn two\n    fn three(&self) {\n    }\n}\n\
                    // a fn in words {\nfn c(\n    it: u8,\n) -> u8;\nfn d() {}\npub(crate) async fn b() {\n    if true {\n    }\n}\n";
        assert_eq!(trait_methods(text), [("A", 2)]);
        assert_eq!(function_lines(text), [("three", 2), ("b", 4)]);
    }

    #[test]
    fn a_machine_path_is_found_at_its_start_only() {
        let path = MACHINE_PATHS[0];
        assert!(has_path(&format!("see {path}main"), path));
        assert!(has_path(&format!("\"{path}main\""), path));
        assert!(!has_path(&format!("$HOME{path}main"), path));
        assert!(!has_path(&format!("src{path}main"), path));
    }
}
