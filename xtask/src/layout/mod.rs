//! `cargo xtask layout`: writes `crates/cli/prompt.ld`, the list of the functions that one prompt runs, by which a release is linked.
//!
//! A program without its symbols stripped runs some prompts under a tracer that has a breakpoint at each of its functions. The
//! names of those that were run go into the list without their hashes, which differ between compilers and directories.

mod tracer;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result};

use crate::{root, shell};

/// Names with more instances than this stand behind the others: most of their instances are not run.
const FEW: usize = 8;

const ANSWER: &str = "SAY:done";
const COMMAND: &str = "TOOL:bash:{\"command\":\"echo hi\",\"description\":\"Say hi\"}\nSAY:done";
const TOOLS: &str = r#"PTOOL:edit:{"path":"calc.py","old_str":"a - b","new_str":"a + b"}
TOOL:grep:{"pattern":"return","output_mode":"content"}
TOOL:view:{"path":"calc.py"}
TOOL:bash:{"command":"echo hi","description":"Say hi"}
SAY:done"#;

pub(crate) fn write() -> Result<()> {
    let mut build = shell::program("cargo");
    build.args(["build", "--release", "--package", "hangar-cli", "--config", "profile.release.strip=false"]);
    shell::run(&mut build)?;
    write_for(&root().join("target/release/hangar"))
}

/// Writes the list for a program that has its symbols.
pub(crate) fn write_for(program: &Path) -> Result<()> {
    let program = &program.canonicalize().with_context(|| format!("there is no {}", program.display()))?;
    let symbols = symbols(program)?;
    let place = Place::new()?;
    let addresses: Vec<u64> = symbols.keys().copied().collect();
    let trace = |args: &[&str], model: &[(&str, &str)]| {
        let mut command = place.command(program);
        command.args(args).arg("--allow-all-tools").envs(model.iter().copied());
        tracer::functions_run(&command, &addresses)
    };
    let scripted = [("COPILOT_MODEL", "scripted")];
    let mut offline = trace(&["-p", ANSWER], &scripted)?;
    offline.extend(trace(&["-p", COMMAND], &scripted)?);
    offline.extend(trace(&["--output-format", "json", "-p", TOOLS], &scripted)?);
    let server = ModelServer::start(place.command(program))?;
    let provider = [
        ("COPILOT_MODEL", "served"),
        ("COPILOT_PROVIDER_API_KEY", "none"),
        ("COPILOT_PROVIDER_BASE_URL", &server.address),
    ];
    let online = trace(&["-p", COMMAND], &provider)?;
    let list = list(&symbols, &offline, &online);
    let path = root().join("crates/cli/prompt.ld");
    std::fs::write(&path, list).with_context(|| format!("cannot write {}", path.display()))?;
    let (run, all) = (offline.union(&online).count(), addresses.len());
    println!("{run} of {all} functions are run by a prompt; the next release is linked by them");
    Ok(())
}

/// The functions of a program by address. One address can have several names: the linker folds equal functions.
fn symbols(program: &Path) -> Result<BTreeMap<u64, Vec<String>>> {
    let mut symbols: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for line in shell::read(shell::program("nm").arg("--defined-only").arg(program))?.lines() {
        let mut words = line.split(' ');
        let (address, kind, name) = (words.next(), words.next(), words.next());
        if let (Some(address), Some("t" | "T" | "w" | "W"), Some(name)) = (address, kind, name) {
            let address = u64::from_str_radix(address, 16).context("an address of nm")?;
            symbols.entry(address).or_default().push(name.to_owned());
        }
    }
    anyhow::ensure!(symbols.len() > 1000, "{} has no symbols: it is stripped", program.display());
    Ok(symbols)
}

