//! The tables of facts of the vendors, packed by `build.rs` and unpacked by the first simulator.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::GzDecoder;

static TEXTS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let packed: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/facts.gz"));
    let mut texts = Vec::new();
    let unpacked = GzDecoder::new(packed).read_to_end(&mut texts);
    unpacked.ok().and_then(|_| serde_json::from_slice(&texts).ok()).unwrap_or_default()
});

/// A table by its path from the sources. One that does not exist is empty, and no vendor: a test reads all.
pub(crate) fn text(path: &str) -> &'static str {
    TEXTS.get(path).map_or("", String::as_str)
}
