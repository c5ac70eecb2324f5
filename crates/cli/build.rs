//! Facts that only the build knows: the commit, for `--version`, and the linker options that make a release smaller, on disk
//! and in memory. Linkers and C libraries differ in the options that they support, so an empty program is linked with each,
//! and started where that is possible.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Options of a release, each used only if it works here.
const SMALLER: [&str; 5] = [
    // Functions with the same code become one, which saves a megabyte.
    "-Wl,--icf=all",
    // Relocations take 10 KB instead of 800 KB, all of which is read at every start. It takes glibc 2.36.
    "-Wl,-z,pack-relative-relocs",
    // Cold functions, such as those that panic, have pages of their own, so that fewer pages of the program are mapped.
    "-Wl,-z,keep-text-section-prefix",
    // So have the functions that one prompt runs, which are a tenth of the program. `cargo xtask layout` writes the list.
    concat!("-Wl,-T,", env!("CARGO_MANIFEST_DIR"), "/prompt.ld"),
    // So have small generic functions.
    concat!("-Wl,-T,", env!("CARGO_MANIFEST_DIR"), "/layout.ld"),
];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=layout.ld");
    println!("cargo::rerun-if-changed=prompt.ld");
    if let Some(commit) = commit() {
        println!("cargo::rustc-env=HANGAR_COMMIT={commit}");
    }
    if variable("PROFILE") == "release" {
        for option in SMALLER.into_iter().filter(|option| works(option).unwrap_or(false)) {
            println!("cargo::rustc-link-arg-bin=hangar={option}");
        }
    }
}

/// The commit that is checked out. `None` without git, and for sources that are not the top of a repository: unpacked into
/// somebody else's, they would be given that one's commit.
fn commit() -> Option<String> {
    let manifest = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let root = manifest.parent()?.parent()?;
    if Path::new(&git(root, &["rev-parse", "--show-toplevel"])?).canonicalize().ok()?
        != root.canonicalize().ok()?
    {
        return None;
    }
    // Git appends to this file whenever another commit is checked out.
    let moves = root.join(git(root, &["rev-parse", "--git-path", "logs/HEAD"])?);
    if moves.exists() {
        println!("cargo::rerun-if-changed={}", moves.display());
    }
    git(root, &["rev-parse", "--short=7", "HEAD"])
}

fn git(directory: &Path, args: &[&str]) -> Option<String> {
    let output =
        Command::new("git").arg("-C").arg(directory).args(args).stderr(Stdio::null()).output().ok()?;
    let text = output.status.success().then(|| String::from_utf8(output.stdout).ok())??;
    Some(text.trim().to_owned())
}

/// Whether a program that is linked with an option starts. `None` if that cannot be found out: a larger program works too.
fn works(option: &str) -> Option<bool> {
    let directory = PathBuf::from(variable("OUT_DIR"));
    let (source, program) = (directory.join("nothing.rs"), directory.join("nothing"));
    std::fs::write(&source, "fn main() {}\n").ok()?;
    let mut compiler = Command::new(variable("RUSTC"));
    compiler.args(["--edition=2024", "--crate-name=nothing", "--target", &variable("TARGET")]);
    // An option that the linker ignores with a warning does not work.
    compiler.args(["-Clink-arg=-Wl,--fatal-warnings", &format!("-Clink-arg={option}")]);
    compiler.arg("-o").arg(&program).arg(&source);
    let linker = variable("RUSTC_LINKER");
    if !linker.is_empty() {
        compiler.arg(format!("-Clinker={linker}"));
    }
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    compiler.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    let succeeds = |command: &mut Command| -> Option<bool> {
        Some(command.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?.success())
    };
    // A program for another machine cannot be started here.
    let is_native = variable("HOST") == variable("TARGET");
    Some(is_native && succeeds(&mut compiler)? && succeeds(&mut Command::new(program))?)
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
