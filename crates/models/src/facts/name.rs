//! Names of models: the same model is written in many ways.

use std::cmp::Ordering;

use super::host::Spelling;

/// Prefixes that hosts put before a vendor's name, and vendors before a model's.
const PREFIXES: [&str; 22] = [
    "us.",
    "eu.",
    "apac.",
    "ap.",
    "jp.",
    "au.",
    "ca.",
    "global.",
    "us-gov.",
    "anthropic.",
    "openai.",
    "google.",
    "amazon.",
    "meta.",
    "mistral.",
    "deepseek.",
    "moonshotai.",
    "moonshot.",
    "qwen.",
    "zai.",
    "minimax.",
    "xai.",
];
/// Number of suggestions for an unknown name.
const SUGGESTIONS: usize = 3;
/// From this similarity on, the words of two names are meant to be the same.
const SAME_FAMILY: f64 = 0.95;
/// Below this similarity a name is not worth suggesting.
const LEAST_SIMILARITY: f64 = 0.75;

/// Normalised form in which names are compared: lower case, without provider, vendor, date and revision, and with `-`
/// for the dot of a version. `us.anthropic.claude-sonnet-4-5-20250929-v1:0` and `Claude-Sonnet-4.5` are
/// `claude-sonnet-4-5`.
pub(crate) fn key(model: &str) -> String {
    let name = model.trim().rsplit('/').next().unwrap_or_default().to_ascii_lowercase();
    let mut name = name.as_str();
    while let Some(rest) = PREFIXES.iter().find_map(|prefix| name.strip_prefix(prefix)) {
        name = rest;
    }
    let name = name.split(['@', '[']).next().unwrap_or(name);
    let name = name.strip_suffix(":free").unwrap_or(name);
    without_date(without_revision(&name.replace('.', "-")))
}

/// Whether two names are ways to write the same model.
pub fn is_same(one: &str, other: &str) -> bool {
    one == other || key(one) == key(other)
}

/// Removes `-v1` and `-v1:0` at the end, which Bedrock adds.
fn without_revision(name: &str) -> &str {
    let name = match name.rsplit_once(':') {
        Some((front, "0")) => front,
        _ => name,
    };
    match name.rsplit_once("-v") {
        Some((front, number)) if front.starts_with("claude") && is_number(number) => front,
        _ => name,
    }
}

fn without_date(name: &str) -> String {
    let parts: Vec<&str> = name.split('-').collect();
    let date = match parts.as_slice() {
        [.., year, month, day]
            if [year, month, day].iter().all(|part| is_number(part)) && year.len() == 4 =>
        {
            3
        }
        [.., date] if is_number(date) && date.len() == 8 => 1,
        _ => 0,
    };
    parts[..parts.len() - date].join("-")
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
}

/// Whether a key matches a pattern, in which `*` stands for any characters.
pub(super) fn fits(pattern: &str, key: &str) -> bool {
    let Some((front, rest)) = pattern.split_once('*') else { return pattern == key };
    let Some(mut left) = key.strip_prefix(front) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(at) = left.find(piece) else { return false };
        left = &left[at + piece.len()..];
    }
    left.ends_with(last)
}

/// The name in the host's spelling: from its list, else by its rule for versions. `None` if it is unchanged.
pub fn spelled(model: &str, spelling: Spelling, listed: &[&str]) -> Option<String> {
    if listed.contains(&model) {
        return None;
    }
    let wanted = key(model);
    if let Some(same) = listed.iter().find(|id| key(id) == wanted) {
        return Some((*same).to_owned());
    }
    let (vendor, name) = model.rsplit_once('/').map_or((None, model), |(vendor, name)| (Some(vendor), name));
    if !name.starts_with("claude-") {
        return None;
    }
    let spelled = match spelling {
        Spelling::Listed => return None,
        Spelling::Dashes => name.replace('.', "-"),
        Spelling::Dots => dotted(name),
    };
    (spelled != name).then(|| vendor.map_or_else(|| spelled.clone(), |vendor| format!("{vendor}/{spelled}")))
}

/// A dot between the two numbers of a version: `claude-sonnet-4.5`.
fn dotted(name: &str) -> String {
    let mut spelled = String::with_capacity(name.len());
    let mut before = "";
    for (at, part) in name.split('-').enumerate() {
        let version = |part: &str| part.len() <= 2 && is_number(part);
        if at > 0 {
            spelled.push(if version(before) && version(part) { '.' } else { '-' });
        }
        spelled.push_str(part);
        before = part;
    }
    spelled
}

/// The names among `known` that are most like one that nobody knows, best first: those of the same family before others, and
/// in a family those with the nearest version. Of several ways to write a model the shortest is taken.
pub fn nearest<'a>(model: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = key(model);
    let mut likely: Vec<Likeness> = known
        .into_iter()
        .map(|name| Likeness::of(&wanted, name))
        .filter(|likeness| likeness.letters >= LEAST_SIMILARITY)
        .collect();
    likely.sort_by(|one, other| {
        let by_version = if one.is_family { one.versions.cmp(&other.versions) } else { Ordering::Equal };
        other
            .is_family
            .cmp(&one.is_family)
            .then(by_version)
            .then(other.letters.total_cmp(&one.letters))
            .then_with(|| (one.name.len(), one.name).cmp(&(other.name.len(), other.name)))
    });
    let mut names: Vec<&str> = Vec::new();
    for likeness in likely {
        if names.len() < SUGGESTIONS && names.iter().all(|name| key(name) != key(likeness.name)) {
            names.push(likeness.name);
        }
    }
    names
}

/// How much a name is like the wanted one.
struct Likeness<'a> {
    name: &'a str,
    /// Whether the words of both are the same but for a slip of the pen.
    is_family: bool,
    /// Distance of the versions. Where none is wanted, the newest is the nearest.
    versions: i64,
    /// Similarity of the whole names.
    letters: f64,
}

impl<'a> Likeness<'a> {
    fn of(wanted: &str, name: &'a str) -> Self {
        let known = key(name);
        let ((words, version), (other_words, other_version)) = (split(wanted), split(&known));
        let versions = match version {
            Some(version) => other_version.map_or(i64::MAX, |other| (version - other).abs()),
            None => -other_version.unwrap_or(0),
        };
        let is_family = strsim::jaro_winkler(&words, &other_words) >= SAME_FAMILY;
        Self { name, is_family, versions, letters: strsim::jaro_winkler(wanted, &known) }
    }
}

/// The words of a name, and its version as one number: `gpt-5-6-sol` is `gpt-sol` and 5006.
fn split(key: &str) -> (String, Option<i64>) {
    /// Weight of a major version in minor versions.
    const MAJOR: i64 = 1000;
    let mut words: Vec<&str> = Vec::new();
    let mut numbers: Vec<i64> = Vec::new();
    let mut rest = key;
    while let Some(first) = rest.chars().next() {
        let is_number = first.is_ascii_digit();
        let end = rest.find(|c: char| c.is_ascii_digit() != is_number).unwrap_or(rest.len());
        let (run, behind) = rest.split_at(end);
        match is_number {
            // Longer ones are no versions.
            true => numbers.extend(run.parse::<u16>().map(i64::from)),
            false => words.extend(run.split('-').filter(|word| !word.is_empty())),
        }
        rest = behind;
    }
    let version = match numbers.as_slice() {
        [] => None,
        [major] => Some(major * MAJOR),
        [major, minor, ..] => Some(major * MAJOR + minor),
    };
    (words.join("-"), version)
}
