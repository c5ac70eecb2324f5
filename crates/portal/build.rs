//! Packs the files of `pages` into the program: compressed, with the tag by which browsers know a version. So it does with the
//! description of the API.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use flate2::{Compression, CrcReader, write::GzEncoder};

const PAGES: &str = "pages";
const DESCRIPTION: &str = "../../docs/openapi.json";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed={PAGES}");
    println!("cargo::rerun-if-changed={DESCRIPTION}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    pack(Path::new(DESCRIPTION), &out.join("openapi.json.gz"));
    let mut names = Vec::new();
    collect(Path::new(PAGES), &mut names);
    names.sort();
    let mut table = String::from("static FILES: &[File] = &[\n");
    for (n, path) in names.iter().enumerate() {
        let name = path.strip_prefix(PAGES).ok().and_then(Path::to_str).expect("a name in UTF-8");
        let packed = out.join(format!("{n}.gz"));
        let tag = pack(path, &packed);
        writeln!(table, "    File {{ name: {name:?}, tag: {tag:?}, packed: include_bytes!({packed:?}) }},")
            .expect("a string takes all");
    }
    table.push_str("];\n");
    std::fs::write(out.join("files.rs"), table).expect("writing the table of files");
}

fn collect(directory: &Path, names: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(directory).expect("reading the pages") {
        let path = entry.expect("reading the pages").path();
        if path.is_dir() {
            collect(&path, names);
        } else {
            names.push(path);
        }
    }
}

/// Compresses a file. Returns its tag.
fn pack(from: &Path, to: &Path) -> String {
    let mut reader = CrcReader::new(File::open(from).expect("opening a page"));
    let mut content = Vec::new();
    reader.read_to_end(&mut content).expect("reading a page");
    let mut packed = GzEncoder::new(File::create(to).expect("creating a packed page"), Compression::best());
    packed.write_all(&content).and_then(|()| packed.finish()).expect("packing a page");
    format!("\"{:08x}-{:x}\"", reader.crc().sum(), content.len())
}
