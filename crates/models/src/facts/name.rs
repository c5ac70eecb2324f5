//! Names of models: the same model is written in many ways.

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
/// Similarity below which a name is not suggested.
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

/// The names among `known` that are most similar to an unknown one, best first.
pub fn nearest<'a>(model: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = key(model);
    let mut scored: Vec<(f64, &str)> = known
        .into_iter()
        .map(|name| (strsim::jaro_winkler(&wanted, &key(name)), name))
        .filter(|(score, _)| *score >= LEAST_SIMILARITY)
        .collect();
    scored.sort_by(|(left, a), (right, b)| right.total_cmp(left).then_with(|| a.cmp(b)));
    scored.dedup_by_key(|(_, name)| *name);
    scored.into_iter().map(|(_, name)| name).take(SUGGESTIONS).collect()
}