fn list(symbols: &BTreeMap<u64, Vec<String>>, offline: &BTreeSet<u64>, online: &BTreeSet<u64>) -> String {
    let mut instances: HashMap<String, usize> = HashMap::new();
    for pattern in symbols.values().flatten().filter_map(|name| pattern(name)) {
        *instances.entry(pattern).or_default() += 1;
    }
    let patterns = |addresses: &BTreeSet<u64>| -> BTreeSet<String> {
        addresses.iter().flat_map(|address| &symbols[address]).filter_map(|name| pattern(name)).collect()
    };
    let offline = patterns(offline);
    let online = &patterns(online) - &offline;
    let (few, many): (BTreeSet<_>, BTreeSet<_>) =
        offline.into_iter().partition(|pattern| instances[pattern] <= FEW);
    let mut list = String::from(
        "/* Functions that one prompt runs, by `cargo xtask layout`. The kernel maps 64 KB around each page that is touched; these stand
   together, so that the pages of the others are not mapped. A list that is out of date costs memory, nothing else. */
SECTIONS
{
  .text.prompt :
  {
",
    );
    for (title, patterns) in [
        ("Without the network.", few),
        ("Those with many instances.", many),
        ("With a model over HTTP.", online),
    ] {
        let _ = writeln!(list, "    /* {title} */\n    *(");
        for pattern in patterns {
            let _ = writeln!(list, "      .text.{pattern}");
        }
        list.push_str("    )\n");
    }
    list.push_str("  }\n}\nINSERT AFTER .text;\n");
    list
}

/// Pattern of a mangled name, in both manglings of Rust, with a `*` for each hash. `None` for other languages.
fn pattern(name: &str) -> Option<String> {
    const HASH: usize = 16;
    // The compiler adds a suffix to functions that it splits.
    if name.starts_with("_R") {
        let name = name.split('.').next()?;
        let mut pattern = String::new();
        let mut rest = name;
        while let Some((before, after)) = rest.split_once("Cs") {
            let hash = after.split_once('_').filter(|(hash, after)| {
                hash.chars().all(char::is_alphanumeric)
                    && after.starts_with(|first: char| first.is_ascii_digit())
            });
            pattern.push_str(before);
            pattern.push_str(if hash.is_some() { "Cs*_" } else { "Cs" });
            rest = hash.map_or(after, |(_, after)| after);
        }
        return Some(pattern + rest);
    }
    let (before, hash) = name.strip_prefix("_ZN").and(name.rsplit_once("17h"))?;
    let is_hash = hash.get(..HASH)?.chars().all(|digit| digit.is_ascii_hexdigit());
    is_hash.then(|| format!("{before}17h*"))
}

/// A directory with a file to work on, and an empty home.
struct Place(PathBuf);

impl Place {
    fn new() -> Result<Self> {
        let path = std::env::temp_dir().join(format!("hangar-layout-{}", std::process::id()));
        std::fs::create_dir_all(path.join("home")).context("cannot make a directory")?;
        std::fs::write(path.join("calc.py"), "def add(a, b):\n    return a - b\n").context("cannot write")?;
        Ok(Self(path))
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.0)
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("COPILOT_OFFLINE", "true")]);
        command.env("HOME", self.0.join("home"));
        command
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Left behind, it is in the directory for temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The scripted model on loopback.
struct ModelServer {
    child: Child,
    address: String,
}

impl ModelServer {
    fn start(mut command: Command) -> Result<Self> {
        command.args(["model", "serve", "--port", "0"]).stdout(Stdio::piped());
        let mut child = command.spawn().context("cannot start the model")?;
        let mut line = String::new();
        if let Some(stdout) = child.stdout.take() {
            BufReader::new(stdout).read_line(&mut line).context("cannot read the address of the model")?;
        }
        let address = line.split_whitespace().last().context("the model prints no address")?;
        Ok(Self { address: format!("{address}/v1"), child })
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_has_no_hash() {
        let check = |name: &str, expected: Option<&str>| assert_eq!(pattern(name).as_deref(), expected);
        check("_ZN6hangar4main17h0123456789abcdefE", Some("_ZN6hangar4main17h*"));
        check("_ZN6hangar4main17h0123456789abcdefE.llvm.12", Some("_ZN6hangar4main17h*"));
        check("_RNvNtCsjrHSEGnQ3l9_3std2io4copy", Some("_RNvNtCs*_3std2io4copy"));
        check("_RINvCsab_4core3fooNtCscd_5alloc3BarE", Some("_RINvCs*_4core3fooNtCs*_5alloc3BarE"));
        check("sqlite3_open", None);
        check("_ZN3foo3barEv", None);
    }

    #[test]
    fn names_with_many_instances_stand_behind_the_others() {
        let name = |function: &str, n: u64| format!("_ZN1a{function}17h{n:016x}E");
        let mut symbols: BTreeMap<u64, Vec<String>> = (0..20).map(|n| (n, vec![name("4many", n)])).collect();
        symbols.insert(100, vec![name("3few", 1)]);
        symbols.insert(101, vec![name("6online", 1), name("6folded", 1)]);
        symbols.insert(102, vec![name("4cold", 1)]);
        let list = list(&symbols, &BTreeSet::from([1, 100]), &BTreeSet::from([1, 101]));
        let names: Vec<&str> =
            list.lines().filter_map(|line| line.trim().strip_prefix(".text._ZN1a")).collect();
        assert_eq!(names, ["3few17h*", "4many17h*", "6folded17h*", "6online17h*"]);
    }
}
