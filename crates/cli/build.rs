//! Two things that only the build knows: the commit that is built, for `--version`, and whether the linker can fold functions
//! with the same code into one, which makes the program smaller by a megabyte. Which linker it is, only the compiler knows,
//! so an empty program is linked to find out.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const FOLD: &str = "-Wl,--icf=all";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if let Some(commit) = commit() {
        println!("cargo::rustc-env=HANGAR_COMMIT={commit}");
    }
    if variable("PROFILE") == "release" && linker_folds().unwrap_or(false) {
        println!("cargo::rustc-link-arg-bin=hangar={FOLD}");
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

/// Nothing where it cannot be found out; a larger program is one all the same.
fn linker_folds() -> Option<bool> {
    let directory = PathBuf::from(variable("OUT_DIR"));
    let source = directory.join("nothing.rs");
    std::fs::write(&source, "fn main() {}\n").ok()?;
    let mut compiler = Command::new(variable("RUSTC"));
    compiler.args(["--edition=2024", "--crate-name=nothing", "--target", &variable("TARGET")]);
    compiler.arg(format!("-Clink-arg={FOLD}")).arg("-o").arg(directory.join("nothing")).arg(&source);
    let linker = variable("RUSTC_LINKER");
    if !linker.is_empty() {
        compiler.arg(format!("-Clinker={linker}"));
    }
    let flags = variable("CARGO_ENCODED_RUSTFLAGS");
    compiler.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    let status = compiler.stdout(Stdio::null()).stderr(Stdio::null()).status().ok()?;
    Some(status.success())
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}
