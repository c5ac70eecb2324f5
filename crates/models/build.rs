//! Turns the published vocabulary into a table that is used where it lies in the binary: no parsing, no hash map and
//! no regex is built at run time, so that counting tokens costs nothing until text is counted. The facts about models become JSON,
//! whose parser every session uses anyway: a session without a `config.toml` never runs the one for TOML.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use regex_syntax::hir::{Class, HirKind};
use tiktoken_rs::CoreBPE;

#[path = "src/tokenizer/layout.rs"]
mod layout;

const FACTS: &str = "src/facts/facts.toml";
const CATALOGUE: &str = "src/facts/models-dev.jsonl";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/tokenizer/layout.rs");
    println!("cargo::rerun-if-changed={FACTS}");
    println!("cargo::rerun-if-changed={CATALOGUE}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    vocabulary(&out.join("o200k.bin"), &tiktoken_rs::o200k_base().expect("the o200k vocabulary"));
    classes(&out.join("classes.rs"));
    facts(&out.join("facts.json"));
    catalogue(&out.join("models-dev.gz"));
}

fn facts(path: &Path) {
    let text = std::fs::read_to_string(FACTS).expect("reading the facts");
    let facts: toml::Table = text.parse().unwrap_or_else(|error| panic!("{FACTS}: {error}"));
    std::fs::write(path, serde_json::to_vec(&facts).expect("facts as JSON")).expect("writing the facts");
}

/// The catalogue, compressed to a fifteenth: its lines are much alike, and most sessions need none of them. The date in its head
/// stays readable.
fn catalogue(path: &Path) {
    let text = std::fs::read_to_string(CATALOGUE).expect("reading the catalogue");
    let head = text.lines().next().and_then(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let date = head.as_ref().and_then(|head| head["date"].as_str()).expect("a catalogue with a date");
    println!("cargo::rustc-env=CATALOGUE_DATE={date}");
    let mut packed = GzEncoder::new(File::create(path).expect("creating a file"), Compression::best());
    packed.write_all(text.as_bytes()).and_then(|()| packed.finish()).expect("packing the catalogue");
}

/// Little-endian: the number of entries before each group of buckets, the number in each bucket, the entries by bucket.
fn vocabulary(path: &Path, vocabulary: &CoreBPE) {
    // Ranks have no gaps; the special tokens behind the first gap never come from ordinary text.
    let tokens = (0_u32..).map_while(|rank| vocabulary.decode_bytes(&[rank]).ok().zip(Some(rank)));
    let mut buckets = vec![Vec::new(); layout::BUCKETS];
    for (token, rank) in tokens {
        assert!(rank < 1 << layout::RANK_BITS, "the vocabulary outgrew its entries");
        let hash = layout::hash(&token);
        let fingerprint = layout::fingerprint(hash);
        let bucket: &mut Vec<u64> = &mut buckets[layout::bucket(hash)];
        let is_new = bucket.iter().all(|entry| entry >> layout::RANK_BITS != fingerprint);
        assert!(is_new, "two tokens have the same hash");
        bucket.push(fingerprint << layout::RANK_BITS | u64::from(rank));
    }
    let starts = buckets.chunks(layout::GROUP).scan(0_u32, |start, group| {
        let this = *start;
        *start += group.iter().map(Vec::len).sum::<usize>() as u32;
        Some(this)
    });
    let mut bytes: Vec<u8> = starts.flat_map(u32::to_le_bytes).collect();
    bytes.extend(buckets.iter().map(|bucket| u8::try_from(bucket.len()).expect("a bucket of few entries")));
    bytes.extend(
        buckets.iter().flatten().flat_map(|entry| entry.to_le_bytes().into_iter().take(layout::ENTRY)),
    );
    std::fs::write(path, bytes).expect("writing a table");
}

/// The character classes of the splitting rules, as sorted ranges.
fn classes(path: &Path) {
    let classes = [
        ("Upper", r"\p{Lu}|\p{Lt}"),
        ("Lower", r"\p{Ll}"),
        ("Caseless", r"\p{Lm}|\p{Lo}"),
        ("Mark", r"\p{M}"),
        ("Number", r"\p{N}"),
    ];
    let mut ranges = Vec::new();
    for (name, pattern) in classes {
        let parsed = regex_syntax::parse(&format!("[{}]", pattern.replace('|', ""))).expect("a class");
        let HirKind::Class(Class::Unicode(class)) = parsed.kind() else { panic!("{name} is not a class") };
        ranges.extend(class.ranges().iter().map(|range| (range.start(), range.end(), name)));
    }
    ranges.sort_unstable();
    let mut source = String::from("static RANGES: &[(char, char, Class)] = &[\n");
    for (start, end, name) in ranges {
        writeln!(source, "    ({start:?}, {end:?}, Class::{name}),").expect("a string takes all");
    }
    source.push_str("];\n");
    std::fs::write(path, source).expect("writing the classes");
}
