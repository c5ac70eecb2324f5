//! Packs the facts of the vendors: tables of some 140 KB, and 25 KB compressed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;

const SOURCES: &str = "src";
/// Name of files for tests alone.
const CASES: &str = "cases.toml";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={SOURCES}");
    let mut texts = BTreeMap::new();
    collect(Path::new(SOURCES), &mut texts);
    let texts = serde_json::to_vec(&texts).expect("texts as JSON");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let file = File::create(out.join("facts.gz")).expect("creating a file");
    let mut packed = GzEncoder::new(file, Compression::best());
    packed.write_all(&texts).and_then(|()| packed.finish()).expect("packing the facts");
}

/// Every table below a directory, by its path from the sources.
fn collect(directory: &Path, texts: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(directory).expect("reading the sources") {
        let path = entry.expect("reading the sources").path();
        if path.is_dir() {
            collect(&path, texts);
        } else if path.extension().is_some_and(|kind| kind == "toml") && !path.ends_with(CASES) {
            let name = path.strip_prefix(SOURCES).ok().and_then(Path::to_str).expect("a name in UTF-8");
            texts.insert(name.to_owned(), std::fs::read_to_string(&path).expect("reading a table"));
        }
    }
}
