//! Texts without what differs from run to run: ids, times, paths and ports.

use std::collections::HashMap;
use std::path::Path;

/// Replaces, in this order: each path by its name, UUIDs by `<id 1>`, `<id 2>`, ... in order of appearance, times of
/// ISO 8601 by `<time>`, and the port of a loopback address by `<port>`.
pub fn normalise(text: &str, paths: &[(&Path, &str)]) -> String {
    let mut text = text.to_owned();
    for (path, name) in paths {
        text = text.replace(&path.to_string_lossy().into_owned(), name);
    }
    let mut ids: HashMap<&str, usize> = HashMap::new();
    let mut out = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(first) = rest.chars().next() {
        if let Some(len) = shape(rest, UUID) {
            let next = ids.len() + 1;
            let number = *ids.entry(&rest[..len]).or_insert(next);
            out.push_str(&format!("<id {number}>"));
            rest = &rest[len..];
        } else if let Some(len) = shape(rest, TIME) {
            out.push_str("<time>");
            rest = &rest[len..];
        } else if let Some(tail) = rest.strip_prefix(LOOPBACK) {
            out.push_str(LOOPBACK);
            out.push_str("<port>");
            rest = tail.trim_start_matches(|c: char| c.is_ascii_digit());
        } else {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    out
}

/// `x` stands for a hexadecimal digit and `9` for a decimal one; anything else for itself.
const UUID: &str = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
const TIME: &str = "9999-99-99T99:99:99.999Z";
const LOOPBACK: &str = "127.0.0.1:";

fn shape(text: &str, pattern: &str) -> Option<usize> {
    let fits = |(c, p): (u8, u8)| match p {
        b'x' => c.is_ascii_hexdigit(),
        b'9' => c.is_ascii_digit(),
        _ => c == p,
    };
    (text.len() >= pattern.len() && text.bytes().zip(pattern.bytes()).all(fits)).then_some(pattern.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(normalise(text, &[(Path::new("/tmp/scratch/dir"), "$WORK")]), expected);
    }

    #[test]
    fn the_same_id_gets_the_same_name() {
        check(
            "3bb47b2b-e4e7-46fe-bd5e-b620af69c3f1 611ed886-9b53-4622-a489-5fed6d153a0f 3bb47b2b-e4e7-46fe-bd5e-b620af69c3f1",
            "<id 1> <id 2> <id 1>",
        );
    }

    #[test]
    fn times_paths_and_ports_are_replaced() {
        check(
            "2026-01-02T03:04:05.678Z /tmp/scratch/dir/a.txt http://127.0.0.1:34177/v1",
            "<time> $WORK/a.txt http://127.0.0.1:<port>/v1",
        );
    }

    #[test]
    fn what_is_almost_an_id_stays() {
        check("3bb47b2b-e4e7-46fe-bd5e 2026-01-02 é", "3bb47b2b-e4e7-46fe-bd5e 2026-01-02 é");
    }
}
