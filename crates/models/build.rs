//! Turns the published vocabulary into a table that is used where it lies in the binary: no parsing, no hash map and
//! no regex is built at run time, so that counting tokens costs nothing until text is counted. The facts about models become JSON,
//! whose parser every session uses anyway: a session without a `config.toml` never runs the one for TOML.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use regex_syntax::hir::{Class, HirKind};
use tiktoken_rs::CoreBPE;

#[path = "src/tokenizer/layout.rs"]
mod layout;

/// Slots per token, at least: probing stays short.
const SPREAD: usize = 5;
const SPREAD_OF: usize = 4;

const FACTS: &str = "src/facts/facts.toml";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/tokenizer/layout.rs");
    println!("cargo::rerun-if-changed={FACTS}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    vocabulary(&out.join("o200k.bin"), &tiktoken_rs::o200k_base().expect("the o200k vocabulary"));
    classes(&out.join("classes.rs"));
    facts(&out.join("facts.json"));
}

fn facts(path: &Path) {
    let text = std::fs::read_to_string(FACTS).expect("reading the facts");
    let facts: toml::Table = text.parse().unwrap_or_else(|error| panic!("{FACTS}: {error}"));
    std::fs::write(path, serde_json::to_vec(&facts).expect("facts as JSON")).expect("writing the facts");
}

/// Little-endian: number of slots, number of tokens, the slots, the start of each group of tokens, the length of each token,
/// the tokens' bytes.
fn vocabulary(path: &Path, vocabulary: &CoreBPE) {
    // Ranks have no gaps; the special tokens behind the first gap never come from ordinary text.
    let tokens: Vec<Vec<u8>> = (0..).map_while(|rank| vocabulary.decode_bytes(&[rank]).ok()).collect();
    let slots = (tokens.len() * SPREAD / SPREAD_OF).next_power_of_two();
    let mut table = vec![0_u32; slots];
    for (rank, token) in (1_u32..).zip(&tokens) {
        assert!(rank < 1 << layout::RANK_BITS, "the vocabulary outgrew its slots");
        let hash = layout::hash(token);
        let mut at = hash as usize & (slots - 1);
        while table[at] != 0 {
            at = (at + 1) & (slots - 1);
        }
        table[at] = layout::fingerprint(hash) << layout::RANK_BITS | rank;
    }
    let starts = tokens.chunks(layout::GROUP).scan(0_u32, |start, group| {
        let this = *start;
        *start += group.iter().map(Vec::len).sum::<usize>() as u32;
        Some(this)
    });
    let words = [slots as u32, tokens.len() as u32].into_iter().chain(table).chain(starts);
    let mut bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    bytes.extend(tokens.iter().map(|token| u8::try_from(token.len()).expect("a token of at most 255 bytes")));
    bytes.extend(tokens.iter().flatten());
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
