//! Folds functions with the same code into one where the linker can, which makes the program smaller by a megabyte.
//! Which linker it is, only the compiler knows, so a program of nothing is linked to find out.

use std::path::PathBuf;
use std::process::{Command, Stdio};

const FOLD: &str = "-Wl,--icf=all";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    if variable("PROFILE") == "release" && linker_folds().unwrap_or(false) {
        println!("cargo::rustc-link-arg-bin=hangar={FOLD}");
    }
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
